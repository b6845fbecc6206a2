"""Linear SVMs over a stream of rows of few columns: Newton's method, with no memory but for the block at hand.

In the notation of `passes`, each machine minimises

    Φ(θ) = ½ Σ ρ_j (θ_j − c_j)² + Σ φ_i(x̃_i·θ)       φ of `proximal`: the loss itself where it is squared
    ∇Φ = ρ (θ − c) − Σ β_i x̃_i,    H = diag(ρ) + Σ over free rows σ_i x̃_i x̃_iᵀ

and one pass over the rows gives Φ, ∇Φ, H, P and D at the point that Newton's last step leads to, and Φ at some shorter
steps as well: where the whole step goes too far, the next pass begins at a shorter one. A hinge or an ε-insensitive
loss is smoothed about β of the step before (the method of multipliers); the same pass also gives ∇Φ and H for
β of this step and a sharper κ, so that moving on to it costs no pass by itself.

H decides how far a step leads, and proves nothing. So of a squared loss float32 rows make it in float32, while steps
are good; and after a step only the rows that it frees or binds are added or taken away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.engine.stream.passes import Array, DualSums, Passes, StreamMachine
from margrove.linear_svm.problem import losses, relative_gap
from margrove.linear_svm.proximal import KAPPA_OF_SQUARES, after_steps, proximal_step, smoothed_loss
from margrove.linear_svm.stream_problem import RowBlock, StreamProblem
from margrove.status import Status

BLOCK_CELLS = 1 << 18  # numbers of X held in float64 at once: 2 MB, in the cache of a core
SHORTER = (0.5, 0.2, 0.05, 1e-2, 1e-3, 1e-5)  # shares of Newton's step that are looked at as well
ENOUGH = 0.3  # of the best decrease seen: a whole step that brings as much is taken, its H is at hand
SHARPER = 6.0  # what κ is multiplied by where the method of multipliers is slow
FAST = 0.1  # of the gap left by one of its steps: then κ stays, for a sharper one has more kinks for Newton to cross
SHORT = 0.01  # where Newton's step is best cut to less than this, κ is too sharp
GOOD = 0.1  # of the gap left by a step: where it is more, H is made in float64
NARROW = 4  # columns up to which BLAS multiplies faster one by one
INNER_SHARE = 0.3  # of the gap: where Newton has less than this left to do, the multipliers move on


@dataclass
class NewtonSums:
    """Sums of one pass at one θ, for one λ and κ."""

    dual: DualSums
    hessian: Array  # (width, width), Σ σ x̃ x̃ᵀ over free rows
    phi: float = 0.0

    def add(self, other: NewtonSums) -> None:
        """Add the sums over further rows."""
        self.dual.add_sums(other.dual)
        self.hessian += other.hessian
        self.phi += other.phi


@dataclass
class NewtonMachine(StreamMachine):
    """A machine with the next point to evaluate."""

    kappa: float
    kappa_ahead: float  # of the multipliers' next step
    at: Array = field(init=False)  # (width,), where the step begins
    direction: Array | None = None  # Newton's step; None where the next pass looks at `at` itself
    phi_at: float = math.inf
    multipliers: list[tuple[Array, float]] = field(default_factory=list)  # (θ_j, κ_j), which give λ
    is_rough: bool = False  # H may be made in float32
    hessian: Array | None = None  # at `at`, of a squared loss
    is_known: bool = False  # so that a pass adds up how it changes
    gap_before: float = 1.0  # when the multipliers moved last
    steps: list[tuple[Array, float]] = field(default_factory=list)  # of the dual value
    # Sums of the pass at hand
    phi_shorter: Array = field(init=False)
    here: NewtonSums = field(init=False)
    ahead: NewtonSums | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at = self.centre


@dataclass
class PassSums:
    """The sums of one machine over some of the rows of a pass."""

    loss: float
    phi_shorter: Array
    here: NewtonSums
    ahead: NewtonSums | None

    def add_to(self, machine: NewtonMachine) -> None:
        """Add them to those of the pass at hand."""
        machine.loss += self.loss
        machine.phi_shorter += self.phi_shorter
        machine.here.add(self.here)
        if machine.ahead is not None and self.ahead is not None:
            machine.ahead.add(self.ahead)


class BlockNewton(Passes[NewtonMachine]):
    method = "Newton's method over passes"

    def __init__(self, problem: StreamProblem) -> None:
        super().__init__(problem)
        self.width = len(self.rho)
        self.room = np.ones((0, self.width))  # for x̃ of a block, used again and again

    def _begin(self, number: int, centre: Array, primal: float) -> NewtonMachine:
        # At first every row is free: half of what would take a row of f = 0 to its bound.
        kappa = KAPPA_OF_SQUARES if self.is_squared else 0.5 / self.problem.spread[number]
        return NewtonMachine(number, centre, primal, kappa, SHARPER * kappa, is_rough=self.is_squared)

    def _proof(self, machine: NewtonMachine) -> dict[str, Any]:
        steps = np.zeros((len(machine.steps), self.problem.rows.d + 2))
        for row, (theta, kappa) in zip(steps, machine.steps, strict=True):
            row[: self.width], row[-1] = theta, kappa
        return {"steps": steps}

    def _no_sums(self) -> NewtonSums:
        return NewtonSums(DualSums.none(self.problem), np.zeros((self.width, self.width)))

    # One pass over the rows

    def _clear(self, live: list[NewtonMachine]) -> None:
        """Begin the sums of a pass."""
        for machine in live:
            machine.loss = 0.0
            machine.phi_shorter = np.zeros(len(SHORTER))
            machine.here = self._no_sums()
            machine.ahead = None if self.is_squared else self._no_sums()

    def _pass(self, live: list[NewtonMachine]) -> Iterator[None]:
        self._clear(live)
        columns, starts = self._columns(live)
        for block in self.problem.rows.blocks():
            m, d = block.X.shape
            cells = block.X.nnz // max(1, m) if sp.issparse(block.X) else d
            step = max(1, BLOCK_CELLS // max(1, cells, columns.shape[1]))
            for first in range(0, m, step):
                rows = slice(first, min(m, first + step))
                points = self._points(block.X[rows])
                values = _product(points, columns)
                for machine, (start, stop) in zip(live, pairwise(starts), strict=True):
                    self._add(machine, points, values[:, start:stop], block, rows)
                yield

    def _points(self, X: Matrix) -> Matrix:
        """x̃ of some rows in float64."""
        if sp.issparse(X):
            X = X.astype(np.float64)
            return sp.hstack([X, np.ones((X.shape[0], 1))], format="csr") if self.problem.has_intercept else X
        if len(self.room) < len(X):
            self.room = np.ones((len(X), self.width))
        points = self.room[: len(X)]
        points[:, : X.shape[1]] = X
        return points

    def _columns(self, live: list[NewtonMachine]) -> tuple[Array, list[int]]:
        """Return the θ whose f a pass needs, as columns: of each machine centre, start, step and multipliers."""
        parts, starts = [], [0]
        for machine in live:
            step = np.zeros(self.width) if machine.direction is None else machine.direction
            own = [machine.centre, machine.at, step, *(theta for theta, _ in machine.multipliers)]
            parts += own
            starts.append(starts[-1] + len(own))
        return np.array(parts).T, starts

    def _add(self, machine: NewtonMachine, points: Matrix, values: Array, block: RowBlock, rows: slice) -> None:
        loss, epsilon = self.problem.loss, self.problem.epsilon
        z, C = block.target[machine.number, rows], block.cost[machine.number, rows]
        f_centre, f_at, f_step = values[:, 0], values[:, 1], values[:, 2]
        kappas = np.array([kappa for _, kappa in machine.multipliers])
        before = 0.0 if self.is_squared else after_steps(loss, z, values[:, 3:], C, epsilon, kappas)
        if machine.direction is not None:
            for place, share in enumerate(SHORTER):
                f = f_at + share * f_step
                if self.is_squared:  # φ is C times the loss
                    machine.phi_shorter[place] += C @ losses(loss, z, f, epsilon)
                    continue
                beta, _ = proximal_step(loss, z, f, C, epsilon, before, machine.kappa)
                machine.phi_shorter[place] += smoothed_loss(z, f, C, epsilon, beta, before, machine.kappa).sum()
        f = f_at + f_step
        machine.loss += float(C @ losses(loss, z, f, epsilon))
        own = block.X[rows] if machine.is_rough and block.X.dtype == np.float32 and not sp.issparse(points) else points
        beta, is_free = self._add_sums(machine.here, points, z, f, f_centre, C, before, machine.kappa)
        if machine.is_known:
            _, was_free = proximal_step(loss, z, f_at, C, epsilon, before, machine.kappa)
            machine.here.hessian -= self._hessian(own, was_free & ~is_free, C, machine.kappa)
            is_free &= ~was_free
        machine.here.hessian += self._hessian(own, is_free, C, machine.kappa)
        if machine.ahead is not None:
            _, is_free = self._add_sums(machine.ahead, points, z, f, f_centre, C, beta, machine.kappa_ahead)
            machine.ahead.hessian += self._hessian(points, is_free, C, machine.kappa_ahead)

    def _add_sums(
        self,
        sums: NewtonSums,
        points: Matrix,
        z: Array,
        f: Array,
        f_centre: Array,
        C: Array,
        before: Array | float,
        kappa: float,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Add all sums but H; return β and which rows are free."""
        problem = self.problem
        beta, is_free = proximal_step(problem.loss, z, f, C, problem.epsilon, before, kappa)
        sums.phi += float(smoothed_loss(z, f, C, problem.epsilon, beta, before, kappa).sum())
        sums.dual.add(problem, points, z - f_centre, C, beta)
        return beta, is_free

    def _hessian(self, points: Matrix, is_free: NDArray[np.bool_], C: Array, kappa: float) -> Array:
        """Return Σ σ x̃ x̃ᵀ over free rows; ``points`` are x̃, or x in float32."""
        free = np.flatnonzero(is_free)
        root = np.sqrt(kappa * C[free])
        if sp.issparse(points):
            weighted = sp.diags(root) @ points[free]
            return np.asarray((weighted.T @ weighted).toarray())
        weighted = points[free]
        weighted *= root[:, None].astype(weighted.dtype)
        if weighted.dtype == np.float64:
            return np.asarray(weighted.T @ weighted)
        d = weighted.shape[1]
        found = np.zeros((self.width, self.width))
        with np.errstate(over="ignore", invalid="ignore"):
            found[:d, :d] = weighted.T @ weighted
            if self.width > d:
                found[d, :d] = found[:d, d] = weighted.T @ root.astype(np.float32)
                found[d, d] = root @ root
        return found if np.isfinite(found).all() else self._hessian(self._points(points), is_free, C, kappa)

    def sums_of(self, live: list[NewtonMachine]) -> list[PassSums]:
        """Return the sums of one pass for some machines, for another solver to add."""
        for _ in self._pass(live):
            pass
        return [PassSums(each.loss, each.phi_shorter, each.here, each.ahead) for each in live]

    # After a pass

    def _judge(self, machine: NewtonMachine) -> None:
        theta = machine.at if machine.direction is None else machine.at + machine.direction
        here, moved, gap_before = machine.here, theta - machine.centre, machine.gap
        penalty = self._penalty(moved)
        primal, phi = penalty + machine.loss, penalty + here.phi
        if not self._is_finite(machine, primal, phi):
            return
        dual, drawn = here.dual.dual(self.problem, self.rho)
        theta_dual = machine.centre + drawn
        if self.is_squared:
            if machine.primal - machine.dual > primal - dual or machine.dual == 0:  # w alone must prove its gap
                machine.primal, machine.dual, machine.theta, machine.theta_dual = primal, dual, theta, theta_dual
        else:
            if primal <= machine.primal:
                machine.primal, machine.theta = primal, theta
            if dual > machine.dual:
                machine.dual, machine.theta_dual = dual, theta_dual
                machine.steps = [*machine.multipliers, (theta, machine.kappa)]
        if machine.gap <= self.problem.tol:
            machine.end = Status.CONVERGED
            return
        was_rough = machine.is_rough
        if machine.direction is not None:
            machine.is_rough = was_rough and machine.gap <= GOOD * gap_before
            if self._went_too_far(machine, phi):
                machine.is_known = False
                return
        sums = here
        if machine.is_known and machine.hessian is not None:
            here.hessian += machine.hessian
        machine.hessian, machine.is_known = here.hessian, self.is_squared and machine.is_rough == was_rough
        # The part of P − D that Newton's method closes: 0 where ∇Φ is.
        inner = (
            penalty + float(here.dual.linear.sum() - here.dual.square.sum() - here.dual.v.sum(axis=0) @ moved) - dual
        )
        if machine.ahead is not None and inner <= INNER_SHARE * max(primal - dual, 0.0):
            machine.multipliers = [*machine.multipliers, (theta, machine.kappa)]
            machine.kappa, gap = machine.kappa_ahead, relative_gap(primal, dual)
            machine.kappa_ahead = machine.kappa * (1.0 if gap <= FAST * machine.gap_before else SHARPER)
            machine.gap_before = gap
            sums, phi = machine.ahead, penalty + machine.ahead.phi
        gradient = self.rho * moved - sums.dual.v.sum(axis=0)
        machine.at, machine.phi_at = theta, phi
        machine.direction = newton_step(sums.hessian, self.rho, gradient)
        if not gradient @ machine.direction < 0:  # nothing is left to gain in float64
            machine.direction = None
            if self.is_squared or not machine.multipliers or sums is here:
                machine.end = Status.STALLED

    def _went_too_far(self, machine: NewtonMachine, phi: float) -> bool:
        """Return whether a shorter step is much better than the whole one: then the next pass looks there."""
        assert machine.direction is not None
        shares = np.array([1.0, *SHORTER])
        moved = machine.at - machine.centre
        shorter = np.array([self._penalty(moved + share * machine.direction) for share in SHORTER])
        decrease = machine.phi_at - np.array([phi, *(shorter + machine.phi_shorter)])
        best = int(np.argmax(decrease))
        noise = 1e-12 * abs(machine.phi_at)
        if decrease[0] >= ENOUGH * decrease[best] - noise:
            return False
        share = shares[best] if decrease[best] > 0 else 0.0
        if share <= SHORT and not self.is_squared:
            machine.kappa /= SHARPER
            machine.kappa_ahead = machine.kappa
        machine.at = machine.at + share * machine.direction
        machine.direction = None
        return True


def _product(points: Matrix, columns: Array) -> Array:
    """Return points @ columns, of which many may be 0."""
    used = np.flatnonzero(columns.any(axis=0))
    values = np.zeros((points.shape[0], columns.shape[1]))
    if len(used) > NARROW:
        values[:, used] = points @ columns[:, used]
    else:
        for column in used:
            values[:, column] = points @ columns[:, column]
    return values


def newton_step(hessian: Array, rho: Array, gradient: Array) -> Array:
    """Return −(H + diag ρ)⁻¹ ∇Φ. Columns are scaled to a diagonal of 1 for the solve, which changes only rounding; a
    column without a free row and without a penalty (a free b) does not move."""
    diagonal = np.diagonal(hessian) + rho
    scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
    scaled = hessian * scale * scale[:, None]
    np.fill_diagonal(scaled, 1.0)
    ridge = 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(scaled + ridge * np.eye(len(scaled)), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge = max(1e-14, 100 * ridge)  # far above 1 at the latest it succeeds
            continue
        return np.asarray(-scale * scipy.linalg.cho_solve(factor, scale * gradient, check_finite=False))
