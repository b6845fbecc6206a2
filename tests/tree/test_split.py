"""The best test of a node, against hand-worked tables and against every test there is."""

from __future__ import annotations

from itertools import product
from math import inf, log, log2, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from margrove.errors import ParameterError
from margrove.tree import impurity
from margrove.tree.problem import VARIANCE_FLOOR, Cells, TreeColumn
from margrove.tree.split import SplitSearch
from margrove.tree.thresholds import RIDGE, gaussian_cuts, halfway, logistic_cuts, quantile_cuts

CRITERIA = ("entropy", "gini", "error", "squared_error", "gaussian_entropy", "absolute_error")
seeds = st.integers(0, 2**32 - 1)


def at_the_root(problem):
    search = SplitSearch(problem)
    return search, search.node(np.arange(problem.cells.n_rows))


# ------------------------------------------------------------------------------------- the same, from the definitions


def plain_impurity(problem, rows):
    """From the formulas of problem.py, row by row."""
    weight = np.ones(len(problem.target)) if problem.weight is None else problem.weight
    everyone, kind = problem.target - problem.target[0] * (problem.n_classes == 0), problem.growth.criterion
    w, y = weight[rows], everyone[rows]
    if problem.n_classes:
        p = [float(w[y == k].sum() / w.sum()) for k in range(problem.n_classes)]
        if kind == "entropy":
            return -sum(share * log2(share) for share in p if share > 0)
        return sum(share * (1 - share) for share in p) if kind == "gini" else 1 - max(p)
    if kind == "absolute_error":
        return min(float(w @ abs(y - middle) / w.sum()) for middle in y)
    variance = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    if kind == "squared_error":
        return float(variance)
    floor = VARIANCE_FLOOR * np.average((everyone - np.average(everyone, weights=weight)) ** 2, weights=weight)
    return 0.5 * (1 + log(2 * pi) + log(max(variance, floor, np.finfo(float).tiny)))


def every_test(problem, j):
    """The branch of each row, for each test that column j offers."""
    column = problem.cells.columns[j]
    if column.test == "threshold":
        x = problem.cells.column(j).astype(float)
        is_missing = np.isnan(x)
        for theta in halfway(np.unique(x[~is_missing])):
            for side in (0, 1) if is_missing.any() else (0,):
                yield np.where(is_missing, side, x > theta).astype(int)
        if is_missing.any() and not is_missing.all():
            yield is_missing.astype(int)
        return
    codes = problem.cells.codes(j)
    levels = np.unique(codes)
    if len(levels) < 2:
        return
    if column.test in ("multiway", "intervals"):
        yield np.searchsorted(levels, codes)
    elif column.test == "one_vs_rest":
        yield from ((codes == level).astype(int) for level in levels)
    else:
        for sides in product((0, 1), repeat=len(levels) - 1):
            if any(sides):
                yield np.array([0, *sides])[np.searchsorted(levels, codes)]


def plain_gain(problem, branch):
    weight = np.ones(len(problem.target)) if problem.weight is None else problem.weight
    after = sum(
        weight[branch == b].sum() / weight.sum() * plain_impurity(problem, branch == b) for b in np.unique(branch)
    )
    return plain_impurity(problem, np.full(len(branch), True)) - after


def is_large_enough(problem, branch):
    weight = np.ones(len(problem.target)) if problem.weight is None else problem.weight
    return all(
        (branch == b).sum() >= problem.growth.min_samples_leaf
        and weight[branch == b].sum() >= problem.growth.min_weight_leaf
        for b in np.unique(branch)
    )


@settings(max_examples=300, deadline=None)
@given(seed=seeds, criterion=st.sampled_from(CRITERIA), least=st.integers(1, 4), weight=st.sampled_from([0.0, 2.5]))
def test_no_test_of_a_column_gains_more(ugly_problem, seed, criterion, least, weight):
    problem = ugly_problem(seed, criterion, min_samples_leaf=least, min_weight_leaf=weight)
    search, root = at_the_root(problem)
    assert root.impurity == pytest.approx(plain_impurity(problem, np.full(len(root.rows), True)), rel=1e-9, abs=1e-12)
    for j, column in enumerate(problem.cells.columns):
        gains = [plain_gain(problem, branch) for branch in every_test(problem, j) if is_large_enough(problem, branch)]
        split = search.best_test(root, j)
        rounding = 1e-9 * max(root.gain_unit, 1e-3 if problem.is_regression else 1.0)
        if split is None:
            # Only a subset search can miss: where a limit on the leaves forbids the best, or by its order.
            assert not gains or column.test == "subset"
            continue
        assert split.gain == pytest.approx(plain_gain(problem, split.branch), abs=rounding)
        assert split.gain <= max(gains) + rounding
        is_exact = column.test != "subset" or (
            least == 1 and weight == 0 and (0 < problem.n_classes <= 2 or criterion == "squared_error")
        )
        if is_exact:
            assert split.gain >= max(gains) - rounding


