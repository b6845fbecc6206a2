"""Solve the duals of a fit: all machines in one call, because they share the kernel; with checkpoint and warnings.

A solution is kept with its offset, scaled, and judged by the solver's own numbers:

classification, one class, regression   α and b as they are
ν-classification                        α, b and w times 1/ρ, as LIBSVM's: marginal rows have y f(x) = 1
hard margin                             the nearest points of two hulls, times 2/‖w‖²; or the proof that they meet
hard tube                               with bounds that no α reaches; or the proof that there is no such f
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, InPython, Row, Setting
from margrove.engine import Engine, choose
from margrove.engine.registry import cache_bytes
from margrove.errors import ConvergenceWarning, InfeasibleError, level_of_caller, warn_early
from margrove.run.checkpoint import Record, settle_checkpoint
from margrove.run.effort import Effort
from margrove.status import Status, worst
from margrove.svm.checkpointing import keep, keeper, resumed, solve_fingerprint
from margrove.svm.kernels import kernel_sums
from margrove.svm.kkt import (
    NU_CLASSIFICATION,
    Finding,
    Form,
    SolvedDual,
    at_bounds,
    judge,
    offset,
    offset_and_radius,
    tolerance_unit,
)
from margrove.svm.problem import HULLS_MEET, MOST_BOUND, Dual, DualProblem, DualSolution, classification
from margrove.svm.training import PosedMachines, TrainingData

if TYPE_CHECKING:
    from margrove.svm.machine import SupportVectorMachine

_MIB = 1 << 20
_SHOWN_ROWS = 3  # of each side, in a message
_FIRST_BOUND, _RAISE, _MOST_RAISES = 1e3, 1e3, 6  # of α in a hard tube; the first in units of max|z|/max K
_NO_MARGIN = 1e-12  # of the largest |f|: a ρ that small is rounding


@dataclass(frozen=True)
class Solved:
    """One machine as the model keeps it, and the solution it was made of."""

    machine: SolvedDual
    finding: Finding
    solution: DualSolution
    beta: NDArray[np.float64]  # what each variable contributes to ``dual_coef_``
    b: float
    norm: float


def solve_machines(model: SupportVectorMachine, machines: PosedMachines) -> list[Solved]:
    """Solve all duals; set ``engine_`` and ``status_`` of the model, and warn if a solve ended early."""
    effort, record = model._effort(), None
    is_warm = getattr(model, "warm_start", False) and hasattr(model, "dual_coef_")
    duals = starts = model._warm(machines) if is_warm else machines.duals
    if model.checkpoint is not None:
        fingerprint = solve_fingerprint(machines.data.points, machines.data.solver_kernel, duals)
        record = Record(settle_checkpoint(model.checkpoint), fingerprint)
        effort = replace(effort, look_around=keeper(record, lambda present: keep(record, present())))
        starts = resumed(duals, record)
        if model.verbose and starts is not duals:
            print(f"[{type(model).__name__}] resuming from its checkpoint")
    started, problem = dual_problem(model, replace(machines, duals=starts))
    engine = choose(model.engine, problem, effort)
    start = time.perf_counter()
    if model.verbose:
        _print_problem(type(model).__name__, started, problem, engine)
    is_tube = any(dual.is_doubled and np.isinf(dual.upper).any() for dual in duals)
    solutions = _hard_tube(engine, problem, effort, started.data) if is_tube else engine.solve(problem, effort)
    if model.verbose:
        _print_solutions(type(model).__name__, solutions, time.perf_counter() - start)
    if record is not None and worst(solution.status for solution in solutions) is not Status.CONVERGED:
        keep(record, [solution.alpha for solution in solutions])
    try:
        return settle_solutions(model, replace(started, duals=duals), solutions, engine)
    except InfeasibleError:
        if record is not None:
            record.remove()  # there is nothing to go on to
        raise


def dual_problem(model: SupportVectorMachine, machines: PosedMachines) -> tuple[PosedMachines, DualProblem]:
    """Return the duals as one problem, and the machines with the data as it is solved on."""
    data, precision = machines.data, model.precision
    if any(dual.hulls for dual in machines.duals):
        data = data.centred()
        precision = "double" if precision == "auto" else precision  # single precision cannot decide whether hulls meet
    elif precision == "auto":
        data = data.with_small_gram()
    problem = DualProblem(
        data.points,
        data.solver_kernel,
        tuple(machines.duals),
        tol=float(model.tol) * min(tolerance_unit(dual, data.diagonal[dual.point]) for dual in machines.duals),
        max_iter=int(model.max_iter),
        cache_bytes=kernel_cache(model.cache_size),
        precision=precision,
        shrinking=bool(model.shrinking),
    )
    return replace(machines, data=data), problem


def _hard_tube(engine: Engine, problem: DualProblem, effort: Effort, data: TrainingData) -> tuple[DualSolution, ...]:
    """Solve a regression without slack: min ½‖w‖² with |z − f| ≤ ε for every row.

    A solution with no α at its bound also solves the problem without bounds, so the bound is raised until this holds.
    Otherwise β = α − α* may prove that there is no f: each f within the tube has Σβz − εΣ|β| ≤ Σβf = ⟨w, Σβφ⟩, hence
    ‖w‖ ≥ (Σβz − εΣ|β|)/‖Σβφ‖, which is impossible where the numerator is > 0 and the denominator is 0.
    """
    (dual,), started = problem.machines, time.monotonic()
    largest, n = float(data.diagonal[dual.point].max()), len(dual.y) // 2
    bound = _FIRST_BOUND * (float(np.abs(dual.p).max()) or 1.0) / (largest or 1.0)
    alpha = dual.alpha
    for _ in range(_MOST_RAISES):
        bounded = replace(dual, alpha=alpha, upper=np.full(len(alpha), min(bound, MOST_BOUND)))
        (solution,) = engine.solve(replace(problem, machines=(bounded,)), effort.left(started))
        alpha = solution.alpha
        if solution.status is not Status.CONVERGED or (alpha < bounded.upper).all():
            return (solution,)
        beta = alpha[:n] - alpha[n:]
        support, total = np.flatnonzero(beta), float(np.abs(beta).sum())
        f = kernel_sums(data.solver_kernel, data.points, dual.point[support], beta[support])
        distance = math.sqrt(max(float(beta[support] @ f), 0.0)) / total
        excess = -float(dual.p @ alpha) / total  # of Σβz over εΣ|β|
        if distance <= math.sqrt(HULLS_MEET * largest) and excess > 0:
            raise _no_tube(dual.point[support], beta[support] / total, distance, excess)
        bound *= _RAISE
    return (replace(solution, status=Status.STALLED),)


def _no_tube(rows: NDArray[np.int64], weights: NDArray[np.float64], distance: float, excess: float) -> InfeasibleError:
    return InfeasibleError(
        f"no hard tube: a combination of {len(rows)} rows is 0 in the feature space (its norm is {distance:.2g}), but "
        f"the same combination of their values exceeds epsilon by {excess:.3g}",
        cure=Advice("Use a larger epsilon, a finite ", InPython("C", Setting("C", ...)), ", or another kernel."),
        evidence={"rows": rows, "weights": weights, "distance": distance, "excess": excess},
    )


def kernel_cache(size: str | float) -> int | None:
    """Return the bytes for kernel values from the parameter ``cache_size``; None leaves them to the engine."""
    return None if isinstance(size, str) else int(min(size * _MIB, 2.0**62))


def settle_solutions(
    model: SupportVectorMachine, machines: PosedMachines, solutions: Sequence[DualSolution], engine: Engine
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


def settled(name: str, dual: Dual, solution: DualSolution, data: TrainingData, form: Form) -> Solved:
    """Return a solution as the model keeps it: with b, scaled, and judged by the solver's own v."""
    if dual.hulls:
        return _from_hulls(name, dual, solution, data)
    alpha, f = solution.alpha, -solution.v - dual.y * dual.p
    held = at_bounds(alpha, dual.upper)
    if not dual.by_sign:
        machine = SolvedDual(name, dual, alpha, offset(solution.v, held, dual.upper, dual.y))
    else:
        b, rho = offset_and_radius(solution.v, held, dual.upper, dual.y)
        scale = 1.0
        if form is NU_CLASSIFICATION and solution.status is not Status.NONFINITE:
            # With an indefinite kernel ρ may be negative, as in LIBSVM, but not 0.
            least = _NO_MARGIN * float(np.abs(f).max(initial=0)) if data.kernel.is_semidefinite is False else np.inf
            if -least <= rho <= 0 and solution.status is Status.CONVERGED:
                raise InfeasibleError(
                    f"there is no margin between the sides of {name} at this nu: their reduced convex hulls intersect",
                    cure="Use a larger nu, a smaller tol, or another kernel.",
                    evidence={"machine": name, "rho": rho},
                )
            has_margin = rho > 0 or solution.status is Status.CONVERGED  # otherwise it stopped before there was one
            scale = 1 / rho if has_margin else 1.0
        machine = SolvedDual(name, dual, alpha, b, rho, scale)
    return _judged(machine, f, solution, data)


