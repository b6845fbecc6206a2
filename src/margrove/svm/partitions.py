"""The points of a kernel machine in partitions, as its certificate sees them: sums over the kernel and its diagonal are
computed where the points lie. No more comes here than the support vectors and some numbers for each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.partitions import Part
from margrove.data.sample import read_points
from margrove.errors import InputError
from margrove.svm.kernels import Kernel, Matrix, diagonal_of, sums_by_blocks

if TYPE_CHECKING:
    from margrove.data.dask_partitions import DaskPartitions


@dataclass(frozen=True)
class _Block:
    """The points of a partition."""

    X: Matrix
    y: Any
    weight: Any


class SpreadPoints:
    """Points in partitions, in place of a matrix of shape (n, d), with their y and weights, or None."""

    def __init__(self, parts: DaskPartitions, model: Any) -> None:
        if model.kernel == "precomputed" or callable(model.kernel):
            problem = f"kernel is {model.kernel!r}, whose values cannot be computed over partitions"
            raise InputError(problem, cure="Pass rows in memory: X.compute().")
        self.blocks = parts.derive(_read, model)
        sizes, ys, weights = zip(*self.blocks.map(_beside), strict=True)
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        self.shape = (int(self.bounds[-1]), int(model.n_features_in_))
        self.y, self.weight = (None if each[0] is None else np.concatenate(each) for each in (ys, weights))

    def __getitem__(self, rows: NDArray[np.int64]) -> Matrix:
        """Return the points of these rows, in this order."""
        from margrove.data.dask_partitions import last_of

        rows = np.asarray(rows)
        block_of = np.searchsorted(self.bounds, rows, side="right") - 1
        order = np.argsort(block_of, kind="stable")
        tasks = self.blocks.tasks
        keys = [
            tasks.submit(key.name, _taken, key, rows[block_of == b] - self.bounds[b])
            for b, key in enumerate(self.blocks.keys)
        ]
        found = last_of(tasks.results(keys))
        whole = sp.vstack(found, format="csr") if sp.issparse(found[0]) else np.concatenate(found)
        return whole[np.argsort(order)]

    def diagonal(self, kernel: Kernel) -> NDArray[np.float64]:
        """Return K(x_i, x_i) of all rows."""
        return self._of_all(_diagonal, kernel)

    def sums(self, kernel: Kernel, support: NDArray[np.int64], beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_j β_j K(x_j, x_i) over the rows ``support``, of all rows i."""
        return self._of_all(_sums, kernel, self[support], beta)

    def _of_all(self, function: Callable[..., Any], *shared: Any) -> NDArray[np.float64]:
        return np.concatenate(self.blocks.map(function, *shared))


# On the workers


def _read(part: Part, model: Any) -> _Block:
    X = part.numbers()
    points = read_points(model, X) if X.shape[0] else np.empty((0, model.n_features_in_))
    return _Block(points, part.y, part.weight)


def _beside(block: _Block) -> tuple[int, Any, Any]:
    return block.X.shape[0], *(None if each is None else np.asarray(each) for each in (block.y, block.weight))


def _taken(block: _Block, rows: NDArray[np.int64]) -> Matrix:
    return block.X[rows]


def _diagonal(block: _Block, kernel: Kernel) -> NDArray[np.float64]:
    return diagonal_of(kernel, block.X) if block.X.shape[0] else np.empty(0)


def _sums(block: _Block, kernel: Kernel, support: Matrix, beta: NDArray[np.float64]) -> NDArray[np.float64]:
    if not block.X.shape[0] or not support.shape[0]:
        return np.zeros(block.X.shape[0])
    points, others = block.X.astype(np.float64), support.astype(np.float64)
    return sums_by_blocks(kernel, points, others, beta[None])[:, 0]
