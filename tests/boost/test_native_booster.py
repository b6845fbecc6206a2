"""The core's booster on tables large enough for its search by runs: every split is the best there is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from margrove.boost.problem import BoostProblem
from margrove.engine import Effort, solve
from margrove.tree.impurity import gini
from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem


def table(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Four columns of numbers."""
    if kind == "distinct":
        return tuple(rng.normal(size=n) for _ in range(4))
    if kind == "ties":
        return tuple(rng.integers(0, size, n).astype(np.float32) for size in (3, 17, 150, 4000))
    if kind == "mostly zero":
        return tuple(np.where(rng.random(n) < 0.8, 0.0, rng.integers(-3, 4, n)) for _ in range(4))
    columns = [rng.normal(size=n) for _ in range(4)]
    for column in columns[:3]:
        column[rng.random(n) < 0.2] = np.nan
    return tuple(columns)


def boosted(columns: tuple[np.ndarray, ...], y: np.ndarray, n_classes: int, n_jobs: int = 1, **growth: object):
    cells = Cells(tuple(TreeColumn(f"x{j}") for j in range(len(columns))), len(y), columns)
    learner = TreeProblem(cells, y.astype(np.int32), n_classes, growth=Growth(**{"max_depth": 1, **growth}))
    return solve(BoostProblem(learner, n_rounds=12), "native", Effort(n_jobs=n_jobs)).model, cells


def largest_gain(columns: tuple[np.ndarray, ...], y: np.ndarray, w: np.ndarray, n_classes: int) -> float:
    """By trying every threshold, missing cells to either side, of all rows."""
    best = -np.inf
    whole = np.bincount(y, w, n_classes)
    for x in columns:
        values = np.unique(x[~np.isnan(x)])
        by_value = np.zeros((len(values), n_classes))
        here = ~np.isnan(x)
        np.add.at(by_value, (np.searchsorted(values, x[here]), y[here]), w[here])
        for add in (np.zeros(n_classes), whole - by_value.sum(axis=0)):
            left = np.cumsum(by_value, axis=0) + add
            right = whole - left
            kept = (left.sum(axis=1) > 1e-12) & (right.sum(axis=1) > 1e-12)
            if kept.any():
                shares = left[kept].sum(axis=1), right[kept].sum(axis=1)
                after = shares[0] * gini(left[kept]) + shares[1] * gini(right[kept])
                best = max(best, gini(whole[None])[0] - (after / whole.sum()).min())
    return best


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("kind", ["distinct", "ties", "mostly zero", "missing"])
def test_every_stump_has_the_largest_gain_for_its_weights(kind, n_classes, rng):
    n = 3001
    columns = table(kind, n, rng)
    seen = np.nan_to_num(columns[0]) + np.nan_to_num(columns[1]) + rng.normal(size=n)
    y = np.searchsorted(np.quantile(seen, np.arange(1, n_classes) / n_classes), seen)
    model, cells = boosted(columns, y, n_classes)
    weight = np.full(n, 1 / n)
    assert model.grove.n_trees == 12
    for t, vote in enumerate(model.vote.tolist()):
        tree = model.grove.tree(t)
        np.testing.assert_allclose(tree.gain[0], largest_gain(columns, y, weight, n_classes), rtol=1e-9)
        wrong = np.argmax(tree.value, axis=1)[tree.apply(cells)] != y
        weight[wrong] *= np.exp(vote)
        weight /= weight.sum()


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("growth", [{"max_depth": 3}, {"max_depth": 30}, {"max_depth": 5, "min_samples_leaf": 4}])
@pytest.mark.parametrize("kind", ["few values", "one-hot", "mixed"])
def test_sums_of_few_values_find_the_tree_of_lists(kind, growth, n_classes, rng):
    """A tree on its own walks lists; one of several of the same rows adds up what the rows of each value weigh."""
    n = 2000
    columns = [rng.integers(0, size, n).astype(np.float32) for size in (2, 5, 16, 40, 60) * 3]
    if kind == "one-hot":
        columns = [code == value for code in rng.integers(0, 4, (12, n)) for value in range(4)]
        columns = [column.astype(np.float32) for column in columns]
    if kind == "mixed":
        columns[7] = rng.normal(size=n).astype(np.float32)
        columns[3][rng.random(n) < 0.8] = 7
        columns[9][rng.random(n) < 0.1] = np.nan
    seen = np.nan_to_num(columns[0] + columns[3] / 9 - columns[4] / 20 + columns[7]) + rng.normal(size=n)
    y = np.searchsorted(np.quantile(seen, np.arange(1, n_classes) / n_classes), seen).astype(np.int32)
    weight = rng.choice([1.0, 2.0, 0.1], n) if kind == "one-hot" else rng.lognormal(size=n)
    cells = Cells(tuple(TreeColumn(f"x{j}") for j in range(len(columns))), n, tuple(columns))
    learner = TreeProblem(cells, y, n_classes, weight / weight.sum(), Growth(**growth))
    alone = solve(learner, "native").model
    for n_jobs in (1, 2):
        grove = solve(BoostProblem(learner, n_rounds=1), "native", Effort(n_jobs=n_jobs)).model.grove
        for name in ("feature", "threshold", "n_rows", "n_tests", "n_candidates", "missing_branch"):
            np.testing.assert_array_equal(getattr(grove.tree(0), name), getattr(alone, name))


