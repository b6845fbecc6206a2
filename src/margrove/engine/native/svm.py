"""Support vector machines in the core: every problem is one set of machines on the same points.

SVC with the linear kernel is a linear machine (loss hinge, a free intercept): where rows are many and columns few, w
itself is sought, and α is what it leaves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.engine.native.core import NAME, core, points_of, run_until_done, spec_of, threads_for
from margrove.engine.native.linear_svm import solve_path
from margrove.engine.registry import Engine, cache_bytes, register
from margrove.errors import EngineError
from margrove.linear_svm.problem import LinearMachine, LinearSvmProblem
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.status import Status
from margrove.svm.kkt import sides, violation
from margrove.svm.problem import HULLS_MEET, Dual, DualProblem, DualSolution, PathProblem

WORKING_SET = 1024  # variables solved for together, at most
_FEWEST_ROWS = 1000  # of a machine that is solved for w: below, pairs of rows take milliseconds too
_ROWS_PER_COLUMN = 5
_MOST_COLUMNS = 2000
_GAP = 1e-6


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
    """Solve all machines, each along its ``uppers``; return the steps reached, the last perhaps stopped early."""
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
        words = f" does not support the {problem.kernel.name} kernel for a DualProblem."
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


def is_explicit(problem: DualProblem, effort: Effort) -> bool:
    """Return whether machines of a linear kernel can be solved for w: few columns, no option of pair steps."""
    return (
        problem.max_iter < 0
        and effort.look_around is None
        and problem.X.shape[1] <= _MOST_COLUMNS
        and all(_is_soft_margin(machine) for machine in problem.machines)
    )


def is_tall(problem: DualProblem) -> bool:
    """Return whether solving for w is faster: every machine has many rows for its columns."""
    least = max(_FEWEST_ROWS, _ROWS_PER_COLUMN * problem.X.shape[1])
    return all(len(machine.y) >= least for machine in problem.machines)


def _is_soft_margin(machine: Dual) -> bool:
    return (
        not machine.by_sign
        and not machine.hulls
        and bool((machine.p == -1).all())
        and bool(np.isfinite(machine.upper).all())
        and bool((machine.y > 0).any() and (machine.y < 0).any())
    )


def has_ended(found: tuple[DualSolution, ...]) -> bool:
    """Return whether every machine has converged, or was stopped by time or Ctrl-C."""
    return all(each.status in (Status.CONVERGED, Status.TIME_LIMIT, Status.INTERRUPTED) for each in found)


def continued(problem: DualProblem, found: tuple[DualSolution, ...]) -> DualProblem:
    """Return the problem with each machine starting from its solution."""
    pairs = zip(problem.machines, found, strict=True)
    return replace(problem, machines=tuple(replace(machine, alpha=solution.alpha) for machine, solution in pairs))


def solve_by_weights(problem: DualProblem, effort: Effort) -> tuple[DualSolution, ...]:
    """Return the machines' α, found by way of w; `has_ended` is False if another method must go on."""
    started = time.monotonic()
    found: list[DualSolution] = []
    for machine in problem.machines:
        is_interrupted = any(solution.status is Status.INTERRUPTED for solution in found)
        # After Ctrl-C the machines that are left end at once, with what they have.
        left = replace(effort, time_limit=1e-3) if is_interrupted else effort.left(started)
        solution = _solved(problem, machine, left)
        if is_interrupted and solution.status is Status.TIME_LIMIT:
            solution = replace(solution, status=Status.INTERRUPTED)
        found.append(solution)
    return tuple(found)


def _solved(problem: DualProblem, machine: Dual, effort: Effort) -> DualSolution:
    X = problem.X
    if len(machine.point) < X.shape[0] or not np.array_equal(machine.point, np.arange(X.shape[0])):
        X = X[machine.point]
    y = machine.y.astype(np.float64)
    beta = machine.y * machine.alpha
    start = LinearMachine(y, machine.upper, w=_sums(X, beta) if beta.any() else None, beta=beta if beta.any() else None)
    primal = LinearSvmProblem(X, (start,), loss="hinge", intercept=np.inf, tol=_GAP, max_iter=2000, solver="newton")
    solution = solve_path(primal, (1.0,), effort, violation=problem.tol)[0][-1]
    alpha = machine.y * solution.beta
    v = y - np.asarray(X @ _sums(X, solution.beta), dtype=np.float64).ravel()
    reached = violation(v, *sides(machine.y, alpha, machine.upper))
    status = solution.status
    if status in (Status.CONVERGED, Status.STALLED):  # what counts is the violation
        status = Status.CONVERGED if reached <= problem.tol else Status.STALLED
    objective = 0.5 * float(solution.beta @ (y - v)) - float(alpha.sum())
    return DualSolution(alpha, v, reached, objective, solution.n_iter, status, solver="newton")


def _sums(X: Any, beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ β_i x_i in float64."""
    if sp.issparse(X):
        return np.asarray(X.T @ beta, dtype=np.float64).ravel()
    support = np.flatnonzero(beta)
    total = np.zeros(X.shape[1])
    for first in range(0, len(support), 4096):
        rows = support[first : first + 4096]
        total += beta[rows] @ X[rows].astype(np.float64)
    return total
