"""Searches over kernels, folds and C. Unique is f of the rows held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tests.engine.kind import TABLES, Kind, Table, table
from tests.engine.svm_problems import RBF, TOL, gram, hopeless, learner_of

import margrove
from margrove.engine.registry import Engine
from margrove.run.effort import Effort
from margrove.status import Status
from margrove.svm.kernels import Kernel
from margrove.svm.kkt import offset
from margrove.svm.problem import DualProblem
from margrove.svm.reference import smo
from margrove.svm.search_problem import DualVariables, Fold, SearchProblem, SearchUnit, UnitSolution, dual_on_fold


@dataclass(frozen=True)
class Searched:
    """The units that a search handed over."""

    status: Status
    units: dict[int, UnitSolution]


def _search_all(engine: Engine, problem: SearchProblem, effort: Effort) -> Searched:
    found: dict[int, UnitSolution] = {}

    def take(number: int, solution: UnitSolution) -> None:
        assert number not in found
        found[number] = solution

    return Searched(engine.solve(replace(problem, take=take), effort), found)


def _nowhere(number: int, solution: UnitSolution) -> None:
    raise AssertionError("the suite collects the units")


def _search(
    rows: Table, kernels: tuple[Kernel, ...] = (RBF, Kernel("rbf", gamma=0.05)), **limits: Any
) -> SearchProblem:
    """Two machines, a fold, and a fold whose rows have other weights."""
    every = np.arange(rows.n)
    machines = tuple(DualVariables(sign, -np.ones(rows.n), every) for sign in (rows.sign, np.roll(rows.sign, 3)))
    folds = (
        Fold(np.where(every % 2, rows.weight, 0.0), every[every % 2 == 0]),
        Fold(np.where(every % 3, 1.0 + every % 2, 0.0), every[every % 3 == 0]),
    )
    units = tuple(SearchUnit(k, fold, np.array([0.3, 5.0])) for k in range(len(kernels)) for fold in range(2))
    X = RBF.matrix(rows.X, rows.X) if kernels[0].name == "precomputed" else rows.X
    return SearchProblem(X, kernels, machines, folds, units, _nowhere, **{"tol": TOL, **limits})


def _regression_search() -> SearchProblem:
    rows = TABLES["weighted"]()
    every = np.arange(rows.n)
    machine = DualVariables(
        np.repeat(np.array([1, -1], np.int8), rows.n), np.concatenate([-rows.z, rows.z]), np.concatenate([every, every])
    )
    folds = [Fold(np.where(every % 2 == part, rows.weight, 0.0), every[every % 2 != part]) for part in range(2)]
    units = tuple(SearchUnit(0, fold, np.array([0.3, 3.0]), epsilon) for fold in range(2) for epsilon in (0.1, 0.5))
    return SearchProblem(rows.X, (RBF,), (machine,), tuple(folds), units, _nowhere, tol=TOL)


def _check_search(problem: SearchProblem, found: Searched) -> None:
    """Each unit once, converged; f of the last C is that of a machine solved from nothing."""
    if found.status is Status.CONVERGED:
        assert sorted(found.units) == list(range(len(problem.units)))
    for number, solution in found.units.items():
        unit = problem.units[number]
        fold, kernel = problem.folds[unit.fold], problem.kernels[unit.kernel]
        shape = len(unit.Cs), len(problem.machines)
        assert solution.values.shape == (*shape, len(fold.held_out))
        assert solution.is_converged.shape == solution.violation.shape == solution.support.shape == shape
        assert solution.is_converged.all()
        assert (solution.violation <= problem.tol * (1 + 1e-6)).all()
        duals = tuple(dual_on_fold(machine, fold, float(unit.Cs[-1]), unit.epsilon) for machine in problem.machines)
        K = gram(problem, kernel)
        machines = smo(DualProblem(problem.X, kernel, duals, tol=problem.tol))
        for values, dual, machine in zip(solution.values[-1], duals, machines, strict=True):
            f = K[np.ix_(fold.held_out, dual.point)] @ (dual.y * machine.alpha)
            f += offset(machine.v, machine.alpha, dual.upper, dual.y)
            np.testing.assert_allclose(values, f, rtol=0, atol=100 * problem.tol)


def _compare_search(problem: SearchProblem, found: Searched, expected: Searched) -> None:
    assert found.status is expected.status
    assert sorted(found.units) == sorted(expected.units)
    for number, solution in found.units.items():
        theirs = expected.units[number]
        np.testing.assert_allclose(solution.values, theirs.values, rtol=0, atol=100 * problem.tol)
        np.testing.assert_array_equal(solution.is_converged, theirs.is_converged)


def _long_search() -> SearchProblem:
    X, y, weight = hopeless(1200, 1.0)
    every = np.arange(len(y))
    folds = tuple(Fold(np.where(every % 5 == part, 0.0, weight), every[every % 5 == part]) for part in range(5))
    machine = DualVariables(y, -np.ones(len(y)), every)
    units = tuple(SearchUnit(0, fold, np.array([1e5, 1e6])) for fold in range(5))
    return SearchProblem(X, (Kernel("rbf", gamma=0.1),), (machine,), folds, units, _nowhere, tol=1e-9, max_iter=10**9)


SEARCHES = Kind(
    SearchProblem,
    {
        **{name: lambda name=name: _search(TABLES[name]()) for name in TABLES if name != "ugly"},
        "precomputed": lambda: _search(TABLES["weighted"](), (Kernel("precomputed"),)),
        "regression": _regression_search,
        "without room for all kernel values": lambda: _search(TABLES["dense"](), cache_bytes=1),
    },
    _check_search,
    _compare_search,
    lambda found: [found.status],
    solve=_search_all,
    long=_long_search,
    large=lambda: _search(table(7, 1500, 4), tol=1e-4),
    learners={
        "SVCCV": learner_of(margrove.SVCCV(Cs=[1, 10], gammas=[0.1], cv=2), "codes"),
        "SVRCV": learner_of(margrove.SVRCV(Cs=[1], gammas=[0.1], cv=2), "z"),
    },
)

KINDS = (SEARCHES,)
