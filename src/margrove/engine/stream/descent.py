"""Linear SVMs over a stream of rows of very many columns: dual descent block by block (Yu et al., 2010).

β of all rows lies in a temporary file, 8 bytes for each row and machine, which is deleted when the solve ends. For a
loss that is not squared β of the dual value is kept in memory as well, up to `KEPT_BETA` numbers, because nothing else
can prove the gap later. A block of rows B is read, its rows' products K = X_B X_Bᵀ are formed, and D is made larger
over β_B alone, one β_i after the other (Hsieh et al., 2008), while f of the block's rows is kept up to date through K;
then w = c + Σ β x follows.

A pass also adds up the losses at the w that it began with, so that at its end P of that w and D of the last β are known
(of a squared loss: D of the β that this w implies, so that w alone proves its gap).
The intercept is the weight of a constant column, whose norm √n would rule all others: every block would set it to its
own liking. So it follows slowly: b is the least of (b/s)²/2 − b Σβ + (b − b₀)²/(2η), that is b = τ (b₀/η + Σβ) with
1/τ = 1/s² + 1/η, and b₀ moves there once a pass. For a free intercept (1/s = 0) it is the method of multipliers.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.engine.stream.sums import DualSums
from margrove.linear_svm.problem import (
    balanced,
    balancing_shares,
    bounds_of,
    implied_beta,
    is_of_signs,
    is_squared,
    losses,
    relative_gap,
)
from margrove.linear_svm.stream_problem import Block, StreamProblem, StreamSolution
from margrove.status import Status

Array = NDArray[np.float64]

ROWS = 512  # of a block: K has 2 MB, and 30 visits cost less than to read the rows
KEPT_BETA = 1 << 23  # of all machines together: 64 MB
SWEEPS = 3  # over a block's rows before the next block comes; more than a few serve this block and no other


@dataclass
class _Machine:
    centre: Array  # (d,)
    centre_b: float
    sums: DualSums  # of β in the file
    b0: float = 0.0
    is_done: bool = False
    primal: float = math.inf
    dual: float = 0.0
    w: Array = field(default_factory=lambda: np.zeros(0))  # of the primal value
    b: float = 0.0
    w_dual: Array = field(default_factory=lambda: np.zeros(0))  # what β of the dual value gives; b of a free one not
    b_dual: float = 0.0
    # Of the pass at hand: where it began, and the losses there
    w_first: Array = field(default_factory=lambda: np.zeros(0))
    b_first: float = 0.0
    loss: float = 0.0
    beta: Array | None = None  # (n,), of the dual value, where it is kept
    implied: DualSums | None = None  # for a squared loss, of the β that w implies there: w alone must prove its gap

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)


class BlockDescent:
    """Solve all machines, in the same passes."""

    def __init__(self, problem: StreamProblem) -> None:
        self.problem = problem
        self.n_passes = 0
        self.is_squared = is_squared(problem.loss)
        self.keeps_beta = not self.is_squared and problem.n_machines * problem.rows.n <= KEPT_BETA
        self.eta = 0.0  # how far b may go in a pass; settled by the first block
        self.machines = [self._begin(number) for number in range(problem.n_machines)]
        self.rng = np.random.default_rng(0)

    def _begin(self, number: int) -> _Machine:
        problem, d = self.problem, self.problem.rows.d
        centre = np.zeros(d + 1) if problem.centre is None else problem.centre[number]
        primal = float(problem.primal_at_centre[number])
        return _Machine(
            centre[:d].copy(),
            float(centre[-1]),
            DualSums.none(problem, d),
            b0=float(centre[-1]),
            is_done=primal <= 0,
            primal=primal,
            w=centre[:d].copy(),
            b=float(centre[-1]),
            w_dual=centre[:d].copy(),
            b_dual=float(centre[-1]),
            beta=np.zeros(problem.rows.n) if self.keeps_beta else None,
        )

    def gap(self) -> float:
        return max((machine.gap for machine in self.machines), default=0.0)

    def work(self) -> Iterator[None]:
        shape = (self.problem.n_machines, self.problem.rows.n)
        with tempfile.TemporaryFile(prefix="margrove-beta-") as file:
            beta = np.memmap(file, np.float64, "w+", shape=shape)
            while self.n_passes < self.problem.max_passes:
                live = [number for number, machine in enumerate(self.machines) if not machine.is_done]
                if not live:
                    return
                yield from self._pass(live, beta)
                self.n_passes += 1
                for number in live:
                    self._judge(self.machines[number], beta[number])
                yield

    def solutions(self, status: Status | None) -> tuple[StreamSolution, ...]:
        found = []
        for machine in self.machines:
            is_converged = machine.gap <= self.problem.tol
            ended = Status.CONVERGED if is_converged else status or Status.MAX_ITER
            if not is_converged and machine.is_done:
                ended = Status.NONFINITE
            found.append(
                StreamSolution(
                    machine.w,
                    machine.b,
                    None,
                    machine.primal,
                    machine.dual,
                    self.n_passes,
                    ended,
                    "dual descent over passes",
                    machine.w_dual,
                    machine.b_dual,
                    balanced(machine.beta) if machine.beta is not None and self.problem.is_free else machine.beta,
                )
            )
        return tuple(found)

    def _pass(self, live: list[int], beta: Array) -> Iterator[None]:
        for number in live:
            machine = self.machines[number]
            machine.w_first, machine.b_first = self._weights(machine)
            machine.loss = 0.0
            machine.implied = DualSums.none(self.problem, self.problem.rows.d) if self.is_squared else None
        row = 0
        for block in self.problem.rows.blocks():
            for first in range(0, block.X.shape[0], ROWS):
                rows = slice(first, min(first + ROWS, block.X.shape[0]))
                X = block.X[rows].astype(np.float64)
                products = X @ X.T
                K = products.toarray() if sp.issparse(products) else np.asarray(products)
                if self.eta == 0 and K.any():
                    self.eta = max(float(K.mean()), float(np.diagonal(K).mean()) / len(K))  # as the mean row does
                own = slice(row, row + X.shape[0])
                for number in live:
                    beta[number, own] = self._visit(number, X, K, block, rows, beta[number, own].copy())
                row = own.stop
                yield
        if self.eta == 0:  # no row has any cell but 0, so the intercept is all there is
            self.eta = 1.0

    def _weights(self, machine: _Machine) -> tuple[Array, float]:
        sums = machine.sums
        tau = self._tau()
        u = float(sums.total.sum())
        b = machine.b0 if tau == 0 else machine.centre_b + tau * ((machine.b0 - machine.centre_b) / self.eta + u)
        return machine.centre + sums.v.sum(axis=0), b

    def _tau(self) -> float:
        s = self.problem.intercept
        return 0.0 if s == 0 or self.eta == 0 else 1 / (1 / s**2 + 1 / self.eta)

    def _visit(self, number: int, X: Matrix, K: Array, block: Block, rows: slice, beta: Array) -> Array:
        """Make D larger over the rows of one block; the new β."""
        problem, machine = self.problem, self.machines[number]
        z, C = block.target[number, rows], block.cost[number, rows]
        gain = z - np.asarray(X @ machine.centre + machine.centre_b)
        f_first = np.asarray(X @ machine.w_first + machine.b_first)
        machine.loss += float(C @ losses(problem.loss, z, f_first, problem.epsilon))
        if machine.implied is not None:
            implied = implied_beta(problem.loss, z, f_first, C, problem.epsilon)
            machine.implied.add(problem, X, gain, C, implied)
        w, b = self._weights(machine)
        f = np.asarray(X @ w + b)
        machine.sums.add(problem, X, gain, C, beta, sign=-1.0)
        self._descend(z, C, f, K, beta)
        machine.sums.add(problem, X, gain, C, beta)
        return beta

    def _descend(self, z: Array, C: Array, f: Array, K: Array, beta: Array) -> None:
        """Set one β_i after the other to its best value: a soft threshold, cut to its bounds. f and β are changed."""
        problem = self.problem
        epsilon = 0.0 if is_of_signs(problem.loss) else problem.epsilon
        softness = np.divide(1.0, 2 * C, out=np.zeros_like(C), where=C > 0) if self.is_squared else np.zeros_like(C)
        extra = self._tau()
        curvature = np.diagonal(K) + extra + softness
        low, high = bounds_of(problem.loss, z, C)
        if problem.intercept == 0:
            # D is linear in β of a row of zeros, and nothing else depends on it: it goes to the bound uphill.
            flat = (C > 0) & (curvature == 0)
            slope = np.where(np.abs(z - f) > epsilon, z - f, 0.0)
            beta[flat] = np.where(slope > 0, high, np.where(slope < 0, low, 0.0))[flat]
        visited = np.flatnonzero((C > 0) & (curvature > 0))
        for _ in range(SWEEPS):
            moved = False
            for i in self.rng.permutation(visited):
                best = beta[i] + (z[i] - f[i] - softness[i] * beta[i]) / curvature[i]
                if epsilon:
                    best = math.copysign(max(abs(best) - epsilon / curvature[i], 0.0), best)
                best = min(max(best, low[i]), high[i])
                change = best - beta[i]
                if change != 0:
                    beta[i] = best
                    f += change * K[i]
                    f += change * extra
                    moved = True
            if not moved:
                return

    def _judge(self, machine: _Machine, beta: Array) -> None:
        problem = self.problem
        moved = machine.w_first - machine.centre
        penalty = 0.5 * float(moved @ moved)
        if problem.has_intercept and not problem.is_free:
            penalty += 0.5 * ((machine.b_first - machine.centre_b) / problem.intercept) ** 2
        primal = penalty + machine.loss
        sums = machine.implied if machine.implied is not None else machine.sums
        dual = self._dual(sums)
        if not (math.isfinite(primal) and math.isfinite(dual)):
            machine.is_done = True
            return
        is_better = primal <= machine.primal
        if is_better:
            machine.primal, machine.w, machine.b = primal, machine.w_first, machine.b_first
        if is_better if self.is_squared else dual > machine.dual:
            machine.dual, machine.w_dual = dual, machine.centre + sums.v.sum(axis=0)
            if not problem.is_free:
                machine.b_dual = machine.centre_b + problem.intercept**2 * float(sums.total.sum())
            if machine.beta is not None:
                machine.beta = np.array(beta)
        machine.is_done = machine.gap <= problem.tol
        machine.b0 = self._weights(machine)[1]

    def _dual(self, sums: DualSums) -> float:
        """Return D, with β scaled to Σ β = 0 for a free intercept."""
        share, u = np.ones(len(sums.total)), 0.0
        if self.problem.is_free:
            share = np.array(balancing_shares(sums.total[0], -sums.total[1]))
        else:
            u = self.problem.intercept * float(sums.total.sum())
        v = share @ sums.v
        return float(share @ sums.linear - share**2 @ sums.square - 0.5 * (v @ v) - 0.5 * u**2)
