"""The linear learners in the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg
from numpy.typing import NDArray

from margrove.data.memory import free_memory
from margrove.engine.native.core import NAME, core, given_or_nothing, points_of, spec_of, threads_for
from margrove.engine.registry import Engine, register
from margrove.linear.problem import (
    CentroidProblem,
    KernelPerceptronProblem,
    KernelPerceptronSolution,
    LeastSquaresProblem,
    LinearSolution,
    PerceptronProblem,
    PerceptronSolution,
    Walk,
    WalkProblem,
    column_sizes,
)
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status, worst
from margrove.svm.kernels import called

_LSMR_ENDS = {3: Status.STALLED, 6: Status.STALLED, 7: Status.MAX_ITER}  # its other reasons are good ones
_KEPT = {"averaged": "every correction", "voted": "every weight vector"}
_LIGHTER = {"averaged": "last", "voted": "averaged"}
_KEPT_SHARE = 0.5  # of free memory, for what the averaged and the voted perceptron keep


@register(NAME, CentroidProblem)
def _(engine: Engine, problem: CentroidProblem, effort: Effort) -> LinearSolution:
    sums = core.class_sums(
        points_of(problem.X),
        label=problem.codes,
        weight=given_or_nothing(problem.weight),
        classes=problem.n_classes,
        threads=threads_for(effort.n_jobs),
    )
    mass = np.bincount(problem.codes, weights=problem.weight, minlength=problem.n_classes).astype(np.float64)
    if problem.n_classes == 2:
        negative, positive = sums / mass[:, None]
        positives, negatives = positive[None], negative[None]
    else:
        positives = sums / mass[:, None]
        negatives = _sums_of_others(sums) / _sums_of_others(mass[:, None])
    coef = positives - negatives
    with np.errstate(over="ignore", invalid="ignore"):  # the status reports it
        return _linear_solution(coef, -np.einsum("md,md->m", coef, positives + negatives) / 2)


def _sums_of_others(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each row the sum of all the others: what comes before it plus what comes behind. (The total minus the row
    itself would lose the others' digits where one row is much larger.)"""
    before, behind = np.zeros_like(sums), np.zeros_like(sums)
    before[1:] = np.cumsum(sums, axis=0)[:-1]
    behind[:-1] = np.cumsum(sums[::-1], axis=0)[::-1][1:]
    return before + behind


def _linear_solution(
    coef: NDArray[np.float64], intercept: NDArray[np.float64], status: Status = Status.CONVERGED, n_iter: int = 1
) -> LinearSolution:
    is_finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
    return LinearSolution(coef, intercept, status if is_finite else Status.NONFINITE, n_iter)


@register(NAME, LeastSquaresProblem)
def _(engine: Engine, problem: LeastSquaresProblem, effort: Effort) -> LinearSolution:
    """LAPACK's divide-and-conquer SVD for dense points, LSMR for sparse ones, which stay sparse. Columns are brought to
    one size first: neither can distinguish a small column from rounding error beside a large one."""
    n, d = problem.X.shape
    s = np.ones(n) if problem.weight is None else problem.weight
    Y = problem.sign.T.astype(np.float64)
    x_mean, y_mean = np.zeros(d), np.zeros(Y.shape[1])
    if problem.fit_intercept:
        y_mean = np.average(Y, axis=0, weights=s)
        x_mean = np.asarray(problem.X.T @ (s / s.sum())).ravel()
    root = np.sqrt(s)
    target = root[:, None] * (Y - y_mean)
    if sp.issparse(problem.X):
        coef, status, n_iter = _sparse_least_squares(problem.X, root, x_mean, target)
    else:
        coef, status, n_iter = _dense_least_squares(problem.X, root, x_mean, target), Status.CONVERGED, 1
    return _linear_solution(coef, y_mean - coef @ x_mean, status, n_iter)


