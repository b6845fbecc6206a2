"""Support vector machines in the core: every dual is one call of the block solver."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from margrove.engine import Effort
from margrove.engine.native.core import blas_held_back, core, points_of, threads_for
from margrove.engine.native.dispatch import solve
from margrove.engine.slices import run_in_slices
from margrove.errors import EngineError
from margrove.progress import Progress, report
from margrove.status import Status
from margrove.svm.problem import DualProblem, DualSolution

WORKING_SET = 1024  # variables solved for together: measured, see docs/benchmarks.md
_EVERY_ROW = np.empty(0, np.int64)


@solve.register
def _(problem: DualProblem, effort: Effort) -> DualSolution:
    solver = _solver(problem, threads_for(effort.n_jobs))
    most = sys.maxsize if problem.max_iter < 0 else problem.max_iter

    def advance(seconds: float) -> Status | None:
        if solver.run(most, seconds):
            return Status.CONVERGED if solver.converged else Status.STALLED
        return Status.MAX_ITER if solver.steps >= most else None

    def tell() -> None:
        report(Progress("svm", float(solver.steps), None, float(solver.violation), "violation"))

    with blas_held_back():
        status = run_in_slices(advance, time_limit=effort.time_limit, look_around=tell)
    v = solver.v
    return DualSolution(
        solver.alpha,
        v,
        float(solver.violation),
        float(solver.objective),
        int(solver.steps),
        status if np.isfinite(v).all() else Status.NONFINITE,
    )


def _solver(problem: DualProblem, threads: int) -> Any:
    is_single = problem.precision == "single"
    variables = (problem.y, problem.p, problem.upper, problem.alpha, problem.point)
    limits = (problem.tol, problem.cache_bytes, WORKING_SET, threads)
    if problem.kernel.name == "precomputed":
        gram = np.ascontiguousarray(problem.X, dtype=np.float32 if is_single else np.float64)
        return core.dual_on_gram(gram, _EVERY_ROW, *variables, *limits)
    if not problem.kernel.is_native:
        raise EngineError(f"engine='native' computes no {problem.kernel.name} kernel for a DualProblem.")
    make = core.dual32_on_points if is_single else core.dual64_on_points
    return make(points_of(problem.X), _EVERY_ROW, problem.kernel.native, *variables, *limits)
