"""Linear SVMs, their paths, and Crammer and Singer's machine. Unique is the objective; a gap within tol proves it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from tests.engine.kind import TABLES, Kind, Learner, Table, Twins, dense, whole_weights

import margrove
from margrove.engine.registry import Engine
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearMachine,
    LinearPathProblem,
    LinearSvmProblem,
    LinearSvmSolution,
    Loss,
    balanced,
)
from margrove.run.effort import Effort
from margrove.status import Status

TOL = 1e-5
N_ROWS = 24  # the reference goes over single rows in Python
ROUNDING = 1e-8  # relative, of sums over the rows
LOSSES: tuple[Loss, ...] = ("hinge", "squared_hinge", "epsilon_insensitive", "squared_epsilon_insensitive")
INTERCEPTS = {"no intercept": 0.0, "intercept": 2.0, "free intercept": math.inf}


def targets_of(rows: Table, loss: Loss) -> np.ndarray:
    return rows.sign.astype(np.float64) if loss.endswith("hinge") else rows.z


# Values and bounds, written out (`margrove.linear_svm.problem` states them)


def power_of(loss: Loss) -> int:
    return 2 if loss.startswith("squared") else 1


def primal_value(problem: Any, target: Any, cost: Any, f: np.ndarray, w: np.ndarray, b: float) -> float:
    """P(w, b); ``f`` is w·x + b of each row. A centre is taken off w and b before."""
    excess = 1 - target * f if problem.loss.endswith("hinge") else np.abs(target - f) - problem.epsilon
    scaled = 0.0 if problem.intercept in (0.0, math.inf) else b / problem.intercept
    penalty = np.abs(w).sum() + abs(scaled) if _penalty(problem) == "l1" else (w @ w + scaled**2) / 2
    return float(penalty + cost @ np.maximum(excess, 0) ** power_of(problem.loss))


def dual_value(problem: Any, X: np.ndarray, target: np.ndarray, cost: np.ndarray, beta: np.ndarray) -> float:
    """D(β). Raises unless β is feasible, within rounding."""
    size = max(float(np.abs(beta).sum()), 1e-300)
    signed = target * beta if problem.loss.endswith("hinge") else np.abs(beta)
    assert signed.min(initial=0) >= -ROUNDING * size
    assert not beta[cost == 0].any()
    if power_of(problem.loss) == 1:
        assert (signed <= cost + ROUNDING * size).all()
    if math.isinf(problem.intercept):
        assert abs(beta.sum()) <= ROUNDING * size
    drawn = np.append(X.T @ beta, 0.0 if math.isinf(problem.intercept) else problem.intercept * beta.sum())
    epsilon = 0.0 if problem.loss.endswith("hinge") else problem.epsilon
    value = float((target * beta - epsilon * np.abs(beta)).sum())
    if power_of(problem.loss) == 2:
        value -= float((beta[cost > 0] ** 2 / (4 * cost[cost > 0])).sum())
    if _penalty(problem) == "l1":
        assert np.abs(drawn).max() <= 1 + ROUNDING
        return value
    return value - float(drawn @ drawn) / 2


def implied_beta(problem: Any, target: np.ndarray, cost: np.ndarray, f: np.ndarray) -> np.ndarray:
    """The β that f implies for a squared loss, feasible."""
    if problem.loss.endswith("hinge"):
        beta = 2 * cost * target * np.maximum(1 - target * f, 0)
    else:
        beta = 2 * cost * np.sign(target - f) * np.maximum(np.abs(target - f) - problem.epsilon, 0)
    return balanced(beta) if math.isinf(problem.intercept) else beta


def _penalty(problem: Any) -> str:
    return str(getattr(problem, "penalty", "l2"))


def check_values(solution: Any, primal: float, dual: float | None, tol: float) -> None:
    """The two values are the solution's own, and its status says how far apart they are."""
    np.testing.assert_allclose(solution.primal, primal, rtol=ROUNDING, atol=1e-12)
    assert solution.dual <= primal * (1 + ROUNDING)
    if dual is not None:
        np.testing.assert_allclose(solution.dual, dual, rtol=ROUNDING, atol=ROUNDING * primal)
    if solution.status is Status.CONVERGED:
        assert primal - solution.dual <= tol * (1 + 1e-6) * primal + 1e-12


