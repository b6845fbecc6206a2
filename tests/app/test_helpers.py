"""Small functions of the command line, each by an example."""

from __future__ import annotations

import numpy as np

from margrove.advice import Advice, Setting
from margrove.app.choose import in_digits
from margrove.app.choose.contest import first_rows
from margrove.app.estimate.intervals import excess, share_interval, wilson
from margrove.app.estimate.learning_curve import Point, verdict_on_rows
from margrove.app.estimate.metrics import Judged
from margrove.app.estimate.numbers import deviation_of
from margrove.app.files import report_path
from margrove.app.history import has_rows, rows_fingerprint
from margrove.app.options.budget import budget_words, parse_budget
from margrove.app.options.facts import share_wrong
from margrove.app.options.menu import parse_params
from margrove.app.provenance import plain
from margrove.app.screen.advice import in_shell
from margrove.app.screen.progress import in_words
from margrove.data import as_table
from margrove.run.progress import Progress
from margrove.tree.words import amount_text


def test_numbers_are_written_to_three_digits() -> None:
    assert [in_digits(value) for value in (0.1, 3.1623, 31623.0, 5.49e-7)] == ["0.1", "3.16", "31600", "5.49e-07"]


def test_a_contest_begins_on_a_sample_where_that_is_much_less_work() -> None:
    assert (first_rows(8_000, 20), first_rows(20_000, 20), first_rows(20_000, 500)) == (8000, 6000, 2000)


def test_intervals_of_shares() -> None:
    np.testing.assert_allclose([*wilson(95, 100), *wilson(20, 20)], [0.888, 0.978, 0.839, 1.0], atol=5e-4)
    assert (excess(100, 5, 100), excess(20, 1, 100)) == (2.25, 1.0)
    found = [*share_interval(95, 100, 1, 500), *share_interval(95, 100, 5, 100)]
    np.testing.assert_allclose(found, [0.888, 0.978, 0.843, 0.985], atol=5e-4)


def test_more_rows_help_where_the_curve_still_rises() -> None:
    def verdict(error: float, *scores: float) -> str:
        return verdict_on_rows([Point(100 * 2**k, score, error) for k, score in enumerate(scores)])

    assert verdict(0.01, 0.70, 0.74, 0.78) == "more rows would likely help"
    assert verdict(0.03, 0.70, 0.74, 0.76) == "more rows may help"
    assert verdict(0.01, 0.70, 0.775, 0.78) == "more rows would hardly help"


def test_text_of_a_deviation() -> None:
    off = deviation_of(Judged(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.5]), means=2.0))
    assert off.words == "R² 0.875, mean absolute error 0.167"
    texts = {9625.3: "9,630", 32960.0: "33,000", 999.6: "1,000", 0.012345: "0.0123", 12.0: "12", 3e20: "3e+20"}
    assert {error: amount_text(error) for error in texts} == texts


def test_budgets_are_read_and_written() -> None:
    assert [parse_budget(text) for text in ("90", "60s", "5m", "1.5h", "0")] == [90.0, 60.0, 300.0, 5400.0, 0.0]
    assert [budget_words(seconds) for seconds in (41.2, 70, 4000)] == ["45s", "2m", "2h"]


def test_unique_value_predicts_nothing() -> None:
    codes = np.array([0, 0, 0, 1, 1, 1])
    assert (share_wrong(codes, codes), share_wrong(np.arange(6), codes)) == (0.0, 1.0)


def test_parameters_are_json_or_text() -> None:
    found = parse_params(["max_iter=50", "variant=voted", "tol=null", "C=inf"])
    assert found == {"max_iter": 50, "variant": "voted", "tol": None, "C": float("inf")}


def test_records_hold_plain_values() -> None:
    found = plain({"C": np.float64(2), "tol": float("inf"), "depths": (1, np.int64(2))})
    assert found == {"C": 2.0, "tol": None, "depths": [1, 2]}


def test_the_report_lies_beside_the_model() -> None:
    assert report_path("models/income.margrove") == "models/income.report.html"
    assert report_path("-") is None


def test_advice_names_options() -> None:
    advice = Advice("Name its encoding, such as ", Setting("encoding", "latin-1"), ".")
    assert in_shell(advice) == "Name its encoding, such as --encoding latin-1."


def test_text_of_progress() -> None:
    report = Progress("svm", 2, 3, 0.0417, "violation", goal=0.001)
    assert in_words(report) == "2 of 3, violation 0.042, target 0.001"


def test_rows_are_known_by_their_fingerprint() -> None:
    table = as_table([[1.0, 0], [2.0, 1], [3.0, 1]], target=1)
    assert table.target is not None
    mark = rows_fingerprint(table, table.target)
    assert has_rows(mark, table, table.target)
    assert not has_rows(mark, table.take([0, 1]), table.target.take([0, 1]))
