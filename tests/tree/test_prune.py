"""Pruning rules: hand-worked trees for every rule, and what must hold for every tree."""

from __future__ import annotations

from itertools import chain, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.tree.by_hand import by_hand
from tests.tree.random_trees import LAW, written_trees, written_trees_of_numbers
from tests.tree.sklearn_tree import from_sklearn

from margrove.errors import ParameterError
from margrove.tree.description import description_length
from margrove.tree.problem import Cells
from margrove.tree.prune import (
    RULES,
    binomial_test,
    chi2,
    cost_complexity,
    held_out_sums,
    mdl,
    pessimistic,
    prune,
    reduced_error,
    upper_error_rate,
)
from margrove.tree.significance import is_significant, stop_by_significance


def nodes(mask):
    return np.flatnonzero(mask).tolist()


def all_prunings(model, node=0):
    """Every set of cuts that leaves a different tree, as lists of nodes."""
    if model.is_leaf[node]:
        return [[]]
    below = [all_prunings(model, int(child)) for child in model.children(node)]
    return [[node]] + [list(chain(*chosen)) for chosen in product(*below)]


def as_mask(model, cuts):
    mask = np.zeros(model.n_nodes, dtype=bool)
    mask[cuts] = True
    return mask


# Every rule: what is left is part of what was grown.


@LAW
@given(written_trees(), st.sampled_from([rule for rule in RULES if rule != "reduced_error"]))
def test_a_pruned_tree_is_the_grown_one_with_leaves_for_subtrees(written, rule):
    model = by_hand(written, n_tests=3, n_candidates=5)
    pruned = prune(model, rule, alpha=0.01)
    ours = [0]  # the grown tree's number of each node that is left

    def walk(node, grown):
        if not pruned.is_leaf[node]:
            assert len(pruned.children(node)) == len(model.children(grown))
            for child, other in zip(pruned.children(node), model.children(grown), strict=True):
                ours.append(int(other))
                walk(int(child), int(other))

    walk(0, 0)
    np.testing.assert_array_equal(pruned.value, model.value[ours])


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "reduced_error"])
def test_a_leaf_alone_stays_a_leaf(rule):
    assert prune(by_hand([3, 4]), rule).n_nodes == 1


# χ²


def test_chi2_keeps_splits_above_a_significant_split():
    xor = by_hand((([9, 0], [0, 9]), ([0, 9], [9, 0])))
    assert nodes(chi2(xor, 0.05)) == []
    assert nodes(stop_by_significance(xor, 0.05)) == [0]  # where growing would have stopped


def test_chi2_cuts_from_the_leaves_up():
    model = by_hand((([30, 1], [29, 2]), ([0, 20], ([20, 0], [10, 1]))))
    pruned = prune(model, "chi2", level=0.05)
    np.testing.assert_array_equal(pruned.value, [[89, 24], [59, 3], [30, 21], [0, 20], [30, 1]])


def test_chi2_corrects_for_the_tests_there_were():
    table = ([8, 2], [2, 8])  # Fisher: p = 0.023
    assert nodes(chi2(by_hand(table, n_candidates=1))) == []
    assert nodes(chi2(by_hand(table, n_candidates=10))) == [0]
    assert nodes(chi2(by_hand(table, n_candidates=10), correct=False)) == []


@LAW
@given(written_trees(), st.floats(0, 1), st.floats(0, 1))
def test_chi2_leaves_a_larger_tree_for_a_larger_level_and_stopping_a_smaller_one(written, one, other):
    model = by_hand(written)
    strict, lax = sorted((one, other))
    assert (chi2(model, strict) >= chi2(model, lax)).all()
    assert (chi2(model, lax) <= stop_by_significance(model, lax)).all()
    cut, significant = chi2(model, lax), is_significant(model, lax)
    for node in np.flatnonzero(~model.is_leaf):  # the definition: none significant at or below
        assert cut[node] == (not significant[node : model.end[node]].any())


def test_chi2_prunes_numbers_by_the_f_test():
    chance = [[1.0, 3.0, 2.0], [2.0, 1.0, 3.5]]
    model = by_hand((tuple(chance), [9.0, 10.0, 11.0]), criterion="squared_error")
    assert scipy.stats.f_oneway(*chance).pvalue > 0.5
    assert prune(model, "chi2", criterion="squared_error").n_leaves == 2


# The sign test


def test_binomial_test_is_scipys_on_the_rows_that_only_one_gets_right():
    # The leaf says class 0. The subtree wins 12 rows of class 1 and 7 of class 2, and loses 3 + 2 rows of class 0.
    model = by_hand(([40, 1, 0], [3, 12, 1], [2, 0, 7]))
    p = scipy.stats.binomtest(19, 24, alternative="greater").pvalue
    assert nodes(binomial_test(model, p * 1.0001)) == []
    assert nodes(binomial_test(model, p * 0.9999)) == [0]


def test_binomial_test_cuts_a_subtree_that_predicts_one_class():
    assert nodes(binomial_test(by_hand(([9, 1], [5, 4])), 0.99)) == [0]


