"""SMO as the textbook has it (THEORY M7): plain NumPy, the whole kernel matrix, one pair at a time.

This is the specification that the native engine must agree with, and the source of a step-by-step trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.status import Status
from margrove.svm.problem import DualProblem, DualSolution, sides, violation

LEAST_CURVATURE = 1e-12  # two equal points have none


@dataclass(frozen=True)
class Step:
    """One pair step: y_i α_i grows and y_j α_j falls by ``size``; ``objective`` is the value after it."""

    number: int
    i: int
    j: int
    size: float
    violation: float  # before
    objective: float
    alpha: NDArray[np.float64]


Trace = Callable[[Step], None]


def smo(problem: DualProblem, trace: Trace | None = None) -> DualSolution:
    """Choose the pair that violates most, solve its two-variable problem in closed form, clip, repeat.

    Pairs, because the equality yᵀα = δ leaves no room for one variable alone: with step λ, Δα_i = y_i λ and
    Δα_j = −y_j λ.
    Along it the objective is  −λ (v_i − v_j) + ½ λ² (K_ii + K_jj − 2 K_ij),  smallest at
    λ = (v_i − v_j) / (K_ii + K_jj − 2 K_ij), and λ may go no further than the room of either.
    """
    X, point = problem.X, problem.point
    G = X.astype(np.float64) if problem.kernel.name == "precomputed" else problem.kernel.matrix(X, X)
    K = G[np.ix_(point, point)]
    y, upper, alpha = problem.y.astype(np.float64), problem.upper, problem.alpha.copy()
    v = -y * problem.p - K @ (y * alpha)
    number, status = 0, Status.MAX_ITER
    while problem.max_iter < 0 or number < problem.max_iter:
        up, low = sides(problem.y, alpha, upper)
        worst = violation(v, up, low)
        if worst <= problem.tol:
            status = Status.CONVERGED
            break
        i = int(np.argmax(np.where(up, v, -np.inf)))
        j = int(np.argmin(np.where(low, v, np.inf)))
        room_i = upper[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else upper[j] - alpha[j]
        size = min((v[i] - v[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], LEAST_CURVATURE), room_i, room_j)
        # a + (C − a) is not always C: who takes all its room is put on its bound.
        alpha[i] = (upper[i] if y[i] > 0 else 0.0) if size == room_i else alpha[i] + y[i] * size
        alpha[j] = (0.0 if y[j] > 0 else upper[j]) if size == room_j else alpha[j] - y[j] * size
        v -= size * (K[:, i] - K[:, j])
        number += 1
        if trace is not None:
            trace(Step(number, i, j, size, worst, _objective(problem, alpha, v), alpha.copy()))
    up, low = sides(problem.y, alpha, upper)
    return DualSolution(alpha, v, violation(v, up, low), _objective(problem, alpha, v), number, status)


def _objective(problem: DualProblem, alpha: NDArray[np.float64], v: NDArray[np.float64]) -> float:
    """½ αᵀQα + pᵀα = ½ Σ α_t (p_t − y_t v_t)."""
    return float(alpha @ (problem.p - problem.y * v) / 2)
