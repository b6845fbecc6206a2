"""Convert support vector machines that were solved elsewhere, and convert ours to scikit-learn.

A converted machine has all attributes that ``fit`` sets, as far as they are known from support vectors, their
coefficients and the offsets.

What cannot be known is marked as such:

==================  ====================================================================================================
``kkt_``            of a support vector by its coefficient: "hard" at the bound, else "marginal". Of another row "easy"
                    where there is one machine; of several nobody knows which classes it belongs to, and the word is
                    empty
``norm_``           NaN for a precomputed kernel, whose values between support vectors are not at hand
``xi_alpha_bound_`` 1: it needs the slack of every row
``certificate_``    without claims, until `margrove.certify` is given the rows
==================  ====================================================================================================
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_classifier

from margrove.advice import Advice, Setting
from margrove.certificate import Certificate
from margrove.engine import Effort, default
from margrove.errors import InputError, MargroveWarning
from margrove.status import Status
from margrove.store.adoption import with_parameters_of
from margrove.svm.kernels import Kernel, Matrix, kernel_of
from margrove.svm.kkt import EASY, HARD, MARGINAL
from margrove.svm.layout import code_of, coefficients_of, dense, machine_names

LIBSVM_KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")  # in the order of its kernel types
_AT_BOUND = 1 - 1e-9  # as a share of the bound


def complete(model: Any, status: Status, n_iter: NDArray[np.int64]) -> Any:
    """Return the estimator, fitted. It has its parameters already, and its support vectors, coefficients, intercepts,
    ``gamma_`` and numbers of rows and columns; a classifier its ``classes_`` and ``class_weight_``, too."""
    model.status_, model.engine_ = status, default().name
    coefficients = dense(model.dual_coef_)
    if hasattr(model, "classes_"):
        model.n_iter_ = n_iter
        model.n_kernel_rows_ = np.zeros(len(n_iter), np.int64)
        model.loo_bound_ = len(model.support_) / model.n_rows_ if status is Status.CONVERGED else 1.0
        model.xi_alpha_bound_ = 1.0
        names, coefficients = machine_names(model.classes_, code_of(model)), coefficients_of(model)
    elif hasattr(model, "score_samples"):
        model.n_iter_, model.offset_, names = int(n_iter[0]), -model.intercept_, ("one class",)
    else:
        model.n_iter_, names = int(n_iter[0]), ("regression",)
    model.norm_ = _norms(kernel_of(model), model.support_vectors_, coefficients)
    model._grades = _grades(model, coefficients)
    model._cache_weights()
    model.certificate_ = Certificate.of(model, "solver", model.n_rows_, names)
    return model


def _norms(kernel: Kernel, support: Matrix, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """‖w‖ = √(βᵀKβ) of each machine."""
    if kernel.name == "precomputed":
        return np.full(len(coefficients), np.nan)
    if sp.issparse(support):
        # Columns without an entry add nothing to any kernel here; there may be two thousand million of them.
        support = support[:, np.unique(support.indices)]
    sums = default().kernel_sums(kernel, support, support, coefficients, Effort())
    with np.errstate(over="ignore", invalid="ignore"):
        squared = np.einsum("ms,sm->m", coefficients, sums)
    return np.asarray(np.sqrt(np.maximum(np.nan_to_num(squared, posinf=np.finfo(np.float64).max), 0)))


def _grades(model: Any, coefficients: NDArray[np.float64]) -> NDArray[np.int8]:
    """Return the grade of each row in each machine, shape (n, machines)."""
    machines = len(coefficients)
    grades = np.full((model.n_rows_, machines), EASY if machines == 1 else 0, np.int8)
    size = np.abs(coefficients)
    grade = np.where(size == 0, EASY, np.where(size >= _AT_BOUND * _bounds(model, size), HARD, MARGINAL))
    if machines > 1:
        of_class = np.repeat(np.arange(len(model.classes_)), model.n_support_)
        grade = np.where(code_of(model)[of_class].T != 0, grade, 0)
    grades[model.support_] = grade.T
    return grades


def _bounds(model: Any, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest coefficient that each support vector may have, one for each or for all. ν-SVC scales them by
    a number it does not keep: there the largest stands for the bound."""
    if hasattr(model, "C"):
        weight = np.repeat(model.class_weight_, model.n_support_) if hasattr(model, "classes_") else 1.0
        return np.asarray(float(model.C) * weight)
    return size.max(axis=1, initial=0, keepdims=True) if hasattr(model, "classes_") else np.ones(1)


