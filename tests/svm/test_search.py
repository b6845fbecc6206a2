"""The searches: what scikit-learn's GridSearchCV finds, whatever the grid, the folds and the scorer."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn import svm as sklearn_svm
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, mean_absolute_error, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import margrove
from margrove import SVC, SVCCV, SVRCV, Status, certify, load, save
from margrove.errors import ConvergenceWarning, InputError, ModelFileError, ParameterError
from margrove.run import slices
from margrove.run.progress import watched
from margrove.search.table import ScoreTable

CS, GAMMAS = [1.0, 10.0, 100.0, 1000.0], [0.01, 0.1, 1.0]


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": "folds and gamma are settled without weights",
        "check_sample_weight_equivalence_on_sparse_data": "folds and gamma are settled without weights",
    }


@parametrize_with_checks(
    [SVCCV(Cs=[1.0, 10.0], gammas=["scale"], cv=2), SVRCV(Cs=[1.0, 10.0], gammas=["scale"], epsilons=[0.1], cv=2)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def overlapping():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(160, 4))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + rng.normal(size=160) > 0.7, "yes", "no")


def theirs(X, y, *, cv=5, scoring=None, groups=None, gammas=GAMMAS, **parameters):
    grid = {"C": CS} if gammas is None else {"C": CS, "gamma": gammas}
    return GridSearchCV(sklearn_svm.SVC(tol=1e-6, **parameters), grid, cv=cv, scoring=scoring).fit(X, y, groups=groups)


def agree(ours, their, atol=1e-9):
    found, wanted = ours.cv_results_, their.cv_results_
    assert found["params"] == wanted["params"]
    for name in ("mean_test_score", "std_test_score", "split0_test_score"):
        np.testing.assert_allclose(found[name], wanted[name], atol=atol)
    np.testing.assert_array_equal(found["param_C"], wanted["param_C"])
    if atol < 1e-6:
        np.testing.assert_array_equal(found["rank_test_score"], wanted["rank_test_score"])
        assert ours.best_params_ == their.best_params_
        assert ours.best_score_ == pytest.approx(their.best_score_)


# ---- the same table as scikit-learn's


@pytest.mark.parametrize("data", ["wine", "overlapping"])
@pytest.mark.parametrize("class_weight", [None, "balanced", "dict"])
def test_the_table_is_scikit_learns(data, class_weight, request):
    X, y = request.getfixturevalue(data)
    if class_weight == "dict":
        class_weight = {np.unique(y)[0]: 3.0}
    ours = SVCCV(Cs=CS, gammas=GAMMAS, tol=1e-6, class_weight=class_weight).fit(X, y)
    agree(ours, theirs(X, y, class_weight=class_weight))
    assert ours.status_ is Status.CONVERGED
    assert ours.cv_results_["is_converged"].all()


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_cells_in_which_everything_is_on_its_bound_equal_the_fits(overlapping, class_weight):
    """Then b has an interval to lie in, and scikit-learn takes an end of it that rounding chooses."""
    X, y = overlapping
    settings = {"tol": 1e-6, "class_weight": class_weight}
    search = SVCCV(Cs=[1e-3, 0.1], gammas=GAMMAS, refit=False, **settings).fit(X, y)
    for cell, parameters in enumerate(search.cv_results_["params"]):
        for number, (train, test) in enumerate(StratifiedKFold(5).split(X, y)):
            score = SVC(**parameters, **settings).fit(X[train], y[train]).score(X[test], y[test])
            assert search.cv_results_[f"split{number}_test_score"][cell] == pytest.approx(score)


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(3, shuffle=True, random_state=1),
        ShuffleSplit(4, test_size=0.3, random_state=2),
        TimeSeriesSplit(3),
        GroupKFold(3),
        PredefinedSplit(np.repeat([-1, 0, 1, 2], 40)),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_any_splitter(overlapping, cv):
    X, y = overlapping
    groups = np.arange(len(y)) // 8 if isinstance(cv, GroupKFold) else None
    ours = SVCCV(Cs=CS, gammas=GAMMAS, tol=1e-6, cv=cv).fit(X, y, groups=groups)
    agree(ours, theirs(X, y, cv=cv, groups=groups))


@pytest.mark.parametrize(
    "scoring", ["balanced_accuracy", "f1_macro", lambda model, X, y: -np.mean(model.predict(X) != y)]
)
def test_any_scorer_of_predictions(wine, scoring):
    agree(SVCCV(Cs=CS, gammas=GAMMAS, tol=1e-6, scoring=scoring).fit(*wine), theirs(*wine, scoring=scoring))


def test_a_scorer_of_decision_values(overlapping):
    agree(
        SVCCV(Cs=CS, gammas=GAMMAS, tol=1e-5, scoring="roc_auc").fit(*overlapping),
        theirs(*overlapping, scoring="roc_auc"),
        atol=2e-3,
    )


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        (
            "neg_log_loss",
            "'neg_log_loss', which needs predict_proba; a cell of the search has predict",
        ),
        ("exact", r"scoring is 'exact'; it must be a name of sklearn.metrics.get_scorer_names\(\), a callable"),
        (accuracy_score, "make_scorer turns a metric into one"),
        (
            lambda model, X, y: model.C,
            r"more than the predict and decision_function of a search cell \('HeldOut\w+' object has no attribute 'C'",
        ),
        (lambda model, X, y: len(model.support_), "more than the predict and decision_function of a search cell"),
        (
            lambda model, X, y: model.predict(X[:3]).mean(),
            "exactly the rows that are held out",
        ),
        (lambda model, X, y: {"share": 1.0}, "which returned {'share': 1.0}; it must return one number"),
        (lambda model, X, y: [1.0, 2.0], "it must return one number"),
    ],
    ids=["probabilities", "no name", "a metric", "C", "support", "other rows", "a dict", "a list"],
)
@pytest.mark.parametrize("learner", [SVCCV, SVRCV])
def test_a_scorer_that_needs_more_than_predictions_is_refused(learner, scoring, words, overlapping):
    X, y = overlapping
    with pytest.raises(ParameterError, match=words):
        learner(Cs=[1.0], gammas=[0.1], scoring=scoring).fit(X, (y == "yes").astype(float))


def test_a_scorer_may_ask_about_the_same_rows_in_another_form(wine):
    X, y = wine
    table = pd.DataFrame(X)

    def by_array(model, rows, wanted):
        return np.asarray(np.mean(model.predict(rows.to_numpy()) == wanted))  # an array of no axes is a number too

    search = SVCCV(Cs=[1.0], gammas=[0.1], scoring=by_array).fit(table, y)
    assert search.best_score_ == SVCCV(Cs=[1.0], gammas=[0.1]).fit(X, y).best_score_


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (1, "cv is 1, which cannot split these 160 rows: .* n_splits=1"),
        (161, "cv is 161, which cannot split these 160 rows"),
        (2.5, "cv is 2.5, which cannot split"),
        (GroupKFold(3), "GroupKFold.* cannot split these 160 rows: The 'groups' parameter should not be None"),
        ([(np.arange(3),)], "cannot split these 160 rows"),
    ],
    ids=["one", "more than rows", "a fraction", "no groups", "no pairs"],
)
def test_impossible_folds_are_refused(cv, words, overlapping):
    with pytest.raises(InputError, match=words):
        SVCCV(Cs=[1.0], gammas=[0.1], cv=cv).fit(*overlapping)


@pytest.mark.skipif(sklearn.__version__.startswith("1.6."), reason="GridSearchCV weights its scores from 1.7 on")
def test_sample_weights(overlapping):
    X, y = overlapping
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    ours = SVCCV(Cs=CS, gammas=GAMMAS, tol=1e-6).fit(X, y, sample_weight=weight)
    their = GridSearchCV(sklearn_svm.SVC(tol=1e-6), {"C": CS, "gamma": GAMMAS}).fit(X, y, sample_weight=weight)
    agree(ours, their)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
def test_other_kernels(overlapping, kernel):
    X, y = overlapping
    gammas = None if kernel == "linear" else [0.1, 0.5]
    ours = SVCCV(Cs=CS, gammas=gammas, kernel=kernel, tol=1e-5, coef0=1.0, precision="double").fit(X, y)
    if kernel == "laplacian":
        alone = SVC(kernel=kernel, gamma=0.5, C=1.0, tol=1e-5)
        folds = StratifiedKFold(5).split(X, y)
        scores = [clone(alone).fit(X[train], y[train]).score(X[test], y[test]) for train, test in folds]
        cell = ours.cv_results_["params"].index({"C": 1.0, "gamma": 0.5})
        assert ours.cv_results_["mean_test_score"][cell] == pytest.approx(np.mean(scores))
    else:
        agree(ours, theirs(X, y, kernel=kernel, gammas=gammas, coef0=1.0))


def test_given_kernels(overlapping):
    X, y = overlapping
    wanted = SVCCV(Cs=CS, gammas=[0.1], tol=1e-6).fit(X, y)
    given = SVCCV(Cs=CS, kernel="precomputed", tol=1e-6).fit(rbf_kernel(X, gamma=0.1), y)
    called = SVCCV(Cs=CS, kernel=lambda a, b: rbf_kernel(a, b, gamma=0.1), tol=1e-6).fit(X, y)
    for search in (given, called):
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
        assert search.best_params_ == {"C": wanted.best_params_["C"]}


def test_sparse_and_frames(wine):
    X, y = wine
    wanted = SVCCV(Cs=CS, gammas=GAMMAS).fit(X, y)
    for rows in (sp.csr_matrix(X), pd.DataFrame(X).rename(columns=str), X.astype(np.float32)):
        found = SVCCV(Cs=CS, gammas=GAMMAS).fit(rows, y)
        np.testing.assert_allclose(found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"])
    assert list(SVCCV(Cs=[1], gammas=[1]).fit(pd.DataFrame(X).rename(columns=str), y).feature_names_in_)[:2] == [
        "0",
        "1",
    ]


def test_one_vs_rest_and_codes_equal_the_fits_one_by_one(wine):
    X, y = wine
    for multiclass in ("ovr", np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1]])):
        search = SVCCV(Cs=[0.5, 5.0], gammas=[0.05], multiclass=multiclass, tol=1e-5).fit(X, y)
        for cell, parameters in enumerate(search.cv_results_["params"]):
            alone = SVC(multiclass=multiclass, tol=1e-5, **parameters)
            for number, (train, test) in enumerate(StratifiedKFold(5).split(X, y)):
                score = clone(alone).fit(X[train], y[train]).score(X[test], y[test])
                assert search.cv_results_[f"split{number}_test_score"][cell] == pytest.approx(score)


def test_a_class_that_a_fold_does_not_train_on():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], [40, 40, 6])
    X = rng.normal(size=(86, 2)) + np.array([[0, 0], [3, 0], [0, 3]])[y]
    cv = [(np.arange(80), np.arange(80, 86)), (np.arange(6, 86), np.arange(6))]
    for multiclass in ("ovo", "ovr"):
        ours = SVCCV(Cs=CS, gammas=GAMMAS, cv=cv, multiclass=multiclass, tol=1e-6).fit(X, y)
        assert (ours.cv_results_["split0_test_score"] == 0).all()
        if multiclass == "ovo":
            agree(ours, theirs(X, y, cv=cv))


# ---- engines, threads, memory


def test_the_reference_engine_finds_the_same_table(overlapping):
    X, y = overlapping
    settings = {"Cs": [0.1, 1.0, 10.0], "gammas": [0.1, 1.0], "cv": 3, "tol": 1e-4}
    native = SVCCV(**settings).fit(X, y)
    plain = SVCCV(**settings, engine="reference").fit(X, y)
    np.testing.assert_allclose(plain.cv_results_["mean_test_score"], native.cv_results_["mean_test_score"])
    np.testing.assert_allclose(plain.cv_results_["mean_n_support"], native.cv_results_["mean_n_support"], rtol=0.02)
    assert (plain.engine_, native.engine_) == ("reference", "native")


def test_without_room_for_the_kernel_the_table_is_the_same(wine):
    X, y = wine
    settings = {"Cs": CS, "gammas": GAMMAS, "tol": 1e-4}
    roomy, narrow = SVCCV(**settings).fit(X, y), SVCCV(**settings, cache_size=0.05).fit(X, y)
    np.testing.assert_allclose(narrow.cv_results_["mean_test_score"], roomy.cv_results_["mean_test_score"])


@pytest.mark.parametrize("precision", ["single", "double"])
def test_larger_machines_and_threads(precision):
    """More variables than a tile holds; and not a digit depends on the threads."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 5))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=900) > 0, 1, -1)
    settings = {"Cs": [0.1, 1.0, 30.0], "gammas": [0.1, 1.0], "tol": 1e-4, "precision": precision, "refit": False}
    one, two = (SVCCV(**settings, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    for name in ("mean_test_score", "mean_n_support", "max_violation"):
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])
    their = GridSearchCV(sklearn_svm.SVC(tol=1e-6), {"C": settings["Cs"], "gamma": settings["gammas"]}).fit(X, y)
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], their.cv_results_["mean_test_score"], atol=2e-3)
    assert (one.cv_results_["max_violation"] <= 1e-4).all()