@settings(max_examples=200, deadline=None)
@given(seed=seeds, criterion=st.sampled_from(CRITERIA))
def test_a_split_has_the_branch_of_each_row(ugly_problem, seed, criterion):
    problem = ugly_problem(seed, criterion)
    search, root = at_the_root(problem)
    split = search.best_split(root)
    if split is None:
        return
    n_branches = len(split.bounds)
    assert sorted(set(split.branch)) == list(range(n_branches))
    assert n_branches >= 2
    column = problem.cells.columns[split.column]
    if column.test == "threshold":
        x = problem.cells.column(split.column).astype(float)
        expected = np.where(np.isnan(x), split.missing_branch, x > split.threshold)
    else:
        codes = problem.cells.codes(split.column)
        expected = np.where(codes < 0, split.missing_branch, split.level_branch[codes])
        assert ((split.level_branch >= 0) == np.isin(np.arange(column.n_codes), codes)).all()
    assert (split.branch == expected).all()
    weight = search.node(np.arange(len(root.rows))).row_weight
    heaviest = max(weight[split.branch == b].sum() for b in range(n_branches))
    assert weight[split.branch == split.default_branch].sum() == pytest.approx(heaviest)


def share_of_best_subset(problem_of, rng, criterion):
    """What the search gains, of what the best of 31 subsets of six levels gains: six classes, skewed differently."""
    shares, level = rng.dirichlet(np.full(6, 0.5), 6), rng.integers(0, 6, 60)
    target = [int(rng.choice(6, p=shares[at])) for at in level]
    columns = {"level": [f"l{at}" for at in level]}
    problem = problem_of(columns, target, tests={"level": "subset"}, criterion=criterion)
    search, root = at_the_root(problem)
    return search.best_test(root, 0).gain / max(plain_gain(problem, branch) for branch in every_test(problem, 0))


@settings(max_examples=30, deadline=None)
@given(seed=seeds, criterion=st.sampled_from(("entropy", "gini")))
def test_the_subset_search_of_many_classes_is_close_to_the_best(seed, criterion, problem_of):
    assert 0.75 <= share_of_best_subset(problem_of, np.random.default_rng(seed), criterion) <= 1 + 1e-12


def test_the_subset_search_of_many_classes_is_mostly_exact(problem_of, rng):
    found = np.array([share_of_best_subset(problem_of, rng, "gini") for _ in range(50)])
    assert (found >= 1 - 1e-12).sum() >= 45


# ---------------------------------------------------------------------------------------------------- worked by hand


def test_the_weight_table_is_cut_halfway(problem_of):
    """{15, 16, 19 | 22, 27, 29} against {15, 16 | 19, 22 | 27, 29}."""
    weight = [15.0, 16, 19, 22, 27, 29]
    search, root = at_the_root(problem_of({"weight": weight}, list("lllhhh"), criterion="entropy"))
    split = search.best_test(root, 0)
    assert (split.threshold, split.gain, split.n_tests) == (20.5, 1.0, 5)
    search, root = at_the_root(problem_of({"weight": weight}, list("llhlhh"), criterion="entropy"))
    split = search.best_test(root, 0)
    # 17.5 leaves {l, l} and {h, l, h, h}: 1 − 4/6 H(1/4); 24.5 gains the same, and comes later
    assert split.threshold == 17.5
    assert split.gain == pytest.approx(1 - 4 / 6 * (2 - 0.75 * log2(3)))


