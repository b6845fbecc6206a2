"""Textbook SMO: plain NumPy, the whole kernel matrix, one pair at a time.

This is the specification that the native engine must agree with, and the source of a step-by-step trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.status import Status
from margrove.svm.kkt import offset, sides, violation
from margrove.svm.problem import (
    HULLS_MEET,
    Dual,
    DualProblem,
    DualSolution,
    LeaveOneOutProblem,
    LeftOut,
)

LEAST_CURVATURE = 1e-12  # of the largest K(x, x); two equal points have none


@dataclass(frozen=True)
class PairStep:
    """One pair step: y_i α_i grows and y_j α_j falls by ``size``; ``objective`` is the value after it."""

    number: int
    i: int
    j: int
    size: float
    violation: float  # before
    objective: float
    alpha: NDArray[np.float64]


Trace = Callable[[PairStep], None]


def smo(problem: DualProblem, trace: Trace | None = None) -> tuple[DualSolution, ...]:
    """Solve each machine of the problem; they share the kernel matrix."""
    X = problem.X
    K = X.astype(np.float64) if problem.kernel.name == "precomputed" else problem.kernel.matrix(X, X)
    return tuple(_solve(machine, K, problem.tol, problem.step_limit, trace) for machine in problem.machines)


def leave_one_out(problem: LeaveOneOutProblem) -> tuple[LeftOut, ...]:
    """Leave out each row with α > 0, solve the rest from α = 0, and return f of the row."""
    X = problem.X
    K = X.astype(np.float64) if problem.kernel.name == "precomputed" else problem.kernel.matrix(X, X)
    found = []
    for machine in problem.machines:
        values, is_converged = np.full(len(machine.y), np.nan), True
        for t in np.flatnonzero(machine.alpha):
            rest = np.delete(np.arange(len(machine.y)), t)
            part = Dual(machine.y[rest], machine.p[rest], machine.upper[rest], np.zeros(len(rest)), machine.point[rest])
            solution = _solve(part, K, problem.tol, problem.max_iter, None)
            beta, b = part.y * solution.alpha, offset(solution.v, solution.alpha, part.upper, part.y)
            values[t] = beta @ K[part.point, machine.point[t]] + b
            is_converged &= solution.status is Status.CONVERGED
        found.append(LeftOut(values, is_converged, Status.CONVERGED))
    return tuple(found)


def _solve(machine: Dual, gram: NDArray[np.float64], tol: float, max_iter: int, trace: Trace | None) -> DualSolution:
    """Choose the pair that violates most, solve its two-variable problem in closed form, clip, repeat.

    Pairs, because the equality yᵀα = δ leaves no room for one variable alone: with step λ, Δα_i = y_i λ and
    Δα_j = −y_j λ.
    Along it the objective is  −λ (v_i − v_j) + ½ λ² (K_ii + K_jj − 2 K_ij),  smallest at
    λ = (v_i − v_j) / (K_ii + K_jj − 2 K_ij), and λ may go no further than the room of either.
    """
    K = gram[np.ix_(machine.point, machine.point)]
    least_curvature = LEAST_CURVATURE * (float(np.abs(K.diagonal()).max()) or 1.0)
    y, upper, alpha = machine.y.astype(np.float64), machine.upper, machine.alpha.copy()
    v = -y * machine.p - K @ (y * alpha)
    number = 0
    while True:
        objective = _objective(machine, alpha, v)
        i, j, worst = _worst_pair(machine, alpha, v)
        # The nearest points of two hulls: α and v are judged as they are after scaling by 2/‖w‖² = 1/objective.
        scale = max(objective, HULLS_MEET * K.diagonal().max() / 2) if machine.hulls else 1.0
        if worst <= tol * scale or (machine.hulls and 2 * objective <= HULLS_MEET * K.diagonal().max()):
            status = Status.CONVERGED
            break
        if number == max_iter:
            status = Status.MAX_ITER
            break
        room_i = upper[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else upper[j] - alpha[j]
        size = min(worst / max(K[i, i] + K[j, j] - 2 * K[i, j], least_curvature), room_i, room_j)
        # a + (C − a) is not always C: who takes all its room is put on its bound.
        alpha[i] = (upper[i] if y[i] > 0 else 0.0) if size == room_i else alpha[i] + y[i] * size
        alpha[j] = (0.0 if y[j] > 0 else upper[j]) if size == room_j else alpha[j] - y[j] * size
        v -= size * (K[:, i] - K[:, j])
        number += 1
        if trace is not None:
            trace(PairStep(number, i, j, size, worst, _objective(machine, alpha, v), alpha.copy()))
    return DualSolution(alpha, v, worst / scale, objective, number, status)


def _worst_pair(machine: Dual, alpha: NDArray[np.float64], v: NDArray[np.float64]) -> tuple[int, int, float]:
    """Return the pair of the largest violation; within one sign for the ν-forms."""
    up, low = sides(machine.y, alpha, machine.upper)
    parts = [machine.y > 0, machine.y < 0] if machine.by_sign else [np.ones(len(v), np.bool_)]
    part = max(parts, key=lambda part: violation(v[part], up[part], low[part]))
    i = int(np.argmax(np.where(up & part, v, -np.inf)))
    j = int(np.argmin(np.where(low & part, v, np.inf)))
    return i, j, violation(v[part], up[part], low[part])


def _objective(machine: Dual, alpha: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    """½ αᵀQα + pᵀα = ½ Σ α_t (p_t − y_t v_t)."""
    return float(alpha @ (machine.p - machine.y * v) / 2)