def test_binomial_test_looks_at_the_subtree_as_pruned_below():
    below = ([10, 0], [0, 2])  # wins two rows: p = 1/4, cut
    model = by_hand(([0, 30], below))
    assert nodes(binomial_test(model)) == [2]
    # As pruned it wins 10 rows of class 0 and loses 2 of class 1: p = P(B ≥ 10 of 12).
    p = scipy.stats.binomtest(10, 12, alternative="greater").pvalue
    assert 0 in nodes(binomial_test(model, p * 0.999))
    assert 0 not in nodes(binomial_test(model, p * 1.001))


def test_binomial_test_takes_fractions_of_rows_between_whole_ones():
    p = [
        min(level for level in np.linspace(0, 1, 257) if not binomial_test(by_hand(([20.0, 0], [0, won])), level).any())
        for won in (3.0, 3.5, 4.0)
    ]
    assert p[0] > p[1] > p[2]


# C4.5


@pytest.mark.parametrize(("n", "limit"), [(6, 0.206), (9, 0.143), (1, 0.750)])
def test_the_upper_limits_printed_in_the_book(n, limit):
    assert round(float(upper_error_rate(0, n)), 3) == limit


def test_the_upper_limit_is_where_the_binomial_has_the_confidence():
    for errors, n, confidence in ((1, 16, 0.25), (3, 10, 0.1), (0, 4, 0.5), (9, 10, 0.25)):
        rate = float(upper_error_rate(errors, n, confidence))
        assert scipy.stats.binom.cdf(errors, n, rate) == pytest.approx(confidence)
        assert rate == pytest.approx(scipy.stats.beta.ppf(1 - confidence, errors + 1, n - errors))
    assert upper_error_rate(5, 5) == 1.0


def test_pessimistic_prunes_the_books_congress_tree():
    # Quinlan, "C4.5", chapter 4: "education spending" and, above it, "adoption of the budget resolution". The book has
    # 3.273 against 2.512 errors, then 4.642 against 2.610; its program approximates the limit for errors > 0.
    education = ([6, 0], [9, 0], [0, 1])
    costs = 6 * upper_error_rate(0, 6) + 9 * upper_error_rate(0, 9) + upper_error_rate(0, 1)
    assert costs == pytest.approx(3.273, abs=1e-3)
    assert 16 * upper_error_rate(1, 16) == pytest.approx(2.512, abs=0.05)
    assert nodes(pessimistic(by_hand(education))) == [0]
    budget = by_hand((education, [151, 0], [1, 0]))
    assert 168 * upper_error_rate(1, 168) == pytest.approx(2.610, abs=0.1)
    np.testing.assert_array_equal(prune(budget, "pessimistic").value, [[167, 1]])


def test_pessimistic_keeps_a_subtree_that_pays():
    assert nodes(pessimistic(by_hand(([90, 0], [0, 10])))) == []


def cost_of_pessimistic(model):
    errors = model.weight - model.value.max(axis=1)
    return float((model.weight * upper_error_rate(errors, model.weight))[model.is_leaf].sum())


def bits(model):
    return sum(description_length(model))


@LAW
@given(written_trees(n_classes=2), st.sampled_from([(pessimistic, cost_of_pessimistic), (mdl, bits)]))
def test_no_other_pruning_costs_less_and_none_as_cheap_is_smaller(written, rule_and_cost):
    rule, cost = rule_and_cost
    model = by_hand(written, n_tests=2)
    pruned = model.cut(rule(model))
    others = [model.cut(as_mask(model, cuts)) for cuts in all_prunings(model)]
    costs = np.array([cost(other) for other in others])
    assert cost(pruned) <= costs.min() + 1e-9
    cheapest = [other for other, c in zip(others, costs, strict=True) if c <= costs.min() + 1e-12]
    assert pruned.n_leaves <= min(other.n_leaves for other in cheapest)


# MDL


def test_mdl_worked_by_hand():
    # Leaf: 1 + ½ log2 16 + 16 = 19 bits. Subtree: 1 + log2 c + 2 (1 + ½ log2 8) = 6 + log2 c. Equal at c = 2^13.
    table = ([8, 0], [0, 8])
    assert nodes(mdl(by_hand(table, n_tests=2.0**12))) == []
    assert nodes(mdl(by_hand(table, n_tests=2.0**13))) == [0]  # no shorter: cut
    assert nodes(mdl(by_hand(table, n_tests=2.0**12, n_columns=2))) == [0]
    assert nodes(mdl(by_hand(table, n_tests=np.inf))) == [0]


@LAW
@given(written_trees())
def test_mdl_never_makes_the_description_longer(written):
    model = by_hand(written, n_tests=4)
    assert bits(prune(model, "mdl")) <= bits(model) + 1e-9


@LAW
@given(written_trees_of_numbers())
def test_mdl_never_makes_the_description_of_numbers_longer(written):
    model = by_hand(written, criterion="squared_error", n_tests=4)
    before, after = (
        sum(description_length(tree, criterion="squared_error"))
        for tree in (model, prune(model, "mdl", criterion="squared_error"))
    )
    assert after <= before + 1e-9


