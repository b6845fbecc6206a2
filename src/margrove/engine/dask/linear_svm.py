"""Linear SVMs over partitions: Newton's method, whose passes are sums over the rows of each partition."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.data.rows import Chunked, Partitioned
from margrove.engine.native import Native
from margrove.engine.registry import Engine, register
from margrove.engine.stream import is_narrow, solve_by_passes
from margrove.engine.stream.newton import BlockNewton, NewtonMachine, PassSums
from margrove.errors import EngineError
from margrove.linear_svm.problem import LinearMachine, LinearSvmProblem
from margrove.linear_svm.stream_problem import RowBlock, StreamProblem, StreamSolution
from margrove.run.effort import Effort

ROWS_PER_COLUMN = 1000  # from which on a sample is solved first, as by the native engine
LEAST_STRIDE = 8  # of the sample: one of so many rows ...
SAMPLE_CELLS = 1 << 21  # ... but no more numbers than this
SAMPLE_TOL = 1e-3
_BESIDE = ("target", "cost")


class PartitionNewton(BlockNewton):
    """`BlockNewton` whose passes run on the workers. The sums of the partitions are added in their order."""

    method = "Newton's method over partitions"

    def work(self) -> Iterator[None]:
        """Run passes, of very many rows from the solution for a sample of them."""
        yield from self._begin_with_sample()
        yield from super().work()

    def _begin_with_sample(self) -> Iterator[None]:
        problem, rows = self.problem, self.problem.rows
        assert isinstance(rows, Partitioned)
        if not self.is_squared or problem.centre is not None or rows.n < ROWS_PER_COLUMN * self.width:
            return
        found = None
        for found in rows.parts.run(_every, max(LEAST_STRIDE, rows.n * rows.d // SAMPLE_CELLS)):
            if found is None:
                yield
        blocks = [block for block in found or () if block.X.shape[0]]
        points = [block.X for block in blocks]
        X = sp.csr_matrix(sp.vstack(points)) if rows.is_sparse else np.concatenate(points)
        target, cost = (np.concatenate([getattr(block, name) for block in blocks], axis=1) for name in _BESIDE)
        machines = tuple(map(LinearMachine, target, rows.n / X.shape[0] * cost))
        asked = LinearSvmProblem(
            X, machines, problem.loss, intercept=problem.intercept, epsilon=problem.epsilon, tol=SAMPLE_TOL
        )
        solutions = Native().solve(asked, Effort(n_jobs=1, on_interrupt="raise"))
        for machine, solution in zip(self.machines, solutions, strict=True):
            theta = np.append(solution.w, solution.b)[: self.width]
            if np.isfinite(theta).all():
                machine.at = theta

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
    bare.ahead = bare.hessian = None
    vars(bare).pop("here", None)
    return bare


def _no_blocks() -> Iterator[RowBlock]:
    return iter(())


def _every(block: RowBlock, stride: int) -> RowBlock:
    """Return one of so many rows."""
    return RowBlock(block.X[::stride], block.target[:, ::stride], block.cost[:, ::stride])


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
