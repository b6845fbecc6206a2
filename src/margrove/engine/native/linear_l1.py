"""Linear SVMs in the core that are solved over columns (penalty l1) or over all classes of a row at once (Crammer and
Singer)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.sample import merged
from margrove.engine.native.core import NAME, core, given_or_nothing, points_of, run_until_done, threads_for
from margrove.engine.registry import Engine, register
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearSvmProblem,
    LinearSvmSolution,
    relative_gap,
)
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.status import Status

ENDINGS = {
    core.LinearEnding.converged: Status.CONVERGED,
    core.LinearEnding.most_steps: Status.MAX_ITER,
    core.LinearEnding.stalled: Status.STALLED,
    core.LinearEnding.nonfinite: Status.NONFINITE,
}


def solve_l1(problem: LinearSvmProblem, effort: Effort) -> tuple[LinearSvmSolution, ...]:
    """Solve every machine with penalty l1, by Newton's method over the columns that can have a weight."""
    X = merged(problem.X)  # sparse points are copied once, by columns
    solver = core.L1Svm(
        points_of(X),
        loss=core.Loss[problem.loss],
        intercept=problem.intercept,
        epsilon=problem.epsilon,
        tol=problem.tol,
        max_steps=problem.max_iter,
    )
    for machine in problem.machines:
        start = np.zeros(X.shape[1] + 1) if machine.w is None else np.append(machine.w, machine.b)
        solver.add(target=machine.target, cost=machine.cost, w=start, beta=given_or_nothing(machine.beta))
    threads, machines = threads_for(effort.n_jobs), range(len(problem.machines))

    def on_slice() -> None:
        standings = [solver.standing(k) for k in machines]
        gap = max(_gap(each) for each in standings)
        ended = sum(each.ending is not core.LinearEnding.going for each in standings)
        report(Progress("linear svm", float(ended), float(len(standings)), gap, "gap", problem.tol))

    reason = run_until_done(lambda seconds: solver.run(seconds, threads), effort, on_slice)
    # The best w and the best β are seldom of the same step.
    solved = {"solver": "proximal newton", "is_proved_by_w": False}
    return tuple(LinearSvmSolution(**solution_fields(solver.finish(k), reason) | solved) for k in machines)


def _gap(standing: core.LinearProgress) -> float:
    return 1.0 if np.isinf(standing.primal) else relative_gap(standing.primal, standing.dual)


def solution_fields(state: core.LinearState | core.JointState, reason: Status) -> dict[str, Any]:
    """Return a machine's fields of a solution: its own status, or the ``reason`` that ended all if it was at work."""
    return {
        "w": state.w,
        "b": state.b,
        "beta": state.beta,
        "primal": state.primal,
        "dual": state.dual,
        "n_iter": state.steps,
        "status": ENDINGS.get(state.ending, reason),
    }


@register(NAME, CrammerSingerProblem)
def _(engine: Engine, problem: CrammerSingerProblem, effort: Effort) -> CrammerSingerSolution:
    """Row by row in the dual; the looks at the gap are shared by the threads."""
    solver = core.CrammerSinger(
        points_of(problem.X),
        codes=problem.codes,
        cost=problem.cost,
        beta=_feasible(problem).ravel(),
        classes=problem.n_classes,
        constant=problem.intercept,
        tol=problem.tol,
        max_passes=problem.max_iter,
        seed=problem.seed,
    )
    threads = threads_for(effort.n_jobs)

    def on_slice() -> None:
        standing = solver.standing()
        steps, most = float(standing.steps), float(problem.max_iter)
        report(Progress("crammer singer", steps, most, _gap(standing), "gap", problem.tol))

    reason = run_until_done(lambda seconds: solver.run(seconds, threads), effort, on_slice)
    return CrammerSingerSolution(**solution_fields(solver.finish(threads), reason), solver="dual descent by rows")


def _feasible(problem: CrammerSingerProblem) -> NDArray[np.float64]:
    """Return the start, each row scaled down to its cost: β of another C would leave the bounds."""
    if problem.beta is None:
        return given_or_nothing(None)
    own = problem.beta[np.arange(len(problem.codes)), problem.codes]
    scale = np.divide(problem.cost, own, out=np.ones_like(own), where=own > problem.cost)
    return np.ascontiguousarray(problem.beta * scale[:, None], np.float64)
