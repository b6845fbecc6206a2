"""The sentences of a report: every number names its rows, and no claim is false."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.app.report_models import (
    CLASSIFIERS,
    REGRESSORS,
    fitted,
    of_two_classes,
    training_record,
    with_numbers,
)

from margrove import AdaBoostClassifier, DecisionTreeClassifier, load_penguins
from margrove.app import provenance as record
from margrove.app.estimate.task import Predicted
from margrove.app.history import Contender
from margrove.app.report import model_on_table as subjects
from margrove.app.report import proof
from margrove.app.report.blocks import Block, Card, Folded, Grid, Report, Words, charts_of
from margrove.app.report.charts import wrapped
from margrove.app.report.explain import typical, typical_words
from margrove.app.report.plain_words import status_words
from margrove.app.report.sections.details import _remark
from margrove.app.report.writing import report_of
from margrove.certificate import Claim
from margrove.data import Column, Table
from margrove.status import Status


def inside(blocks: Any) -> list[Block]:
    """All blocks at any depth."""
    found: list[Block] = []
    for block in blocks:
        found += [block, *(inside(block.blocks) if isinstance(block, Card | Folded) else [])]
    return found


def blocks_of(report: Report, *keys: str) -> list[Block]:
    return inside([block for section in report.sections if not keys or section.key in keys for block in section.blocks])


def text_of(report: Report, *keys: str) -> str:
    """The sentences of some sections, or of all."""
    return " ".join(block.text for block in blocks_of(report, *keys) if isinstance(block, Words))


def recorded(table: Table, name: str = "tree", **estimate: Any) -> Any:
    model = fitted(CLASSIFIERS[name](), table)
    model.training_record_ = training_record(table)
    model.training_record_["estimate"].update(estimate)
    return model


# --- the rows behind a number -------------------------------------------------------------------------------------


def test_counts_name_the_total_if_only_some_held_out_rows_are_kept():
    penguins = load_penguins()
    report = report_of(recorded(penguins, rows_tested=6513), penguins)
    rows = "200 of the 6,513 held-out rows, chosen at even intervals"
    assert f"Among {rows}, " in text_of(report, "quality")
    assert f"This section covers {rows}." in text_of(report, "mistakes")
    matrix = next(block for block in blocks_of(report, "mistakes") if hasattr(block, "counts"))
    assert matrix.caption.endswith(rows)
    parts = report.to_dict()
    assert (parts["quality"]["rows_tested"], parts["mistakes"]["rows_tested"], parts["mistakes"]["rows"]) == (
        6513,
        6513,
        200,
    )


@pytest.mark.parametrize("rows_tested", [200, None, "many", -3, 7.5])
def test_no_selection_is_mentioned_if_all_rows_are_kept_or_the_number_is_unknown(rows_tested):
    penguins = load_penguins()
    report = report_of(recorded(penguins, rows_tested=rows_tested), penguins)
    assert "even intervals" not in text_of(report)
    assert "Of 200 rows, " in text_of(report, "quality")


def test_record_has_the_number_of_tested_rows_and_keeps_evenly_spaced_ones(monkeypatch):
    penguins = load_penguins()
    rows = np.arange(penguins.n_rows)
    predicted = Predicted(rows, penguins.labels(), "tree")
    assert record.predictions_part(predicted, penguins)["rows_tested"] == 344
    monkeypatch.setattr(record, "MOST_ROWS", 50)
    part = record.predictions_part(predicted, penguins)
    assert part["rows_tested"] == 344
    assert len(part["rows"]) == len(part["truth"]) == 50
    assert set(np.diff(part["rows"])) == {7}


def test_error_of_all_tested_rows_takes_precedence_over_that_of_the_kept_rows():
    table = with_numbers()
    model = fitted(REGRESSORS["tree"](), table)
    mass = table.labels()[:50].tolist()
    kept = {"rows": list(range(50)), "truth": mass, "predicted": [value + 10 for value in mass]}
    estimate = {"method": "hold-out", "measure": "R²", "value": 0.8, "mean_absolute_error": 12.5, "rows_tested": 80}
    model.training_record_ = {"estimate": {**estimate, **kept}}
    parts = report_of(model, table).to_dict()
    assert parts["quality"]["typical_error"] == 12.5
    assert parts["mistakes"]["mean_absolute_error"] == 10
    assert "Evaluated on 50 of the 80 held-out rows, chosen at even intervals." in text_of(
        report_of(model, table), "mistakes"
    )


def test_score_on_a_sample_of_the_training_rows_is_called_so(monkeypatch):
    penguins = load_penguins()
    model = recorded(penguins)
    assert "On them its accuracy is" in text_of(report_of(model, penguins), "quality")
    monkeypatch.setattr(subjects, "MOST_ROWS", 100)
    assert "On a sample of 100 of them its accuracy is" in text_of(report_of(model, penguins), "quality")


# --- a training that was interrupted -------------------------------------------------------------------------------


def test_only_an_interrupted_search_is_reported_in_the_summary():
    penguins = load_penguins()
    model = recorded(penguins)
    assert "interrupted" not in text_of(report_of(model, penguins))
    model.training_record_["is_interrupted"] = True
    report = report_of(model, penguins)
    assert "The training was interrupted, so this is the best model found until then;" in text_of(report, "summary")
    assert report.to_dict()["summary"]["is_interrupted"] is True


def test_interrupted_fit_is_reported_even_without_a_record():
    penguins = load_penguins()
    model = fitted(CLASSIFIERS["tree"](), penguins)
    model.status_ = Status.INTERRUPTED
    assert "the model was saved as it was then" in text_of(report_of(model, penguins), "summary")


# --- numbers are not called classes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REGRESSORS)
def test_report_of_a_regressor_does_not_mention_classes_or_correct_predictions(name):
    table = with_numbers()
    report = report_of(fitted(REGRESSORS[name](), table), table)
    words = text_of(report)
    assert "It does not prove that the estimates are correct: the score above shows how far off they are." in words
    for phrase in ("how often they are", "wide margin", "boundary", "wrong side"):
        assert phrase not in words
    grids = [block for block in blocks_of(report) if isinstance(block, Grid)]
    assert not [grid.header for grid in grids if any("most common class" in cell for cell in grid.header)]
    rules = [grid for grid in grids if grid.header[0] == "if"]
    assert bool(rules) == (name == "tree")
    for grid in rules:
        assert all(any(row[place] for row in grid.rows) for place in range(len(grid.header)))


def test_report_without_a_score_does_not_refer_to_one():
    penguins = load_penguins()
    report = report_of(fitted(CLASSIFIERS["tree"](), penguins), penguins.with_target(None))
    assert "only rows with known true values can show that" in text_of(report, "proof")


# --- columns that are left out, cells that are usual ---------------------------------------------------------------


def test_identifier_columns_are_neither_scored_nor_counted():
    penguins = load_penguins()
    n = penguins.n_rows
    names = Column("name", "category", np.arange(n, dtype=np.int32), tuple(f"bird {i:03}" for i in range(n)))
    table = Table([names, *penguins.columns], target=penguins.target)
    report = report_of(fitted(CLASSIFIERS["linear"](), table), table)
    parts = report.to_dict()
    assert {column["name"] for column in parts["what_matters"]["columns"]} == set(penguins.names)
    assert {column["name"] for column in parts["scores"]["columns"]} == set(penguins.names)
    assert "Left out: name (identifier)." in text_of(report, "what_matters")
    assert "'name' is left out (identifier)" in text_of(report, "data")


def test_only_a_value_of_a_tenth_of_the_rows_is_called_usual():
    n = 100
    many = Column("ticket", "category", np.r_[np.zeros(3), np.arange(97)].astype(np.int32), tuple(map(str, range(97))))
    assert typical_words(many, typical(many)) == "compared with 0"
    some = Column("town", "category", np.r_[np.zeros(10), np.arange(90)].astype(np.int32), tuple(map(str, range(90))))
    assert typical_words(some, typical(some)) == "usually 0"
    spread = Column("fare", "numeric", np.arange(n, dtype=np.float64))
    assert typical_words(spread, typical(spread)) == "median 49"
    gaps = Column("cabin", "numeric", np.where(np.arange(n) < 60, np.nan, 1.0))
    assert typical_words(gaps, typical(gaps)) == "usually missing"


def test_perfect_training_score_warns_of_mistakes_on_new_rows():
    penguins = load_penguins()
    words = text_of(report_of(fitted(DecisionTreeClassifier(), penguins), penguins), "examples")
    assert "on new rows it may be wrong" in words


# --- what is proven ------------------------------------------------------------------------------------------------


def test_partly_checked_claims_are_reported_as_such():
    penguins = load_penguins()
    model = fitted(CLASSIFIERS["adaboost"](), penguins)
    assert "in part" not in text_of(report_of(model, penguins))
    certificate = model.certificate_
    claims = [replace(c, values=(3.0,)) if c.name == "trees searched again" else c for c in certificate.claims]
    model.certificate_ = replace(certificate, claims=tuple(claims))
    report = report_of(model, penguins)
    for key in ("proof", "summary"):
        assert "held when it was saved, checked in part: " in text_of(report, key)
        assert "; 3 of 8 trees searched again." in text_of(report, key)


def test_splits_that_were_not_searched_are_not_called_the_best():
    penguins = load_penguins()
    model = fitted(CLASSIFIERS["tree"](), penguins)
    assert "For every split of the tree, all columns were searched again" in text_of(
        report_of(model, penguins), "proof"
    )
    for words, shown in (
        ("2 of 9 splits searched again: largest score missed", "2 of 9 splits searched again"),
        ("not checked: columns were drawn at random in each node", "'a better column' not checked (columns were"),
    ):
        other = Claim("a better column", (0.0,), (1.0,), True, words)
        claims = [other if c.name == other.name else c for c in model.certificate_.claims]
        model.certificate_ = replace(model.certificate_, claims=tuple(claims))
        proof = text_of(report_of(model, penguins), "proof")
        assert shown in proof
        assert "For every split" not in proof


def test_leave_one_out_bound_is_explained_beside_the_certificate():
    penguins = load_penguins()
    report = report_of(fitted(CLASSIFIERS["svm"](), penguins), penguins)
    assert "leave-one-out" not in text_of(report, "model", "summary", "proof")
    text = text_of(report, "certificate")
    assert "The leave-one-out bound is not an estimate of the error." in text
    assert "This always holds, but is often far above" in text
    loo, sharper = fitted(CLASSIFIERS["svm"](), penguins)[-1].loo_bound_, "by the sharper ξα-estimate"
    assert f"at most {100 * loo:.1f} % of them would be predicted incorrectly" in text
    model = SimpleNamespace(loo_bounds=(0.54, 0.5401))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof, "explanation_of", lambda _: model)
        assert sharper not in str(proof.leave_one_out(None))  # the same number twice
        model.loo_bounds = (0.54, 0.3)
        assert f"and at most 30.0 % {sharper}" in str(proof.leave_one_out(None))


def test_margins_of_several_machines_explain_how_rows_are_counted():
    words = "each row is counted once, with its smallest margin"
    for table, is_shown in ((load_penguins(), True), (of_two_classes(), False)):
        report = report_of(fitted(CLASSIFIERS["svm"](), table), table)
        assert (words in text_of(report, "model")) is is_shown
        assert ("each graded by the machine for which it is hardest" in text_of(report, "model")) is is_shown


# --- calibration ---------------------------------------------------------------------------------------------------


def test_calibration_of_a_vote_needs_new_rows_or_saved_probabilities():
    penguins = load_penguins().select(["body_mass_g", "bill_depth_mm"])
    own = np.arange(penguins.n_rows) % 3 > 0
    model = fitted(AdaBoostClassifier(n_estimators=8, random_state=0), penguins.take(own))
    model.training_record_ = training_record(penguins.take(own), n=100)
    on_own, on_new = report_of(model, penguins.take(own)), report_of(model, penguins.take(~own))
    names = [{chart.name for chart in charts_of(blocks_of(report, "mistakes"))} for report in (on_own, on_new)]
    assert ["calibration" in found for found in names] == [False, True]
    assert ["were not saved" in text_of(report, "mistakes") for report in (on_own, on_new)] == [True, False]


# --- labels --------------------------------------------------------------------------------------------------------


def test_long_names_are_wrapped_and_nothing_in_them_is_markup():
    title = "Support vector machine with a Gaussian kernel, C = 10"
    assert wrapped(title).replace("<br>", " ") == title
    assert all(len(line) <= 18 for line in wrapped(title).split("<br>"))
    assert wrapped("<b>bold</b>") == "&lt;b&gt;bold&lt;/b&gt;"
    assert wrapped("x" * 500).endswith("…")


def test_every_status_has_a_description_without_an_underscore():
    for status in Status:
        assert "_" not in status_words(status)
        assert status_words(status) != str(status)
    assert status_words("some_strangers") == "some strangers"


def test_leaderboard_describes_how_training_ended():
    def remark(status, note="", score=0.5, is_chosen=False):
        return _remark(Contender("a", "a", score, 0.1, 1.0, status, note, is_chosen))

    assert remark("converged", is_chosen=True) == "chosen"
    assert remark("max_iter") == "the limit of iterations was reached before it was complete"
    assert remark("time_limit", "no time was left to try more rows") == "no time was left to try more rows"
    assert remark("not tried", "smaller trees scored as well", score=None) == "not tried; smaller trees scored as well"
