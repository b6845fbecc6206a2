"""Kernel machines by block SMO with the kernel on the workers.

This process holds α, and v of every variable (`margrove.svm.problem`); each worker holds some of the rows. A round:

1. choose a working set for every machine that is at work: all with α > 0 and those that violate most, where they are
   few enough; otherwise those that violate most, from both sides, and half of the last set. At first it is a sample;
2. solve the problem over the set exactly, by the native engine, with the rest of α held;
3. send Δβ = y Δα with the rows that changed; every worker returns Σ Δβ_s K(x_i, x_s) for its rows, and so v is known.

A machine has converged when its violation over *all* variables is ≤ tol: no row is left out and nothing approximated.
The workers keep nothing but their rows, so a worker that dies costs its part of a round. Sums are in float64. Of very
many dense rows the values of a Gaussian kernel are in float32, and the workers keep them for later rounds: then v is
taken again in float64 before a machine ends, for the variables with α > 0 and for those that could violate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.dask_partitions import DaskPartitions, Key, connected, partitions_of, scattered
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
MOST_ACTIVE = 1 << 14  # … and where all with α > 0 are among them
FIRST_SHARE = 6  # of the variables: one of so many is in the first set
MOST_CHANGED = 4096  # rows whose kernel is computed in a round: machines take turns
INNER = 0.1  # of the violation: how far the problem over a working set is solved
INNER_ACTIVE = 0.01  # … and where it has all with α > 0: few rounds are left then
SINGLE_ROWS = 1 << 14  # from which on kernel values are in float32 …
SINGLE_CELLS = 3 << 28  # kept on all workers together, by the table alone, as what is kept decides bits: 3 GB …
SINGLE_NORM = 256.0  # … unless 2 γ ‖x‖² is larger, whose rounding they have
TILE_ROWS = 128  # whose values with 4,096 others fit into the cache of a core
MARGIN = 10.0  # times the largest error of v that was seen: who is that near is taken again in float64
MOST_STALLED = 20  # rounds without progress after which a machine has stalled

Array = NDArray[np.float64]
_PRECOMPUTED = Kernel("precomputed")


@dataclass(frozen=True)
class _Kept:
    """Kernel values of some points with all rows, which the workers keep."""

    points: NDArray[np.int64]
    keys: list[Key]  # of each shard, (rows, points)


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
    least: float = np.inf  # violation, at which the rounds below began
    rounds_since: int = 0  # without half of it
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


_Change: TypeAlias = tuple[_Machine, NDArray[np.intp], Array]  # of some of its variables


class BlockSMO:
    """The machines of a problem, solved in the same rounds."""

    def __init__(self, problem: DualProblem, parts: DaskPartitions, n_jobs: int | None = 1) -> None:
        self.problem, self.tasks, self.n_jobs = problem, parts.tasks, n_jobs
        self.machines = [
            _Machine(k, dual, dual.alpha.copy(), -dual.y * dual.p) for k, dual in enumerate(problem.machines)
        ]
        has_hulls = any(dual.hulls for dual in problem.machines)
        self.largest_diagonal = float(problem.kernel.diagonal(problem.X).max()) if has_hulls else 0.0
        self.is_single, self.n_refused = _may_be_single(problem), 0
        self.kept: list[_Kept] = []
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
        yield from self._add(self._nonzero(), is_afresh=True)
        turn = 0
        while True:
            self._judge()
            is_slow = any(machine.rounds_since > MOST_STALLED for machine in self.machines)
            if self.is_single and (self.n_refused > 1 or is_slow):  # float32 does not do: v anew from all of α
                self.is_single, self.kept = False, []
                yield from self._add(self._nonzero(), is_afresh=True)
                continue
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
                worst = machine.violation()
                machine.rounds_since += 1
                if worst < machine.least / 2:
                    machine.least, machine.rounds_since = worst, 0
            self.n_rounds += 1

    def _nonzero(self) -> list[_Change]:
        found = [(machine, np.flatnonzero(machine.alpha)) for machine in self.machines if machine.alpha.any()]
        return [(machine, own, machine.alpha[own]) for machine, own in found]

    def _judge(self) -> None:
        for machine in self.machines:
            if machine.status is not None:
                continue
            if not np.isfinite(machine.v).all():
                machine.status = Status.NONFINITE
            elif self._has_converged(machine) and (not self.is_single or self._is_confirmed(machine)):
                machine.status = Status.CONVERGED
            elif machine.steps >= self.problem.step_limit:
                machine.status = Status.MAX_ITER
            elif machine.rounds_stalled >= MOST_STALLED:
                machine.status = Status.STALLED

    def _has_converged(self, machine: _Machine) -> bool:
        return machine.violation() <= self.problem.tol * self._unit(machine) or self._meets(machine)

    def _is_confirmed(self, machine: _Machine) -> bool:
        """Take v again in float64 where it matters; return whether the machine has converged by this, too."""
        dual, X, own = machine.dual, self.problem.X, np.flatnonzero(machine.alpha)
        beta = (dual.y[own] * machine.alpha[own])[None]
        is_known = np.zeros(len(machine.alpha), np.bool_)
        margin, error = self.problem.tol, 0.0
        while True:
            wanted = np.flatnonzero(((machine.alpha > 0) | (_beyond(machine) > -margin)) & ~is_known)
            if not len(wanted):
                break
            points, effort = X[dual.point[wanted]], Effort(n_jobs=self.n_jobs)
            sums = Native().kernel_sums(self.problem.kernel, points, X[dual.point[own]], beta, effort)[:, 0]
            exact = -dual.y[wanted] * dual.p[wanted] - sums
            error = max(error, float(np.abs(exact - machine.v[wanted]).max()))
            machine.v[wanted], is_known[wanted] = exact, True
            margin = max(margin, MARGIN * error)
        is_confirmed = self._has_converged(machine)
        self.n_refused += not is_confirmed
        return is_confirmed

    def _unit(self, machine: _Machine) -> float:
        """Return the scale of the violation; of two hulls, 1/s of `Dual.hulls`."""
        return max(machine.objective, HULLS_MEET * self.largest_diagonal / 2) if machine.dual.hulls else 1.0

    def _meets(self, machine: _Machine) -> bool:
        return machine.dual.hulls and 2 * machine.objective <= HULLS_MEET * self.largest_diagonal

    def _solve_over_set(self, machine: _Machine) -> tuple[NDArray[np.intp], Array, int]:
        """Return a working set, its α for the rest of α held, and the pair steps that it took."""
        dual, problem, active = machine.dual, self.problem, self._active_set(machine)
        chosen = self._working_set(machine) if active is None else active
        machine.last = chosen
        y, alpha = dual.y[chosen], machine.alpha[chosen]
        goal = problem.tol * self._unit(machine)
        if len(chosen) < len(machine.alpha):
            goal = max(goal, (INNER if active is None else INNER_ACTIVE) * machine.violation())
        most = max(1, problem.step_limit - machine.steps)
        if active is None:
            points = problem.X[dual.point[chosen]]
            K = problem.kernel.matrix(points, points)
            # Of the problem over the set: v is the same at the α that it begins with.
            p = -y * (machine.v[chosen] + K @ (y * alpha))
            part = Dual(y, p, dual.upper[chosen], alpha, np.arange(len(chosen)), by_sign=dual.by_sign)
            asked = DualProblem(K, _PRECOMPUTED, (part,), tol=goal / 2, max_iter=most, precision="double")
        else:
            own, place = np.unique(dual.point[chosen], return_inverse=True)
            part = Dual(y, dual.p[chosen], dual.upper[chosen], alpha, place.astype(np.int64), by_sign=dual.by_sign)
            asked = replace(problem, rows=problem.X[own], machines=(part,), tol=goal / 2, max_iter=most)
        (found,) = Native().solve(asked, Effort(n_jobs=self.n_jobs, on_interrupt="raise"))
        progress = abs(found.alpha - alpha).max(initial=0)
        machine.rounds_stalled = 0 if progress > 0 else machine.rounds_stalled + 1
        return chosen, found.alpha, max(1, found.n_iter)

    def _active_set(self, machine: _Machine) -> NDArray[np.intp] | None:
        """Return all variables with α > 0 and the worst of the others, ascending; None where they are too many."""
        m, is_kept = len(machine.alpha), machine.alpha > 0
        n_kept = int(is_kept.sum())
        room = MOST_ACTIVE - n_kept
        if m <= WORKING_SET or room < WORKING_SET:
            return None
        if machine.steps == 0:
            size = min(room, max(WORKING_SET, m // FIRST_SHARE))
            is_kept[np.linspace(0, m - 1, size).astype(np.intp)] = True
            return np.flatnonzero(is_kept)
        beyond = _beyond(machine)
        beyond[is_kept] = -np.inf
        size = min(room, max(WORKING_SET, int((beyond > 0).sum())))
        is_kept[_first(-beyond, size)] = True
        return np.flatnonzero(is_kept)

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

    def _add(self, changes: Sequence[_Change], *, is_afresh: bool = False) -> Iterator[None]:
        """Bring v up to date with changes of α; ``is_afresh`` if these are all of α."""
        moved = [np.zeros(int(place.max(initial=-1)) + 1) for place in self.place]
        for numbers, keys in self._single_sums(changes) if self.is_single else self._sums(changes):
            sums: list[Any] = []
            for found in self.tasks.results(keys):
                if found is None:
                    yield
                else:
                    sums = found
            for place, number in enumerate(numbers):
                moved[number] += np.concatenate([of_shard[place] for of_shard in sums])
        for machine in {machine.number: machine for machine, _, _ in changes}.values():
            before = -machine.dual.y * machine.dual.p if is_afresh else machine.v
            machine.v = before - moved[machine.number][self.place[machine.number]]

    def _sums(self, changes: Sequence[_Change]) -> Iterator[tuple[list[int], list[Key]]]:
        """Yield the keys of sums over kernel values, of each shard, in groups, so that no message is large; and for
        which machines they are."""
        asked: list[tuple[int, Matrix, Array]] = []
        for machine, chosen, change in changes:
            own = np.flatnonzero(change)
            for first in range(0, len(own), MOST_CHANGED):
                some = own[first : first + MOST_CHANGED]
                variables = chosen[some]
                beta = machine.dual.y[variables] * change[some]
                asked.append((machine.number, self.problem.X[machine.dual.point[variables]], beta))
        groups: list[list[tuple[int, Matrix, Array]]] = []
        for each in asked:
            if groups and sum(len(beta) for _, _, beta in groups[-1]) + len(each[2]) <= MOST_CHANGED:
                groups[-1].append(each)
            else:
                groups.append([each])
        for group in groups:
            rows = self._sent(group)
            keys = [self.tasks.submit(key.name, _sums, key, rows, self.problem.kernel) for key in self.shards]
            yield [number for number, _, _ in group], keys

    def _single_sums(self, changes: Sequence[_Change]) -> Iterator[tuple[list[int], list[Key]]]:
        """Yield the keys of sums over kernel values that are kept, of each shard, and for which machines they are."""
        beta = np.zeros((len(changes), self.problem.X.shape[0]))
        for own, (machine, chosen, change) in zip(beta, changes, strict=True):
            np.add.at(own, machine.dual.point[chosen], machine.dual.y[chosen] * change)
        points, most = np.flatnonzero(beta.any(axis=0)), SINGLE_CELLS // beta.shape[1]
        if len(points) > most:  # too many to keep
            self.kept.clear()
            yield from self._sums(changes)
        if not 0 < len(points) <= most:
            return
        while self.kept and sum(len(kept.points) for kept in self.kept) + len(self._missing(points)) > most:
            self.kept.pop(0)
        missing = self._missing(points)
        for first in range(0, len(missing), MOST_CHANGED):
            some = missing[first : first + MOST_CHANGED]
            rows = self._sent(self.problem.X[some])
            keys = [self.tasks.submit(key.name, _values, key, rows, self.problem.kernel.gamma) for key in self.shards]
            self.kept.append(_Kept(some, keys))
        used = [kept for kept in self.kept if beta[:, kept.points].any()]
        numbers = [machine.number for machine, _, _ in changes]
        asked = self._sent((numbers, [beta[:, kept.points].T for kept in used]))
        given = [(key, [kept.keys[place] for kept in used], asked) for place, key in enumerate(self.shards)]
        yield numbers, [self.tasks.submit(each[0].name, _kept_sums, *each) for each in given]

    def _missing(self, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the points whose kernel values are not kept."""
        return np.setdiff1d(points, np.concatenate([points[:0], *(kept.points for kept in self.kept)]))

    def _sent(self, given: Any) -> Key:
        return Key("the working sets", partial(scattered, self.tasks.client, given))

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
        smo = BlockSMO(problem, partitions_of(client, problem.X, None, None), effort.n_jobs)
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


