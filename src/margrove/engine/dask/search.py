"""Searches: their units are shared out over the workers, and one that is lost is solved again.

Of kernel machines the units of one kernel are a task, so that its matrix is computed once; of linear machines each task
solves some of the machines of all folds along C. The native engine solves them, so the solutions are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from margrove.data.dask_partitions import Key, Tasks, connected, scattered
from margrove.engine.native import Native
from margrove.engine.registry import register
from margrove.linear_svm.problem import LinearPathProblem, LinearSvmSolution, losses
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.svm.search_problem import SearchProblem, SearchUnit, UnitSolution

MOST_TASKS = 64  # of linear machines: more only cost time
_ALONE = Effort(n_jobs=1, on_interrupt="raise")  # Dask runs as many tasks at a time as a worker has threads


@register("dask", SearchProblem)
def _(engine: Any, problem: SearchProblem, effort: Effort) -> Status:
    n_machines = len(problem.machines)

    def take(numbers: list[int], found: list[UnitSolution]) -> int:
        for number, solution in zip(numbers, found, strict=True):
            problem.take(number, solution)
        return n_machines * sum(len(problem.units[number].Cs) for number in numbers)

    groups = _groups(problem.units)
    given = [(group, [problem.units[number] for number in group]) for group in groups]
    bare = replace(problem, units=(), take=_nothing)
    return _shared_out(engine, bare, _solved, given, take, effort, problem.n_cells)


@register("dask", LinearPathProblem)
def _(engine: Any, problem: LinearPathProblem, effort: Effort) -> tuple[tuple[LinearSvmSolution, ...], ...]:
    n_machines = len(problem.problem.machines)
    paths: dict[int, Sequence[LinearSvmSolution]] = {}

    def take(numbers: list[int], found: list[Sequence[LinearSvmSolution]]) -> int:
        paths.update(zip(numbers, found, strict=True))
        return len(numbers) * len(problem.factors)

    step = -(-n_machines // MOST_TASKS)
    groups = [list(range(first, min(first + step, n_machines))) for first in range(0, n_machines, step)]
    bare = replace(problem, take=None if problem.take is None else _nothing)
    total = n_machines * len(problem.factors)
    status = _shared_out(engine, bare, _paths, [(group, group) for group in groups], take, effort, total)
    for number in range(n_machines):
        path = paths.setdefault(number, [_start(problem, number, status)])
        if problem.take is not None:
            for reached, solution in enumerate(path):
                problem.take(reached, number, solution)
    if problem.take is not None:
        return ()
    return tuple(zip(*(paths[number] for number in range(n_machines)), strict=False))


def _shared_out(
    engine: Any,
    problem: Any,
    solve: Callable[..., Any],
    given: Sequence[tuple[list[int], Any]],
    take: Callable[[list[int], Any], int],
    effort: Effort,
    total: int,
) -> Status:
    """Send ``problem`` to the workers, once each; let them ``solve`` the units given, of these numbers; ``take`` what
    they find, which returns how many of ``total`` models that are."""
    done = 0

    def work(tasks: Tasks, keys: Sequence[tuple[list[int], Key]]) -> Iterator[None]:
        nonlocal done
        for numbers, key in keys:
            for found in tasks.results([key]):
                if found is None:
                    yield
                else:
                    done += take(numbers, found[0])
            key.release()

    def look_around() -> None:
        if effort.look_around is not None:
            effort.look_around(lambda: None)
        report(Progress("search", float(done), float(total)))

    with connected(engine.address) as client:
        tasks = Tasks(client)
        table = Key("the rows", partial(scattered, client, problem))
        keys = [(numbers, tasks.submit("some folds", solve, table, units)) for numbers, units in given]
        running = work(tasks, keys)
        return run_in_slices(lambda _: next(running, Status.CONVERGED), effort, look_around)


def _groups(units: Sequence[SearchUnit]) -> list[list[int]]:
    """Return the numbers of the units of each task: those of a kernel, or of each fold if there is one kernel."""
    is_single = len({unit.kernel for unit in units}) == 1
    groups: dict[int, list[int]] = {}
    for number, unit in enumerate(units):
        groups.setdefault(unit.fold if is_single else unit.kernel, []).append(number)
    return list(groups.values())


def _nothing(*solved: Any) -> None:
    pass


def _start(problem: LinearPathProblem, number: int, status: Status) -> LinearSvmSolution:
    """Return a machine that was not solved: w = 0, and β = 0, which proves D = 0."""
    asked, machine = problem.problem, problem.problem.machines[number]
    n, d = asked.X.shape
    lost = losses(asked.loss, machine.target, np.zeros(n), asked.epsilon)
    primal = float(problem.factors[0] * machine.cost @ lost)
    return LinearSvmSolution(np.zeros(d), 0.0, np.zeros(n), primal, 0.0, 0, status, asked.solver)


# On the workers


def _solved(problem: SearchProblem, units: list[SearchUnit]) -> list[UnitSolution]:
    """Return the solutions of some units."""
    found: dict[int, UnitSolution] = {}
    Native().solve(replace(problem, units=tuple(units), take=found.__setitem__), _ALONE)
    return [found[number] for number in range(len(units))]


def _paths(problem: LinearPathProblem, numbers: list[int]) -> list[list[LinearSvmSolution]]:
    """Return the solutions of some machines along C; where a search takes them, without β."""
    own = replace(problem.problem, machines=tuple(problem.problem.machines[number] for number in numbers))
    if problem.take is None:
        return [list(path) for path in zip(*Native().solve(replace(problem, problem=own), _ALONE), strict=True)]
    found: list[list[LinearSvmSolution]] = [[] for _ in numbers]

    def take(step: int, number: int, solution: LinearSvmSolution) -> None:
        found[number].append(replace(solution, beta=np.empty(0)))

    Native().solve(replace(problem, problem=own, take=take), _ALONE)
    return found
