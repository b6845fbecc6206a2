"""Linear SVMs over a stream of rows (`margrove.linear_svm.stream_problem`): no memory but for the block at hand.

Rows of few columns: Newton's method. With x̃ = (x, 1), θ = (w, b) and ρ = (1, …, 1, 1/s²), each machine minimises

    Φ(θ) = ½ Σ ρ_j (θ_j − c_j)² + Σ φ_i(x̃_i·θ)       φ of `proximal`: the loss itself where it is squared
    ∇Φ = ρ (θ − c) − Σ β_i x̃_i,    H = diag(ρ) + Σ over free rows σ_i x̃_i x̃_iᵀ

and one pass over the rows gives Φ, ∇Φ, H, P and D at the point that Newton's last step leads to, and Φ at some shorter
steps as well: where the whole step goes too far, the next pass begins at a shorter one. A hinge or an ε-insensitive
loss is smoothed about β of the step before (the method of multipliers); the same pass also gives ∇Φ and H for
β of this step and a sharper κ, so that moving on to it costs no pass by itself.

Rows of more columns: `descent`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.engine.stream.sums import DualSums
from margrove.linear_svm.problem import balancing_shares, is_squared, losses, relative_gap
from margrove.linear_svm.proximal import KAPPA_OF_SQUARES, after_steps, proximal_step, smoothed_loss
from margrove.linear_svm.stream_problem import Block, StreamProblem, StreamSolution
from margrove.status import Status

Array = NDArray[np.float64]

BLOCK_CELLS = 1 << 20  # numbers of X held in float64 at once
SHORTER = (0.5, 0.2, 0.05, 1e-2, 1e-3, 1e-5)  # shares of Newton's step that are looked at as well
ENOUGH = 0.3  # of the best decrease seen: a whole step that brings as much is taken, its H is at hand
SHARPER = 6.0  # what κ is multiplied by where the method of multipliers is slow
FAST = 0.1  # of the gap left by one of its steps: then κ stays, for a sharper one has more kinks for Newton to cross
SHORT = 0.01  # where Newton's step is best cut to less than this, κ is too sharp
INNER_SHARE = 0.3  # of the gap: where Newton has less than this left to do, the multipliers move on


@dataclass
class _Sums:
    """Sums of one pass at one θ, for one λ and κ."""

    dual: DualSums
    hessian: Array  # (width, width), Σ σ x̃ x̃ᵀ over free rows
    phi: float = 0.0

    @classmethod
    def none(cls, problem: StreamProblem, width: int) -> _Sums:
        return cls(DualSums.none(problem, width), np.zeros((width, width)))


@dataclass
class _Machine:
    """One machine: its θ, the next point to evaluate, and the best one so far."""

    centre: Array  # (width,)
    at: Array  # (width,), where the step begins
    kappa: float
    kappa_ahead: float  # of the multipliers' next step
    direction: Array | None = None  # Newton's step; None where the next pass looks at `at` itself
    phi_at: float = math.inf
    slope: float = 0.0  # of Φ along the direction
    multipliers: list[tuple[Array, float]] = field(default_factory=list)  # (θ_j, κ_j), which give λ
    gap_before: float = 1.0  # when the multipliers moved last
    is_done: bool = False
    primal: float = math.inf
    dual: float = 0.0
    theta: Array = field(default_factory=lambda: np.zeros(0))  # of the primal value
    steps: list[tuple[Array, float]] = field(default_factory=list)  # of the dual value
    theta_dual: Array = field(
        default_factory=lambda: np.zeros(0)
    )  # what β of the dual value gives; b of a free one not
    # Sums of the pass at hand
    loss: float = 0.0
    phi_shorter: Array = field(default_factory=lambda: np.zeros(len(SHORTER)))
    here: _Sums = field(init=False)
    ahead: _Sums | None = None

    @property
    def looks_at(self) -> Array:
        return self.at if self.direction is None else self.at + self.direction

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)


class BlockNewton:
    def __init__(self, problem: StreamProblem) -> None:
        self.problem = problem
        self.n_passes = 0
        self.width = problem.rows.d + problem.has_intercept
        self.rho = np.ones(self.width)  # (width,), 0 for what is not penalised
        if problem.has_intercept:
            self.rho[-1] = 0.0 if problem.is_free else 1 / problem.intercept**2
        self.is_squared = is_squared(problem.loss)
        self.room = np.ones((0, self.width))  # for x̃ of a block, used again and again
        self.machines = [self._begin(number) for number in range(problem.n_machines)]

    def _begin(self, number: int) -> _Machine:
        problem = self.problem
        centre = np.zeros(self.width) if problem.centre is None else problem.centre[number][: self.width].copy()
        # At first every row is free: half of what would take a row of f = 0 to its bound.
        kappa = KAPPA_OF_SQUARES if self.is_squared else 0.5 / problem.spread[number]
        primal = float(problem.primal_at_centre[number])
        return _Machine(
            centre, centre, kappa, SHARPER * kappa, primal=primal, theta=centre, theta_dual=centre, is_done=primal <= 0
        )

    def gap(self) -> float:
        return max((machine.gap for machine in self.machines), default=0.0)

    def work(self) -> Iterator[None]:
        while self.n_passes < self.problem.max_passes:
            live = [number for number, machine in enumerate(self.machines) if not machine.is_done]
            if not live:
                return
            yield from self._pass(live)
            self.n_passes += 1
            for number in live:
                self._judge(self.machines[number])
            yield

    def solutions(self, status: Status | None) -> tuple[StreamSolution, ...]:
        return tuple(self._solution(machine, status or Status.MAX_ITER) for machine in self.machines)

    def _solution(self, machine: _Machine, status: Status) -> StreamSolution:
        d = self.problem.rows.d
        if machine.gap <= self.problem.tol:
            status = Status.CONVERGED
        elif not math.isfinite(machine.phi_at) and machine.direction is None and self.n_passes:
            status = Status.NONFINITE
        elif machine.is_done:
            status = Status.STALLED
        steps = np.zeros((len(machine.steps), d + 2))
        for row, (theta, kappa) in zip(steps, machine.steps, strict=True):
            row[: self.width], row[-1] = theta, kappa
        b, b_dual = (machine.theta[-1], machine.theta_dual[-1]) if self.problem.has_intercept else (0.0, 0.0)
        return StreamSolution(
            machine.theta[:d].copy(),
            float(b),
            steps,
            machine.primal,
            machine.dual,
            self.n_passes,
            status,
            "Newton's method over passes",
            machine.theta_dual[:d].copy(),
            float(b_dual),
        )

    # One pass over the rows

    def _pass(self, live: list[int]) -> Iterator[None]:
        for number in live:
            machine = self.machines[number]
            machine.loss = 0.0
            machine.phi_shorter = np.zeros(len(SHORTER))
            machine.here = _Sums.none(self.problem, self.width)
            machine.ahead = None if self.is_squared else _Sums.none(self.problem, self.width)
        columns, starts = self._columns(live)
        for block in self.problem.rows.blocks():
            m, d = block.X.shape
            cells = block.X.nnz // max(1, m) if sp.issparse(block.X) else d
            step = max(1, BLOCK_CELLS // max(1, cells, columns.shape[1]))
            for first in range(0, m, step):
                rows = slice(first, min(m, first + step))
                points = self._points(block.X[rows])
                values = np.asarray(points @ columns)
                for number, start, stop in zip(live, starts, starts[1:], strict=False):
                    self._add(number, points, values[:, start:stop], block, rows)
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

    def _columns(self, live: list[int]) -> tuple[Array, list[int]]:
        """Return the θ whose f a pass needs, as columns: of each machine the centre, the start of the step, the
        step and the multipliers."""
        parts, starts = [], [0]
        for number in live:
            machine = self.machines[number]
            step = np.zeros(self.width) if machine.direction is None else machine.direction
            own = [machine.centre, machine.at, step, *(theta for theta, _ in machine.multipliers)]
            parts += own
            starts.append(starts[-1] + len(own))
        return np.array(parts).T, starts

    def _add(self, number: int, points: Matrix, values: Array, block: Block, rows: slice) -> None:
        problem, machine = self.problem, self.machines[number]
        loss, epsilon = problem.loss, problem.epsilon
        z, C = block.target[number, rows], block.cost[number, rows]
        f_centre, f_at, f_step = values[:, 0], values[:, 1], values[:, 2]
        kappas = np.array([kappa for _, kappa in machine.multipliers])
        before = 0.0 if self.is_squared else after_steps(loss, z, values[:, 3:], C, epsilon, kappas)
        if machine.direction is not None:
            for place, share in enumerate(SHORTER):
                f = f_at + share * f_step
                beta, _ = proximal_step(loss, z, f, C, epsilon, before, machine.kappa)
                machine.phi_shorter[place] += smoothed_loss(z, f, C, epsilon, beta, before, machine.kappa).sum()
        f = f_at + f_step
        machine.loss += float(C @ losses(loss, z, f, epsilon))
        beta = self._add_sums(machine.here, points, z, f, f_centre, C, before, machine.kappa)
        if machine.ahead is not None:
            self._add_sums(machine.ahead, points, z, f, f_centre, C, beta, machine.kappa_ahead)

    def _add_sums(
        self,
        sums: _Sums,
        points: Matrix,
        z: Array,
        f: Array,
        f_centre: Array,
        C: Array,
        before: Array | float,
        kappa: float,
    ) -> Array:
        problem = self.problem
        beta, is_free = proximal_step(problem.loss, z, f, C, problem.epsilon, before, kappa)
        sums.phi += float(smoothed_loss(z, f, C, problem.epsilon, beta, before, kappa).sum())
        sums.dual.add(problem, points, z - f_centre, C, beta)
        free = np.flatnonzero(is_free)
        if len(free):
            root = np.sqrt(kappa * C[free])
            if sp.issparse(points):
                weighted = sp.diags(root) @ points[free]
                sums.hessian += (weighted.T @ weighted).toarray()
            else:
                weighted = points[free]
                weighted *= root[:, None]
                sums.hessian += weighted.T @ weighted
        return beta

    # After a pass

    def _judge(self, machine: _Machine) -> None:
        """Take note of the values at the point looked at, and choose the next."""
        theta, here = machine.looks_at, machine.here
        moved = theta - machine.centre
        penalty = 0.5 * float(self.rho @ moved**2)
        primal, phi = penalty + machine.loss, penalty + here.phi
        if not math.isfinite(primal) or not math.isfinite(phi):
            machine.is_done, machine.phi_at, machine.direction = True, math.inf, None
            return
        dual, inner, theta_dual = self._dual(here.dual, penalty, moved, machine.centre)
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
            machine.is_done = True
            return
        if machine.direction is not None and self._went_too_far(machine, phi):
            return
        sums = here
        if machine.ahead is not None and inner <= INNER_SHARE * max(primal - dual, 0.0):
            machine.multipliers = [*machine.multipliers, (theta, machine.kappa)]
            machine.kappa, gap = machine.kappa_ahead, relative_gap(primal, dual)
            machine.kappa_ahead = machine.kappa * (1.0 if gap <= FAST * machine.gap_before else SHARPER)
            machine.gap_before = gap
            sums, phi = machine.ahead, penalty + machine.ahead.phi
        gradient = self.rho * moved - sums.dual.v.sum(axis=0)
        machine.at, machine.phi_at = theta, phi
        machine.direction = newton_step(sums.hessian, self.rho, gradient)
        machine.slope = float(gradient @ machine.direction)
        if not machine.slope < 0:  # nothing is left to gain in float64
            machine.is_done = self.is_squared or not machine.multipliers or sums is here
            machine.direction = None

    def _went_too_far(self, machine: _Machine, phi: float) -> bool:
        """Return whether a shorter step is much better than the whole one: then the next pass looks there."""
        assert machine.direction is not None
        shares = np.array([1.0, *SHORTER])
        shorter = np.array(
            [
                0.5 * float(self.rho @ (machine.at + share * machine.direction - machine.centre) ** 2)
                for share in SHORTER
            ]
        )
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

    def _dual(self, sums: DualSums, penalty: float, moved: Array, centre: Array) -> tuple[float, float, Array]:
        """Return D of β made feasible, the part of P − D that Newton closes (0 where ∇Φ is), and the θ of β."""
        share = np.ones(len(sums.v))
        if self.problem.is_free:
            share = np.array(balancing_shares(sums.v[0, -1], -sums.v[1, -1]))
        v = share @ sums.v
        drawn = np.divide(v, self.rho, out=np.zeros_like(v), where=self.rho > 0)
        dual = float(share @ sums.linear - share**2 @ sums.square - 0.5 * (v @ drawn))
        along = float(sums.linear.sum() - sums.square.sum() - sums.v.sum(axis=0) @ moved)
        return dual, penalty + along - dual, centre + drawn


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
