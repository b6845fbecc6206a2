"""The problem of a support vector machine, as data: one dual for every form. No solver lives here.

    min  ½ αᵀQα + pᵀα    subject to  yᵀα = δ,  0 ≤ α_t ≤ C_t,      Q_st = y_s y_t K(x_s, x_t)

over variables t = 1 … m, each of which belongs to a point. A solver maintains

    v_t = −y_t (Qα + p)_t,    I_up = {t: y_t α_t can grow},    I_low = {t: y_t α_t can fall},

because α is optimal exactly if the *violation* max_{I_up} v − min_{I_low} v is ≤ 0, and then every number between the
two is an offset b. The ν-forms have a second equality, Σα = const: pairs are then chosen within one sign, and the
violation is the larger of the two signs' (``by_sign``). The start α is feasible and fixes δ and Σα.

===============  ==========================  ===========  =======================================================
form             variables                   p            start, bounds
===============  ==========================  ===========  =======================================================
classification   one per row                 −1           α = 0, C_i = C · weight
hard margin      one per row, ``by_sign``    0            ``hulls``: two convex combinations, no upper bound
ν-classification one per row, ``by_sign``    0            Σ of each sign = ν Σ C_i / 2, C_i = weight
one class        one per row, y = +1         0            Σ = ν Σ C_i, C_i = weight
regression       two per row, y = +1, −1     ε ∓ z        α = 0, C_i = C · weight; hard tube: no upper bound
ν-regression     two per row, ``by_sign``    ∓ z          Σ of each sign = ν Σ C_i / 2, C_i = C · weight
===============  ==========================  ===========  =======================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import Matrix, Rows, RowsProblem
from margrove.errors import ParameterError
from margrove.problem import Problem
from margrove.search.grid import ascending
from margrove.status import Status
from margrove.svm.kernels import Kernel

MOST_STEPS = 10_000_000  # of a machine with no limit of its own: an ill-scaled problem may never converge
MOST_BOUND = 1e100  # of C times a weight: products of two such numbers are still finite
HARD_MARGIN = "Only SVC and SVR accept C=inf, the hard margin and the hard tube."
MOST_OF_THEM = 0.7  # share of the support vectors at their bounds from which `path_start` keeps them there
HULLS_MEET = 1e-11  # ‖w‖² of two convex combinations, relative to the largest K(x, x): at or below this the hulls meet


def check_costs(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return C times the weight of each row; raise `ParameterError` if one is too large to compute with."""
    largest = float(costs.max(initial=0))
    if not largest <= MOST_BOUND:
        raise ParameterError(
            f"C times the weight of a row is {largest:g}; it must be at most {MOST_BOUND:g}. Lower C or the weights, "
            "or, for a regression, scale y."
        )
    return costs


@dataclass(frozen=True)
class Dual:
    """One machine: the dual above over some of the points."""

    y: NDArray[np.int8]  # (m,)
    p: NDArray[np.float64]  # (m,)
    upper: NDArray[np.float64]  # (m,), C_t; may be infinite
    alpha: NDArray[np.float64]  # (m,), a feasible start
    point: NDArray[np.int64]  # (m,), the row of X that variable t stands for
    by_sign: bool = False
    # The problem is to find the nearest points of two convex hulls: the start is a convex combination of each side, and
    # α has no upper bound. Scaled by s = 2/‖w‖², the solution is the α of the hard margin, so the stopping rule is
    # s · violation ≤ tol. The hulls meet if ‖w‖² ≤ HULLS_MEET · max K(x, x).
    hulls: bool = False
    is_doubled: bool = False  # two variables of each row, α and α*: the second half belongs to the same points


@dataclass(frozen=True)
class DualProblem(RowsProblem["tuple[DualSolution, ...]"]):
    """Some machines that share their points and their kernel. X is the Gram matrix (n, n) for kernel "precomputed"."""

    kernel: Kernel
    machines: tuple[Dual, ...]
    tol: float = 1e-3
    max_iter: int = -1  # pair steps of each machine; −1 for max(MOST_STEPS, 100 · variables)
    cache_bytes: int | None = 1 << 30  # for kernel values; None: the engine decides
    precision: str = "auto"  # of kernel values: "single", "double", or "auto": single while float64 agrees
    shrinking: bool = True

    @property
    def step_limit(self) -> int:
        """Largest number of pair steps of a machine."""
        if self.max_iter >= 0:
            return self.max_iter
        return max(MOST_STEPS, 100 * max((len(machine.y) for machine in self.machines), default=0))


