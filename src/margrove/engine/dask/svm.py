"""Kernel machines by block SMO with the kernel on the workers.

This process holds α, and v of every variable (`margrove.svm.problem`); each worker holds some of the rows. A round:

1. choose a working set for every machine that is at work: the variables that violate most, from both sides, and half
   of the last set;
2. solve the problem over the set exactly, by the native engine, with the rest of α held;
3. send Δβ = y Δα with the rows that changed; every worker returns Σ Δβ_s K(x_i, x_s) for its rows, and so v is known.

A machine has converged when its violation over *all* variables is ≤ tol: no row is left out and nothing approximated.
The workers keep nothing but their rows, so a worker that dies costs its part of a round. Sums are in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.dask_partitions import DaskPartitions, Key, connected, partitions_of
from margrove.data.partitions import Part
from margrove.engine.native import Native
from margrove.engine.registry import register
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.svm.kernels import Kernel, Matrix
from margrove.svm.kkt import sides, violation
from margrove.svm.problem import HULLS_MEET, Dual, DualProblem, DualSolution

WORKING_SET = 1024  # variables of a machine that are solved for together, at most
MOST_CHANGED = 4096  # rows whose kernel is computed in a round: machines take turns
INNER = 0.1  # of the violation: how far the problem over a working set is solved
MOST_STALLED = 20  # rounds without progress after which a machine has stalled

Array = NDArray[np.float64]
_PRECOMPUTED = Kernel("precomputed")


@dataclass
class _Machine:
    """One machine at work."""

    number: int
    dual: Dual
    alpha: Array
    v: Array
    last: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # the last working set
    steps: int = 0
    rounds_stalled: int = 0
    status: Status | None = None  # None while it is at work

    @property
    def objective(self) -> float:
        """½ αᵀQα + pᵀα."""
        return 0.5 * float(self.alpha @ (self.dual.p - self.dual.y * self.v))

    def violation(self) -> float:
        """Return the violation over all variables."""
        return violation(self.v, *self.sides(), self.dual.y if self.dual.by_sign else None)

    def sides(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which α can grow, and which can fall, in the direction of y."""
        return sides(self.dual.y, self.alpha, self.dual.upper)