def _judged(machine: SolvedDual, f: NDArray[np.float64], solution: DualSolution, data: TrainingData) -> Solved:
    """Judge the machine by the solver's v; nothing is claimed where that is not the v of this α."""
    with np.errstate(invalid="ignore", over="ignore"):
        finding = judge(machine, f, data.diagonal[machine.dual.point])
    if not solution.is_v_known:
        finding = replace(finding, violation=np.inf, primal=np.inf, dual=-np.inf)
    scale = machine.scale
    beta = np.asarray(machine.dual.y * machine.alpha * scale)
    return Solved(machine, finding, solution, beta, machine.b * scale, finding.norm * abs(scale))


def _from_hulls(name: str, dual: Dual, solution: DualSolution, data: TrainingData) -> Solved:
    """Return the hard margin from the nearest points of two hulls: w = 2 (p₊ − p₋)/‖p₊ − p₋‖², α and b alike."""
    alpha, squared = solution.alpha, 2 * solution.objective
    if solution.status is Status.CONVERGED and squared <= HULLS_MEET * float(data.diagonal[dual.point].max()):
        raise _meeting_hulls(name, dual, alpha, data)
    scale = 2 / squared if solution.is_v_known and squared > 0 else 1.0
    b, _ = offset_and_radius(solution.v, at_bounds(alpha, dual.upper), dual.upper, dual.y)
    f, b = -scale * solution.v, scale * b
    if data.centre is not None:  # w·(x − c) + b = w·x + (b − w·c), because Σβ = 0
        off = float((scale * dual.y * alpha) @ (data.points[dual.point] @ data.centre))
        f, b = f + off, b - off
    machine = SolvedDual(name, classification(dual.y, dual.upper, dual.point), scale * alpha, b)
    return _judged(machine, f, solution, data)