def test_many_small_machines_and_threads():
    """Their folds are solved from one copy of the kernel values, unless the rows held out overlap: the cells are the
    same, and not a digit depends on the threads."""
    rng = np.random.default_rng(3)
    y = np.arange(400) % 8
    X = rng.normal(size=(8, 4))[y] + 0.7 * rng.normal(size=(400, 4))
    splits = list(StratifiedKFold(4).split(X, y))
    settings = {"Cs": [0.1, 1.0, 30.0], "gammas": [0.05, 0.5], "tol": 1e-5, "refit": False}
    one, two = (SVCCV(**settings, cv=splits, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    for name in ("mean_test_score", "mean_n_support", "max_violation"):
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])
    overlapping = SVCCV(**settings, cv=[*splits, *ShuffleSplit(2, random_state=0).split(X)]).fit(X, y)
    for fold in range(4):
        name = f"split{fold}_test_score"
        np.testing.assert_allclose(one.cv_results_[name], overlapping.cv_results_[name], atol=0.011)  # a row of 100
    their = GridSearchCV(
        sklearn_svm.SVC(tol=1e-6), {"C": settings["Cs"], "gamma": settings["gammas"]}, cv=splits, refit=False
    ).fit(X, y)
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], their.cv_results_["mean_test_score"], atol=3e-3)


