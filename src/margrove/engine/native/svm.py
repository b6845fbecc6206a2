"""Support vector machines in the core: every problem is one set of machines on the same points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.engine.native.core import NAME, core, points_of, run_until_done, spec_of, threads_for
from margrove.engine.native.explicit import continued, has_ended, is_explicit, is_tall, solve_by_weights
from margrove.engine.registry import Engine, cache_bytes, register
from margrove.errors import EngineError
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.status import Status
from margrove.svm.problem import HULLS_MEET, DualProblem, DualSolution, PathProblem

WORKING_SET = 1024  # variables solved for together, at most


@register(NAME, DualProblem)
def _(engine: Engine, problem: DualProblem, effort: Effort) -> tuple[DualSolution, ...]:
    may_be_explicit = problem.kernel.name == "linear" and is_explicit(problem, effort)
    if may_be_explicit and is_tall(problem):
        found = solve_by_weights(problem, effort)
        if has_ended(found):
            return found
        problem, may_be_explicit = continued(problem, found), False
    (found,) = _path(engine, problem, (), effort)
    if may_be_explicit and any(solution.status is Status.MAX_ITER for solution in found):
        # Columns of very different scales: pairs crawl where Newton's method does not notice.
        again = solve_by_weights(continued(problem, found), effort)
        return again if has_ended(again) else found
    return found


@register(NAME, PathProblem)
def _(engine: Engine, problem: PathProblem, effort: Effort) -> tuple[tuple[DualSolution, ...], ...]:
    return _path(engine, problem.first, problem.uppers, effort)


def _path(
    engine: Engine, problem: DualProblem, uppers: Sequence[Sequence[NDArray[np.float64]]], effort: Effort
) -> tuple[tuple[DualSolution, ...], ...]:
    """Solve all machines, each along its ``uppers``; return the steps that were reached, the last perhaps stopped
    early."""
    duals = _duals(engine, problem, threads_for(effort.n_jobs))
    for k, machine in enumerate(problem.machines):
        duals.add(
            y=machine.y,
            p=machine.p,
            upper=machine.upper,
            alpha=machine.alpha,
            point=machine.point,
            by_sign=machine.by_sign,
            hulls=machine.hulls,
            uppers=np.array([step[k] for step in uppers]).reshape(len(uppers), len(machine.y)),
        )
    machines, n_steps, most = range(len(problem.machines)), 1 + len(uppers), problem.step_limit
    total = n_steps * len(machines)

    def on_slice() -> None:
        if effort.look_around is not None:
            effort.look_around(lambda: [duals.alpha(k) for k in machines])
        report(Progress("svm", float(duals.ended), float(total), duals.violation, "violation", problem.tol))

    reason = run_until_done(lambda seconds: duals.run(most, seconds), effort, on_slice)
    reached = n_steps if duals.ended == total else 1 + min(duals.steps_ended(k) for k in machines)
    steps = range(min(reached, n_steps))
    return tuple(tuple(_solution(duals.state(k, step), reason, most) for k in machines) for step in steps)


def _duals(engine: Engine, problem: DualProblem, threads: int) -> core.Duals:
    settings: dict[str, Any] = {
        "tol": problem.tol,
        "hulls_meet": HULLS_MEET,
        "cache_bytes": cache_bytes(engine, problem.cache_bytes, 8 * problem.X.shape[0] ** 2),
        "working_set": WORKING_SET,
        "threads": threads,
        "shrinking": problem.shrinking,
    }
    if problem.kernel.name == "precomputed":
        return core.duals_on_gram(np.ascontiguousarray(problem.X), **settings)
    if not problem.kernel.is_native:
        words = f" computes no {problem.kernel.name} kernel for a DualProblem."
        raise EngineError(Advice(Setting("engine", "native"), words))
    precision = core.Precision[problem.precision]
    return core.duals_on_points(points_of(problem.X), kernel=spec_of(problem.kernel), precision=precision, **settings)


def _solution(state: core.DualState, reason: Status, most: int) -> DualSolution:
    """Return a machine's solution with its own status, or with the ``reason`` that ended all if it was at work."""
    v = state.v
    if not np.isfinite(v).all():
        status = Status.NONFINITE
    elif state.ending is core.DualEnding.converged:
        status = Status.CONVERGED
    elif state.ending is core.DualEnding.imprecise:
        status = Status.STALLED
    else:
        status = Status.MAX_ITER if state.steps >= most else reason
    return DualSolution(
        state.alpha, v, state.violation, state.objective, state.steps, status, state.is_v_known, state.rows_computed
    )
