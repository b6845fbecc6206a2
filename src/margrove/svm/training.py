"""The training data of support vector machines: points, kernel and the bounds of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.memory import free_memory
from margrove.errors import InputError, ParameterError, check_number
from margrove.svm.kernels import Kernel, KernelFunction, Matrix, called, check_symmetric, diagonal_of, settle_kernel
from margrove.svm.problem import HARD_MARGIN, MOST_BOUND, Dual
from margrove.svm.scaling import warn_of_unscaled

_SCALE_FREE = ("precomputed", "callable", "chi2", "intersection")


class KernelParameters(Protocol):
    """An estimator with a kernel."""

    kernel: str | KernelFunction
    gamma: str | float
    sigma: float | None
    degree: float
    coef0: float


@dataclass(frozen=True)
class TrainingData:
    """The points of all machines, with the kernel that was asked for and the one that is solved with."""

    X: Matrix  # (n, d), or the Gram matrix for kernel "precomputed"
    kernel: Kernel
    points: Matrix  # X, the Gram matrix of a callable kernel, or X about its mean
    solver_kernel: Kernel
    centre: NDArray[np.float64] | None = None  # what was subtracted from X

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


@dataclass(frozen=True)
class Machines:
    """The machines of one fit: their duals on the same training data, and their names."""

    data: TrainingData
    duals: Sequence[Dual]
    names: tuple[str, ...]


def training_data(model: KernelParameters, X: Matrix) -> TrainingData:
    """Settle the kernel on the points; a callable kernel becomes its Gram matrix."""
    kernel = settle_kernel(
        model.kernel, X, gamma=model.gamma, sigma=model.sigma, degree=model.degree, coef0=model.coef0
    )
    if kernel.name not in _SCALE_FREE:
        warn_of_unscaled(X, getattr(model, "feature_names_in_", None))
    if kernel.function is None:
        return TrainingData(X, kernel, X, kernel)
    needed, free = 8 * X.shape[0] ** 2, free_memory()
    if needed > free // 2:
        raise InputError(
            f"a callable kernel needs its whole Gram matrix, {needed / 2**30:.1f} GiB for {X.shape[0]} rows, and "
            f"{free / 2**30:.1f} GiB of memory are free",
            cure="Use a kernel by name, or fewer rows.",
        )
    gram = called(kernel.function, X, X)
    check_symmetric(gram)
    return TrainingData(X, kernel, gram, Kernel("precomputed"))


def weighted_rows(weight: NDArray[np.float64] | None, n: int) -> NDArray[np.int64]:
    """Return the rows whose weight is not 0."""
    return np.arange(n) if weight is None else np.flatnonzero(weight > 0)


def bounds(C: float, weight: NDArray[np.float64] | None, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return C times the weight of each of the rows."""
    if weight is None:
        check_number("C", C, most=MOST_BOUND, beyond=HARD_MARGIN)
        return np.full(len(rows), float(C))
    with np.errstate(over="ignore"):
        upper = np.asarray(float(C) * weight[rows])
    check_weighted(upper.max(initial=0))
    return upper


def check_weighted(largest: float) -> None:
    """Raise `ParameterError` if the largest bound of a row is out of range."""
    if not largest <= MOST_BOUND:
        raise ParameterError(
            f"C times the weight of a row is {largest:g}; it must be {MOST_BOUND:g} at most. Lower C or the weights, "
            "or scale y of a regression."
        )
