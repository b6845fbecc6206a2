"""Linear support vector machines in the core: Newton's method or coordinate descent, by shape and loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.engine.by_steps import linear_path_by_steps
from margrove.engine.native.core import NAME, core, given_or_nothing, points_of, run_until_done, threads_for
from margrove.engine.native.linear_l1 import solution_fields, solve_l1
from margrove.engine.registry import Engine, register
from margrove.linear_svm.problem import (
    LinearMachine,
    LinearPathProblem,
    LinearSvmProblem,
    LinearSvmSolution,
    centred,
    is_of_signs,
    is_squared,
    losses,
    penalty_value,
)
from margrove.problem import Problem
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.status import Status

_LARGEST_MATRIX = 3000  # columns of a Hessian that is held
# Passes of descent before another method takes over, where it may: about as long as that will take.
_PATIENCE = 200
_LEAST_PATIENCE = 20
_ROW_STEPS = {True: 6, False: 12}  # of row_newton, that descent is given time for; by whether the loss is squared
_FREE_SHARE = 1 / 12  # of sparse rows that are free when descent is slow, as it was counted on texts
# What a method costs, in multiplications: steps (or passes) as they were counted on real tables.
_NEWTON_STEPS = {True: 12, False: 30}  # by whether the loss is squared
_CG_ROUNDS = 20  # of each step
_DESCENT_PASSES = 40
_BLAS_GAIN = 8  # of a dense matrix product over a walk through rows
_WALK = 3  # of a step of descent over a step of a sum: each waits for the one before


@dataclass(frozen=True)
class MethodChoice:
    """A method, the one that takes over if it is slow, and the reason."""

    method: str
    otherwise: str
    why: str
    patience: int = _PATIENCE


def choose(problem: LinearSvmProblem) -> MethodChoice:
    """Return the method for this shape and loss."""
    n, d = problem.X.shape
    stored = int(problem.X.nnz) if sp.issparse(problem.X) else n * d
    is_held = d <= _LARGEST_MATRIX
    if problem.solver != "auto":
        return MethodChoice(problem.solver, problem.solver, "as requested")
    width = stored / max(1, n)
    steps = _NEWTON_STEPS[is_squared(problem.loss)]
    gram = n * width**2 / 2 * (1.5 if sp.issparse(problem.X) else 1 / _BLAS_GAIN)
    newton = steps * (2 * stored + d**3 / 3 / _BLAS_GAIN) + gram if is_held else math.inf
    gradients = steps * _CG_ROUNDS * 2 * stored
    descent = _DESCENT_PASSES * _WALK * stored
    shape = f"{n:,} rows, {d:,} columns, {width:.3g} values per row"
    if newton <= min(gradients, 4 * descent):
        return MethodChoice("newton", "newton", f"{shape}: a Hessian of {d + 1:,} columns is cheap")
    otherwise = "newton" if d < n and is_held and newton <= gradients else "row_newton"
    if is_squared(problem.loss) and n > 50 * d and gradients < descent:
        return MethodChoice(
            "conjugate_gradients", "conjugate_gradients", f"{shape}: the Hessian is expensive, its products are cheap"
        )
    patience = _PATIENCE
    if otherwise == "row_newton":
        n_free = n * _FREE_SHARE if sp.issparse(problem.X) else min(n, d)
        work = _ROW_STEPS[is_squared(problem.loss)] * n_free**3 / 3 / _BLAS_GAIN
        if not sp.issparse(problem.X):
            work += n_free**2 * d / 2 / _BLAS_GAIN
        wait = work / (_WALK * max(1, stored))
        patience = int(np.clip(wait, _LEAST_PATIENCE, _PATIENCE))
    why = f"{shape}: coordinate descent, at most {patience} passes; then {otherwise}"
    return MethodChoice("descent", otherwise, why, patience)


def plan(problem: Problem[Any]) -> str:
    """Return the method that `choose` takes and why, for a linear SVM with the l2 penalty; nothing for others."""
    if not isinstance(problem, LinearSvmProblem) or problem.penalty != "l2":
        return ""
    choice = choose(problem)
    return f"{choice.method} ({choice.why})"


@register(NAME, LinearSvmProblem)
def _(engine: Engine, problem: LinearSvmProblem, effort: Effort) -> tuple[LinearSvmSolution, ...]:
    if problem.penalty == "l1":
        return solve_l1(problem, effort)
    return tuple(path[-1] for path in solve_path(problem, (1.0,), effort))


@register(NAME, LinearPathProblem)
def _(engine: Engine, problem: LinearPathProblem, effort: Effort) -> tuple[tuple[LinearSvmSolution, ...], ...]:
    if problem.problem.penalty == "l1":
        return linear_path_by_steps(engine, problem, effort)
    machines = solve_path(problem.problem, problem.factors.tolist(), effort, keeps_beta=problem.take is None)
    if problem.take is not None:
        for number, path in enumerate(machines):
            for step, solution in enumerate(path):
                problem.take(step, number, solution)
        return ()
    reached = min(len(path) for path in machines)
    return tuple(tuple(path[k] for path in machines) for k in range(reached))


def solve_path(
    problem: LinearSvmProblem,
    factors: Sequence[float],
    effort: Effort,
    *,
    keeps_beta: bool = True,
    violation: float = 0.0,
) -> list[list[LinearSvmSolution]]:
    """Solve each machine along factors of its costs; return for each the steps reached, the last perhaps stopped early.
    Where a ``violation`` is given, β must also meet the KKT conditions within it."""
    # With a free intercept, targets are counted from their median, which is added to b again at the end.
    problem, middles = centred(problem)
    choice = choose(problem)
    machines = core.LinearSet(
        points_of(problem.X),
        method=core.LinearMethod[choice.method],
        otherwise=core.LinearMethod[choice.otherwise],
        patience=choice.patience,
        tol=problem.tol,
        most_steps=problem.max_iter,
        seed=problem.seed,
        keeps_beta=keeps_beta,
        violation=violation,
        threads=threads_for(effort.n_jobs),
    )
    s = problem.intercept
    rho = 0.0 if math.isinf(s) or s == 0 else 1 / s**2
    for machine in problem.machines:
        machines.add(
            target=np.ascontiguousarray(machine.target, dtype=np.float64),
            cost=np.ascontiguousarray(machine.cost, dtype=np.float64),
            is_of_signs=is_of_signs(problem.loss),
            is_squared=is_squared(problem.loss),
            epsilon=float(problem.epsilon),
            has_intercept=s != 0,
            rho=rho,
            w=given_or_nothing(machine.w),
            b=float(machine.b),
            beta=given_or_nothing(machine.beta),
            factors=[float(factor) for factor in factors],
        )
    total = len(factors) * len(problem.machines)

    def on_slice() -> None:
        report(Progress("linear svm", float(machines.ended), float(total), float(machines.gap), "gap", problem.tol))

    reason = run_until_done(machines.run, effort, on_slice)
    found = [
        _reached(problem, machine, machines.path(k), factors, reason, choice.method)
        for k, machine in enumerate(problem.machines)
    ]
    return [
        [replace(solution, b=solution.b + middle) for solution in path] if middle else path
        for path, middle in zip(found, middles, strict=True)
    ]


def _reached(
    problem: LinearSvmProblem,
    machine: LinearMachine,
    path: Sequence[core.PathState],
    factors: Sequence[float],
    reason: Status,
    method: str,
) -> list[LinearSvmSolution]:
    """Return the steps of a machine; the status of the last one shows whether it was stopped early."""
    going = core.LinearEnding.going
    found = [
        LinearSvmSolution(**solution_fields(step, reason), solver=step.method.name, is_proved_by_w=step.is_implied)
        for step in path
        if math.isfinite(step.primal) or step.ending is not going
    ]
    is_stopped = bool(path) and path[-1].ending is going and len(found) == len(path)
    if len(found) == len(factors) or is_stopped:
        return found
    # The next step was not started: it is at its start, and β = 0 proves D = 0.
    n, d = problem.X.shape
    w, b = (found[-1].w, found[-1].b) if found else (np.zeros(d) if machine.w is None else machine.w, machine.b)
    values = np.asarray(problem.X @ w + b, dtype=np.float64).ravel()
    cost = factors[len(found)] * machine.cost
    lost = float(cost @ losses(problem.loss, machine.target, values, problem.epsilon))
    primal = penalty_value(problem.penalty, w, b, problem.intercept) + lost
    return [*found, LinearSvmSolution(w, b, np.zeros(n), primal, 0.0, 0, reason, method)]
