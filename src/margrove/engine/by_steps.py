"""Paths and searches solved step by step: for engines that solve a `DualProblem` or a `LinearSvmProblem`, but no path
or search as a whole, and where the kernel matrix does not fit."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from margrove.engine.registry import Engine, derive
from margrove.linear_svm.problem import LinearPathProblem, LinearSvmProblem, LinearSvmSolution
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.status import Status
from margrove.svm.kkt import offset
from margrove.svm.problem import DualProblem, DualSolution, PathProblem, path_start
from margrove.svm.search_problem import SearchProblem, SearchUnit, UnitSolution, dual_on_fold

_ENDS_ALL = (Status.INTERRUPTED, Status.TIME_LIMIT)


@derive(LinearPathProblem, LinearSvmProblem)
def linear_path_by_steps(
    engine: Engine, problem: LinearPathProblem, effort: Effort
) -> tuple[tuple[LinearSvmSolution, ...], ...]:
    """Solve all machines at one C, then at the next, each from the w of the last; return the steps reached."""
    started, machines, found = time.monotonic(), problem.problem.machines, []
    for step, factor in enumerate(problem.factors.tolist()):
        scaled = tuple(replace(machine, cost=factor * machine.cost, beta=None) for machine in machines)
        solutions = engine.solve(replace(problem.problem, machines=scaled), effort.left(started))
        machines = tuple(
            replace(machine, w=solution.w, b=solution.b) for machine, solution in zip(machines, solutions, strict=True)
        )
        if problem.take is None:
            found.append(solutions)
        else:
            for number, solution in enumerate(solutions):
                problem.take(step, number, solution)
        if any(solution.status in _ENDS_ALL for solution in solutions):
            break
    return tuple(found)


@derive(PathProblem, DualProblem)
def path_by_duals(engine: Engine, problem: PathProblem, effort: Effort) -> tuple[tuple[DualSolution, ...], ...]:
    """Solve each step of the path from the solution of the last; return the steps that were reached."""
    started = time.monotonic()
    machines, steps = problem.first.machines, [engine.solve(problem.first, effort)]
    for uppers in problem.uppers:
        if any(solution.status in _ENDS_ALL for solution in steps[-1]):
            break
        machines = tuple(
            replace(dual, upper=upper, alpha=path_start(dual, solution.alpha, solution.v, upper))
            for dual, solution, upper in zip(machines, steps[-1], uppers, strict=True)
        )
        steps.append(engine.solve(replace(problem.first, machines=machines), effort.left(started)))
    return tuple(steps)


@derive(SearchProblem, DualProblem)
def search_by_duals(engine: Engine, problem: SearchProblem, effort: Effort) -> Status:
    """Solve each unit's machines at once, one C after another, each starting from the solution of the last."""
    started = time.monotonic()
    done = 0
    for number, unit in enumerate(problem.units):
        solution = _solve_unit(engine, problem, unit, effort, started)
        if isinstance(solution, Status):
            return solution
        problem.take(number, solution)
        done += len(unit.Cs) * len(problem.machines)
        report(Progress("search", float(done), float(problem.n_cells)))
    return Status.CONVERGED


def _solve_unit(
    engine: Engine, problem: SearchProblem, unit: SearchUnit, effort: Effort, started: float
) -> UnitSolution | Status:
    fold, kernel = problem.folds[unit.fold], problem.kernels[unit.kernel]
    shape = len(unit.Cs), len(problem.machines)
    values = np.zeros((*shape, len(fold.held_out)))
    reached, seconds, support = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
    is_converged = np.ones(shape, np.bool_)
    duals = [dual_on_fold(machine, fold, float(unit.Cs[0]), unit.epsilon) for machine in problem.machines]
    there = [k for k, dual in enumerate(duals) if len(dual.y)]  # a fold may leave a machine no rows
    held_out = None if kernel.name == "precomputed" else problem.rows.take(fold.held_out)
    solutions: dict[int, DualSolution] = {}
    for c, C in enumerate(unit.Cs.tolist()):
        for k, last in solutions.items():
            upper = dual_on_fold(problem.machines[k], fold, C, unit.epsilon).upper
            duals[k] = replace(duals[k], upper=upper, alpha=path_start(duals[k], last.alpha, last.v, upper))
        asked = DualProblem(
            problem.rows,
            kernel,
            tuple(duals[k] for k in there),
            tol=problem.tol,
            max_iter=problem.step_limit,
            cache_bytes=problem.cache_bytes,
            precision=problem.precision,
        )
        start = time.perf_counter()
        found = engine.solve(asked, effort.left(started))
        elapsed = time.perf_counter() - start
        for k, solution in zip(there, found, strict=True):
            if solution.status in _ENDS_ALL:
                return solution.status
            solutions[k] = solution
            reached[c, k], seconds[c, k] = solution.violation, elapsed / len(there)
            is_converged[c, k] = solution.status is Status.CONVERGED
            nonzero = np.flatnonzero(solution.alpha)
            support[c, k] = len(nonzero)
            rows, beta = duals[k].point[nonzero], (duals[k].y * solution.alpha)[nonzero]
            if held_out is None:
                sums = problem.X[np.ix_(fold.held_out, rows)] @ beta
            else:
                sums = engine.kernel_sums(kernel, held_out, problem.rows.take(rows), beta[None], effort)[:, 0]
            values[c, k] = sums + offset(solution.v, solution.alpha, duals[k].upper, duals[k].y)
    return UnitSolution(values, reached, support, seconds, is_converged)
