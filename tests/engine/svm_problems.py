"""Duals, paths and leaving one out. Unique are the objective and f; α is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from tests.engine.kind import TABLES, Kind, Learner, Table, Twins, table, whole_weights

import margrove
from margrove.status import Status
from margrove.svm import problem as forms
from margrove.svm.kernels import Kernel
from margrove.svm.kkt import offset, sides, violation
from margrove.svm.problem import (
    Dual,
    DualProblem,
    DualSolution,
    LeaveOneOutProblem,
    LeftOut,
    PathProblem,
)
from margrove.svm.reference import smo

TOL = 1e-6
RBF = Kernel("rbf", gamma=0.5)


def gram(problem: Any, kernel: Kernel) -> np.ndarray:
    """K of all points."""
    return np.asarray(problem.X, np.float64) if kernel.name == "precomputed" else kernel.matrix(problem.X, problem.X)


# Duals


def _classification(rows: Table, C: float = 3.0) -> Dual:
    return forms.classification(rows.sign, C * rows.weight)


def _dual(name: str) -> DualProblem:
    rows = TABLES[name]()
    return DualProblem(rows.X, RBF, (_classification(rows),), tol=TOL)


def _form(make: Callable[[Table], Dual], name: str = "weighted") -> Callable[[], DualProblem]:
    def case() -> DualProblem:
        rows = TABLES[name]()
        return DualProblem(rows.X, RBF, (make(rows),), tol=TOL)

    return case


def _kernel(kernel: Kernel, name: str = "weighted") -> Callable[[], DualProblem]:
    def case() -> DualProblem:
        rows = TABLES[name]()
        X = RBF.matrix(rows.X, rows.X) if kernel.name == "precomputed" else rows.X
        return DualProblem(X, kernel, (_classification(rows),), tol=TOL)

    return case


def _nu(rows: Table) -> Dual:
    return forms.nu_classification(rows.sign, rows.weight, 0.8 * forms.largest_nu(rows.sign, rows.weight))


def _several() -> DualProblem:
    """One machine on all rows, one on some, one of another form."""
    rows = TABLES["dense"]()
    some = np.flatnonzero(rows.X[:, 2] > 0)
    machines = (
        _classification(rows),
        forms.classification(rows.sign[some], np.full(len(some), 10.0), some),
        forms.regression(rows.z, 2 * rows.weight, 0.2),
    )
    return DualProblem(rows.X, RBF, machines, tol=TOL)


def _hard_margin() -> DualProblem:
    rows = TABLES["dense"]()
    X = rows.X + 2.0 * rows.sign[:, None]
    return DualProblem(X, Kernel("linear"), (forms.hard_margin(rows.sign),), tol=TOL)


def check_dual(gram: np.ndarray, machine: Dual, solution: DualSolution, tol: float) -> None:
    """Bounds, equalities, v, objective and violation, from their definitions."""
    y, alpha = machine.y.astype(np.float64), solution.alpha
    size = max(float(np.abs(alpha).sum()), float(machine.alpha.sum()), 1e-300)
    assert ((alpha >= 0) & (alpha <= machine.upper)).all()
    assert abs(y @ (alpha - machine.alpha)) <= 1e-9 * size
    if machine.by_sign:
        assert abs(alpha.sum() - machine.alpha.sum()) <= 1e-9 * size
    K = gram[np.ix_(machine.point, machine.point)]
    v = -y * machine.p - K @ (y * alpha)
    largest = float(np.abs(K).max()) * size + float(np.abs(machine.p).max())
    objective = float(alpha @ (machine.p - y * v) / 2)
    if solution.is_v_known:
        np.testing.assert_allclose(solution.v, v, rtol=0, atol=1e-6 * largest)  # kernel values may be float32
        own = float(alpha @ (machine.p - y * solution.v) / 2)
        np.testing.assert_allclose(solution.objective, own, rtol=1e-9, atol=1e-12 * largest)
    worst = violation(v, *sides(machine.y, alpha, machine.upper), machine.y if machine.by_sign else None)
    if machine.hulls:
        worst /= max(objective, forms.HULLS_MEET * float(K.diagonal().max()) / 2)
    if solution.status is Status.CONVERGED:
        assert solution.is_v_known
        do_hulls_meet = machine.hulls and 2 * objective <= forms.HULLS_MEET * float(K.diagonal().max())
        assert do_hulls_meet or worst <= tol * (1 + 1e-6)
        assert do_hulls_meet or solution.violation <= tol * (1 + 1e-6)


def _check(problem: DualProblem, solutions: tuple[DualSolution, ...]) -> None:
    K = gram(problem, problem.kernel)
    for machine, solution in zip(problem.machines, solutions, strict=True):
        check_dual(K, machine, solution, problem.tol)


def compare_duals(solutions: tuple[DualSolution, ...], expected: tuple[DualSolution, ...]) -> None:
    for mine, theirs in zip(solutions, expected, strict=True):
        assert mine.status is theirs.status
        np.testing.assert_allclose(mine.objective, theirs.objective, rtol=1e-6, atol=1e-9)


def _compare(problem: DualProblem, solutions: Any, expected: Any) -> None:
    compare_duals(solutions, expected)


def _statuses(solutions: tuple[DualSolution, ...]) -> list[Status]:
    return [solution.status for solution in solutions]


def hopeless(n: int, C: float = 1e5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points and signs that have nothing to do with each other, and bounds so large that pairs take minutes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, np.where(rng.random(n) < 0.5, 1, -1).astype(np.int8), np.full(n, C)


def _long() -> DualProblem:
    X, y, upper = hopeless(1200)
    return DualProblem(X, Kernel("rbf", gamma=0.1), (forms.classification(y, upper),), tol=1e-9, max_iter=10**9)


def _large() -> DualProblem:
    rows = table(7, 4000, 4)
    machines = (_classification(rows), forms.regression(rows.z, rows.weight, 0.3))
    return DualProblem(rows.X, RBF, machines, tol=1e-4)


def _resume(problem: DualProblem, solutions: tuple[DualSolution, ...]) -> DualProblem:
    begun = zip(problem.machines, solutions, strict=True)
    return replace(problem, machines=tuple(replace(dual, alpha=solution.alpha) for dual, solution in begun))


def _twins() -> Twins:
    rows, times = whole_weights(8)
    again = np.repeat(np.arange(rows.n), times)
    weighted = DualProblem(rows.X, RBF, (forms.classification(rows.sign, 2.0 * times),), tol=TOL)
    repeated = DualProblem(rows.X[again], RBF, (forms.classification(rows.sign[again], np.full(len(again), 2.0)),), TOL)
    return Twins(weighted, repeated, lambda solutions: {"objective": solutions[0].objective}, rtol=1e-6)


def learner_of(estimator: Any, target: str, name: str = "weighted") -> Learner:
    rows = TABLES[name]()
    arrays = (rows.X, None if target == "none" else getattr(rows, target), rows.weight)

    def fit(engine: str) -> Any:
        return estimator.set_params(engine=engine).fit(arrays[0], arrays[1], sample_weight=arrays[2])

    return Learner(fit, lambda model: margrove.certify(model, arrays[0], arrays[1], sample_weight=arrays[2]))


DUALS = Kind(
    DualProblem,
    {
        **{name: lambda name=name: _dual(name) for name in TABLES},
        "nu": _form(_nu),
        "one class": _form(lambda rows: forms.one_class(rows.weight, 0.3)),
        "regression": _form(lambda rows: forms.regression(rows.z, 3 * rows.weight, 0.1)),
        "regression of ties": _form(lambda rows: forms.regression(rows.z, 3 * rows.weight, 0.1), "ugly"),
        "nu regression": _form(lambda rows: forms.nu_regression(rows.z, 3 * rows.weight, 0.4)),
        "hard margin": _hard_margin,
        "hulls that meet": _form(lambda rows: forms.hard_margin(rows.sign), "ugly"),
        "linear": _kernel(Kernel("linear")),
        "poly of sparse": _kernel(Kernel("poly", gamma=0.3, coef0=1.0, degree=2.0), "sparse"),
        "precomputed": _kernel(Kernel("precomputed")),
        "several machines": _several,
    },
    _check,
    _compare,
    _statuses,
    long=_long,
    large=_large,
    cut=lambda problem: replace(problem, max_iter=1),
    resume=_resume,
    twins=_twins,
    learners={
        "SVC": learner_of(margrove.SVC(), "codes"),
        "SVC of sparse": learner_of(margrove.SVC(), "codes", "sparse"),
        "NuSVC": learner_of(margrove.NuSVC(nu=0.3), "sign"),
        "SVR": learner_of(margrove.SVR(), "z"),
        "NuSVR": learner_of(margrove.NuSVR(), "z"),
        "OneClassSVM": learner_of(margrove.OneClassSVM(), "none"),
    },
)


# Paths


def _path(name: str) -> PathProblem:
    rows = TABLES[name]()
    some = np.arange(0, rows.n, 2)
    machines = _classification(rows, 0.1), forms.classification(rows.sign[some], 0.1 * rows.weight[some], some)
    uppers = tuple(tuple(factor * machine.upper for machine in machines) for factor in (3.0, 10.0, 100.0))
    return PathProblem(DualProblem(rows.X, RBF, machines, tol=TOL), uppers)


def _check_path(problem: PathProblem, path: tuple[tuple[DualSolution, ...], ...]) -> None:
    K = gram(problem.first, problem.first.kernel)
    assert 1 <= len(path) <= 1 + len(problem.uppers)
    for number, solutions in enumerate(path):
        machines = zip(problem.first.machines, problem.bounds(number), solutions, strict=True)
        for machine, upper, solution in machines:
            check_dual(K, replace(machine, upper=upper), solution, problem.first.tol)


def _compare_path(problem: PathProblem, path: Any, expected: Any) -> None:
    assert len(path) == len(expected) == 1 + len(problem.uppers)
    for mine, theirs in zip(path, expected, strict=True):
        compare_duals(mine, theirs)


def _long_path() -> PathProblem:
    first = _long()
    return PathProblem(first, tuple((factor * first.machines[0].upper,) for factor in (10.0, 100.0)))


def _large_path() -> PathProblem:
    rows = table(7, 3000, 4)
    first = DualProblem(rows.X, RBF, (_classification(rows, 0.1),), tol=1e-4)
    return PathProblem(first, tuple((factor * first.machines[0].upper,) for factor in (10.0, 100.0)))


PATHS = Kind(
    PathProblem,
    {name: lambda name=name: _path(name) for name in TABLES},
    _check_path,
    _compare_path,
    lambda path: [solution.status for solutions in path for solution in solutions],
    long=_long_path,
    large=_large_path,
    cut=lambda problem: replace(problem, first=replace(problem.first, max_iter=1)),
    resume=lambda problem, path: replace(problem, first=_resume(problem.first, path[0])),
    learners={
        "SVC.path": Learner(
            lambda engine: margrove.SVC(engine=engine).path(TABLES["dense"]().X, TABLES["dense"]().codes, Cs=[1, 10]),
            lambda path: margrove.certify(path.models[-1], TABLES["dense"]().X, TABLES["dense"]().codes),
        )
    },
)


# Leaving one out


def _left_out(name: str, kernel: Kernel = RBF) -> LeaveOneOutProblem:
    rows = TABLES[name]().first(24)
    X = RBF.matrix(rows.X, rows.X) if kernel.name == "precomputed" else rows.X
    machines = _classification(rows), forms.classification(-rows.sign, rows.weight)
    solved = zip(machines, smo(DualProblem(X, kernel, machines, tol=TOL)), strict=True)
    return LeaveOneOutProblem(X, kernel, tuple(replace(dual, alpha=each.alpha) for dual, each in solved), tol=TOL)


def _check_left_out(problem: LeaveOneOutProblem, found: tuple[LeftOut, ...]) -> None:
    """A row's loss cannot fall by leaving the row out: w without it is the best for the others."""
    K = gram(problem, problem.kernel)
    for machine, left in zip(problem.machines, found, strict=True):
        carries = machine.alpha > 0
        assert np.isnan(left.values[~carries]).all()
        if left.status is not Status.CONVERGED:
            continue
        assert left.is_converged
        gram_of_rows = K[np.ix_(machine.point, machine.point)]
        f = gram_of_rows @ (machine.y * machine.alpha)
        f += offset(machine.y - f, machine.alpha, machine.upper, machine.y)
        with_row, without = (np.maximum(0, 1 - machine.y * values)[carries] for values in (f, left.values))
        assert (without >= with_row - 100 * problem.tol).all()


def _compare_left_out(problem: LeaveOneOutProblem, found: Any, expected: Any) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.status, mine.is_converged) == (theirs.status, theirs.is_converged)
        np.testing.assert_allclose(mine.values, theirs.values, rtol=0, atol=100 * problem.tol)


def _large_left_out(n: int = 400, C: float = 10.0) -> LeaveOneOutProblem:
    """From α that is feasible, and not a solution: each row takes as long as it can."""
    X, y, upper = hopeless(n, C)
    y[:] = np.where(np.arange(n) % 2, 1, -1)
    return LeaveOneOutProblem(X, RBF, (replace(forms.classification(y, upper), alpha=upper / 2),))


LEAVING_ONE_OUT = Kind(
    LeaveOneOutProblem,
    {
        **{name: lambda name=name: _left_out(name) for name in TABLES if name != "ugly"},
        "precomputed": lambda: _left_out("weighted", Kernel("precomputed")),
    },
    _check_left_out,
    _compare_left_out,
    lambda found: [left.status for left in found],
    long=lambda: _large_left_out(2000, 1e5),
    large=_large_left_out,
)

KINDS = (DUALS, PATHS, LEAVING_ONE_OUT)
