"""What a support vector machine asks, as data: one dual for every formulation (THEORY M1–M4). No solver lives here.

    min  ½ αᵀQα + pᵀα    subject to  yᵀα = δ,  0 ≤ α_t ≤ C_t,      Q_st = y_s y_t K(x_s, x_t)

over variables t = 1 … m, each standing for a point. For classification δ = 0, p = −1, m = n, and C_t is C times the
weight of the row; C = ∞ is the hard margin. What a solver keeps is

    v_t = −y_t (Qα + p)_t,    I_up = {t: y_t α_t can grow},    I_low = {t: y_t α_t can fall},

because α is optimal exactly if the *violation* max_{I_up} v − min_{I_low} v is ≤ 0, and then every number between the
two is an offset b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.status import Status
from margrove.svm.kernels import Kernel, Matrix


@dataclass(frozen=True)
class DualProblem:
    """The dual above."""

    X: Matrix  # (n, d), or the Gram matrix (n, n) for kernel "precomputed"
    kernel: Kernel
    y: NDArray[np.int8]  # (m,)
    p: NDArray[np.float64]  # (m,)
    upper: NDArray[np.float64]  # (m,), C_t
    alpha: NDArray[np.float64]  # (m,), a feasible start
    point: NDArray[np.int64]  # (m,), the row of X that variable t stands for
    tol: float = 1e-3
    max_iter: int = -1  # pair steps; −1 for no limit
    cache_bytes: int = 1 << 30
    precision: str = "single"  # of kernel values: "single" or "double"


@dataclass(frozen=True)
class DualSolution:
    """α with its v, and why the solve ended."""

    alpha: NDArray[np.float64]  # (m,)
    v: NDArray[np.float64]  # (m,)
    violation: float
    objective: float
    n_iter: int
    status: Status


def classification(
    X: Matrix, kernel: Kernel, sign: NDArray[np.int8], upper: NDArray[np.float64], **settings: object
) -> DualProblem:
    """The soft margin (M2, M3): min ½‖w‖² + Σ C_i ξ_i, from α = 0."""
    n = len(sign)
    return DualProblem(X, kernel, sign, -np.ones(n), upper, np.zeros(n), np.arange(n), **settings)  # type: ignore[arg-type]


def sides(
    y: NDArray[np.int8], alpha: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """I_up and I_low."""
    can_grow, can_fall = alpha < upper, alpha > 0
    return np.where(y > 0, can_grow, can_fall), np.where(y > 0, can_fall, can_grow)


def violation(v: NDArray[np.float64], up: NDArray[np.bool_], low: NDArray[np.bool_]) -> float:
    """max over I_up − min over I_low; −∞ where a side is empty and nothing can move."""
    return float(v[up].max(initial=-np.inf) - v[low].min(initial=np.inf))


def offset(
    v: NDArray[np.float64], alpha: NDArray[np.float64], upper: NDArray[np.float64], y: NDArray[np.int8]
) -> float:
    """b (M5): the mean of v over the marginal points; the middle of the interval KKT leaves where there are none."""
    free = (alpha > 0) & (alpha < upper)
    if free.any():
        return float(v[free].mean())
    up, low = sides(y, alpha, upper)
    ends = [value for value in (v[up].max(initial=-np.inf), v[low].min(initial=np.inf)) if np.isfinite(value)]
    return float(np.mean(ends)) if ends else 0.0