def _dense_least_squares(
    X: NDArray[Any], root: NDArray[np.float64], mean: NDArray[np.float64], target: NDArray[np.float64]
) -> NDArray[np.float64]:
    centred = X.astype(np.float64)
    centred -= mean
    centred *= root[:, None]
    size = column_sizes(centred, mean, float(root @ root))
    centred /= size
    if not np.isfinite(centred).all():
        return np.full((target.shape[1], X.shape[1]), np.nan)
    # Singular values that rounding alone can make are not there. LAPACK's own limit, the bare machine epsilon, lets
    # some of them through, and then w explodes.
    floor = max(X.shape) * np.finfo(np.float64).eps
    solution = scipy.linalg.lstsq(centred, target, cond=floor, overwrite_a=True, check_finite=False)[0]
    return np.ascontiguousarray((solution / size[:, None]).T)


def _sparse_least_squares(
    X: Any, root: NDArray[np.float64], mean: NDArray[np.float64], target: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Status, int]:
    rows = sp.diags(root) @ X.astype(np.float64)
    squares = np.asarray(rows.multiply(rows).sum(axis=0)).ravel() - mean**2 * (root @ root)
    # The difference of two squares has half the digits: what is constant but for rounding gets the weight 0.
    size = np.where(squares <= 1e-13 * mean**2 * (root @ root), np.inf, np.sqrt(np.maximum(squares, 0)))
    centred = scipy.sparse.linalg.LinearOperator(
        X.shape,
        matvec=lambda w: rows @ (w.ravel() / size) - root * (mean @ (w.ravel() / size)),
        rmatvec=lambda r: (rows.T @ r.ravel() - mean * (root @ r.ravel())) / size,
        dtype=np.float64,
    )
    most = 20 * min(X.shape) + 100
    found, statuses, steps = [], [], []
    for column in target.T:
        w, reason, n_iter, *_ = scipy.sparse.linalg.lsmr(
            centred, column, atol=1e-10, btol=1e-10, conlim=0, maxiter=most
        )
        found.append(w / size)
        steps.append(int(n_iter))
        statuses.append(_LSMR_ENDS.get(int(reason), Status.CONVERGED))
    return np.array(found), worst(statuses), max(steps)


@register(NAME, PerceptronProblem)
def _(engine: Engine, problem: PerceptronProblem, effort: Effort) -> PerceptronSolution:
    machines = range(len(problem.sign))
    solver = _perceptron(problem)
    if problem.start is not None:
        for machine in machines:
            solver.start_from(machine, problem.start[0][machine], float(problem.start[1][machine]))
    threads = threads_for(effort.n_jobs)

    def run(seconds: float) -> None:
        solver.run(problem.max_iter, seconds, threads)
        if isinstance(solver, core.Perceptron) and any(solver.out_of_room(machine) for machine in machines):
            raise MemoryError(
                f"variant={problem.variant!r} keeps {_KEPT[problem.variant]}, and they no longer fit in memory. "
                f"Use variant={_LIGHTER[problem.variant]!r}, or a smaller max_iter."
            )

    standings, status = _run("perceptron", problem, solver, run, effort)
    states = [solver.state(machine) for machine in machines]
    w = np.array([state.w for state in states])
    b = np.array([state.b for state in states])
    if problem.variant == "averaged":
        steps = np.array([max(state.steps, 1) for state in states], np.float64)
        # The core keeps Σ (t − 1) × correction of step t (its lag); the mean over all T steps is w − lag/T.
        w -= np.array([state.lag_w for state in states]) / steps[:, None]
        b -= np.array([state.lag_b for state in states]) / steps
    return PerceptronSolution(
        coef=w,
        intercept=b,
        status=status if np.isfinite(w).all() and np.isfinite(b).all() else Status.NONFINITE,
        n_iter=max(standing.passes for standing in standings),
        alpha=np.array([state.alpha for state in states]),
        mistakes=np.array([standing.mistakes for standing in standings], np.int64),
        last_pass=np.array([standing.pass_mistakes for standing in standings], np.int64),
        walks=()
        if problem.variant == "last"
        else tuple(Walk(state.makers, state.times, state.steps, state.prototypes) for state in states),
    )