# ---- the grid


def test_default_grids_depend_on_the_data(overlapping):
    X, y = overlapping
    one, other = SVCCV(refit=False, cv=2).fit(X, y), SVCCV(refit=False, cv=2).fit(1000 * X, y)
    assert len(one.cv_results_["params"]) == 48
    np.testing.assert_allclose(other.cv_results_["param_gamma"] * 1e6, one.cv_results_["param_gamma"], rtol=1e-6)
    np.testing.assert_allclose(other.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"])


def test_values_are_sorted_and_taken_once(overlapping):
    X, y = overlapping
    search = SVCCV(Cs=[10, 1, 10], gammas=["scale", 0.1], refit=False).fit(X, y)
    assert sorted(set(search.cv_results_["param_C"])) == [1.0, 10.0]
    assert len(search.cv_results_["params"]) == 4
    assert 1 / (4 * X.var()) == pytest.approx(search.cv_results_["param_gamma"].max())


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"Cs": []}, ParameterError, "Cs is empty"),
        ({"Cs": 3}, ParameterError, "Cs is 3; it must be a list of values"),
        ({"Cs": [1, -1]}, ParameterError, "Cs holds -1; it must be a number > 0"),
        (
            {"Cs": [float("inf")]},
            ParameterError,
            "Cs holds inf; it must be a number > 0. Only SVC and SVR accept C=inf",
        ),
        (
            {"Cs": [1.0, 1e101]},
            ParameterError,
            r"Cs holds 1e\+101; it must be at most 1e\+100. Only SVC and SVR accept",
        ),
        ({"Cs": np.ones((2, 2))}, ParameterError, r"Cs is \[\[1.0, 1.0\], \[1.0, 1.0\]\]; it must be a list of values"),
        ({"Cs": [np.ones(2)]}, ParameterError, r"Cs holds \[1.0, 1.0\]; it must be a number > 0"),
        ({"Cs": b"12"}, ParameterError, "Cs is b'12'; it must be a list of values"),
        ({"Cs": {"C": 1.0}}, ParameterError, "Cs is {'C': 1.0}; it must be a list of values"),
        ({"gammas": np.ones((1, 2))}, ParameterError, r"gammas is \[\[1.0, 1.0\]\]; it must be a list of values"),
        ({"gammas": ["wide"]}, ParameterError, "gamma is 'wide'"),
        ({"gammas": "scale"}, ParameterError, "gammas is 'scale'; it must be a list"),
        ({"kernel": "linear", "gammas": [1.0]}, ParameterError, "gammas is .*; kernel='linear' has no gamma"),
        ({"scoring": ["accuracy", "f1"]}, ParameterError, "scoring is .*; it must be one scorer"),
        ({"refit": "accuracy"}, ParameterError, "refit is 'accuracy'; it must be True or False"),
        ({"tol": 0}, ParameterError, "tol is 0"),
        ({"cv": [(np.arange(5), np.arange(0))]}, InputError, "fold 0 has 5 training rows and 0 test rows"),
        ({"cv": [(np.arange(2), np.arange(5))]}, InputError, "fold 0 trains on only one class, 'no'. Use stratified"),
    ],
    ids=lambda value: None,
)
def test_bad_grids_are_refused_before_any_work(parameters, error, words, overlapping):
    X, y = overlapping
    order = np.argsort(y, kind="stable")
    with pytest.raises(error, match=words):
        SVCCV(**parameters).fit(X[order], y[order])