@pytest.mark.parametrize("growth", [{}, {"max_depth": 3}, {"max_depth": 3, "thresholds": "histogram", "n_bins": 20}])
def test_the_grove_is_the_same_for_any_number_of_threads(growth, rng):
    columns = table("distinct", 20_000, rng)
    y = (columns[0] * columns[1] + rng.normal(size=20_000) > 0).astype(int)
    one, two, three = (boosted(columns, y, 2, n_jobs, **growth)[0] for n_jobs in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(other.vote, one.vote)
        for name in ("feature", "threshold", "child", "gain", "value"):
            np.testing.assert_array_equal(getattr(other.grove, name), getattr(one.grove, name), err_msg=name)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "error"])
def test_trees_from_bins_gain_what_the_reference_gains(criterion, n_classes, rng):
    n = 400
    columns = table("distinct", n, rng)
    y = np.searchsorted([-1.0, 0.0, 1.0][: n_classes - 1], columns[0] + columns[1] + 0.5 * rng.normal(size=n))
    cells = Cells(tuple(TreeColumn(f"x{j}") for j in range(4)), n, columns)
    growth = Growth(max_depth=2, criterion=criterion, thresholds="histogram", n_bins=9)
    problem = BoostProblem(TreeProblem(cells, y.astype(np.int32), n_classes, growth=growth), n_rounds=8)
    ours, theirs = (solve(problem, engine) for engine in ("native", "reference"))
    # Equal gains are broken alike but for rounding, so the first rounds are the same; what follows a tie may differ.
    np.testing.assert_allclose(ours.model.grove.gain[0], theirs.model.grove.gain[0], rtol=1e-9)
    np.testing.assert_allclose(ours.rounds.error[0], theirs.rounds.error[0], rtol=1e-9)
    if criterion != "error":
        np.testing.assert_allclose(ours.rounds.error, theirs.rounds.error, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("dominant", [0, 1])
def test_gains_keep_their_digits_in_nodes_that_are_almost_pure(n_classes, dominant, rng):
    n = 300
    y = np.arange(n) % n_classes
    weight = np.where(y == dominant, 1.0, 1e-7) * rng.uniform(0.5, 1, n)
    x = np.where(rng.random(n) < 0.8, y, rng.integers(0, n_classes, n)).astype(float)
    cells = Cells((TreeColumn("x"),), n, (x,))
    stump = TreeProblem(cells, y.astype(np.int32), n_classes, weight, growth=Growth(max_depth=1))
    tree = solve(BoostProblem(stump, n_rounds=1), "native").model.grove.tree(0)
    exact = [Fraction(w) for w in weight.tolist()]

    def mass(rows: np.ndarray) -> Fraction:
        """w · gini."""
        of_class = [sum((exact[i] for i in np.flatnonzero(rows & (y == k))), Fraction()) for k in range(n_classes)]
        return sum(of_class) - sum(w * w for w in of_class) / sum(of_class)

    is_left = x <= tree.threshold[0]
    gain = (mass(np.ones(n, bool)) - mass(is_left) - mass(~is_left)) / sum(exact)
    assert tree.gain[0] == pytest.approx(float(gain), rel=1e-10)
