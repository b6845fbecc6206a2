"""The core's three methods for penalty l2: each ends at the same values, proved by its own dual coefficients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from tests.linear_svm.objectives import within_bounds

from margrove.engine import Effort, solve
from margrove.engine.native.linear_svm import choose
from margrove.linear_svm.problem import (
    LOSSES,
    LinearMachine,
    LinearPathProblem,
    LinearSvmProblem,
    dual_terms,
    is_of_signs,
    losses,
    penalty_value,
)
from margrove.status import Status

METHODS = ("newton", "row_newton", "conjugate_gradients", "descent")
EPSILON = 0.1


def problem_of(loss, *, s=1.0, solver="auto", n=300, d=12, C=1.0, tol=1e-6, seed=0, wrap=np.asarray):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.2, 3, d) + rng.uniform(-1, 1, d)
    values = X @ rng.standard_normal(d) / 3 + rng.standard_normal(n) + 0.5
    target = np.sign(values) if is_of_signs(loss) else values
    cost = C * rng.uniform(0, 2, n)
    cost[:5] = 0
    machine = LinearMachine(target, cost)
    return LinearSvmProblem(
        wrap(X), (machine,), loss=loss, intercept=s, epsilon=EPSILON, tol=tol, solver=solver, max_iter=20_000
    )


def recomputed(problem, solution):
    """P and D from the formulas, and how far β misses its conditions."""
    machine, s = problem.machines[0], problem.intercept
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    X = X.astype(np.float64)
    f = X @ solution.w + solution.b
    lost = machine.cost @ losses(problem.loss, machine.target, f, problem.epsilon)
    primal = penalty_value("l2", solution.w, solution.b, s) + lost
    v, u = X.T @ solution.beta, solution.beta.sum()
    gain = dual_terms(problem.loss, machine.target, solution.beta, machine.cost, problem.epsilon).sum()
    dual = gain - 0.5 * v @ v - (0.0 if math.isinf(s) else 0.5 * (s * u) ** 2)
    off = within_bounds(problem.loss, machine.target, solution.beta, machine.cost).max()
    return primal, dual, max(off, abs(u) if math.isinf(s) else 0.0)


@pytest.mark.parametrize("solver", METHODS)
@pytest.mark.parametrize("s", [0.0, 1.0, 5.0, math.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_method_proves_its_solution(loss, s, solver):
    tol = 1e-4 if solver == "descent" else 1e-6  # kinks take descent many passes
    problem = problem_of(loss, s=s, solver=solver, tol=tol)
    (solution,) = solve(problem, "native")
    assert solution.status is Status.CONVERGED
    assert solution.solver == solver
    assert solution.gap <= problem.tol
    primal, dual, off = recomputed(problem, solution)
    assert solution.primal == pytest.approx(primal, rel=1e-9)
    assert solution.dual == pytest.approx(dual, rel=1e-9)
    assert off <= 1e-9
    if s == 0:
        assert solution.b == 0


@pytest.mark.parametrize("wrap", [np.float32, sp.csr_matrix, lambda X: sp.csr_matrix(X.astype(np.float32))])
@pytest.mark.parametrize("solver", METHODS)
@pytest.mark.parametrize("loss", ["hinge", "squared_epsilon_insensitive"])
def test_storage_makes_no_difference(loss, solver, wrap):
    tol = 1e-4 if solver == "descent" else 1e-7
    wanted = solve(problem_of(loss, tol=tol, solver=solver), "native")[0].primal
    found = solve(problem_of(loss, tol=tol, solver=solver, wrap=wrap), "native")[0].primal
    assert found == pytest.approx(wanted, rel=2 * tol + 1e-6)


@pytest.mark.parametrize("solver", ["newton", "conjugate_gradients"])
@pytest.mark.parametrize("loss", LOSSES)
def test_threads_do_not_change_a_bit(loss, solver):
    problem = problem_of(loss, n=20_000, d=15, solver=solver, tol=1e-5)
    one, two = (solve(problem, "native", Effort(n_jobs=jobs))[0] for jobs in (1, 2))
    assert np.array_equal(one.w, two.w)
    assert np.array_equal(one.beta, two.beta)
    assert one.dual == two.dual


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("s", [1.0, math.inf])
@pytest.mark.parametrize("loss", LOSSES)
def test_columns_and_costs_of_any_scale_converge(loss, s, C):
    rng = np.random.default_rng(1)
    scales = 10.0 ** rng.uniform(-3, 6, 12)
    problem = problem_of(loss, s=s, C=C, wrap=lambda X: X * scales, tol=1e-4)
    (solution,) = solve(problem, "native")
    assert solution.status is Status.CONVERGED
    primal, dual, _ = recomputed(problem, solution)
    assert primal - dual <= 1.01e-4 * primal


def test_fewer_rows_than_columns_with_a_kink_converge():
    """As many rows on the margin as they determine columns: steps must be damped."""
    problem = problem_of("hinge", n=120, d=100, C=100.0, wrap=lambda X: 500 + 50 * X, tol=1e-5)
    assert solve(problem, "native")[0].status is Status.CONVERGED


@pytest.mark.parametrize("solver", METHODS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive"])
def test_a_path_ends_where_each_fit_ends(loss, solver):
    tol = 1e-4 if solver == "descent" else 1e-7
    problem = problem_of(loss, solver=solver, tol=tol)
    factors = np.array([0.01, 0.1, 1.0, 10.0])
    path = solve(LinearPathProblem(problem, factors), "native")
    assert len(path) == len(factors)
    machine = problem.machines[0]
    for factor, (solution,) in zip(factors, path, strict=True):
        alone = LinearMachine(machine.target, factor * machine.cost)
        (wanted,) = solve(LinearSvmProblem(**{**vars(problem), "machines": (alone,)}), "native")
        assert solution.status is Status.CONVERGED
        assert solution.primal == pytest.approx(wanted.primal, rel=2 * tol)


def test_descent_that_is_slow_hands_over(monkeypatch):
    monkeypatch.setattr("margrove.engine.native.linear_svm._LARGEST_MATRIX", 10)
    problem = problem_of("hinge", n=400, d=20, C=10.0, wrap=lambda X: X * np.logspace(-1, 1, X.shape[1]), tol=1e-6)
    choice = choose(problem)
    assert (choice.method, choice.otherwise) == ("descent", "row_newton")
    (solution,) = solve(problem, "native")
    assert solution.status is Status.CONVERGED
    assert solution.solver == "row_newton"


@pytest.mark.parametrize(
    ("loss", "shared", "successor"), [("squared_hinge", 5.0, "conjugate_gradients"), ("hinge", 0.1, "descent")]
)
def test_too_many_free_rows_for_a_matrix_are_not_put_into_one(loss, shared, successor):
    rng = np.random.default_rng(0)
    n = 4000
    X = sp.hstack([sp.eye_array(n), shared * sp.random(n, 2000, 0.002, random_state=rng)]).tocsr()
    machine = LinearMachine(np.where(rng.integers(0, 2, n), 1.0, -1.0), np.full(n, 100.0))
    problem = LinearSvmProblem(X, (machine,), loss=loss, tol=1e-13, max_iter=300)
    assert choose(problem).otherwise == "row_newton"
    assert solve(problem, "native")[0].solver == successor


def test_wide_rows_of_any_scale_are_solved():
    problem = problem_of("hinge", n=300, d=4000, C=100.0, wrap=lambda X: X * np.logspace(-2, 2, X.shape[1]), tol=1e-4)
    (solution,) = solve(problem, "native")
    assert solution.status is Status.CONVERGED


def test_wide_rows_of_wild_scales_are_taken_over_by_newton():
    rng = np.random.default_rng(0)
    X = (rng.random((130, 240)) < 0.3) * 10.0 ** rng.uniform(-3, 3, 240)
    machine = LinearMachine(np.where(rng.integers(0, 2, 130), 1.0, -1.0), np.full(130, 30.0))
    (solution,) = solve(LinearSvmProblem(X, (machine,), loss="hinge"), "native")
    assert (solution.status, solution.solver) == (Status.CONVERGED, "row_newton")


def test_a_start_far_from_the_solution_converges():
    """A free intercept that no row determines: all are at their bounds."""
    problem = problem_of("epsilon_insensitive", s=math.inf, n=50, d=4)
    machine = problem.machines[0]
    far = LinearMachine(machine.target, machine.cost, w=np.zeros(4), b=1000.0, beta=np.zeros(50))
    (solution,) = solve(LinearSvmProblem(**{**vars(problem), "machines": (far,)}), "native")
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_columns_far_from_zero_keep_the_dual_coefficients_that_prove_them(C):
    problem = problem_of("squared_hinge", C=C, n=1000, d=5, wrap=lambda X: X + 1e7, solver="newton", tol=1e-4)
    (solution,) = solve(problem, "native")
    assert not solution.is_proved_by_w
    assert solution.status is Status.CONVERGED
    primal, dual, _ = recomputed(problem, solution)
    assert primal - dual <= 1.01e-4 * primal
    near = problem_of("squared_hinge", C=C, n=1000, d=5, solver="newton", tol=1e-4)
    assert solve(near, "native")[0].is_proved_by_w


def test_values_of_any_unit_are_solved_row_by_row():
    for unit in (1e-9, 1.0, 1e9):
        problem = problem_of("epsilon_insensitive", n=60, d=400, solver="descent", tol=1e-3)
        machine = problem.machines[0]
        scaled = LinearMachine(machine.target * unit, machine.cost)
        other = LinearSvmProblem(**{**vars(problem), "machines": (scaled,), "epsilon": 0.0})
        assert solve(other, "native")[0].status is Status.CONVERGED


def test_a_perfect_fit_is_kept_though_its_gap_is_rounding():
    X = np.random.default_rng(0).standard_normal((50, 4))
    machine = LinearMachine(np.full(50, 0.3), np.ones(50))
    problem = LinearSvmProblem(X, (machine,), loss="squared_epsilon_insensitive", intercept=math.inf)
    (solution,) = solve(problem, "native")
    assert solution.b == pytest.approx(0.3)


@pytest.mark.parametrize("solver", METHODS)
def test_a_start_at_the_solution_stays_there(solver):
    problem = problem_of("hinge", solver=solver, tol=1e-4)
    (first,) = solve(problem, "native")
    machine = problem.machines[0]
    again = LinearMachine(machine.target, machine.cost, w=first.w, b=first.b, beta=first.beta)
    (second,) = solve(LinearSvmProblem(**{**vars(problem), "machines": (again,)}), "native")
    assert second.status is Status.CONVERGED
    assert second.n_iter <= max(2, first.n_iter // 2)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_time_limit_leaves_a_feasible_model(loss):
    problem = problem_of(loss, n=40_000, d=40, tol=1e-12)
    (solution,) = solve(problem, "native", Effort(time_limit=0.01))
    primal, dual, off = recomputed(problem, solution)
    assert off <= 1e-9
    assert solution.dual == pytest.approx(max(dual, 0), rel=1e-9, abs=1e-9)
    assert dual <= primal * (1 + 1e-12)


def test_a_machine_that_was_not_reached_keeps_its_start():
    problem = problem_of("hinge", n=50_000, d=60, tol=1e-13)
    many = LinearSvmProblem(**{**vars(problem), "machines": problem.machines * 64})
    last = solve(many, "native", Effort(time_limit=0.02, n_jobs=1))[-1]
    assert last.status is Status.TIME_LIMIT
    assert not last.w.any()
    assert last.dual == 0
    assert last.primal == pytest.approx(problem.machines[0].cost.sum())


def test_costs_of_zero_have_a_primal_value_of_zero():
    problem = problem_of("squared_hinge")
    free = LinearMachine(problem.machines[0].target, np.zeros(len(problem.machines[0].cost)))
    for solver in METHODS:
        (solution,) = solve(LinearSvmProblem(**{**vars(problem), "machines": (free,), "solver": solver}), "native")
        assert solution.status is Status.CONVERGED
        assert solution.primal == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "epsilon_insensitive"])
@pytest.mark.parametrize("seed", range(4))
def test_few_rows_of_wild_scales_need_few_steps_by_rows(loss, seed):
    """Where a matrix of the columns is nearly singular, and its steps are damped until they crawl."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 1000)) * np.logspace(-2, 2, 1000)
    machine = LinearMachine(np.where(rng.integers(0, 2, 100), 1.0, -1.0), np.full(100, 100.0))
    (solution,) = solve(LinearSvmProblem(X, (machine,), loss=loss, tol=1e-6, solver="row_newton"), "native")
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 40


