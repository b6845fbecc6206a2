"""Reports on the rows of one customer, and the sums that explain a decision."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.app.report_models import CLASSIFIERS, REGRESSORS, fitted, of_two_classes, training_record, with_numbers
from tests.app.test_report_words import blocks_of, text_of

from margrove.app.estimate.learning_curve import verdict_on_rows
from margrove.app.models import encoder_of
from margrove.app.report.blocks import Bars, Card, Grid, Report, Words
from margrove.app.report.explain import average_row, examples, level_shares
from margrove.app.report.findings import Findings
from margrove.app.report.model_on_table import Subject
from margrove.app.report.plain_words import signed
from margrove.app.report.sections import decisions
from margrove.app.report.writing import report_of
from margrove.data import Column, Table, as_table, read_table


def remembering(table: Table) -> Any:
    """A linear model as the command line saves it: with the deviations of its columns."""
    learners = REGRESSORS if table.target is not None and table.target.kind == "numeric" else CLASSIFIERS
    model = fitted(learners["linear"](), table)
    encoder = encoder_of(model)
    encoder.remember_deviations(encoder.transform(table.with_target(None)))
    return model


def data_of(report: Report, key: str) -> dict[str, Any]:
    return next(section.data for section in report.sections if section.key == key)


def test_report_on_one_row_shows_the_score_estimated_in_training():
    table = of_two_classes()
    model = remembering(table)
    model.training_record_ = training_record(table)
    report = report_of(model, table.take([0]))
    words = text_of(report, "summary", "quality")
    assert "found nothing useful" not in words
    assert "this table has only 1 row with a known true value, too few" in words
    assert data_of(report, "quality")["origin"] == "record"


def test_rows_of_one_class_do_not_call_a_model_useless():
    table = of_two_classes()
    model = fitted(CLASSIFIERS["tree"](), table)
    same = table.take(np.flatnonzero(table.labels() == table.labels()[0])[:40])
    words = text_of(report_of(model, same), "summary")
    assert "found nothing useful" not in words
    assert "All these rows are of one class" in words


def test_row_alone_is_explained_as_among_all_rows():
    table = of_two_classes()
    model = remembering(table)
    among = {example.row: example for example in examples(Subject(model, table))}
    for row, example in among.items():
        (alone,) = examples(Subject(model, table.take([row])))
        found = {each.column: each.amount for each in alone.contributions}
        for each in example.contributions[:3]:
            assert found[each.column] == pytest.approx(each.amount, rel=0.01, abs=0.01)


def test_free_text_that_is_left_out_is_not_called_an_identifier():
    words = ["very", "good", "tea", "from", "a", "small", "old", "pot"]
    columns = {
        "body": [f"{' '.join(words[k % 7 :])} and {' '.join(words[: k % 7])} no {k}" for k in range(40)],
        "name": [f"name {k}" for k in range(40)],
        "x": np.arange(40.0),
    }
    table = as_table(pd.DataFrame({**columns, "kind": list("ab") * 20}), target="kind")
    report = report_of(fitted(CLASSIFIERS["linear"](), table), table)
    text = text_of(report, "data")
    assert "'body' is left out (free text; --text uses its words)" in text
    grid = next(b for s in report.details for b in s.blocks if isinstance(b, Grid) and b.header[0] == "column")
    assert [row[1] for row in grid.rows] == ["free text: left out", "identifier: left out", "numeric"]
    assert "'name' is left out (identifier)" in text


def test_one_other_column_is_not_counted():
    example = examples(Subject(remembering(of_two_classes()), of_two_classes()))[0]
    subject = SimpleNamespace(classes=["a", "b"])
    for n, label in ((1, "the other column"), (2, "the other 2 columns")):
        bars = decisions._contributions(subject, replace(example, n_others=n)).bars
        assert label in [bar.label for bar in bars]


def test_neighbours_are_for_and_against_the_prediction():
    table = of_two_classes()
    model = fitted(CLASSIFIERS["svm"](), table)
    shown = [example.neighbours for example in examples(Subject(model, table))]
    assert shown
    for neighbours in shown:
        assert [n.influence > 0 for n in neighbours] == [True, True, False, False]
    assert "for and against; the sum over all of them decides" in text_of(report_of(model, table), "examples")


def test_few_new_rows_do_not_show_which_columns_matter():
    table = of_two_classes()
    model = remembering(table)
    few, enough = (
        report_of(model, table.take(np.arange(5))),
        report_of(model, table.take(np.arange(0, table.n_rows, 8))),
    )
    assert "The most important columns" not in text_of(few, "summary")
    assert not {"what_matters", "scores"} & {section.key for section in few.sections}
    assert "The most important columns" in text_of(enough, "summary")
    assert f"values are shuffled, on {len(range(0, table.n_rows, 8))} rows of this table." in text_of(enough, "scores")
    whole = text_of(report_of(model, table), "what_matters")
    assert "rows; the model that predicted a row was trained without that row." in whole


def test_report_on_one_row_states_that_usual_values_are_unknown():
    table = of_two_classes()
    words = text_of(report_of(fitted(CLASSIFIERS["svm"](), table), table.take([0])), "examples")
    assert "too few rows to know it" in words


def test_a_report_on_other_rows_does_not_change_the_model():
    table = of_two_classes()
    model = fitted(CLASSIFIERS["linear"](), table)
    report_of(model, table.take(np.arange(30)))
    assert not hasattr(encoder_of(model), "deviations_")


@pytest.mark.parametrize("table_of", [of_two_classes, with_numbers])
def test_effects_of_the_columns_sum_to_the_total(table_of):
    table = table_of()
    report = report_of(remembering(table), table)
    for example, bars in zip(
        data_of(report, "examples")["examples"],
        [block for block in blocks_of(report, "examples") if isinstance(block, Bars)],
        strict=True,
    ):
        amounts = {bar.label: float(bar.text.replace("−", "-").replace(",", "")) for bar in bars.bars}
        start = 0.0 if "total" in amounts else example["base"]
        total = amounts.pop("total", example["lead"])
        coarsest = max(10.0 ** -len(bar.text.partition(".")[2]) for bar in bars.bars)
        assert sum(amounts.values()) + start == pytest.approx(total, abs=coarsest * len(amounts))


def test_shares_of_levels_come_back_from_their_deviations():
    generator = np.random.default_rng(0)
    for _ in range(20):
        shares = generator.dirichlet(np.full(4, 0.4))
        np.testing.assert_allclose(level_shares(np.sqrt(shares * (1 - shares))), shares, atol=1e-9)


def test_the_average_row_is_that_of_the_training_rows():
    table = of_two_classes()
    model = remembering(table)
    encoded = encoder_of(model).transform(table.with_target(None))
    few = Subject(model, table.take(np.arange(15)))
    np.testing.assert_allclose(average_row(few, few.encoded()), encoded.mean(axis=0), atol=2e-3)


def test_amounts_have_the_same_decimals_and_no_zero_has_a_sign():
    assert [signed(amount, 4.2) for amount in (4.2, -0.3, -0.001)] == ["+4.20", "−0.30", "0.00"]
    assert [signed(amount, 12_000.0) for amount in (12_000.0, -3.4)] == ["+12,000", "−3"]
    assert signed(2e-9, 2e-9) == "+2e-09"


def test_whole_numbers_are_written_out_and_few_missing_cells_are_not_called_none():
    numbers = np.arange(1_000_001.0, 1_001_001.0)
    numbers[3] = np.nan
    table = Table([Column("weight", "numeric", numbers)])
    assert table["weight"].summary()["example"] == "1000001 … 1001000"


def test_verdict_on_more_rows_compares_with_half_of_them():
    points = [(80, 0.702), (160, 0.724), (320, 0.742), (560, 0.752), (800, 0.766)]
    curve = [SimpleNamespace(rows=rows, score=score, error=0.02) for rows, score in points]
    assert verdict_on_rows(curve) == "more rows may help"
    assert verdict_on_rows([SimpleNamespace(rows=r, score=s, error=0.005) for r, s in points]).endswith("likely help")
    assert verdict_on_rows([SimpleNamespace(rows=r, score=0.9, error=None) for r, _ in points]).endswith("hardly help")


def test_interval_that_contains_the_baseline_is_reported():
    table = of_two_classes()
    model = fitted(CLASSIFIERS["tree"](), table)
    model.training_record_ = training_record(table)
    model.training_record_["estimate"].update(value=0.71, low=0.66, high=0.75, baseline=0.70)
    assert "the model may be no better" in text_of(report_of(model, table), "summary")
    model.training_record_["estimate"].update(low=0.705)
    assert "the model may be no better" not in text_of(report_of(model, table), "summary")


def test_share_of_a_leaf_is_not_called_a_probability():
    table = of_two_classes()
    words = text_of(report_of(fitted(CLASSIFIERS["tree"](), table), table), "examples")
    assert "of the training rows in the same leaf" in words
    assert "probability" not in words


def test_row_numbers_mention_rows_that_were_left_out(tmp_path):
    lines = ["a,b"] + [f"{x},{'' if x % 5 == 0 else x * 2.5}" for x in range(60)]
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(lines) + "\n")
    table = read_table(path, target="b", drop_unlabelled=True)
    model = fitted(REGRESSORS["tree"](), table)
    assert "row numbers in the file are higher" in text_of(report_of(model, table), "examples")
    whole = table.take(np.arange(table.n_rows))
    whole.notes = ()
    assert "row numbers in the file" not in text_of(report_of(model, whole), "examples")


@pytest.mark.parametrize(("rows", "is_shown"), [((200, 344), True), ((344, 344), False)])
def test_leaderboard_shows_the_rows_only_if_they_differ(rows, is_shown):
    table = of_two_classes()
    model = fitted(CLASSIFIERS["tree"](), table)
    model.training_record_ = training_record(table)
    for line, n in zip(model.training_record_["leaderboard"], rows, strict=False):
        line["rows"] = n
    report = report_of(model, table)
    board = next(block for block in blocks_of(report, "training") if isinstance(block, Grid))
    assert ("rows" in board.header) == is_shown
    assert all(len(row) == len(board.header) for row in board.rows)


def test_certain_prediction_that_no_single_column_changes_is_described_as_such(monkeypatch):
    table = of_two_classes()
    subject = Subject(fitted(CLASSIFIERS["svm"](), table), table)
    sure = replace(examples(subject)[0], contributions=())
    monkeypatch.setattr(decisions, "examples", lambda subject: [sure])
    card = next(block for block in decisions.decisions_section(Findings(subject)).blocks if isinstance(block, Card))
    assert any("No single column decides" in block.text for block in card.blocks if isinstance(block, Words))
