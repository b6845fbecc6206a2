"""Solve the duals of a fit: all machines in one call, because they share the kernel; with checkpoint and warnings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from margrove.advice import Advice
from margrove.engine import Engine, choose
from margrove.engine.protocol import cache_bytes
from margrove.errors import ConvergenceWarning, InfeasibleError, level_of_caller
from margrove.run.checkpoint import Record, settle_checkpoint
from margrove.run.progress import towards
from margrove.status import Status, worst
from margrove.svm.checkpointing import keep, keeper, resumed, solve_fingerprint
from margrove.svm.fitted import Solved, settled, shows_margin
from margrove.svm.kkt import NU_CLASSIFICATION
from margrove.svm.problem import DualProblem, DualSolution, tolerance_unit
from margrove.svm.training import Machines

if TYPE_CHECKING:
    from margrove.svm.machine import SupportVectorMachine

_MIB = 1 << 20


def solve_machines(model: SupportVectorMachine, machines: Machines) -> list[Solved]:
    """Solve all duals; set ``engine_`` and ``status_`` of the model, and warn if a solve ended early."""
    effort, started = model._effort(), machines
    record = None
    if model.checkpoint is not None:
        fingerprint = solve_fingerprint(machines.data.points, machines.data.solver_kernel, machines.duals)
        record = Record(settle_checkpoint(model.checkpoint), fingerprint)
        started = replace(machines, duals=resumed(machines.duals, record))
        effort = replace(effort, look_around=keeper(record))
        if model.verbose and started.duals is not machines.duals:
            print(f"[{type(model).__name__}] goes on from its checkpoint")
    started, problem = dual_problem(model, started)
    engine = choose(model.engine, problem, effort)
    start = time.perf_counter()
    if model.verbose:
        _print_problem(type(model).__name__, started, problem, engine)
    with towards(problem.tol):
        solutions = engine.solve(problem, effort)
    if model.verbose:
        _print_solutions(type(model).__name__, solutions, time.perf_counter() - start)
    if record is not None and worst(solution.status for solution in solutions) is not Status.CONVERGED:
        keep(record, [solution.alpha for solution in solutions])
    try:
        return settle_solutions(model, replace(started, duals=machines.duals), solutions, engine)
    except InfeasibleError:
        if record is not None:
            record.remove()  # there is nothing to go on to
        raise


def dual_problem(model: SupportVectorMachine, machines: Machines) -> tuple[Machines, DualProblem]:
    """Return the duals as one problem, and the machines with the data as it is solved on."""
    data, precision = machines.data, model.precision
    if any(dual.hulls for dual in machines.duals):
        data = data.centred()
        precision = "double" if precision == "auto" else precision  # single cannot tell whether hulls meet
    problem = DualProblem(
        data.points,
        data.solver_kernel,
        tuple(machines.duals),
        tol=float(model.tol) * min(tolerance_unit(dual, data.diagonal[dual.point]) for dual in machines.duals),
        max_iter=int(model.max_iter),
        cache_bytes=model._cache_bytes(),
        precision=precision,
        shrinking=bool(model.shrinking),
    )
    return replace(machines, data=data), problem


def settle_solutions(
    model: SupportVectorMachine, machines: Machines, solutions: Sequence[DualSolution], engine: Engine
) -> list[Solved]:
    """Return the solutions as the model keeps them; set ``engine_`` and ``status_`` and warn if one ended early."""
    solved = [
        settled(name, dual, solution, machines.data, model._form)
        for name, dual, solution in zip(machines.names, machines.duals, solutions, strict=True)
    ]
    # Only now: a problem without a solution leaves the model as it was.
    model.engine_, model.status_ = engine.name, worst(solution.status for solution in solutions)
    _warn(model, solved)
    return solved


def _warn(model: SupportVectorMachine, solved: list[Solved]) -> None:
    """Warn of a solve that ended early, or of a margin (ν-SVC) that is too small to show at this tol."""
    name = type(model).__name__
    if model.status_ is not Status.CONVERGED:
        violations = np.array([each.solution.violation for each in solved])
        worst_one = solved[int(np.argmax(np.nan_to_num(violations, nan=np.inf)))]
        where = f" in {worst_one.machine.name}" if len(solved) > 1 else ""
        reached = worst_one.solution.violation
        violation = f"violation {reached:.3g}" if np.isfinite(reached) else "no violation is known"
        advice = model.status_.advice
        if model.status_ is Status.MAX_ITER and model.max_iter == -1:
            steps = max(each.solution.n_iter for each in solved)
            lower = "lower C, " if hasattr(model, "C") else ""
            advice = f"{steps:,} steps were not enough: check the scale of the columns, {lower}or raise tol"
        words = f"{name} ended with status {str(model.status_)!r}: {violation}{where}, tol is {model.tol:g}; "
        warnings.warn(Advice(words, advice, "."), ConvergenceWarning, stacklevel=level_of_caller())
        return
    if model._form is not NU_CLASSIFICATION:
        return
    for each in solved:
        if not shows_margin(each.machine, each.finding):
            message = (
                f"{name}: the margin of {each.machine.name} is below what tol={model.tol:g} can tell from 0; raise nu, "
                "or lower tol."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
            return


def _print_problem(name: str, machines: Machines, problem: DualProblem, engine: Engine) -> None:
    kernel, (n, d) = machines.data.kernel, machines.data.X.shape
    gamma = f" (gamma {kernel.gamma:.6g})" if kernel.name in ("rbf", "poly", "sigmoid", "laplacian", "chi2") else ""
    count = f"{len(problem.machines)} machine{'s' if len(problem.machines) > 1 else ''}"
    print(
        f"[{name}] {n} rows, {d} columns, kernel {kernel.name}{gamma}, {count}, precision {problem.precision}, "
        f"kernel rows in at most {cache_bytes(engine, problem.cache_bytes, 8 * n**2) / _MIB:.0f} MiB"
    )


def _print_solutions(name: str, solutions: Sequence[DualSolution], elapsed: float) -> None:
    status = worst(solution.status for solution in solutions)
    steps, violation = sum(each.n_iter for each in solutions), max(each.violation for each in solutions)
    if any(each.solver == "newton" for each in solutions):
        print(f"[{name}] the kernel is linear and columns are few: sought as w itself, by Newton's method")
    print(f"[{name}] {status} after {steps} steps in {elapsed:.2f} s; violation {violation:.3g}")
