"""Linear SVMs over partitions: Newton's method, whose passes are sums over the rows of each partition."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

from margrove.data.rows import Chunked, Partitioned
from margrove.engine.registry import Engine, register
from margrove.engine.stream import is_narrow, solve_by_passes
from margrove.engine.stream.newton import BlockNewton, NewtonMachine, PassSums
from margrove.errors import EngineError
from margrove.linear_svm.stream_problem import RowBlock, StreamProblem, StreamSolution
from margrove.run.effort import Effort


class PartitionNewton(BlockNewton):
    """`BlockNewton` whose passes run on the workers. The sums of the partitions are added in their order."""

    method = "Newton's method over partitions"

    def _pass(self, live: list[NewtonMachine]) -> Iterator[None]:
        rows = self.problem.rows
        assert isinstance(rows, Partitioned)
        self._clear(live)
        nowhere: Chunked[RowBlock] = Chunked(0, rows.d, False, _no_blocks)
        asked = replace(self.problem, rows=nowhere), [_without_sums(machine) for machine in live]
        found = None
        for found in rows.parts.run(_pass_over, *asked):
            if found is None:
                yield
        for sums in found or ():
            for machine, own in zip(live, sums, strict=True):
                own.add_to(machine)


def _without_sums(machine: NewtonMachine) -> NewtonMachine:
    """Return what a pass needs to know of a machine."""
    bare = copy(machine)
    bare.ahead = None
    vars(bare).pop("here", None)
    return bare


def _no_blocks() -> Iterator[RowBlock]:
    return iter(())


def _pass_over(block: RowBlock, problem: StreamProblem, live: list[NewtonMachine]) -> list[PassSums]:
    """Return the sums of a pass over one partition."""
    own: list[Any] = [copy(machine) for machine in live]  # other threads of the worker have the same machines
    rows: Chunked[RowBlock] = Chunked(block.X.shape[0], problem.rows.d, False, lambda: iter([block]))
    return BlockNewton(replace(problem, rows=rows)).sums_of(own)


@register("dask", StreamProblem)
def _(engine: Engine, problem: StreamProblem, effort: Effort) -> tuple[StreamSolution, ...]:
    if not is_narrow(problem):
        raise EngineError(
            f"engine='dask' fits linear machines by Newton's method, and {problem.n_machines} machine(s) of "
            f"{problem.rows.d} columns need too large a Hessian. Select columns, or use fit_stream."
        )
    return solve_by_passes(PartitionNewton(problem), effort)
