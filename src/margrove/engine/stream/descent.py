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
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.data.rows import Matrix
from margrove.engine.stream.passes import Array, DualSums, Passes, StreamMachine
from margrove.linear_svm.problem import balanced, bounds_of, implied_beta, is_of_signs, losses
from margrove.linear_svm.stream_problem import RowBlock, StreamProblem
from margrove.status import Status

ROWS = 512  # of a block: K has 2 MB, and 30 visits cost less than to read the rows
KEPT_BETA = 1 << 23  # of all machines together: 64 MB
SWEEPS = 3  # over a block's rows before the next block comes; more than a few serve this block and no other


@dataclass
class DescentMachine(StreamMachine):
    """A machine whose β lies in the file."""

    sums: DualSums  # of β in the file
    b0: float  # about which b may move in a pass
    beta: Array | None  # (n,), of the dual value, where it is kept
    first: Array = field(init=False)  # (width,), θ where the pass at hand began
    implied: DualSums | None = None  # for a squared loss, of the β that w implies there: w alone must prove its gap


class BlockDescent(Passes[DescentMachine]):
    method = "dual descent over passes"

    def __init__(self, problem: StreamProblem) -> None:
        self.eta = 0.0  # how far b may go in a pass; settled by the first block
        self.rng = np.random.default_rng(0)
        super().__init__(problem)

    def _begin(self, number: int, centre: Array, primal: float) -> DescentMachine:
        n = self.problem.rows.n
        keeps_beta = not self.is_squared and self.problem.n_machines * n <= KEPT_BETA
        beta = np.zeros(n) if keeps_beta else None
        return DescentMachine(number, centre, primal, DualSums.none(self.problem), float(centre[-1]), beta)

    def work(self) -> Iterator[None]:
        with tempfile.TemporaryFile(prefix="margrove-beta-") as file:
            self.beta = np.memmap(file, np.float64, "w+", shape=(self.problem.n_machines, self.problem.rows.n))
            yield from super().work()

    def _proof(self, machine: DescentMachine) -> dict[str, Any]:
        beta = machine.beta
        return {"steps": None, "beta": balanced(beta) if beta is not None and self.problem.is_free else beta}

    def _pass(self, live: list[DescentMachine]) -> Iterator[None]:
        for machine in live:
            machine.first = self._theta(machine)
            machine.loss = 0.0
            machine.implied = DualSums.none(self.problem) if self.is_squared else None
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
                for machine in live:
                    beta = self.beta[machine.number, own].copy()
                    self.beta[machine.number, own] = self._visit(machine, X, K, block, rows, beta)
                row = own.stop
                yield
        if self.eta == 0:  # no row has any cell but 0, so the intercept is all there is
            self.eta = 1.0

    def _theta(self, machine: DescentMachine) -> Array:
        """Return the θ of β in the file, its b between that of the last pass and the best."""
        v, tau = machine.sums.v.sum(axis=0), self._tau()
        theta: Array = machine.centre + v
        if self.problem.has_intercept:
            moved = machine.b0 - machine.centre[-1]
            theta[-1] = machine.b0 if tau == 0 else machine.centre[-1] + tau * (moved / self.eta + v[-1])
        return theta

    def _tau(self) -> float:
        s = self.problem.intercept
        return 0.0 if s == 0 or self.eta == 0 else 1 / (1 / s**2 + 1 / self.eta)

    def _visit(self, machine: DescentMachine, X: Matrix, K: Array, block: RowBlock, rows: slice, beta: Array) -> Array:
        """Make D larger over the rows of one block; the new β."""
        problem = self.problem
        z, C = block.target[machine.number, rows], block.cost[machine.number, rows]

        def values(theta: Array) -> Array:
            return np.asarray(X @ theta[: X.shape[1]] + theta[X.shape[1] :].sum())

        gain = z - values(machine.centre)
        f_first = values(machine.first)
        machine.loss += float(C @ losses(problem.loss, z, f_first, problem.epsilon))
        if machine.implied is not None:
            implied = implied_beta(problem.loss, z, f_first, C, problem.epsilon)
            machine.implied.add(problem, X, gain, C, implied)
        f = values(self._theta(machine))
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

    def _judge(self, machine: DescentMachine) -> None:
        problem = self.problem
        primal = self._penalty(machine.first - machine.centre) + machine.loss
        sums = machine.implied if machine.implied is not None else machine.sums
        dual, drawn = sums.dual(problem, self.rho)
        if not self._is_finite(machine, primal, dual):
            return
        is_better = primal <= machine.primal
        if is_better:
            machine.primal, machine.theta = primal, machine.first
        if is_better if self.is_squared else dual > machine.dual:
            machine.dual, machine.theta_dual = dual, machine.centre + drawn
            if machine.beta is not None:
                machine.beta = np.array(self.beta[machine.number])
        if machine.gap <= problem.tol:
            machine.end = Status.CONVERGED
        if problem.has_intercept:
            machine.b0 = float(self._theta(machine)[-1])
