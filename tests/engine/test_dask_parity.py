"""Linear machines and trees over partitions are those of one machine, whatever the partitions are."""

from __future__ import annotations

import signal
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from tests.engine.dask_clusters import OF_DASK, bits_of_tree, threads

from margrove import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    LinearSVC,
    LinearSVR,
    RandomForestClassifier,
    certify,
    load_penguins,
)
from margrove.boost.reference import boost
from margrove.engine import Effort
from margrove.engine.dask import tree as spread
from margrove.engine.native import Native
from margrove.errors import ConvergenceWarning, InputError, MargroveWarning, ParameterError
from margrove.run.progress import watched
from margrove.status import Status

pytestmark = pytest.mark.filterwarnings(*OF_DASK)
SLOW = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def client():
    with threads(2) as own:
        yield own


def _ugly(n, d):
    """Ties, a constant column, columns of other sizes, and rows that come twice."""
    rng = np.random.default_rng(n)
    X = np.round(rng.normal(size=(n, d)), 1) * 10.0 ** rng.integers(-2, 3, size=d)
    X[:, 1] = 3
    X[n // 2 :] = X[: n - n // 2]
    return X, rng.integers(0, 3, size=n) * (X[:, 0] > 0)


SETS = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "diabetes": lambda: (load_diabetes().data, load_diabetes().target > 140),
    "ugly": lambda: _ugly(400, 5),
    "float32": lambda: (load_iris().data.astype(np.float32), load_iris().target),
    "whole numbers": lambda: (load_digits().data.astype(int)[:500], load_digits().target[:500]),
    "words": lambda: (load_iris().data, load_iris().target_names[load_iris().target]),
    "few rows": lambda: (np.arange(6.0)[:, None] ** 2, np.array([0, 0, 1, 0, 1, 1])),
}


# `make test` has those that take a second.
CHOSEN = [
    pytest.param(name, marks=[] if name in ("iris", "ugly", "words", "few rows") else pytest.mark.slow) for name in SETS
]


def _chunks(n):
    """Three partitions, of which the second is small."""
    return ((n // 2, max(1, n // 10), n - n // 2 - max(1, n // 10)),)


def _given(name):
    X, y = SETS[name]()
    return X, y, da.from_array(X, chunks=(*_chunks(len(X)), X.shape[1])), da.from_array(y, chunks=_chunks(len(X)))


@pytest.fixture
def small_nodes(monkeypatch):
    """Trees whose upper part has most of the nodes."""
    monkeypatch.setattr(spread, "FEW_ROWS", 30)
    monkeypatch.setattr(spread, "FEW_SHARE", 1000)


def test_many_rows_begin_with_a_sample_and_end_where_the_native_engine_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 5)).astype(np.float32)
    X[:, 4] = 3000 + 0.1 * X[:, 4]  # its square has no digits left in float32
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 3 * (X[:, 4] - 3000) + rng.normal(size=len(X)) > 0).astype(int)
    dX, dy = da.from_array(X, chunks=(2500, 5)), da.from_array(y, chunks=2500)
    for tol in (1e-4, 1e-9):
        model, expected = LinearSVC(tol=tol).fit(dX, dy), LinearSVC(tol=tol).fit(X, y)
        assert model.status_ is Status.CONVERGED
        own, other = certify(model, dX, dy), certify(expected, X, y)
        apart = np.abs(own["primal value"]) * tol
        assert (np.abs(np.subtract(own["primal value"], other["primal value"])) <= apart).all()
        assert model.n_iter_ <= 10


@pytest.mark.parametrize("name", CHOSEN)
def test_linear_machines_are_equal_within_both_gaps(name):
    X, y, dX, dy = _given(name)
    tol = 1e-6
    for loss in ("squared_hinge", "hinge"):
        expected = LinearSVC(C=0.01, loss=loss, tol=tol, max_iter=10_000).fit(X, y)
        model = LinearSVC(C=0.01, loss=loss, tol=tol).fit(dX, dy)
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.holds
        assert model.certificate_.source == "recomputed"
        assert model.classes_.tolist() == expected.classes_.tolist()
        assert (np.abs(model.primal_ - expected.primal_) <= 2 * tol * expected.primal_).all()


@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "epsilon_insensitive"])
@pytest.mark.parametrize("is_free", [False, True])
def test_linear_regressions_are_equal_within_both_gaps(loss, is_free):
    X, z = load_diabetes(return_X_y=True)
    how = {"C": 5.0, "epsilon": 3.0, "loss": loss, "tol": 1e-6, "regularize_intercept": not is_free}
    expected = LinearSVR(**how, max_iter=10_000).fit(X, z)
    model = LinearSVR(**how).fit(da.from_array(X, chunks=(100, 10)), da.from_array(z, chunks=100))
    assert model.certificate_.holds
    assert abs(model.primal_ - expected.primal_) <= 2e-6 * expected.primal_