@pytest.mark.parametrize("learner", [SVCCV(gammas=[0.1], cv=3), SVRCV(gammas=[0.1], epsilons=[0.1], cv=3)])
def test_a_generator_is_a_list(learner, overlapping):
    X, y = overlapping
    search = clone(learner).set_params(Cs=(C for C in (1.0, 10.0)), refit=False).fit(X, (y == "yes").astype(float))
    assert sorted(set(search.cv_results_["param_C"])) == [1.0, 10.0]


@pytest.mark.parametrize("learner", [SVCCV(Cs=[1.0], cv=3), SVRCV(Cs=[1.0], cv=3)])
@pytest.mark.parametrize(
    ("weight", "error", "words"),
    [
        (["heavy"] * 160, InputError, "sample_weight is .*; it must contain numbers. Give a list of 160 numbers"),
        (np.full(160, 1e200), ParameterError, r"C times the weight of a row is 1e\+200; it must be at most 1e\+100"),
    ],
    ids=["strings", "too large"],
)
def test_invalid_weights_are_refused(learner, weight, error, words, overlapping):
    X, y = overlapping
    with pytest.raises(error, match=words):
        clone(learner).fit(X, (y == "yes").astype(float), sample_weight=weight)


def test_strings_are_refused_as_values(values):
    X, z = values
    with pytest.raises(InputError, match=r"SVRCV predicts numbers, but y\[0\] is text, .*Use a classifier"):
        SVRCV(Cs=[1.0]).fit(X, ["oak"] * len(z))
    with pytest.raises(ParameterError, match=r"must be at most 1e\+100.* or, for a regression, scale y"):
        SVRCV().fit(X, 1e150 * z)  # the grid follows the scale of y


