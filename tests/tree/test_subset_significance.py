"""The p-value of a subset split: that of the whole table of levels, which pays for the choice of the subset."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from tests.tree.random_trees import LAW

from margrove import DecisionTreeClassifier, DecisionTreeRegressor, information_gain
from margrove.tree.association import level_table
from margrove.tree.groups import groups_of_levels
from margrove.tree.reference import grow
from margrove.tree.significance import split_p_values


def named(codes):
    return [f"level {code:03}" for code in codes]


def test_p_of_a_subset_is_that_of_all_its_levels(problem_of, rng):
    codes, target = rng.integers(0, 6, 900), rng.integers(0, 3, 900)
    tree = grow(problem_of({"c": named(codes)}, target, tests={"c": "subset"}, max_depth=1))
    whole = scipy.stats.chi2_contingency(pd.crosstab(codes, target).to_numpy(), correction=False)
    assert split_p_values(tree, correct=False, small="chi2")[0] == pytest.approx(whole.pvalue, rel=1e-9)
    assert split_p_values(tree, correct=False)[0] == pytest.approx(whole.pvalue, abs=2e-3)  # the limit of many rows


def test_p_of_thin_levels_is_that_of_the_permutation_test(problem_of, rng):
    for seed in range(5):
        codes, target = rng.integers(0, 25, 60), (rng.random(60) < 0.3).astype(int)
        table = pd.crosstab(codes, target).to_numpy()
        tree = grow(problem_of({"c": named(codes)}, target, tests={"c": "subset"}, max_depth=1))
        sums = table.sum(axis=1), table.sum(axis=0)
        drawn = scipy.stats.random_table.rvs(*sums, size=4000, random_state=seed)
        statistic = (drawn**2 / np.outer(*sums)).sum(axis=(1, 2))
        share = np.mean(statistic >= (table**2 / np.outer(*sums)).sum() * (1 - 1e-9))
        assert split_p_values(tree, correct=False)[0] == pytest.approx(share, abs=0.04)


def test_two_levels_are_tested_as_the_split_they_are(problem_of):
    columns, target = {"c": ["u"] * 12 + ["v"] * 8}, ["m"] * 9 + ["n"] * 10 + ["m"]
    p = [split_p_values(grow(problem_of(columns, target, tests={"c": test}, max_depth=1))) for test in ("subset", None)]
    np.testing.assert_array_equal(*p)
    assert p[0][0] == pytest.approx(scipy.stats.fisher_exact([[9, 3], [1, 7]]).pvalue)


@LAW
@given(st.integers(0, 10**6))
def test_no_subset_has_a_larger_statistic_than_all_levels(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 40))
    target, weight = rng.integers(0, 3, n), rng.choice([1.0, 2.0, 0.5], n)
    level = groups_of_levels("subset", rng.integers(-1, 5, n).astype(np.int32)).group
    side = rng.integers(0, 2, level.max() + 1)[level]
    for numbers, n_classes in ((target.astype(float), 3), (rng.normal(size=n), 0)):
        merged = np.unique(side, return_inverse=True)[1]
        whole = level_table(numbers, weight, level, n_classes)
        assert level_table(numbers, weight, merged, n_classes).association <= whole.association + 1e-12


def test_a_column_of_subsets_counts_as_one_candidate(problem_of, rng):
    x, codes, target = rng.normal(size=80).tolist(), rng.integers(0, 8, 80), rng.integers(0, 2, 80)
    tests = {"c": "subset", "d": "one_vs_rest"}
    tree = grow(problem_of({"x": x, "c": named(codes), "d": named(codes)}, target, tests=tests, max_depth=1))
    assert tree.n_candidates[0] == 79 + 1 + 8


def test_a_column_that_names_the_rows_is_not_significant(rng):
    target = rng.integers(0, 2, 200)
    rows = pd.DataFrame({"row": named(range(200))})
    tree = DecisionTreeClassifier(categorical="subset", max_depth=1).fit(rows, target)
    assert tree.p_values()[0] == 1.0  # all rows on their right sides, and nothing learned
    assert DecisionTreeClassifier(categorical="subset", significance=0.5).fit(rows, target).get_n_leaves() == 1
    numbers = DecisionTreeRegressor(categorical="subset", max_depth=1).fit(rows, rng.normal(size=200))
    assert numbers.p_values()[0] == 1.0


def test_forty_informative_levels_are_significant(rng):
    codes = rng.integers(0, 40, 2000)
    target = (rng.random(2000) < np.where(codes < 20, 0.6, 0.4)).astype(int)
    table = pd.DataFrame({"c": named(codes), "x": rng.normal(size=2000)})
    tree = DecisionTreeClassifier(significance=0.01).fit(table, target)
    assert tree.nodes_.columns[tree.nodes_.feature[0]].name == "c"
    assert tree.p_values()[0] < 0.01


def test_noise_of_many_levels_is_significant_no_more_often_than_the_level(rng):
    found = []
    for _ in range(150):
        table = pd.DataFrame({name: named(rng.integers(0, size, 120)) for name, size in (("a", 12), ("b", 30))})
        tree = DecisionTreeClassifier(categorical="subset", max_depth=1).fit(table, rng.random(120) < 0.2)
        found.append(tree.p_values()[0])
    # Two columns, the better by gain: of 150 about 8 below 0.05; more than 16 has the probability 0.002.
    assert np.sum(np.array(found) < 0.05) <= 16


def test_p_of_numbers_is_the_f_test_of_all_levels(rng):
    codes = rng.integers(0, 7, 90)
    target = rng.normal(size=90) + 0.1 * codes
    table = pd.DataFrame({"c": named(codes)})
    for criterion in ("squared_error", "gaussian_entropy"):
        for engine in ("native", "reference"):
            tree = DecisionTreeRegressor(criterion=criterion, engine=engine, max_depth=1, categorical="subset")
            p = tree.fit(table, target).p_values()[0]
            whole = scipy.stats.f_oneway(*(target[codes == code] for code in range(7)))
            assert p == pytest.approx(whole.pvalue, rel=1e-6)
    medians = DecisionTreeRegressor(criterion="absolute_error", max_depth=1, categorical="subset").fit(table, target)
    assert np.isnan(medians.p_values()).all()


def test_engines_agree_on_p_and_the_certificate_holds(rng):
    from margrove import certify

    codes = rng.integers(0, 15, 400)
    table = pd.DataFrame({"c": pd.Series(named(codes)).where(rng.random(400) > 0.1), "x": rng.normal(size=400)})
    target = rng.integers(0, 4, 400)
    native, reference = (
        DecisionTreeClassifier(engine=engine, max_depth=4).fit(table, target) for engine in ("native", "reference")
    )
    np.testing.assert_allclose(np.sort(native.p_values()), np.sort(reference.p_values()), rtol=1e-6)
    assert certify(native, table, target).holds
    assert (native.nodes_.n_levels > 2).any()


def test_a_tree_of_an_old_file_keeps_the_p_it_had(problem_of, rng):
    codes, target = rng.integers(0, 6, 60), rng.integers(0, 2, 60)
    tree = grow(problem_of({"c": named(codes)}, target, tests={"c": "subset"}, max_depth=1))
    old = replace(tree, n_levels=None, association=None, inverse_weight=None)
    branches = scipy.stats.chi2_contingency(tree.value[tree.children(0)], correction=False)
    assert split_p_values(old, correct=False, small="chi2")[0] == pytest.approx(branches.pvalue)


def test_selection_by_subsets_has_the_same_p(rng):
    codes, target = rng.integers(0, 9, 300), rng.integers(0, 2, 300)
    table = pd.DataFrame({"c": named(codes)})
    _, p = information_gain(table, target, categorical="subset")
    tree = DecisionTreeClassifier(criterion="entropy", categorical="subset", max_depth=1).fit(table, target)
    assert p[0] == pytest.approx(tree.p_values()[0])
    _, as_before = information_gain(table, target, categorical="multiway")
    assert p[0] == pytest.approx(as_before[0], abs=0.01)  # the same table; one by draws or χ², one by gamma
