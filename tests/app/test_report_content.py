"""The content of a report, for every kind of model."""

from __future__ import annotations

import copy
import json
import re
from functools import cache

import numpy as np
import plotly.graph_objects as go
import pytest
from tests.app.report_models import (
    CLASSIFIERS,
    HOSTILE,
    REGRESSORS,
    fitted,
    hostile_table,
    of_two_classes,
    one_class_model,
    training_record,
    with_numbers,
)

from margrove import DecisionTreeClassifier, load_penguins
from margrove.app.history import rows_fingerprint
from margrove.app.report.blocks import Bars, Card, Words, charts_of
from margrove.app.report.explain import examples, reasons
from margrove.app.report.findings import evidence_of
from margrove.app.report.held_out import ReportFolds
from margrove.app.report.html import to_html
from margrove.app.report.importance import importances_of
from margrove.app.report.markdown import escaped, to_markdown
from margrove.app.report.model_on_table import MOST_ROWS, Subject
from margrove.app.report.writing import plain, report_of
from margrove.data import Column, Table
from margrove.svm.margins import margins


@cache
def model_of(name, table_of=load_penguins):
    return fitted((REGRESSORS if table_of is with_numbers else CLASSIFIERS)[name](), table_of())


@cache
def report_for(name, table_of=load_penguins):
    return report_of(model_of(name, table_of), table_of())


CASES = [
    *((name, load_penguins) for name in CLASSIFIERS),
    *((name, of_two_classes) for name in ("svm", "linear", "tree", "adaboost")),
    *((name, with_numbers) for name in REGRESSORS),
]
IDS = [f"{name}, {table_of.__name__}" for name, table_of in CASES]


@pytest.mark.parametrize(("name", "table_of"), CASES, ids=IDS)
def test_every_model_has_the_sections_for_everybody_and_the_details(name, table_of):
    report = report_for(name, table_of)
    assert [s.key for s in report.first] == ["summary", "quality", "what_matters", "examples", "proof"]
    assert {s.key for s in report.details} >= {"data", "mistakes", "model", "scores", "certificate", "about"}
    assert all(section.blocks for section in report.sections)


@pytest.mark.parametrize(("name", "table_of"), CASES, ids=IDS)
def test_every_chart_is_a_valid_plotly_figure_with_a_table_and_a_description(name, table_of):
    charts = [chart for section in report_for(name, table_of).sections for chart in charts_of(section.blocks)]
    assert len({chart.name for chart in charts}) == len(charts) > 0
    for chart in charts:
        go.Figure(chart.figure)  # refuses what it does not know
        assert chart.table.rows
        assert all(len(row) == len(chart.table.header) for row in chart.table.rows)
        assert len(chart.alt) > 20


@pytest.mark.parametrize(("name", "table_of"), CASES, ids=IDS)
def test_a_report_is_json_without_gaps_and_the_same_every_time(name, table_of):
    text = json.dumps(plain(report_for(name, table_of).to_dict()), allow_nan=False)
    again = json.dumps(plain(report_of(model_of(name, table_of), table_of()).to_dict()), allow_nan=False)
    assert text == again


def test_training_rows_are_recognised_and_not_used_for_the_estimate():
    penguins = load_penguins()
    subject = Subject(model_of("tree"), penguins)
    assert subject.is_training
    evidence = evidence_of(subject, ReportFolds(subject.model, subject.table))
    assert evidence.origin == "folds"
    assert evidence.on_training.value > evidence.quality.value  # a tree does better on what it has seen


@pytest.mark.parametrize("name", ["svm", "tree", "linear"])
def test_other_rows_are_not_mistaken_for_training_rows(name):
    penguins = load_penguins()
    fewer = penguins.take(np.arange(300))
    assert not Subject(model_of(name), fewer).is_training
    shifted = penguins["body_mass_g"].values + 1
    others = [Column(c.name, c.kind, shifted) if c.name == "body_mass_g" else c for c in penguins.columns]
    changed = Table(others, target=penguins.target)
    if name != "tree":  # which may not test the mass
        assert not Subject(model_of(name), changed).is_training


def trained(model, table):
    """With the record that `margrove train` leaves."""
    model = copy.copy(model)
    model.training_record_ = {"fingerprint": rows_fingerprint(table, table.target)}
    return model