@dataclass(frozen=True)
class PathProblem(Problem["tuple[tuple[DualSolution, ...], ...]"]):
    """The machines of a problem for increasing bounds; each solve starts from the solution before it."""

    first: DualProblem
    uppers: tuple[tuple[NDArray[np.float64], ...], ...]  # bounds of each machine, at each step after the first

    @property
    def rows(self) -> Rows[Any] | Matrix:
        """The rows of the problem."""
        return self.first.rows

    def bounds(self, number: int) -> tuple[NDArray[np.float64], ...]:
        """Return the bounds of each machine at one step of the path."""
        return self.uppers[number - 1] if number else tuple(machine.upper for machine in self.first.machines)


@dataclass(frozen=True)
class DualSolution:
    """α of one machine with its v, and why the solve ended."""

    alpha: NDArray[np.float64]  # (m,)
    v: NDArray[np.float64]  # (m,)
    violation: float  # of ``hulls``: scaled
    objective: float
    n_iter: int
    status: Status
    is_v_known: bool = True  # False where a solve was stopped before v was updated: then v is of an earlier α
    n_kernel_rows: int = 0  # that the core computed for this machine; rows kept from another machine are not counted
    solver: str = "smo"  # pair steps; or "newton", which solves for w itself (linear kernel)


@dataclass(frozen=True)
class LeaveOneOutProblem(RowsProblem["tuple[LeftOut, ...]"]):
    """Solved machines (``alpha`` of each is its solution) that share their points and their kernel."""

    kernel: Kernel
    machines: tuple[Dual, ...]
    tol: float = 1e-3
    max_iter: int = MOST_STEPS
    cache_bytes: int | None = 1 << 30  # for kernel values; None: the engine decides
    precision: str = "auto"


@dataclass(frozen=True)
class LeftOut:
    """For each variable of one machine, f at its point after a solve without it; NaN if α = 0 or time ran out."""

    values: NDArray[np.float64]  # (m,)
    is_converged: bool
    status: Status


def started(dual: Dual, beta: NDArray[np.float64], was_bound: NDArray[np.bool_]) -> Dual:
    """Return ``dual`` with a feasible start from β = y α of each point. α is clipped to [0, C]; where it ``was_bound``,
    it is set to its new bound. Then yᵀα = 0 is restored by reducing the smallest α of the side with the larger sum."""
    given = dual.y * np.where(np.isfinite(beta), beta, 0.0)[dual.point]  # a fit may have ended as nonfinite
    alpha = np.where(was_bound[dual.point] & (given > 0), dual.upper, np.clip(given, 0.0, dual.upper))
    excess = float(dual.y @ alpha)
    side = np.flatnonzero((dual.y == np.sign(excess)) & (alpha > 0))
    side = side[np.argsort(alpha[side], kind="stable")]
    before = np.concatenate([[0.0], np.cumsum(alpha[side])[:-1]])
    alpha[side] -= np.clip(abs(excess) - before, 0.0, alpha[side])
    return replace(dual, alpha=alpha)