def adopt_sklearn(estimator: type, model: Any) -> Any:
    """Return scikit-learn's machine as ours."""
    if callable(model.kernel):
        raise InputError(
            f"the kernel is the function {getattr(model.kernel, '__name__', 'without a name')}, and scikit-learn keeps "
            "no support vectors for a callable kernel",
            cure=Advice("Fit it again with ", Setting("kernel", "precomputed"), " and the Gram matrix."),
        )
    ours = with_parameters_of(model, estimator)
    if is_classifier(model):
        ours.set_params(probability=False)
        is_weighted = hasattr(ours, "C")
        if not is_weighted:
            ours.set_params(class_weight=None)  # which scikit-learn's NuSVC takes and does nothing with
        ours.class_weight_ = np.asarray(model.class_weight_) if is_weighted else np.ones(len(model.classes_))
        _take_probabilities(ours, model)
        ours.classes_ = np.asarray(model.classes_)
    is_given = model.kernel == "precomputed"
    vectors = model.support_vectors_
    ours.support_, ours.n_support_ = model.support_.astype(np.int32), model.n_support_.astype(np.int32)
    ours.support_vectors_ = (
        np.empty((0, 0)) if is_given else sp.csr_matrix(vectors) if sp.issparse(vectors) else vectors
    )
    ours.dual_coef_ = np.ascontiguousarray(dense(model.dual_coef_))
    ours.intercept_ = np.array(model.intercept_, dtype=np.float64)
    ours.n_rows_, ours.n_features_in_ = int(model.shape_fit_[0]), int(model.n_features_in_)
    ours.gamma_ = 1.0 if is_given or model.kernel == "linear" else float(model._gamma)
    status = Status.CONVERGED if model.fit_status_ == 0 else Status.MAX_ITER
    return complete(ours, status, np.atleast_1d(np.asarray(model.n_iter_, dtype=np.int64)))


def _take_probabilities(ours: Any, model: Any) -> None:
    """A and B of P = 1/(1 + exp(A f + B)). scikit-learn's f of two classes is −f of the LIBSVM inside it, of which A
    and B are."""
    a, b = np.asarray(model._probA, dtype=np.float64), np.asarray(model._probB, dtype=np.float64)
    if a.size == 0:
        return
    if (a > 0).any():
        words = "some probA_ is above 0, so a larger decision value would lower the probability"
        warnings.warn(f"{words}. Probabilities are left out.", MargroveWarning, stacklevel=4)
        return
    ours.set_params(probability=True)
    ours.probA_, ours.probB_ = a.copy(), (-b if len(model.classes_) == 2 else b) + 0.0


def unknown_to_libsvm(model: Any, *, takes_functions: bool = False) -> tuple[str, Advice] | None:
    """Return what LIBSVM does not have of a fitted machine, and the remedy; None if it has everything."""
    is_function = callable(model.kernel)
    if not (takes_functions if is_function else model.kernel in LIBSVM_KERNELS):
        cure = f"Use one of {', '.join(LIBSVM_KERNELS)}; 'precomputed', with your Gram matrix, gives the same machine."
        return f"LIBSVM has no {'function' if is_function else model.kernel} kernel", Advice(cure)
    multiclass = getattr(model, "multiclass", "ovo")
    if isinstance(multiclass, str) and (multiclass == "ovo" or len(getattr(model, "classes_", ())) == 2):
        return None
    scheme = multiclass if isinstance(multiclass, str) else "a code matrix"
    problem = f"LIBSVM supports only one machine for each pair of labels, and multiclass is {scheme}"
    return problem, Advice("Fit with ", Setting("multiclass", "ovo"), ".")


def to_sklearn(model: Any, estimator: Any) -> Any:
    """Return our machine as an ``estimator`` of scikit-learn's, with the arrays that it hands to LIBSVM."""
    unknown = unknown_to_libsvm(model, takes_functions=True)
    if unknown is not None:
        raise InputError(unknown[0], cure=unknown[1])
    others, default = {"degree": int(model.degree)}, estimator()
    if model.sigma is not None or model.gamma == "median":
        others["gamma"] = model.gamma_
    if isinstance(model.cache_size, str):
        others["cache_size"] = default.cache_size
    if is_classifier(model) and not model._is_calibrated:
        others["probability"] = default.probability
    theirs = with_parameters_of(model, estimator, **others)
    theirs.support_, theirs.shape_fit_, vectors = model.support_, model.shape_fit_, model.support_vectors_
    if callable(model.kernel):  # scikit-learn keeps all training rows; we keep them only if they are not numbers
        rows = model._fit_rows
        if rows is None:
            rows, theirs.shape_fit_ = vectors, vectors.shape
            theirs.support_ = np.arange(vectors.shape[0], dtype=np.int32)
        theirs._BaseLibSVM__Xfit, vectors = rows, np.empty((0, 0))
    theirs._sparse, dual = sp.issparse(vectors), np.array(model._dual, order="C")
    if theirs._sparse:  # LIBSVM reads a coefficient of every support vector, also those that are 0
        vectors = sp.csr_matrix(vectors, dtype=np.float64).sorted_indices()
        places, starts = np.tile(np.arange(dual.shape[1]), len(dual)), dual.shape[1] * np.arange(len(dual) + 1)
        dual = sp.csr_matrix((dual.ravel(), places, starts), shape=dual.shape)
    else:
        vectors = np.array(vectors, dtype=np.float64, order="C")
    theirs.support_vectors_, theirs.dual_coef_ = vectors, dual
    sign = -1 if len(getattr(model, "classes_", ())) == 2 else 1  # LIBSVM's f of two classes is −f
    theirs._dual_coef_, theirs._intercept_ = sign * dual, sign * model.intercept_
    a, b = getattr(model, "_calibration", None) or (np.empty(0), np.empty(0))
    theirs._probA, theirs._probB, theirs._effective_probability = np.array(a), sign * b, len(a) > 0
    theirs._n_support = model.n_support_ if is_classifier(model) else np.repeat(model.n_support_, 2)
    theirs._gamma = 0.0 if kernel_of(model).name in ("precomputed", "callable") else model.gamma_
    theirs._num_iter = np.atleast_1d(model.n_iter_)
    return theirs