# ---- what is left of it


def test_the_refitted_model_is_an_svc(wine):
    X, y = wine
    search = SVCCV(Cs=CS, gammas=GAMMAS).fit(X, y)
    alone = SVC(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    np.testing.assert_allclose(search.decision_function(X), alone.decision_function(X))
    assert search.certificate_.holds
    assert isinstance(search.best_estimator_, SVC)
    assert search.score(X, y) == alone.score(X, y)
    assert search.n_splits_ == 5


def test_score_is_by_scoring(overlapping, values):
    X, y = overlapping
    search = SVCCV(Cs=[1.0], gammas=[0.1], scoring="roc_auc").fit(X, y)
    assert search.score(X, y) == pytest.approx(roc_auc_score(y, search.decision_function(X)))
    assert search.score(X, y) != pytest.approx(accuracy_score(y, search.predict(X)))
    X, z = values
    search = SVRCV(Cs=[1.0], gammas=[0.1], epsilons=[0.1], scoring="neg_mean_absolute_error").fit(X, z)
    assert search.score(X, z) == pytest.approx(-mean_absolute_error(z, search.predict(X)))


@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_score_counts_the_weights(overlapping, scoring):
    X, y = overlapping
    search = SVCCV(Cs=[1.0], gammas=[0.1], scoring=scoring).fit(X, y)
    is_right = search.predict(X) == y
    assert 0 < is_right.mean() < 1
    assert search.score(X, y, sample_weight=is_right.astype(float)) == 1.0


def test_without_a_refit_there_is_no_model(wine):
    search = SVCCV(Cs=[1], gammas=[0.1], refit=False).fit(*wine)
    with pytest.raises(NotFittedError, match="no refitted model: complete the fit with refit=True"):
        search.predict(wine[0])


def test_a_time_limit_keeps_whole_cells(overlapping):
    X, y = (np.concatenate([part] * 8) for part in overlapping)
    X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
    with pytest.warns(ConvergenceWarning, match=r"ended with status 'time_limit': \d+ of 48 cells are scored"):
        search = SVCCV(tol=1e-8, time_limit=0.02, refit=False, cv=10).fit(X, y)
    assert search.status_ is Status.TIME_LIMIT


class Stop:
    """Presses Ctrl-C when the search has come so far."""

    def __init__(self, share):
        self.share = share

    def __call__(self, progress):
        if progress.done >= self.share * progress.total:
            raise KeyboardInterrupt


@pytest.fixture
def short_slices(monkeypatch):
    monkeypatch.setattr(slices, "SLICE", 0.002)


def test_ctrl_c_keeps_the_table_so_far(short_slices):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    search = SVCCV(tol=1e-6, n_jobs=1)
    with watched(Stop(0.4)), pytest.warns(ConvergenceWarning, match="ended with status 'interrupted'"):
        search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert 0 < np.isnan(scores).sum() < len(scores)
    whole = SVCCV(tol=1e-6, refit=False).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores[~np.isnan(scores)], whole[~np.isnan(scores)])
    assert search.best_score_ == np.nanmax(scores)
    with pytest.raises(NotFittedError, match="no refitted model"):
        search.predict(X)


