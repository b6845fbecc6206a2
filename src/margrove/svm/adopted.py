"""A support vector machine that was solved elsewhere, as an estimator of ours: what ``fit`` would have left, as far as
it can be known from support vectors, their coefficients and the offsets.

What cannot be known is told as such:

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
from dataclasses import dataclass
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

_AT_BOUND = 1 - 1e-9  # as a share of the bound


@dataclass(frozen=True, eq=False)
class Solution:
    """What the other solver found, laid out as `margrove.svm.layout` says."""

    support: NDArray[np.int32]  # (s,): rows of the training table
    support_vectors: Matrix  # (s, d); (0, 0) for a precomputed kernel
    dual_coef: NDArray[np.float64]  # (r, s)
    intercept: NDArray[np.float64]  # (machines,)
    n_support: NDArray[np.int32]  # (K,), or (1,) where there are no classes
    n_rows: int
    n_features: int
    gamma: float
    status: Status
    n_iter: NDArray[np.int64]  # (machines,)


def adopt(model: Any, solution: Solution, classes: NDArray[Any] | None = None) -> Any:
    """The estimator, fitted. ``model`` has its parameters, and for ``classes`` its ``class_weight_`` already."""
    model.n_features_in_, model.n_rows_ = solution.n_features, solution.n_rows
    model.support_ = solution.support.astype(np.int32)
    model.support_vectors_ = solution.support_vectors
    model.dual_coef_ = solution.dual_coef
    model.intercept_ = solution.intercept
    model.n_support_ = solution.n_support.astype(np.int32)
    model.gamma_, model.status_, model.engine_ = solution.gamma, solution.status, default().name
    if classes is None:
        model.n_iter_ = int(solution.n_iter[0])
        names: tuple[str, ...] = ("one class",) if hasattr(model, "score_samples") else ("regression",)
        coefficients = solution.dual_coef
        if hasattr(model, "score_samples"):
            model.offset_ = -model.intercept_
    else:
        model.classes_ = classes
        model.n_iter_ = solution.n_iter.astype(np.int64)
        model.n_kernel_rows_ = np.zeros(len(solution.intercept), np.int64)
        is_known = solution.status is Status.CONVERGED
        model.loo_bound_ = len(solution.support) / solution.n_rows if is_known else 1.0
        model.xi_alpha_bound_ = 1.0
        names, coefficients = machine_names(classes, code_of(model)), coefficients_of(model)
    model.norm_ = _norms(kernel_of(model), solution.support_vectors, coefficients)
    model._grades = _grades(model, solution, coefficients, classes)
    model._cache_weights()
    model.certificate_ = Certificate(type(model).__name__, str(solution.status), "solver", solution.n_rows, names)
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


def _grades(
    model: Any, solution: Solution, coefficients: NDArray[np.float64], classes: NDArray[Any] | None
) -> NDArray[np.int8]:
    """The grade of each row in each machine, shape (n, machines)."""
    machines = len(coefficients)
    grades = np.full((solution.n_rows, machines), EASY if machines == 1 else 0, np.int8)
    size = np.abs(coefficients)
    bound = _bounds(model, solution, size, classes)
    grade = np.where(size == 0, EASY, np.where(size >= _AT_BOUND * bound, HARD, MARGINAL))
    if machines > 1 and classes is not None:
        of_class = np.repeat(np.arange(len(classes)), solution.n_support)
        grade = np.where(code_of(model)[of_class].T != 0, grade, 0)
    grades[solution.support] = grade.T
    return grades


def _bounds(
    model: Any, solution: Solution, size: NDArray[np.float64], classes: NDArray[Any] | None
) -> NDArray[np.float64]:
    """The largest coefficient that each support vector may have. ν-SVC scales them by a number it does not keep: there
    the largest stands for the bound."""
    if not hasattr(model, "C"):
        largest = np.ones((len(size), 1)) if classes is None else size.max(axis=1, initial=0)[:, None]
        return np.broadcast_to(largest, size.shape)
    bound = np.full(size.shape[1], float(model.C))
    if classes is not None:
        bound = bound * np.repeat(model.class_weight_, solution.n_support)
    return np.broadcast_to(bound, size.shape)


def adopt_sklearn(estimator: type, model: Any) -> Any:
    """Return scikit-learn's machine as ours."""
    if callable(model.kernel):
        raise InputError(
            f"the kernel is the function {getattr(model.kernel, '__name__', 'without a name')}, of which scikit-learn "
            "keeps no support vectors",
            cure=Advice("Fit it again with ", Setting("kernel", "precomputed"), " and the Gram matrix."),
        )
    ours, of_classes = with_parameters_of(model, estimator), is_classifier(model)
    if of_classes:
        ours.set_params(probability=False)
        is_weighted = hasattr(ours, "C")
        if not is_weighted:
            ours.set_params(class_weight=None)  # which scikit-learn's NuSVC takes and does nothing with
        ours.class_weight_ = np.asarray(model.class_weight_) if is_weighted else np.ones(len(model.classes_))
        _take_probabilities(ours, model)
    is_given = model.kernel == "precomputed"
    vectors = model.support_vectors_
    n_iter = np.atleast_1d(np.asarray(model.n_iter_, dtype=np.int64))
    solution = Solution(
        support=np.asarray(model.support_),
        support_vectors=np.empty((0, 0)) if is_given else sp.csr_matrix(vectors) if sp.issparse(vectors) else vectors,
        dual_coef=np.ascontiguousarray(dense(model.dual_coef_)),
        intercept=np.array(model.intercept_, dtype=np.float64),
        n_support=np.asarray(model.n_support_),
        n_rows=int(model.shape_fit_[0]),
        n_features=int(model.n_features_in_),
        gamma=1.0 if is_given or model.kernel == "linear" else float(model._gamma),
        status=Status.CONVERGED if model.fit_status_ == 0 else Status.MAX_ITER,
        n_iter=n_iter,
    )
    return adopt(ours, solution, np.asarray(model.classes_) if of_classes else None)


def _take_probabilities(ours: Any, model: Any) -> None:
    """A and B of P = 1/(1 + exp(A f + B)). scikit-learn's f of two classes is −f of the LIBSVM inside it, of which A
    and B are."""
    a, b = np.asarray(model._probA, dtype=np.float64), np.asarray(model._probB, dtype=np.float64)
    if a.size == 0:
        return
    if (a > 0).any():
        words = "some probA_ is above 0: the value of its machine speaks against itself"
        warnings.warn(f"{words}. Probabilities are left out.", MargroveWarning, stacklevel=4)
        return
    ours.set_params(probability=True)
    ours.probA_, ours.probB_ = a.copy(), (-b if len(model.classes_) == 2 else b) + 0.0
