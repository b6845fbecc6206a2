"""The native engine grows the reference's trees, and the same ones on any number of threads and any machine."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from tests.tree.ugly_tables import CATEGORIES, NUMBERS, compare, ugly_table

from margrove import DecisionTreeClassifier, DecisionTreeRegressor, certify
from margrove.engine import Effort, solve
from margrove.engine.native import tree as native_tree
from margrove.engine.native.core import core
from margrove.errors import ConvergenceWarning
from margrove.run import slices
from margrove.run.progress import watched
from margrove.status import Status
from margrove.tree.certificate import certify_tree_problem
from margrove.tree.model import TreeModel
from margrove.tree.problem import CLASS_CRITERIA, VALUE_CRITERIA, Cells, Growth, TreeColumn, TreeProblem
from margrove.tree.reading import ReadOnce
from margrove.tree.split import SplitSearch

LAW = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ARRAYS = [part.name for part in fields(TreeModel) if part.name != "columns"]

FITTED = ("gaussian", "logistic")


def native(problem, n_jobs=1):
    return solve(problem, "native", Effort(n_jobs=n_jobs)).model


def fingerprint(model):
    """Of every bit of every array."""
    digest = hashlib.sha256()
    for name in ARRAYS:
        digest.update(np.ascontiguousarray(getattr(model, name)).tobytes())
    return digest.hexdigest()


@st.composite
def growths(draw, criterion):
    one_of = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    return Growth(
        criterion=criterion,
        split_score=one_of("gain", "gain", "gain_ratio", "skew_adjusted"),
        thresholds=one_of("exact", "exact", "histogram", *FITTED * (criterion in CLASS_CRITERIA)),
        n_bins=one_of(2, 3, 5),
        max_depth=one_of(None, None, 1, 3),
        min_samples_split=one_of(2, 2, 9),
        min_samples_leaf=one_of(1, 1, 3),
        min_weight_leaf=one_of(0.0, 0.0, 2.5, 0.07 * 100),
        max_leaf_nodes=one_of(None, None, None, 2, 5),
        min_impurity_decrease=one_of(0.0, 0.0, 0.013),
        min_gain=one_of(0.0, 0.0, 0.017),
        majority=one_of(1.0, 1.0, 0.8) if criterion in CLASS_CRITERIA else 1.0,
        complexity=one_of(0.0, 0.0, 0.5),
    )


@st.composite
def problems(draw):
    criterion = draw(st.sampled_from(CLASS_CRITERIA + VALUE_CRITERIA))
    growth = draw(growths(criterion))
    n_classes = draw(st.sampled_from([1, 2, 2, 2, 3, 5, 30])) if criterion in CLASS_CRITERIA else 0
    monotone = n_classes in (0, 2) and draw(st.integers(0, 3)) == 0
    return ugly_table(
        np.random.default_rng(draw(st.integers(0, 2**32))),
        draw(st.sampled_from([1, 2, 3, 7, 20, 60, 150])),
        draw(st.lists(st.sampled_from(NUMBERS + CATEGORIES), min_size=1, max_size=5)),
        n_classes,
        draw(st.sampled_from(["one", "one", "whole", "any"])),
        growth,
        monotone,
    )


@LAW
@given(problems())
def test_the_reference_grows_the_same_tree_but_for_ties(problem):
    one, other = solve(problem, "reference").model, native(problem)
    broken = [claim.name for claim in certify_tree_problem(problem, other, other) if not claim.holds]
    if problem.growth.max_leaf_nodes is None:
        n_same, n_tied = compare(problem, one, other)
        assert n_tied > 0 or one.n_nodes == other.n_nodes == n_same + one.n_leaves
    # Else which of two nodes of equal gain is split first is a tie of its own, and then other leaves are left.
    assert broken == []


@LAW
@given(
    seed=st.integers(0, 2**32),
    is_regression=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    thresholds=st.sampled_from(["exact", "histogram"]),
)
def test_a_sparse_matrix_grows_the_tree_of_its_cells(seed, is_regression, dtype, thresholds):
    """Zeros that are stored, zeros that are most cells or few, negative numbers, cells that are missing."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 80)), int(rng.integers(1, 6))
    X = np.where(rng.random((n, d)) < rng.choice([0.05, 0.3, 0.9, 1.0]), rng.integers(-2, 4, (n, d)), 0).astype(dtype)
    X[rng.random((n, d)) < rng.choice([0.0, 0.2])] = np.nan
    stored = sp.csc_matrix((X != 0) | (rng.random((n, d)) < 0.2))
    stored.sort_indices()
    matrix = sp.csc_matrix((X[stored.nonzero()[0], stored.nonzero()[1]], stored.nonzero()), shape=(n, d))
    matrix.sort_indices()
    columns = tuple(TreeColumn(f"x{j}") for j in range(d))
    target = rng.normal(size=n).round(1) if is_regression else rng.integers(0, 3, n).astype(np.int32)
    n_classes, growth = (0, Growth("squared_error")) if is_regression else (3, Growth())
    growth = replace(growth, thresholds=thresholds, n_bins=3)
    dense = TreeProblem(Cells(columns, n, tuple(X.T)), target, n_classes, None, growth)
    sparse = replace(dense, cells=Cells(columns, n, sparse=matrix))
    n_same, n_tied = compare(dense, native(dense), native(sparse))
    if thresholds == "exact":
        assert n_tied == 0
    # Bins of dense columns are counted, those of sparse ones listed: of tests that gain the same each takes its own.
    assert n_tied > 0 or n_same == np.count_nonzero(~native(sparse).is_leaf)


