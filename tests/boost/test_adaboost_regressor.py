"""`AdaBoostRegressor`: scikit-learn's to the last bit with its learners, and ours by weights instead of copies."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import AdaBoostRegressor as ScikitBoost
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor as ScikitTree
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import AdaBoostRegressor, DecisionStump, DecisionTreeRegressor, certify, load, save
from margrove.boost.r2 import weighted_median
from margrove.errors import InputError, ModelFileError, ParameterError
from margrove.status import Status

DRAWN = "rows are drawn: a row twice as probable is not two rows, as in scikit-learn's"


def _failing(estimator):
    names = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(names, DRAWN)


@parametrize_with_checks(
    [
        AdaBoostRegressor(n_estimators=4),
        AdaBoostRegressor(DecisionTreeRegressor(max_depth=3, min_samples_leaf=2), n_estimators=4),
    ],
    expected_failed_checks=_failing,
)
def test_scikit_learns_checks_of_regressors_pass(estimator, check):
    check(estimator)


@pytest.fixture
def waves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=150)


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
@pytest.mark.parametrize("rate", [1.0, 0.4])
@pytest.mark.parametrize("learner", [None, LinearRegression(), ScikitTree(max_depth=2, max_features=1)], ids=str)
def test_with_scikit_learns_learner_it_is_scikit_learns_to_the_last_bit(waves, loss, rate, learner):
    X, y = waves
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    learner = ScikitTree(max_depth=3) if learner is None else learner
    settings = {"n_estimators": 12, "learning_rate": rate, "loss": loss, "random_state": 7}
    ours = AdaBoostRegressor(learner, **settings).fit(X, y, weight)
    theirs = ScikitBoost(learner, **settings).fit(X, y, weight)
    n = len(theirs.estimators_)
    assert ours.n_estimators_ == n
    if ours.status_ is Status.CONVERGED:
        np.testing.assert_array_equal(ours.estimator_errors_, theirs.estimator_errors_[:n])
        np.testing.assert_array_equal(ours.estimator_weights_, theirs.estimator_weights_[:n])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for mine, other in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_array_equal(mine, other)
    if hasattr(learner, "max_depth"):
        np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-12)


def test_our_trees_are_boosted_as_scikit_learns_are(engine, waves):
    """The same rows are drawn; the trees agree where no two columns part a node equally well."""
    X, y = waves
    ours = AdaBoostRegressor(DecisionTreeRegressor(max_depth=1), n_estimators=10, random_state=0, engine=engine).fit(
        X, y
    )
    generator = np.random.RandomState(0)
    weight = np.full(len(y), 1 / len(y))
    seed = generator.randint(np.iinfo(np.int32).max)
    drawn = generator.choice(np.arange(len(y)), size=len(y), replace=True, p=weight)
    assert ours.estimators_[0].random_state == seed
    first = ScikitTree(max_depth=1, random_state=seed).fit(X[drawn], y[drawn])
    off = np.abs(first.predict(X) - y)
    assert ours.estimator_errors_[0] == pytest.approx(np.mean(off / off.max()), rel=1e-9)
    np.testing.assert_allclose(ours.estimators_[0].predict(X), first.predict(X), atol=1e-9)


@pytest.mark.parametrize("settings", [{"max_depth": 1}, {"min_samples_leaf": 4}, {"thresholds": "histogram"}], ids=str)
def test_rows_weighted_by_how_often_they_were_drawn_are_copies_of_them(engine, waves, settings):
    """A time limit that never comes is for the learner alone: it is then fitted to copies of the rows. Its seed decides
    between equally good columns, of which there are none at these sizes."""
    X, y = waves
    tree = DecisionTreeRegressor(**{"max_depth": 2, **settings})
    asked = AdaBoostRegressor(tree, n_estimators=8, random_state=0, engine=engine).fit(X, y)
    fitted = AdaBoostRegressor(clone(tree).set_params(time_limit=1e6), n_estimators=8, random_state=0).fit(X, y)
    np.testing.assert_allclose(asked.estimator_errors_, fitted.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(asked.predict(X), fitted.predict(X), atol=1e-9)
    assert certify(asked, X, y).holds


@pytest.mark.filterwarnings("ignore::margrove.errors.UnseenCategoryWarning")
def test_trees_that_missed_a_level_predict_and_are_not_saved(tmp_path):
    frame = pd.DataFrame({"kind": list("abcdefghij") * 2})
    y = np.arange(20.0) % 10
    pruned = DecisionTreeRegressor(max_depth=3, prune="mdl")
    model = AdaBoostRegressor(pruned, n_estimators=4).fit(frame, y)
    assert model.model_ is None
    assert np.isfinite(model.predict(frame)).all()
    with pytest.raises(ModelFileError, match="cannot be stored together"):
        save(model, tmp_path / "x")


def test_frames_and_sparse_rows_are_taken_as_they_are(engine):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], 90), "x": rng.normal(size=90)})
    frame.loc[::9, "x"] = np.nan
    y = frame["x"].fillna(2).to_numpy() + (frame["kind"] == "b") * 3
    model = AdaBoostRegressor(n_estimators=10, engine=engine).fit(frame, y)
    assert model.score(frame, y) > 0.9
    assert certify(model, frame, y).holds
    X = sp.random(80, 4, density=0.5, random_state=0, format="csr")
    z = np.asarray(X.sum(axis=1)).ravel()
    sparse = AdaBoostRegressor(n_estimators=5, engine=engine).fit(X, z)
    dense = AdaBoostRegressor(n_estimators=5, engine=engine).fit(X.toarray(), z)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X.toarray()), atol=1e-9)


def test_a_perfect_learner_is_the_last(engine):
    X, y = np.repeat([[0.0], [1.0]], 10, axis=0), np.repeat([2.0, 5.0], 10)
    model = AdaBoostRegressor(engine=engine).fit(X, y)
    assert model.status_ is Status.PERFECT_LEARNER
    assert model.estimator_weights_.tolist() == [1.0]
    assert model.predict(X).tolist() == y.tolist()
    assert certify(model, X, y).holds


def test_a_first_learner_no_better_than_chance_is_kept_as_the_only_one(engine):
    X, y = np.zeros((9, 1)), np.array([0.0] * 4 + [1.0] * 5)  # a constant: half of its losses are the largest
    model = AdaBoostRegressor(engine=engine, random_state=0).fit(X, y)
    theirs = ScikitBoost(random_state=0).fit(X, y)
    assert model.status_ is Status.NO_BETTER_THAN_CHANCE
    assert model.n_estimators_ == len(theirs.estimators_) == 1
    assert np.isfinite(model.predict(X)).all()
    assert certify(model, X, y).holds


def test_the_median_is_that_of_rows_repeated_by_their_votes():
    rng = np.random.default_rng(0)
    predicted, votes = rng.normal(size=(30, 7)), rng.integers(1, 5, 7)
    for row, found in zip(predicted, weighted_median(predicted, votes.astype(float)), strict=True):
        repeated = np.sort(np.repeat(row, votes))
        assert found == repeated[(len(repeated) - 1) // 2]


def test_the_certificate_of_a_regressor_holds_and_that_of_a_forged_one_does_not(engine, waves):
    X, y = waves
    model = AdaBoostRegressor(n_estimators=6, random_state=3, engine=engine).fit(X, y)
    assert certify(model, X, y).holds
    assert certify(model, X, y)["trees searched again"] == 6
    assert model.certificate_.holds is None
    honest = model.estimator_errors_
    model.estimator_errors_ = honest * np.array([1, 1, 1.001, 1, 1, 1])
    assert certify(model, X, y).claim("average loss of each learner").holds is False
    model.estimator_errors_ = honest
    grove = model.model_.grove
    model.model_ = replace(model.model_, grove=replace(grove, value=grove.value + 0.01))
    assert certify(model, X, y).holds is False
    model.model_ = replace(model.model_, grove=replace(grove, child=grove.child[::-1].copy()))
    assert certify(model, X, y).holds is False


def test_the_losses_of_other_learners_are_checked_as_well(waves):
    X, y = waves
    model = AdaBoostRegressor(ScikitTree(max_depth=3), n_estimators=5, random_state=0).fit(X, y)
    assert certify(model, X, y).holds
    model.estimator_weights_ = model.estimator_weights_ * 1.1
    assert certify(model, X, y).claim("vote of each learner").holds is False


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "cubic"}, "loss is 'cubic'"),
        ({"n_estimators": 0.5}, "n_estimators is 0.5"),
        ({"learning_rate": -1}, "learning_rate is -1"),
        ({"estimator": DecisionStump()}, "AdaBoostRegressor needs a regressor"),
    ],
)
def test_bad_parameters_of_a_regressor_are_named(waves, settings, words):
    with pytest.raises(ParameterError, match=words):
        AdaBoostRegressor(**settings).fit(*waves)


@pytest.mark.parametrize("y", [["a", "b", "c"], np.array(["a", 1, None], dtype=object)])
def test_classes_as_a_target_are_refused_with_the_classifier_to_use(y):
    with pytest.raises(InputError, match=r"regression needs numbers\. Use AdaBoostClassifier to predict classes"):
        AdaBoostRegressor().fit(np.arange(3.0)[:, None], y)


# ------------------------------------------------------------------------------------------------ as scikit-learn's


@pytest.mark.parametrize("settings", [{}, {"prune": "mdl"}], ids=str)
def test_each_tree_has_a_seed_drawn_as_scikit_learn_draws_it(waves, settings):
    X, y = waves
    model = AdaBoostRegressor(DecisionTreeRegressor(max_depth=3, **settings), n_estimators=5, random_state=3).fit(X, y)
    theirs = ScikitBoost(n_estimators=5, random_state=3).fit(X, y)
    wanted = [estimator.random_state for estimator in theirs.estimators_]
    assert [estimator.random_state for estimator in model.estimators_] == wanted
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    assert [estimator.random_state for estimator in load(file).estimators_] == wanted


def test_boosting_stops_when_a_large_rate_makes_all_weights_zero(engine, waves):
    X, y = waves
    model = AdaBoostRegressor(learning_rate=1e5, loss="exponential", engine=engine).fit(X, y)
    assert (model.status_, model.n_estimators_) == (Status.NONFINITE, 1)
    assert certify(model, X, y).holds


class AlwaysZero(BaseEstimator):
    """Takes no weights, and needs an array to predict."""

    def fit(self, X, y):
        self.seen_ = type(X)
        return self

    def predict(self, X):
        return np.zeros(X.shape[0])


@pytest.mark.parametrize("kind", [list, sp.csc_array, sp.csr_matrix, sp.coo_array], ids=str)
def test_learners_get_arrays_for_lists_and_sparse_rows_as_csr_or_csc(waves, kind):
    X, y = waves
    given = X.tolist() if kind is list else kind(X)
    model = AdaBoostRegressor(AlwaysZero(), n_estimators=2).fit(given, y)
    wanted = {list: np.ndarray, sp.coo_array: sp.csr_array}.get(kind, kind)
    assert {estimator.seen_ for estimator in model.estimators_} == {wanted}
    np.testing.assert_array_equal(model.predict(given), np.zeros(len(y)))