# Linear SVMs


def _linear(name: str, loss: Loss = "squared_hinge", **options: Any) -> Callable[[], LinearSvmProblem]:
    def case() -> LinearSvmProblem:
        rows = TABLES[name]().first(N_ROWS)
        machines = (
            LinearMachine(targets_of(rows, loss), 2 * rows.weight),
            LinearMachine(np.roll(targets_of(rows, loss), 5), 0.3 * rows.weight),
        )
        return LinearSvmProblem(rows.X, machines, loss, **{"epsilon": 0.2, "tol": TOL, "max_iter": 100_000, **options})

    return case


def _left_out_rows() -> LinearSvmProblem:
    rows = TABLES["dense"]()
    cost = np.where(np.arange(rows.n) % 3, 1.0, 0.0)
    return LinearSvmProblem(rows.X, (LinearMachine(targets_of(rows, "hinge"), cost),), "hinge", tol=TOL, max_iter=10**5)


def check_linear(problem: LinearSvmProblem, machine: LinearMachine, solution: LinearSvmSolution) -> None:
    X = dense(problem.X)
    f = X @ solution.w + solution.b
    primal = primal_value(problem, machine.target, machine.cost, f, solution.w, solution.b)
    is_kept = len(solution.beta) > 0  # not where parts of a path are handed over
    dual = dual_value(problem, X, machine.target, machine.cost, solution.beta) if is_kept else None
    check_values(solution, primal, dual, problem.tol)
    is_smooth = power_of(problem.loss) == 2 and problem.penalty == "l2"
    if is_smooth and solution.is_proved_by_w and solution.status is Status.CONVERGED:
        implied = implied_beta(problem, machine.target, machine.cost, f)
        assert dual_value(problem, X, machine.target, machine.cost, implied) >= solution.dual - ROUNDING * primal


def _check(problem: LinearSvmProblem, solutions: tuple[LinearSvmSolution, ...]) -> None:
    for machine, solution in zip(problem.machines, solutions, strict=True):
        check_linear(problem, machine, solution)


def _compare(problem: Any, solutions: Any, expected: Any) -> None:
    for mine, theirs in zip(solutions, expected, strict=True):
        assert mine.status is theirs.status
        np.testing.assert_allclose(mine.primal, theirs.primal, rtol=2 * problem.tol, atol=1e-9)


def _statuses(solutions: Any) -> list[Status]:
    return [solution.status for solution in solutions]


def _noise(n: int, d: int, **options: Any) -> LinearSvmProblem:
    """Signs that have nothing to do with the points."""
    rng = np.random.default_rng(0)
    target = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return LinearSvmProblem(rng.normal(size=(n, d)), (LinearMachine(target, np.full(n, 100.0)),), **options)


def _long() -> LinearSvmProblem:
    return _noise(4000, 200, loss="hinge", tol=1e-15, max_iter=10**9, solver="descent")


def _large() -> LinearSvmProblem:
    return replace(_noise(6000, 60, loss="hinge", tol=1e-4), machines=_noise(6000, 60).machines * 2)


def _resume(problem: LinearSvmProblem, solutions: tuple[LinearSvmSolution, ...]) -> LinearSvmProblem:
    begun = zip(problem.machines, solutions, strict=True)
    return replace(problem, machines=tuple(replace(m, w=s.w, b=s.b, beta=s.beta) for m, s in begun))


def _twins() -> Twins:
    rows, times = whole_weights(8)
    again = np.repeat(np.arange(rows.n), times)
    z = targets_of(rows, "squared_hinge")
    weighted = LinearSvmProblem(rows.X, (LinearMachine(z, 2.0 * times),), tol=1e-9)
    repeated = LinearSvmProblem(rows.X[again], (LinearMachine(z[again], np.full(len(again), 2.0)),), tol=1e-9)
    return Twins(weighted, repeated, lambda found: {"primal": found[0].primal, "w": found[0].w}, rtol=1e-3)


