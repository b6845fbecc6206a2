"""Numbers that a solver cannot work with, and units in which a tolerance means nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from margrove import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVR,
    LinearSVRCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Perceptron,
    certify,
)
from margrove.engine import Effort, solve
from margrove.errors import ConvergenceWarning, InputError
from margrove.svm.kernels import Kernel
from margrove.svm.problem import DualProblem, regression

REGRESSORS = (SVR, NuSVR, LinearSVR, SVRCV, LinearSVRCV)


@pytest.mark.parametrize("Regressor", REGRESSORS)
@pytest.mark.parametrize("container", [list, np.array, pd.Series])
@pytest.mark.parametrize(
    ("bad", "words"),
    [(None, "contains NaN, first in row 1"), (10**400, "numbers that fit into a float64")],
    ids=["None", "beyond float64"],
)
def test_a_target_that_no_float_is_is_refused_before_any_work(Regressor, container, bad, words):
    y = [1.0, bad, 2.0]
    target = y if container is list else container(y, dtype=object)
    with pytest.raises(InputError, match=words):
        Regressor().fit(np.eye(3), target)


@pytest.mark.parametrize("n", [3, 6000])
def test_the_core_refuses_a_nan_instead_of_comparing_with_it_for_ever(n):
    z = np.zeros(n)
    z[1] = np.nan
    problem = DualProblem(np.eye(n, 3), Kernel("rbf"), (regression(z, np.ones(n), 0.1),))
    with pytest.raises(ValueError, match="p must be finite"):
        solve(problem, "native", Effort(5.0, 1))


@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_kernel_values_that_overflow_end_the_solve_by_themselves(kernel):
    X = 1e200 * np.array([[1.0, 2.0], [-3.0, 1.0], [2.0, 2.0], [-1.0, -1.0]])
    with pytest.warns(ConvergenceWarning, match="nonfinite|stalled"):
        model = SVC(kernel=kernel, gamma=1.0, time_limit=60).fit(X, [0, 1, 0, 1])
    assert model.status_ in ("nonfinite", "stalled")


def damaged(how: str) -> sp.csr_matrix:
    X = sp.csr_matrix(np.ones((4, 3)))
    if how == "column beyond the matrix":
        X.indices[2] = 10**6
    elif how == "negative column":
        X.indices[2] = -5
    elif how == "falling row starts":
        X.indptr = X.indptr[::-1].copy()
    elif how == "row starts beyond the data":
        X.indptr[-1] += 100
    else:
        X.data = X.data[:6]
    return X


@pytest.mark.parametrize(
    "how",
    [
        "column beyond the matrix",
        "negative column",
        "falling row starts",
        "row starts beyond the data",
        "less data than indices",
    ],
)
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_a_damaged_sparse_matrix_is_refused_by_fit_and_predict(how, form):
    X = damaged(how)
    if form == "csc":
        rows, X = X, sp.csc_matrix((3, 4))
        X.data, X.indices, X.indptr = rows.data, rows.indices, rows.indptr
    y = [0, 1, 0, 1][: X.shape[0]]
    for learner in (SVC(), Perceptron()):
        with pytest.raises(InputError, match="damaged sparse matrix"):
            learner.fit(X, y)
    fitted = SVC().fit(np.eye(X.shape[1]), np.arange(X.shape[1]) % 2)
    with pytest.raises(InputError, match="damaged sparse matrix"):
        fitted.predict(X)


# ---- tolerances in the units of the problem


@pytest.mark.parametrize("C", [1e-11, 1e-14])
def test_an_unbalanced_alpha_is_found_however_small_c_is(C, rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = SVC(C=C).fit(X, y)
    assert certify(model, X, y).holds
    model.dual_coef_ = np.maximum(model.dual_coef_, 0) + 0.5 * np.minimum(model.dual_coef_, 0)  # Σ y α = ½ Σ α⁺
    assert not certify(model, X, y).holds


@pytest.mark.parametrize("C", [1e-10, 1e-6, 1.0])
def test_a_nu_regression_is_certified_however_small_c_is(C, rng):
    X, z = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = NuSVR(C=C).fit(X, z)
    assert model.status_ == "converged"
    assert certify(model, X, z).holds


def one_class_value(model: OneClassSVM, X: np.ndarray) -> float:
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    return float(beta @ (X @ X.T) @ beta) / 2


def test_forms_without_a_unit_of_their_own_are_solved_as_well_in_small_units(rng):
    X, z = rng.normal(size=(60, 3)) + 2, rng.normal(size=60)
    y = X[:, 0] > 2
    large, small = OneClassSVM(kernel="linear").fit(X), OneClassSVM(kernel="linear").fit(1e-4 * X)
    assert one_class_value(small, 1e-4 * X) * 1e8 == pytest.approx(one_class_value(large, X), rel=1e-2)
    large, small = NuSVC(kernel="linear", nu=0.9).fit(X, y), NuSVC(kernel="linear", nu=0.9).fit(1e-4 * X, y)
    assert 1e-4 * small.margin_[0] ** -1 == pytest.approx(large.margin_[0] ** -1, rel=0.05)
    large, small = NuSVR(C=1.0).fit(X, z), NuSVR(C=1e-6).fit(X, 1e-6 * z)
    np.testing.assert_allclose(1e6 * small.predict(X), large.predict(X), atol=5e-3)
    assert certify(small, X, 1e-6 * z).holds


# ---- converged is what the certificate confirms


@pytest.mark.filterwarnings("ignore:NuSVC. the margin of:margrove.errors.ConvergenceWarning")
def test_a_nu_machine_of_an_indefinite_kernel_is_scaled_as_libsvm_scales_it():
    from sklearn.svm import NuSVC as Peer

    agreed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
        parameters = {"kernel": "sigmoid", "nu": 0.2, "gamma": 0.5, "coef0": -1.0}
        ours = NuSVC(**parameters).fit(X, y)
        assert ours.status_ == "converged"
        assert certify(ours, X, y).holds
        agreed += (ours.predict(X) == Peer(**parameters).fit(X, y).predict(X)).mean() > 0.9
    assert agreed >= 20  # an indefinite problem has many stationary points


def test_a_tolerance_that_float64_cannot_reach_is_not_called_converged(rng):
    X = rng.normal(size=(30, 3)) + 1e9
    with pytest.warns(ConvergenceWarning, match="'stalled': rounding of f"):
        model = OneClassSVM(kernel="linear").fit(X)
    certificate = certify(model, X)
    assert not certificate.holds
    assert certificate["rounding of f"] > certificate["violation"]


def test_a_search_has_not_converged_where_its_refit_has_not(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning):
        search = SVCCV(Cs=[1.0], gammas=[1.0], max_iter=1, cv=2).fit(X, y)
    assert search.best_estimator_.status_ == "max_iter"
    assert search.status_ == "max_iter"


def test_a_fold_without_weight_is_refused_by_name(rng):
    X, y, weight = rng.normal(size=(20, 2)), np.arange(20) % 2, np.ones(20)
    folds = [(np.arange(10, 20), np.arange(10)), (np.arange(10), np.arange(10, 20))]
    weight[:10] = 0
    with pytest.raises(InputError, match="fold 1 trains on only one class"):
        SVCCV(Cs=[1.0], gammas=[1.0], cv=folds).fit(X, y, sample_weight=weight)
    with pytest.raises(InputError, match="all test rows of fold 0 have weight 0"):
        SVCCV(Cs=[1.0], gammas=[1.0], cv=folds[:1]).fit(X, y, sample_weight=weight)
    with pytest.raises(InputError, match="all test rows of fold 0 have weight 0"):
        SVRCV(Cs=[1.0], gammas=[1.0], cv=folds).fit(X, X[:, 0], sample_weight=weight)


def test_calibration_cannot_be_changed_behind_the_certificates_back(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    model = SVC(probability=True, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="probA_ is read-only"):
        model.probA_ = np.ones(1)
    with pytest.raises(ValueError, match="read-only"), pytest.warns(FutureWarning, match="`probB_` was deprecated"):
        model.probB_[0] = 3.0
    model.fit(X, y)  # a new fit replaces both
    for name in ("norm_", "class_weight_"):
        setattr(model, name, 1.5 * getattr(model, name))
        assert not certify(model, X, y).holds, name
        setattr(model, name, getattr(model, name) / 1.5)
    assert certify(model, X, y).holds
