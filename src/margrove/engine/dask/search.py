"""Searches of kernel machines: the units of one kernel are a task, so that its matrix is computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from margrove.data.dask_partitions import Key, Tasks, connected, scattered
from margrove.engine.native import Native
from margrove.engine.registry import register
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.svm.search_problem import SearchProblem, SearchUnit, UnitSolution


@register("dask", SearchProblem)
def _(engine: Any, problem: SearchProblem, effort: Effort) -> Status:
    done = 0

    def work(tasks: Tasks, keys: Sequence[tuple[list[int], Key]]) -> Iterator[None]:
        nonlocal done
        for numbers, key in keys:
            for found in tasks.results([key]):
                if found is None:
                    yield
                    continue
                for number, solution in zip(numbers, found[0], strict=True):
                    problem.take(number, solution)
                    done += len(problem.units[number].Cs) * len(problem.machines)

    def look_around() -> None:
        if effort.look_around is not None:
            effort.look_around(lambda: None)
        report(Progress("search", float(done), float(problem.n_cells)))

    with connected(engine.address) as client:
        tasks, bare = Tasks(client), replace(problem, units=(), take=_nothing)
        table = Key("the rows", partial(scattered, client, bare))
        keys = [
            (numbers, tasks.submit("some folds", _solved, table, [problem.units[number] for number in numbers]))
            for numbers in _groups(problem.units)
        ]
        running = work(tasks, keys)
        return run_in_slices(lambda _: next(running, Status.CONVERGED), effort, look_around)


def _groups(units: Sequence[SearchUnit]) -> list[list[int]]:
    """Return the numbers of the units of each task: those of a kernel, or of each fold if there is one kernel."""
    is_single = len({unit.kernel for unit in units}) == 1
    groups: dict[int, list[int]] = {}
    for number, unit in enumerate(units):
        groups.setdefault(unit.fold if is_single else unit.kernel, []).append(number)
    return list(groups.values())


def _nothing(number: int, solution: UnitSolution) -> None:
    pass


def _solved(problem: SearchProblem, units: list[SearchUnit]) -> list[UnitSolution]:
    """Return the solutions of some units, on a worker."""
    found: dict[int, UnitSolution] = {}
    Native().solve(replace(problem, units=tuple(units), take=found.__setitem__), Effort(n_jobs=1, on_interrupt="raise"))
    return [found[number] for number in range(len(units))]