@pytest.mark.parametrize("name", CHOSEN)
def test_trees_have_the_same_bits(name, small_nodes):
    X, y, dX, dy = _given(name)
    for settings in ({}, {"max_depth": 3}, {"min_samples_leaf": 5, "min_impurity_decrease": 0.002}):
        expected = DecisionTreeClassifier(**settings).fit(X, y)
        tree = DecisionTreeClassifier(**settings).fit(dX, dy)
        assert tree.nodes_.columns == expected.nodes_.columns
        assert bits_of_tree(tree.nodes_) == bits_of_tree(expected.nodes_)
        assert tree.classes_.tolist() == expected.classes_.tolist()
        assert certify(tree, X, y).holds


@pytest.mark.parametrize("criterion", ["squared_error", pytest.param("absolute_error", marks=pytest.mark.slow)])
def test_trees_of_numbers_have_the_same_bits(criterion, small_nodes, rng):
    X, z = load_diabetes(return_X_y=True)
    weight = rng.uniform(0.1, 2, size=len(z))
    dX, dz, dw = da.from_array(X, chunks=(100, 10)), da.from_array(z, chunks=100), da.from_array(weight, chunks=100)
    for own, spread_weight in ((None, None), (weight, dw)):
        expected = DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, z, own)
        tree = DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(dX, dz, spread_weight)
        assert bits_of_tree(tree.nodes_) == bits_of_tree(expected.nodes_)


@pytest.mark.parametrize("criterion", [pytest.param("entropy", marks=pytest.mark.slow), "poisson"])
def test_only_the_last_digits_of_gains_depend_on_where_the_upper_part_ends(criterion, small_nodes):
    X, z = load_diabetes(return_X_y=True)
    kind = DecisionTreeClassifier if criterion == "entropy" else DecisionTreeRegressor
    y = z > 140 if criterion == "entropy" else z
    expected = kind(criterion=criterion, max_depth=5).fit(X, y).nodes_
    tree = (
        kind(criterion=criterion, max_depth=5)
        .fit(da.from_array(X, chunks=(100, 10)), da.from_array(y, chunks=100))
        .nodes_
    )
    bits, wanted = bits_of_tree(tree), bits_of_tree(expected)
    del bits["gain"], wanted["gain"]
    assert bits == wanted
    assert np.allclose(tree.gain, expected.gain, rtol=1e-9, atol=1e-12, equal_nan=True)


def test_tables_with_categories_and_missing_cells_give_the_same_tree(small_nodes):
    penguins = load_penguins()
    frame = pd.DataFrame(
        {
            column.name: pd.Series(column.cells(), dtype=None if column.kind == "numeric" else "str")
            for column in penguins
        }
    )
    y = penguins.labels()
    for settings in ({}, {"categorical": "multiway"}, {"categorical": "one_vs_rest", "prune": "pessimistic"}):
        expected = DecisionTreeClassifier(**settings).fit(frame, y)
        for n_partitions in (1, 4):
            tables = dd.from_pandas(frame.assign(species=y), npartitions=n_partitions)
            tree = DecisionTreeClassifier(**settings).fit(tables, "species")
            assert tree.nodes_.columns == expected.nodes_.columns
            assert bits_of_tree(tree.nodes_) == bits_of_tree(expected.nodes_)
            assert tree.categorical_ == expected.categorical_
            assert list(tree.feature_names_in_) == list(frame.columns)
            assert np.array_equal(tree.predict(frame), expected.predict(frame))


def test_rows_of_weight_zero_are_left_out_of_a_tree(small_nodes, rng):
    X, y = load_iris(return_X_y=True)
    weight = rng.integers(0, 2, size=150).astype(float)
    dX, dy, dw = da.from_array(X, chunks=(40, 4)), da.from_array(y, chunks=40), da.from_array(weight, chunks=40)
    tree = DecisionTreeClassifier(class_weight="balanced").fit(dX, dy, dw)
    expected = DecisionTreeClassifier(class_weight="balanced").fit(X, y, weight)
    assert bits_of_tree(tree.nodes_) == bits_of_tree(expected.nodes_)


