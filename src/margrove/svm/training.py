"""The training data of support vector machines: points, the kernel settled on them, and the bounds of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from margrove.advice import Advice, InPython, Setting
from margrove.data.memory import free_memory
from margrove.errors import InputError, InputTypeError, ParameterError, check_choice, check_number, shown
from margrove.svm.kernels import (
    KERNELS,
    Kernel,
    KernelFunction,
    Matrix,
    are_numbers,
    called,
    diagonal_of,
    squared_distances,
    squared_norms,
)
from margrove.svm.problem import HARD_MARGIN, MOST_BOUND, Dual, check_costs
from margrove.svm.scaling import warn_of_unscaled

_SCALE_FREE = ("precomputed", "callable", "chi2", "intersection")
_NEEDS_NO_GAMMA = ("linear", "intersection", "precomputed")
_NEEDS_NONNEGATIVE = ("chi2", "intersection")
_ASYMMETRY = 1e-5  # of the largest value: float32 matrices are symmetric to about 1e-7
_SYMMETRY_ROWS = 1024
_LARGEST_COORDINATE = 1e150  # its square is finite in float64
_VARIANCE_CELLS = 1 << 20
_LEAST_VARIANCE = 1e-300  # below, 1/variance is no number
_SMALL_GRAM = 256  # rows: half a MiB
_MEDIAN_ROWS = 1000  # rows whose distances the median heuristic looks at


class KernelParameters(Protocol):
    """An estimator with a kernel."""

    kernel: str | KernelFunction
    gamma: str | float
    sigma: float | None
    degree: float
    coef0: float


@dataclass(frozen=True)
class TrainingData:
    """The points of all machines, with the kernel of the parameters and the one that is solved with."""

    X: Matrix  # (n, d), or the Gram matrix for kernel "precomputed"
    kernel: Kernel
    points: Matrix  # X, the Gram matrix of a callable kernel, or X about its mean
    solver_kernel: Kernel
    centre: NDArray[np.float64] | None = None  # what was subtracted from X
    objects: Any = None  # the rows themselves, where they are not numbers; X is then their Gram matrix

    @cached_property
    def diagonal(self) -> NDArray[np.float64]:
        """K(x_i, x_i)."""
        return diagonal_of(self.solver_kernel, self.points)

    def centred(self) -> TrainingData:
        """Return dense points of the linear kernel about their mean, other data as it is.

        Far from the origin inner products have no digits left for the distance of two hulls, and distances do not
        depend on the origin.
        """
        if self.solver_kernel.name != "linear" or sp.issparse(self.points):
            return self
        points = self.points.astype(np.float64)
        centre = points.mean(axis=0)
        points -= centre
        return replace(self, points=points, centre=centre)

    def with_small_gram(self) -> TrainingData:
        """Return few dense points of the linear kernel as their Gram matrix in float64, other data as it is. Such a fit
        is then the same as that of the matrix itself, or of a function that returns it."""
        n = self.points.shape[0]
        if self.solver_kernel.name != "linear" or sp.issparse(self.points) or n > _SMALL_GRAM:
            return self
        points = self.points.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            gram = points @ points.T
        return replace(self, points=gram, solver_kernel=Kernel("precomputed")) if np.isfinite(gram).all() else self


@dataclass(frozen=True)
class PosedMachines:
    """The machines of one fit: their duals on the same training data, and their names."""

    data: TrainingData
    duals: Sequence[Dual]
    names: tuple[str, ...]


def training_data(model: KernelParameters, X: Matrix, objects: Any = None) -> TrainingData:
    """Settle the kernel on the points. A callable kernel is replaced by its Gram matrix; X is that matrix already if
    the rows are ``objects``."""
    if objects is not None:
        return TrainingData(X, Kernel("precomputed"), X, Kernel("precomputed"), objects=objects)
    kernel = settle_kernel(
        model.kernel, X, gamma=model.gamma, sigma=model.sigma, degree=model.degree, coef0=model.coef0
    )
    if kernel.name not in _SCALE_FREE:
        warn_of_unscaled(X, getattr(model, "feature_names_in_", None))
    if kernel.function is None:
        return TrainingData(X, kernel, X, kernel)
    return TrainingData(X, kernel, _gram_of(kernel.function, X), Kernel("precomputed"))


def read_rows(model: KernelParameters, X: Any) -> tuple[Any, Any]:
    """Return X and None; or, for a callable kernel and rows that are not numbers, their Gram matrix and the rows."""
    if not callable(model.kernel) or are_numbers(X):
        return X, None
    return _gram_of(model.kernel, X), X


def _gram_of(function: KernelFunction, X: Any) -> NDArray[np.float64]:
    n, free = _num_samples(X), free_memory()
    needed = 8 * n**2
    if needed > free // 2:
        raise InputError(
            f"a callable kernel needs the whole Gram matrix, {needed / 2**30:.1f} GiB for {n} rows, and only "
            f"{free / 2**30:.1f} GiB of memory is free",
            cure="Use a named kernel, or fewer rows.",
        )
    gram = called(function, X, X)
    check_symmetric(gram)
    return gram


def settle_kernel(
    kernel: str | KernelFunction,
    X: Matrix,
    *,
    gamma: str | float = "scale",
    sigma: float | None = None,
    degree: float = 3,
    coef0: float = 0.0,
) -> Kernel:
    """Return the `Kernel` of these parameters; raise `InputError` for data that it is not defined on.

    ``gamma`` is a number, ``"scale"`` (1 / (d · variance of X)), ``"auto"`` (1/d) or ``"median"`` (1 / (2 · median
    squared distance)); ``sigma`` stands for γ = 1/(2σ²) and excludes a numeric gamma.
    """
    if callable(kernel):
        return Kernel("callable", function=kernel)
    check_choice("kernel", kernel, KERNELS, also="a callable")
    if kernel == "precomputed":
        if sp.issparse(X):
            elsewhere = ("A precomputed Gram matrix needs Python; choose another ", Setting("kernel", ...))
            cure = Advice(InPython("Pass K.toarray()", *elsewhere), ".")
            problem = "Sparse precomputed kernels are not supported: a Gram matrix must be dense"
            raise InputTypeError(problem, cure=cure)
        if X.shape[0] != X.shape[1]:
            raise InputError(f"a precomputed Gram matrix must be square; it is {X.shape[0]} × {X.shape[1]}")
        check_symmetric(X)
        return Kernel(kernel)
    if kernel in _NEEDS_NONNEGATIVE:
        check_nonnegative(kernel, X)
    check_number("coef0", coef0)
    check_number("degree", degree, least=0)
    if kernel == "poly" and not float(degree).is_integer():
        raise ParameterError(f"degree is {degree}; it must be a whole number ≥ 0.")
    settled = Kernel(kernel, _settle_gamma(kernel, gamma, sigma, X), float(coef0), float(degree))
    if kernel == "rbf" and X.size and max(float(X.max()), -float(X.min())) > _LARGEST_COORDINATE:
        raise InputError("the distances in X overflow", cure="Scale the columns.")
    with np.errstate(over="ignore"):
        if kernel == "sigmoid" and not np.isfinite(squared_norms(X)).all():  # tanh of ±∞ would hide it
            raise InputError("the products of rows of X overflow", cure="Scale the columns.")
    return settled


def check_nonnegative(kernel: str, X: Matrix) -> None:
    """Raise `InputError` if a value is below 0, where kernels of counts are not defined."""
    lowest = X.min(axis=0)
    lowest = np.asarray(lowest.todense() if sp.issparse(lowest) else lowest).ravel()
    if lowest.size and lowest.min() < 0:
        column = int(np.argmin(lowest))
        raise InputError(
            f"the {kernel} kernel requires values ≥ 0, and column {column} contains {lowest[column]:g}",
            cure=Advice("Do not standardise the columns, or use ", Setting("kernel", "rbf"), "."),
        )


def check_symmetric(gram: NDArray[Any]) -> None:
    """Raise `InputError` unless K(x, z) = K(z, x): a model learns by rows and predicts by columns."""
    limit = _ASYMMETRY * float(np.abs(gram).max(initial=0))
    for start in range(0, len(gram), _SYMMETRY_ROWS):
        rows = slice(start, start + _SYMMETRY_ROWS)
        off = np.abs(gram[rows] - gram[:, rows].T)
        if off.max(initial=0) > limit:
            i, j = np.unravel_index(int(off.argmax()), off.shape)
            found = f"K[{start + i}, {j}] is {gram[start + i, j]:g} and K[{j}, {start + i}] is {gram[j, start + i]:g}"
            raise InputError(
                f"a Gram matrix must be symmetric; {found}", cure="Pass (K + K.T) / 2 if this is only rounding."
            )


def _settle_gamma(kernel: str, gamma: str | float, sigma: float | None, X: Matrix) -> float:
    if sigma is not None:
        if kernel != "rbf":
            raise ParameterError(Advice(f"sigma is {sigma}; only ", Setting("kernel", "rbf"), " has one. Use gamma."))
        check_number("sigma", sigma, above=0)
        if gamma != "scale":
            raise ParameterError(f"sigma is {sigma} and gamma is {shown(gamma)}; set only one of them.")
        check_number("sigma²", sigma * sigma, above=_LEAST_VARIANCE)
        return 1.0 / (2.0 * sigma * sigma)
    if kernel in _NEEDS_NO_GAMMA:
        return 1.0
    if isinstance(gamma, str):
        if gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                variance = _variance(X)
            if not math.isfinite(variance):
                problem = "The dual coefficients or intercepts are not finite: the variance of X overflows"
                raise InputError(problem, cure="Scale the columns, or set gamma to a number.")
            if 0 < variance < _LEAST_VARIANCE:
                raise InputError("the variance of X underflows", cure="Scale the columns, or set gamma to a number.")
            return 1.0 / (float(X.shape[1]) * variance) if variance > 0 else 1.0
        if gamma == "auto":
            return 1.0 / float(X.shape[1])
        if gamma == "median":
            return _median_gamma(X)
        raise ParameterError(f"gamma is {gamma!r}; it must be 'scale', 'auto', 'median' or a number ≥ 0.")
    check_number("gamma", gamma, least=0, cure=Advice("Use ", Setting("gamma", "scale"), " if unsure."))
    return float(gamma)


def _variance(X: Matrix) -> float:
    if sp.issparse(X):
        mean = X.mean()
        return float(X.multiply(X).mean() - mean * mean)
    # By stretches of rows: all at once would take several copies of X in float64.
    step = max(1, _VARIANCE_CELLS // max(1, X.shape[1]))
    stretches = [slice(start, start + step) for start in range(0, X.shape[0], step)]
    mean = sum(float(X[rows].sum(dtype=np.float64)) for rows in stretches) / X.size
    return sum(float(np.square(X[rows].astype(np.float64) - mean).sum()) for rows in stretches) / float(X.size)


def _median_gamma(X: Matrix) -> float:
    rows = X
    if X.shape[0] > _MEDIAN_ROWS:
        rows = X[np.sort(np.random.default_rng(0).choice(X.shape[0], _MEDIAN_ROWS, replace=False))]
    rows = rows.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squared = squared_distances(rows, rows)
    if not np.isfinite(squared).all():
        raise InputError("the distances in X overflow", cure="Scale the columns, or set gamma to a number.")
    distinct = squared[np.triu_indices(rows.shape[0], k=1)]
    distinct = distinct[distinct > 0]
    return 1.0 / (2.0 * float(np.median(distinct))) if distinct.size else 1.0


def weighted_rows(weight: NDArray[np.float64] | None, n: int) -> NDArray[np.int64]:
    """Return the rows whose weight is not 0."""
    return np.arange(n) if weight is None else np.flatnonzero(weight > 0)


def rows_of_machines(
    code: NDArray[np.int8], codes: NDArray[np.int32], rows: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int8]]]:
    """Yield, for each column of a code matrix, those of the rows whose class it knows, ascending, and their signs."""
    order = rows[np.argsort(codes[rows], kind="stable")]
    by_class = np.split(order, np.cumsum(np.bincount(codes[rows], minlength=len(code)))[:-1])
    for column in code.T:
        own = np.sort(np.concatenate([by_class[k] for k in np.flatnonzero(column)]))
        yield own, column[codes[own]]


def is_infinite(C: Any) -> bool:
    """Return whether C is ∞: no slack is allowed."""
    return isinstance(C, float | np.floating) and math.isinf(C) and bool(C > 0)


def bounds(C: float, weight: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return C times the weight of each of the rows; ∞ where C is."""
    if is_infinite(C):
        return np.full(len(rows), np.inf)
    if weight is None:
        check_number("C", C, most=MOST_BOUND, beyond=HARD_MARGIN)
        return np.full(len(rows), float(C))
    with np.errstate(over="ignore"):
        return check_costs(float(C) * weight[rows])
