"""Kernels, as formulas in NumPy: the native engine agrees with them, and certificates use them.

=============  =======================================  ==========================================
name           K(x, z)                                  notes
=============  =======================================  ==========================================
linear         x·z
rbf            exp(−γ ‖x−z‖²)                           γ = 1/(2σ²)
poly           (γ x·z + r)^p                            homogeneous with γ = 1, r = 0
sigmoid        tanh(γ x·z + r)                          not PSD for every γ, r
laplacian      exp(−γ ‖x−z‖₁)
chi2           exp(−γ Σ (x−z)²/(x+z))                   x, z ≥ 0
intersection   Σ min(x, z)                              x, z ≥ 0
precomputed    the Gram matrix itself is given
=============  =======================================  ==========================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.validation import _num_samples

from margrove.data.frames import is_frame
from margrove.data.rows import Matrix as Matrix
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError
from margrove.run.threads import blas_held_back, threads_allowed

KernelFunction: TypeAlias = Callable[[Any, Any], Any]  # of two matrices: the values of all pairs of their rows

NATIVE_KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection")
KERNELS = (*NATIVE_KERNELS, "precomputed")
NONNEGATIVE = ("rbf", "laplacian", "chi2", "intersection")  # whose values never fall below 0
_CLOSE = 1e-6  # of ‖x‖² + ‖z‖²: below, ten digits of a distance are gone
_PAIR_CELLS = 1 << 20
_BLOCK_CELLS = 1 << 22  # kernel values held at once
_DIAGONAL_CELLS = 1 << 20
_CALLED_ROWS = 64  # passed to a callable kernel at once, for its values on the diagonal
_CENTRE_ROWS = 64  # whose median is the centre from which distances are computed
TILE = 512  # rows by support vectors: 2 MiB, what one core keeps to itself
_WIDE_TILE = 2048  # where each tile has a cost of its own: sparse rows, a callable kernel
_SUPPORT_CELLS = 1 << 24  # of support vectors, held in float64 at once: 128 MiB
_WORTH_THREADS = 1 << 18  # kernel values


@dataclass(frozen=True)
class Kernel:
    """A kernel with every parameter settled.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.svm.kernels import Kernel
    >>> Kernel("poly", gamma=1.0, coef0=0.0, degree=2).matrix(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[25.]])
    """

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: float = 3.0
    function: KernelFunction | None = None

    @property
    def is_native(self) -> bool:
        """True if the core computes it from the points."""
        return self.name in NATIVE_KERNELS

    @property
    def is_semidefinite(self) -> bool | None:
        """True if αᵀKα ≥ 0 for every α and all points; None where only the user knows."""
        if self.name == "sigmoid":
            return False
        if self.name == "poly":
            return self.coef0 >= 0 and float(self.degree).is_integer()
        return None if self.function is not None or self.name == "precomputed" else True

    def matrix(self, X: Matrix, Z: Matrix) -> NDArray[np.float64]:
        """Return K(x_i, z_j), shape (rows of X, rows of Z), in float64."""
        if self.function is not None:
            return called(self.function, X, Z)
        X, Z = _float64(X), _float64(Z)
        if X.shape[0] == 0 or Z.shape[0] == 0:
            return np.zeros((X.shape[0], Z.shape[0]))
        if self.name == "linear":
            return _products(X, Z)
        if self.name == "rbf":
            values = squared_distances(X, Z)
            values *= -self.gamma
            return np.exp(values, out=values)
        if self.name == "poly":
            powers: NDArray[np.float64] = (self.gamma * _products(X, Z) + self.coef0) ** self.degree
            return powers
        if self.name == "sigmoid":
            return np.tanh(self.gamma * _products(X, Z) + self.coef0)
        if self.name == "laplacian":
            return np.exp(-self.gamma * np.asarray(manhattan_distances(X, Z)))
        X, Z = _dense(X), _dense(Z)
        if self.name == "chi2":
            return np.exp(-self.gamma * np.stack([_chi2_distances(x, Z) for x in X]))
        if self.name == "intersection":
            return np.stack([np.minimum(x, Z).sum(axis=1) for x in X])
        raise ParameterError(f"kernel {self.name!r} cannot be computed from points")

    def diagonal(self, X: Matrix) -> NDArray[np.float64]:
        """Return K(x_i, x_i), shape (rows of X,)."""
        if self.name in ("rbf", "laplacian", "chi2"):
            return np.ones(X.shape[0])
        if self.name in ("linear", "poly", "sigmoid"):
            norms = squared_norms(_float64(X))
            if self.name == "linear":
                return norms
            inner = self.gamma * norms + self.coef0
            return np.tanh(inner) if self.name == "sigmoid" else np.asarray(inner**self.degree)
        if self.name == "intersection":
            return np.asarray(_float64(X).sum(axis=1)).ravel()
        few = [X[start : start + _CALLED_ROWS] for start in range(0, X.shape[0], _CALLED_ROWS)]
        return np.concatenate([self.matrix(rows, rows).diagonal() for rows in few] or [np.zeros(0)])


def diagonal_of(kernel: Kernel, X: Matrix) -> NDArray[np.float64]:
    """Return K(x_i, x_i) of all rows; X is the Gram matrix for kernel "precomputed"."""
    if kernel.name == "precomputed":
        return np.asarray(X.diagonal(), dtype=np.float64)
    step = max(1, _DIAGONAL_CELLS // max(1, X.shape[1]))  # in float64: not all of X at once
    return np.concatenate([kernel.diagonal(X[start : start + step]) for start in range(0, X.shape[0], step)])


def polynomial_dimension(n_features: int, degree: int) -> int:
    """The number of dimensions of the feature space of (x·z)^p: C(d + p − 1, p).

    Examples
    --------
    >>> from margrove.svm.kernels import polynomial_dimension
    >>> polynomial_dimension(256, 4)
    183181376
    """
    return math.comb(n_features + degree - 1, degree)


def are_numbers(X: Any) -> bool:
    """Return whether X is a matrix of numbers, a data frame or a `Table`. Only a callable kernel takes other rows."""
    if sp.issparse(X) or is_frame(X) or isinstance(X, Table):
        return True
    try:
        return np.asarray(X, dtype=np.float64).ndim == 2
    except (TypeError, ValueError):  # text, graphs, rows of different lengths
        return False


def called(function: KernelFunction, X: Any, Z: Any) -> NDArray[np.float64]:
    """Return the values of a callable kernel, checked. X and Z are whatever the function takes."""
    given, shape = function(X, Z), (_num_samples(X), _num_samples(Z))
    values = np.asarray(given.toarray() if sp.issparse(given) else given, dtype=np.float64)
    if values.shape != shape:
        raise InputError(
            f"the kernel returned a matrix of shape {values.shape} for {shape[0]} and {shape[1]} rows",
            cure=f"It must return a matrix of shape {shape}.",
        )
    if not np.isfinite(values).all():
        raise InputError("the kernel returned NaN or infinite values")
    return values


def squared_norms(X: Matrix) -> NDArray[np.float64]:
    """Return ‖x_i‖² of each row, dense or sparse."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X), dtype=np.float64)


