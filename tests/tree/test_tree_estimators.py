"""The trees as people use them."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn import tree as peers
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import DecisionStump, DecisionTreeClassifier, DecisionTreeRegressor, certify, load_penguins
from margrove.errors import DataWarning, InputError, ParameterError, UnseenCategoryWarning
from margrove.tree.prune import RULES

TREES = [
    DecisionTreeClassifier(),
    DecisionTreeRegressor(),
    DecisionStump(),
    DecisionTreeClassifier(criterion="entropy", split_score="gain_ratio", categorical="multiway", prune="pessimistic"),
    DecisionTreeRegressor(criterion="absolute_error", max_leaf_nodes=6),
]


def not_sparse(estimator):
    """scikit-learn 1.6 gives sparse matrices even to an estimator whose tags say that it takes none."""
    check = "check_sample_weight_equivalence_on_sparse_data"
    return {} if get_tags(estimator).input_tags.sparse else {check: "takes no sparse matrix"}


@parametrize_with_checks(TREES, expected_failed_checks=not_sparse)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def frame():
    """Text, categories with unused levels, booleans, missing cells, numbers."""
    rng = np.random.default_rng(3)
    n = 300
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.choice(["s", "m", "l"], n)
    table = pd.DataFrame(
        {
            "colour": pd.Series(colour),
            "size": pd.Categorical(size, categories=["xs", "s", "m", "l", "xl"]),
            "ripe": rng.random(n) < 0.5,
            "weight": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "count": rng.integers(0, 9, n),
        }
    )
    table.loc[table.index % 17 == 0, "colour"] = None
    y = np.where((colour == "red") & table["ripe"], "yes", np.where(size == "l", "maybe", "no"))
    return table, y


# ---------------------------------------------------------------------------------------------------- small and odd


@pytest.mark.parametrize("Tree", [DecisionTreeClassifier, DecisionTreeRegressor, DecisionStump])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_one_row_is_a_leaf(Tree, engine):
    tree = Tree(engine=engine).fit([[1.0, 2.0]], [3])
    assert tree.nodes_.n_nodes == 1
    assert tree.predict([[7.0, np.nan]]).tolist() == [3]
    assert certify(tree, [[1.0, 2.0]], [3]).holds
    assert tree.feature_importances_.tolist() == [0, 0]
    assert (tree.get_depth(), tree.get_n_leaves()) == (0, 1)


def test_one_class_is_a_leaf(rng):
    tree = DecisionTreeClassifier().fit(rng.normal(size=(20, 3)), ["only"] * 20)
    assert tree.nodes_.n_nodes == 1
    assert tree.classes_.tolist() == ["only"]
    assert tree.predict_proba(np.zeros((2, 3))).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("value", [0.0, np.nan, -3.5])
def test_columns_that_are_constant_or_missing_throughout_are_never_tested(value, rng):
    X = np.full((60, 3), value)
    y = rng.integers(0, 2, 60)
    assert DecisionTreeClassifier().fit(X, y).nodes_.n_nodes == 1
    X[:, 1] = y
    tree = DecisionTreeClassifier().fit(X, y)
    assert tree.nodes_.feature.tolist() == [1, -1, -1]
    assert tree.feature_importances_.tolist() == [0, 1, 0]


def test_xor_is_learnt():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    assert DecisionTreeClassifier().fit(X, y).predict(X).tolist() == y


@pytest.mark.parametrize("Tree", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_ten_thousand_columns(Tree, rng):
    X = rng.normal(size=(60, 10_000)).astype(np.float32)
    y = (X[:, 9_876] > 0).astype(int)
    tree = Tree().fit(X, y)
    assert tree.nodes_.feature.tolist() == [9_876, -1, -1]
    assert tree.score(X, y) == 1


@pytest.mark.parametrize("categorical", ["multiway", "subset", "one_vs_rest"])
def test_five_thousand_levels(categorical, rng):
    """No limit of 256: the level decides the class, and every level is told apart from the others."""
    codes = rng.permutation(np.repeat(np.arange(5_000), 2))
    table = pd.DataFrame({"code": [f"level {code}" for code in codes]})
    y = codes % 7 == 0 if categorical != "one_vs_rest" else codes == 4_321
    tree = DecisionTreeClassifier(categorical=categorical).fit(table, y)
    assert (tree.predict(table) == y).all()
    assert tree.get_depth() == 1


# ----------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("Tree", [DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize("criterion", [0, 1, 2])
def test_weights_are_repeated_rows(Tree, criterion, rng):
    name = [["gini", "entropy", "error"], ["squared_error", "gaussian_entropy", "absolute_error"]][
        Tree is DecisionTreeRegressor
    ][criterion]
    X = rng.normal(size=(80, 3))
    X[rng.random((80, 3)) < 0.1] = np.nan
    y = rng.integers(0, 3, 80)
    times = rng.integers(0, 4, 80)
    weighted = Tree(criterion=name, max_depth=5).fit(X, y, sample_weight=times)
    repeated = Tree(criterion=name, max_depth=5).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.nodes_.weight, repeated.nodes_.weight)
    np.testing.assert_allclose(weighted.nodes_.gain, repeated.nodes_.gain, atol=1e-12)
    np.testing.assert_allclose(weighted.nodes_.value, repeated.nodes_.value, atol=1e-12)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X))


def test_rows_of_no_weight_do_not_count_but_their_class_is_kept(iris):
    X, y = iris
    weight = np.where(y == 2, 0.0, 1.0)
    tree = DecisionTreeClassifier().fit(X, y, sample_weight=weight)
    alone = DecisionTreeClassifier().fit(X[y < 2], y[y < 2])
    assert tree.classes_.tolist() == [0, 1, 2]
    assert tree.nodes_.n_rows[0] == 100
    np.testing.assert_array_equal(tree.predict_proba(X)[:, :2], alone.predict_proba(X))
    assert (tree.predict_proba(X)[:, 2] == 0).all()


def test_class_weights_are_scikit_learns(iris):
    X, y = iris
    for class_weight in ("balanced", {0: 1.0, 1: 5.0, 2: 0.5}):
        ours = DecisionTreeClassifier(class_weight=class_weight, max_depth=3).fit(X[20:], y[20:])
        theirs = peers.DecisionTreeClassifier(class_weight=class_weight, max_depth=3).fit(X[20:], y[20:])
        np.testing.assert_allclose(impurity_left(ours), impurity_left(theirs), rtol=1e-9)


@pytest.mark.parametrize(
    ("sample_weight", "class_weight", "message"),
    [
        (np.zeros(4), None, "at least one non-zero"),
        ([1, 1, -1, 1], None, r"sample_weight\[2\] is -1; Negative"),
        ([1, 1, np.nan, 1], None, "NaN"),
        ([1, 1, 1], None, r"sample_weight.shape"),
        (None, {0: 0, 1: 0}, "leave no row with a weight > 0"),
        ([0, 0, 1, 1], {0: 1, 1: 0}, "leave no row with a weight > 0"),
        (None, {5: 1}, "class_weight"),
        (None, {0: -1}, r"class_weight\[0\] is -1"),
        (None, "even", "class_weight"),
    ],
)
def test_invalid_weights_are_refused(sample_weight, class_weight, message):
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(class_weight=class_weight).fit([[0], [1], [2], [3]], [0, 0, 1, 1], sample_weight)


@pytest.mark.parametrize("light", [1e-5, 1e-30, 1e-300])
@pytest.mark.parametrize("split_score", ["gain", "gain_ratio"])
def test_weights_of_very_different_size_keep_all_branches(light, split_score):
    """Boosting makes such weights. In a branch of light rows only they decide; rounding of the heavy ones does not."""
    X = np.column_stack([np.arange(60) >= 30, np.arange(60) % 30])
    y = (np.arange(60) // 10) % 2
    weight = np.where(X[:, 0], light, 1.0)
    tree = DecisionTreeClassifier(split_score=split_score).fit(X, y, sample_weight=weight)
    assert (tree.predict(X) == y).all()
    assert np.isfinite(tree.predict_proba(X)).all()
    assert np.isfinite(tree.nodes_.impurity).all()
    np.testing.assert_allclose(tree.nodes_.weight[tree.nodes_.is_leaf].sum(), weight.sum())


@pytest.mark.parametrize("split_score", ["gain", "gain_ratio", "skew_adjusted"])
@pytest.mark.parametrize("Tree", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_weights_at_both_ends_of_the_scale_give_a_tree(Tree, split_score, rng):
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200)
    weight = rng.choice([1e-300, 1e-99, 1e-9, 1.0, 1e9, 1e99], 200)
    tree = Tree(split_score=split_score).fit(X, y, sample_weight=weight)
    assert np.isfinite(tree.nodes_.value).all()
    assert (tree.predict(X) == y).all()
    with pytest.raises(
        InputError, match=r"times class_weight\) is 1e\+300; it must be.*Multiply all weights by the same number"
    ):
        Tree().fit(X, y, sample_weight=np.full(200, 1e300))
    with pytest.raises(InputError, match=r"times class_weight\) is 1e-300"):
        Tree().fit(X, y, sample_weight=np.full(200, 1e-300))


# ----------------------------------------------------------------------------------------------------- labels, frames


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "maybe"]),
        np.array(["no", "yes", "maybe"], dtype=object),
        np.array([-3, 7, 2**40]),
        np.array([1, np.int64(2), 3], dtype=object),
        np.array([False, True, False]),
        pd.Categorical(["no", "yes", "maybe"]),
    ],
    ids=["text", "objects", "integers", "integers as objects", "booleans", "categorical"],
)
def test_labels_come_back_as_they_were_given(labels, iris):
    X, y = iris
    given = pd.Series(labels[y]) if isinstance(labels, pd.Categorical) else labels[y]
    tree = DecisionTreeClassifier().fit(X, given)
    assert (np.asarray(tree.predict(X)) == np.asarray(given)).all()
    assert (tree.predict(X) == np.asarray(given)).mean() == 1


def test_labels_that_are_missing_or_mixed_are_refused():
    X = [[0.0], [1.0], [2.0]]
    with pytest.raises(InputError, match=r"y contains NaN, first in row 1\. Remove such rows"):
        DecisionTreeClassifier().fit(X, np.array(["a", None, "b"], dtype=object))
    with pytest.raises(InputError, match=r"mixes labels of different types: int, str\. Make them all text"):
        DecisionTreeClassifier().fit(X, np.array(["a", 1, "b"], dtype=object))
    with pytest.raises(InputError, match="y contains NaN, first in row 2"):
        DecisionTreeRegressor().fit(X, [1.0, 2.0, np.nan])
    with pytest.raises(InputError, match="y contains infinity, first in row 0"):
        DecisionTreeRegressor().fit(X, [np.inf, 2.0, 1.0])
    with pytest.raises(InputError, match="regression needs numbers"):
        DecisionTreeRegressor().fit(X, ["a", "b", "c"])
    with pytest.raises(ValueError, match="Unknown label type"):
        DecisionTreeClassifier().fit(X, [0.5, 1.5, 2.5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        DecisionTreeClassifier().fit(X, [0, 1])
    with pytest.raises(ValueError, match="y to be passed"):
        DecisionTreeClassifier().fit(X, None)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "objects"])
@pytest.mark.parametrize("categorical", ["auto", "multiway", "one_vs_rest"])
def test_frames_of_any_library_give_the_same_tree(library, categorical, frame):
    table, y = frame
    tree = DecisionTreeClassifier(categorical=categorical).fit(table, y)
    assert tree.score(table, y) > 0.95
    assert certify(tree, table, y).holds
    other = {
        "pandas": lambda: table.copy(),
        "polars": lambda: pl.from_pandas(table),
        "pyarrow": lambda: pa.Table.from_pandas(table),
        "objects": lambda: table.astype(object).where(table.notna(), None),
    }[library]()
    again = DecisionTreeClassifier(categorical=categorical).fit(other, y)
    np.testing.assert_array_equal(again.nodes_.n_rows, tree.nodes_.n_rows)
    np.testing.assert_allclose(again.nodes_.gain, tree.nodes_.gain)
    np.testing.assert_array_equal(tree.predict(other), again.predict(table))


def test_declared_levels_that_do_not_occur_are_dropped(frame):
    table, y = frame
    tree = DecisionTreeClassifier().fit(table, y)
    levels = {column.name: column.levels for column in tree.nodes_.columns}
    assert sorted(levels["size"]) == ["l", "m", "s"]
    assert levels["ripe"] == (False, True)
    assert set(tree.categorical_) == {"colour", "size", "ripe"}


def test_unseen_categories_are_counted_in_one_warning(frame):
    table, y = frame
    tree = DecisionTreeClassifier().fit(table, y)
    new = table.head(10).assign(colour="violet", size="huge")
    with pytest.warns(
        UnseenCategoryWarning, match=r"20 cells of categories unseen in training.*'violet' \(10\)"
    ) as told:
        tree.predict(new)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree.predict(table.head(10))


def test_an_unseen_category_takes_the_heaviest_branch():
    table = pd.DataFrame({"kind": ["a"] * 5 + ["b"] * 3 + ["c"] * 2})
    tree = DecisionTreeClassifier(categorical="multiway").fit(table, [0] * 5 + [1] * 3 + [2] * 2)
    with pytest.warns(UnseenCategoryWarning):
        assert tree.predict(pd.DataFrame({"kind": ["z"]})).tolist() == [0]
    assert tree.predict(pd.DataFrame({"kind": ["c"]})).tolist() == [2]


def test_columns_are_found_by_name(frame):
    table, y = frame
    tree = DecisionTreeClassifier().fit(table, y)
    np.testing.assert_array_equal(tree.predict(table[table.columns[::-1]]), tree.predict(table))
    with pytest.warns(DataWarning, match="columns that the model does not use are ignored: 'more'"):
        np.testing.assert_array_equal(tree.predict(table.assign(more=1)), tree.predict(table))
    with pytest.raises(InputError, match="missing: 'ripe'"):
        tree.predict(table.drop(columns="ripe"))
    with pytest.raises(InputError, match=r"'weight'.*'heavy' in row 0"):
        tree.predict(table.assign(weight="heavy"))


@pytest.mark.parametrize("how", ["names", "positions", "negative", "mask", "one name"])
def test_numbers_become_categories_on_request(how, rng):
    """Class by the parity of a code: two branches say it for a category, and not for a number."""
    code = rng.integers(0, 8, 200)
    X = pd.DataFrame({"noise": rng.normal(size=200), "code": code})
    asked = {
        "names": ["code"],
        "positions": [1],
        "negative": [-1],
        "mask": np.array([False, True]),
        "one name": "code",
    }[how]
    tree = DecisionTreeClassifier(categorical_features=asked).fit(X, code % 2)
    assert tree.get_n_leaves() == 2
    assert tree.nodes_.columns[1].levels == tuple(range(8))
    np.testing.assert_array_equal(tree.predict(X), code % 2)
    with pytest.warns(UnseenCategoryWarning, match="code='8'"):
        tree.predict(X.assign(code=8))


def test_given_cut_points_make_intervals():
    X = np.array([[0.5], [1.0], [2.9], [3.0], [5.0], [99.0]])
    tree = DecisionTreeClassifier(split_values={0: [5, 1, 3]}).fit(X, [0, 1, 1, 2, 3, 3])
    assert tree.nodes_.columns[0].cuts == (1, 3, 5)
    assert tree.get_n_leaves() == 4
    assert tree.predict([[-7.0], [1.0], [3.0], [4.999], [5.0]]).tolist() == [0, 1, 2, 2, 3]
    assert tree.predict([[np.nan]]).tolist() == [1]  # no training cell was missing: the heaviest branch


# ------------------------------------------------------------------------------------------ scikit-learn's parameters


def impurity_left(tree):
    """Σ over leaves of weight times impurity."""
    inner = getattr(tree, "nodes_", None) or tree.tree_
    if hasattr(inner, "weighted_n_node_samples"):
        leaf = inner.children_left < 0
        return float(inner.weighted_n_node_samples[leaf] @ inner.impurity[leaf])
    return float(inner.weight[inner.is_leaf] @ inner.impurity[inner.is_leaf])


@pytest.mark.parametrize(
    "limits",
    [
        {"min_samples_leaf": 0.07},
        {"min_samples_split": 0.3},
        {"min_samples_leaf": 13},
        {"min_samples_split": 40},
        {"min_weight_fraction_leaf": 0.1},
        {"max_leaf_nodes": 7},
        {"min_impurity_decrease": 0.02},
        {"ccp_alpha": 0.01},
        {"max_depth": 3},
        {"min_samples_split": 1.0},
    ],
    ids=str,
)
def test_limits_mean_what_they_mean_in_scikit_learn(limits):
    X, y = load_breast_cancer(return_X_y=True)
    ours = DecisionTreeClassifier(**limits).fit(X, y)
    theirs = peers.DecisionTreeClassifier(**limits, random_state=0).fit(X, y)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    np.testing.assert_allclose(impurity_left(ours), impurity_left(theirs), rtol=1e-9)


def test_importances_are_scikit_learns(rng):
    X = rng.normal(size=(400, 5))
    signal = X[:, 1] + 0.3 * X[:, 3] + 0.1 * rng.normal(size=400)
    limits = {"max_depth": 2, "min_samples_leaf": 25}  # in small leaves columns tie
    for ours, theirs, y in [
        (DecisionTreeClassifier(**limits), peers.DecisionTreeClassifier(**limits), signal > 0),
        (DecisionTreeRegressor(**limits), peers.DecisionTreeRegressor(**limits), signal),
    ]:
        np.testing.assert_allclose(
            ours.fit(X, y).feature_importances_, theirs.fit(X, y).feature_importances_, atol=1e-9
        )


def test_an_input_that_is_not_a_table_is_refused():
    frame, y = pd.DataFrame({"fare": [1.0, 2.0, 3.0]}), [0, 1, 1]
    for column in (frame["fare"], pl.Series("fare", [1.0, 2.0, 3.0]), pa.chunked_array([[1.0, 2.0, 3.0]])):
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
            DecisionTreeClassifier().fit(column, y)
    with pytest.raises(InputError, match=r"X is a LazyFrame.*X\.collect\(\)"):
        DecisionTreeClassifier().fit(pl.from_pandas(frame).lazy(), y)
    with pytest.raises(InputError, match=r"0 column\(s\)\. Give at least one"):
        DecisionTreeClassifier().fit(frame[[]], y)


@pytest.mark.parametrize("max_features", [None, "sqrt", "log2", 2, 0.5])
def test_attributes_shared_with_scikit_learn_are_equal(max_features, iris):
    X, y = iris
    ours = DecisionTreeClassifier(max_features=max_features, random_state=0).fit(X, y)
    theirs = peers.DecisionTreeClassifier(max_features=max_features, random_state=0).fit(X, y)
    for name in ("max_features_", "n_outputs_", "n_classes_", "n_features_in_"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    assert DecisionStump().fit(X, y).max_features_ == 4
    with pytest.raises(NotFittedError):
        DecisionTreeClassifier().max_features_  # noqa: B018


def test_shuffling_the_column_that_matters_costs_most(rng):
    X = rng.normal(size=(300, 3))
    y = X[:, 2] > 0
    found = DecisionTreeClassifier().fit(X, y).permutation_importances(X, y, random_state=0)
    assert found.importances_mean.argmax() == 2
    assert found.importances_mean[:2].tolist() == [0, 0]


def test_permutation_importances_equal_those_of_scikit_learn_where_it_supports_them(rng):
    X = rng.normal(size=(300, 3))
    for tree, y in [(DecisionTreeClassifier(max_depth=3), X[:, 2] > X[:, 0]), (DecisionTreeRegressor(), X[:, 1] ** 2)]:
        ours = tree.fit(X, y).permutation_importances(X, y, n_repeats=200, random_state=0)
        theirs = permutation_importance(tree, X, y, n_repeats=200, random_state=1)
        assert ours.importances.shape == (3, 200)
        np.testing.assert_allclose(ours.importances_mean, ours.importances.mean(axis=1))
        # Means of 200 shuffles each: standard errors, of both sides, times five.
        room = 5 * np.hypot(ours.importances_std, theirs.importances_std) / np.sqrt(200)
        assert (np.abs(ours.importances_mean - theirs.importances_mean) <= room + 1e-12).all()


def test_permutation_importances_of_every_kind_of_table_are_the_same(rng):
    penguins = load_penguins()
    species = penguins.labels()
    numbers = penguins.select(["bill_length_mm", "flipper_length_mm"])
    complete = np.column_stack([np.nan_to_num(column.values) for column in numbers])
    frame = pd.DataFrame({column.name: column.values for column in numbers})
    importances = [
        DecisionTreeClassifier(max_depth=2)
        .fit(X, species)
        .permutation_importances(X, species, random_state=3)
        .importances
        for X in (numbers, frame, pl.from_pandas(frame), complete, sp.csr_matrix(complete))
    ]
    np.testing.assert_array_equal(importances[0], importances[1])
    np.testing.assert_array_equal(importances[3], importances[4])
    assert (importances[0] > 0).all()
    with pytest.raises(ParameterError, match="n_repeats is 0"):
        DecisionTreeClassifier().fit(complete, species).permutation_importances(complete, species, n_repeats=0)


def test_rules_of_a_sparse_matrix_mention_missing_cells_only_where_there_are_some(rng):
    X = np.where(rng.random((80, 3)) < 0.6, 0.0, rng.normal(size=(80, 3)))
    X[:8, 1] = np.nan
    y = (np.nan_to_num(X[:, 0]) > 0) ^ np.isnan(X[:, 1])
    tree = DecisionTreeClassifier().fit(sp.csr_matrix(X), y)
    assert [column.has_missing for column in tree.nodes_.columns] == [False, True, False]
    assert "x0" in str(tree.rules())
    assert not re.search(r"x0 \S+ \S+ or missing", str(tree.rules()))
    assert certify(tree, sp.csr_matrix(X), y).holds


@pytest.mark.parametrize("is_regression", [False, True])
def test_cost_complexity_path_is_scikit_learns(is_regression, rng):
    X = rng.normal(size=(150, 4))
    y = rng.normal(size=150) if is_regression else rng.integers(0, 3, 150)
    ours, theirs = (
        (DecisionTreeRegressor(), peers.DecisionTreeRegressor(random_state=0))
        if is_regression
        else (DecisionTreeClassifier(), peers.DecisionTreeClassifier(random_state=0))
    )
    mine, other = (tree.cost_complexity_pruning_path(X, y) for tree in (ours, theirs))
    np.testing.assert_allclose(mine.impurities[0], other.impurities[0], atol=1e-12)
    np.testing.assert_allclose(mine.impurities[-1], other.impurities[-1])
    np.testing.assert_allclose(mine.ccp_alphas[-1], other.ccp_alphas[-1])
    assert not hasattr(ours, "nodes_")  # scikit-learn's call does not fit either


def test_monotone_predictions_are_monotone_and_as_good_as_scikit_learns(rng):
    X = rng.uniform(size=(500, 3))
    signal = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=500)
    line = np.linspace(0, 1, 101)
    for ours, theirs, y, predict in [
        (DecisionTreeRegressor, peers.DecisionTreeRegressor, signal, "predict"),
        (DecisionTreeClassifier, peers.DecisionTreeClassifier, (signal > 0).astype(int), "predict_proba"),
    ]:
        for growth in ({"max_depth": 5}, {"max_leaf_nodes": 12}):
            tree = ours(monotonic_cst=[1, -1, 0], **growth).fit(X, y)
            peer = theirs(monotonic_cst=[1, -1, 0], random_state=0, **growth).fit(X, y)
            assert tree.score(X, y) >= peer.score(X, y) - 0.01
            for column, sign in ((0, 1), (1, -1)):
                for base in X[:20]:
                    rows = np.repeat(base[None], len(line), axis=0)
                    rows[:, column] = line
                    value = getattr(tree, predict)(rows)
                    value = value if value.ndim == 1 else value[:, 1]
                    assert (sign * np.diff(value) >= 0).all()


@pytest.mark.parametrize("criterion", ["squared_error", "gaussian_entropy", "absolute_error"])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_every_criterion_of_a_regression_keeps_the_monotone_order(criterion, engine, rng):
    X = rng.integers(0, 12, size=(120, 2)).astype(float)
    y = X[:, 0] + 4 * rng.standard_cauchy(size=120)
    tree = DecisionTreeRegressor(criterion=criterion, monotonic_cst={0: 1}, max_depth=5, engine=engine).fit(X, y)
    for other in range(12):
        value = tree.predict(np.column_stack([np.arange(12.0), np.full(12, other)]))
        assert (np.diff(value) >= 0).all()
    proof = certify(tree, X, y)
    assert proof.holds, str(proof)


def test_monotone_constraints_with_three_classes_are_refused(iris):
    with pytest.raises(ParameterError, match=r"multiclass.*monotonic_cst.*3 classes"):
        DecisionTreeClassifier(monotonic_cst=[1, 0, 0, 0]).fit(*iris)


def test_random_trees_are_the_same_for_the_same_number(iris):
    X, y = iris
    trees = [
        DecisionTreeClassifier(max_features=2, random_state=seed, n_jobs=n_jobs).fit(X, y)
        for seed, n_jobs in ((0, 1), (0, 2), (1, 1), (np.random.RandomState(0), 1), (np.random.RandomState(0), 1))
    ]
    thresholds = [tree.nodes_.threshold[~tree.nodes_.is_leaf].tolist() for tree in trees]
    assert thresholds[0] == thresholds[1]
    assert thresholds[3] == thresholds[4]
    assert thresholds[0] != thresholds[2]
    assert all(tree.score(X, y) == 1 for tree in trees)
    assert all(certify(tree, X, y).holds for tree in trees)


def test_equal_columns_take_turns_under_random_state(rng):
    """None: always the first of equals. A number: any of them."""
    X = np.repeat(rng.normal(size=(50, 1)), 4, axis=1)
    y = X[:, 0] > 0
    assert DecisionTreeClassifier().fit(X, y).nodes_.feature[0] == 0
    assert {DecisionTreeClassifier(random_state=s).fit(X, y).nodes_.feature[0] for s in range(40)} == {0, 1, 2, 3}


# ------------------------------------------------------------------------------------------------- a fitted tree


def test_leaves_paths_and_probabilities_agree(iris):
    X, y = iris
    tree = DecisionTreeClassifier(max_depth=3).fit(X, y)
    leaf = tree.apply(X)
    assert tree.nodes_.is_leaf[leaf].all()
    path = tree.decision_path(X)
    assert path.shape == (150, tree.nodes_.n_nodes)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=1)).ravel(), tree.nodes_.depth[leaf] + 1)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=0)).ravel(), tree.nodes_.n_rows)
    shares = tree.predict_proba(X)
    for node in np.unique(leaf):
        np.testing.assert_allclose(
            shares[leaf == node][0], np.bincount(y[leaf == node], minlength=3) / sum(leaf == node)
        )
    np.testing.assert_array_equal(tree.classes_[shares.argmax(axis=1)], tree.predict(X))
    np.testing.assert_allclose(np.exp(tree.predict_log_proba(X)), shares)


def test_smoothing_of_one_is_laplaces(iris):
    X, y = iris
    plain = DecisionTreeClassifier(max_depth=2).fit(X, y)
    smooth = DecisionTreeClassifier(max_depth=2, smoothing=1).fit(X, y)
    counts = plain.nodes_.value[plain.apply(X)]
    np.testing.assert_allclose(smooth.predict_proba(X), (counts + 1) / (counts.sum(axis=1, keepdims=True) + 3))


@pytest.mark.parametrize("prune", [rule for rule in RULES if rule != "cost_complexity"])
def test_every_rule_prunes_noise_and_keeps_the_signal(prune, rng):
    X = rng.normal(size=(400, 4))
    y = np.where(rng.random(400) < 0.15, rng.integers(0, 2, 400), X[:, 0] > 0).astype(int)
    tree = DecisionTreeClassifier(prune=prune, random_state=None).fit(X, y)
    assert 2 <= tree.nodes_.n_leaves < tree.grown_.n_leaves
    assert tree.nodes_.feature[0] == 0
    proof = certify(tree, X, y)
    assert proof.holds, str(proof)


@pytest.mark.parametrize("prune", ["chi2", "mdl", "reduced_error", "cost_complexity"])
def test_regression_trees_are_pruned_too(prune, rng):
    X = rng.normal(size=(300, 3))
    y = 3 * (X[:, 0] > 0) + rng.normal(size=300)
    tree = DecisionTreeRegressor(prune=prune).fit(X, y)
    assert 2 <= tree.nodes_.n_leaves < tree.grown_.n_leaves
    proof = certify(tree, X, y)
    assert proof.holds, str(proof)


@pytest.mark.parametrize("how", [{"ccp_alpha": "cv"}, {"prune": "cost_complexity"}])
def test_the_penalty_per_leaf_is_chosen_by_cross_validation(how, rng):
    X = rng.normal(size=(300, 4))
    y = np.where(rng.random(300) < 0.2, rng.integers(0, 2, 300), X[:, 0] > 0).astype(int)
    tree = DecisionTreeClassifier(**how).fit(X, y)
    assert tree.ccp_alpha_ > 0
    assert tree.nodes_.n_leaves == DecisionTreeClassifier(ccp_alpha=tree.ccp_alpha_).fit(X, y).nodes_.n_leaves
    assert tree.nodes_.n_leaves < tree.grown_.n_leaves


def test_the_certificate_uses_the_rows_held_out_by_a_random_state_object(rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    for random_state in (None, 3, np.random.RandomState(3)):
        tree = DecisionTreeClassifier(prune="reduced_error", random_state=random_state).fit(X, y)
        assert certify(tree, X, y).holds


def test_significance_stops_growth_on_noise(rng):
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    assert DecisionTreeClassifier(significance=0.01).fit(X, y).nodes_.n_nodes == 1
    y = (X[:, 2] > 0).astype(int)
    assert DecisionTreeClassifier(significance=0.01).fit(X, y).get_n_leaves() == 2


@pytest.mark.parametrize("thresholds", ["gaussian", "logistic"])
def test_fitted_thresholds_separate_iris(thresholds, iris):
    X, y = iris
    tree = DecisionTreeClassifier(thresholds=thresholds, max_depth=3).fit(X, y)
    assert tree.score(X, y) > 0.93
    assert certify(tree, X, y).holds


# -------------------------------------------------------------------------------------------- scikit-learn's machinery


def test_clone_pickle_and_parameters(iris):
    X, y = iris
    tree = DecisionTreeClassifier(max_depth=3, split_values={0: [5.0, 6.0]}).fit(X, y)
    assert clone(tree).get_params() == tree.get_params()
    again = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))
    assert str(again.rules()) == str(tree.rules())
    with pytest.raises(NotFittedError):
        clone(tree).predict(X)


def test_searches_pipelines_and_scores(frame, iris):
    table, y = frame
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 5], "categorical": ["subset", "multiway"]}, cv=3)
    assert search.fit(table, y).best_score_ > 0.8
    X, y = iris
    assert cross_val_score(make_pipeline(StandardScaler(), DecisionTreeClassifier()), X, y, cv=3).mean() > 0.9
    X, y = load_diabetes(return_X_y=True)
    assert cross_val_score(DecisionTreeRegressor(max_depth=3), X, y, cv=3).mean() > 0.25


def test_penguins_as_they_are():
    penguins = load_penguins()
    tree = DecisionTreeClassifier(prune="pessimistic").fit(penguins, penguins.labels())
    assert tree.score(penguins, penguins.labels()) > 0.95
    assert certify(tree, penguins, penguins.labels()).holds


# --------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("criterion", "giny", "'giny'.*'gini'"),
        ("criterion", "squared_error", "'squared_error'.*'gini'"),
        ("criterion", None, "None.*'gini'"),
        ("split_score", "ratio", "'ratio'.*'gain_ratio'"),
        ("thresholds", "all", "'all'.*'exact'"),
        ("categorical", "onehot", "'onehot'.*'multiway'"),
        ("categorical_features", ["nose"], "'nose'.*'x0'"),
        ("categorical_features", [9], "9; the columns are 0 to 3"),
        ("categorical_features", [True], "mask of length 1; X has 4 columns"),
        ("categorical_features", [1.5], r"1\.5; use its name or its position"),
        ("split_values", [1, 2], r"it must be \{column: cut points\}"),
        ("split_values", {0: []}, "one or more distinct finite numbers"),
        ("split_values", {0: [1, 1]}, "one or more distinct finite numbers"),
        ("split_values", {0: [np.nan]}, "one or more distinct finite numbers"),
        ("split_values", {0: ["a"]}, "one or more distinct finite numbers"),
        ("split_values", {"nose": [1]}, "'nose'"),
        ("max_depth", 0, "0; it must be a whole number ≥ 1.*None means no limit"),
        ("max_depth", 2.5, r"2\.5; it must be a whole number"),
        ("max_depth", True, "True; it must be a whole number"),
        ("max_depth", "deep", "'deep'"),
        ("min_samples_split", 1, "1; it must be a whole number ≥ 2"),
        ("min_samples_split", 1.5, r"1\.5; it must be a share of the rows ≤ 1\.0"),
        ("min_samples_split", -0.1, r"-0\.1; it must be a number > 0"),
        ("min_samples_split", np.nan, "nan"),
        ("min_samples_leaf", 0, "0; it must be a whole number ≥ 1"),
        ("min_samples_leaf", 3.0, r"3\.0; it must be a whole number"),
        ("min_samples_leaf", "many", "'many'"),
        ("min_samples_leaf", np.inf, "inf"),
        ("min_weight_fraction_leaf", 0.6, r"0\.6; it must be at most 0\.5"),
        ("min_weight_fraction_leaf", -0.1, r"-0\.1; it must be a number ≥ 0"),
        ("max_features", 0, "0; it must be .* a whole number ≥ 1"),
        ("max_features", "root", "'root'; it must be 'sqrt', 'log2', a whole number ≥ 1, a share .* ≤ 1.0, or None"),
        ("max_features", 1.5, r"1\.5; it must be .* a share of the columns > 0 and ≤ 1\.0"),
        ("max_features", 0.0, "0.0; it must be .* > 0 and ≤ 1.0"),
        ("max_leaf_nodes", 1, "1; it must be a whole number ≥ 2"),
        ("min_impurity_decrease", -1, "-1; it must be a number ≥ 0"),
        ("min_gain", np.nan, "nan; it must be a number ≥ 0"),
        ("majority", 0, "0; it must be a number > 0"),
        ("majority", 1.2, r"1\.2; it is a share"),
        ("complexity", -0.5, r"-0\.5"),
        ("significance", -0.1, r"significance is -0\.1"),
        ("significance", 1.5, r"significance is 1\.5"),
        ("correct_significance", "no", "'no'; it must be True or False"),
        ("prune", "all", "'all'.*'chi2'"),
        ("prune_level", 2, "prune_level is 2"),
        ("validation_fraction", 1.5, r"validation_fraction is 1\.5"),
        ("ccp_alpha", -1, "-1.*'cv'"),
        ("ccp_alpha", "best", "'best'.*'cv'"),
        ("ccp_alpha", np.array([0.1, 0.2]), "ccp_alpha is"),
        ("monotonic_cst", [1, 0], "shape 2 but the input data X has 4 features"),
        ("monotonic_cst", [2, 0, 0, 0], "it holds 2"),
        ("monotonic_cst", {"nose": 1}, "'nose'"),
        ("smoothing", -1, "-1; it must be a number ≥ 0"),
        ("n_bins", 1, "1; it must be a whole number ≥ 2"),
        ("random_state", -1, "random_state is -1"),
        ("random_state", "seed", "random_state is 'seed'"),
        ("n_jobs", 0, "n_jobs is 0"),
        ("time_limit", -1, "time_limit is -1"),
        ("engine", "fast", "engine is 'fast'"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_bad_parameter_is_named_with_its_value_and_a_cure(parameter, value, message, iris):
    X, y = iris
    with pytest.raises(ParameterError, match=message) as found:
        DecisionTreeClassifier(**{parameter: value}).fit(X[:100], y[:100])
    assert parameter in str(found.value)


def test_incompatible_parameters_are_refused(frame, iris):
    table, y = frame
    with pytest.raises(ParameterError, match="split_values names the column 'colour', which is not numeric"):
        DecisionTreeClassifier(split_values={"colour": [1]}).fit(table, y)
    with pytest.raises(ParameterError, match="monotonic_cst is 1 for the column 'colour', a category"):
        DecisionTreeClassifier(monotonic_cst={"colour": 1}).fit(table, y == "yes")
    with pytest.raises(ParameterError, match="categorical_features needs a dense table"):
        DecisionTreeClassifier(categorical_features=[0]).fit(sp.csr_matrix(iris[0]), iris[1])
    with pytest.raises(ParameterError, match="prune is 'binomial_test'"):
        DecisionTreeRegressor(prune="binomial_test").fit(*iris)
    with pytest.raises(ParameterError, match="prune is 'pessimistic'"):
        DecisionTreeRegressor(prune="pessimistic").fit(*iris)
    with pytest.raises(ParameterError, match="thresholds is 'gaussian', which is for classes"):
        DecisionTreeRegressor(thresholds="gaussian").fit(*iris)
    with pytest.raises(InputError, match="ccp_alpha='cv' needs at least 5 rows"):
        DecisionTreeClassifier(ccp_alpha="cv").fit([[0], [1]], [0, 1])
    with pytest.raises(InputError, match=r"validation_fraction=0\.25 of 2 rows"):
        DecisionTreeClassifier(prune="reduced_error").fit([[0], [1]], [0, 1])


def test_check_input_is_accepted_and_not_routed(iris):
    X, y = iris
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y, check_input=False)
    for method in ("predict", "predict_proba", "apply"):
        ours = getattr(tree, method)
        np.testing.assert_array_equal(ours(X, check_input=False), ours(X))
    assert (tree.decision_path(X, check_input=False) != tree.decision_path(X)).nnz == 0
    assert not hasattr(tree, "set_predict_request")
    assert "check_input" not in str(tree.get_metadata_routing())
    changed = X.copy()
    changed[1, 1] = np.inf
    with pytest.raises(InputError, match="in row 1 is infinite"):
        tree.fit(changed, y, check_input=False)