def test_fingerprint_distinguishes_as_many_other_rows_from_training_rows():
    penguins = load_penguins()
    model = trained(model_of("adaboost"), penguins)
    subject = Subject(model, penguins)
    assert subject.is_training
    assert subject.is_training_known
    others = penguins.take(np.random.default_rng(0).permutation(penguins.n_rows))
    subject = Subject(model, others)
    assert not subject.is_training
    assert subject.is_training_known
    assert not Subject(model, others.with_target(None)).is_training


def test_training_rows_are_recognised_despite_further_columns():
    penguins = load_penguins()
    note = Column("note", "numeric", np.arange(float(penguins.n_rows)))
    more = Table([*penguins.columns, note], target=penguins.target)
    assert Subject(trained(model_of("adaboost"), penguins), more).is_training


def test_report_states_if_it_is_unknown_whether_rows_are_training_rows():
    penguins = load_penguins()
    others = penguins.take(np.random.default_rng(0).permutation(penguins.n_rows))
    subject = Subject(model_of("adaboost"), others)
    assert subject.is_training  # no score on them counts as an estimate
    assert not subject.is_training_known
    document = report_of(model_of("adaboost"), others).to_dict()
    assert document["summary"]["table_is_training_data"] is None


def test_score_on_new_rows_is_that_of_the_model():
    penguins = load_penguins()
    half = np.arange(penguins.n_rows) % 2 == 0
    model = fitted(CLASSIFIERS["tree"](), penguins.take(half))
    subject = Subject(model, penguins.take(~half))
    evidence = evidence_of(subject, ReportFolds(model, subject.table))
    assert evidence.origin == "table"
    assert evidence.quality.value == pytest.approx(model.score(penguins.take(~half), penguins.labels()[~half]))


def test_recorded_estimate_takes_precedence_over_training_rows():
    penguins = load_penguins()
    model = fitted(CLASSIFIERS["tree"](), penguins)
    model.training_record_ = training_record(penguins)
    report = report_of(model, penguins)
    quality = next(s for s in report.first if s.key == "quality").data
    assert quality["origin"] == "record"
    assert quality["value"] == model.training_record_["estimate"]["value"]
    mistakes = next(s for s in report.details if s.key == "mistakes").data
    assert mistakes["rows"] == 200
    assert "training" in {s.key for s in report.details}
    names = {chart.name for section in report.sections for chart in charts_of(section.blocks)}
    assert names >= {"leaderboard", "learning-curve", "search", "course"}


def test_sections_without_data_are_left_out():
    keys = {section.key for section in report_for("tree").details}
    assert "training" not in keys  # nothing is recorded of other learners
    penguins = load_penguins()
    unanswered = report_of(model_of("tree"), penguins.with_target(None))
    assert not {"quality", "mistakes"} & {section.key for section in unanswered.sections}
    names = {chart.name for section in unanswered.sections for chart in charts_of(section.blocks)}
    assert not names & {"roc", "margins", "search", "course"}


def test_target_may_be_a_column_and_other_columns_are_ignored():
    penguins = load_penguins()
    extra = Column("extra", "numeric", np.arange(penguins.n_rows, dtype=np.float64))
    table = Table([extra, penguins.target, *penguins.columns])
    subject = Subject(model_of("tree"), table)
    assert subject.scored is not None
    assert list(subject.unused) == ["extra"]
    assert subject.is_training


def test_rows_of_unknown_classes_and_without_a_target_are_left_out_and_counted():
    penguins = load_penguins()
    codes = penguins.target.values.copy()
    codes[:5], codes[5:8] = 3, -1
    target = Column("species", "category", codes, (*penguins.target.levels, "Emperor"))
    subject = Subject(model_of("tree"), penguins.with_target(target))
    assert (subject.n_unknown_class, subject.n_unlabelled) == (5, 3)
    assert len(subject.scored.truth) == penguins.n_rows - 8


def test_report_states_that_a_large_table_is_sampled():
    penguins = load_penguins()
    many = penguins.take(np.arange(MOST_ROWS + 500) % penguins.n_rows)
    report = report_of(model_of("tree"), many)
    text = " ".join(block.text for section in report.sections for block in section.blocks if isinstance(block, Words))
    assert f"sample of {MOST_ROWS:,} rows" in text