def test_a_fit_that_is_out_of_time_keeps_what_it_has(small_nodes):
    X, y, dX, dy = _given("wine")
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        tree = DecisionTreeClassifier(time_limit=1e-6).fit(dX, dy)
    assert tree.status_ is Status.TIME_LIMIT
    assert tree.nodes_.n_rows[0] == len(y)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        tree = DecisionTreeRegressor(time_limit=1e-6).fit(dX, dy)
    assert tree.predict(X[:1]) == pytest.approx([y.mean()])
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = LinearSVC(time_limit=1e-6).fit(dX, dy)
    assert model.status_ is Status.TIME_LIMIT
    assert not model.certificate_.holds


@pytest.mark.parametrize(
    "settings", [{"max_features": 2}, {"splitter": "random"}, {"thresholds": "histogram"}, {"ccp_alpha": "cv"}]
)
def test_what_a_tree_over_partitions_lacks_is_named(settings):
    (name,) = settings
    with pytest.raises(ParameterError, match=f"{name} is .*, which engine='dask' does not support"):
        DecisionTreeClassifier(engine="dask", **settings).fit(*load_iris(return_X_y=True))


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesRegressor])
def test_forests_have_the_same_trees(kind):
    X, y = load_wine(return_X_y=True)
    dX, dy = da.from_array(X, chunks=(50, 13)), da.from_array(y, chunks=50)
    expected = kind(n_estimators=70, max_depth=4, random_state=3).fit(X, y)
    forest = kind(n_estimators=70, max_depth=4, random_state=3).fit(dX, dy)
    assert forest.engine_ == "dask"
    assert forest.model_.n_trees == 70
    for t in range(70):
        assert bits_of_tree(forest.model_.tree(t)) == bits_of_tree(expected.model_.tree(t))
    assert np.array_equal(forest.predict(dX).compute(), expected.predict(X))
    assert certify(forest, X, y).holds
    frame = pd.DataFrame({"x": X[:, 0], "word": np.array(["a", "b", None], dtype=object)[y]})
    expected = kind(n_estimators=3, random_state=0).fit(frame, X[:, 1] > 2)
    forest = kind(n_estimators=3, random_state=0).fit(dd.from_pandas(frame.assign(y=X[:, 1] > 2), npartitions=2), "y")
    assert np.array_equal(forest.predict(frame), expected.predict(frame))


def test_what_a_forest_over_partitions_lacks_is_named():
    with pytest.raises(ParameterError, match="oob_score is True, which engine='dask' does not support"):
        RandomForestClassifier(oob_score=True, engine="dask").fit(*load_iris(return_X_y=True))


BOOSTED = {
    "stumps": {},
    "trees": {"estimator": DecisionTreeClassifier(max_depth=3, min_samples_leaf=4), "learning_rate": 0.5},
    "weights of classes": {"class_weight": "balanced", "learning_rate": 6.0},
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "stumps" else SLOW) for name in BOOSTED])
@pytest.mark.parametrize("is_weighted", [False, pytest.param(True, marks=SLOW)])
def test_boosting_is_that_of_native_trees_bit_by_bit(name, is_weighted, small_nodes, rng):
    X, y, dX, dy = _given("ugly")
    weight = rng.integers(0, 3, size=len(y)).astype(float) if is_weighted else None
    own = None if weight is None else da.from_array(weight, chunks=_chunks(len(y)))
    how = {"n_estimators": 4, **BOOSTED[name]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MargroveWarning)  # overflow, at a large learning rate
        expected = AdaBoostClassifier(**how).fit(X, y, weight)
        model = AdaBoostClassifier(**how).fit(dX, dy, own)
    problem = expected._problem_of(X, y, weight)[0].problem
    solution = boost(problem, lambda tree: Native().solve(tree, Effort()).model)
    assert model.engine_ == "dask"
    assert model.status_ == expected.status_ == solution.status
    assert model.n_estimators_ == expected.n_estimators_ == solution.model.grove.n_trees
    for t, tree in enumerate(model.model_.grove.trees):
        assert bits_of_tree(tree) == bits_of_tree(solution.model.grove.tree(t))
        other = expected.model_.grove.tree(t)
        assert np.array_equal(tree.feature, other.feature)
        assert np.array_equal(tree.threshold, other.threshold, equal_nan=True)
    for column in ("error", "vote", "training_error"):
        values = getattr(model.rounds_, column)
        assert values.tobytes() == getattr(solution.rounds, column).tobytes()
        assert np.allclose(values, getattr(expected.rounds_, column), rtol=1e-9, atol=1e-12)
    assert certify(model, X, y, weight).holds
    for method in ("predict", "predict_proba", "decision_function"):
        lazy, values = getattr(model, method)(dX), getattr(model, method)(X)
        assert lazy.shape == values.shape
        assert np.array_equal(lazy.compute(), values)


