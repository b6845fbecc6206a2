"""Passes over the rows of a stream, and what both methods, `newton` and `descent`, keep of them.

With x̃ = (x, 1), θ = (w, b), ρ = (1, …, 1, 1/s²) and a centre c, each machine minimises

    P(θ) = ½ Σ ρ_j (θ_j − c_j)² + Σ C_i ℓ(z_i, x̃_i·θ)       θ, x̃ and ρ have no last entry where there is no intercept
    D(β) = Σ (z_i β_i − ε|β_i| − β_i²/(4C_i) − β_i x̃_i·c) − ½ Σ v_j²/ρ_j,   v = Σ β_i x̃_i

(ε = 0 for signs, and β² only of a squared loss), and keeps the best values of both that a whole pass has found.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.linear_svm.problem import balancing_shares, is_squared, relative_gap
from margrove.linear_svm.stream_problem import StreamProblem, StreamSolution
from margrove.status import Status

Array = NDArray[np.float64]


@dataclass
class DualSums:
    """Sums of which D is made. Where the intercept is free there are two sides, β > 0 and β < 0: scaled each by a share
    of their own, they meet Σ β = 0."""

    v: Array  # (sides, width), Σ β x̃
    linear: Array  # (sides,), Σ z β − ε|β| − β f_centre
    square: Array  # (sides,), Σ β²/(4C), of a squared loss

    @classmethod
    def none(cls, problem: StreamProblem) -> DualSums:
        """Return the sums over no rows."""
        sides = 2 if problem.is_free else 1
        return cls(np.zeros((sides, problem.rows.d + problem.has_intercept)), np.zeros(sides), np.zeros(sides))

    def add(
        self, problem: StreamProblem, points: Matrix, gain: Array, C: Array, beta: Array, sign: float = 1.0
    ) -> None:
        """Add some rows, x or x̃, or subtract them (``sign`` −1); ``gain`` is z − f_centre."""
        columns = points.shape[1]
        for side, part in enumerate([np.maximum(beta, 0), np.minimum(beta, 0)] if problem.is_free else [beta]):
            if not part.any():
                continue
            self.v[side, :columns] += sign * (points.T @ part)
            self.v[side, columns:] += sign * part.sum()
            self.linear[side] += sign * float((gain * part - problem.epsilon * np.abs(part)).sum())
            if is_squared(problem.loss):
                squares = np.divide(part**2, 4 * C, out=np.zeros_like(part), where=C > 0)
                self.square[side] += sign * float(squares.sum())

    def add_sums(self, other: DualSums) -> None:
        """Add the sums over further rows."""
        self.v += other.v
        self.linear += other.linear
        self.square += other.square

    def dual(self, problem: StreamProblem, rho: Array) -> tuple[float, Array]:
        """Return D of β, scaled to Σ β = 0 for a free intercept, and the θ − c that it gives."""
        share = np.ones(len(self.v))
        if problem.is_free:
            share = np.array(balancing_shares(self.v[0, -1], -self.v[1, -1]))
        v = share @ self.v
        drawn = np.divide(v, rho, out=np.zeros_like(v), where=rho > 0)
        return float(share @ self.linear - share**2 @ self.square - 0.5 * (v @ drawn)), drawn


@dataclass
class StreamMachine:
    """One machine, with the best values so far."""

    number: int
    centre: Array  # (width,)
    primal: float
    dual: float = field(init=False, default=0.0)
    theta: Array = field(init=False)  # of the primal value
    theta_dual: Array = field(init=False)  # what β of the dual value gives; b of a free one not
    end: Status | None = field(init=False)  # None while it is at work
    loss: float = field(init=False, default=0.0)  # of the pass at hand

    def __post_init__(self) -> None:
        self.theta = self.theta_dual = self.centre
        self.end = Status.CONVERGED if self.primal <= 0 else None

    @property
    def gap(self) -> float:
        return relative_gap(self.primal, self.dual)


M = TypeVar("M", bound=StreamMachine)


class Passes(ABC, Generic[M]):
    """Solve all machines, in the same passes. Base class of the methods."""

    method: ClassVar[str]

    def __init__(self, problem: StreamProblem) -> None:
        self.problem = problem
        self.n_passes = 0
        self.is_squared = is_squared(problem.loss)
        width = problem.rows.d + problem.has_intercept
        self.rho = np.ones(width)  # 0 for what is not penalised
        if problem.has_intercept:
            self.rho[-1] = 0.0 if problem.is_free else 1 / problem.intercept**2
        centres = np.zeros((problem.n_machines, width)) if problem.centre is None else problem.centre[:, :width].copy()
        begun = enumerate(zip(centres, problem.primal_at_centre.tolist(), strict=True))
        self.machines = [self._begin(number, centre, primal) for number, (centre, primal) in begun]

    def gap(self) -> float:
        """Return the worst relative gap of all machines."""
        return max((machine.gap for machine in self.machines), default=0.0)

    def work(self) -> Iterator[None]:
        """Run passes until all machines have ended or max_passes is reached; yield between blocks."""
        while self.n_passes < self.problem.max_passes:
            live = [machine for machine in self.machines if machine.end is None]
            if not live:
                return
            yield from self._pass(live)
            self.n_passes += 1
            for machine in live:
                self._judge(machine)
            yield

    def solutions(self, status: Status | None) -> tuple[StreamSolution, ...]:
        """Return each machine as it is; ``status`` is why the solve was interrupted, None if it was not."""
        return tuple(self._solution(machine, machine.end or status or Status.MAX_ITER) for machine in self.machines)

    def _solution(self, machine: M, status: Status) -> StreamSolution:
        d = self.problem.rows.d
        return StreamSolution(
            w=machine.theta[:d].copy(),
            b=float(machine.theta[d:].sum()),
            primal=machine.primal,
            dual=machine.dual,
            n_iter=self.n_passes,
            status=status,
            solver=self.method,
            w_dual=machine.theta_dual[:d].copy(),
            b_dual=float(machine.theta_dual[d:].sum()),
            **self._proof(machine),
        )

    def _penalty(self, moved: Array) -> float:
        """Return the penalty of θ = c + ``moved``."""
        return 0.5 * float(self.rho @ moved**2)

    @abstractmethod
    def _begin(self, number: int, centre: Array, primal: float) -> M:
        """Return a machine before the first pass."""

    @abstractmethod
    def _pass(self, live: list[M]) -> Iterator[None]:
        """Go through all rows for some machines; yield between blocks."""

    @abstractmethod
    def _judge(self, machine: M) -> None:
        """Keep the values that a pass has found if they are better; end the machine, or prepare its next pass."""

    @abstractmethod
    def _proof(self, machine: M) -> dict[str, Any]:
        """Return the fields of the solution that give β of the dual value."""

    def _is_finite(self, machine: M, *values: float) -> bool:
        """Return whether the values of a pass are numbers; end the machine if not."""
        if not all(map(math.isfinite, values)):
            machine.end = Status.NONFINITE
        return machine.end is None
