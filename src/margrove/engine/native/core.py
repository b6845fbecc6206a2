"""The C++ core, and its points, threads and BLAS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cython_blas, cython_lapack

from margrove import _core
from margrove.errors import EngineError
from margrove.run.effort import Effort
from margrove.run.slices import run_in_slices
from margrove.run.threads import blas_held_back
from margrove.run.threads import threads_for as threads_for
from margrove.status import Status
from margrove.svm.kernels import Kernel, Matrix

NAME = "native"
core = _core

core.set_blas(cython_blas.__pyx_capi__["sgemm"], cython_blas.__pyx_capi__["dgemm"])
core.set_symmetric_blas(
    cython_blas.__pyx_capi__["dgemm"],
    cython_blas.__pyx_capi__["dsyrk"],
    cython_lapack.__pyx_capi__["dpotrf"],
    cython_lapack.__pyx_capi__["dpotrs"],
)


def given_or_nothing(values: ArrayLike | None) -> NDArray[np.float64]:
    """Return numbers as the core takes them: an empty array for None."""
    return np.ascontiguousarray(() if values is None else values, dtype=np.float64)


def points_of(X: Matrix) -> core.Points:
    """Return the core's view of the points, without a copy."""
    if sp.issparse(X):
        if X.shape[1] > np.iinfo(np.int32).max:
            raise EngineError(f"X has {X.shape[1]} columns; the native engine supports fewer than 2³¹.")
        return core.csr_points(
            X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False), X.shape[1]
        )
    return core.dense_points(np.ascontiguousarray(X))


def spec_of(kernel: Kernel) -> core.KernelSpec:
    """Return the core's parameters of a kernel; `Kernel.is_native` must hold."""
    return core.KernelSpec(core.KernelKind[kernel.name], gamma=kernel.gamma, coef0=kernel.coef0, degree=kernel.degree)


def kernel_sums(
    kernel: Kernel, X: Matrix, support: Matrix, dual: NDArray[np.float64], n_jobs: int | None
) -> NDArray[np.float64]:
    """K(X, support) dualᵀ, shape (n, machines), streamed over the rows of X. For kernels the core computes."""
    with blas_held_back():
        return core.kernel_decision(
            points_of(X),
            points_of(support),
            np.ascontiguousarray(dual),
            kernel=spec_of(kernel),
            threads=threads_for(n_jobs),
        )


def run_until_done(
    run: Callable[[float], bool], effort: Effort, look_around: Callable[[], None] | None = None
) -> Status:
    """Call ``run(seconds)`` of the core until it returns True, as `run_in_slices` does, with SciPy's BLAS at rest."""
    with blas_held_back():
        return run_in_slices(lambda seconds: Status.CONVERGED if run(seconds) else None, effort, look_around)