def large_problems():
    """Enough cells for threads to share a node (40,000), and nodes small enough to be jobs of their own."""
    rng = np.random.default_rng(5)
    kinds = [*NUMBERS, *CATEGORIES, "normal", "normal", "few"]
    n = 40_000 // len(kinds) + 500
    for n_classes, weights, growth in [
        (2, "one", Growth("gini")),
        (2, "one", Growth("gini", max_leaf_nodes=40)),
        (3, "any", Growth("gini")),
        (7, "one", Growth("entropy", split_score="gain_ratio")),
        (30, "one", Growth("gini", complexity=0.1)),
        (2, "one", Growth("entropy", max_features=3, seed=4)),
        (3, "whole", Growth("error", seed=1)),
        (0, "one", Growth("squared_error")),
        (0, "any", Growth("gaussian_entropy", max_depth=6)),
        (0, "one", Growth("absolute_error", max_depth=4)),
        (2, "one", Growth("gini", thresholds="histogram", n_bins=20)),
        *((n_classes, "one", Growth("gini", min_samples_leaf=2)) for n_classes in (5, 16, 17, 32, 33)),
    ]:
        yield ugly_table(
            rng, n, kinds, n_classes, weights, growth, monotone=n_classes in (0, 2) and growth.seed is None
        )


def test_the_tree_is_the_same_for_any_number_of_threads():
    for problem in large_problems():
        one = fingerprint(native(problem, 1))
        for n_jobs in (2, 3, 7):
            assert fingerprint(native(problem, n_jobs)) == one, (problem.growth, n_jobs)


