"""Sums Σ β K(x_i, x) for new points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.engine import Effort, fitted_by
from margrove.svm.kernels import Kernel, Matrix
from margrove.svm.training import check_nonnegative

_BLOCK_CELLS = 1 << 22  # kernel values, or numbers of X, held at once


def matched(points: Matrix, support: Matrix) -> tuple[Matrix, Matrix]:
    """Return points and support vectors of one kind, dense or sparse, and one precision, as the core wants them."""
    if sp.issparse(support) and not sp.issparse(points):
        points = sp.csr_matrix(points)
    if sp.issparse(points) and not sp.issparse(support):
        support = sp.csr_matrix(support)
    dtype = np.result_type(points.dtype, support.dtype)
    return points.astype(dtype, copy=False), support.astype(dtype, copy=False)


def check_points(kernel: Kernel, points: Matrix) -> None:
    """Raise `InputError` for points that the kernel is not defined on."""
    if kernel.name in ("chi2", "intersection"):
        check_nonnegative(kernel.name, points)


def linear_sums(points: Matrix, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return w·x of each machine, shape (points, machines); float32 points become float64 by stretches."""
    if sp.issparse(points):
        return np.asarray(points @ coef.T, dtype=np.float64)
    sums = np.empty((points.shape[0], len(coef)))
    step = max(1, _BLOCK_CELLS // max(1, points.shape[1]))
    for start in range(0, points.shape[0], step):
        sums[start : start + step] = points[start : start + step] @ coef.T
    return sums


def weighted_sums(
    model: Any, kernel: Kernel, points: Matrix, support: Matrix, beta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Σ_j β_mj K(x_i, s_j), shape (points, rows of ``beta``), by the engine of a fitted model. Points and
    support are `matched`."""
    if support.shape[0] == 0:
        return np.zeros((points.shape[0], len(beta)))
    return fitted_by(model).kernel_sums(kernel, points, support, beta, Effort(n_jobs=model.n_jobs))
