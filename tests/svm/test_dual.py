"""The dual solved by the reference SMO, by the core's block SMO, and by LIBSVM. Objectives are compared, not α."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from margrove.engine import Effort, Native
from margrove.svm import problem as forms
from margrove.svm.kernels import Kernel
from margrove.svm.kkt import offset, sides, violation
from margrove.svm.problem import DualProblem
from margrove.svm.reference import PairStep, smo

EFFORT = Effort(n_jobs=2)


def classification(X, kernel, y, upper, **settings):
    return DualProblem(X, kernel, (forms.classification(y, upper),), **settings)


def exact_v(problem, machine, alpha):
    gram = problem.X if problem.kernel.name == "precomputed" else problem.kernel.matrix(problem.X, problem.X)
    K = gram[np.ix_(machine.point, machine.point)]
    return -machine.y * machine.p - K @ (machine.y * alpha)


def exact_violation(problem, alpha):
    (machine,) = problem.machines
    sign = machine.y if machine.by_sign else None
    return violation(exact_v(problem, machine, alpha), *sides(machine.y, alpha, machine.upper), sign)


def objective(problem, alpha):
    (machine,) = problem.machines
    v = exact_v(problem, machine, alpha)
    return alpha @ (machine.p - machine.y * v) / 2


def test_two_points_by_hand():
    # x = -1 and 1: w = 1, b = 0, α = ½ each, objective ½ w² − Σα = −½
    problem = classification(
        np.array([[-1.0], [1.0]]), Kernel("linear"), np.array([-1, 1], np.int8), np.full(2, np.inf)
    )
    for (solution,) in (smo(problem), Native().solve(problem, EFFORT)):
        np.testing.assert_allclose(solution.alpha, [0.5, 0.5])
        assert solution.objective == pytest.approx(-0.5)
        assert offset(solution.v, solution.alpha, problem.machines[0].upper, problem.machines[0].y) == pytest.approx(0)


def test_three_points_with_a_soft_margin_by_hand():
    # x = 0−, 1−, 2+ and C = 1. Hard margin: w = 2, b = −3, α = (0, 2, 2). C cuts both at 1: α = (0, 1, 1), w = 1,
    # objective ½ − 2. Then f(1) = 1 + b and f(2) = 2 + b, both inside their margin for b in [−2, −1] … : no marginal
    # point, α_2 = α_3 = C, and row 0 (f = b ≤ −1) is easy for b ≤ −1; KKT leaves −2 ≤ b ≤ −1.
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([-1, -1, 1], np.int8)
    problem = classification(X, Kernel("linear"), y, np.ones(3))
    for (solution,) in (smo(problem), Native().solve(problem, EFFORT)):
        np.testing.assert_allclose(solution.alpha, [0, 1, 1])
        assert solution.objective == pytest.approx(-1.5)
        assert -2 <= offset(solution.v, solution.alpha, problem.machines[0].upper, problem.machines[0].y) <= -1


def test_four_points_with_an_outlier_by_hand():
    # 0−, 1−, 3+, and an outlier at 0.5 labelled +, C = ¼: the least value on a grid over the three degrees of freedom.
    X, y = np.array([[0.0], [1.0], [3.0], [0.5]]), np.array([-1, -1, 1, 1], np.int8)
    problem = classification(X, Kernel("linear"), y, np.full(4, 0.25), tol=1e-9)
    (solution,) = smo(problem)
    grid = np.linspace(0, 0.25, 51)
    a0, a1, a3 = np.meshgrid(grid, grid, grid, indexing="ij")
    a2 = a0 + a1 - a3
    feasible = (a2 >= 0) & (a2 <= 0.25)
    w = 3 * a2 + 0.5 * a3 - a1
    values = np.where(feasible, 0.5 * w**2 - (a0 + a1 + a2 + a3), np.inf)
    assert solution.objective <= values.min() + 1e-12
    assert solution.objective == pytest.approx(values.min(), abs=1e-3)
    assert Native().solve(problem, EFFORT)[0].objective == pytest.approx(solution.objective, abs=1e-6)


def test_the_objective_never_rises_and_the_equality_holds(rng):
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1).astype(np.int8)
    steps: list[PairStep] = []
    smo(classification(X, Kernel("rbf", gamma=0.3), y, np.full(60, 2.0), tol=1e-6), trace=steps.append)
    values = [step.objective for step in steps]
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))
    assert all(abs(step.alpha @ y) < 1e-9 and (step.alpha >= 0).all() and (step.alpha <= 2).all() for step in steps)


@pytest.mark.parametrize(
    "kernel", [Kernel("linear"), Kernel("rbf", gamma=0.5), Kernel("poly", gamma=0.5, coef0=1.0, degree=2)]
)
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_the_block_solver_ends_where_the_reference_and_libsvm_do(kernel, C, precision, rng):
    X = rng.normal(size=(150, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=150) > 0, 1, -1).astype(np.int8)
    problem = classification(X, kernel, y, np.full(150, C), tol=1e-4, precision=precision)
    (ours,), (reference,) = Native().solve(problem, EFFORT), smo(problem)
    peer = SVC(
        C=C, kernel=kernel.name, gamma=kernel.gamma, coef0=kernel.coef0, degree=int(kernel.degree), tol=1e-4
    ).fit(X, y)
    peer_alpha = np.zeros(150)
    peer_alpha[peer.support_] = np.abs(peer.dual_coef_[0])
    assert ours.status == "converged"
    scale = 1 + abs(reference.objective)
    assert abs(objective(problem, ours.alpha) - reference.objective) <= 1e-6 * scale
    assert objective(problem, ours.alpha) <= objective(problem, peer_alpha) + 1e-6 * scale
    assert exact_violation(problem, ours.alpha) <= 2e-4 + (1e-6 * C * 150 if precision == "single" else 1e-9)


def test_more_rows_than_a_working_set(rng):
    X = rng.normal(size=(3000, 5)).astype(np.float32)
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=3000) > 0, 1, -1).astype(np.int8)
    for cache in (1, 1 << 30):  # every row is computed again and again; or never
        problem = classification(X, Kernel("rbf", gamma=0.3), y, np.full(3000, 5.0), cache_bytes=cache)
        (solution,) = Native().solve(problem, EFFORT)
        assert solution.status == "converged"
        assert exact_violation(problem, solution.alpha) <= 1.5e-3
        assert abs(solution.alpha @ y) <= 1e-9 * solution.alpha.sum()
    (one_thread,) = Native().solve(problem, Effort(n_jobs=1))
    np.testing.assert_array_equal(one_thread.alpha, solution.alpha)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000), st.sampled_from([1e-2, 1.0, 1e3]), st.sampled_from(["linear", "rbf"]), st.integers(2, 30)
)
def test_ugly_tables(seed, C, name, n):
    """Duplicates with either label, constant columns, few rows: the objective is the reference's, whatever α is."""
    random = np.random.default_rng(seed)
    X = random.integers(-2, 3, size=(n, 3)).astype(float)
    X[:, 2] = 1.0
    y = np.where(random.random(n) < 0.5, -1, 1).astype(np.int8)
    problem = classification(
        X, Kernel(name, gamma=0.7), y, np.full(n, C), tol=1e-5, precision="double", max_iter=200_000
    )
    (ours,), (reference,) = Native().solve(problem, EFFORT), smo(problem)
    assert abs(ours.objective - reference.objective) <= 1e-4 * (1 + abs(reference.objective))
    assert ours.status == reference.status == "converged"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_given_gram_matrix_is_the_same_problem(dtype, rng):
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] > 0.2 * rng.normal(size=80), 1, -1).astype(np.int8)
    kernel = Kernel("rbf", gamma=0.4)
    settings = {"tol": 1e-5, "precision": "single" if dtype == np.float32 else "double"}
    (named,) = Native().solve(classification(X, kernel, y, np.full(80, 3.0), **settings), EFFORT)
    given_gram = kernel.matrix(X, X).astype(dtype)
    (given_kernel,) = Native().solve(
        classification(given_gram, Kernel("precomputed"), y, np.full(80, 3.0), **settings), EFFORT
    )
    assert given_kernel.objective == pytest.approx(named.objective, rel=1e-6)