def test_cells_that_end_early_are_named(overlapping):
    with pytest.warns(ConvergenceWarning, match=r"\d+ of 4 cells stopped before the violation was within tol"):
        search = SVCCV(Cs=CS, gammas=[1.0], max_iter=20, refit=False).fit(*overlapping)
    assert not search.cv_results_["is_converged"].all()


def test_cells_that_are_clearly_worse_are_dropped_on_request():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 2))
    y = (np.hypot(*X.T) < 1.2).astype(int)
    settings = {"Cs": [0.001, 1.0, 10.0], "gammas": [1e-4, 0.5], "refit": False}
    whole, dropping = SVCCV(**settings).fit(X, y), SVCCV(**settings, drop_early=True).fit(X, y)
    scores = dropping.cv_results_["mean_test_score"]
    assert np.isnan(scores).any()
    kept = ~np.isnan(scores)
    np.testing.assert_allclose(scores[kept], whole.cv_results_["mean_test_score"][kept])
    assert dropping.best_params_ == whole.best_params_
    assert whole.cv_results_["mean_test_score"][~kept].max() < dropping.best_score_


def test_a_cell_as_good_as_the_best_in_one_fold_stays_in():
    table = ScoreTable({"C": np.ones(3), "epsilon": np.zeros(1), "gamma": np.ones(1)}, 3, {})
    assert table.still_in().all()
    table.score[:, 0, 0, 0] = [0.9, 0.5, 0.9]
    table.score[:, 0, 0, 1] = [0.9, 0.5, 0.1]
    np.testing.assert_array_equal(table.still_in().ravel(), [True, False, True])


# ---- regression


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_regression_equals_scikit_learn(values, scoring):
    X, z = values
    grid = {"C": [0.1, 1.0, 10.0], "epsilon": [0.01, 0.2], "gamma": [0.1, 1.0]}
    ours = SVRCV(Cs=grid["C"], epsilons=grid["epsilon"], gammas=grid["gamma"], tol=1e-5, scoring=scoring).fit(X, z)
    their = GridSearchCV(sklearn_svm.SVR(tol=1e-5), grid, scoring=scoring).fit(X, z)
    assert ours.cv_results_["params"] == their.cv_results_["params"]
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], their.cv_results_["mean_test_score"], rtol=1e-3, atol=1e-6
    )
    assert ours.best_params_ == their.best_params_
    assert ours.certificate_.holds
    np.testing.assert_allclose(ours.predict(X[:5]), their.predict(X[:5]), atol=1e-3)


