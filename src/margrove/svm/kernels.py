"""Kernels (THEORY M6), as formulas in NumPy: what the native engine must agree with, and what certificates use.

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
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics.pairwise import manhattan_distances

from margrove.advice import Advice, InPython, Setting
from margrove.data.rows import Matrix as Matrix
from margrove.data.sample import squared_norms
from margrove.errors import InputError, ParameterError, check_choice, check_number, shown

KernelFunction: TypeAlias = Callable[[Any, Any], Any]  # of two matrices: the values of all pairs of their rows

NATIVE_KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection")
KERNELS = (*NATIVE_KERNELS, "precomputed")
_NEEDS_NO_GAMMA = ("linear", "intersection", "precomputed")
_NEEDS_NONNEGATIVE = ("chi2", "intersection")
_ASYMMETRY = 1e-5  # of the largest value: float32 matrices are symmetric to about 1e-7
_SYMMETRY_ROWS = 1024
_CLOSE = 1e-6  # of ‖x‖² + ‖z‖²: below, ten digits of a distance are gone
_PAIR_CELLS = 1 << 20
_BLOCK_CELLS = 1 << 22  # kernel values held at once
_DIAGONAL_CELLS = 1 << 20
_CALLED_ROWS = 64  # of which a callable kernel is asked at once, for its values on the diagonal
_LARGEST_COORDINATE = 1e150  # its square is finite in float64
_CENTRE_ROWS = 64  # whose median is the centre from which distances are computed
_VARIANCE_CELLS = 1 << 20
_LEAST_VARIANCE = 1e-300  # below, 1/variance is no number
_MEDIAN_ROWS = 1000  # rows whose distances the median heuristic looks at


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
        """Whether the core computes it from the points."""
        return self.name in NATIVE_KERNELS

    @property
    def is_semidefinite(self) -> bool | None:
        """Whether αᵀKα ≥ 0 for every α and all points; None where that is for the user to know."""
        if self.name == "sigmoid":
            return False
        if self.name == "poly":
            return self.coef0 >= 0 and float(self.degree).is_integer()
        return None if self.function is not None or self.name == "precomputed" else True

    def matrix(self, X: Matrix, Z: Matrix) -> NDArray[np.float64]:
        """K(x_i, z_j), shape (rows of X, rows of Z), in float64."""
        if self.function is not None:
            return called(self.function, X, Z)
        X, Z = _float64(X), _float64(Z)
        if X.shape[0] == 0 or Z.shape[0] == 0:
            return np.zeros((X.shape[0], Z.shape[0]))
        if self.name == "linear":
            return _products(X, Z)
        if self.name == "rbf":
            values = _squared_distances(X, Z)
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
        raise ParameterError(f"kernel {self.name!r} is not computed from points")

    def diagonal(self, X: Matrix) -> NDArray[np.float64]:
        """K(x_i, x_i), shape (rows of X,)."""
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


def settle_kernel(
    kernel: str | KernelFunction,
    X: Matrix,
    *,
    gamma: str | float = "scale",
    sigma: float | None = None,
    degree: float = 3,
    coef0: float = 0.0,
) -> Kernel:
    """Turn a user's words into a `Kernel`, and refuse data on which it has no meaning.

    ``gamma`` is a number, ``"scale"`` (1 / (d · variance of X)), ``"auto"`` (1/d) or ``"median"`` (1 / (2 · median
    squared distance)); ``sigma`` stands for γ = 1/(2σ²) and excludes a numeric gamma.
    """
    if callable(kernel):
        return Kernel("callable", function=kernel)
    check_choice("kernel", kernel, KERNELS, also="a callable")
    if kernel == "precomputed":
        if sp.issparse(X):
            elsewhere = ("A Gram matrix is for Python; choose another ", Setting("kernel", ...))
            cure = Advice(InPython("Pass K.toarray()", *elsewhere), ".")
            raise InputError("a precomputed Gram matrix must be dense, and it is sparse", cure=cure)
        if X.shape[0] != X.shape[1]:
            raise InputError(f"a precomputed Gram matrix must be square; it is {X.shape[0]} × {X.shape[1]}")
        check_symmetric(X)
        return Kernel(kernel)
    if kernel in _NEEDS_NONNEGATIVE:
        check_nonnegative(kernel, X)
    check_number("coef0", coef0)
    check_number("degree", degree, above=0)
    if kernel == "poly" and not float(degree).is_integer():
        raise ParameterError(f"degree is {degree}; it must be a whole number > 0.")
    settled = Kernel(kernel, _settle_gamma(kernel, gamma, sigma, X), float(coef0), float(degree))
    if kernel == "rbf" and X.size and max(float(X.max()), -float(X.min())) > _LARGEST_COORDINATE:
        raise InputError("the distances in X overflow", cure="Scale the columns.")
    return settled


def check_nonnegative(kernel: str, X: Matrix) -> None:
    """Kernels of counts have no meaning below zero."""
    lowest = X.min(axis=0)
    lowest = np.asarray(lowest.todense() if sp.issparse(lowest) else lowest).ravel()
    if lowest.size and lowest.min() < 0:
        column = int(np.argmin(lowest))
        raise InputError(
            f"the {kernel} kernel is for counts, and column {column} goes down to {lowest[column]:g}",
            cure=Advice("Use values ≥ 0 (no standardising), or ", Setting("kernel", "rbf"), "."),
        )


def check_symmetric(gram: NDArray[Any]) -> None:
    """K(x, z) = K(z, x): otherwise what is learnt by rows is not what is predicted by columns."""
    limit = _ASYMMETRY * float(np.abs(gram).max(initial=0))
    for start in range(0, len(gram), _SYMMETRY_ROWS):
        rows = slice(start, start + _SYMMETRY_ROWS)
        off = np.abs(gram[rows] - gram[:, rows].T)
        if off.max(initial=0) > limit:
            i, j = np.unravel_index(int(off.argmax()), off.shape)
            found = f"K[{start + i}, {j}] is {gram[start + i, j]:g} and K[{j}, {start + i}] is {gram[j, start + i]:g}"
            raise InputError(
                f"a Gram matrix must be symmetric, and {found}", cure="Pass (K + K.T) / 2 if that is rounding."
            )


def polynomial_dimension(n_features: int, degree: int) -> int:
    """The number of dimensions of the feature space of (x·z)^p: C(d + p − 1, p).

    Examples
    --------
    >>> from margrove.svm.kernels import polynomial_dimension
    >>> polynomial_dimension(256, 4)
    183181376
    """
    return math.comb(n_features + degree - 1, degree)


def called(function: KernelFunction, X: Matrix, Z: Matrix) -> NDArray[np.float64]:
    """A callable's answer, checked."""
    given = function(X, Z)
    values = np.asarray(given.toarray() if sp.issparse(given) else given, dtype=np.float64)
    if values.shape != (X.shape[0], Z.shape[0]):
        raise InputError(
            f"the kernel gave shape {values.shape} for {X.shape[0]} and {Z.shape[0]} rows",
            cure=f"It must return a matrix of shape ({X.shape[0]}, {Z.shape[0]}).",
        )
    if not np.isfinite(values).all():
        raise InputError("the kernel gave NaN or infinite values")
    return values