def test_a_day_out_by_hand(problem_of, outings):
    target = outings["out"]
    columns = {name: cells for name, cells in outings.items() if name != "out"}
    search, root = at_the_root(problem_of(columns, target, criterion="entropy"))
    gains = {name: search.best_test(root, j).gain for j, name in enumerate(columns)}
    # Nine of fourteen go. sky: clear 2 of 5, cloudy 4 of 4, wet 3 of 5.
    h = lambda a, b: -a / (a + b) * log2(a / (a + b)) - b / (a + b) * log2(b / (a + b))  # noqa: E731
    assert gains["sky"] == pytest.approx(h(9, 5) - 5 / 14 * h(2, 3) - 5 / 14 * h(3, 2))
    assert gains["ground"] == pytest.approx(h(9, 5) - 0.5 * h(3, 4) - 0.5 * h(6, 1))
    assert gains["wind"] == pytest.approx(h(9, 5) - 8 / 14 * h(6, 2) - 6 / 14 * 1)
    assert search.best_split(root).column == 0
    assert search.best_split(root).n_candidates == 4


ROW_NUMBER = {
    "row": [f"r{i}" for i in range(8)],
    "sign": list("aaaaabbb"),
    "noise": list("abababab"),
    "more": list("aabbaabb"),
}


@pytest.mark.parametrize(("score", "picked"), [("gain", 0), ("skew_adjusted", 0), ("gain_ratio", 1)])
def test_only_the_gain_ratio_avoids_the_row_number(problem_of, score, picked):
    """The row number gains all there is, 1 bit, for 3 bits of split information; the sign 0.55 for 0.95."""
    search, root = at_the_root(problem_of(ROW_NUMBER, list("ggggssss"), criterion="entropy", split_score=score))
    assert search.best_split(root).column == picked
    row, sign = (search.best_test(root, j) for j in (0, 1))
    assert (row.gain, row.information) == (1.0, 3.0)
    assert sign.gain == pytest.approx(0.5488, abs=1e-4)
    assert sign.information == pytest.approx(0.9544, abs=1e-4)


def test_the_gain_ratio_skips_columns_below_the_mean_gain(problem_of):
    """The sign's ratio is the largest, but beside the row number alone its gain is below the mean."""
    columns = {name: ROW_NUMBER[name] for name in ("row", "sign")}
    search, root = at_the_root(problem_of(columns, list("ggggssss"), criterion="entropy", split_score="gain_ratio"))
    assert search.score(root, search.best_test(root, 1)) > search.score(root, search.best_test(root, 0))
    assert search.best_split(root).column == 0


def test_intervals_are_half_open_from_the_left(problem_of):
    """V = {1, 3, 5}: x < 1, 1 ≤ x < 3, 3 ≤ x < 5, 5 ≤ x; an interval that no row is in has no branch."""
    x = [0.5, 1.0, 2.9, 5.0, 7.0, None]
    search, root = at_the_root(problem_of({"x": x}, list("abbccd"), tests={"x": (1.0, 3.0, 5.0)}))
    split = search.best_test(root, 0)
    assert split.branch.tolist() == [0, 1, 1, 2, 2, 3]
    assert split.level_branch.tolist() == [0, 1, -1, 2]
    assert (split.missing_branch, split.gain) == (3, root.impurity)


def test_missing_cells_go_where_the_gain_is_larger(problem_of):
    x = [1.0, 2.0, 3.0, 4.0, None, None]
    for target, branch in (("llhhll", 0), ("llhhhh", 1)):
        search, root = at_the_root(problem_of({"x": x}, list(target)))
        split = search.best_test(root, 0)
        assert (split.threshold, split.missing_branch, split.gain) == (2.5, branch, root.impurity)


def test_without_missing_cells_they_would_go_to_the_heaviest_branch(problem_of):
    for target, branch in (("lllh", 0), ("lhhh", 1)):
        search, root = at_the_root(problem_of({"x": [1.0, 2.0, 3.0, 4.0]}, list(target)))
        assert search.best_test(root, 0).missing_branch == branch


def test_present_or_missing_is_a_test(problem_of):
    search, root = at_the_root(problem_of({"x": [1.0, 1.0, None, None]}, list("llhh")))
    split = search.best_test(root, 0)
    assert (split.threshold, split.missing_branch, split.n_tests) == (inf, 1, 1)
    assert split.branch.tolist() == [0, 0, 1, 1]


def test_complexity_penalises_the_bits_that_encode_the_test(problem_of):
    """Four columns cost 2 bits; five thresholds log2 5."""
    columns = {"x": [1.0, 2, 3, 4, 5, 6], "a": list("aaabbb"), "b": list("ababab"), "c": list("aabbaa")}
    problem = problem_of(columns, list("lllhhh"), criterion="entropy", complexity=0.5)
    search, root = at_the_root(problem)
    split = search.best_test(root, 0)
    assert split.charge == pytest.approx(0.5 * (2 + log2(5)) / 6)
    assert split.gain == 1.0
    assert search.best_split(root).column == 1  # as good, and cheaper to name
    assert search.best_test(root, 2) is None  # gains 0.08 for a charge of 0.17