def test_regression_by_the_reference_engine_and_with_weights(values):
    X, z = values
    weight = np.random.default_rng(0).integers(0, 3, len(z)).astype(float)
    settings = {"Cs": [1.0, 10.0], "epsilons": [0.1], "gammas": [0.5], "tol": 1e-4, "cv": 3, "refit": False}
    native, plain = (SVRCV(**settings, engine=engine).fit(X, z, weight) for engine in ("native", "reference"))
    np.testing.assert_allclose(native.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-3)


def test_regression_grids_follow_the_scale_of_y(values):
    X, z = values
    one, other = SVRCV(refit=False, cv=2).fit(X, z), SVRCV(refit=False, cv=2).fit(X, 1000 * z)
    np.testing.assert_allclose(other.cv_results_["param_epsilon"], 1000 * one.cv_results_["param_epsilon"])
    with pytest.raises(ParameterError, match="epsilons holds -1"):
        SVRCV(epsilons=[-1]).fit(X, z)


def test_a_larger_grid_on_iris_takes_scikit_learns_best():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = SVCCV(Cs=np.logspace(-2, 3, 13), gammas=np.logspace(-3, 1, 9)).fit(X, y)
    assert search.best_score_ >= 0.98


def test_a_unit_without_rows_of_a_machine():
    """Three classes, and a fold that trains on two of them: the third's machines have one side or none."""
    y = np.repeat([0, 1, 2, 3], [20, 20, 2, 2])
    X = np.random.default_rng(0).normal(size=(44, 2)) + 4 * y[:, None]
    cv = [(np.arange(40), np.arange(40, 44))]
    search = SVCCV(Cs=[1.0], gammas=[0.5], cv=cv, refit=False).fit(X, y)
    assert search.cv_results_["mean_test_score"][0] == 0
    assert search.cv_results_["is_converged"].all()


# ---- what an attack found


def test_values_that_float_cannot_hold_go_to_double(overlapping):
    X, y = overlapping
    for rows, parameters in (
        (1e5 * X, {"kernel": "poly", "degree": 9, "gammas": [1.0], "Cs": [1.0]}),
        (sp.csr_matrix(X + 1e4), {"gammas": [0.1, 0.2], "Cs": [10.0]}),
        (X, {"gammas": [1e-5], "Cs": [1e5]}),
    ):
        auto = SVCCV(cv=3, refit=False, **parameters).fit(rows, y)
        double = SVCCV(cv=3, refit=False, precision="double", **parameters).fit(rows, y)
        np.testing.assert_array_equal(auto.cv_results_["mean_test_score"], double.cv_results_["mean_test_score"])


