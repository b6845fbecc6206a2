"""f_i = Σ_j β_j K(x_j, x_i) in float64, from the kernel's formula: what certificates spend their time on.

The kernel matrix is never held: a tile of it is made, multiplied and forgotten. A tile fits a core's own cache, so that
exp and the sums beside the product do not wait for memory; stretches of rows go to threads, each of which calls BLAS by
itself. A row's sum is always added up in the same order: the answer does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.run.threads import blas_held_back, threads_allowed
from margrove.svm.kernels import Kernel, Matrix

TILE = 512  # rows by support vectors: 2 MiB, what one core keeps to itself
_WIDE_TILE = 2048  # where each tile costs something by itself: turning sparse rows, calling somebody's function
_SUPPORT_CELLS = 1 << 24  # of support vectors, held in float64 at once: 128 MiB
_WORTH_THREADS = 1 << 18  # kernel values


def kernel_sums(
    kernel: Kernel,
    X: Matrix,
    rows: NDArray[np.int64],
    beta: NDArray[np.float64],
    tell: Callable[[float], None] | None = None,
) -> NDArray[np.float64]:
    """Return Σ_j β_j K(x_j, x_i) over ``rows``; ``tell`` is called with the share that is done.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.svm.kernels import Kernel
    >>> from margrove.svm.sums import kernel_sums
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    >>> kernel_sums(Kernel("linear"), X, np.array([0, 1, 2]), np.array([1.0, 0.0, -1.0]))
    array([-2., -2., -7.])
    """
    sums, support = np.zeros(len(rows)), np.flatnonzero(beta)
    is_foreign = kernel.function is not None  # somebody's function, which may not bear threads
    tile = _WIDE_TILE if is_foreign or sp.issparse(X) else TILE
    stretches = [slice(start, start + tile) for start in range(0, len(rows), tile)]
    step = max(TILE, _SUPPORT_CELLS // max(1, X.shape[1]))
    with blas_held_back():  # threads of its own bring tiles that small nothing but waiting
        for first in range(0, len(support), step):
            some = support[first : first + step]
            if kernel.name == "precomputed":
                add = _sum_given(X, rows, rows[some], beta[some], tile)
            else:
                points = X[rows[some]]
                add = _sum_made(kernel, X, rows, points if is_foreign else points.astype(np.float64), beta[some], tile)
            n_threads = threads_allowed() if not is_foreign and len(rows) * len(some) > _WORTH_THREADS else 1
            for done, (stretch, found) in enumerate(
                zip(stretches, _over(add, stretches, n_threads), strict=True), start=1
            ):
                sums[stretch] += found
                if tell is not None:
                    tell((first + len(some) * done / len(stretches)) / len(support))
    return sums


def _over(
    add: Callable[[slice], NDArray[np.float64]], stretches: list[slice], n_threads: int
) -> Iterator[NDArray[np.float64]]:
    if n_threads == 1:
        yield from map(add, stretches)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            yield from pool.map(add, stretches)


def _sum_given(
    gram: Matrix, rows: NDArray[np.int64], columns: NDArray[np.int64], beta: NDArray[np.float64], tile: int
) -> Callable[[slice], NDArray[np.float64]]:
    def add(stretch: slice) -> NDArray[np.float64]:
        return np.asarray(
            sum(
                np.asarray(gram[np.ix_(rows[stretch], columns[part])], dtype=np.float64) @ beta[part]
                for part in _parts(len(columns), tile)
            )
        )

    return add


def _sum_made(
    kernel: Kernel, X: Matrix, rows: NDArray[np.int64], points: Matrix, beta: NDArray[np.float64], tile: int
) -> Callable[[slice], NDArray[np.float64]]:
    def add(stretch: slice) -> NDArray[np.float64]:
        own = X[rows[stretch]]
        return np.asarray(sum(kernel.matrix(own, points[part]) @ beta[part] for part in _parts(len(beta), tile)))

    return add


def _parts(n: int, tile: int) -> Iterator[slice]:
    return (slice(start, start + tile) for start in range(0, n, tile))