class BlockSMO:
    """The machines of a problem, solved in the same rounds."""

    def __init__(self, problem: DualProblem, parts: DaskPartitions) -> None:
        self.problem, self.tasks = problem, parts.tasks
        self.machines = [
            _Machine(k, dual, dual.alpha.copy(), -dual.y * dual.p) for k, dual in enumerate(problem.machines)
        ]
        has_hulls = any(dual.hulls for dual in problem.machines)
        self.largest_diagonal = float(problem.kernel.diagonal(problem.X).max()) if has_hulls else 0.0
        self.n_rounds = 0
        points = [np.unique(dual.point) for dual in problem.machines]  # ascending, as their sums come back
        self.place = [np.searchsorted(own, dual.point) for own, dual in zip(points, problem.machines, strict=True)]
        bounds = parts.bounds
        self.shards: list[Key] = []
        for key, (first, stop) in zip(parts.keys, bounds, strict=True):
            own = [_within(each, first, stop) for each in points]
            self.shards.append(self.tasks.submit(key.name, _shard, key, own))

    def work(self) -> Iterator[None]:
        """Run rounds until every machine has ended; yield while the workers are at work."""
        changed = [(machine, np.flatnonzero(machine.alpha)) for machine in self.machines if machine.alpha.any()]
        yield from self._add([(machine, own, machine.alpha[own]) for machine, own in changed])
        turn = 0
        while True:
            self._judge()
            live = [machine for machine in self.machines if machine.status is None]
            if not live:
                return
            live = live[turn % len(live) :] + live[: turn % len(live)]
            taken: list[_Machine] = []
            room = MOST_CHANGED
            for machine in live:
                size = min(WORKING_SET, len(machine.alpha))
                if taken and size > room:
                    break
                taken.append(machine)
                room -= size
            turn += len(taken)
            moves = []
            for machine in taken:
                chosen, moved, steps = self._solve_over_set(machine)
                moves.append((machine, chosen, moved - machine.alpha[chosen], moved, steps))
                yield
            yield from self._add([(machine, chosen, change) for machine, chosen, change, _, _ in moves])
            for machine, chosen, _, moved, steps in moves:  # v is that of the new α: both change at once
                machine.alpha[chosen] = moved
                machine.steps += steps
            self.n_rounds += 1

    def _judge(self) -> None:
        for machine in self.machines:
            if machine.status is not None:
                continue
            if not np.isfinite(machine.v).all():
                machine.status = Status.NONFINITE
            elif machine.violation() <= self.problem.tol * self._unit(machine) or self._meets(machine):
                machine.status = Status.CONVERGED
            elif machine.steps >= self.problem.step_limit:
                machine.status = Status.MAX_ITER
            elif machine.rounds_stalled >= MOST_STALLED:
                machine.status = Status.STALLED

    def _unit(self, machine: _Machine) -> float:
        """Return the scale of the violation; of two hulls, 1/s of `Dual.hulls`."""
        return max(machine.objective, HULLS_MEET * self.largest_diagonal / 2) if machine.dual.hulls else 1.0

    def _meets(self, machine: _Machine) -> bool:
        return machine.dual.hulls and 2 * machine.objective <= HULLS_MEET * self.largest_diagonal

    def _solve_over_set(self, machine: _Machine) -> tuple[NDArray[np.intp], Array, int]:
        """Return a working set, its α for the rest of α held, and the pair steps that it took."""
        dual, chosen = machine.dual, self._working_set(machine)
        machine.last = chosen
        y, alpha, points = dual.y[chosen], machine.alpha[chosen], self.problem.X[dual.point[chosen]]
        K = self.problem.kernel.matrix(points, points)
        beta = y * alpha
        # Of the problem over the set: v is the same at the α that it begins with.
        p = -y * (machine.v[chosen] + K @ beta)
        goal = self.problem.tol * self._unit(machine)
        if len(chosen) < len(machine.alpha):
            goal = max(goal, INNER * machine.violation())
        part = Dual(y, p, dual.upper[chosen], alpha, np.arange(len(chosen)), by_sign=dual.by_sign)
        left = self.problem.step_limit - machine.steps
        asked = DualProblem(K, _PRECOMPUTED, (part,), tol=goal / 2, max_iter=max(1, left), precision="double")
        (found,) = Native().solve(asked, Effort(n_jobs=1, on_interrupt="raise"))
        progress = abs(found.alpha - alpha).max(initial=0)
        machine.rounds_stalled = 0 if progress > 0 else machine.rounds_stalled + 1
        return chosen, found.alpha, max(1, found.n_iter)

    def _working_set(self, machine: _Machine) -> NDArray[np.intp]:
        m = len(machine.alpha)
        if m <= WORKING_SET:
            return np.arange(m)
        up, low = machine.sides()
        parts = [machine.dual.y > 0, machine.dual.y < 0] if machine.dual.by_sign else [np.ones(m, np.bool_)]
        kept = machine.last[-WORKING_SET // 2 :] if machine.rounds_stalled == 0 else machine.last[:0]
        each = (WORKING_SET - len(kept)) // (2 * len(parts))
        chosen: list[NDArray[np.intp]] = []
        is_new = np.ones(m, np.bool_)
        is_new[kept] = False
        # The pair that violates most is always in the set, be it new or not.
        for part in parts:
            up_keys, low_keys = np.where(up & part, -machine.v, np.inf), np.where(low & part, machine.v, np.inf)
            chosen += [_first(up_keys, 1), _first(low_keys, 1)]
            for keys in (up_keys, low_keys):
                is_new[np.concatenate(chosen)] = False
                chosen.append(_first(np.where(is_new, keys, np.inf), each))
        found = np.concatenate([*chosen, kept])
        _, first = np.unique(found, return_index=True)
        return found[np.sort(first)][::-1]  # those of today at the end, which the next set keeps

    def _add(self, changes: Sequence[tuple[_Machine, NDArray[np.intp], Array]]) -> Iterator[None]:
        """Bring v up to date with changes of α."""
        asked: list[tuple[int, Matrix, Array]] = []
        for machine, chosen, change in changes:
            own = np.flatnonzero(change)
            for first in range(0, len(own), MOST_CHANGED):
                some = own[first : first + MOST_CHANGED]
                variables = chosen[some]
                beta = machine.dual.y[variables] * change[some]
                asked.append((machine.number, self.problem.X[machine.dual.point[variables]], beta))
        # In groups, so that no message is large.
        groups: list[list[tuple[int, Matrix, Array]]] = []
        for each in asked:
            if groups and sum(len(beta) for _, _, beta in groups[-1]) + len(each[2]) <= MOST_CHANGED:
                groups[-1].append(each)
            else:
                groups.append([each])
        moved = [np.zeros(int(place.max(initial=-1)) + 1) for place in self.place]
        for group in groups:
            rows = self.tasks.submit("rows of the working sets", _given, group)
            keys = [self.tasks.submit(key.name, _sums, key, rows, self.problem.kernel) for key in self.shards]
            sums: list[Any] = []
            for found in self.tasks.results(keys):
                if found is None:
                    yield
                else:
                    sums = found
            for place, (number, _, _) in enumerate(group):
                moved[number] += np.concatenate([of_shard[place] for of_shard in sums])
        for number in {machine.number for machine, _, _ in changes}:
            self.machines[number].v = self.machines[number].v - moved[number][self.place[number]]

    def worst(self) -> float:
        """Return the largest violation of the machines at work."""
        return max((machine.violation() for machine in self.machines if machine.status is None), default=0.0)

    def solutions(self, reason: Status) -> tuple[DualSolution, ...]:
        """Return every machine as it is; ``reason`` is why those at work have ended."""
        return tuple(
            DualSolution(
                machine.alpha,
                machine.v,
                machine.violation() / self._unit(machine),
                machine.objective,
                machine.steps,
                machine.status or reason,
                solver="smo",
            )
            for machine in self.machines
        )


@register("dask", DualProblem)
def _(engine: Any, problem: DualProblem, effort: Effort) -> tuple[DualSolution, ...]:
    with connected(engine.address) as client:
        smo = BlockSMO(problem, partitions_of(client, problem.X, None, None))
        work = smo.work()

        def advance(seconds: float) -> Status | None:
            return Status.CONVERGED if next(work, _ENDED) is _ENDED else None

        def look_around() -> None:
            if effort.look_around is not None:
                effort.look_around(lambda: [machine.alpha.copy() for machine in smo.machines])
            report(Progress("svm", smo.n_rounds, None, smo.worst(), "violation", problem.tol))

        reason = run_in_slices(advance, effort, look_around)
        return smo.solutions(reason)


_ENDED = object()


def _first(keys: Array, size: int) -> NDArray[np.intp]:
    """Return where the smallest keys are, at most so many, without infinite ones; the first of equals."""
    if size < len(keys):
        bar = np.partition(keys, size - 1)[size - 1]
        places = np.flatnonzero(keys <= bar)
        order = places[np.argsort(keys[places], kind="stable")][:size]
    else:
        order = np.argsort(keys, kind="stable")
    return order[np.isfinite(keys[order])]


def _within(points: NDArray[np.int64], first: int, stop: int) -> NDArray[np.int64] | None:
    """Return which rows of a partition these points are; None for all of them."""
    own = points[np.searchsorted(points, first) : np.searchsorted(points, stop)] - first
    return None if len(own) == stop - first else own


# On the workers


@dataclass(frozen=True)
class _Shard:
    X: Matrix
    rows: list[NDArray[np.int64] | None]  # of each machine; None: all


def _shard(part: Part, rows: list[NDArray[np.int64] | None]) -> _Shard:
    return _Shard(part.X, rows)


def _given(asked: Any) -> Any:
    return asked


def _sums(shard: _Shard, asked: Sequence[tuple[int, Matrix, Array]], kernel: Kernel) -> list[Array]:
    """Return Σ Δβ_s K(x_i, x_s) of each machine for its rows of one partition."""
    found: list[Array] = []
    for number, support, beta in asked:
        own = shard.rows[number]
        points = shard.X if own is None else shard.X[own]
        sums = np.empty((0, 1))
        if points.shape[0]:
            sums = Native().kernel_sums(kernel, points, support, beta[None], Effort(n_jobs=1))
        found.append(sums[:, 0])
    return found
