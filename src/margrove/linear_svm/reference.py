"""Linear SVMs as the textbook has them: plain NumPy, slow, exact, readable in one sitting.

This is the specification. The native engine must agree with it in the objective, and the tests hold it to that. The
problems are those of `margrove.linear_svm.problem`; every solve ends on a relative gap ≤ tol, or on max_iter passes.

penalty l2       dual coordinate descent (Hsieh et al., 2008): one β_i at a time is put where D is largest
penalty l1       coordinate descent on w (squared losses): one w_j at a time, by soft thresholding
Crammer–Singer   dual coordinate descent by blocks: the β of one row at a time, by a projection on a simplex
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.errors import EngineError
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearMachine,
    LinearPathProblem,
    LinearSvmProblem,
    LinearSvmSolution,
    balanced,
    bounds_of,
    centred,
    crammer_singer_losses,
    dual_terms,
    implied_beta,
    is_of_signs,
    is_squared,
    losses,
    penalty_value,
    relative_gap,
)
from margrove.status import Status

_PASSES_PER_MULTIPLIER = 10

# What overflows ends the solve as nonfinite.
_QUIETLY = np.errstate(over="ignore", under="ignore", invalid="ignore")


@_QUIETLY
def linear_svm(problem: LinearSvmProblem) -> tuple[LinearSvmSolution, ...]:
    """Solve each machine by itself."""
    if problem.penalty == "l1" and not is_squared(problem.loss):
        words = f" has no solver for penalty='l1' with loss={problem.loss!r}. Use a squared loss."
        raise EngineError(Advice(Setting("engine", "reference"), words))
    one = _sparse_weights if problem.penalty == "l1" else _descent
    problem, middles = centred(problem)
    found = [one(problem, machine) for machine in problem.machines]
    return tuple(replace(solution, b=solution.b + middle) for solution, middle in zip(found, middles, strict=True))


def linear_path(problem: LinearPathProblem) -> tuple[tuple[LinearSvmSolution, ...], ...]:
    """Solve along the factors of C: each step starts from the last, β scaled as the costs."""
    path: list[tuple[LinearSvmSolution, ...]] = []
    machines = problem.problem.machines
    for step, factor in enumerate(problem.factors):
        growth = factor / problem.factors[max(step - 1, 0)]
        scaled = tuple(
            replace(machine, cost=machine.cost * factor, beta=None if machine.beta is None else machine.beta * growth)
            for machine in machines
        )
        found = linear_svm(replace(problem.problem, machines=scaled))
        machines = tuple(
            replace(machine, w=solution.w, b=solution.b, beta=solution.beta)
            for machine, solution in zip(machines, found, strict=True)
        )
        if problem.take is None:
            path.append(found)
        else:
            for number, solution in enumerate(found):
                problem.take(step, number, solution)
    return tuple(path)


def _descent(problem: LinearSvmProblem, machine: LinearMachine) -> LinearSvmSolution:
    """max D(β), one β_i at a time. All four losses are one: β_i lies in an interval and brings

        z β − ε |β| − β²/(4C), the last only for squared losses, ε = 0 for signs

    so along β_i the dual is a parabola with a kink at 0, and is largest at a soft threshold, clipped to the interval.

    A free intercept requires Σ β = 0: the method of multipliers. b₀ is the multiplier, and ½ s² (Σβ)² the penalty, as
    if the intercept were the weight of a constant column of the value s, counted from b₀; after some passes b₀ moves
    to where that has come to.
    """
    X, z, C = _dense(problem.X), machine.target, machine.cost
    is_free, epsilon = math.isinf(problem.intercept), 0.0 if is_of_signs(problem.loss) else problem.epsilon
    s = math.sqrt(np.mean(np.einsum("ij,ij->i", X, X)) + 1) if is_free else problem.intercept
    low, high = bounds_of(problem.loss, z, C)
    beta = np.clip(_first_beta(problem, machine, X), low, high)
    b0 = machine.b if is_free else 0.0
    w, u = X.T @ beta, beta.sum()
    softness = np.divide(1.0, 2 * C, out=np.zeros_like(C), where=C > 0) if is_squared(problem.loss) else 0 * C
    curvature = np.einsum("ij,ij->i", X, X) + s**2 + softness
    rng = np.random.default_rng(problem.seed)
    passes = 0
    while True:
        b = b0 + s**2 * u
        # A squared loss is judged by what the model will keep: w, and the β that it implies.
        implied = is_squared(problem.loss)
        shown = implied_beta(problem.loss, z, X @ w + b, C, epsilon) if implied else beta
        solution = _judged(problem, machine, X, w, b, shown, passes, "dual coordinate descent")
        if solution.status is not Status.MAX_ITER or passes == problem.max_iter:
            return solution
        if is_free and passes % _PASSES_PER_MULTIPLIER == 0:
            b0 = b
        for i in rng.permutation(len(z)):
            if C[i] == 0:
                continue
            slope = z[i] - (X[i] @ w + b0 + s**2 * u) - softness[i] * beta[i]
            if curvature[i] > 0:
                best = beta[i] + slope / curvature[i]
                best = math.copysign(max(abs(best) - epsilon / curvature[i], 0), best)
            else:  # nothing but the bound stops it
                best = math.copysign(math.inf if abs(slope) > epsilon else 0.0, slope)
            best = min(max(best, low[i]), high[i])
            w += (best - beta[i]) * X[i]
            u += best - beta[i]
            beta[i] = best
        passes += 1


def _sparse_weights(problem: LinearSvmProblem, machine: LinearMachine) -> LinearSvmSolution:
    """min P(w), one w_j at a time. A squared loss bends by 2C at most, so along column j

        P(w_j + t) ≤ P(w) − v_j t + ½ L_j t² + |w_j + t| − |w_j|,   L_j = 2 Σ C_i x_ij²,   v_j = Σ β_i x_ij

    and the right side is least at a soft threshold. The intercept is one more column, of the value s; a free one has
    the value 1 and no penalty.
    """
    X, z, C = _dense(problem.X), machine.target, machine.cost
    n, d = X.shape
    s = problem.intercept
    one = 1.0 if math.isinf(s) else s
    columns = np.hstack([X, np.full((n, 1), one)])
    threshold = np.append(np.ones(d), 0.0 if math.isinf(s) else 1.0)
    weights = np.append(np.zeros(d) if machine.w is None else machine.w, machine.b / one if one else 0.0)
    bend = 2 * C @ columns**2
    passes = 0
    while True:
        w, b = weights[:-1], one * weights[-1]
        beta = implied_beta(problem.loss, z, X @ w + b, C, problem.epsilon)
        solution = _judged(problem, machine, X, w, b, beta, passes, "coordinate descent on w")
        if solution.status is not Status.MAX_ITER or passes == problem.max_iter:
            return solution
        f = columns @ weights
        for j in np.flatnonzero(bend > 0):
            beta = implied_beta(problem.loss, z, f, C, problem.epsilon)
            best = weights[j] + beta @ columns[:, j] / bend[j]
            best = math.copysign(max(abs(best) - threshold[j] / bend[j], 0), best)
            f += (best - weights[j]) * columns[:, j]
            weights[j] = best
        passes += 1


def _first_beta(problem: LinearSvmProblem, machine: LinearMachine, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the start: a given β, or the one that a given w implies."""
    if machine.beta is not None:
        return machine.beta
    if machine.w is None or not is_squared(problem.loss):
        return np.zeros(len(machine.target))
    return implied_beta(problem.loss, machine.target, X @ machine.w + machine.b, machine.cost, problem.epsilon)


