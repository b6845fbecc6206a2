"""Tables of any kind for the tests of the engines, and how two trees of one problem are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem
from margrove.tree.split import SplitSearch

NUMBERS = ("normal", "few", "dominated", "constant", "huge", "tiny", "all_missing", "offset", "intervals")
CATEGORIES = ("multiway", "subset", "one_vs_rest", "boolean")


def ugly_column(rng: np.random.Generator, name: str, kind: str, n: int, monotone: int = 0) -> tuple[TreeColumn, Any]:
    """One column: ties, constants, a value that most rows have, missing cells, float32 and float64, rare levels."""
    is_missing = rng.random(n) < rng.choice([0.0, 0.0, 0.1, 0.7])
    if kind in CATEGORIES:
        n_levels = 2 if kind == "boolean" else int(rng.integers(1, 9))
        share = rng.dirichlet(np.full(n_levels, rng.choice([0.3, 3.0])))
        codes = rng.choice(n_levels, n, p=share).astype(np.int32)
        codes[is_missing] = -1
        levels: tuple[Any, ...] = (False, True) if kind == "boolean" else tuple("abcdefgh"[:n_levels])
        test: Any = "subset" if kind == "boolean" else kind
        return TreeColumn(name, test, levels), codes
    values = {
        "normal": lambda: rng.normal(size=n),
        "few": lambda: rng.integers(0, 4, n),
        "dominated": lambda: np.where(rng.random(n) < 0.7, 0, rng.integers(-3, 4, n)),
        "constant": lambda: np.full(n, 3.25),
        "huge": lambda: rng.choice([-1e38, 1e-3, 7.0, 1e38], n),
        "tiny": lambda: rng.integers(-3, 4, n) * 1.5e-45,
        "all_missing": lambda: np.full(n, np.nan),
        "offset": lambda: 1e6 + rng.integers(0, 50, n),
        "intervals": lambda: np.round(rng.normal(size=n) * 3, 1),
    }[kind]()
    values = values.astype(rng.choice([np.float32, np.float64]))
    values[is_missing] = np.nan
    if kind == "intervals":
        return TreeColumn(name, "intervals", cuts=(-1.0, 0.5, 2.0), monotone=monotone), values
    return TreeColumn(name, monotone=monotone), values


def ugly_table(
    rng: np.random.Generator, n: int, kinds: list[str], n_classes: int, weights: str, growth: Growth, monotone: bool
) -> TreeProblem:
    """A problem of n rows; the target is part noise and part the first column."""
    signs = [int(rng.integers(-1, 2)) if monotone and kind in NUMBERS else 0 for kind in kinds]
    columns, values = zip(*(ugly_column(rng, f"c{j}", kind, n, signs[j]) for j, kind in enumerate(kinds)), strict=True)
    ranks = np.argsort(np.argsort(values[0], kind="stable")) / n
    noisy = np.where(rng.random(n) < 0.6, ranks, rng.random(n))
    target: Any = np.round(noisy, 1)
    if n_classes:
        target = np.minimum((noisy * n_classes).astype(np.int32), n_classes - 1)
    weight = {"one": None, "whole": rng.integers(1, 4, n).astype(float), "any": rng.uniform(0.1, 3, n)}[weights]
    return TreeProblem(Cells(columns, n, values), target, n_classes, weight, growth)


def compare(problem: TreeProblem, one: TreeModel, other: TreeModel) -> tuple[int, int]:
    """Walk two trees from the root as long as they part the rows alike, and raise unless they agree in all that is
    unique: rows, weight, impurity and number of tests of a node, gain (or score) of its test. Returns how many inner
    nodes were the same, and how many had tests that differ and tie."""
    search = SplitSearch(problem)
    n_same = n_tied = 0
    waiting: list[tuple[int, int, NDArray[np.intp]]] = [(0, 0, np.arange(problem.cells.n_rows))]
    while waiting:
        i, k, rows = waiting.pop()
        assert one.n_rows[i] == other.n_rows[k] == len(rows)
        node = search.node(rows)
        unit = node.gain_unit + 1e-300
        np.testing.assert_allclose(other.weight[k], one.weight[i], rtol=1e-12)
        np.testing.assert_allclose(other.impurity[k], one.impurity[i], atol=1e-9 * unit, rtol=1e-9)
        size = np.abs(problem.target).max() if problem.is_regression else one.weight[i]
        np.testing.assert_allclose(other.value[k], one.value[i], rtol=1e-9, atol=1e-12 * size)
        assert one.n_candidates[i] == other.n_candidates[k], f"node of {len(rows)} rows"
        assert one.is_leaf[i] == other.is_leaf[k], f"one splits the node of {len(rows)} rows, the other does not"
        if one.is_leaf[i]:
            continue
        ours, theirs = one.branches(i, problem.cells, rows), other.branches(k, problem.cells, rows)
        if one.feature[i] == other.feature[k] and np.array_equal(ours, theirs):
            np.testing.assert_allclose(other.gain[k], one.gain[i], atol=1e-9 * unit, rtol=1e-9)
            # A fitted threshold is the end of an iteration and may lie anywhere between the same rows: on columns of
            # 1e38 two of them differ within the gap. The others are halfway between two cells.
            is_fitted = problem.growth.thresholds in ("gaussian", "logistic")
            spread = np.nanmax(np.abs(problem.cells.column(int(one.feature[i])))) if is_fitted else 0.0
            np.testing.assert_allclose(other.threshold[k], one.threshold[i], rtol=0, atol=1e-4 * float(spread))
            assert one.missing_branch[i] == other.missing_branch[k]
            assert one.default_branch[i] == other.default_branch[k]
            assert one.n_tests[i] == other.n_tests[k]
            assert one.n_levels is not None
            assert other.n_levels is not None
            assert one.n_levels[i] == other.n_levels[k]
            # The core takes one level's weight as what the others leave of the node's.
            for name in ("association", "inverse_weight"):
                np.testing.assert_allclose(getattr(other, name)[k], getattr(one, name)[i], rtol=1e-9, atol=1e-9)
            n_same += 1
            for b, (mine, yours) in enumerate(zip(one.children(i), other.children(k), strict=True)):
                waiting.append((int(mine), int(yours), rows[ours == b]))
            continue
        n_tied += 1
        scores = []
        for tree, at, branch in ((one, i, ours), (other, k, theirs)):
            j = int(tree.feature[at])
            split = search.describe(node, j, search.groups(node, j), branch, float(tree.threshold[at]))
            scores.append(search.score(node, split))
        np.testing.assert_allclose(scores[1], scores[0], atol=2e-9 * unit, rtol=1e-9)
    return n_same, n_tied
