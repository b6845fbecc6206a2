"""The core's forests are made of the trees that the native solver of single trees grows, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from margrove.engine import Effort, solve
from margrove.engine.native.core import core, given_or_nothing
from margrove.engine.native.tree import growth_for_core
from margrove.tree.draws import mixed
from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem

BITS = (1 << 64) - 1


def tree_seed(seed, t):
    return mixed(mixed(seed) ^ mixed(t)) >> 32


def draws(seed, t, n, n_drawn):
    """How often tree t draws each row."""
    if n_drawn == 0:
        return np.ones(n, np.int64)
    key = mixed((tree_seed(seed, t) + 1) & BITS)
    rows = [mixed(key ^ mixed(i)) * n >> 64 for i in range(n_drawn)]
    return np.bincount(rows, minlength=n)


def cells_of(x):
    columns = tuple(TreeColumn(f"x{j}") for j in range(x.shape[1]))
    block = x if x.flags.c_contiguous else None
    return Cells(columns, len(x), tuple(x[:, j] for j in range(x.shape[1])), block=block)


def grower_of(
    x, y, n_classes, growth, *, n_trees, first=0, seed=7, n_drawn=0, weight=None, threads=1, min_weight_share=0.0
):
    return core.ForestGrower(
        core.NumberColumns(x),
        n=len(x),
        label=np.ascontiguousarray(y, np.int32) if n_classes else np.empty(0, np.int32),
        n_classes=n_classes,
        number=given_or_nothing(None if n_classes else y),
        weight=given_or_nothing(weight),
        growth=growth_for_core(growth),
        n_trees=n_trees,
        first=first,
        seed=seed,
        n_drawn=n_drawn,
        min_weight_share=min_weight_share,
        threads=threads,
    )


def grown(*args, seconds=10.0, **settings):
    grower = grower_of(*args, **settings)
    while not grower.run(seconds):
        pass
    return grower.take()


def single_tree(x, y, n_classes, growth, *, t, seed, n_drawn, weight=None):
    """Tree t by the solver of single trees: the rows drawn, with their numbers of draws as weights."""
    count = draws(seed, t, len(x), n_drawn)
    rows = np.flatnonzero(count)
    w = count[rows] * (1.0 if weight is None else weight[rows])
    own = replace(growth, seed=tree_seed(seed, t))
    problem = TreeProblem(cells_of(x).take(rows), np.ascontiguousarray(y[rows]), n_classes, w.astype(float), own)
    return solve(problem, "native", Effort(n_jobs=1)).model


def second_children(model):
    """Of each inner node the second child."""
    inner = np.flatnonzero(model.feature >= 0)
    return inner, model.child[model.child_start[inner] + 1]


def compare_tree(forest, t, model, n_classes):
    nodes = slice(*forest["start"][t : t + 2])
    leaves = slice(*forest["leaf_start"][t : t + 2])
    feature = forest["feature"][nodes]
    np.testing.assert_array_equal(feature, model.feature)
    np.testing.assert_array_equal(forest["threshold"][nodes], model.threshold)
    inner, second = second_children(model)
    np.testing.assert_array_equal(forest["right"][nodes][inner], second)
    leaf = np.flatnonzero(feature < 0)
    np.testing.assert_array_equal(forest["right"][nodes][leaf], np.arange(len(leaf)))
    np.testing.assert_array_equal(forest["n_rows"][leaves], model.n_rows[leaf])
    np.testing.assert_allclose(forest["weight"][leaves], model.weight[leaf], rtol=1e-12)
    if n_classes:
        share = model.value[leaf] / model.value[leaf].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(forest["shares"][forest["shape_index"][leaves]], share, rtol=1e-12)
        is_pure = (share > 0).sum(axis=1) == 1
        np.testing.assert_array_equal(forest["shape_index"][leaves][is_pure], share[is_pure].argmax(axis=1))
    else:
        np.testing.assert_allclose(forest["mean"][leaves], model.value[leaf, 0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(forest["impurity"][leaves], model.impurity[leaf], rtol=1e-7, atol=1e-12)
    decrease = np.bincount(
        model.feature[inner], (model.weight * model.gain)[inner], minlength=forest["decrease"].shape[1]
    )
    np.testing.assert_allclose(forest["decrease"][t], decrease, rtol=1e-6, atol=1e-9 * model.weight[0])


def ugly_column(rng, n):
    kind = rng.integers(7)
    if kind == 0:
        return np.full(n, rng.normal())
    if kind == 1:
        return rng.integers(0, 2, n) * 1.0
    if kind == 2:
        return rng.integers(-3, 4, n) / 3
    if kind == 3:
        return rng.normal(size=n)
    if kind == 4:
        return np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n))
    if kind == 5:
        return rng.choice([-0.0, 0.0, 1e-30, 1e30], n)
    return np.round(rng.normal(size=n), 1)


def ugly(rng, n_classes):
    """A table, its target, and rules: ties, constant columns, rows that are equal, few rows."""
    n, d = int(rng.choice([1, 2, 3, 7, 20, 60, 150, 400])), int(rng.integers(1, 12))
    x = np.stack([ugly_column(rng, n) for _ in range(d)], axis=1).astype(rng.choice([np.float32, np.float64]))
    if rng.random() < 0.3:
        x = x[rng.integers(0, max(n // 3, 1), n)]
    if rng.random() < 0.3:
        x = np.asfortranarray(x)
    elif rng.random() < 0.2:
        x = np.repeat(x, 2, axis=1)[:, ::2]
    if n_classes:
        y = rng.integers(0, n_classes, n)
        if rng.random() < 0.7:
            y = (np.abs(x[:, 0] * 7 + x[:, -1]) % n_classes).astype(int) * (rng.random(n) < 0.9)
        y = y.astype(np.int32)
    else:
        y = rng.normal(size=n) + x[:, 0].clip(-9, 9)
        if rng.random() < 0.5:
            y = np.round(y)
    return x, y, n_classes


def rules(rng, criterion):
    return Growth(
        criterion=criterion,
        thresholds=str(rng.choice(["exact", "exact", "random"])),
        max_depth=rng.choice([None, None, 1, 3, 6]),
        min_samples_split=int(rng.choice([2, 2, 5, 30])),
        min_samples_leaf=int(rng.choice([1, 1, 2, 7])),
        min_weight_leaf=float(rng.choice([0, 0, 0, 3.5])),
        max_features=rng.choice([None, 1, 2, 5]),
        min_impurity_decrease=float(rng.choice([0, 0, 0.01])),
    )


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 3, 9])
@pytest.mark.parametrize("start", range(4))
def test_trees_of_classes_are_those_of_the_single_solver(criterion, n_classes, start):
    for case in range(30):
        rng = np.random.default_rng(1000 * start + case)
        x, y, k = ugly(rng, n_classes)
        growth, seed = rules(rng, criterion), int(rng.integers(1 << 62))
        n_drawn = int(rng.choice([0, len(x), 2 * len(x) + 5, len(x) // 2 + 1]))
        weight = rng.random(len(x)) + 0.1 if rng.random() < 0.15 else None
        first = int(rng.integers(3))
        forest = grown(x, y, k, growth, n_trees=2, first=first, seed=seed, n_drawn=n_drawn, weight=weight)
        for t in range(2):
            model = single_tree(x, y, k, growth, t=first + t, seed=seed, n_drawn=n_drawn, weight=weight)
            compare_tree(forest, t, model, k)


@pytest.mark.parametrize(("n_columns", "max_features"), [(40, 14), (130, None)])
@pytest.mark.parametrize("n", [257, 512, 800, 2048, 2100])
def test_large_nodes_of_many_classes_and_columns_are_those_of_the_single_solver(n, n_columns, max_features):
    rng = np.random.default_rng(n)
    x = np.round(rng.normal(size=(n, n_columns)), int(rng.integers(1, 4)))
    y = np.argmax(x[:, :7] + rng.gumbel(size=(n, 7)), axis=1).astype(np.int32)
    growth = Growth(max_features=max_features, max_depth=3, min_samples_leaf=int(rng.choice([1, 3])))
    for n_drawn in (0, n):
        forest = grown(x, y, 7, growth, n_trees=1, seed=n, n_drawn=n_drawn)
        compare_tree(forest, 0, single_tree(x, y, 7, growth, t=0, seed=n, n_drawn=n_drawn), 7)


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_trees_of_very_different_weights_are_those_of_the_single_solver(n_classes):
    for case in range(40):
        rng = np.random.default_rng(case)
        n = int(rng.integers(2, 30))
        x, y = rng.normal(size=(n, 3)), rng.integers(0, n_classes, n).astype(np.int32)
        weight = 10.0 ** rng.uniform(-6, 6, n)
        growth = Growth(max_features=int(rng.integers(1, 4)))
        forest = grown(x, y, n_classes, growth, n_trees=3, seed=case, weight=weight)
        for t in range(3):
            model = single_tree(x, y, n_classes, growth, t=t, seed=case, n_drawn=0, weight=weight)
            compare_tree(forest, t, model, n_classes)


@pytest.mark.parametrize("start", range(8))
def test_trees_of_numbers_are_those_of_the_single_solver(start):
    for case in range(30):
        rng = np.random.default_rng(1000 * start + case)
        x, y, _ = ugly(rng, 0)
        growth, seed = rules(rng, "squared_error"), int(rng.integers(1 << 62))
        n_drawn = int(rng.choice([0, len(x), len(x) // 2 + 1]))
        weight = rng.random(len(x)) + 0.1 if rng.random() < 0.3 else None
        forest = grown(x, y, 0, growth, n_trees=2, seed=seed, n_drawn=n_drawn, weight=weight)
        for t in range(2):
            model = single_tree(x, y, 0, growth, t=t, seed=seed, n_drawn=n_drawn, weight=weight)
            compare_tree(forest, t, model, 0)


def a_table(n=3000, d=6, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    x[:, 1] = np.round(x[:, 1])
    y = ((x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=n)) > 0).astype(np.int32)
    return x, y, 2


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


@pytest.mark.parametrize("thresholds", ["exact", "random"])
def test_a_forest_is_the_same_for_any_number_of_threads_and_any_slices(thresholds):
    x, y, k = a_table()
    growth = Growth(max_features=2, thresholds=thresholds)
    settings = {"n_trees": 9, "n_drawn": len(x)}
    one = grown(x, y, k, growth, **settings)
    assert_same(one, grown(x, y, k, growth, threads=2, **settings))
    assert_same(one, grown(x, y, k, growth, seconds=0.0005, **settings))
    assert_same(one, grown(x, y, k, growth, threads=3, seconds=0.002, **settings))


def test_a_forest_goes_on_from_its_first_trees():
    x, y, k = a_table(500)
    growth = Growth(max_features=2)
    whole = grown(x, y, k, growth, n_trees=5, n_drawn=500)
    rest = grown(x, y, k, growth, n_trees=3, first=2, n_drawn=500)
    begin = whole["start"][2]
    np.testing.assert_array_equal(whole["threshold"][begin:], rest["threshold"])
    np.testing.assert_array_equal(whole["start"][2:] - begin, rest["start"])
    np.testing.assert_array_equal(
        whole["shares"][whole["shape_index"]][whole["leaf_start"][2] :], rest["shares"][rest["shape_index"]]
    )


def test_what_is_taken_early_are_the_first_trees():
    x, y, k = a_table()
    settings = {"n_trees": 400, "n_drawn": len(x), "threads": 2}
    grower = grower_of(x, y, k, Growth(max_features=2), **settings)
    while grower.trees_done() < 3:
        grower.run(0.001)
    some = grower.take()
    n_trees = len(some["start"]) - 1
    assert 1 <= n_trees < 400
    assert_same(some, grown(x, y, k, Growth(max_features=2), **settings | {"n_trees": n_trees}))


def test_nothing_taken_is_a_forest_without_trees():
    x, y, k = a_table(100)
    empty = grower_of(x, y, k, Growth(), n_trees=3).take()
    assert len(empty["start"]) == 1
    assert empty["shares"].shape == (2, 2)
    assert empty["decrease"].shape == (0, 6)


def test_of_numbers_that_are_equal_the_mean_is_that_number():
    x, _, _ = a_table(200)
    y = np.full(200, 0.1)
    forest = grown(x, y, 0, Growth("squared_error"), n_trees=2, n_drawn=200)
    assert (forest["mean"] == 0.1).all()
    assert (forest["impurity"] == 0).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"criterion": "error"}, "gini, entropy or squared_error"),
        ({"max_leaf_nodes": 4}, "trees of any size"),
        ({"split_score": "gain_ratio"}, "largest gain"),
        ({"thresholds": "gaussian"}, "all thresholds, or random"),
    ],
)
def test_what_it_cannot_grow_is_refused(settings, words):
    x, y, k = a_table(50)
    with pytest.raises(ValueError, match=words):
        grown(x, y, k, Growth(**settings), n_trees=1)


def test_missing_cells_are_refused():
    x, y, k = a_table(50)
    x[3, 2] = np.nan
    with pytest.raises(ValueError, match="missing"):
        grown(x, y, k, Growth(), n_trees=1)


def walked(forest, x, missing_branch=None):
    """The leaf of each row in each tree, by the plain definition."""
    leaves = np.empty((len(x), len(forest["start"]) - 1), np.int32)
    for t, first in enumerate(forest["start"][:-1]):
        for i, row in enumerate(np.asarray(x, np.float64)):
            node = first
            while forest["feature"][node] >= 0:
                cell = row[forest["feature"][node]]
                goes_left = cell <= forest["threshold"][node]
                if np.isnan(cell) and missing_branch is not None:
                    goes_left = missing_branch[node] == 0
                node = node + 1 if goes_left else first + forest["right"][node]
            leaves[i, t] = forest["right"][node]
    return leaves


def trees_of(forest, missing_branch=None):
    return core.ForestTrees(
        **{name: forest[name] for name in ("start", "feature", "threshold", "right", "leaf_start")},
        missing_branch=missing_branch,
    )


def summed(forest, leaves, values, place):
    total = np.zeros((len(leaves), values.shape[1]))
    for t, first in enumerate(forest["leaf_start"][:-1]):
        at = first + leaves[:, t]
        total += values[at if place is None else place[at]]
    return total


def points_of(x, is_sparse):
    if not is_sparse:
        return core.dense_points(np.ascontiguousarray(x))
    csr = sp.csr_matrix(x)
    return core.csr_points(csr.data, csr.indices, csr.indptr.astype(np.int64), x.shape[1])


@pytest.mark.parametrize("type_", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 2, 15, 16, 17, 300])
@pytest.mark.parametrize("n_classes", [0, 2, 7])
def test_rows_come_to_the_leaves_that_the_definition_says(type_, n_rows, n_classes):
    rng = np.random.default_rng(n_rows + n_classes)
    x = np.round(rng.normal(size=(250, 5)), 1).astype(type_)
    y = (x[:, 0] * 3).round() if n_classes == 0 else rng.integers(0, n_classes, 250)
    growth = Growth("gini" if n_classes else "squared_error", max_features=2, min_samples_leaf=2)
    forest = grown(x, y.astype(float if n_classes == 0 else np.int32), n_classes, growth, n_trees=5, n_drawn=250)
    new = np.round(rng.normal(size=(n_rows, 5)), 1).astype(type_)
    new[rng.random(new.shape) < 0.5] = 0
    values, place = (forest["shares"], forest["shape_index"]) if n_classes else (forest["mean"][:, None], None)
    leaves = walked(forest, new)
    for threads, is_sparse in [(1, False), (2, False), (1, True), (2, True)]:
        trees, points = trees_of(forest), points_of(new, is_sparse)
        np.testing.assert_array_equal(core.forest_leaves(trees, points, threads=threads), leaves)
        np.testing.assert_array_equal(
            core.forest_sums(trees, points, value=values, place=place, threads=threads),
            summed(forest, leaves, values, place),
        )


@pytest.mark.parametrize("type_", [np.float32, np.float64])
def test_missing_cells_go_where_they_are_sent(type_):
    x, y, k = a_table(300)
    forest = grown(x, y, k, Growth(max_features=2), n_trees=3, n_drawn=300)
    rng = np.random.default_rng(0)
    new = x[:80].astype(type_)
    new[rng.random(new.shape) < 0.3] = np.nan
    branch = rng.integers(0, 2, len(forest["feature"])).astype(np.int8)
    for given in (None, branch):
        points = core.dense_points(new)
        found = core.forest_leaves(trees_of(forest, given), points, threads=1)
        np.testing.assert_array_equal(found, walked(forest, new, given))


def test_a_number_between_a_float_and_its_threshold_goes_right():
    """θ halfway between two floats is no float itself."""
    low = np.float32(1)
    high = np.nextafter(low, np.float32(2))
    x = np.array([[low], [high]])
    forest = grown(x, np.array([0, 1], np.int32), 2, Growth(), n_trees=1)
    assert low < forest["threshold"][0] < high
    np.testing.assert_array_equal(core.forest_leaves(trees_of(forest), core.dense_points(x), threads=1), [[0], [1]])


@pytest.mark.parametrize("array", ["start", "feature", "right", "leaf_start"])
def test_arrays_that_lead_outside_are_refused(array):
    x, y, k = a_table(60)
    forest = grown(x, y, k, Growth(max_features=2), n_trees=2, n_drawn=60)
    for value in (-2, 10**6):
        wrong = forest[array].copy()
        wrong[1] = value
        with pytest.raises(ValueError, match=r"tree|forest|leaf|child"):
            core.forest_leaves(trees_of(forest | {array: wrong}), core.dense_points(x), threads=1)
    place = forest["shape_index"].copy()
    place[0] = 99
    with pytest.raises(ValueError, match="place"):
        core.forest_sums(trees_of(forest), core.dense_points(x), value=forest["shares"], place=place, threads=1)


def test_the_least_share_of_a_leaf_is_of_the_tree_s_own_weight():
    x, y, k = a_table(200)
    forest = grown(x, y, k, Growth(max_features=2), n_trees=2, n_drawn=100, min_weight_share=0.1)
    assert (forest["weight"] >= 10).all()
    one = grown(x, y, k, Growth(max_features=2, min_weight_leaf=10.0), n_trees=2, n_drawn=100)
    assert_same(forest, one)