def path_start(
    dual: Dual, alpha: NDArray[np.float64], v: NDArray[np.float64], upper: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a start of ``dual`` for larger bounds C', from its solution α: r α, where r ≤ C'/C minimises

    ½ r² αᵀQα + r pᵀα.

    If most support vectors are at their bounds, they are likely to stay there, and r = C'/C. v + y p is linear in α, so
    v at the new start needs no kernel values.
    """
    is_support = alpha > 0
    if not is_support.any():
        return alpha
    ray = float(np.min(upper[is_support] / dual.upper[is_support]))
    curve, slope = -float(alpha @ (dual.p + dual.y * v)), float(alpha @ dual.p)
    if np.mean(alpha[is_support] == dual.upper[is_support]) < MOST_OF_THEM and -slope < ray * curve:
        ray = max(0.0, -slope / curve)
    moved = ray * alpha
    is_bound = (alpha == dual.upper) & (moved >= upper * (1 - 1e-12))
    return np.where(is_bound, upper, np.minimum(moved, upper))


def classification(y: NDArray[np.int8], upper: NDArray[np.float64], point: NDArray[np.int64] | None = None) -> Dual:
    """Return the dual of the soft margin: min ½‖w‖² + Σ C_i ξ_i."""
    return Dual(y, -np.ones(len(y)), upper, np.zeros(len(y)), _points(upper, point))


def hard_margin(y: NDArray[np.int8], point: NDArray[np.int64] | None = None) -> Dual:
    """Return the hard margin as the nearest points of two convex hulls; it starts from one row of each side."""
    n = len(y)
    alpha = np.zeros(n)
    alpha[[int(np.argmax(y > 0)), int(np.argmax(y < 0))]] = 1.0
    return Dual(y, np.zeros(n), np.full(n, np.inf), alpha, _points(alpha, point), by_sign=True, hulls=True)


def nu_classification(
    y: NDArray[np.int8], upper: NDArray[np.float64], nu: float, point: NDArray[np.int64] | None = None
) -> Dual:
    """Return the dual of ν-SVC before its solution is scaled by 1/ρ: Σ of each sign is ν Σ C_i / 2."""
    half = nu * float(upper.sum()) / 2
    alpha = np.where(y > 0, _filled(upper * (y > 0), half), _filled(upper * (y < 0), half))
    return Dual(y, np.zeros(len(y)), upper, alpha, _points(upper, point), by_sign=True)


def one_class(upper: NDArray[np.float64], nu: float, point: NDArray[np.int64] | None = None) -> Dual:
    """Return the dual of the one-class machine: min ½αᵀKα with Σα = ν Σ C_i."""
    n, start = len(upper), _filled(upper, nu * float(upper.sum()))
    return Dual(np.ones(n, np.int8), np.zeros(n), upper, start, _points(upper, point))


def regression(
    z: NDArray[np.float64], upper: NDArray[np.float64], epsilon: float, point: NDArray[np.int64] | None = None
) -> Dual:
    """Return the dual of ε-SVR: α for f(x_i) below z_i − ε, α* for f(x_i) above z_i + ε."""
    return _doubled(np.concatenate([epsilon - z, epsilon + z]), upper, np.zeros(len(z)), point)


def nu_regression(
    z: NDArray[np.float64], upper: NDArray[np.float64], nu: float, point: NDArray[np.int64] | None = None
) -> Dual:
    """Return the dual of ν-SVR: the tube's width is found, not given; Σα = Σα* = ν Σ C_i / 2."""
    start = _filled(upper, nu * float(upper.sum()) / 2)
    return replace(_doubled(np.concatenate([-z, z]), upper, start, point), by_sign=True)


def _doubled(
    p: NDArray[np.float64],
    upper: NDArray[np.float64],
    start: NDArray[np.float64],
    point: NDArray[np.int64] | None,
) -> Dual:
    """Return the dual with two variables α and α* per row, which differ only in y and p."""
    y = np.repeat(np.array([1, -1], np.int8), len(upper))
    return Dual(y, p, np.tile(upper, 2), np.tile(start, 2), np.tile(_points(upper, point), 2), is_doubled=True)


def _points(upper: NDArray[np.float64], point: NDArray[np.int64] | None) -> NDArray[np.int64]:
    return np.arange(len(upper)) if point is None else point


def largest_nu(y: NDArray[np.int8], upper: NDArray[np.float64]) -> float:
    """Return the largest feasible ν of ν-classification: Σ α of each side must be able to reach ν Σ C_i / 2."""
    return 2 * min(float(upper[y > 0].sum()), float(upper[y < 0].sum())) / float(upper.sum())


def _filled(upper: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return a feasible start with few nonzero α: from the first row on, each is set to its bound until the sum is
    ``total``."""
    before = np.concatenate([[0.0], np.cumsum(upper)[:-1]])
    return np.clip(total - before, 0.0, upper)


def penalties(Cs: Any) -> NDArray[np.float64]:
    """Return the values of C along a path or in a grid, checked, sorted, each once."""
    return ascending("Cs", Cs, above=0, most=MOST_BOUND, beyond=HARD_MARGIN)
