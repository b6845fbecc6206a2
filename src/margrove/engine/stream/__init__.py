"""The stream engine: linear SVMs over rows that come in chunks, pass by pass, in the memory of one block of rows.

Newton's method (`newton`) while a Hessian fits; dual descent block by block (`descent`) for more columns. A solve ends
on a relative gap ≤ tol, on max_passes, on the time limit or on Ctrl-C; each machine keeps its best iterate at the
end of a pass.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from margrove.engine.registry import Capability, Engine, register
from margrove.engine.stream.descent import BlockDescent
from margrove.engine.stream.newton import BlockNewton
from margrove.engine.stream.passes import Passes
from margrove.linear_svm.stream_problem import StreamProblem, StreamSolution
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status

MOST_COLUMNS = 2000  # for Newton's method: a Hessian of 32 MB
MOST_HESSIAN_CELLS = 1 << 25  # of all machines together: 256 MB


@dataclass(frozen=True)
class Stream(Engine):
    """Passes over rows in chunks; ``n_jobs`` are threads of BLAS."""

    name = "stream"
    can = frozenset({Capability.TIME_LIMIT, Capability.CHUNKED})


def is_narrow(problem: StreamProblem) -> bool:
    """Return whether Newton's method can hold the Hessians."""
    width = problem.rows.d + problem.has_intercept
    return width <= MOST_COLUMNS and problem.n_machines * width**2 <= MOST_HESSIAN_CELLS


@register(Stream.name, StreamProblem)
def _(engine: Engine, problem: StreamProblem, effort: Effort) -> tuple[StreamSolution, ...]:
    return solve_by_passes(BlockNewton(problem) if is_narrow(problem) else BlockDescent(problem), effort)


def solve_by_passes(passes: Passes[Any], effort: Effort) -> tuple[StreamSolution, ...]:
    """Run passes until all machines have ended, or the effort is spent."""
    work = passes.work()

    def advance(seconds: float) -> Status | None:
        end = time.monotonic() + seconds
        for _ in work:
            if time.monotonic() > end:
                return None
        return Status.CONVERGED

    def look_around() -> None:
        goal = passes.problem.tol
        report(Progress("passes", passes.n_passes, None, passes.gap(), "relative duality gap", goal))

    threads = None if effort.n_jobs is None or effort.n_jobs < 0 else effort.n_jobs
    with threadpool_limits(limits=threads, user_api="blas"):
        status = run_in_slices(advance, effort, look_around)
    return passes.solutions(None if status is Status.CONVERGED else status)