def test_a_subset_costs_a_bit_for_each_level_but_one(problem_of):
    problem = problem_of({"a": list("abcdabcd")}, list("llhhllhh"), tests={"a": "subset"}, complexity=1.0)
    search, root = at_the_root(problem)
    assert search.best_test(root, 0).n_tests == 7
    many = problem_of({"a": [f"{i:04}" for i in range(1200)]}, ["l", "h"] * 600, tests={"a": "subset"})
    search, root = at_the_root(many)
    assert np.isfinite(search.best_test(root, 0).n_tests)


# ---------------------------------------------------------------------------------------------------- thresholds


def test_the_midpoint_separates_neighbours_that_rounding_would_join():
    for low, high in ((1.0, np.nextafter(1.0, 2.0)), (0.0, 5e-324), (-1e308, 1e308), (1.7e308, 1.79e308)):
        (theta,) = halfway(np.array([low, high]))
        assert low <= theta < high


def test_quantile_cuts_make_at_most_that_many_bins(rng):
    for n_bins in (2, 3, 16):
        x = np.append(rng.integers(0, 40, 500) ** 2, [np.nan]).astype(float)
        cuts = quantile_cuts(x, n_bins)
        assert 0 < len(cuts) < n_bins
        assert set(cuts) <= set(halfway(np.unique(x[:-1])))
    sizes = np.bincount(np.searchsorted(quantile_cuts(rng.normal(size=1000), 4), rng.normal(size=1000)))
    assert len(sizes) == 4
    continuous = np.arange(1000.0)
    assert np.bincount(np.searchsorted(quantile_cuts(continuous, 8), continuous)).tolist() == [125] * 8


def test_a_histogram_with_room_for_all_values_is_exact(problem_of, rng):
    x, target = rng.integers(0, 30, 200).astype(float).tolist(), rng.choice(["a", "b"], 200)
    found = []
    for how in ({}, {"thresholds": "histogram", "n_bins": 30}):
        search, root = at_the_root(problem_of({"x": x}, target, **how))
        found.append(search.best_test(root, 0))
    assert found[0].gain == found[1].gain
    assert found[0].threshold == found[1].threshold


def test_few_bins_offer_few_tests(problem_of, rng):
    search, root = at_the_root(
        problem_of({"x": rng.normal(size=100).tolist()}, ["a", "b"] * 50, thresholds="histogram", n_bins=8)
    )
    assert search.best_test(root, 0).n_tests == 7


def test_normal_densities_cross_where_they_are_equal():
    """N(0, 1) and N(4, 2²) with weights 1 : 3, checked at the crossing itself."""
    x = np.array([-1.0, 1, 2, 6, 2, 6, 2, 6])
    (cut,) = gaussian_cuts(x, np.array([0, 0, 1, 1, 1, 1, 1, 1]), np.ones(8))
    density = [2 * np.exp(-(cut**2) / 2), 6 * np.exp(-((cut - 4) ** 2) / 8) / 2]
    assert 0 < cut < 4
    assert density[0] == pytest.approx(density[1])


def test_a_class_of_one_value_does_not_break_the_densities():
    cuts = gaussian_cuts(np.array([0.0, 0, 0, 1, 2]), np.array([0, 0, 0, 1, 1]), np.ones(5))
    assert len(cuts) == 1
    assert 0 < cuts[0] < 0.1  # a needle at 0 against a wide density: the cut lies beside the needle


def test_the_logistic_cut_is_that_of_a_peer():
    rng = np.random.default_rng(5)
    x, w = rng.normal(3, 2, 200), rng.uniform(0.5, 2, 200)
    classes = (x + rng.normal(size=200) > 4).astype(int)
    (cut,) = logistic_cuts(x, classes, w)
    mean = np.average(x, weights=w)
    spread = np.sqrt(np.average((x - mean) ** 2, weights=w))
    peer = LogisticRegression(C=1 / (RIDGE * w.sum()), tol=1e-12).fit((x - mean)[:, None] / spread, classes, w)
    assert cut == pytest.approx(mean - spread * peer.intercept_[0] / peer.coef_[0, 0], abs=1e-5)