def _settle_gamma(kernel: str, gamma: str | float, sigma: float | None, X: Matrix) -> float:
    if sigma is not None:
        if kernel != "rbf":
            raise ParameterError(Advice(f"sigma is {sigma}; only ", Setting("kernel", "rbf"), " has one. Use gamma."))
        check_number("sigma", sigma, above=0)
        if gamma != "scale":
            raise ParameterError(f"sigma is {sigma} and gamma is {shown(gamma)}; give one of them.")
        check_number("sigma²", sigma * sigma, above=_LEAST_VARIANCE)
        return 1.0 / (2.0 * sigma * sigma)
    if kernel in _NEEDS_NO_GAMMA:
        return 1.0
    if isinstance(gamma, str):
        if gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):
                variance = _variance(X)
            if not math.isfinite(variance):
                raise InputError("the variance of X overflows", cure="Scale the columns, or give gamma as a number.")
            if 0 < variance < _LEAST_VARIANCE:
                raise InputError("the variance of X vanishes", cure="Scale the columns, or give gamma as a number.")
            return 1.0 / (float(X.shape[1]) * variance) if variance > 0 else 1.0
        if gamma == "auto":
            return 1.0 / float(X.shape[1])
        if gamma == "median":
            return _median_gamma(X)
        raise ParameterError(f"gamma is {gamma!r}; it must be 'scale', 'auto', 'median' or a number > 0.")
    check_number("gamma", gamma, above=0, cure=Advice("Use ", Setting("gamma", "scale"), " if unsure."))
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
    rows = _float64(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        squared = _squared_distances(rows, rows)
    if not np.isfinite(squared).all():
        raise InputError("the distances in X overflow", cure="Scale the columns, or give gamma as a number.")
    distinct = squared[np.triu_indices(rows.shape[0], k=1)]
    distinct = distinct[distinct > 0]
    return 1.0 / (2.0 * float(np.median(distinct))) if distinct.size else 1.0


def _squared_distances(X: Matrix, Z: Matrix) -> NDArray[np.float64]:
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
    """The pairs below _CLOSE of their own size, at most ``step`` at once: sought among those below that of the largest,
    which are few where the rows are of a like size."""
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
    """The kernel of a fitted kernel model, settled."""
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