def _judged(
    problem: LinearSvmProblem,
    machine: LinearMachine,
    X: NDArray[np.float64],
    w: NDArray[np.float64],
    b: float,
    beta: NDArray[np.float64],
    passes: int,
    solver: str,
) -> LinearSvmSolution:
    """P(w, b) and D(β), with β made feasible where it is not yet; MAX_ITER unless there is another end."""
    loss, z, C, s = problem.loss, machine.target, machine.cost, problem.intercept
    primal = penalty_value(problem.penalty, w, b, s) + float(C @ losses(loss, z, X @ w + b, problem.epsilon))
    if math.isinf(s):
        beta = balanced(beta)
    v, u = X.T @ beta, 0.0 if math.isinf(s) else s * beta.sum()
    dual = 0.0
    if problem.penalty == "l1":
        beta = beta / max(1.0, np.abs(v).max(initial=0), abs(u))
    else:
        dual -= float(0.5 * (v @ v) + 0.5 * u**2)
    dual += float(dual_terms(loss, z, beta, C, problem.epsilon).sum())
    status = Status.MAX_ITER
    if not (math.isfinite(primal) and math.isfinite(dual)):
        status = Status.NONFINITE
    elif relative_gap(primal, dual) <= problem.tol:
        status = Status.CONVERGED
    return LinearSvmSolution(w.copy(), float(b), beta.copy(), primal, dual, passes, status, solver)