def _perceptron(problem: PerceptronProblem) -> core.Perceptron | core.PenalisedPerceptron:
    rows, walk = points_of(problem.X), _walk(problem)
    patience, tolerance = 0 if problem.tol is None else problem.n_iter_no_change, problem.tol or 0.0
    if problem.is_penalised:
        return core.PenalisedPerceptron(
            rows, walk, alpha=problem.alpha, l1_ratio=problem.l1_ratio, patience=patience, tolerance=tolerance
        )
    kept_bytes = int(free_memory() * _KEPT_SHARE) // len(problem.sign) if problem.variant != "last" else 0
    variant = core.Variant[problem.variant]
    return core.Perceptron(rows, walk, variant=variant, patience=patience, tolerance=tolerance, kept_bytes=kept_bytes)


def _walk(problem: WalkProblem[Any]) -> core.Walk:
    """Return what every perceptron is given beside its rows."""
    return core.Walk(
        sign=problem.sign,
        weight=given_or_nothing(problem.weight),
        seeds=list(problem.seeds),
        eta=problem.eta,
        fit_intercept=problem.fit_intercept,
        shuffle=problem.shuffle,
    )


def _run(
    stage: str,
    problem: WalkProblem[Any],
    solver: core.Perceptron | core.PenalisedPerceptron | core.KernelPerceptron32 | core.KernelPerceptron64,
    run: Callable[[float], None],
    effort: Effort,
) -> tuple[list[core.WalkStanding], Status]:
    """Call ``run(seconds)`` in slices until all machines have ended; return how they stand, and why they ended."""
    most = problem.max_iter

    def standings() -> list[core.WalkStanding]:
        return [solver.standing(machine) for machine in range(len(problem.sign))]

    def advance(seconds: float) -> Status | None:
        run(seconds)
        found = standings()
        if any(not each.separated and not each.stalled and each.passes < most for each in found):
            return None
        ends = (Status.STALLED if each.stalled else Status.MAX_ITER for each in found if not each.separated)
        return next(ends, Status.CONVERGED)

    def on_slice() -> None:
        found = standings()
        done = sum(most if each.separated or each.stalled else each.passes for each in found)
        mistakes = sum(each.pass_mistakes for each in found)
        report(Progress(stage, done, most * len(found), mistakes, "mistakes in the pass"))

    status = run_in_slices(advance, effort, on_slice)
    return standings(), status


@register(NAME, KernelPerceptronProblem)
def _(engine: Engine, problem: KernelPerceptronProblem, effort: Effort) -> KernelPerceptronSolution:
    kernel, walk = problem.kernel, _walk(problem)
    solver: core.KernelPerceptron32 | core.KernelPerceptron64
    if kernel.name == "precomputed":
        solver = core.kernel_perceptron_on_gram(np.ascontiguousarray(problem.X), walk)
    elif kernel.is_native:
        solver = core.kernel_perceptron_on_points(
            points_of(problem.X),
            walk,
            kernel=spec_of(kernel),
            cache_bytes=problem.cache_bytes,
            threads=threads_for(effort.n_jobs),
        )
    else:
        solver = core.kernel_perceptron_on_supply(problem.X.shape[0], walk, cache_bytes=problem.cache_bytes)

    def run(seconds: float) -> None:
        wanted = solver.run(problem.max_iter, seconds)
        if wanted >= 0:
            assert kernel.function is not None
            assert isinstance(solver, core.KernelPerceptron64)
            # As in prediction, points first: a callable need not be symmetric in the way it is written.
            solver.supply(wanted, called(kernel.function, problem.X, problem.X[wanted : wanted + 1])[:, 0].copy())

    standings, status = _run("kernel perceptron", problem, solver, run, effort)
    machines = range(len(problem.sign))
    decision = np.array([solver.decision(machine) for machine in machines])
    return KernelPerceptronSolution(
        np.array([solver.alpha(machine) for machine in machines]),
        decision,
        np.array([standing.mistakes for standing in standings], np.int64),
        status if np.isfinite(decision).all() else Status.NONFINITE,
        max(standing.passes for standing in standings),
    )
