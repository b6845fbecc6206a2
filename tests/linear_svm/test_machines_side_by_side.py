"""Machines that descend on the same sparse rows with the same targets go side by side: each ends with its own proof."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold
from tests.linear_svm.objectives import within_bounds

from margrove import LinearSVC, LinearSVCCV
from margrove.engine import Effort, solve
from margrove.linear_svm.problem import (
    LinearMachine,
    LinearPathProblem,
    LinearSvmProblem,
    Loss,
    dual_terms,
    losses,
    penalty_value,
)
from margrove.status import Status

HINGES: tuple[Loss, ...] = ("hinge", "squared_hinge")


def folds_of(
    loss: Loss,
    count: int,
    *,
    n: int = 120,
    d: int = 80,
    s: float = 1.0,
    C: float = 1.0,
    dtype=np.float64,
    seed: int = 0,
) -> LinearSvmProblem:
    """``count`` machines, each without some of the rows; rows of weight 0 and a row of zeros among them."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.1, rng.uniform(size=(n, d)), 0.0)
    X[3] = 0
    X = sp.csr_matrix(X.astype(dtype))
    target = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    own = C * rng.uniform(0.5, 2, n)
    own[:2] = 0
    machines = tuple(LinearMachine(target, np.where(rng.random(n) < 0.2, 0.0, own)) for _ in range(count))
    return LinearSvmProblem(X, machines, loss=loss, intercept=s, tol=1e-5, solver="descent", max_iter=20_000)


def values(problem: LinearSvmProblem, machine: LinearMachine, solution) -> tuple[float, float]:
    """P and D, from the formulas."""
    f = problem.X.astype(np.float64) @ solution.w + solution.b
    primal = penalty_value("l2", solution.w, solution.b, problem.intercept)
    primal += machine.cost @ losses(problem.loss, machine.target, f, 0.0)
    v, u = problem.X.astype(np.float64).T @ solution.beta, solution.beta.sum()
    gain = dual_terms(problem.loss, machine.target, solution.beta, machine.cost, 0.0).sum()
    return float(primal), float(gain - 0.5 * v @ v - 0.5 * (problem.intercept * u) ** 2)


