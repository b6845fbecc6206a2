"""Bounds on gains, and sums by groups, against the search and the rows themselves."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrove.tree.bounds import ROUNDING_OF_BOUNDS, gain_bounds
from margrove.tree.certificate import certify_tree_problem
from margrove.tree.groups import Measure, Parts
from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem
from margrove.tree.reference import grow
from margrove.tree.split import SplitSearch

CRITERIA = ("entropy", "gini", "error", "squared_error")
seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=100, deadline=None)
@given(seed=seeds, criterion=st.sampled_from(CRITERIA))
def test_bounds_are_the_largest_gains_where_nothing_is_forbidden(ugly_problem, seed, criterion):
    problem = ugly_problem(seed, criterion)
    search = SplitSearch(problem)
    rows = np.flatnonzero(np.random.default_rng(seed).random(problem.cells.n_rows) < 0.7)
    node = search.node(rows if len(rows) else np.arange(1))
    for j, (n_tests, bound) in gain_bounds(problem, node).items():
        groups = search.groups(node, j)
        assert (n_tests, False) == (groups.n_tests, groups.has_missing)
        best = search.best_test(node, j, groups)
        assert (best is None) == (n_tests == 0)
        if best is not None:
            assert bound == pytest.approx(best.gain, abs=ROUNDING_OF_BOUNDS * node.gain_unit)


@settings(max_examples=50, deadline=None)
@given(seed=seeds, criterion=st.sampled_from((*CRITERIA, "gaussian_entropy", "absolute_error", "poisson")))
def test_one_group_against_the_rest_is_that_of_the_rows(seed, criterion):
    rng = np.random.default_rng(seed)
    n, n_groups = 40, int(rng.integers(2, 9))
    group = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n - n_groups)])
    n_classes = 3 if criterion in CRITERIA[:3] else 0
    target = rng.integers(0, 3, n).astype(float) + (0 if n_classes else 1e3 * rng.random())
    weight = rng.random(n) ** 8 + 1e-12
    measure = Measure(criterion, n_classes, variance_floor=1e-9)
    found = measure.tally(target, weight, group, n_groups).one_vs_rest()
    for g in range(n_groups):
        expected = measure.groups(target, weight, (group != g).astype(np.intp), 2)
        for part in fields(Parts):
            got = getattr(found, part.name)[:, g]
            np.testing.assert_allclose(got, getattr(expected, part.name), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_worse_column_is_found_among_many(rng, criterion):
    """The bounds leave out the columns that are worse, and not the one that is better."""
    X = rng.normal(size=(60, 12))
    y = X[:, 7] + 0.1 * rng.normal(size=60)
    is_number = criterion == "squared_error"
    target = y if is_number else (y > 0).astype(np.int32)
    columns = tuple(TreeColumn(f"x{j}") for j in range(12))
    growth = Growth(criterion, max_depth=1)
    problem = TreeProblem(Cells(columns, 60, tuple(X.T)), target, 0 if is_number else 2, growth=growth)
    less = replace(problem, cells=replace(problem.cells, values=(*X.T[:7], np.zeros(60), *X.T[8:])))
    tree = grow(less)
    broken = [claim.name for claim in certify_tree_problem(problem, tree, tree) if claim.holds is False]
    assert "a better column" in broken
    best = grow(problem)
    assert not [claim.name for claim in certify_tree_problem(problem, best, best) if claim.holds is False]