def test_mdl_finds_the_step_in_noise(rng):
    X = rng.uniform(size=(400, 3))
    y = (X[:, 0] > 0.5) * 4.0 + rng.normal(size=400)
    model = from_sklearn(DecisionTreeRegressor(random_state=0).fit(X, y), n_candidates=399.0)
    assert model.n_leaves == 400
    pruned = prune(model, "mdl", criterion="squared_error")
    assert pruned.n_leaves == 2
    assert pruned.threshold[0] == pytest.approx(0.5, abs=0.02)


# Reduced error


def test_reduced_error_worked_by_hand():
    model = by_hand(([6, 0], ([1, 5], [3, 2])))
    held_out = np.array([[4.0, 3.0], [3.0, 0.0], [1.0, 3.0], [0.0, 2.0], [1.0, 1.0]])
    # Node 2 says class 1 (7 of 11): 1 error as a leaf; its leaves: 0 + 1. No fewer: cut. Root: 3 errors, subtree 0 + 1.
    assert nodes(reduced_error(model, held_out)) == [2]


def test_reduced_error_cuts_where_no_row_comes():
    model = by_hand(([6, 0], ([1, 5], [3, 2])))
    held_out = np.array([[4.0, 0.0], [4.0, 0.0], [0, 0], [0, 0], [0, 0]])
    assert nodes(reduced_error(model, held_out)) == [0, 2]


def cells_of(model, X):
    return Cells(model.columns, len(X), tuple(X.T))


def test_reduced_error_never_makes_more_errors_on_the_held_out_rows(rng):
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(np.int32)
    model = from_sklearn(DecisionTreeClassifier(random_state=0).fit(X[:200], y[:200]))
    cells = cells_of(model, X[200:])
    held_out = held_out_sums(model, model.apply(cells), y[200:])

    def errors(tree):
        return np.count_nonzero(tree.value[tree.apply(cells)].argmax(axis=1) != y[200:])

    pruned = prune(model, "reduced_error", held_out=held_out)
    assert pruned.n_leaves < model.n_leaves / 2
    assert errors(pruned) <= min(errors(model), errors(model.cut(np.ones(model.n_nodes, dtype=bool))))


def test_reduced_error_of_numbers_far_from_zero(rng):
    X = rng.normal(size=(300, 3))
    y = 1e6 + (X[:, 0] > 0) + 0.3 * rng.normal(size=300)
    model = from_sklearn(DecisionTreeRegressor(random_state=0).fit(X[:200], y[:200]))
    cells = cells_of(model, X[200:])
    held_out = held_out_sums(model, model.apply(cells), y[200:], criterion="squared_error")

    def error(tree):
        return np.sum((tree.value[tree.apply(cells), 0] - y[200:]) ** 2)

    pruned = prune(model, "reduced_error", held_out=held_out, criterion="squared_error")
    assert 2 <= pruned.n_leaves < model.n_leaves / 3
    assert error(pruned) < error(model)
    assert error(pruned) < error(model.cut(np.ones(model.n_nodes, dtype=bool)))


def test_held_out_sums_are_those_of_the_rows_of_each_node(rng):
    X, y, weight = rng.normal(size=(80, 2)), rng.integers(0, 3, 80), rng.uniform(0.5, 2, 80)
    model = from_sklearn(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[:40], y[:40]))
    cells = cells_of(model, X)
    sums = held_out_sums(model, model.apply(cells), y, weight)
    for node, rows in enumerate(model.rows_of_nodes(cells)):
        np.testing.assert_allclose(sums[node], np.bincount(y[rows], weight[rows], 3))


# The dispatcher and its errors


def test_level_none_is_the_rules_own_default():
    model = by_hand(([30, 2], ([5, 1], [0, 4])), n_candidates=3)
    for rule, level in (("chi2", 0.05), ("binomial_test", 0.05), ("pessimistic", 0.25)):
        np.testing.assert_array_equal(prune(model, rule).value, prune(model, rule, level=level).value)


def test_cost_complexity_at_zero_cuts_nothing():
    model = by_hand(([2, 2], [3, 3]))  # no gain at all
    assert nodes(cost_complexity(model, 0.0)) == []
    assert nodes(cost_complexity(model, 1e-9)) == [0]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"rule": "c5"}, "rule is 'c5'"),
        ({"rule": "chi2", "level": 2}, "level is 2"),
        ({"rule": "binomial_test", "level": -1}, "level is -1"),
        ({"rule": "pessimistic", "level": 25}, "confidence is 25"),
        ({"rule": "cost_complexity", "alpha": -0.1}, "alpha is -0.1"),
        ({"rule": "reduced_error"}, "held_out is None"),
        ({"rule": "pessimistic", "criterion": "squared_error"}, "counts classification errors"),
        ({"rule": "binomial_test", "criterion": "squared_error"}, "counts classification errors"),
        ({"rule": "chi2", "criterion": "absolute_error"}, "no significance test"),
    ],
)
def test_impossible_parameters_are_refused_with_a_cure(how, message):
    with pytest.raises(ParameterError, match=message):
        prune(by_hand(([2, 1], [1, 3])), **how)