def _beyond(machine: _Machine) -> Array:
    """Return by how much v of each variable violates, counted from the middle of the free ones; −∞ if it cannot."""
    y, v, (up, low) = machine.dual.y, machine.v, machine.sides()
    found = np.full(len(v), -np.inf)
    for part in [y > 0, y < 0] if machine.dual.by_sign else [np.ones(len(y), np.bool_)]:
        free = v[up & low & part]
        ends = np.array([v[up & part].max(initial=-np.inf), v[low & part].min(initial=np.inf)])
        ends = ends[np.isfinite(ends)]
        middle = np.median(free) if len(free) else ends.sum() / max(1, len(ends))
        above = np.where(up, v - middle, -np.inf)
        found = np.where(part, np.maximum(above, np.where(low, middle - v, -np.inf)), found)
    return found


def _may_be_single(problem: DualProblem) -> bool:
    """Return whether kernel values may be in float32."""
    X, kernel = problem.X, problem.kernel
    if kernel.name != "rbf" or sp.issparse(X) or X.shape[0] < SINGLE_ROWS or problem.precision == "double":
        return False
    moved = X - X.mean(axis=0)
    return bool(2 * kernel.gamma * np.einsum("ij,ij->i", moved, moved).max() <= SINGLE_NORM)


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


def _values(shard: _Shard, support: Array, gamma: float) -> NDArray[np.float32]:
    """Return exp(−γ ‖x_i − s‖²) in float32: −γ ‖x − s‖² is one product of rows with two more cells, since it is
    x̂·ŝ − ½‖x̂‖² − ½‖ŝ‖² for x̂ = √(2γ) (x − c)."""
    centre = support.mean(axis=0, dtype=np.float64)

    def moved(rows: Matrix, column: int) -> NDArray[np.float32]:
        found = np.ones((len(rows), rows.shape[1] + 2), np.float32)
        found[:, :-2] = math.sqrt(2 * gamma) * (rows - centre)
        found[:, column] = -0.5 * np.einsum("ij,ij->i", found[:, :-2], found[:, :-2], dtype=np.float64)
        return found

    others, values = moved(support, -1).T, np.empty((len(shard.X), len(support)), np.float32)
    for rows in _tiles(len(values)):
        products = moved(shard.X[rows], -2) @ others
        np.exp(np.minimum(products, 0, out=products), out=values[rows])
    return values


def _kept_sums(
    shard: _Shard, kept: list[NDArray[np.float32]], asked: tuple[Sequence[int], Sequence[Array]]
) -> list[Array]:
    """Return Σ Δβ_s K(x_i, x_s) of each machine for its rows of one partition, from values that are kept."""
    numbers, betas = asked
    sums = np.zeros((len(shard.X), len(numbers)))
    for values, beta in zip(kept, betas, strict=True):
        for rows in _tiles(len(values)):
            sums[rows] += values[rows].astype(np.float64) @ beta
    chosen = [shard.rows[number] for number in numbers]
    return [sums[slice(None) if own is None else own, place] for place, own in enumerate(chosen)]


def _tiles(n: int) -> Iterator[slice]:
    return (slice(first, first + TILE_ROWS) for first in range(0, n, TILE_ROWS))
