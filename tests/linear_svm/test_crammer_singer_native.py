"""Crammer and Singer's machine in the core: against SciPy and LIBLINEAR, on ugly data; and what every end leaves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from margrove.engine import Effort, Native
from margrove.engine.native.core import core
from margrove.linear_svm.problem import CrammerSingerProblem
from margrove.run import slices
from margrove.status import Status


def primal(problem, w, b):
    values = np.asarray(problem.X @ w.T) + b
    rows = np.arange(len(values))
    excess = 1 + values - values[rows, problem.codes][:, None]
    excess[rows, problem.codes] = 0
    scaled = b / problem.intercept if problem.intercept else b
    return ((w**2).sum() + (scaled**2).sum()) / 2 + problem.cost @ excess.max(axis=1)


def check_proof(problem, solution):
    """Both values are what W, B and β say; β is feasible; W and B are its sums."""
    n = len(problem.codes)
    beta, own = solution.beta, np.arange(n)
    u = beta.sum(axis=0)
    assert solution.w == pytest.approx(np.asarray(problem.X.T @ beta).T, rel=1e-9, abs=1e-9)
    assert solution.b == pytest.approx(problem.intercept**2 * u, rel=1e-9, abs=1e-9)
    assert solution.primal == pytest.approx(
        primal(problem, solution.w, solution.b), rel=1e-10, abs=1e-13 * problem.cost.sum()
    )
    square = (solution.w**2).sum() + problem.intercept**2 * (u**2).sum()
    dual = beta[own, problem.codes].sum() - square / 2
    assert solution.dual == pytest.approx(dual, rel=1e-9, abs=1e-9 * solution.primal)
    upper = np.zeros_like(beta)
    upper[own, problem.codes] = problem.cost
    assert (beta <= upper).all()
    assert np.abs(beta.sum(axis=1)).max() <= 1e-12 * max(problem.cost.max(), 1e-300)
    assert solution.dual <= solution.primal * (1 + 1e-12)


def asked(X, codes, C=1.0, *, n_classes=None, tol=1e-7, **settings):
    cost = np.full(len(codes), float(C)) if np.ndim(C) == 0 else np.asarray(C, np.float64)
    classes = int(max(codes)) + 1 if n_classes is None else n_classes
    settings = {"max_iter": 100_000, **settings}
    return CrammerSingerProblem(X, np.asarray(codes, np.int32), classes, cost, tol=tol, **settings)


def solved(X, codes, C=1.0, **settings):
    problem = asked(X, codes, C, **settings)
    solution = Native().solve(problem, Effort())
    check_proof(problem, solution)
    return solution


def drawn(rng, n=90, d=6, classes=4):
    codes = np.arange(n) % classes
    return rng.normal(size=(n, d)) + rng.normal(size=(classes, d))[codes], codes


@pytest.mark.parametrize("classes", [2, 3, 5, 9, 21, 40])
@pytest.mark.parametrize("s", [0.0, 1.0, 3.0])
def test_the_gap_closes_for_every_number_of_classes(rng, classes, s):
    """Numbers of classes that fill whole vectors and parts of them."""
    solution = solved(*drawn(rng, n=4 * classes + 30, classes=classes), 0.1, intercept=s, tol=1e-5)
    assert solution.status is Status.CONVERGED
    assert solution.gap <= 1e-5


def test_the_least_value_is_found(rng):
    """A smooth program with the losses as variables, by SLSQP."""
    X, codes = drawn(rng, n=12, d=2, classes=3)
    C, k, d = 0.8, 3, 2
    Z = np.column_stack([X, np.ones(12)])

    def value(v):
        return (v[: k * (d + 1)] ** 2).sum() / 2 + C * v[k * (d + 1) :].sum()

    def slack(v):
        f = Z @ v[: k * (d + 1)].reshape(k, d + 1).T
        own = f[np.arange(12), codes]
        return np.concatenate([(v[k * (d + 1) :, None] - (1 + f - own[:, None]))[c != codes, c] for c in range(k)])

    start = np.concatenate([np.zeros(k * (d + 1)), np.ones(12)])
    found = minimize(
        value,
        start,
        constraints={"type": "ineq", "fun": slack},
        bounds=[(None, None)] * (k * (d + 1)) + [(0, None)] * 12,
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    assert solved(X, codes, C).primal == pytest.approx(found.fun, rel=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_no_worse_than_liblinear(rng, C, is_sparse):
    X, codes = drawn(rng, n=150, d=12, classes=5)
    X *= rng.random(X.shape) < 0.5
    X = sp.csr_matrix(X) if is_sparse else X
    peer = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, codes)
    theirs = primal(asked(X, codes, C), peer.coef_, peer.intercept_)
    assert solved(X, codes, C).primal == pytest.approx(theirs, rel=1e-6)


def test_two_classes_are_a_hinge_of_half_the_margin(rng):
    """w_1 = −w_0 = w/2: with two classes P is ¼‖w‖² + Σ C max(0, 1 − y w·x), a two-class SVM of twice the cost."""
    X, codes = drawn(rng, classes=2)
    peer = LinearSVC(loss="hinge", C=2.0, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, codes)
    w, b = peer.coef_[0], peer.intercept_[0]
    lost = np.maximum(0, 1 - np.where(codes == 1, 1, -1) * (X @ w + b)).sum()
    assert solved(X, codes).primal == pytest.approx((w @ w + b * b) / 4 + lost, rel=1e-6)


def test_sparse_points_and_single_precision_have_the_same_least_value(rng):
    X, codes = drawn(rng, d=30)
    X = (X * (rng.random(X.shape) < 0.2)).astype(np.float32)
    values = [
        solved(points, codes).primal
        for points in (X, X.astype(np.float64), sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float64)))
    ]
    assert values == pytest.approx([values[0]] * 4, rel=1e-6)


def test_a_whole_cost_equals_a_repeated_row(rng):
    X, codes = drawn(rng)
    times = rng.integers(0, 4, size=len(codes))
    weighed = solved(X, codes, 0.5 * times)
    repeated = solved(np.repeat(X, times, axis=0), np.repeat(codes, times), 0.5)
    assert weighed.primal == pytest.approx(repeated.primal, rel=1e-6)
    assert (weighed.beta[times == 0] == 0).all()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_threads_and_slices_change_nothing(rng, is_sparse, monkeypatch):
    X, codes = drawn(rng, n=3000, d=20)
    problem = asked(sp.csr_matrix(X) if is_sparse else X, codes, tol=1e-4)
    one, three = (Native().solve(problem, Effort(n_jobs=jobs)) for jobs in (1, 3))
    monkeypatch.setattr(slices, "SLICE", 1e-4)
    sliced = Native().solve(problem, Effort())
    for other in (three, sliced):
        assert np.array_equal(one.beta, other.beta)
        assert (one.primal, one.dual, one.n_iter) == (other.primal, other.dual, other.n_iter)


def test_a_tiny_cost_puts_every_row_at_its_bound(rng):
    X, codes = drawn(rng)
    solution = solved(X, codes, 1e-9)
    assert solution.status is Status.CONVERGED
    assert solution.beta[np.arange(90), codes] == pytest.approx(np.full(90, 1e-9))


def test_a_huge_cost_leaves_no_loss_on_separable_classes(rng):
    codes = np.arange(30) % 3
    X = 5 * np.eye(3)[codes] + 0.3 * rng.normal(size=(30, 3))
    solution = solved(X, codes, 1e6, tol=1e-5)
    assert solution.status is Status.CONVERGED
    values = X @ solution.w.T + solution.b
    others = np.where(np.eye(3, dtype=bool)[codes], -np.inf, values).max(axis=1)
    assert (values[np.arange(30), codes] - others).min() > 0.999


def test_empty_rows_columns_and_classes_are_borne(rng):
    """A row and a column of zeros, a constant column, doubled rows, a class without a row."""
    X, codes = drawn(rng, n=40, d=3)
    X = np.column_stack([X, np.zeros(40), np.ones(40)])
    X[3] = 0
    X[10] = X[4]
    for s in (0.0, 1.0):
        assert solved(X, codes, n_classes=6, intercept=s).status is Status.CONVERGED


def test_rows_of_zeros_have_their_full_cost_as_loss():
    solution = solved(np.zeros((4, 2)), [0, 1, 2, 0], 2.5, intercept=0.0)
    assert (solution.primal, solution.dual) == (10.0, 10.0)
    assert solution.status is Status.CONVERGED


def test_one_column(rng):
    X = np.array([[-2.0], [0.0], [2.0]] * 5) + 0.1 * rng.normal(size=(15, 1))
    assert solved(X, np.arange(15) % 3, 10.0).status is Status.CONVERGED


def test_starting_at_the_solution_takes_no_longer(rng):
    X, codes = drawn(rng)
    problem = asked(X, codes, tol=1e-4)
    cold = Native().solve(problem, Effort())
    warm = Native().solve(replace(problem, beta=cold.beta), Effort())
    assert warm.status is Status.CONVERGED
    assert warm.n_iter < cold.n_iter / 2
    halved = replace(problem, beta=cold.beta, cost=problem.cost / 2)  # β beyond the bounds is scaled down to them
    check_proof(halved, Native().solve(halved, Effort()))


@pytest.fixture
def long_problem(rng):
    X, _ = drawn(rng, n=4000, d=50)
    return asked(X, rng.integers(0, 8, size=4000), 100.0, tol=1e-9)


def test_a_time_limit_leaves_a_model_with_its_true_gap(long_problem):
    solution = Native().solve(long_problem, Effort(time_limit=0.02))
    assert solution.status is Status.TIME_LIMIT
    check_proof(long_problem, solution)


def test_ctrl_c_leaves_a_model_with_its_true_gap(long_problem, ctrl_c):
    with ctrl_c():
        solution = Native().solve(long_problem, Effort())
    assert solution.status is Status.INTERRUPTED
    check_proof(long_problem, solution)


def test_so_many_passes_and_no_more(long_problem):
    solution = Native().solve(replace(long_problem, max_iter=2), Effort())
    assert (solution.status, solution.n_iter) == (Status.MAX_ITER, 2)
    check_proof(long_problem, solution)


def test_overflow_ends_with_status_nonfinite(rng):
    X, codes = drawn(rng)
    solution = Native().solve(asked(X * 1e200, codes), Effort())
    assert solution.status is Status.NONFINITE


def crammer_singer(points, codes, cost, beta, classes):
    return core.CrammerSinger(
        points, codes=codes, cost=cost, beta=beta, classes=classes, constant=1.0, tol=1e-4, max_passes=10, seed=0
    )


@pytest.mark.parametrize(("codes", "cost", "beta", "classes"), [(3, 4, 0, 2), (4, 3, 0, 2), (4, 4, 4, 2), (4, 4, 0, 1)])
def test_the_core_refuses_arrays_that_disagree(codes, cost, beta, classes):
    points = core.dense_points(np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"must be"):
        crammer_singer(points, np.zeros(codes, np.int32), np.ones(cost), np.zeros(beta), classes)


def test_the_core_refuses_a_code_that_is_no_class():
    points = core.dense_points(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="outside the classes"):
        crammer_singer(points, np.array([2], np.int32), np.ones(1), np.zeros(0), 2)
