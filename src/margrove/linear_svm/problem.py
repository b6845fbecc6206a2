"""The problem of a linear SVM, as data: w is explicit. No solver lives here.

One *machine* decides by f(x) = w·x + b and is the least of

    P(w, b) = R(w, b) + Σ C_i ℓ(z_i, f(x_i))

where z_i is a sign, +1 or −1, or the number to predict, and C_i the cost of row i.

loss ℓ(z, f)                 value                      bounds of β_i         term of β_i in the dual, `dual_terms`
hinge                        max(0, 1 − z f)            0 ≤ z β ≤ C           z β
squared_hinge                max(0, 1 − z f)²           0 ≤ z β               z β − β²/(4C)
epsilon_insensitive          max(0, |z − f| − ε)        −C ≤ β ≤ C            z β − ε |β|
squared_epsilon_insensitive  max(0, |z − f| − ε)²       none                  z β − ε |β| − β²/(4C)

β_i is the dual variable of row i: with v = Σ β_i x_i and u = Σ β_i, a β within its bounds has the dual value

    penalty l2   R = ½‖w‖² + ½(b/s)²     D(β) = Σ (term of β_i) − ½‖v‖² − ½(s u)²          best: w = v, b = s² u
    penalty l1   R = ‖w‖₁ + |b|/s        D(β) = Σ (term of β_i)    if ‖v‖_∞ ≤ 1 and s |u| ≤ 1

and D(β) ≤ P(w, b) whatever both are: the *gap* P − D proves how far from the best they can be. The intercept is the
weight of a constant column of the value s, as in LIBLINEAR, and so is penalised with the others; s = ∞ leaves it free,
and then u must be 0; s = 0 is no intercept.

For a squared loss w implies a β, `implied_beta`, and the gap of the two is ½‖∇P‖²: after Newton's method that proves
all there is to prove, and β need not be kept. After coordinate descent it proves less than the β that was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import Matrix, Rows, RowsProblem
from margrove.problem import Problem
from margrove.status import Status

Loss = Literal["hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive"]
LOSSES: tuple[Loss, ...] = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")
Penalty = Literal["l2", "l1"]
PENALTIES: tuple[Penalty, ...] = ("l2", "l1")
Solver = Literal["auto", "newton", "row_newton", "conjugate_gradients", "descent"]
SOLVERS: tuple[Solver, ...] = ("auto", "newton", "row_newton", "conjugate_gradients", "descent")

_SURE = 1e-12  # of P and D, sums over all rows: a gap that is negative by less is 0
EPS = float(np.finfo(np.float64).eps)
# Bound of the rounding of a sum of products, relative to the sum of their absolute values; half of what the core
# allows for when it lengthens w beyond the margin (core/linear/margin_lift.hpp), so that such rows have no loss.
ROUNDING_OF_SUMS = 4 * EPS


def is_squared(loss: Loss) -> bool:
    """Return whether the loss is smooth, so that w implies β."""
    return loss.startswith("squared_")


def is_of_signs(loss: Loss) -> bool:
    """Return whether the loss is that of two classes."""
    return loss.endswith("hinge")


@dataclass(frozen=True)
class LinearMachine:
    """One machine: its targets, its costs, and its start."""

    target: NDArray[np.float64]  # (n,), ±1 or the numbers to predict
    cost: NDArray[np.float64]  # (n,), C_i ≥ 0; 0 leaves a row out
    w: NDArray[np.float64] | None = None  # (d,), where to begin; None is 0
    b: float = 0.0
    beta: NDArray[np.float64] | None = None  # (n,), where to begin; None is 0


@dataclass(frozen=True)
class LinearSvmProblem(RowsProblem["tuple[LinearSvmSolution, ...]"]):
    """Some machines on the same points: X is dense with contiguous rows or CSR, float32 or float64."""

    machines: tuple[LinearMachine, ...]
    loss: Loss = "squared_hinge"
    penalty: Penalty = "l2"
    intercept: float = 1.0  # s: 0 for none, ∞ for a free one
    epsilon: float = 0.0
    tol: float = 1e-4  # of the gap, relative to the primal value
    max_iter: int = 1000  # steps of Newton's method, or passes over the rows
    solver: Solver = "auto"
    seed: int = 0  # of the order of coordinates


@dataclass(frozen=True)
class LinearSvmSolution:
    """One machine as it was left, with the two values whose difference is its proof."""

    w: NDArray[np.float64]  # (d,)
    b: float
    beta: NDArray[np.float64]  # (n,), within its bounds
    primal: float
    dual: float
    n_iter: int
    status: Status
    solver: str  # its name
    is_proved_by_w: bool = True  # of a squared loss: the β that w implies has the value ``dual``

    @property
    def gap(self) -> float:
        """P − D, relative to P; 0 where both are 0."""
        return relative_gap(self.primal, self.dual)


@dataclass(frozen=True)
class LinearPathProblem(Problem["tuple[tuple[LinearSvmSolution, ...], ...]"]):
    """The machines of ``problem`` along C: all costs times each of ``factors``, which ascend. Each step starts from the
    solution of the last.

    The solution is a tuple of steps, each a tuple over the machines; after Ctrl-C or a time limit those that were
    reached, the last perhaps stopped early. With ``take`` it is empty: each solution is passed on when it ends, by
    ``take(step, machine, solution)``, in any order of the machines.
    """

    problem: LinearSvmProblem
    factors: NDArray[np.float64]  # (k,), above 0
    take: Callable[[int, int, LinearSvmSolution], None] | None = None

    @property
    def rows(self) -> Rows[Any] | Matrix:
        """The rows of the problem."""
        return self.problem.rows


@dataclass(frozen=True)
class CrammerSingerProblem(RowsProblem["CrammerSingerSolution"]):
    """K classes separated by one machine (Crammer and Singer 2001):

    min ½ Σ_k ‖w_k‖² + ½ Σ_k (b_k/s)² + Σ_i C_i max(0, max_{k ≠ z_i} 1 + f_k(x_i) − f_{z_i}(x_i))

    Dual: β_ik ≤ C_i if k = z_i else ≤ 0, Σ_k β_ik = 0;
    D(β) = Σ_i β_{i z_i} − ½ Σ_k ‖Σ_i β_ik x_i‖² − ½ s² Σ_k (Σ_i β_ik)²
    """

    codes: NDArray[np.int32]  # (n,), classes numbered from 0
    n_classes: int
    cost: NDArray[np.float64]  # (n,)
    intercept: float = 1.0  # s: 0 for none; a free one is refused before
    tol: float = 1e-4
    max_iter: int = 1000
    seed: int = 0
    beta: NDArray[np.float64] | None = None  # (n, K), where to begin


@dataclass(frozen=True)
class CrammerSingerSolution:
    """W and B of all classes."""

    w: NDArray[np.float64]  # (K, d)
    b: NDArray[np.float64]  # (K,)
    beta: NDArray[np.float64]  # (n, K)
    primal: float
    dual: float
    n_iter: int
    status: Status
    solver: str

    @property
    def gap(self) -> float:
        """P − D, relative to P."""
        return relative_gap(self.primal, self.dual)


LinearProblem: TypeAlias = LinearSvmProblem | CrammerSingerProblem
LinearSvmSolutions: TypeAlias = tuple[LinearSvmSolution, ...] | CrammerSingerSolution


def relative_gap(primal: float, dual: float) -> float:
    """(P − D)/P; 0 where D is above P by less than such sums are sure of. P is never below 0, and D = 0 is always to be
    had (β = 0), so P = 0 has no gap."""
    apart = primal - dual
    if primal <= 0 or -_SURE * primal <= apart <= 0:
        return 0.0
    return apart / primal


def centred(problem: LinearSvmProblem) -> tuple[LinearSvmProblem, list[float]]:
    """Return the same problem where rounding is least, and the number to add to b of each machine's solutions.

    With a free intercept some b with w = 0 may have no loss. Then P = 0, and a relative gap is infinite unless it is 0.
    Such a machine takes this b, and its costs become 0, so that the solve ends at once. Other regressions do not depend
    on where 0 lies, except for rounding: targets far from 0 that differ by little would lose digits. They are counted
    from the median of the rows with a cost.
    """
    middles = [0.0] * len(problem.machines)
    if not math.isinf(problem.intercept):
        return problem, middles
    machines = list(problem.machines)
    for k, machine in enumerate(machines):
        counted = machine.target[machine.cost > 0]
        best = _lossless(counted, problem)
        if best is not None:
            machines[k], middles[k] = LinearMachine(machine.target, np.zeros_like(machine.cost)), best
        elif not is_of_signs(problem.loss):
            middles[k] = float(np.median(counted))
            start = 0.0 if machine.w is None else machine.b - middles[k]
            machines[k] = replace(machine, target=machine.target - middles[k], b=start)
    return replace(problem, machines=tuple(machines)), middles


def _lossless(targets: NDArray[np.float64], problem: LinearSvmProblem) -> float | None:
    """Return the b that leaves no loss where w = 0, if there is one."""
    if len(targets) == 0:
        return 0.0
    least, largest = float(targets.min()), float(targets.max())
    if is_of_signs(problem.loss):
        return least if least == largest else None  # a class that a fold has no rows of
    return (least + largest) / 2 if is_within_tube(least, largest, problem.epsilon) else None


def is_within_tube(least: float, largest: float, epsilon: float) -> bool:
    """Return whether b = (least + largest)/2 leaves targets from ``least`` to ``largest`` without a loss."""
    middle = (least + largest) / 2
    return max(largest - middle, middle - least) <= epsilon


def rounding_of_losses(
    loss: Loss, beyond: NDArray[np.float64], cost: NDArray[np.float64], epsilon: float, unsure: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how far C ℓ of each row may be wrong, where f may be wrong by ``unsure`` and ``beyond`` is its `excess`:
    only rows on the edge of the margin or tube, or beyond it, have a loss that this changes."""
    unsure = unsure + EPS * (np.abs(beyond) + epsilon)
    change = unsure * (2 * np.maximum(beyond, 0) + unsure) if is_squared(loss) else unsure
    return np.asarray(np.where(beyond > -unsure, cost * change, 0.0))