def _meeting_hulls(name: str, dual: Dual, alpha: NDArray[np.float64], data: TrainingData) -> InfeasibleError:
    support = np.flatnonzero(alpha)
    beta = (dual.y * alpha)[support]
    # α holds a convex combination of each side; ‖Σ β_i φ(x_i)‖ is the distance of the two points.
    squared = float(beta @ kernel_sums(data.solver_kernel, data.points, dual.point[support], beta))
    distance = float(np.sqrt(max(squared, 0)))
    nearest = float(np.sqrt(HULLS_MEET * data.diagonal[dual.point].max()))
    rows, weights, shown = [], [], []
    for sign in (1, -1):
        support = np.flatnonzero((dual.y == sign) & (alpha > 0))
        support = support[np.argsort(-alpha[support], kind="stable")]
        rows.append(dual.point[support])
        weights.append(alpha[support])
        terms = [(" + ", f"{alpha[t]:.3g}·row ", Row(dual.point[t])) for t in support[:_SHOWN_ROWS]]
        more = [" + …"] if len(support) > _SHOWN_ROWS else []
        shown.append(Advice(*[part for term in terms for part in term][1:], *more))
    return InfeasibleError(
        Advice(
            f"no hard margin for {name}: the convex hulls of the two sides intersect, ",
            shown[0],
            " = ",
            shown[1],
            f" in the feature space (they are {distance:.2g} apart; distances below {nearest:.2g} count as 0 here)",
        ),
        cure=Advice(
            "Use a finite ",
            InPython("C", Setting("C", ...)),
            ", or another ",
            InPython("kernel", Setting("kernel", ...)),
            ".",
        ),
        evidence={"machine": name, "rows": tuple(rows), "weights": tuple(weights), "distance": distance},
    )


def _warn(model: SupportVectorMachine, solved: list[Solved]) -> None:
    """Warn of a solve that ended early, or of a margin (ν-SVC) that is too small to show at this tol."""
    name = type(model).__name__
    if model.status_ is not Status.CONVERGED:
        violations = np.array([each.solution.violation for each in solved])
        worst_one = solved[int(np.argmax(np.nan_to_num(violations, nan=np.inf)))]
        where = f" in {worst_one.machine.name}" if len(solved) > 1 else ""
        reached = worst_one.solution.violation
        violation = f"violation {reached:.3g}" if np.isfinite(reached) else "the violation is unknown"
        advice = model.status_.advice
        if model.status_ is Status.MAX_ITER and model.max_iter == -1:
            steps = max(each.solution.n_iter for each in solved)
            lower = "lower C, " if hasattr(model, "C") else ""
            advice = f"{steps:,} steps were not enough: check the scale of the columns, {lower}or raise tol"
        warn_early(name, model.status_, f": {violation}{where}, tol is {model.tol:g}", advice)
        return
    if model._form is not NU_CLASSIFICATION:
        return
    for each in solved:
        # ρ νΣC > Σ C ξ: by weak duality some w then has a margin at this ν, and ‖w‖ is not 0.
        dual = each.machine.dual
        if not each.machine.rho * float(dual.alpha.sum()) > float(dual.upper @ each.finding.slack):
            message = (
                f"{name}: the margin of {each.machine.name} is too small to distinguish from 0 at tol={model.tol:g}; "
                "raise nu, or lower tol."
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())
            return


def _print_problem(name: str, machines: PosedMachines, problem: DualProblem, engine: Engine) -> None:
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
        print(f"[{name}] the kernel is linear and there are few columns: Newton's method solves for w directly")
    print(f"[{name}] {status} after {steps} steps in {elapsed:.2f} s; violation {violation:.3g}")