def columns_of_few_values(n, has_missing):
    """Two to 66 values; seldom a second, third or missing one, in a row that a look at some rows misses; constants."""
    rng = np.random.default_rng(8)
    two = [np.where(rng.random(n) < rng.choice([0.003, 0.2, 0.9]), *rng.permutation([-1.5, 2.0])) for _ in range(150)]
    two[20], two[50], two[90] = np.full(n, 3.0), np.where(np.arange(n) == 1, 1.0, 0.0), np.full(n, -0.0)
    two[70][n - 1] = 7.0
    two[140][n - 1] = np.nan if has_missing else 7.0
    two[10][::2] *= -1
    few = [rng.choice(rng.normal(size=size) if size < 9 else np.arange(size), n) for size in (3, 5, 17, 65, 66, 2)]
    columns = [*two[:75], few[0], rng.normal(size=n), *few[1:], *two[75:], rng.normal(size=n), np.zeros(n)]
    return np.ascontiguousarray(np.column_stack(columns), np.float32)


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 30])
def test_flags_grow_the_tree_of_lists(n_classes, has_missing):
    """Columns that are sorted for several trees have lists; those of few values have flags otherwise."""
    rng = np.random.default_rng(n_classes)
    n = 2500
    X = columns_of_few_values(n, has_missing)
    target = np.argsort(np.argsort(X[:, 75:83].sum(axis=1) + X[:, :4].sum(axis=1) + rng.normal(size=n)))
    target = (np.where(rng.random(n) < 0.1, rng.integers(0, n, n), target) * n_classes // n).astype(np.int32)
    columns = tuple(TreeColumn(f"x{j}") for j in range(X.shape[1]))
    for growth in (
        Growth("gini"),
        Growth("gini", min_samples_leaf=7, max_depth=9),
        Growth("gini", split_score="gain_ratio", max_leaf_nodes=60),
        Growth("gini", complexity=0.1),
        Growth("entropy"),
    ):
        flags = TreeProblem(Cells(columns, n, tuple(X.T), block=X), target, n_classes, None, growth)
        lists = replace(flags, cells=replace(flags.cells, kept={}))
        wide = replace(flags, cells=Cells(columns, n, tuple(X.astype(float).T)))
        found = {fingerprint(native(problem, n_jobs)) for problem in (flags, lists, wide) for n_jobs in (1, 2)}
        assert len(found) == 1, growth


def test_flags_of_a_sparse_matrix_grow_the_tree_of_lists():
    """Columns with one number besides zero, above or below it, and in every row but one; one with two numbers."""
    rng = np.random.default_rng(2)
    n, d = 1500, 90
    X = (rng.random((n, d)) < rng.choice([0.01, 0.3, 0.9], d)) * rng.choice([-2, 1, 5], d).astype(np.float32)
    X[:, 3], X[:, 4], X[:, 5], X[7, 4], X[7, 6] = 0, 2, 2, 0, 8
    target = (X[:, :20].sum(axis=1) + rng.normal(size=n) > 2).astype(np.int32) + (X[:, 30] != 0)
    columns = tuple(TreeColumn(f"x{j}") for j in range(d))
    cells = Cells(columns, n, sparse=sp.csc_matrix(X))
    kinds = (cells, replace(cells, kept={}), Cells(columns, n, tuple(X.T), block=X))
    for growth in (Growth("gini"), Growth("entropy", min_samples_leaf=3)):
        problems = [TreeProblem(kind, target.astype(np.int32), 3, None, growth) for kind in kinds]
        assert len({fingerprint(native(problem, n_jobs)) for problem in problems for n_jobs in (1, 2)}) == 1


FINGERPRINTS = """
from tests.tree.test_native_engine import fingerprint, large_problems, native
print(*(fingerprint(native(problem, 2)) for problem in large_problems()), sep="\\n")
"""


def test_plain_loops_grow_the_same_tree():
    """As on a machine without AVX-512. (On such a machine this compares a tree with itself.)"""
    found = [
        subprocess.run(
            [sys.executable, "-c", FINGERPRINTS],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | plain,
        ).stdout.split()
        for plain in ({}, {"MARGROVE_PLAIN": "1"})
    ]
    assert len(found[0]) == len(list(large_problems()))
    assert found[0] == found[1]


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("weights", [None, "any"])
def test_rows_and_classes_beyond_the_bits_of_a_tag(criterion, weights, rng):
    """65,536 rows take 17 bits and 32,769 classes 16: one more than 32, so classes are looked up by row."""
    n, n_classes = 65_536, 32_769
    few, category = rng.integers(0, 6, n).astype(np.float32), rng.integers(0, 4, n).astype(np.int32)
    target = (rng.integers(0, n_classes // 3, n) * 3 + few.astype(np.int32) // 2).astype(np.int32)
    target[:n_classes] = np.arange(n_classes)
    columns = TreeColumn("few"), TreeColumn("category", "multiway", tuple("abcd"))
    weight = None if weights is None else rng.uniform(0.5, 2, n)
    cells = Cells(columns, n, (few, category))
    problem = TreeProblem(cells, target, n_classes, weight, Growth(criterion, max_depth=2))
    n_same, n_tied = compare(problem, solve(problem, "reference").model, native(problem, 2))
    assert n_same >= 3
    assert n_tied == 0


def test_max_features_looks_at_so_many_columns_and_is_not_stuck_on_constant_ones(rng):
    """Of 40 columns 39 are constant: drawing goes on until one offers a test."""
    X = np.zeros((200, 40))
    X[:, 23] = rng.normal(size=200)
    columns = tuple(TreeColumn(f"x{j}") for j in range(40))
    target = (X[:, 23] > 0).astype(np.int32)
    for seed in range(10):
        growth = Growth(max_features=1, seed=seed)
        tree = native(TreeProblem(Cells(columns, 200, tuple(X.T)), target, 2, None, growth))
        assert tree.feature.tolist() == [23, -1, -1]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_columns_that_offer_no_test_do_not_count_among_those_drawn(engine, rng):
    """Two columns are to be looked at, and there are two that are not constant."""
    X = np.zeros((30, 20))
    X[:, [4, 11]] = rng.normal(size=(30, 2))
    columns = tuple(TreeColumn(f"x{j}") for j in range(20))
    target = rng.integers(0, 2, 30).astype(np.int32)
    for seed in range(10):
        growth = Growth(max_features=2, seed=seed, max_depth=1)
        problem = TreeProblem(Cells(columns, 30, tuple(X.T)), target, 2, None, growth)
        assert solve(problem, engine).model.n_candidates[0] == 2 * 29


def test_of_equal_tests_of_a_column_both_engines_take_the_same(rng):
    """With missing cells: thresholds with these in the second branch come first, then "present or missing"."""
    n_tied = 0
    for _ in range(60):
        x = rng.choice([0.0, 1.0, 2.0, 3.0, np.nan], 12)
        target = rng.integers(0, 2, 12).astype(np.int32)
        problem = TreeProblem(
            Cells((TreeColumn("x"),), 12, (x,)), target, 2, growth=Growth("error", max_depth=1, max_leaf_nodes=2)
        )
        one, other = solve(problem, "reference").model, native(problem)
        np.testing.assert_array_equal(one.threshold, other.threshold)
        np.testing.assert_array_equal(one.missing_branch, other.missing_branch)
        search = SplitSearch(problem)
        node = search.node(np.arange(12))
        n_tied += len(list(search.best_tests(node, 0, search.groups(node, 0), 1e-12))) > 1
    assert n_tied > 10


# ---------------------------------------------------------------------------------------------- huge and tiny numbers


@pytest.mark.parametrize("criterion", VALUE_CRITERIA)
@pytest.mark.parametrize("of_target", [2.0**-320, 1.0, 2.0**320])
@pytest.mark.parametrize("of_weight", [2.0**-320, 1.0, 2.0**320])
def test_the_unit_of_targets_and_weights_changes_no_split(criterion, of_target, of_weight, rng):
    """Powers of two: nothing is rounded, as long as no square is beyond what a number holds."""
    X, y, w = rng.normal(size=(80, 3)), rng.normal(size=80), rng.uniform(0.5, 2, 80)
    y = np.abs(y) if criterion == "poisson" else y
    plain = DecisionTreeRegressor(criterion=criterion, max_depth=5).fit(X, y, w)
    scaled = DecisionTreeRegressor(criterion=criterion, max_depth=5).fit(X, y * of_target, w * of_weight)
    np.testing.assert_array_equal(scaled.nodes_.threshold, plain.nodes_.threshold)
    np.testing.assert_array_equal(scaled.predict(X), plain.predict(X) * of_target)


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("thresholds", ["exact", "histogram", *FITTED])
@pytest.mark.parametrize("power", [-1040, 1021])
def test_the_unit_of_cells_changes_no_split(engine, thresholds, power, rng):
    """The largest numbers there are, whose differences are beyond them, and those without all their digits."""
    X, target = rng.integers(-7, 8, (60, 2)).astype(float), rng.integers(0, 3, 60)
    plain = DecisionTreeClassifier(thresholds=thresholds, n_bins=4, engine=engine, max_depth=4).fit(X, target)
    scaled = clone(plain).fit(np.ldexp(X, power), target)
    np.testing.assert_array_equal(scaled.nodes_.feature, plain.nodes_.feature)
    np.testing.assert_array_equal(scaled.apply(np.ldexp(X, power)), plain.apply(X))
    assert certify(scaled, np.ldexp(X, power), target).holds is True


def test_halfway_between_the_smallest_numbers_is_the_same_on_both_engines():
    least = np.nextafter(0.0, 1.0)
    for low, high in [(3, 6), (1, 2), (-6, -3), (-3, 6), (1, 4)]:
        cells = Cells((TreeColumn("x"),), 2, (np.array([low, high]) * least,))
        problem = TreeProblem(cells, np.array([0, 1], dtype=np.int32), 2)
        assert solve(problem, "reference").model.threshold[0] == native(problem).threshold[0]


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("criterion", [each for each in VALUE_CRITERIA if each != "poisson"])
@pytest.mark.parametrize("split_score", ["gain", "skew_adjusted"])
def test_numbers_far_from_zero_keep_the_digits_they_have(engine, criterion, split_score, rng):
    """Beyond 10¹⁵ a mean is known to an eighth, and squares around it to nothing."""
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    tree = DecisionTreeRegressor(criterion=criterion, split_score=split_score, max_depth=4, engine=engine)
    near, far = clone(tree).fit(X, y), clone(tree).fit(X, 1e15 + y)
    np.testing.assert_allclose(far.nodes_.impurity, near.nodes_.impurity, atol=1e-12)
    np.testing.assert_array_equal(far.apply(X), near.apply(X))
    assert certify(far, X, 1e15 + y).holds is True


@pytest.mark.parametrize("weight", [(1e9, 1e6, 1e3, 1e-9), (0.1, 0.2, 0.3, 1e-20), (0.3, 0.1, 0.7, 1e-20)])
def test_a_branch_that_weighs_less_than_rounding_hides_no_better_split(weight):
    """What is left of the node's weight for the lightest row, or for a block of equal cells, is zero or negative."""
    y = np.array([13.0, -14.0, 1.0, -7.0])
    for cells in itertools.product(range(3), repeat=4):
        X = np.array([cells, (0, 0, 0, 1)], dtype=np.float64).T
        tree = DecisionTreeRegressor().fit(X, y, weight)
        assert certify(tree, X, y, weight).holds is True, cells


@pytest.mark.parametrize("criterion", ["squared_error", "gaussian_entropy", "entropy", "error"])
def test_a_test_is_offered_though_sums_in_its_order_exceed_the_weight_of_the_node(criterion):
    """0.1 + 0.2 + 0.3, in the order of the column, is more than 0.3 + 0.2 + 0.1; both branches need three rows."""
    X, target = np.array([[3.0], [2.0], [1.0], [4.0], [5.0], [6.0]]), np.array([0, 1, 0, 1, 0, 1])
    weight = np.array([0.3, 0.2, 0.1, 1e-20, 1e-20, 1e-20])
    kind = DecisionTreeClassifier if criterion in CLASS_CRITERIA else DecisionTreeRegressor
    tree = kind(criterion=criterion, min_samples_leaf=3).fit(X, target, weight)
    assert tree.nodes_.n_leaves == 2
    assert certify(tree, X, target, weight).holds is True


def exact_excess(is_left, target, weight):
    """w · gain of Gini, by whole numbers: Σ D_k² / (w w_l w_r), D_k = l_k w − w_l t_k."""
    exact = [Fraction(w) for w in weight.tolist()]
    left, all_of = [Fraction(0)] * 3, [Fraction(0)] * 3
    for k, w, goes_left in zip(target.tolist(), exact, is_left.tolist(), strict=True):
        all_of[k] += w
        left[k] += w * goes_left
    w, w_l = sum(all_of), sum(left)
    return float(sum((l_k * w - w_l * t_k) ** 2 for l_k, t_k in zip(left, all_of, strict=True)) / (w * w_l * (w - w_l)))


@pytest.mark.parametrize("thresholds", ["exact", "histogram"])
@pytest.mark.parametrize("light", [4e-6, 1.0])
def test_a_node_that_is_almost_pure_is_split_where_it_gains_most(thresholds, light, rng):
    """Two of three classes are a row or two of hardly any weight, and the tests gain nearly the same: what they differ
    by is below the rounding of Σ l_k²/w_l + Σ r_k²/w_r."""
    for _ in range(25):
        X, target = rng.permuted(np.tile(np.arange(40.0), (3, 1)), axis=1).T, np.zeros(40, dtype=np.int64)
        target[rng.choice(40, 3, replace=False)] = [1, 2, 2]
        weight = np.where(target > 0, light, rng.uniform(1, 1.001, 40))
        tree = DecisionTreeClassifier(max_depth=1, thresholds=thresholds, n_bins=255).fit(X, target, weight).nodes_
        every = [exact_excess(X[:, j] < cut, target, weight) for j in range(3) for cut in range(1, 40)]
        taken = exact_excess(X[:, tree.feature[0]] <= tree.threshold[0], target, weight)
        assert taken == pytest.approx(max(every), rel=1e-9, abs=0)
        assert tree.gain[0] * weight.sum() == pytest.approx(taken, rel=1e-9, abs=0)


def test_bins_have_the_gain_of_a_node_that_is_almost_pure_to_the_last_digits(rng):
    X, target = rng.normal(size=(20_000, 2)), np.zeros(20_000, dtype=np.int64)
    target[rng.choice(len(target), 3, replace=False)] = [1, 2, 2]
    tree = DecisionTreeClassifier(max_depth=1, thresholds="histogram").fit(X, target).nodes_
    expected = exact_excess(X[:, tree.feature[0]] <= tree.threshold[0], target, np.ones(len(target)))
    assert tree.gain[0] * len(target) == pytest.approx(expected, rel=1e-13, abs=0)


def test_the_number_of_bins_is_limited_by_the_number_of_values(rng):
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    many = DecisionTreeClassifier(thresholds="histogram", n_bins=2**62).fit(X, y)
    few = DecisionTreeClassifier(thresholds="histogram", n_bins=40).fit(X, y)
    np.testing.assert_array_equal(many.nodes_.threshold, few.nodes_.threshold)


# ------------------------------------------------------------------------------------------------------ broken off


def endless_table(n=150_000, d=20):
    """Noise: a tree of many nodes, and seconds to grow."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)).astype(np.float32), rng.integers(0, 3, n)


@pytest.mark.parametrize("max_leaf_nodes", [None, 10_000_000])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_time_limit_leaves_a_tree_that_predicts(max_leaf_nodes, n_jobs):
    X, y = endless_table()
    tree = DecisionTreeClassifier(
        criterion="error", time_limit=0.3, n_jobs=n_jobs, max_leaf_nodes=max_leaf_nodes, max_depth=60
    )
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="time_limit.*nodes still open became leaves"):
        tree.fit(X, y)
    assert time.monotonic() - started < 20
    assert tree.status_ is Status.TIME_LIMIT
    assert tree.nodes_.n_rows[tree.nodes_.is_leaf].sum() == len(X)
    np.testing.assert_array_equal(
        np.bincount(tree.apply(X), minlength=tree.nodes_.n_nodes)[tree.nodes_.is_leaf],
        tree.nodes_.n_rows[tree.nodes_.is_leaf],
    )
    assert tree.certificate_.holds is not True


@pytest.mark.parametrize("settings", [{}, {"n_jobs": 1}, {"thresholds": "histogram"}, {"max_leaf_nodes": 5}])
def test_a_time_limit_that_is_over_before_growing_begins_leaves_the_root(settings):
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 3
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        tree = DecisionTreeClassifier(time_limit=1e-12, **settings).fit(X, y)
    assert tree.status_ is Status.TIME_LIMIT
    assert tree.nodes_.n_nodes == 1
    np.testing.assert_allclose(tree.predict_proba(X[:1]), [[17 / 50, 17 / 50, 16 / 50]])


@pytest.mark.parametrize("thresholds", ["exact", "histogram"])
@pytest.mark.parametrize("Tree", [DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize("weight", [None, "any"])
def test_no_time_at_all_leaves_a_leaf(Tree, thresholds, weight, rng):
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 2, 50)
    weight = None if weight is None else rng.uniform(1, 2, 50)
    tree = Tree(time_limit=1e-9, thresholds=thresholds)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        tree.fit(X, y, weight)
    assert tree.nodes_.n_nodes == 1
    np.testing.assert_allclose(tree.nodes_.weight, 50 if weight is None else weight.sum())
    assert len(set(tree.predict(X))) == 1


def random_table(random, i):
    """Few values or many, mostly zeros or sparse, more columns or fewer than are sorted side by side."""
    n, d = random.integers(2, 400), random.integers(1, 40)
    X = random.integers(0, random.integers(2, 30), (n, d)).astype(float) if i % 2 else random.normal(size=(n, d))
    X[random.random((n, d)) < (0.7 if i % 5 == 0 else 0)] = 0
    X = X.astype(np.float32) if i % 3 else X
    return sp.csr_matrix(X) if i % 7 == 0 else X


@pytest.mark.parametrize("Tree", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_subtrees_of_few_rows_are_those_that_lists_of_rows_give(Tree, rng):
    """They are grown in arrays of their own, unless the most urgent node comes first, as with ``max_leaf_nodes``."""
    for i in range(60):
        X = random_table(rng, i)
        n = X.shape[0]
        if Tree is DecisionTreeClassifier:
            y = rng.integers(0, rng.integers(2, 9), n)
        else:
            y = rng.normal(size=n) * 10.0 ** rng.integers(-9, 9) if i % 3 else rng.integers(0, 5, n) + 1e6
        tree = Tree(min_samples_leaf=int(rng.integers(1, 6)), max_depth=None if i % 4 else 5)
        in_lists = clone(tree).set_params(max_leaf_nodes=10**6).fit(X, y)
        assert fingerprint(tree.fit(X, y).nodes_) == fingerprint(in_lists.nodes_), i


def test_tiny_differences_of_a_target_do_not_tell_columns_apart():
    """Their squares are 0: the first column is taken, in subtrees of few rows too."""
    y = np.array([1, 2e-170, 1e-170, 3e-170, 9e-170, 1e-169])
    X = np.array([[9, 0, 9], [0, 1, 0], [1, 0, 1], [0, 1, 2], [1, 0, 3], [0, 1, 4.0]])
    found = [DecisionTreeRegressor(**how).fit(X, y).nodes_.feature for how in ({}, {"engine": "reference"})]
    np.testing.assert_array_equal(*found)


def test_cells_of_a_sparse_matrix_may_lie_apart():
    matrix = sp.csc_matrix(np.eye(6))
    apart = np.zeros(12)
    apart[::2] = matrix.data
    tree = DecisionTreeClassifier().fit(sp.csc_matrix((apart[::2], matrix.indices, matrix.indptr)), [0, 1] * 3)
    assert tree.score(matrix, [0, 1] * 3) == 1


def test_a_masked_target_is_checked_below_its_mask(rng):
    y = np.ma.masked_invalid([np.nan, *range(9)])
    with pytest.raises(ValueError, match="NaN"):
        DecisionTreeRegressor().fit(rng.normal(size=(10, 2)), y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_csc_matrix_of_floats_grows_the_tree_of_its_dense_rows(dtype, rng):
    X = rng.integers(-2, 3, (300, 12)).astype(dtype) * (rng.random((300, 12)) < 0.3)
    y = rng.integers(0, 3, 300)
    dense = DecisionTreeClassifier().fit(X, y)
    sparse = DecisionTreeClassifier().fit(sp.csc_matrix(X), y)
    assert fingerprint(sparse.nodes_) == fingerprint(dense.nodes_)
    assert sparse.n_features_in_ == 12
    X[7, 3] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        DecisionTreeClassifier().fit(sp.csc_matrix(X), y)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("thresholds", ["exact", "histogram"])
def test_sorting_is_done_in_slices_too_and_the_tree_is_the_same(n_jobs, thresholds, rng, monkeypatch):
    """So that Ctrl-C need not wait until the last column is sorted."""
    X, y = rng.normal(size=(1000, 900)).astype(np.float32), rng.integers(0, 2, 1000)
    tree = DecisionTreeClassifier(thresholds=thresholds, n_jobs=n_jobs, max_depth=3)
    at_once = fingerprint(clone(tree).fit(X, y).nodes_)
    monkeypatch.setattr(slices, "SLICE", 1e-5)  # less than it takes to sort one of the 29 groups of columns
    seen = []
    with watched(seen.append):
        assert fingerprint(clone(tree).fit(X, y).nodes_) == at_once
    assert len([progress for progress in seen if progress.done == 0]) > 5


INTERRUPTED = """
import json, os, signal, threading, warnings
from margrove import DecisionTreeClassifier
from tests.tree.test_native_engine import endless_table

warnings.simplefilter("ignore")
X, y = endless_table()
DecisionTreeClassifier().fit(X[:50], y[:50])
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
tree = DecisionTreeClassifier(criterion="error", n_jobs=2).fit(X, y)
print(json.dumps({"status": str(tree.status_), "answers": len(tree.predict(X[:10])), "holds": tree.certificate_.holds}))
"""


def test_ctrl_c_keeps_the_tree_so_far():
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert found == {"status": "interrupted", "answers": 10, "holds": None}


def test_progress_counts_rows_that_came_to_a_leaf_and_ends_with_all():
    X, y = endless_table(40_000)
    seen = []
    with watched(seen.append):
        DecisionTreeClassifier(n_jobs=2).fit(X, y)
    done = [progress.done for progress in seen]
    assert {(progress.stage, progress.total) for progress in seen} == {("tree", 40_000)}
    assert done == sorted(done)
    assert done[-1] == 40_000


def test_two_threads_may_fit_at_once():
    X, y = endless_table(10_000)
    alone = [fingerprint(DecisionTreeClassifier(criterion=name).fit(X, y).nodes_) for name in ("gini", "entropy")]
    found = {}

    def fit(name):
        found[name] = fingerprint(DecisionTreeClassifier(criterion=name).fit(X, y).nodes_)

    threads = [threading.Thread(target=fit, args=(name,)) for name in ("gini", "entropy")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found["gini"], found["entropy"]] == alone


def test_a_leaf_of_equal_targets_predicts_them_to_the_last_digit(rng):
    X, y = rng.normal(size=(300, 2)), rng.choice([0.1, 0.7, 1e9 + 0.3, -3.3], 300)
    weight = rng.uniform(0.1, 2, 300)
    np.testing.assert_array_equal(DecisionTreeRegressor().fit(X, y, weight).predict(X), y)


def test_a_least_weight_of_rows_without_weights_holds_for_bins_too():
    x = np.array([np.nan, np.nan, np.nan, np.nan, -2.3, -0.2, np.nan])
    cells = Cells((TreeColumn("x"),), 7, (x,))
    target = np.array([0, 1, 1, 1, 0, 0, 1], dtype=np.int32)
    growth = Growth(criterion="entropy", thresholds="histogram", n_bins=2, min_weight_leaf=2.5)
    assert native(TreeProblem(cells, target, 2, growth=growth)).n_nodes == 1  # the two present cells make no leaf


def test_a_table_that_is_read_once_is_sorted_once_for_all_its_targets(rng, monkeypatch):
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.integers(0, 3, 300).astype(str), "c": rng.normal(size=300)})
    X.loc[::7, "c"] = np.nan
    targets = [rng.integers(0, k, 300) for k in (2, 3, 2)]
    sorts, sorted_columns = [], core.SortedColumns

    def counted(*given, **named):
        sorts.append(given)
        return sorted_columns(*given, **named)

    monkeypatch.setattr(native_tree.core, "SortedColumns", counted)
    table = ReadOnce(X)
    for y in targets:
        together, alone = DecisionTreeClassifier().fit(table, y), DecisionTreeClassifier().fit(X, y)
        assert fingerprint(together.nodes_) == fingerprint(alone.nodes_)
        np.testing.assert_array_equal(together.feature_names_in_, alone.feature_names_in_)
        np.testing.assert_array_equal(together.predict(X), alone.predict(X))
    assert len(sorts) == 1


def test_columns_sorted_for_other_trees_are_refused():
    none = np.empty(0)
    column = core.Column(test=core.Test.threshold, monotone=0, cells=np.arange(4.0), n_codes=0, cuts=none, rows=None)
    rules = {"n": 4, "label": np.array([0, 1, 0, 1], np.int32), "n_classes": 2, "number": none, "weight": none}
    rules |= {"growth": native_tree.growth_for_core(Growth()), "outputs": [], "threads": 1}

    def sorted_columns():
        return core.SortedColumns([column], n=4, n_bins=0, may_leave_out=True, threads=1)

    columns = sorted_columns()
    assert columns.run(1.0)
    core.TreeGrower([column], sorted=columns, **rules)
    with pytest.raises(ValueError, match="sorted for other trees"):
        core.TreeGrower([column, column], sorted=columns, **rules)
    with pytest.raises(ValueError, match="sorted for other trees"):
        core.TreeGrower([column], sorted=sorted_columns(), **rules)