def losses(loss: Loss, target: NDArray[np.float64], values: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Return ℓ(z_i, f_i)."""
    positive = np.maximum(excess(loss, target, values, epsilon), 0)
    return np.asarray(positive**2 if is_squared(loss) else positive)


def excess(loss: Loss, target: NDArray[np.float64], values: NDArray[np.float64], epsilon: float) -> Any:
    """Return how far each row lies beyond its margin, or outside the tube; below 0 where it has no loss."""
    return 1 - target * values if is_of_signs(loss) else np.abs(target - values) - epsilon


def implied_beta(
    loss: Loss, target: NDArray[np.float64], values: NDArray[np.float64], cost: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Return the β that f implies for a squared loss: −C ℓ'(f)."""
    if is_of_signs(loss):
        return np.asarray(2 * cost * target * np.maximum(1 - target * values, 0))
    residual = target - values
    return np.asarray(2 * cost * np.sign(residual) * np.maximum(np.abs(residual) - epsilon, 0))


def dual_terms(
    loss: Loss, target: NDArray[np.float64], beta: NDArray[np.float64], cost: NDArray[np.float64], epsilon: float
) -> NDArray[np.float64]:
    """Return the term of each β_i in the dual value."""
    gain = target * beta
    if not is_of_signs(loss):
        gain = gain - epsilon * np.abs(beta)
    if is_squared(loss):
        quarter = np.divide(beta**2, 4 * cost, out=np.zeros_like(beta), where=cost > 0)
        gain = gain - quarter
    return np.asarray(gain)


def bounds_of(
    loss: Loss, target: NDArray[np.float64], cost: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest β_i; 0 for a row without a cost."""
    most = np.where(cost > 0, np.inf, 0.0) if is_squared(loss) else cost
    if is_of_signs(loss):
        return np.where(target > 0, 0.0, -most), np.where(target > 0, most, 0.0)
    return -most, most


def balanced(beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return β with Σ β = 0, as a free intercept requires: the heavier side is scaled down, within its bounds."""
    positive, negative = balancing_shares(beta[beta > 0].sum(), -beta[beta < 0].sum())
    return np.asarray(beta * np.where(beta > 0, positive, negative))


def balancing_shares(
    positive: NDArray[np.float64], negative: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what Σ of β > 0 and Σ |β| of β < 0 are multiplied by to be equal: the heavier shrinks, which keeps the
    bounds."""
    lighter, heavier = np.minimum(positive, negative), np.maximum(positive, negative)
    ratio = np.divide(lighter, heavier, out=np.ones_like(heavier), where=heavier > 0)
    return np.where(positive > negative, ratio, 1.0), np.where(negative > positive, ratio, 1.0)


def crammer_singer_losses(
    values: NDArray[np.float64], codes: NDArray[np.integer[Any]], margin: NDArray[np.float64] | float = 1.0
) -> NDArray[np.float64]:
    """max(0, max_{k ≠ z} 1 + f_k − f_z) of each row; ``values`` is f, shape (n, K). ``margin`` takes the place of 1."""
    rows = np.arange(len(codes))
    behind = np.reshape(margin, (-1, 1)) + values - values[rows, codes][:, None]
    behind[rows, codes] = 0
    return np.asarray(behind.max(axis=1))


def penalty_value(penalty: Penalty, w: NDArray[np.float64], b: float, s: float) -> float:
    """Return R(w, b)."""
    scaled = 0.0 if s == 0 or math.isinf(s) else b / s
    if penalty == "l1":
        return float(np.abs(w).sum() + abs(scaled))
    return float(0.5 * (w @ w) + 0.5 * scaled**2)