def squared_distances(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """‖x_i − z_j‖², by products; pairs so close, for where they lie, that the products lose it are taken one by one."""
    if not sp.issparse(X) and not sp.issparse(Z):
        # Distances do not change, but near the origin fewer digits are lost. A single outlier would move the mean.
        centre = np.median(Z[:: 1 + len(Z) // _CENTRE_ROWS], axis=0)
        X, Z = X - centre, Z - centre
    of_x, of_z = squared_norms(X), squared_norms(Z)
    squared = _products(X, Z)  # in place from here on: what it costs is the way to memory
    squared *= -2
    squared += of_x[:, None]
    squared += of_z
    np.maximum(squared, 0, out=squared)
    for i, j in _lost_pairs(squared, of_x, of_z, max(1, _PAIR_CELLS // max(1, X.shape[1]))):
        squared[i, j] = squared_norms(X[i] - Z[j])
    if not (np.isfinite(of_x).all() and np.isfinite(of_z).all()):  # ∞ − ∞: the norms overflow, distances may not
        squared = np.array([squared_norms(_dense(Z) - x) for x in _dense(X)])
    return squared


def _lost_pairs(
    squared: NDArray[np.float64], of_x: NDArray[np.float64], of_z: NDArray[np.float64], step: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the pairs whose squared distance is below _CLOSE of ‖x‖² + ‖z‖², at most ``step`` at once. They are
    searched among those below _CLOSE of the largest such sum, which are few where the rows have similar norms."""
    near = np.flatnonzero(squared < _CLOSE * (of_x.max() + of_z.max()))
    for start in range(0, len(near), step):
        i, j = np.divmod(near[start : start + step], squared.shape[1])
        is_lost = squared[i, j] < _CLOSE * (of_x[i] + of_z[j])
        if is_lost.any():
            yield i[is_lost], j[is_lost]


def _chi2_distances(x: NDArray[np.float64], Z: NDArray[np.float64]) -> NDArray[np.float64]:
    total = x + Z
    squared = (x - Z) ** 2
    return np.asarray(np.divide(squared, total, out=np.zeros_like(total), where=total > 0).sum(axis=1))


def _float64(X: Matrix) -> Matrix:
    return X.astype(np.float64, copy=False)


def _dense(X: Matrix) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sp.issparse(X) else X)


def _products(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    return _dense(X @ Z.T)


def kernel_of(model: Any) -> Kernel:
    """Return the kernel of a fitted model. It is "precomputed" if a callable kernel was fitted to rows that are not
    numbers: only its values are known then."""
    if getattr(model, "_fit_rows", None) is not None:
        return Kernel("precomputed")
    if callable(model.kernel):
        return Kernel("callable", function=model.kernel)
    gamma = getattr(model, "gamma_", None)
    return Kernel(
        model.kernel, float(model._gamma if gamma is None else gamma), float(model.coef0), float(model.degree)
    )


def kernel_norms(
    kernel: Kernel, support: Matrix, dual: NDArray[np.float64], gram: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """√(βᵀKβ) for each row β of ``dual``, the kernel in blocks of rows. ``gram`` is K for kernel "precomputed"."""
    unit = float(np.abs(dual).max(initial=0)) or 1.0  # the square of a tiny or huge β does not underflow or overflow
    dual = dual / unit
    squared = np.zeros(len(dual))
    n = dual.shape[1]
    step = max(1, _BLOCK_CELLS // max(1, n))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        block = gram[rows] if gram is not None else kernel.matrix(support[rows], support)
        squared += np.einsum("mi,ij,mj->m", dual[:, rows], block, dual, optimize=True)
    return np.asarray(unit * np.sqrt(np.maximum(squared, 0)))


def sums_by_blocks(kernel: Kernel, points: Matrix, support: Matrix, beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ_j β_mj K(x_i, s_j), shape (points, rows of ``beta``), by blocks of points."""
    sums = np.empty((points.shape[0], len(beta)))
    step = max(1, _BLOCK_CELLS // max(1, support.shape[0]))
    for start in range(0, points.shape[0], step):
        rows = slice(start, start + step)
        sums[rows] = kernel.matrix(points[rows], support) @ beta.T
    return sums


def kernel_sums(
    kernel: Kernel,
    X: Matrix,
    rows: NDArray[np.int64],
    beta: NDArray[np.float64],
    on_share: Callable[[float], None] | None = None,
) -> NDArray[np.float64]:
    """Return Σ_j β_j K(x_j, x_i) over ``rows``; ``on_share`` is called with the share done.

    Certificates spend their time here. The kernel matrix is never held: a tile of it is made, multiplied and forgotten.
    A tile fits a core's own cache, so that exp and the sums beside the product do not wait for memory; stretches of
    rows go to threads, each of which calls BLAS by itself. A row's sum is always added up in the same order: the result
    does not depend on the number of threads.
    """
    sums, support = np.zeros(len(rows)), np.flatnonzero(beta)
    is_foreign = kernel.function is not None  # it may not be safe to call from threads
    tile = _WIDE_TILE if is_foreign or sp.issparse(X) else TILE
    stretches = [slice(start, start + tile) for start in range(0, len(rows), tile)]
    step = max(TILE, _SUPPORT_CELLS // max(1, X.shape[1]))
    with blas_held_back():  # threads of its own bring tiles that small nothing but waiting
        for first in range(0, len(support), step):
            some = support[first : first + step]
            points = rows[some] if kernel.name == "precomputed" else X[rows[some]]
            if kernel.is_native:
                points = points.astype(np.float64)

            def add(stretch: slice, some: Any = some, points: Any = points) -> NDArray[np.float64]:
                own = rows[stretch] if kernel.name == "precomputed" else X[rows[stretch]]
                total = np.zeros(len(own) if kernel.name == "precomputed" else own.shape[0])
                for start in range(0, len(some), tile):
                    part = slice(start, start + tile)
                    if kernel.name == "precomputed":
                        values = np.asarray(X[np.ix_(own, points[part])], dtype=np.float64)
                    else:
                        values = kernel.matrix(own, points[part])
                    total += values @ beta[some[part]]
                return total

            n_threads = threads_allowed() if not is_foreign and len(rows) * len(some) > _WORTH_THREADS else 1
            with ThreadPoolExecutor(n_threads) as pool:
                found = pool.map(add, stretches) if n_threads > 1 else map(add, stretches)
                for done, (stretch, part) in enumerate(zip(stretches, found, strict=True), start=1):
                    sums[stretch] += part
                    if on_share is not None:
                        on_share((first + len(some) * done / len(stretches)) / len(support))
    return sums
