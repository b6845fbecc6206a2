"""Support vector machines in the core: every problem is one set of machines on the same points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from margrove.engine.native.core import NAME, core, points_of, threads_for
from margrove.engine.native.explicit import is_explicit, is_tall, solve_by_weights
from margrove.engine.protocol import Engine, cache_bytes, register
from margrove.errors import EngineError
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.run.threads import blas_held_back
from margrove.status import Status
from margrove.svm.problem import HULLS_MEET, DualProblem, DualSolution, PathProblem

WORKING_SET = 1024  # variables solved for together, at most
_PRECISIONS = {"auto": 0, "single": 1, "double": 2}
_CONVERGED, _IMPRECISE = 1, 2  # core/svm/dual_solver.hpp, Ending


@register(NAME, DualProblem)
def _(engine: Engine, problem: DualProblem, effort: Effort) -> tuple[DualSolution, ...]:
    may_be_explicit = is_explicit(problem, effort)
    if may_be_explicit and is_tall(problem):
        answer = solve_by_weights(problem, effort)
        if isinstance(answer, tuple):
            return answer
        problem = answer
        may_be_explicit = False
    found = _climb(engine, PathProblem(problem, ()), effort)[0]
    if may_be_explicit and any(solution.status is Status.MAX_ITER for solution in found):
        # Columns of very different scales: pairs crawl where Newton's method does not notice.
        begun = zip(problem.machines, found, strict=True)
        again = replace(problem, machines=tuple(replace(dual, alpha=each.alpha) for dual, each in begun))
        answer = solve_by_weights(again, effort)
        return answer if isinstance(answer, tuple) else found
    return found


@register(NAME, PathProblem)
def _(engine: Engine, problem: PathProblem, effort: Effort) -> tuple[tuple[DualSolution, ...], ...]:
    return _climb(engine, problem, effort)


def _climb(engine: Engine, problem: PathProblem, effort: Effort) -> tuple[tuple[DualSolution, ...], ...]:
    """The rungs that were reached; the last of them may be one that was broken off."""
    first, n_rungs = problem.first, 1 + len(problem.uppers)
    duals = _duals(first, cache_bytes(engine, first.cache_bytes), threads_for(effort.n_jobs))
    for k, machine in enumerate(first.machines):
        uppers = np.array([rung[k] for rung in problem.uppers]).reshape(len(problem.uppers), len(machine.y))
        duals.add(
            machine.y, machine.p, machine.upper, machine.alpha, machine.point, machine.by_sign, machine.hulls, uppers
        )
    most = first.step_limit
    total = n_rungs * len(first.machines)

    def advance(seconds: float) -> Status | None:
        return Status.CONVERGED if duals.run(most, seconds) else None

    def present() -> list[Any]:
        return [duals.alpha(k) for k in range(len(first.machines))]

    def tell() -> None:
        if effort.look_around is not None:
            effort.look_around(present)
        report(Progress("svm", float(duals.ended), float(total), float(duals.violation), "violation"))

    with blas_held_back():
        reason = run_in_slices(advance, effort, tell)
    machines = range(len(first.machines))
    reached = n_rungs if duals.ended == total else 1 + min(duals.rungs(k) for k in machines)
    return tuple(
        tuple(_solution(duals.state(k, rung), reason, most) for k in machines) for rung in range(min(reached, n_rungs))
    )


def _duals(problem: DualProblem, room: int, threads: int) -> Any:
    limits = (problem.tol, HULLS_MEET, room, WORKING_SET, threads, problem.shrinking)
    if problem.kernel.name == "precomputed":
        return core.duals_on_gram(np.ascontiguousarray(problem.X), *limits)
    if not problem.kernel.is_native:
        raise EngineError(f"engine='native' computes no {problem.kernel.name} kernel for a DualProblem.")
    return core.duals_on_points(points_of(problem.X), problem.kernel.native, _PRECISIONS[problem.precision], *limits)


def _solution(state: dict[str, Any], reason: Status, most: int) -> DualSolution:
    """A machine's own ending; what ended all (``reason``) for one that was still at work."""
    if not np.isfinite(state["v"]).all():
        status = Status.NONFINITE
    elif state["ending"] == _CONVERGED:
        status = Status.CONVERGED
    elif state["ending"] == _IMPRECISE:
        status = Status.STALLED
    else:
        status = Status.MAX_ITER if state["steps"] >= most else reason
    return DualSolution(
        state["alpha"],
        state["v"],
        float(state["violation"]),
        float(state["objective"]),
        int(state["steps"]),
        status,
        bool(state["is_v_known"]),
        int(state["rows_computed"]),
    )
