"""Intervals of what a model is worth: of rows set aside, and of rounds that share most of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from margrove.app.choose.candidates import CANDIDATES
from margrove.app.choose.held_out import NestedChoice
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.intervals import bootstrap_interval, excess, share_interval, wilson
from margrove.app.estimate.metrics import R2, Judged
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.task import Predicted
from margrove.app.options.budget import Budget
from margrove.app.options.training import Training
from margrove.app.screen.progress import Countdown
from margrove.data import as_table


def test_rows_set_aside_have_wilsons_interval() -> None:
    assert share_interval(80, 100, 1, 500) == wilson(80, 100)


def test_five_folds_count_as_four_ninths_of_their_rows() -> None:
    assert excess(60, 5, 60) == pytest.approx(2.25)  # 1 + 60/48
    assert share_interval(45, 90, 5, 90) == pytest.approx(wilson(20, 40))


def test_fewer_rounds_than_planned_share_their_rows_too() -> None:
    assert excess(40, 2, 100) == pytest.approx(1.5)  # 1 + 40/80


@pytest.mark.parametrize("n_right", [0, 1, 30, 59, 60])
def test_an_interval_holds_its_share_and_stays_one(n_right: int) -> None:
    low, high = share_interval(n_right, 60, 5, 60)
    assert 0 <= low <= n_right / 60 <= high <= 1
    assert high - low > 0


def test_folds_that_were_done_give_the_interval() -> None:
    labels, rows = np.repeat([0, 1], 50), np.arange(0, 100, 5)
    rounds = [
        Predicted(rows + k, np.where(np.arange(20) < n_right, labels[rows + k], 1 - labels[rows + k]), "tree")
        for k, n_right in enumerate([10, 14])
    ]
    assert CLASSES.estimate(labels, []).interval is None
    assert CLASSES.estimate(labels, rounds).interval == share_interval(24, 40, 2, 100)
    assert CLASSES.estimate(labels, rounds).rounds == (0.5, 0.7)


def test_an_interval_of_r2_is_one_and_a_half_times_as_long_after_five_rounds() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=400)
    judged, n = Judged(truth, truth + rng.normal(size=400)), {"n_rows": 400, "most": 1.0}
    value = R2.score(judged)
    alone, rounds = (
        bootstrap_interval(value, lambda rows: R2.score(judged.take(rows)), [400], n_rounds=k, **n) for k in (1, 5)
    )
    assert alone is not None
    assert rounds is not None
    assert rounds[1] - rounds[0] == pytest.approx(1.5 * (alone[1] - alone[0]))


def test_numbers_that_are_all_their_mean_have_no_interval() -> None:
    same = np.ones(5)
    part = Predicted(np.arange(5), same, "Any", means=same, medians=same)
    assert NUMBERS.estimate(same, [part]).interval is None


def test_no_rounds_of_numbers_are_no_estimate() -> None:
    assert NUMBERS.estimate(np.arange(10.0), [], ["why"]).interval is None


@pytest.mark.slow
def test_the_nested_interval_covers_the_truth_of_pure_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 rows whose classes are coins, any model is right half the time: 95 of 100 intervals should say so."""
    quick = tuple(c for c in CANDIDATES["classify"] if c.name in ("basic", "linear", "tree"))
    monkeypatch.setitem(CANDIDATES, "classify", quick)
    n, n_draws = 60, 150
    covered = {"ours": 0, "wilson": 0}
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        table = as_table(np.column_stack([rng.normal(size=(n, 5)), rng.integers(0, 2, n)]), target=5)
        budget = Budget(600.0)
        estimate: Any = NestedChoice(Training(seed=seed), table, budget, Countdown(budget)).run().estimate
        assert estimate.method == "nested"
        low, high = wilson(estimate.value * n, n)
        covered["ours"] += estimate.interval[0] <= 0.5 <= estimate.interval[1]
        covered["wilson"] += low <= 0.5 <= high
    # Of a nominal 95 % fewer than 135 of 150 are seen once in a hundred times.
    assert covered["ours"] >= 135
    assert covered["ours"] > covered["wilson"]
