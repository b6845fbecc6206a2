"""LinearSVR with C, and ε, chosen by cross-validation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold

from margrove import LinearSVR, LinearSVRCV, certify, load, save
from margrove.errors import ConvergenceWarning, InputError, ParameterError

CS = [0.01, 0.1, 1.0]
EPSILONS = [0.0, 0.3]


@pytest.fixture
def line(rng):
    X = rng.normal(size=(90, 3))
    return X, X @ [1.0, -2.0, 0.0] + 3.0 + 0.5 * rng.normal(size=90)


@pytest.mark.parametrize("epsilons", [None, EPSILONS])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"loss": "squared_epsilon_insensitive"},
        {"fit_intercept": False, "epsilon": 0.2},
        {"loss": "squared_epsilon_insensitive", "engine": "reference"},
    ],
    ids=repr,
)
def test_the_search_scores_equal_those_of_grid_search_cv(parameters, epsilons, line):
    X, y = line
    ours = LinearSVRCV(Cs=CS, epsilons=epsilons, tol=1e-6, max_iter=20_000, cv=3, **parameters).fit(X, y)
    known = {name: value for name, value in parameters.items() if name != "engine"}
    grid = {"C": CS} if epsilons is None else {"C": CS, "epsilon": epsilons}
    peer = GridSearchCV(sklearn.svm.LinearSVR(tol=1e-8, max_iter=10**6, **known), grid, cv=3).fit(X, y)
    assert ours.cv_results_["params"] == peer.cv_results_["params"]
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], atol=2e-3)
    assert set(peer.cv_results_) <= set(ours.cv_results_)
    assert ours.best_params_ == ours.cv_results_["params"][ours.best_index_]
    assert ours.best_score_ == ours.cv_results_["mean_test_score"].max()
    assert ours.cv_results_["max_gap"].max() <= 1e-6
    assert ours.certificate_.holds


def test_the_best_model_is_fitted_on_all_rows_and_can_be_saved(line, tmp_path):
    X, y = line
    weight = np.arange(90) % 3
    search = LinearSVRCV(Cs=CS, epsilons=EPSILONS).fit(X, y, weight)
    alone = LinearSVR(**search.best_params_).fit(X, y, weight)
    np.testing.assert_array_equal(search.coef_, alone.coef_)
    np.testing.assert_array_equal(search.intercept_, alone.intercept_)
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    assert search.score(X, y) == alone.score(X, y)
    assert certify(search, X, y, weight).holds
    save(search.best_estimator_, tmp_path / "best.margrove")
    np.testing.assert_array_equal(load(tmp_path / "best.margrove").predict(X), search.predict(X))


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("unit", [1e-3, 1e4])
def test_without_values_of_c_the_unit_of_y_does_not_matter(loss, unit, line):
    X, y = line
    one = LinearSVRCV(loss=loss, cv=3, refit=False).fit(X, y)
    other = LinearSVRCV(loss=loss, cv=3, refit=False).fit(X, unit * y)
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-2)
    assert len(one.cv_results_["params"]) == 11


def test_scorers_and_folds_of_every_kind(line):
    X, y = line
    groups = np.arange(90) // 9
    for scoring in ("neg_mean_absolute_error", make_scorer(mean_absolute_error, greater_is_better=False)):
        ours = LinearSVRCV(Cs=CS, scoring=scoring, cv=GroupKFold(3)).fit(sp.csr_matrix(X), y, groups=groups)
        peer = GridSearchCV(LinearSVR(), {"C": CS}, scoring=scoring, cv=GroupKFold(3)).fit(X, y, groups=groups)
        np.testing.assert_allclose(ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], atol=0.01)
        assert ours.score(X, y) == pytest.approx(peer.score(X, y), abs=0.01)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"Cs": [1, "a"]}, r"Cs holds 'a'; it must be a number > 0"),
        ({"Cs": [1, -1]}, r"Cs holds -1; it must be a number > 0"),
        ({"Cs": 3}, "Cs is 3; it must be a list"),
        ({"epsilons": [-0.1]}, "epsilons holds -0.1; it must be a number ≥ 0"),
        ({"epsilons": []}, "epsilons is empty"),
        ({"scoring": "roc_auc"}, "scoring"),
        ({"refit": "yes"}, "refit is 'yes'"),
        ({"epsilon": -1}, "epsilon is -1"),
    ],
    ids=repr,
)
def test_bad_parameters_are_refused_before_any_work(parameters, words, line):
    with pytest.raises(ParameterError, match=words):
        LinearSVRCV(**parameters).fit(*line)


def test_a_fold_whose_rows_have_weight_zero_is_refused(line):
    X, y = line
    weight = (np.arange(90) < 45).astype(float)  # fold 0 holds just these out
    with pytest.raises(InputError, match="all training rows of fold 0 have weight 0"):
        LinearSVRCV(cv=KFold(2)).fit(X, y, weight)


def test_a_search_out_of_time_keeps_its_scores(rng):
    X = rng.normal(size=(200, 40))
    y = X[:, 0] + rng.normal(size=200)
    with pytest.warns(ConvergenceWarning, match="LinearSVRCV ended with status 'time_limit': .* of 6 cells are scored"):
        search = LinearSVRCV(Cs=CS, epsilons=EPSILONS, tol=1e-13, max_iter=10**6, time_limit=1e-9, refit=False).fit(
            X, y
        )
    assert search.status_ == "time_limit"
    assert not hasattr(search, "best_estimator_")


def test_ctrl_c_keeps_the_table_so_far(rng, ctrl_c):
    X = rng.normal(size=(2000, 60))
    y = X[:, 0] + rng.normal(size=2000)
    with pytest.warns(ConvergenceWarning, match="LinearSVRCV ended with status 'interrupted'"), ctrl_c():
        search = LinearSVRCV(tol=1e-13, max_iter=10**6, n_jobs=1).fit(X, y)
    assert search.status_ == "interrupted"
    assert not hasattr(search, "best_estimator_")
