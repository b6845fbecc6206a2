"""Penalty l1 in the core: against linear programs, SciPy and LIBLINEAR, on ugly data; and what every end leaves."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.svm import LinearSVC
from tests.linear_svm.objectives import within_bounds

from margrove.engine import Effort
from margrove.engine.native.core import core
from margrove.engine.native.linear_l1 import solve_l1
from margrove.linear_svm.problem import (
    LOSSES,
    LinearMachine,
    LinearSvmProblem,
    dual_terms,
    is_of_signs,
    is_squared,
    losses,
    penalty_value,
)
from margrove.run import slices
from margrove.status import Status

INTERCEPTS = (0.0, 1.0, 5.0, np.inf)


def primal(problem, machine, w, b):
    values = np.asarray(problem.X @ w).ravel() + b
    lost = machine.cost * losses(problem.loss, machine.target, values, problem.epsilon)
    return penalty_value("l1", w, b, problem.intercept) + lost.sum()


def check_proof(problem, machine, solution, slack=1e-9):
    """Both values are what w, b and β say; β is feasible, but for the rounding of its own sums; the gap is no less than
    0."""
    assert solution.primal == pytest.approx(primal(problem, machine, solution.w, solution.b), rel=1e-10)
    gains = dual_terms(problem.loss, machine.target, solution.beta, machine.cost, problem.epsilon)
    assert solution.dual == pytest.approx(gains.sum(), rel=1e-9, abs=1e-9 * solution.primal)
    assert within_bounds(problem.loss, machine.target, solution.beta, machine.cost).max() == 0
    rounding = slack * np.asarray(abs(problem.X).T @ np.abs(solution.beta)).ravel()
    assert (np.abs(np.asarray(problem.X.T @ solution.beta).ravel()) <= 1 + slack + rounding).all()
    u, mass = solution.beta.sum(), np.abs(solution.beta).sum()
    if np.isinf(problem.intercept):
        assert abs(u) <= slack * mass
    else:
        assert problem.intercept * abs(u) <= 1 + slack * (1 + problem.intercept * mass)
    assert solution.dual <= solution.primal * (1 + 1e-12)
    if problem.intercept == 0:
        assert solution.b == 0


def solved(X, target, C=1.0, *, tol=1e-8, slack=1e-9, effort=None, **settings):
    cost = np.full(len(target), float(C)) if np.ndim(C) == 0 else np.asarray(C, np.float64)
    machine = LinearMachine(np.asarray(target, np.float64), cost)
    problem = LinearSvmProblem(X, (machine,), penalty="l1", tol=tol, **settings)
    (solution,) = solve_l1(problem, effort or Effort())
    check_proof(problem, machine, solution, slack)
    return solution


def drawn(rng, loss, n=60, d=7):
    X = rng.normal(size=(n, d))
    score = X @ np.where(np.arange(d) % 2, 1.0, 0.0) + 0.7 * rng.normal(size=n) + 0.3
    return X, (np.where(score > 0, 1.0, -1.0) if is_of_signs(loss) else score)


def by_linear_program(X, z, cost, loss, s, epsilon):
    """The least of a piecewise linear P: w = p − q and b = s (p' − q'), ξ the losses."""
    n, d = X.shape
    columns = X if s == 0 else np.column_stack([X, np.full(n, 1.0 if np.isinf(s) else s)])
    k = columns.shape[1]
    weights = np.ones(k)
    if np.isinf(s):
        weights[d] = 0
    objective = np.concatenate([weights, weights, cost])
    if is_of_signs(loss):  # z f + ξ ≥ 1
        signed = z[:, None] * columns
        A, b = np.hstack([-signed, signed, -np.eye(n)]), -np.ones(n)
    else:  # |z − f| ≤ ε + ξ
        A = np.vstack([np.hstack([-columns, columns, -np.eye(n)]), np.hstack([columns, -columns, -np.eye(n)])])
        b = np.concatenate([epsilon - z, epsilon + z])
    found = linprog(objective, A_ub=A, b_ub=b, bounds=(0, None), method="highs")
    assert found.status == 0
    return found.fun


def by_quasi_newton(X, z, cost, loss, s, epsilon):
    """The least of a squared loss with w = p − q, p and q ≥ 0."""
    n, d = X.shape
    columns = X if s == 0 else np.column_stack([X, np.full(n, 1.0 if np.isinf(s) else s)])
    weights = np.ones(columns.shape[1])
    if np.isinf(s):
        weights[d] = 0

    def value(pq):
        p, q = np.split(pq, 2)
        f = columns @ (p - q)
        residual = z - f
        excess = (
            np.maximum(1 - z * f, 0) * z
            if is_of_signs(loss)
            else np.sign(residual) * np.maximum(np.abs(residual) - epsilon, 0)
        )
        slope = -2 * columns.T @ (cost * excess)
        return weights @ (p + q) + cost @ excess**2, np.concatenate([weights + slope, weights - slope])

    start = np.zeros(2 * columns.shape[1])
    for _ in range(10):  # it gives up early: begun again it forgets the curvature that misled it
        found = minimize(
            value,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * len(start),
            options={"maxiter": 5000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30},
        )
        start = found.x
    return found.fun


@pytest.mark.parametrize("s", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.03, 1.0, 50.0])
def test_the_least_value_is_found(rng, loss, s, C):
    X, z = drawn(rng, loss)
    epsilon = 0.0 if is_of_signs(loss) else 0.2
    cost = C * rng.uniform(0.5, 2, size=len(z))
    solution = solved(X, z, cost, loss=loss, intercept=s, epsilon=epsilon)
    brute = by_quasi_newton if is_squared(loss) else by_linear_program
    assert solution.status is Status.CONVERGED
    assert solution.primal == pytest.approx(brute(X, z, cost, loss, s, epsilon), rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("s", [1.0, np.inf])
def test_the_hinge_losses_ignore_epsilon(rng, loss, s):
    X, z = drawn(rng, loss)
    with_it, without = (solved(X, z, 2.0, loss=loss, intercept=s, epsilon=epsilon) for epsilon in (0.3, 0.0))
    assert with_it.status is Status.CONVERGED
    assert (with_it.primal, with_it.dual) == (without.primal, without.dual)
    np.testing.assert_array_equal(with_it.w, without.w)


@pytest.mark.parametrize("C", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_no_worse_than_liblinear(rng, C, is_sparse):
    X = rng.normal(size=(200, 300)) * (rng.random((200, 300)) < 0.1)
    y = np.where(X[:, :10].sum(axis=1) + 0.3 * rng.normal(size=200) > 0, 1, -1)
    X = sp.csr_matrix(X) if is_sparse else X
    peer = LinearSVC(penalty="l1", dual=False, C=C, tol=1e-9, max_iter=1_000_000, random_state=0).fit(X, y)
    machine = LinearMachine(y.astype(float), np.full(200, C))
    problem = LinearSvmProblem(X, (machine,), penalty="l1")
    theirs = primal(problem, machine, peer.coef_[0], float(peer.intercept_[0]))
    assert solved(X, y, C).primal == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("s", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_unscaled_columns_do_not_matter(rng, loss, s):
    """Columns of sizes from 1e-3 to 1e6, and means far from 0."""
    X, z = drawn(rng, loss, n=120)
    X = (X + rng.normal(size=7)) * 10.0 ** np.array([-3, -2, 0, 1, 3, 4, 6])
    solution = solved(X, z, 1.0, loss=loss, intercept=s, epsilon=0.0 if is_of_signs(loss) else 0.1, tol=1e-6)
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("s", [1.0, np.inf])
def test_sparse_points_have_the_same_least_value(rng, loss, s):
    X, z = drawn(rng, loss, n=80, d=400)
    X *= rng.random(X.shape) < 0.1
    dense, sparse = (solved(points, z, 2.0, loss=loss, intercept=s) for points in (X, sp.csr_matrix(X)))
    assert sparse.primal == pytest.approx(dense.primal, rel=3e-8)


def test_unsorted_and_repeated_entries_are_added_up(rng):
    X, z = drawn(rng, "squared_hinge")
    halves = sp.csr_matrix(
        (np.repeat(X.ravel(), 2) / 2, np.repeat(np.tile(np.arange(7)[::-1], 60), 2), np.arange(61) * 14), shape=X.shape
    )
    assert solved(halves, z).primal == pytest.approx(solved(X[:, ::-1].copy(), z).primal, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_whole_cost_equals_a_repeated_row(rng, loss):
    X, z = drawn(rng, loss)
    times = rng.integers(0, 4, size=len(z))
    weighed = solved(X, z, 0.7 * times, loss=loss)
    repeated = solved(np.repeat(X, times, axis=0), np.repeat(z, times), 0.7, loss=loss)
    assert weighed.primal == pytest.approx(repeated.primal, rel=2e-8)
    assert (weighed.beta[times == 0] == 0).all()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_single_precision_points_are_taken_as_they_are(rng, is_sparse):
    X, z = drawn(rng, "squared_hinge")
    X = X.astype(np.float32)
    points = sp.csr_matrix(X) if is_sparse else X
    assert solved(points, z).primal == pytest.approx(solved(X.astype(np.float64), z).primal, rel=1e-8)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_threads_change_nothing(rng, is_sparse):
    X, _ = drawn(rng, "squared_hinge", n=150, d=300)
    X = sp.csr_matrix(X * (rng.random(X.shape) < 0.2)) if is_sparse else X
    machines = tuple(LinearMachine(np.where(rng.random(150) < 0.5, 1.0, -1.0), np.ones(150)) for _ in range(5))
    problem = LinearSvmProblem(X, machines, penalty="l1")
    one, three = (solve_l1(problem, Effort(n_jobs=jobs)) for jobs in (1, 3))
    for a, b in zip(one, three, strict=True):
        assert np.array_equal(a.w, b.w)
        assert np.array_equal(a.beta, b.beta)
        assert (a.b, a.primal, a.dual, a.n_iter) == (b.b, b.primal, b.dual, b.n_iter)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-9, 1e6])
def test_tiny_and_huge_costs_converge(rng, loss, C):
    X, z = drawn(rng, loss)
    solution = solved(X, z, C, loss=loss, tol=1e-4)
    assert solution.status is Status.CONVERGED
    if C < 1:
        assert not solution.w.any()
        assert solution.b == 0


def test_a_huge_cost_leaves_no_loss_on_separable_rows(rng):
    X, _ = drawn(rng, "squared_hinge", n=40, d=100)
    z = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    solution = solved(X, z, 1e6)
    assert solution.status is Status.CONVERGED
    assert (z * (X @ solution.w + solution.b)).min() > 0.999


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("s", INTERCEPTS)
def test_constant_and_duplicated_columns(rng, loss, s):
    """Constant, empty, doubled and exactly dependent columns, an empty row: the value is that of the columns alone."""
    X, z = drawn(rng, loss, n=50, d=4)
    X[7] = 0
    onehot = np.eye(3)[rng.integers(0, 3, size=50)]
    onehot[7] = 0
    wide = np.column_stack([X, X, np.zeros(50), onehot, onehot.sum(axis=1)])
    solution = solved(wide, z, 3.0, loss=loss, intercept=s)
    assert solution.status is Status.CONVERGED
    brute = by_quasi_newton if is_squared(loss) else by_linear_program
    assert solution.primal == pytest.approx(brute(wide, z, np.full(50, 3.0), loss, s, 0.0), rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_one_column_and_one_row(loss, is_sparse):
    X = np.array([[2.0]])
    solution = solved(sp.csr_matrix(X) if is_sparse else X, [1.0], 10.0, loss=loss, intercept=0.0)
    # hinge: w = ½ costs ½ and nothing is lost; squared: 1 = 2·10·2(1 − 2w), so that w = ½ − 1/80
    best = 0.5 - 1 / 80 if is_squared(loss) else 0.5
    assert solution.w == pytest.approx([best], rel=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_free_intercept_follows_a_shift_of_the_columns(rng, loss):
    X, z = drawn(rng, loss)
    here = solved(X, z, loss=loss, intercept=np.inf)
    there = solved(X + 1000.0, z, loss=loss, intercept=np.inf)
    assert there.primal == pytest.approx(here.primal, rel=1e-7)


def test_rows_of_one_class_alone_need_no_weight():
    solution = solved(np.arange(6.0)[:, None], np.ones(6), intercept=np.inf)
    assert solution.primal == 0
    assert not solution.w.any()


def test_more_columns_with_a_weight_than_products_are_held_for(rng):
    """Beyond 2,048 columns the model is descended through f."""
    n = 2600
    X = sp.csr_matrix(sp.diags(rng.uniform(1, 2, size=n)) + sp.random(n, n, 2e-4, random_state=1))
    z = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    solution = solved(X, z, 10.0, tol=1e-3)
    assert solution.status is Status.CONVERGED
    assert np.count_nonzero(solution.w) > 2048


@pytest.mark.parametrize("loss", LOSSES)
def test_starting_at_the_solution_takes_no_longer(rng, loss):
    X, z = drawn(rng, loss)
    machine = LinearMachine(z, np.ones(len(z)))
    problem = LinearSvmProblem(X, (machine,), loss=loss, penalty="l1")
    (cold,) = solve_l1(problem, Effort())
    begun = replace(machine, w=cold.w, b=cold.b, beta=cold.beta)
    (warm,) = solve_l1(replace(problem, machines=(begun,)), Effort())
    assert warm.status is Status.CONVERGED
    assert warm.n_iter <= cold.n_iter / 2
    assert warm.primal == pytest.approx(cold.primal, rel=2e-4)


@pytest.fixture
def long_problem(rng):
    X = rng.normal(size=(3000, 200))
    machines = tuple(LinearMachine(np.where(rng.random(3000) < 0.5, 1.0, -1.0), np.ones(3000)) for _ in range(3))
    return LinearSvmProblem(X, machines, penalty="l1", tol=1e-9)


def test_a_time_limit_leaves_a_model_with_its_true_gap(long_problem):
    solutions = solve_l1(long_problem, Effort(time_limit=1e-4))
    assert Status.TIME_LIMIT in {solution.status for solution in solutions}
    for machine, solution in zip(long_problem.machines, solutions, strict=True):
        check_proof(long_problem, machine, solution)


def test_ctrl_c_leaves_a_model_with_its_true_gap(long_problem, ctrl_c):
    with ctrl_c():
        solutions = solve_l1(long_problem, Effort(n_jobs=1))
    assert Status.INTERRUPTED in {solution.status for solution in solutions}
    for machine, solution in zip(long_problem.machines, solutions, strict=True):
        check_proof(long_problem, machine, solution)


def test_slices_change_nothing(long_problem, monkeypatch):
    whole = solve_l1(long_problem, Effort())
    monkeypatch.setattr(slices, "SLICE", 1e-4)
    for a, b in zip(whole, solve_l1(long_problem, Effort()), strict=True):
        assert np.array_equal(a.w, b.w)
        assert a.n_iter == b.n_iter


def test_so_many_steps_and_no_more(long_problem):
    for machine, solution in zip(
        long_problem.machines, solve_l1(replace(long_problem, max_iter=2), Effort()), strict=True
    ):
        assert (solution.status, solution.n_iter) == (Status.MAX_ITER, 2)
        check_proof(long_problem, machine, solution)


def test_a_tolerance_below_rounding_terminates(rng):
    X, z = drawn(rng, "squared_hinge")
    solution = solved(X, z, tol=0.0)
    assert solution.status in (Status.CONVERGED, Status.STALLED)
    assert abs(solution.gap) < 1e-10


def test_overflow_ends_with_status_nonfinite(rng):
    X, z = drawn(rng, "squared_hinge")
    machine = LinearMachine(z, np.full(len(z), 1e300))
    problem = LinearSvmProblem(X * 1e300, (machine,), penalty="l1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (solution,) = solve_l1(problem, Effort(time_limit=5.0))
    assert solution.status in (Status.NONFINITE, Status.STALLED)


@pytest.mark.parametrize(("target", "cost", "w", "beta"), [(3, 4, 3, 0), (4, 3, 3, 0), (4, 4, 2, 0), (4, 4, 3, 5)])
def test_the_core_refuses_arrays_of_another_length(target, cost, w, beta):
    points, loss = core.dense_points(np.zeros((4, 2))), core.Loss.squared_hinge
    svm = core.L1Svm(points, loss=loss, intercept=1.0, epsilon=0.0, tol=1e-4, max_steps=10)
    with pytest.raises(ValueError, match="must be"):
        svm.add(target=np.ones(target), cost=np.ones(cost), w=np.zeros(w), beta=np.zeros(beta))