@pytest.mark.parametrize("seed", range(3))
def test_descent_goes_on_where_rounding_stops_steps_by_rows(seed):
    """Costs so high that the dual coefficients which w implies are all rounding."""
    rng = np.random.default_rng(seed)
    X = 1000 * rng.standard_normal((34, 182))
    cost = 6e5 * 10 ** rng.uniform(-3, 3, 34)
    machine = LinearMachine(np.where(rng.integers(0, 2, 34), 1.0, -1.0), cost)
    problem = LinearSvmProblem(X, (machine,), loss="squared_hinge", intercept=math.inf, tol=1e-4)
    (solution,) = solve(problem, "native")
    assert solution.status is Status.CONVERGED
    primal, dual, _ = recomputed(problem, solution)
    assert primal - dual <= 1.1e-4 * primal


@pytest.mark.parametrize("C", [5e-3, 1e-2])
@pytest.mark.parametrize("seed", range(3))
def test_dual_coefficients_at_their_bounds_that_sum_to_zero_converge(seed, C):
    """Mirrored rows: as many dual coefficients are at one bound as at the other, and only their sum is 0."""
    half = np.random.default_rng(seed).standard_normal((30, 80))
    machine = LinearMachine(np.repeat([1.0, -1.0], 30), np.full(60, C))
    problem = LinearSvmProblem(
        np.vstack([half, -half]), (machine,), loss="hinge", tol=1e-7, solver="row_newton", intercept=math.inf
    )
    (solution,) = solve(problem, "native")
    assert (np.abs(solution.beta) >= C * (1 - 1e-9)).any()
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 40