# --- decisions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "table_of"), CASES, ids=IDS)
def test_examples_have_the_predictions_of_the_model(name, table_of):
    table, model = table_of(), model_of(name, table_of)
    every = model.predict(table.with_target(None))  # of all rows at once: votes that are nearly tied hang on rounding
    for example in examples(Subject(model, table)):
        predicted = every[example.row]
        if table_of is with_numbers:
            assert float(example.predicted) == pytest.approx(float(predicted), rel=1e-5)
        else:
            assert example.predicted == str(predicted)
            assert (example.truth == example.predicted) == (example.kind != "wrong")
        is_usual = table_of is with_numbers and example.lead == example.base  # every column has its usual value
        assert example.contributions or example.path or example.shares or is_usual


def test_effects_of_a_linear_model_add_up_to_its_decision():
    table, model = of_two_classes(), model_of("linear", of_two_classes)
    for example in examples(Subject(model, table)):
        decision = float(model.decision_function(table.take([example.row]).with_target(None))[0])
        lead = decision if example.predicted == str(model.classes_[1]) else -decision
        assert sum(each.amount for each in example.contributions) + example.base == pytest.approx(lead, abs=0.02)


def test_levels_that_count_against_a_class_are_drawn_to_the_left():
    bars = [b for b in next(s for s in report_for("linear").details if s.key == "model").blocks if isinstance(b, Bars)]
    assert [b.caption for b in bars] == [f"Evidence for {name!r}" for name in ("Adelie", "Chinstrap", "Gentoo")]
    assert bars[0].bars[0].label == "low bill_length_mm"  # the Adelie's bill is the shortest
    assert {bar.label for bar in bars[0].bars if bar.share < 0} == {"island is Dream"}
    assert all(0 < abs(bar.share) <= 1 for b in bars for bar in b.bars)
    assert all(b.left == "against it" for b in bars if any(bar.share < 0 for bar in b.bars))


def test_the_sure_example_leads_by_more_than_the_borderline_one():
    for name in ("svm", "linear", "adaboost"):
        found = {example.kind: example for example in examples(Subject(model_of(name), load_penguins()))}
        assert found["confident"].confidence > found["borderline"].confidence


def test_reason_for_each_row_names_what_the_examples_show():
    for name in ("svm", "linear", "adaboost", "perceptron"):
        subject = Subject(model_of(name), load_penguins())
        phrases = reasons(subject)
        assert len(phrases) == 344
        assert all(phrases)
        for example in examples(subject):
            for_it = [each for each in example.contributions if each.amount > 0]
            if for_it and abs(for_it[0].amount) == max(abs(each.amount) for each in example.contributions):
                assert phrases[example.row].startswith(f"{for_it[0].column} = {for_it[0].cell}")


def test_path_through_a_tree_leads_to_the_leaf_that_predicts():
    penguins, model = load_penguins(), model_of("tree")
    for example in examples(Subject(model, penguins)):
        leaf = int(model.apply(penguins.take([example.row]))[0])
        assert len(example.path) == int(model.nodes_.depth[leaf])
        assert example.path[-1].training_rows.startswith(f"{model.nodes_.n_rows[leaf]:,} row")


def test_votes_of_all_classes_sum_to_one_and_agree_with_the_prediction():
    for example in examples(Subject(model_of("adaboost"), load_penguins())):
        assert sum(share for _, share in example.shares) == pytest.approx(1.0)
        assert example.shares[0][0] == example.predicted


def test_support_vectors_are_named_only_if_the_table_has_them():
    penguins, model = load_penguins(), model_of("svm")
    own = examples(Subject(model, penguins))
    support = set(model[-1].support_.tolist())
    assert all({neighbour.row for neighbour in example.neighbours} <= support for example in own)
    assert any(example.neighbours for example in own)
    others = examples(Subject(model, penguins.take(np.arange(300))))
    assert not any(example.neighbours for example in others)


