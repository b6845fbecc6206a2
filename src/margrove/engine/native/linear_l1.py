"""Linear SVMs in the core that are solved over columns (penalty l1) or over all classes of a row at once (Crammer and
Singer)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from margrove.data.sample import merged
from margrove.engine.native.core import NAME, core, points_of, threads_for
from margrove.engine.registry import Engine, register
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearMachine,
    LinearSvmProblem,
    LinearSvmSolution,
    relative_gap,
)
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.run.threads import blas_held_back
from margrove.status import Status

_NOTHING = np.empty(0, np.float64)
ENDINGS = {
    core.LinearEnding.converged: Status.CONVERGED,
    core.LinearEnding.most_steps: Status.MAX_ITER,
    core.LinearEnding.stalled: Status.STALLED,
    core.LinearEnding.nonfinite: Status.NONFINITE,
}


def solve_l1(problem: LinearSvmProblem, effort: Effort) -> tuple[LinearSvmSolution, ...]:
    """Every machine of a problem with penalty l1, by Newton's method over the columns that can have a weight.

    Sparse points are copied once, by columns.
    """
    X = merged(problem.X)
    solver = core.L1Svm(
        points_of(X),
        loss=core.Loss[problem.loss],
        intercept=problem.intercept,
        epsilon=problem.epsilon,
        tol=problem.tol,
        max_steps=problem.max_iter,
    )
    for machine in problem.machines:
        solver.add(
            target=machine.target,
            cost=machine.cost,
            w=_start(machine, X.shape[1]),
            beta=given_or_nothing(machine.beta),
        )
    threads, machines = threads_for(effort.n_jobs), range(len(problem.machines))

    def on_slice() -> None:
        standings = [solver.standing(k) for k in machines]
        gap = max(_gap(each) for each in standings)
        ended = sum(each.ending is not core.LinearEnding.going for each in standings)
        report(Progress("linear svm", float(ended), float(len(standings)), gap, "gap", problem.tol))

    with blas_held_back():
        reason = run_in_slices(_advance(solver, threads), effort, on_slice)
    return tuple(_l1_solution(solver.finish(k), reason) for k in machines)


def _gap(standing: core.LinearProgress) -> float:
    return 1.0 if np.isinf(standing.primal) else relative_gap(standing.primal, standing.dual)


def _start(machine: LinearMachine, d: int) -> NDArray[np.float64]:
    start = np.zeros(d + 1)
    if machine.w is not None:
        start[:d], start[d] = machine.w, machine.b
    return start


def _advance(solver: core.L1Svm | core.CrammerSinger, threads: int) -> Callable[[float], Status | None]:
    return lambda seconds: Status.CONVERGED if solver.run(seconds, threads) else None


def given_or_nothing(values: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return a start for the core: an empty array for None."""
    return _NOTHING if values is None else np.ascontiguousarray(values, dtype=np.float64)


def _l1_solution(state: core.LinearState, reason: Status) -> LinearSvmSolution:
    """Return a machine's own status, or the ``reason`` that ended all for one that was still at work."""
    return LinearSvmSolution(
        w=state.w,
        b=state.b,
        beta=state.beta,
        primal=state.primal,
        dual=state.dual,
        n_iter=state.steps,
        status=ENDINGS.get(state.ending, reason),
        solver="proximal newton",
        is_proved_by_w=False,  # the best w and the best β are seldom of the same step
    )


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

    reason = run_in_slices(_advance(solver, threads), effort, on_slice)
    state = solver.finish(threads)
    return CrammerSingerSolution(
        w=state.w,
        b=state.b,
        beta=state.beta,
        primal=state.primal,
        dual=state.dual,
        n_iter=state.steps,
        status=ENDINGS.get(state.ending, reason),
        solver="dual descent by rows",
    )


def _feasible(problem: CrammerSingerProblem) -> NDArray[np.float64]:
    """Return the start, each row scaled down to its cost: β of another C would leave the bounds."""
    if problem.beta is None:
        return _NOTHING
    own = problem.beta[np.arange(len(problem.codes)), problem.codes]
    scale = np.divide(problem.cost, own, out=np.ones_like(own), where=own > problem.cost)
    return np.ascontiguousarray(problem.beta * scale[:, None], np.float64)
