"""A search one dual at a time: what the reference engine does, and the native one where the kernel has no room."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.progress import Progress, report
from margrove.status import Status
from margrove.svm.grid import SearchProblem, Unit, UnitSolution, rung
from margrove.svm.kernels import Kernel, Matrix
from margrove.svm.problem import Dual, DualProblem, DualSolution, climbed, offset

# K(held out, support) β, shape (held out,)
Decide = Callable[[Kernel, Matrix, Matrix, NDArray[np.float64]], NDArray[np.float64]]
Answer = Callable[[DualProblem], tuple[DualSolution, ...]]
_ENDS_ALL = (Status.INTERRUPTED, Status.TIME_LIMIT)


def solve_by_units(problem: SearchProblem, answer: Answer, decide: Decide) -> Status:
    """Each unit's machines at once, one C after another, each beginning where the last one ended."""
    done = 0
    for number, unit in enumerate(problem.units):
        solution = _solve_unit(problem, unit, answer, decide)
        if isinstance(solution, Status):
            return solution
        problem.take(number, solution)
        done += len(unit.Cs) * len(problem.ladders)
        report(Progress("search", float(done), float(problem.n_cells)))
    return Status.CONVERGED


def _solve_unit(problem: SearchProblem, unit: Unit, answer: Answer, decide: Decide) -> UnitSolution | Status:
    fold, kernel = problem.folds[unit.fold], problem.kernels[unit.kernel]
    shape = len(unit.Cs), len(problem.ladders)
    values = np.zeros((*shape, len(fold.held_out)))
    table: dict[str, Any] = {name: np.zeros(shape) for name in ("violation", "seconds")}
    table["support"] = np.zeros(shape, np.int64)
    is_converged = np.ones(shape, np.bool_)
    duals = [rung(ladder, fold, float(unit.Cs[0]), unit.epsilon) for ladder in problem.ladders]
    there = [k for k, dual in enumerate(duals) if len(dual.y)]  # a fold may leave a machine nothing
    solutions: dict[int, DualSolution] = {}
    for c, C in enumerate(unit.Cs):
        for k in there:
            duals[k] = _next(duals[k], solutions.get(k), problem, unit, k, float(C))
        start = time.perf_counter()
        found = answer(
            DualProblem(
                problem.X,
                kernel,
                tuple(duals[k] for k in there),
                tol=problem.tol,
                max_iter=problem.step_limit,
                cache_bytes=problem.cache_bytes,
                precision=problem.precision,
            )
        )
        elapsed = time.perf_counter() - start
        for k, solution in zip(there, found, strict=True):
            if solution.status in _ENDS_ALL:
                return solution.status
            solutions[k] = solution
            dual, alpha = duals[k], solution.alpha
            table["violation"][c, k], table["seconds"][c, k] = solution.violation, elapsed / len(there)
            table["support"][c, k] = np.count_nonzero(alpha)
            is_converged[c, k] = solution.status is Status.CONVERGED
            carriers = np.flatnonzero(alpha)
            rows, beta = dual.point[carriers], (dual.y * alpha)[carriers]
            if kernel.name == "precomputed":
                sums = problem.X[np.ix_(fold.held_out, rows)] @ beta
            else:
                sums = decide(kernel, problem.X[fold.held_out], problem.X[rows], beta)
            values[c, k] = sums + offset(solution.v, alpha, dual.upper, dual.y)
    return UnitSolution(values, is_converged=is_converged, **table)


def _next(
    dual: Dual, solution: DualSolution | None, problem: SearchProblem, unit: Unit, machine: int, C: float
) -> Dual:
    if solution is None:
        return dual
    upper = rung(problem.ladders[machine], problem.folds[unit.fold], C, unit.epsilon).upper
    return replace(dual, upper=upper, alpha=climbed(dual, solution.alpha, solution.v, upper))