def _learner(estimator: Any, target: str, name: str = "weighted") -> Learner:
    rows = TABLES[name]()
    X, y, weight = rows.X, getattr(rows, target), rows.weight
    return Learner(
        lambda engine: estimator.set_params(engine=engine).fit(X, y, sample_weight=weight),
        lambda model: margrove.certify(model, X, y, sample_weight=weight),
    )


LINEAR = Kind(
    LinearSvmProblem,
    {
        **{name: _linear(name) for name in TABLES},
        **{
            f"{loss}, {name}": _linear("weighted", loss, intercept=s)
            for loss in LOSSES
            for name, s in INTERCEPTS.items()
        },
        **{
            f"l1, {loss}, {name}": _linear("weighted", loss, penalty="l1", intercept=s)
            for loss in LOSSES
            for name, s in INTERCEPTS.items()
        },
        "hinge of ties": _linear("ugly", "hinge"),
        "hinge of wide": _linear("wide", "hinge"),
        "hinge of sparse, descent": _linear("sparse", "hinge", solver="descent"),
        "l1 of sparse": _linear("sparse", penalty="l1"),
        "rows without a cost": _left_out_rows,
    },
    _check,
    _compare,
    _statuses,
    long=_long,
    large=_large,
    cut=lambda problem: replace(problem, max_iter=1),
    cut_case="hinge, intercept",
    resume=_resume,
    twins=_twins,
    learners={
        "LinearSVC": _learner(margrove.LinearSVC(), "codes"),
        "LinearSVC of sparse": _learner(margrove.LinearSVC(loss="hinge", max_iter=10**5), "codes", "sparse"),
        "LinearSVC l1": _learner(margrove.LinearSVC(penalty="l1", max_iter=10**5), "codes"),
        "LinearSVR": _learner(margrove.LinearSVR(max_iter=10**5), "z"),
    },
)


# Paths

FACTORS = np.array([0.1, 1.0, 5.0])


def _path(name: str, **options: Any) -> Callable[[], LinearPathProblem]:
    return lambda: LinearPathProblem(_linear(name, **options)(), FACTORS)


def _nowhere(step: int, machine: int, solution: LinearSvmSolution) -> None:
    raise AssertionError("the suite collects the solutions")


def _walk_path(engine: Engine, problem: LinearPathProblem, effort: Effort) -> Any:
    """The steps of the path; those handed over are collected."""
    if problem.take is None:
        return engine.solve(problem, effort)
    found: dict[tuple[int, int], LinearSvmSolution] = {}

    def take(step: int, machine: int, solution: LinearSvmSolution) -> None:
        assert (step, machine) not in found
        found[step, machine] = solution

    assert engine.solve(replace(problem, take=take), effort) == ()
    machines = range(len(problem.problem.machines))
    return tuple(tuple(found[step, machine] for machine in machines) for step in range(len(problem.factors)))


def _check_path(problem: LinearPathProblem, steps: Any) -> None:
    assert 1 <= len(steps) <= len(problem.factors)
    for factor, solutions in zip(problem.factors, steps, strict=False):
        for machine, solution in zip(problem.problem.machines, solutions, strict=True):
            check_linear(problem.problem, replace(machine, cost=factor * machine.cost), solution)


def _compare_path(problem: LinearPathProblem, steps: Any, expected: Any) -> None:
    assert len(steps) == len(expected) == len(problem.factors)
    for mine, theirs in zip(steps, expected, strict=True):
        _compare(problem.problem, mine, theirs)