@pytest.mark.parametrize("thresholds", ["gaussian", "logistic"])
@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_fitted_thresholds_are_no_better_than_exact_ones(ugly_problem, seed, thresholds):
    problem = ugly_problem(seed, "gini", thresholds=thresholds)
    exact = ugly_problem(seed, "gini")
    for j in range(len(problem.cells.columns)):
        search, root = at_the_root(problem)
        fitted, best = search.best_test(root, j), SplitSearch(exact).best_test(root, j)
        assert fitted is None or fitted.gain <= best.gain + 1e-12


@pytest.mark.parametrize("thresholds", ["gaussian", "logistic"])
def test_fitted_thresholds_find_a_clear_cut(problem_of, rng, thresholds):
    x = np.concatenate([rng.normal(0, 1, 50), rng.normal(20, 1, 50), rng.normal(40, 1, 50)])
    problem = problem_of({"x": x.tolist()}, np.repeat(["a", "b", "c"], 50), thresholds=thresholds)
    search, root = at_the_root(problem)
    split = search.best_test(root, 0)
    assert sorted(np.bincount(split.branch)) == [50, 100]
    assert split.n_tests <= 3


# ---------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("thresholds", ["gaussian", "logistic"])
def test_numbers_have_no_densities_to_cross(problem_of, thresholds):
    with pytest.raises(ParameterError, match=r"thresholds is .* 'exact' or 'histogram'"):
        SplitSearch(problem_of({"x": [1.0, 2.0]}, [1.0, 2.0], thresholds=thresholds))


def test_monotone_columns_need_two_classes_or_numbers(problem_of):
    with pytest.raises(ParameterError, match="'x' has a monotone constraint, and there are 3 classes"):
        SplitSearch(problem_of({"x": [1.0, 2.0, 3.0]}, list("abc"), tests={"x": 1}))


def test_a_category_has_no_monotone_order(problem_of):
    problem = problem_of({"x": list("ab")}, list("ab"))
    column = TreeColumn("x", "multiway", ("a", "b"), monotone=1)
    cells = Cells((column,), 2, problem.cells.values)
    with pytest.raises(ParameterError, match="'x' has a monotone constraint and is a category"):
        SplitSearch(type(problem)(cells, problem.target, 2))


# ---------------------------------------------------------------------------------------------------- impurities


def test_impurities_of_one_odd_row_in_a_million_keep_their_digits():
    n = 10**6
    assert impurity.gini([n - 1, 1]) == pytest.approx(2 * (n - 1) / n**2, rel=1e-14)
    exact = -(1 / n) * log2(1 / n) - (n - 1) / n * np.log1p(-1 / n) / np.log(2)
    assert impurity.entropy([n - 1, 1]) == pytest.approx(exact, rel=1e-14)
    assert impurity.error([n - 1, 1]) == 1 / n


def test_zero_weight_has_zero_impurity():
    for of in (impurity.entropy, impurity.gini, impurity.error):
        assert of(np.zeros((2, 3))).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("y", "w", "expected"),
    [
        ([3.0], None, 3.0),
        ([1.0, 4.0], None, 2.5),
        ([4.0, 1.0, 9.0], None, 4.0),
        ([1.0, 2.0, 8.0], [1.0, 1.0, 2.0], 5.0),  # half of the weight lies on each side of 2 … 8
        ([1.0, 2.0, 8.0], [1.0, 1.0, 2.1], 8.0),
        ([1.0, 2.0, 3.0, 4.0], [0.1, 0.2, 0.1, 0.2], 2.5),  # 0.1 + 0.2 is not quite half of their sum
        ([-1e308, 1.5e308], None, 0.25e308),
    ],
)
def test_median_of_an_even_weight_is_the_mean_of_the_two_in_the_middle(y, w, expected):
    assert impurity.median(y, w) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_running_absolute_error_is_that_of_each_prefix(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    y = rng.choice([rng.normal(size=n), rng.integers(0, 3, n)])
    w = rng.choice([np.ones(n), rng.integers(1, 4, n), rng.uniform(0.1, 5, n)])
    errors, medians = impurity.running_absolute_error(y, w)
    for i in range(n):
        assert errors[i] == pytest.approx(impurity.absolute_error(y[: i + 1], w[: i + 1]), abs=1e-12)
        assert medians[i] == impurity.median(y[: i + 1], w[: i + 1]) or w.dtype.kind == "f"