def test_no_wrong_example_is_shown_if_all_predictions_are_correct():
    table = load_penguins()
    model = fitted(DecisionTreeClassifier(), table)
    report = report_of(model, table)
    section = next(section for section in report.first if section.key == "examples")
    assert [example["kind"] for example in section.data["examples"]] == ["confident", "other", "other"]
    assert {example["predicted"] for example in section.data["examples"]} == {"Adelie", "Chinstrap", "Gentoo"}
    assert len([block for block in section.blocks if isinstance(block, Card)]) == 3
    assert "All 344 rows are predicted correctly" in section.blocks[-1].text


# --- what matters --------------------------------------------------------------------------------------------------


def test_only_the_deciding_column_is_important():
    table = hostile_table(400)
    for name in ("svm", "tree", "adaboost", "linear"):
        subject = Subject(fitted(CLASSIFIERS[name](), table), table)
        importances = importances_of(subject, ReportFolds(subject.model, subject.table))
        assert importances.columns[0].name == HOSTILE
        assert importances.columns[0].loss > 0.2
        assert all(abs(column.loss) < 0.05 for column in importances.columns[1:])


def test_memorised_identifier_column_is_not_important():
    rng = np.random.default_rng(0)
    n = 300
    real, name = rng.normal(size=n), np.arange(n, dtype=np.int32) // 2  # each name twice, so no identifier
    codes = ((real + rng.normal(size=n)) > 0).astype(np.int32)
    levels = tuple(f"ticket {i:03}" for i in range(n // 2))
    columns = [Column("real", "numeric", real), Column("ticket", "category", name, levels)]
    table = Table(columns, target=Column("y", "category", codes, ("no", "yes")))
    subject = Subject(fitted(CLASSIFIERS["svm"]().set_params(learn__C=100.0), table), table)
    importances = importances_of(subject, ReportFolds(subject.model, subject.table))
    losses = {column.name: column.loss for column in importances.columns}
    assert losses["real"] > 0.1 > 0.05 > abs(losses["ticket"])


def test_models_of_the_folds_have_not_seen_the_rows_they_predict():
    """The target is random: a model that has not seen a row predicts it correctly half of the time."""
    rng = np.random.default_rng(0)
    n = 400
    codes = rng.integers(0, 2, n).astype(np.int32)
    columns = [Column("x", "numeric", rng.normal(size=n))]
    table = Table(columns, target=Column("y", "category", codes, ("no", "yes")))
    model = fitted(DecisionTreeClassifier(), table)
    scored = ReportFolds(model, table).scored()
    assert model.score(table, table.labels()) == 1.0
    assert 0.4 < scored.is_right.mean() < 0.6
    assert (scored.truth == codes).all()


def test_margins_of_a_linear_machine_that_keeps_dual_coefficients_are_distances():
    table, model = load_penguins(), model_of("linear with dual coefficients")
    learner = model[-1]
    assert hasattr(learner, "dual_coef_")
    found = margins(model, table, table.labels())
    assert found.geometric == pytest.approx(found.functional / np.linalg.norm(learner.coef_, axis=1))


def test_a_machine_of_one_class_has_a_report_too():
    penguins = load_penguins()
    report = report_of(one_class_model(penguins), penguins.with_target(None))
    assert report.title == "Which rows are unusual"
    assert "certificate" in {section.key for section in report.details}


# --- formats -------------------------------------------------------------------------------------------------------


def test_markdown_shows_hostile_names_as_text():
    table = hostile_table()
    text = to_markdown(report_of(fitted(CLASSIFIERS["tree"](), table), table))
    text = re.sub(r"^```text$.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)  # where nothing is read as markup
    assert "<script" not in text.replace("\\<script", "")
    assert "<img" not in text.replace("\\<img", "")
    assert escaped(HOSTILE) in text


def test_tables_in_markdown_have_as_many_cells_in_every_row():
    text = to_markdown(report_of(fitted(CLASSIFIERS["svm"](), hostile_table()), hostile_table()))
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if lines and lines[0].startswith("| "):
            bars = {line.replace("\\|", "").count("|") for line in lines}
            assert len(bars) == 1, block


def test_a_page_is_small_enough_and_has_no_link_to_the_outside():
    page = to_html(report_for("svm"))
    assert len(page.encode()) < 6_000_000
    own = page[: page.index('<script type="application/json"')]
    assert "http" not in own.replace("http-equiv", "").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "src=" not in own