@pytest.mark.parametrize("loss", HINGES)
@pytest.mark.parametrize("count", [2, 4, 8, 13])
@pytest.mark.parametrize("s", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_machine_converges_and_its_values_are_those_of_the_formulas(loss, count, s, dtype) -> None:
    problem = folds_of(loss, count, s=s, dtype=dtype)
    for machine, solution in zip(problem.machines, solve(problem, "native", Effort()), strict=True):
        primal, dual = values(problem, machine, solution)
        assert solution.status is Status.CONVERGED
        assert solution.primal == pytest.approx(primal, rel=1e-12)
        assert solution.dual == pytest.approx(dual, rel=1e-12)
        assert primal - dual <= problem.tol * primal
        assert within_bounds(loss, machine.target, solution.beta, machine.cost).max() <= 1e-12


@pytest.mark.parametrize("loss", HINGES)
def test_a_path_side_by_side_ends_where_one_by_one_does(loss) -> None:
    problem = folds_of(loss, 5)
    factors = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
    apart = replace(  # targets of their own: nothing to share
        problem, machines=tuple(replace(machine, target=machine.target.copy()) for machine in problem.machines)
    )
    together = solve(LinearPathProblem(problem, factors), "native", Effort())
    alone = solve(LinearPathProblem(apart, factors), "native", Effort())
    assert len(together) == len(alone) == len(factors)
    for some, others in zip(together, alone, strict=True):
        for one, other in zip(some, others, strict=True):
            assert one.status is Status.CONVERGED
            assert one.primal == pytest.approx(other.primal, rel=2e-5)


@pytest.mark.parametrize("loss", HINGES)
def test_where_descent_is_slow_each_machine_goes_on_by_another_method(loss) -> None:
    problem = replace(folds_of(loss, 5, n=600, d=250, C=3.0), solver="auto")
    factors = np.logspace(-2, 5, 15)
    path = solve(LinearPathProblem(problem, factors), "native", Effort())
    assert {solution.solver for solution in path[0]} == {"descent"}
    assert {solution.solver for solution in path[-1]} == {"row_newton"}
    for factor, solutions in zip(factors, path, strict=True):
        for machine, solution in zip(problem.machines, solutions, strict=True):
            priced = replace(machine, cost=factor * machine.cost)
            primal, dual = values(problem, priced, solution)
            assert solution.status is Status.CONVERGED
            assert primal - dual <= 1.01 * problem.tol * primal


@pytest.mark.parametrize("loss", HINGES)
def test_threads_change_nothing(loss) -> None:
    problem, factors = folds_of(loss, 13), np.array([0.1, 1.0, 10.0])
    one, two = (solve(LinearPathProblem(problem, factors), "native", Effort(n_jobs=n)) for n in (1, 2))
    for some, others in zip(one, two, strict=True):
        for a, b in zip(some, others, strict=True):
            np.testing.assert_array_equal(a.w, b.w)
            assert (a.primal, a.dual, a.n_iter) == (b.primal, b.dual, b.n_iter)


@pytest.mark.parametrize("loss", HINGES)
def test_machines_start_from_the_given_dual_coefficients(loss) -> None:
    problem = folds_of(loss, 5)
    first = solve(problem, "native", Effort())
    begun = tuple(replace(m, beta=solution.beta) for m, solution in zip(problem.machines, first, strict=True))
    for solution in solve(replace(problem, machines=begun, tol=2e-5), "native", Effort()):
        assert solution.n_iter == 0
        assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("loss", HINGES)
def test_machines_out_of_passes_report_it_and_keep_their_values(loss) -> None:
    problem = replace(folds_of(loss, 4, C=1e4), max_iter=3)
    for machine, solution in zip(problem.machines, solve(problem, "native", Effort()), strict=True):
        primal, dual = values(problem, machine, solution)
        assert solution.status is Status.MAX_ITER
        assert solution.primal == pytest.approx(primal, rel=1e-12)
        assert solution.dual == pytest.approx(dual, rel=1e-9, abs=1e-9 * primal)


def test_a_time_limit_keeps_the_steps_that_were_reached() -> None:
    problem = folds_of("hinge", 5, n=2000, d=4000)
    path = solve(LinearPathProblem(problem, np.logspace(-2, 4, 40)), "native", Effort(time_limit=0.03))
    assert len(path) < 40
    for solutions in path[:-1]:
        assert all(solution.status is Status.CONVERGED for solution in solutions)


@pytest.mark.parametrize("time_limit", [0.002, 0.005, 0.01, 0.02, 0.04])
@pytest.mark.parametrize("loss", HINGES)
def test_the_last_step_reports_the_time_limit(loss, time_limit) -> None:
    problem = folds_of(loss, 5, n=1000, d=2000)
    factors = np.logspace(-2, 4, 400)
    path = solve(LinearPathProblem(problem, factors), "native", Effort(time_limit=time_limit))
    assert len(path) < len(factors)
    assert any(solution.status is Status.TIME_LIMIT for solution in path[-1])
    for factor, solutions in zip(factors, path, strict=False):
        for machine, solution in zip(problem.machines, solutions, strict=True):
            primal, dual = values(problem, replace(machine, cost=factor * machine.cost), solution)
            assert solution.primal == pytest.approx(primal, rel=1e-12)
            assert solution.dual == pytest.approx(dual, rel=1e-9, abs=1e-9 * primal)


@given(seed=st.integers(0, 10_000), loss=st.sampled_from(HINGES), log_C=st.floats(-4, 2), count=st.integers(2, 9))
@settings(max_examples=40, deadline=None)
def test_any_folds_are_solved_to_the_requested_gap(seed, loss, log_C, count) -> None:
    problem = replace(folds_of(loss, count, n=40, d=25, C=10**log_C, seed=seed), tol=1e-3)
    for machine, solution in zip(problem.machines, solve(problem, "native", Effort()), strict=True):
        primal, dual = values(problem, machine, solution)
        assert solution.status is Status.CONVERGED
        assert primal - dual <= 1.001e-3 * primal


def test_machines_whose_passes_stay_few_stay_side_by_side() -> None:
    problem = replace(folds_of("squared_hinge", 5, n=400, d=600, C=3.0), solver="auto")
    path = solve(LinearPathProblem(problem, np.logspace(-2, 5, 15)), "native", Effort())
    assert {solution.solver for solutions in path for solution in solutions} == {"descent"}
    assert {solution.status for solutions in path for solution in solutions} == {Status.CONVERGED}


def test_a_search_over_text_like_rows_scores_as_separate_fits_do() -> None:
    problem = folds_of("squared_hinge", 1, n=300, d=500)
    X, y = problem.X, problem.machines[0].target
    Cs, folds = [0.01, 1.0, 100.0], StratifiedKFold(4)
    search = LinearSVCCV(Cs=Cs, cv=folds, tol=1e-6).fit(X, y)
    for k, C in enumerate(Cs):
        for fold, (train, test) in enumerate(folds.split(X, y)):
            alone = LinearSVC(C=C, tol=1e-6).fit(X[train], y[train]).score(X[test], y[test])
            assert search.cv_results_[f"split{fold}_test_score"][k] == pytest.approx(alone, abs=1 / len(test))
