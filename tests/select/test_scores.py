"""Scores of single columns: against worked tables, mutual information, the stump, χ², and the reference."""

from __future__ import annotations

from functools import partial
from math import inf, log, log2

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, fisher_exact
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_selection import GenericUnivariateSelect, SelectFdr, SelectKBest, SelectPercentile
from sklearn.metrics import mutual_info_score

from margrove import (
    DecisionStump,
    as_table,
    error_gain,
    gain_ratio,
    gini_gain,
    information_gain,
    load_penguins,
    skew_adjusted_gain,
)
from margrove.engine import solve
from margrove.errors import InputError, ParameterError
from margrove.select.problem import ColumnProblem
from margrove.select.scores import gains, p_values
from margrove.tree.association import NO_LEVELS
from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem

FUNCTIONS = (information_gain, gini_gain, error_gain, gain_ratio, skew_adjusted_gain)
GAINS = {"entropy": information_gain, "gini": gini_gain, "error": error_gain}
seeds = st.integers(0, 2**32 - 1)


def ugly_table(number: int, n_classes: int = 3) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with ties and missing cells, categories, booleans, constants, a column that is nearly always the same."""
    rng = np.random.default_rng(number)
    n = int(rng.integers(1, 60))
    y = rng.integers(0, n_classes, n)
    words = np.array(["a", "b", "c", None], dtype=object)
    columns = {
        "number": y + rng.normal(size=n),
        "few": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 3, n)),
        "word": words[np.where(rng.random(n) < 0.3, y, rng.integers(0, 4, n))],
        "flag": rng.random(n) < 0.5,
        "same": np.ones(n),
        "rare": (rng.random(n) < 0.05).astype(np.float32),
        "half": np.where(y > 0, rng.normal(size=n), np.nan),
    }
    return pd.DataFrame(columns)[list(rng.permutation(list(columns)))], y


@pytest.fixture(scope="module")
def outings() -> pd.DataFrame:
    """Fourteen days, and whether people went out to play."""
    text = """
        clear    warm  damp  still  stay
        clear    warm  damp  windy  stay
        cloudy   warm  damp  still  go
        wet      mild  damp  still  go
        wet      cool  dry   still  go
        wet      cool  dry   windy  stay
        cloudy   cool  dry   windy  go
        clear    mild  damp  still  stay
        clear    cool  dry   still  go
        wet      mild  dry   still  go
        clear    mild  dry   windy  go
        cloudy   mild  damp  windy  go
        cloudy   warm  dry   still  go
        wet      mild  damp  windy  stay
    """
    rows = [line.split() for line in text.strip().splitlines()]
    return pd.DataFrame(rows, columns=["sky", "air", "ground", "wind", "out"])


# ------------------------------------------------------------------------------------------------------ worked by hand


def test_gains_of_the_outings_are_those_of_the_textbooks(outings):
    X, y = outings.drop(columns="out"), outings["out"]
    assert np.allclose(information_gain(X, y)[0], [0.2467, 0.0292, 0.1518, 0.0481], atol=5e-5)
    # Split information: sky 5, 4, 5 of 14; air 4, 6, 4; ground 7, 7; wind 8, 6.
    info = [-sum(c / 14 * log2(c / 14) for c in counts) for counts in ((5, 4, 5), (4, 6, 4), (7, 7), (8, 6))]
    assert np.allclose(gain_ratio(X, y)[0], information_gain(X, y)[0] / info)
    # gini(S) = 1 − (9² + 5²)/14²; sky: 5/14 · 2·2·3/25 twice, and nothing for the cloudy days.
    assert np.isclose(gini_gain(X, y)[0][0], 1 - (81 + 25) / 196 - 10 / 14 * 12 / 25)
    # Always "go" errs 5 times in 14; by sky 2 + 2 times.
    assert np.isclose(error_gain(X, y)[0][0], 5 / 14 - 4 / 14)


def test_the_score_of_a_number_is_that_of_its_best_threshold():
    weight = [[15], [16], [19], [22], [27], [29]]
    assert information_gain(weight, [0, 0, 0, 1, 1, 1])[0] == [1.0]
    assert np.isclose(gini_gain(weight, [0, 0, 1, 0, 1, 1])[0], 0.5 - 4 / 6 * 2 * 1 / 4 * 3 / 4)


def test_given_cut_points_make_intervals():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 1, 0]
    assert information_gain(X, y)[0] < 0.5
    assert information_gain(X, y, split_values={0: [0.5, 2.5]})[0] == [1.0]


def test_the_number_of_the_row_has_all_the_gain_and_little_of_the_ratio(outings):
    days = pd.concat([outings] * 8, ignore_index=True)  # of fourteen days only, the ratio still falls for it
    X = days.drop(columns="out").assign(row=[f"day {i}" for i in range(112)])
    y = days["out"]
    assert np.argmax(information_gain(X, y)[0]) == 4
    assert np.argmax(gain_ratio(X, y)[0]) != 4
    assert np.argmax(skew_adjusted_gain(X, y)[0]) == 4  # what it means to punish
    H = -(9 / 14 * log2(9 / 14) + 5 / 14 * log2(5 / 14))
    assert np.isclose(gain_ratio(X, y)[0][4], H / log2(112))
    assert np.isclose(skew_adjusted_gain(X, y)[0][4], H)


def test_a_column_that_offers_no_test_has_gain_0_and_p_1():
    X, y = np.array([[1.0, np.nan, 5.0], [1.0, np.nan, 6.0], [1.0, np.nan, 7.0]]), [0, 1, 1]
    for score in FUNCTIONS:
        scores, p = score(X, y)
        assert p[:2].tolist() == [1, 1]
        assert np.isnan(scores[:2]).all() if score is skew_adjusted_gain else (scores[:2] == 0).all()
        assert scores[2] > 0


@pytest.mark.parametrize("score", FUNCTIONS)
def test_nothing_is_gained_of_one_class_or_one_row(score):
    for X, y in ([[1.0], [2.0]], ["a", "a"]), ([[1.0]], ["a"]):
        scores, p = score(X, y)
        assert np.nan_to_num(scores) == [0]
        assert p == [1]


# -------------------------------------------------------------------------------------------------------------- peers


@settings(max_examples=50, deadline=None)
@given(seeds, st.integers(2, 5), st.integers(2, 5))
def test_information_gain_of_a_category_is_mutual_information(number, n_levels, n_classes):
    rng = np.random.default_rng(number)
    X, y = rng.integers(0, n_levels, (40, 3)), rng.integers(0, n_classes, 40)
    bits = [mutual_info_score(column, y) / log(2) for column in X.T]
    assert np.allclose(information_gain(X, y, categorical_features=[0, 1, 2])[0], bits, atol=1e-12)
    assert np.allclose(information_gain(X.astype(str), y)[0], bits, atol=1e-12)


def test_missing_cells_of_a_category_are_a_level():
    X = pd.DataFrame({"word": ["a", None, "b", None, "a", None]})
    y = [0, 1, 0, 1, 0, 1]
    assert np.allclose(information_gain(X, y)[0], information_gain(X.fillna("missing"), y)[0])


@settings(max_examples=40, deadline=None)
@given(seeds, st.sampled_from(["entropy", "gini", "error"]), st.sampled_from(["multiway", "subset", "one_vs_rest"]))
def test_a_score_is_the_gain_of_the_stump_on_that_column(number, criterion, categorical):
    X, y = ugly_table(number)
    scores, _ = GAINS[criterion](X, y, categorical=categorical)
    for name, score in zip(X, scores, strict=True):
        stump = DecisionStump(criterion=criterion, categorical=categorical).fit(X[[name]], y)
        assert np.isclose(score, np.nan_to_num(stump.nodes_.gain[0]), atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_p_of_a_category_is_that_of_the_chi2_test(number):
    rng = np.random.default_rng(number)
    x, y = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    table = np.histogram2d(x, y, bins=3)[0]
    expected = chi2_contingency(table, correction=False)
    if expected.expected_freq.min() >= 5:
        assert np.isclose(information_gain(x[:, None].astype(str), y)[1], expected.pvalue)


def test_p_is_exact_where_counts_are_small_and_pays_for_every_threshold():
    weight, heavy = np.arange(8.0)[:, None], [0, 0, 0, 0, 1, 1, 1, 1]
    alone = fisher_exact([[4, 0], [0, 4]]).pvalue
    assert np.isclose(information_gain(weight, heavy)[1], 1 - (1 - alone) ** 7)
    assert np.isclose(information_gain(weight, heavy, split_values={0: [3.5]})[1], alone)


def test_noise_is_seldom_significant(rng):
    X, y = rng.normal(size=(150, 300)), rng.integers(0, 2, 150)
    assert np.mean(information_gain(X, y)[1] <= 0.05) <= 0.05


# ---------------------------------------------------------------------------------------------------- the two engines


def ugly_column(rng: np.random.Generator, n: int) -> tuple[TreeColumn, np.ndarray]:
    kind = str(rng.choice(["threshold", "threshold", "intervals", "multiway", "subset", "one_vs_rest"]))
    is_missing = rng.random(n) < rng.choice([0.0, 0.2, 0.7, 1.0])
    if kind in ("threshold", "intervals"):
        pool = [rng.normal(size=n), rng.integers(0, 4, n), np.zeros(n), rng.random(n) < 0.1][rng.integers(0, 4)]
        values = pool.astype(rng.choice([np.float32, np.float64]))
        values[is_missing] = np.nan
        return TreeColumn("c", kind, cuts=(0.5, 1.5) if kind == "intervals" else ()), values
    levels = tuple("abcdef"[: rng.integers(1, 7)])
    codes = np.where(is_missing, -1, rng.integers(0, len(levels), n)).astype(np.int32)
    return TreeColumn("c", kind, levels), codes


@settings(max_examples=150, deadline=None)
@given(
    seeds,
    st.sampled_from(["entropy", "gini", "error"]),
    st.sampled_from(["exact", "exact", "histogram", "gaussian", "logistic"]),
    st.booleans(),
)
def test_the_core_finds_what_the_reference_finds(number, criterion, thresholds, is_sparse):
    rng = np.random.default_rng(number)
    n, d, n_classes = int(rng.integers(1, 40)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    columns, values = zip(*(ugly_column(rng, n) for _ in range(d)), strict=True)
    cells = Cells(columns, n, values)
    if is_sparse:
        matrix = sp.random(n, d, 0.3, format="csc", random_state=int(rng.integers(2**31)))
        cells = Cells(tuple(TreeColumn("c") for _ in range(d)), n, sparse=matrix)
    target = rng.integers(0, n_classes, n).astype(np.int32)
    weight = [None, rng.integers(1, 4, n).astype(float), rng.uniform(0.1, 3, n)][rng.integers(0, 3)]
    problem = ColumnProblem(
        TreeProblem(cells, target, n_classes, weight, Growth(criterion, thresholds=thresholds, n_bins=4))
    )
    ours, theirs = solve(problem, "native"), solve(problem, "reference")
    whole = np.bincount(target, weight, n_classes)
    assert (ours.n_tests == theirs.n_tests).all()
    assert (ours.is_offered == theirs.is_offered).all()
    # The tests themselves may be tied; their gain is not. That their branches hold all rows makes the table theirs.
    assert np.allclose(gains(ours, whole, criterion)[0], gains(theirs, whole, criterion)[0], atol=1e-10)
    for j in np.flatnonzero(ours.is_offered):
        branches = ours.table[ours.start[j] : ours.start[j + 1]]
        assert np.allclose(branches.sum(axis=0), whole)
        assert (branches.sum(axis=1) > 0).all()


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_the_table_is_that_of_the_threshold(number):
    rng = np.random.default_rng(number)
    x = np.where(rng.random(50) < 0.6, 0.0, rng.integers(-3, 4, 50))  # zeros are left out of the core's list
    y = rng.integers(0, 3, 50).astype(np.int32)
    w = rng.uniform(0.1, 3, 50)
    tests = solve(ColumnProblem(TreeProblem(Cells((TreeColumn("x"),), 50, (x,)), y, 3, w)), "native")
    left = np.bincount(y[x <= tests.threshold[0]], w[x <= tests.threshold[0]], 3)
    assert np.allclose(tests.table, [left, np.bincount(y, w, 3) - left])


def test_scores_are_the_same_for_any_number_of_threads(rng):
    X, y = rng.normal(size=(2000, 40)), rng.integers(0, 3, 2000)
    one, many = information_gain(X, y, n_jobs=1), information_gain(X, y, n_jobs=4)
    assert (one[0] == many[0]).all()
    assert (one[1] == many[1]).all()


# --------------------------------------------------------------------------------------------------------------- laws


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(FUNCTIONS))
def test_a_weight_of_two_is_the_row_twice(number, score):
    X, y = ugly_table(number)
    weight = np.random.default_rng(number).integers(1, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    weighted, twice = score(X, y, sample_weight=weight), score(X.iloc[repeated], y[repeated])
    assert np.allclose(weighted[0], twice[0], equal_nan=True, atol=1e-10)
    if score is information_gain:
        assert np.allclose(weighted[1][twice[0] < 1e-9], twice[1][twice[0] < 1e-9])


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(FUNCTIONS))
def test_the_order_of_rows_and_columns_and_the_names_of_classes_do_not_matter(number, score):
    X, y = ugly_table(number)
    rng = np.random.default_rng(number)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    names = np.array(["z", "k", "b"])
    turned = score(X.iloc[rows, columns], names[y[rows]])[0]
    if score in GAINS.values():  # ties between thresholds leave the split information open
        assert np.allclose(turned, score(X, y)[0][columns], atol=1e-10)
    assert (np.isnan(turned) == np.isnan(score(X, y)[0][columns])).all()


def test_stretching_a_number_changes_nothing():
    X, y = load_iris(return_X_y=True)
    assert np.allclose(information_gain(np.exp(X), y)[0], information_gain(X, y)[0])


def test_a_missing_number_goes_where_the_gain_is_larger():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan], [3.0], [4.0]])
    to_the_left, to_the_right, present_or_missing = [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0]
    for y in (to_the_left, to_the_right, present_or_missing):
        assert np.isclose(information_gain(X, y)[0], log2(6) - 2 / 6 * log2(2) - 4 / 6 * log2(4))  # all of it


# ---------------------------------------------------------------------------------------- selectors of scikit-learn


@pytest.mark.parametrize("score", FUNCTIONS)
def test_selectors_of_scikit_learn_take_them(score):
    X, y = load_breast_cancer(return_X_y=True)
    best = SelectKBest(score, k=4).fit(X, y)
    assert set(np.flatnonzero(best.get_support())) == set(np.argsort(best.scores_)[-4:])
    assert SelectPercentile(score, percentile=20).fit(X, y).get_support().sum() == 6
    assert GenericUnivariateSelect(score, mode="fpr", param=1e-3).fit(X, y).get_support().any()
    assert (best.pvalues_ == score(X, y)[1]).all()


def test_noise_is_left_out_by_false_discovery_rate(rng):
    X, y = load_iris(return_X_y=True)
    noise = rng.normal(size=(len(y), 20))
    support = SelectFdr(information_gain, alpha=0.01).fit(np.hstack([X, noise]), y).get_support()
    assert support.tolist() == [True] * 4 + [False] * 20


def test_sparse_scores_are_dense_scores(rng):
    X, y = sp.random(200, 30, 0.1, format="csr", random_state=4), rng.integers(0, 2, 200)
    for given_as in (X, X.tocsc()):
        assert np.allclose(information_gain(given_as, y)[0], information_gain(X.toarray(), y)[0])
    assert (SelectKBest(gini_gain, k=5).fit(X, y).scores_ == gini_gain(X, y)[0]).all()


def test_options_go_through_partial():
    X, y = load_iris(return_X_y=True)
    selector = SelectKBest(partial(gain_ratio, criterion="gini", thresholds="histogram", n_bins=8), k=1).fit(X, y)
    assert (selector.scores_ == gain_ratio(X, y, criterion="gini", thresholds="histogram", n_bins=8)[0]).all()
    assert (selector.scores_ != gain_ratio(X, y)[0]).any()


def test_fewer_thresholds_never_gain_more():
    X, y = load_breast_cancer(return_X_y=True)
    exact = information_gain(X, y)[0]
    for thresholds in ("histogram", "gaussian", "logistic"):
        fewer = information_gain(X, y, thresholds=thresholds, n_bins=16)[0]
        assert (fewer <= exact + 1e-12).all()
        assert (fewer < exact - 1e-6).any()


def test_tables_and_frames_of_every_library_score_alike():
    penguins = load_penguins()
    y = penguins.labels()
    frame = pd.DataFrame(
        {
            column.name: column.values
            if column.kind == "numeric"
            else [None if code < 0 else column.levels[code] for code in column.values]
            for column in penguins
        }
    )
    expected = information_gain(penguins, y)
    import polars as pl
    import pyarrow as pa

    for given_as in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), as_table(frame)):
        scores, p = information_gain(given_as, y)
        assert np.allclose(scores, expected[0])
        assert np.allclose(p, expected[1])


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"thresholds": "some"}, "thresholds is 'some'"),
        ({"categorical": "auto"}, "categorical is 'auto'"),
        ({"n_bins": 1}, "n_bins is 1"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"engine": "abacus"}, "engine is 'abacus'"),
        ({"categorical_features": ["tail"]}, "names the column 'tail'"),
        ({"split_values": {9: [1.0]}}, "names the column 9"),
    ],
)
def test_options_out_of_range_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        information_gain([[1.0], [2.0]], [0, 1], **options)


def test_the_criterion_is_checked_where_it_is_used():
    with pytest.raises(ParameterError, match="criterion is 'chaos'"):
        gain_ratio([[1.0], [2.0]], [0, 1], criterion="chaos")


def test_bad_data_is_refused():
    with pytest.raises(InputError, match="requires y"):
        information_gain([[1.0]], None)
    with pytest.raises(InputError, match=r"inconsistent numbers of samples: \[2, 3\]"):
        information_gain([[1.0], [2.0]], [0, 1, 1])
    with pytest.raises(InputError, match="infinite"):
        information_gain([[inf], [2.0]], [0, 1])
    with pytest.raises(ValueError, match="continuous"):
        information_gain([[1.0], [2.0]], [0.5, 1.25])


def test_all_columns_without_a_test_have_p_1():
    tests = solve(
        ColumnProblem(TreeProblem(Cells((TreeColumn("c"),), 2, (np.ones(2),)), np.array([0, 1], np.int32), 2)), "native"
    )
    assert p_values(tests, [NO_LEVELS]).tolist() == [1.0]
    assert not tests.is_offered.any()