PATHS = Kind(
    LinearPathProblem,
    {
        **{name: _path(name) for name in TABLES},
        "hinge": _path("weighted", loss="hinge"),
        "l1": _path("weighted", penalty="l1"),
        "handed over": lambda: LinearPathProblem(_linear("weighted")(), FACTORS, _nowhere),
    },
    _check_path,
    _compare_path,
    lambda steps: [solution.status for solutions in steps for solution in solutions],
    solve=_walk_path,
    long=lambda: LinearPathProblem(_long(), np.array([1.0, 2.0])),
    large=lambda: LinearPathProblem(_large(), np.array([0.01, 1.0])),
    cut=lambda problem: replace(problem, problem=replace(problem.problem, max_iter=1)),
    cut_case="hinge",
    resume=lambda problem, steps: replace(problem, problem=_resume(problem.problem, steps[0])),
    learners={"LinearSVCCV": _learner(margrove.LinearSVCCV(Cs=[0.1, 1], cv=2), "codes")},
)


# Crammer and Singer


def _joint(name: str, **options: Any) -> Callable[[], CrammerSingerProblem]:
    def case() -> CrammerSingerProblem:
        rows = TABLES[name]().first(N_ROWS)
        return CrammerSingerProblem(rows.X, rows.codes, 3, rows.weight, **{"tol": 1e-4, "max_iter": 100_000, **options})

    return case


def _check_joint(problem: CrammerSingerProblem, solution: CrammerSingerSolution) -> None:
    """P and D as the problem states them; β ≤ C of the row's own class and ≤ 0 of the others, and sums to 0."""
    X, beta, cost = dense(problem.X), solution.beta, problem.cost
    every, own = np.arange(len(cost)), problem.codes
    size = max(float(np.abs(beta).sum()), 1e-300)
    upper = np.zeros_like(beta)
    upper[every, own] = cost
    assert (beta <= upper + ROUNDING * size).all()
    assert np.abs(beta.sum(axis=1)).max() <= ROUNDING * size
    behind = 1 + X @ solution.w.T + solution.b
    behind -= (behind[every, own] - 1)[:, None]
    behind[every, own] = 0
    scaled = solution.b / problem.intercept if problem.intercept else np.zeros(problem.n_classes)
    primal = float((solution.w**2).sum() / 2 + scaled @ scaled / 2 + cost @ behind.max(axis=1))
    drawn = np.hstack([beta.T @ X, problem.intercept * beta.sum(axis=0)[:, None]])
    check_values(solution, primal, float(beta[every, own].sum() - (drawn**2).sum() / 2), problem.tol)


def _compare_joint(problem: CrammerSingerProblem, solution: Any, expected: Any) -> None:
    _compare(problem, (solution,), (expected,))


def _noisy_joint(n: int, d: int, **options: Any) -> CrammerSingerProblem:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, size=n).astype(np.int32)
    return CrammerSingerProblem(rng.normal(size=(n, d)), codes, 5, np.full(n, 10.0), **options)


def _joint_twins() -> Twins:
    rows, times = whole_weights(8)
    again = np.repeat(np.arange(rows.n), times)
    options = {"tol": TOL, "max_iter": 10**5}
    weighted = CrammerSingerProblem(rows.X, rows.codes, 3, 2.0 * times, **options)
    repeated = CrammerSingerProblem(rows.X[again], rows.codes[again], 3, np.full(len(again), 2.0), **options)
    return Twins(weighted, repeated, lambda found: {"primal": found.primal}, rtol=2 * TOL)


JOINT = Kind(
    CrammerSingerProblem,
    {**{name: _joint(name) for name in TABLES}, "no intercept": _joint("weighted", intercept=0.0)},
    _check_joint,
    _compare_joint,
    lambda solution: [solution.status],
    long=lambda: _noisy_joint(20_000, 100, tol=1e-12, max_iter=10**9),
    large=lambda: _noisy_joint(3000, 10, tol=1e-2),
    cut=lambda problem: replace(problem, max_iter=1),
    resume=lambda problem, solution: replace(problem, beta=solution.beta),
    twins=_joint_twins,
    learners={
        "LinearSVC": _learner(margrove.LinearSVC(multi_class="crammer_singer", max_iter=10**5), "codes"),
    },
)

KINDS = (LINEAR, PATHS, JOINT)