def test_boosting_that_is_stopped_keeps_whole_rounds(small_nodes):
    _, _, dX, dy = _given("wine")
    with pytest.raises(ParameterError, match="the first DecisionStump took longer"):
        AdaBoostClassifier(time_limit=1e-6).fit(dX, dy)

    def interrupt(progress):
        if progress.done == 2:
            signal.raise_signal(signal.SIGINT)

    with watched(interrupt), pytest.warns(ConvergenceWarning, match="interrupted"):
        model = AdaBoostClassifier(n_estimators=10_000).fit(dX, dy)
    assert 2 <= model.n_estimators_ == model.rounds_.n_rounds < 100


@SLOW
def test_boosting_takes_categories_and_missing_cells(small_nodes):
    X, y = load_wine(return_X_y=True)
    frame = pd.DataFrame({"x": np.where(X[:, 0] > 14, np.nan, X[:, 0]), "word": np.array(["a", "b", None])[y]})
    expected = AdaBoostClassifier(n_estimators=5).fit(frame, X[:, 1] > 2)
    model = AdaBoostClassifier(n_estimators=5).fit(dd.from_pandas(frame.assign(y=X[:, 1] > 2), npartitions=3), "y")
    assert model.categorical_ == expected.categorical_
    assert np.array_equal(model.predict(frame), expected.predict(frame))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"early_stopping": True}, "early_stopping is True, which engine='dask' does not support"),
        ({"warm_start": True}, "warm_start is True, which engine='dask' does not support"),
        ({"estimator": LinearSVC()}, "estimator is LinearSVC.*, which engine='dask' does not boost"),
        ({"estimator": DecisionTreeClassifier(thresholds="histogram")}, "thresholds is 'histogram', which"),
        ({"stop_at_bound": 0.1}, "stop_at_bound is 0.1, and there are 3 classes"),
    ],
)
def test_what_boosting_over_partitions_lacks_is_named(settings, words):
    with pytest.raises(ParameterError, match=words):
        AdaBoostClassifier(engine="dask", **settings).fit(*load_iris(return_X_y=True))


R2 = {
    "default": {},
    "deep": {"estimator": DecisionTreeRegressor(), "loss": "exponential", "learning_rate": 0.3},
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "default" else SLOW) for name in R2])
@pytest.mark.parametrize("is_weighted", [False, pytest.param(True, marks=SLOW)])
def test_boosted_numbers_are_those_of_one_machine(name, is_weighted, small_nodes, rng):
    X, _, dX, _ = _given("ugly")
    y = np.nan_to_num(X).sum(axis=1) + rng.normal(size=len(X))
    weight = rng.integers(1, 3, size=len(y)).astype(float) if is_weighted else None
    dy, own = (None if values is None else da.from_array(values, chunks=_chunks(len(y))) for values in (y, weight))
    how = {"n_estimators": 4, "random_state": 3, **R2[name]}
    expected = AdaBoostRegressor(**how).fit(X, y, weight)
    model = AdaBoostRegressor(**how).fit(dX, dy, own)
    assert model.engine_ == "dask"
    assert (model.status_, model.n_estimators_, model.n_rows_) == (expected.status_, expected.n_estimators_, len(y))
    for t, tree in enumerate(model.model_.grove.trees):
        other = expected.model_.grove.tree(t)
        assert np.array_equal(tree.feature, other.feature)
        assert np.array_equal(tree.threshold, other.threshold, equal_nan=True)
    assert np.allclose(model.estimator_weights_, expected.estimator_weights_, rtol=1e-9)
    assert np.allclose(model.estimator_errors_, expected.estimator_errors_, rtol=1e-9)
    assert certify(model, X, y, weight).holds
    assert np.array_equal(model.predict(dX).compute(), model.predict(X))


def test_what_boosting_of_numbers_over_partitions_lacks_is_named(small_nodes):
    X, y = da.from_array(np.eye(4), chunks=2), da.from_array(np.arange(4.0), chunks=2)
    with pytest.raises(ParameterError, match="which counts rows; engine='dask' weighs"):
        AdaBoostRegressor(DecisionTreeRegressor(min_samples_leaf=2)).fit(X, y)
    with pytest.raises(InputError, match=r"rows have weight 0\. Leave them out"):
        AdaBoostRegressor().fit(X, y, da.from_array(np.array([1.0, 0, 1, 1]), chunks=2))


def test_sparse_rows_are_refused_by_trees(rng):
    import scipy.sparse as sp

    with pytest.raises(InputError, match="engine='dask' grows and certifies trees of dense rows"):
        DecisionTreeClassifier(engine="dask").fit(sp.csr_matrix(np.eye(20)), np.arange(20) % 2)