@_QUIETLY
def crammer_singer(problem: CrammerSingerProblem) -> CrammerSingerSolution:
    """max D(β), the β of one row at a time: with A = ‖x_i‖² + s² and the gradient g_k = w_k·x_i + b_k − [k = z_i], the
    best β_i is the point of {β ≤ U, Σ β = 0} nearest to β_i − g/A, U being C_i for k = z_i and 0 elsewhere. There
    U − β lies in the simplex {≥ 0, Σ = C_i}, so it is a projection on that."""
    X, z, C, s = _dense(problem.X), problem.codes, problem.cost, problem.intercept
    n, K = len(z), problem.n_classes
    beta = np.zeros((n, K)) if problem.beta is None else problem.beta.copy()
    upper = np.zeros((n, K))
    upper[np.arange(n), z] = C
    for i in range(n):  # a β from elsewhere may lie outside
        beta[i] = upper[i] - _on_simplex(upper[i] - beta[i], C[i])
    points = np.hstack([X, np.full((n, 1), s)])  # homogeneous coordinates
    w = beta.T @ points  # (K, d + 1)
    curvature = np.maximum(np.einsum("ij,ij->i", points, points), 1e-12)  # a row of zeros goes to its bounds
    rng = np.random.default_rng(problem.seed)
    passes = 0
    while True:
        penalty = 0.5 * float((w**2).sum())
        primal = penalty + float(C @ crammer_singer_losses(points @ w.T, z))
        dual = float(beta[np.arange(n), z].sum()) - penalty
        is_finite = math.isfinite(primal) and math.isfinite(dual)
        if not is_finite or relative_gap(primal, dual) <= problem.tol or passes == problem.max_iter:
            break
        for i in rng.permutation(np.flatnonzero(C > 0)):
            gradient = w @ points[i]
            gradient[z[i]] -= 1
            best = upper[i] - _on_simplex(upper[i] - beta[i] + gradient / curvature[i], C[i])
            w += np.outer(best - beta[i], points[i])
            beta[i] = best
        passes += 1
    converged = relative_gap(primal, dual) <= problem.tol
    status = Status.NONFINITE if not is_finite else Status.CONVERGED if converged else Status.MAX_ITER
    return CrammerSingerSolution(w[:, :-1], s * w[:, -1], beta, primal, dual, passes, status, "dual blocks")


def _on_simplex(point: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """Return the nearest point with coordinates ≥ 0 that add up to ``size``: max(point − λ, 0), λ from the largest."""
    descending = np.sort(point)[::-1]
    shares = (np.cumsum(descending) - size) / np.arange(1, len(point) + 1)
    kept = int(np.flatnonzero(descending >= shares)[-1])
    return np.asarray(np.maximum(point - shares[kept], 0))


def _dense(X: object) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)  # type: ignore[attr-defined]
