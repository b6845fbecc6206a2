"""LinearSVC along C: the path, and the search by cross-validation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit

from margrove import LinearSVC, LinearSVCCV, LinearSVR, certify, load, save
from margrove.errors import ConvergenceWarning, InputError, ParameterError

CS = [0.01, 0.1, 1.0]


@pytest.fixture
def three(rng):
    codes = np.arange(90) % 3
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[codes] + rng.normal(size=(90, 2))
    return X, np.array(["ash", "beech", "oak"])[codes]


LEARNERS = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(penalty="l1"),
    LinearSVC(engine="reference", max_iter=5000),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(multi_class="crammer_singer", engine="reference", max_iter=5000),
    LinearSVR(epsilon=0.1),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_each_model_of_a_path_is_the_one_that_fit_finds(learner, three):
    X, y = three
    y = X[:, 0] - X[:, 1] if isinstance(learner, LinearSVR) else y
    learner = clone(learner).set_params(tol=1e-3)
    weight = np.arange(90) % 4
    path = learner.path(X, y, [1.0, 0.01, 0.1, 0.1], weight)
    assert path.Cs.tolist() == CS
    assert path.status == "converged"
    assert (path.gaps <= 1e-3).all()
    for C, model in zip(path.Cs, path.models, strict=True):
        alone = clone(learner).set_params(C=C).fit(X, y, weight)
        np.testing.assert_allclose(model.primal_, alone.primal_, rtol=2e-3)
        assert model.get_params() == alone.get_params()
        assert certify(model, X, y, weight).holds
        assert model.certificate_.holds
    assert path.coefs.shape == (3, len(path.models[0].intercept_), 2)
    assert path.margins.shape == path.coefs.shape[:2]


def test_a_path_prints_in_a_line(three):
    assert repr(LinearSVC().path(*three, CS)) == "LinearPath(3 LinearSVC, C = 0.01 … 1, converged)"
    assert repr(LinearSVC().path(*three, [2.0])) == "LinearPath(1 LinearSVC, C = 2, converged)"


def test_columns_enter_along_a_path_of_penalty_l1(rng):
    X = rng.normal(size=(100, 8))
    y = X @ [4, 2, 1, 0, 0, 0, 0, 0] + rng.normal(size=100) > 0
    path = LinearSVC("l1").path(X, y, 10.0 ** np.arange(-4, 2))
    assert path.n_columns[0] == 0
    assert path.n_columns[-1] == 8
    assert (np.diff([model.primal_[0] for model in path.models]) > 0).all()


def test_a_path_reads_names_of_columns_and_leaves_its_learner_alone(three):
    X, y = three
    learner = LinearSVC()
    path = learner.path(pd.DataFrame(X, columns=["height", "width"]), y, CS)
    assert path.models[1].feature_names_in_.tolist() == ["height", "width"]
    assert not hasattr(learner, "coef_")
    assert len(LinearSVC(tol=1e-2).path(X, y).models) == 20


@pytest.mark.parametrize(
    ("Cs", "words"), [([], "Cs is empty"), ([0], "Cs holds 0"), ("C", "must be a list"), ([1e101], "at most 1e\\+100")]
)
def test_values_of_c_that_cannot_be_are_refused(Cs, words, three):
    with pytest.raises(ParameterError, match=words):
        LinearSVC().path(*three, Cs)
    with pytest.raises(ParameterError, match=words):
        LinearSVCCV(Cs=Cs).fit(*three)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"penalty": "l1"},
        {"class_weight": "balanced"},
        {"class_weight": {"ash": 3.0}},
        {"loss": "hinge"},
        {"engine": "reference"},
        {"multi_class": "crammer_singer"},
        {"multi_class": "crammer_singer", "engine": "reference"},
    ],
    ids=repr,
)
def test_the_search_scores_equal_those_of_grid_search_cv(parameters, three):
    X, y = three
    ours = LinearSVCCV(Cs=CS, tol=1e-5, max_iter=20_000, cv=3, **parameters).fit(X, y)
    known = {name: value for name, value in parameters.items() if name != "engine"}
    peer = GridSearchCV(sklearn.svm.LinearSVC(tol=1e-7, max_iter=10**6, **known), {"C": CS}, cv=3).fit(X, y)
    for fold in range(3):
        np.testing.assert_allclose(
            ours.cv_results_[f"split{fold}_test_score"],
            peer.cv_results_[f"split{fold}_test_score"],
            atol=1 / 30 + 1e-12,  # a row on the boundary may fall to either side
        )
    assert ours.cv_results_["mean_test_score"].mean() == pytest.approx(
        peer.cv_results_["mean_test_score"].mean(), abs=0.01
    )
    assert set(peer.cv_results_) <= set(ours.cv_results_)
    assert ours.certificate_.holds
    assert ours.best_params_ == {"C": CS[ours.best_index_]}
    assert ours.cv_results_["max_gap"].max() <= 1e-5


def test_the_best_model_is_fitted_on_all_rows_and_can_be_saved(three, tmp_path):
    X, y = three
    search = LinearSVCCV(Cs=CS).fit(X, y)
    alone = LinearSVC(C=search.best_params_["C"]).fit(X, y)
    np.testing.assert_array_equal(search.coef_, alone.coef_)
    np.testing.assert_array_equal(search.intercept_, alone.intercept_)
    np.testing.assert_array_equal(search.decision_function(X), alone.decision_function(X))
    assert search.score(X, y) == alone.score(X, y)
    assert certify(search, X, y).holds
    save(search.best_estimator_, tmp_path / "best.margrove")
    np.testing.assert_array_equal(load(tmp_path / "best.margrove").predict(X), search.predict(X))


def test_folds_of_every_kind(three, rng):
    X, y = three
    groups = np.arange(90) // 9
    by_group = LinearSVCCV(Cs=CS, cv=GroupKFold(3)).fit(X, y, groups=groups)
    peer = GridSearchCV(LinearSVC(), {"C": CS}, cv=GroupKFold(3)).fit(X, y, groups=groups)
    np.testing.assert_allclose(by_group.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], atol=0.02)
    overlapping = ShuffleSplit(4, random_state=0)
    drawn = LinearSVCCV(Cs=CS, cv=overlapping).fit(sp.csr_matrix(X), y)
    assert drawn.n_splits_ == 4
    peer = GridSearchCV(LinearSVC(), {"C": CS}, cv=overlapping).fit(X, y)
    np.testing.assert_allclose(drawn.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], atol=0.06)


def test_scorers_ask_predictions_or_values(three):
    X, y = three
    two = y == "oak"
    for scoring in ("roc_auc", "f1", make_scorer(lambda said, true: np.mean(said == true))):
        ours = LinearSVCCV(Cs=CS, scoring=scoring, cv=3).fit(X, two)
        peer = GridSearchCV(LinearSVC(), {"C": CS}, scoring=scoring, cv=3).fit(X, two)
        np.testing.assert_allclose(ours.cv_results_["mean_test_score"], peer.cv_results_["mean_test_score"], atol=0.05)
    with pytest.raises(ParameterError, match="which needs predict_proba"):
        LinearSVCCV(scoring="neg_log_loss").fit(X, two)
    with pytest.raises(ParameterError, match="it must be one scorer"):
        LinearSVCCV(scoring=["accuracy"]).fit(X, two)


def test_a_fold_of_one_class_is_refused(three):
    X, y = three
    splits = [(np.flatnonzero(y == "oak"), np.flatnonzero(y != "oak"))]
    with pytest.raises(InputError, match="fold 0 trains on only one class, 'oak'"):
        LinearSVCCV(cv=splits).fit(X, y)


def test_a_class_that_a_fold_lacks_is_never_predicted_there(three):
    X, y = three
    without = np.flatnonzero(y != "ash")
    search = LinearSVCCV(Cs=[1.0], cv=[(without, np.arange(90))], class_weight="balanced").fit(X, y)
    alone = LinearSVC(class_weight="balanced").fit(X[without], y[without])
    assert search.best_score_ == pytest.approx(alone.score(X, y), abs=0.05)


def test_without_a_refit_there_is_no_model(three):
    search = LinearSVCCV(Cs=CS, refit=False).fit(*three)
    assert search.best_params_["C"] in CS
    with pytest.raises(AttributeError, match="no refitted model"):
        search.predict(three[0])


def test_a_search_that_did_not_converge_warns(three):
    with pytest.warns(ConvergenceWarning, match="the gap did not reach tol=1e-12"):
        LinearSVCCV(Cs=CS, tol=1e-12, max_iter=1, engine="reference", refit=False).fit(*three)


def test_a_search_out_of_time_keeps_its_scores(rng):
    X = rng.normal(size=(200, 40))
    y = X[:, 0] + rng.normal(size=200) > 0
    with pytest.warns(ConvergenceWarning, match="LinearSVCCV ended with status 'time_limit': .* of 3 values of C"):
        search = LinearSVCCV(Cs=CS, loss="hinge", tol=1e-13, max_iter=10**6, time_limit=1e-9, refit=False).fit(X, y)
    assert search.status_ == "time_limit"
    assert not hasattr(search, "best_estimator_")