@pytest.mark.parametrize("gamma", [2.0, 8.0, 20.0])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_values_below_floats_range_still_decide(kernel, gamma):
    """Of classes of one size b is 0, and values of 1e-50 have the last word."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 20)), rng.normal(size=(40, 20)) + 1.5])
    y = np.repeat([0, 1], 40)
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    search = SVCCV(Cs=[0.5, 10.0], gammas=[gamma], kernel=kernel, cv=cv, refit=False).fit(X, y)
    one_by_one = GridSearchCV(SVC(gamma=gamma, kernel=kernel), {"C": [0.5, 10.0]}, cv=cv).fit(X, y)
    found, wanted = (each.cv_results_["mean_test_score"] for each in (search, one_by_one))
    np.testing.assert_array_equal(found, wanted)


def test_an_overflow_is_not_converged(overlapping):
    X, y = overlapping
    with (
        np.errstate(all="ignore"),
        pytest.warns(ConvergenceWarning, match="stopped before the violation was within tol"),
    ):
        search = SVCCV(Cs=[1.0], kernel="linear", cv=3, refit=False, precision="single").fit(1e20 * X, y)
    assert not search.cv_results_["is_converged"].any()


@pytest.mark.parametrize("level", [0.3, 1e8])
def test_regression_values_keep_their_offset(values, level):
    X, z = values
    search = SVRCV(Cs=[10.0], gammas=[0.3], epsilons=[0.0], cv=3, refit=False).fit(X, z + level)
    plain = SVRCV(Cs=[10.0], gammas=[0.3], epsilons=[0.0], cv=3, refit=False).fit(X, z)
    assert search.best_score_ == pytest.approx(plain.best_score_, abs=1e-3)


@pytest.mark.parametrize("learner", [SVCCV(Cs=[1.0], gammas=[0.1]), SVRCV(Cs=[1.0], gammas=[0.1], epsilons=[0.1])])
def test_folds_may_be_masks_or_count_from_the_end(learner, overlapping):
    X, y = overlapping
    y = (y == "yes").astype(float) if isinstance(learner, SVRCV) else y
    n, test = len(y), np.arange(100, 160)
    scores = [
        clone(learner).set_params(cv=[(train, test)], refit=False).fit(X, y).best_score_
        for train in (np.arange(100), np.arange(n) < 100, np.arange(-n, -n + 100))
    ]
    assert len(set(scores)) == 1
    for train in (np.arange(5000), np.zeros((2, 2), int), np.array([0.5, 1.5])):
        with pytest.raises(InputError, match=r"for the rows of a fold. Give row numbers below 160"):
            clone(learner).set_params(cv=[(train, test)]).fit(X, y)
    with pytest.raises(InputError, match="cv produces no folds"):
        clone(learner).set_params(cv=[]).fit(X, y)


def test_a_row_that_is_drawn_twice_counts_twice(overlapping, rng):
    X, y = overlapping
    train, test = rng.integers(0, 160, 160), np.arange(80)
    search = SVCCV(Cs=[0.3], gammas=[0.1], cv=[(train, test)], refit=False, tol=1e-6).fit(X, y)
    alone = SVC(C=0.3, gamma=0.1, tol=1e-6).fit(X[train], y[train]).score(X[test], y[test])
    assert search.best_score_ == pytest.approx(alone)


def test_a_second_fit_forgets_the_first(overlapping):
    X, y = overlapping
    search = SVCCV(Cs=[1.0], gammas=[0.1]).fit(X, y)
    search.set_params(refit=False).fit(X, y)
    with pytest.raises(NotFittedError):
        search.predict(X)


def test_scores_that_are_all_nan_are_reported(overlapping):
    with pytest.warns(ConvergenceWarning, match="every score is NaN, so no cell is the best one"):
        SVCCV(Cs=[1.0], gammas=[0.1], scoring=lambda *given: np.nan).fit(*overlapping)


def test_a_checkpoint_needs_a_scorer_with_a_name(overlapping, tmp_path):
    with pytest.raises(ParameterError, match="which a checkpoint cannot distinguish from others"):
        SVCCV(Cs=[1.0], gammas=[0.1], scoring=lambda *given: 1.0, checkpoint=tmp_path / "c").fit(*overlapping)


def test_a_search_at_the_end_of_a_pipeline_can_be_certified(wine):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVCCV(Cs=[1.0], gammas=[0.1], cv=3)).fit(X, y)
    assert certify(model, X, y).holds
    assert model.score(X, y, sample_weight=np.ones(len(y))) == model.score(X, y)
    weight = np.where(model.predict(X) == y, 1.0, 0.0)
    weight[0] = 0.5
    assert model[-1].score(*wine, sample_weight=weight) == pytest.approx(1.0)


def test_a_search_is_saved_by_its_model(wine, tmp_path):
    search = SVCCV(Cs=[1.0], gammas=[0.1], cv=3).fit(*wine)
    with pytest.raises(ModelFileError, match=r"SVCCV is not a class that it supports. Save the best_estimator_"):
        save(search, tmp_path / "wine.margrove")
    save(search.best_estimator_, tmp_path / "wine.margrove")
    np.testing.assert_array_equal(load(tmp_path / "wine.margrove").predict(wine[0]), search.predict(wine[0]))


@pytest.mark.parametrize("name", ["SVCCV", "LinearSVCCV", "SVRCV", "LinearSVRCV", "SVC", "NuSVC"])
def test_one_number_is_the_weight_of_every_row(name):
    rng = np.random.default_rng(0)
    X, settings = rng.normal(size=(60, 3)), {"Cs": [1.0], "cv": 2} if name.endswith("CV") else {"probability": True}
    y = X[:, 0] + rng.normal(size=60) if "SVR" in name else rng.integers(0, 3, 60)
    one, each = (getattr(margrove, name)(**settings | ({"nu": 0.3} if name == "NuSVC" else {})) for _ in range(2))
    assert (one.fit(X, y, 2.0).predict(X) == each.fit(X, y, np.full(60, 2.0)).predict(X)).all()
