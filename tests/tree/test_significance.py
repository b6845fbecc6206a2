"""Significance of splits: against scipy, by hand, and by what must hold for every tree."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pandas
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.tree.by_hand import by_hand
from tests.tree.random_trees import LAW, written_trees, written_trees_of_numbers
from tests.tree.sklearn_tree import from_sklearn

import margrove
from margrove.errors import ParameterError
from margrove.tree.reference import grow
from margrove.tree.significance import (
    DRAWS,
    MOST_ROWS,
    branch_chi2,
    corrected,
    is_significant,
    margin_of,
    permutation_moments,
    split_p_values,
    stop_by_significance,
    target_variance,
)


def stump(table, **how):
    return by_hand(tuple(list(row) for row in table), **how)


def p_of(table, **how):
    """The uncorrected p of one table."""
    return split_p_values(stump(table), correct=False, **how)[0]


@pytest.fixture
def grown(rng):
    X = rng.normal(size=(600, 4))
    y = np.digitize(X[:, 0] + X[:, 1] * (X[:, 2] > 0) + 0.7 * rng.normal(size=600), [-1, 0.5, 1.5])
    return from_sklearn(DecisionTreeClassifier(max_depth=7, random_state=0).fit(X, y))


def test_chi2_is_scipys_at_every_node(grown):
    p = split_p_values(grown, correct=False, small="chi2")
    inner = np.flatnonzero(~grown.is_leaf)
    assert len(inner) > 30
    for node in inner:
        table = grown.value[grown.children(node)]
        table = table[:, table.sum(axis=0) > 0]
        np.testing.assert_allclose(p[node], scipy.stats.chi2_contingency(table, correction=False).pvalue, rtol=1e-9)
    assert np.isnan(p[grown.is_leaf]).all()


def test_chi2_of_many_branches_is_scipys(rng):
    table = rng.integers(20, 60, size=(5, 4))
    expected = scipy.stats.chi2_contingency(table, correction=False).pvalue
    np.testing.assert_allclose(p_of(table), expected, rtol=1e-10)  # no expected count is small: no other test


@pytest.mark.parametrize("seed", range(40))
def test_small_fourfold_tables_get_fishers_exact_test(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers([[0, 1], [1, 0]], [[5, 40], [5, 20]])  # the first column's sum is 8 at most: some E < 5
    expected = scipy.stats.fisher_exact(table).pvalue
    np.testing.assert_allclose(p_of(table), expected, rtol=1e-9)


def test_fisher_by_hand_the_lady_tasting_tea():
    assert p_of([[4, 0], [0, 4]]) == pytest.approx(2 / 70)
    assert p_of([[3, 1], [1, 3]]) == pytest.approx(34 / 70)


def test_fisher_holds_for_rare_classes_among_many_rows():
    table = [[3, 60_000], [1, 140_000]]
    np.testing.assert_allclose(p_of(table), scipy.stats.fisher_exact(table).pvalue, rtol=1e-7)


def test_fisher_ignores_classes_that_are_absent():
    assert p_of([[4, 0, 0], [0, 0, 4]]) == pytest.approx(2 / 70)


def test_a_count_is_small_below_five_expected():
    just_five = [[9, 1], [11, 19]]  # expected 20·10/40 = 5
    assert p_of(just_five) == p_of(just_five, small="chi2")
    below = [[9, 1], [10, 20]]
    assert p_of(below) == pytest.approx(scipy.stats.fisher_exact(below).pvalue)
    assert p_of(below) != p_of(below, small="chi2")


def all_statistics(table):
    """X² of the table, and of the tables of every assignment of its labels to its rows."""
    table = np.asarray(table)
    labels = np.repeat(np.arange(table.shape[1]), table.sum(axis=0))
    branch = np.repeat(np.arange(table.shape[0]), table.sum(axis=1))
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()

    def statistic(order):
        counts = np.zeros(table.shape)
        np.add.at(counts, (branch, list(order)), 1)
        return ((counts - expected) ** 2 / expected).sum()

    every = [statistic(order) for order in set(permutations(labels.tolist()))]
    return ((table - expected) ** 2 / expected).sum(), np.array(every)


@pytest.mark.parametrize(
    "table",
    [[[2, 0, 1], [0, 2, 2]], [[2, 0], [0, 2], [1, 2]], [[1, 1, 1], [1, 1, 2]], [[2, 0, 0], [0, 2, 1], [0, 0, 2]]],
)
def test_permutation_test_agrees_with_all_permutations(table):
    found, every = all_statistics(table)
    assert p_of(table) == pytest.approx(np.mean(every >= found - 1e-9), abs=4 * np.sqrt(0.25 / DRAWS))


@pytest.mark.parametrize("table", [[[2, 0, 1], [0, 2, 2]], [[1, 0], [1, 0], [1, 4]], [[1, 0, 0], [0, 1, 4]]])
def test_moments_are_those_of_all_permutations(table):
    _, every = all_statistics(table)
    moments = permutation_moments(np.sum(table), *(margin_of(np.sum(table, axis=axis)) for axis in (1, 0)))
    assert moments == pytest.approx((every.mean(), every.var()))


def test_permutation_p_depends_on_the_table_alone():
    table = [[5, 0, 1], [1, 4, 2]]
    alone = p_of(table)
    assert p_of([row[::-1] for row in table[::-1]]) == alone  # classes and branches in any order
    among_others = by_hand(((table[0], table[1]), ([3, 0, 1], [0, 2, 2])))
    assert split_p_values(among_others, correct=False)[1] == alone


def test_a_p_too_small_for_the_draws_is_still_small():
    perfect = [[12, 0, 0], [0, 6, 6]]
    n_tables = scipy.special.comb(24, 12)
    assert (
        1 / n_tables / 50 < p_of(perfect) < 1 / (DRAWS + 1)
    )  # exact: one labelling (and none better) of the 24 over 12


def test_gamma_of_large_tables_is_near_the_permutation_p(rng):
    rows, columns = np.array([40, MOST_ROWS]), np.array([9, 31, 100])  # too many rows to draw
    tables = scipy.stats.random_table.rvs(rows, columns, size=4000, random_state=rng)
    expected = np.outer(rows, columns) / rows.sum()
    statistic = ((tables - expected) ** 2 / expected).sum(axis=(1, 2))
    for share in (0.5, 0.1, 0.02):
        table = tables[np.argsort(statistic)[int(4000 * (1 - share))]]
        assert p_of(table) == pytest.approx(share, rel=0.25)


def test_three_rows_are_not_significant():
    assert p_of([[1, 0, 1], [0, 1, 0]]) == 1.0
    assert p_of([[1, 0], [0, 1]]) == 1.0


def test_a_constant_statistic_is_not_significant():
    assert p_of([[1, 0, 1, 0], [0, 1, 0, 1]]) == 1.0  # each class once: all tables have the same X²


def test_a_node_of_one_class_has_p_one():
    assert p_of([[5, 0], [7, 0]]) == 1.0


def test_fractional_weights_are_tested_by_chi2():
    model = stump([[2.5, 0.5], [0.5, 2.5]])
    assert split_p_values(model, correct=False)[0] == split_p_values(model, correct=False, small="chi2")[0]


def test_whole_weights_count_as_repeated_rows(rng):
    X, y = rng.integers(0, 5, size=(60, 2)), rng.integers(0, 3, size=60)
    weight = rng.integers(1, 4, size=60)
    grower = DecisionTreeClassifier(max_depth=3, random_state=0)
    weighted = from_sklearn(grower.fit(X, y, sample_weight=weight))
    repeated = from_sklearn(grower.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)))
    np.testing.assert_array_equal(split_p_values(weighted), split_p_values(repeated))


def test_correction_is_that_of_the_best_of_c():
    assert corrected(np.array([0.1]), np.array([3.0]))[0] == pytest.approx(1 - 0.9**3)
    assert corrected(np.array([1e-30]), np.array([1e6]))[0] == pytest.approx(1e-24)
    assert corrected(np.array([0.5]), np.array([np.inf]))[0] == 1.0
    np.testing.assert_array_equal(corrected(np.array([0.0, 1.0]), np.array([np.inf, 5.0])), [0.0, 1.0])


def test_correction_uses_the_candidates_of_all_columns():
    model = stump([[30, 10], [10, 30]], n_tests=2, n_candidates=7)
    plain = split_p_values(model, correct=False)[0]
    assert split_p_values(model)[0] == pytest.approx(1 - (1 - plain) ** 7)


@LAW
@given(written_trees(), st.floats(0, 1), st.floats(0, 1))
def test_p_is_a_probability_and_a_larger_level_keeps_more(written, one, other):
    model = by_hand(written, n_candidates=4)
    p = split_p_values(model)
    assert ((p[~model.is_leaf] >= 0) & (p[~model.is_leaf] <= 1)).all()
    assert (p[~model.is_leaf] >= split_p_values(model, correct=False)[~model.is_leaf] * (1 - 1e-12)).all()
    strict, lax = sorted((one, other))
    assert (is_significant(model, strict) <= is_significant(model, lax)).all()
    assert model.cut(stop_by_significance(model, strict)).n_nodes <= model.cut(stop_by_significance(model, lax)).n_nodes


def test_stopping_cuts_at_the_first_split_that_is_not_significant():
    # The root gains nothing (XOR), so growth stops there, whatever comes below.
    xor = by_hand((([9, 0], [0, 9]), ([0, 9], [9, 0])))
    assert xor.cut(stop_by_significance(xor, 0.05)).n_nodes == 1
    # A significant root; of its branches one splits by chance.
    model = by_hand((([30, 1], [29, 2]), ([0, 20], [20, 0])))
    stopped = model.cut(stop_by_significance(model, 0.05))
    np.testing.assert_array_equal(stopped.value, [[79, 23], [59, 3], [20, 20], [0, 20], [20, 0]])


def test_a_split_at_the_level_is_kept():
    p = 2 / 70  # the lady's
    model = stump([[4, 0], [0, 4]])
    found = split_p_values(model)[0]
    assert found == pytest.approx(p)
    assert not stop_by_significance(model, found).any()
    assert stop_by_significance(model, np.nextafter(found, 0)).any()


def test_one_branch_against_its_parent_is_a_test_of_fit(grown):
    statistic, p = branch_chi2(grown)
    for node in range(1, grown.n_nodes):
        parent = grown.value[grown.parent[node]]
        found = grown.value[node][parent > 0]
        expected = parent[parent > 0] / parent.sum() * found.sum()
        if len(found) > 1:
            chi2 = scipy.stats.chisquare(found, expected)
            np.testing.assert_allclose([statistic[node], p[node]], [chi2.statistic, chi2.pvalue], rtol=1e-9)
    assert np.isnan(statistic[0])
    assert np.isnan(p[0])


def test_the_branches_statistics_sum_to_the_splits():
    table = np.array([[30, 10, 20], [12, 28, 25], [22, 21, 20]])
    statistic, _ = branch_chi2(stump(table))
    assert statistic[1:].sum() == pytest.approx(scipy.stats.chi2_contingency(table, correction=False).statistic)


def test_numbers_are_tested_by_one_way_anova(rng):
    branches = [rng.normal(loc, size=size).tolist() for loc, size in ((0, 8), (0.5, 5), (1, 9))]
    model = by_hand(tuple(branches), criterion="squared_error")
    expected = scipy.stats.f_oneway(*branches).pvalue
    assert split_p_values(model, criterion="squared_error", correct=False)[0] == pytest.approx(expected)


def test_gaussian_entropy_has_the_same_test(rng):
    model = by_hand(([1.0, 2.0, 2.5], [4.0, 4.5, 3.0]), criterion="squared_error")
    entropy = replace(model, impurity=0.5 * (1 + np.log(2 * np.pi) + np.log(model.impurity)))
    np.testing.assert_allclose(target_variance(entropy, "gaussian_entropy"), model.impurity)
    np.testing.assert_allclose(
        split_p_values(entropy, criterion="gaussian_entropy"), split_p_values(model, criterion="squared_error")
    )


def test_numbers_of_scikit_learns_tree(rng):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200) + 1000
    grower = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    model = from_sklearn(grower)
    p = split_p_values(model, criterion="squared_error", correct=False)
    reached = grower.decision_path(X).toarray().astype(bool)
    for node in np.flatnonzero(~model.is_leaf):
        groups = [y[reached[:, child]] for child in model.children(node)]
        if min(len(group) for group in groups) > 1:
            assert p[node] == pytest.approx(scipy.stats.f_oneway(*groups).pvalue, rel=1e-5)


def test_one_row_in_each_branch_is_not_significant_and_branches_without_spread_no_more_than_a_permutation():
    for branches, p in (
        (([1.0], [2.0]), 1.0),
        (([1.0, 1.0], [2.0, 2.0]), 1 / 6),  # of the six ways to part four rows
        (([1.0, 2.0], [2.0, 1.0]), 1.0),
        (([1.0] * 30, [2.0] * 30), 1 / math.comb(60, 30)),
        (([1.0], [2.0] * 2, [3.0] * 3), 1 / 60),
    ):
        found = split_p_values(by_hand(branches, criterion="squared_error"), criterion="squared_error")[0]
        assert found == pytest.approx(p, rel=1e-9)


@LAW
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=4),
    st.lists(st.integers(-3, 3), min_size=1, max_size=4),
    st.sampled_from([1.0, 1e-9, 1e9]),
)
def test_p_of_few_numbers_is_at_least_that_of_their_best_permutation(first, second, unit):
    branches = [unit * x for x in first], [unit * x for x in second]
    p = split_p_values(by_hand(branches, criterion="squared_error"), criterion="squared_error", correct=False)[0]
    assert p >= 1 / math.comb(len(first) + len(second), len(first)) - 1e-12


def test_without_spread_p_is_that_of_the_permutation_test():
    values = np.array([1.0, 1.0, 1.0, 4.0, 4.0])
    sizes = [len(set(values[list(part)])) for part in combinations(range(5), 3)]
    rests = [len(set(np.delete(values, list(part)))) for part in combinations(range(5), 3)]
    as_sure = sum(one == rest == 1 for one, rest in zip(sizes, rests, strict=True))
    model = by_hand((values[:3].tolist(), values[3:].tolist()), criterion="squared_error")
    assert split_p_values(model, criterion="squared_error")[0] == pytest.approx(as_sure / len(sizes))


def test_many_rows_with_a_spread_keep_the_f_test(rng):
    branches = rng.normal(0, 1, 40).tolist(), rng.normal(9, 1, 40).tolist()
    expected = scipy.stats.f_oneway(*branches).pvalue
    assert expected < 1 / math.comb(80, 40)
    model = by_hand(branches, criterion="squared_error")
    assert split_p_values(model, criterion="squared_error")[0] == pytest.approx(expected, rel=1e-6)


def test_p_of_levels_without_spread_is_at_least_that_of_a_permutation():
    cells, y = pandas.DataFrame({"level": ["a"] * 3 + ["b"] * 3 + ["c"] * 3}), np.repeat([1.0, 2.0, 3.0], 3)
    tree = margrove.DecisionTreeRegressor(max_depth=1, categorical="subset").fit(cells, y)
    assert tree.nodes_.n_levels[0] == 3
    assert tree.p_values()[0] == pytest.approx(6**3 / math.factorial(9))


@LAW
@given(written_trees_of_numbers())
def test_p_of_numbers_is_a_probability(written):
    model = by_hand(written, criterion="squared_error")
    p = split_p_values(model, criterion="squared_error")[~model.is_leaf]
    assert ((p >= 0) & (p <= 1)).all()


def test_absolute_error_has_no_test():
    model = by_hand(([1.0, 2.0], [4.0]), criterion="squared_error")
    assert np.isnan(split_p_values(model, criterion="absolute_error")).all()
    with pytest.raises(ParameterError, match="criterion is 'absolute_error'"):
        stop_by_significance(model, 0.05, criterion="absolute_error")


def test_a_tree_of_one_leaf_has_nothing_to_test():
    model = by_hand([3, 4])
    assert np.isnan(split_p_values(model)).all()
    assert np.isnan(branch_chi2(model)[0]).all()
    assert not stop_by_significance(model, 0.05).any()


@pytest.mark.parametrize("level", [-0.1, 1.5, float("nan"), "5%", True])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(ParameterError, match="level is"):
        stop_by_significance(stump([[1, 2], [2, 1]]), level)


def test_an_unknown_small_test_is_refused():
    with pytest.raises(ParameterError, match="small is 'yates'"):
        split_p_values(stump([[1, 2], [2, 1]]), small="yates")


@pytest.mark.parametrize("seed", range(12))
def test_tables_are_those_of_the_rows_of_a_grown_tree(seed, ugly_problem):
    problem = ugly_problem(seed, "gini", max_rows=40)
    model = grow(problem)
    weight = np.ones(problem.cells.n_rows) if problem.weight is None else problem.weight
    rows = model.rows_of_nodes(problem.cells)
    p = split_p_values(model, correct=False, small="chi2")
    for node in np.flatnonzero(~model.is_leaf):
        table = np.array(
            [np.bincount(problem.target[rows[b]], weight[rows[b]], problem.n_classes) for b in model.children(node)]
        )
        np.testing.assert_allclose(model.value[model.children(node)], table)
        table = table[:, table.sum(axis=0) > 0]
        assert p[node] == pytest.approx(scipy.stats.chi2_contingency(table, correction=False).pvalue)
    assert (split_p_values(model)[~model.is_leaf] <= 1).all()


def test_values_clipped_by_monotone_constraints_are_tested_as_predicted():
    # A parent held at (4, 4) over branches that sum to (6, 2): the test is that of the branches.
    model = stump([[4, 0], [2, 2]])
    held = replace(model, value=np.array([[4.0, 4.0], [4.0, 0.0], [2.0, 2.0]]))
    assert (
        split_p_values(held)[0]
        == split_p_values(model)[0]
        == pytest.approx(scipy.stats.fisher_exact([[4, 0], [2, 2]])[1])
    )
