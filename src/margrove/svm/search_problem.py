"""The problem of a search, as data: machines under several kernels, on several folds, along C. No solver lives here.

The `DualVariables` of a machine are its dual without the bounds, over the rows of all folds. A *fold* gives each row
its weight in training (0 for none) and lists the rows held out. A *unit* is one fold under one kernel, for ascending
values of C. The bound of a variable is C times the weight of its row. Along C each solution starts the next: as the
bounds grow by C'/C, so may α, and v + y p grows with it exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import RowsProblem
from margrove.status import Status
from margrove.svm.kernels import Kernel
from margrove.svm.problem import MOST_STEPS, Dual


@dataclass(frozen=True)
class DualVariables:
    """One machine; see `margrove.svm.problem` for y and p."""

    y: NDArray[np.int8]  # (m,)
    p: NDArray[np.float64]  # (m,)
    point: NDArray[np.int64]  # (m,)


@dataclass(frozen=True)
class Fold:
    """Weights of the rows in training, and the rows held out."""

    weight: NDArray[np.float64]  # (n,)
    held_out: NDArray[np.int64]  # (h,)


@dataclass(frozen=True)
class SearchUnit:
    """One fold under one kernel."""

    kernel: int
    fold: int
    Cs: NDArray[np.float64]  # ascending
    epsilon: float = 0.0  # added to every p: the tube of a regression


@dataclass(frozen=True)
class UnitSolution:
    """Solution of a unit, for each C and machine."""

    values: NDArray[np.float64]  # (Cs, machines, held out): f on the rows held out
    violation: NDArray[np.float64]  # (Cs, machines)
    support: NDArray[np.int64]
    seconds: NDArray[np.float64]
    is_converged: NDArray[np.bool_]


@dataclass(frozen=True)
class SearchProblem(RowsProblem[Status]):
    """Units that share their points. ``take`` is handed each unit's number and solution as it ends. X is the Gram
    matrix (n, n) for the one kernel "precomputed"."""

    kernels: tuple[Kernel, ...]
    machines: tuple[DualVariables, ...]
    folds: tuple[Fold, ...]
    units: tuple[SearchUnit, ...] = ()  # those of one kernel stand together
    take: Callable[[int, UnitSolution], None] = lambda number, solution: None
    tol: float = 1e-3
    max_iter: int = -1  # pair steps of each machine at each C; −1 for MOST_STEPS
    cache_bytes: int | None = 1 << 30  # for kernel values; None: as the engine sees fit
    precision: str = "auto"

    @property
    def step_limit(self) -> int:
        """Largest number of pair steps of a machine at each C."""
        return self.max_iter if self.max_iter >= 0 else MOST_STEPS

    @property
    def n_cells(self) -> int:
        """Number of machines to solve, at one C each."""
        return len(self.machines) * sum(len(unit.Cs) for unit in self.units)


def dual_on_fold(machine: DualVariables, fold: Fold, C: float, epsilon: float) -> Dual:
    """Return the dual of one machine on one fold at one C, from α = 0."""
    weight = fold.weight[machine.point]
    part = np.flatnonzero(weight > 0)
    return Dual(machine.y[part], machine.p[part] + epsilon, C * weight[part], np.zeros(len(part)), machine.point[part])
