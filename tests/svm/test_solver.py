"""What the native solver adds to SMO: every form of the dual, sparse rows, several machines at once, shrinking, the
check in double, and interruption."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from margrove.engine import Effort, Native
from margrove.status import Status
from margrove.svm import problem as forms
from margrove.svm.kernels import NATIVE_KERNELS, Kernel
from margrove.svm.kkt import sides, violation
from margrove.svm.problem import DualProblem
from margrove.svm.reference import smo

EFFORT = Effort(n_jobs=2)


def exact(problem, machine, alpha):
    """v and the objective, from the definition."""
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    gram = X if problem.kernel.name == "precomputed" else problem.kernel.matrix(X, X)
    K = gram[np.ix_(machine.point, machine.point)]
    v = -machine.y * machine.p - K @ (machine.y * alpha)
    return v, float(alpha @ (machine.p - machine.y * v) / 2)


def exact_violation(problem, machine, alpha):
    v, _ = exact(problem, machine, alpha)
    sign = machine.y if machine.by_sign else None
    return violation(v, *sides(machine.y, alpha, machine.upper), sign)


def form(name, y, z, weight):
    if name == "nu":
        return forms.nu_classification(y, weight, 0.8 * forms.largest_nu(y, weight))
    return {
        "classification": lambda: forms.classification(y, 3 * weight),
        "one class": lambda: forms.one_class(weight, 0.3),
        "regression": lambda: forms.regression(z, 3 * weight, 0.1),
        "nu regression": lambda: forms.nu_regression(z, 3 * weight, 0.4),
    }[name]()


FORMS = ["classification", "nu", "one class", "regression", "nu regression"]


def table(rng, n=120, d=3):
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, -1).astype(np.int8)
    z = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
    return X, y, z, rng.uniform(0.5, 1.5, size=n)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("precision", ["auto", "single", "double"])
def test_every_form_ends_where_the_reference_does(name, precision, rng):
    X, y, z, weight = table(rng)
    machine = form(name, y, z, weight)
    problem = DualProblem(X, Kernel("rbf", gamma=0.5), (machine,), tol=1e-4, precision=precision)
    (ours,), (reference,) = Native().solve(problem, EFFORT), smo(problem)
    assert ours.status == reference.status == "converged"
    v, objective = exact(problem, machine, ours.alpha)
    assert objective == pytest.approx(reference.objective, rel=1e-5, abs=1e-6)
    assert ours.objective == pytest.approx(objective, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(ours.v, v, atol=1e-4)
    assert exact_violation(problem, machine, ours.alpha) <= 1e-4
    assert ours.alpha @ machine.y == pytest.approx(machine.alpha @ machine.y, abs=1e-9)
    if machine.by_sign:
        assert ours.alpha.sum() == pytest.approx(machine.alpha.sum(), rel=1e-12)
    assert ((ours.alpha >= 0) & (ours.alpha <= machine.upper)).all()


@pytest.mark.parametrize("kernel", NATIVE_KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_are_the_dense_problem(kernel, dtype, rng):
    X = (rng.random((200, 30)) * (rng.random((200, 30)) < 0.2)).astype(dtype)
    y = np.where(X[:, :5].sum(axis=1) > X[:, 5:10].sum(axis=1), 1, -1).astype(np.int8)
    kernel = Kernel(kernel, gamma=0.5, coef0=0.1, degree=2)
    machine = forms.classification(y, np.full(200, 2.0))
    (dense,) = Native().solve(DualProblem(X, kernel, (machine,), tol=1e-5), EFFORT)
    (sparse,) = Native().solve(DualProblem(sp.csr_matrix(X), kernel, (machine,), tol=1e-5), EFFORT)
    assert sparse.status == dense.status == "converged"
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-6)


def test_hard_margin_is_the_nearest_points_of_the_hulls():
    # (0, 0), (0, 2) against (3, 1), (5, 1): nearest are (0, 1) and (3, 1), distance 3
    X, y = np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 1.0], [5.0, 1.0]]), np.array([-1, -1, 1, 1], np.int8)
    problem = DualProblem(X, Kernel("linear"), (forms.hard_margin(y),), tol=1e-6, precision="double")
    for (solution,) in (smo(problem), Native().solve(problem, EFFORT)):
        assert 2 * solution.objective == pytest.approx(9)
        np.testing.assert_allclose(solution.alpha, [0.5, 0.5, 1, 0], atol=1e-6)


def test_hulls_that_meet_have_no_distance(rng):
    X = rng.normal(size=(60, 2))
    y = np.where(np.arange(60) % 2, 1, -1).astype(np.int8)
    problem = DualProblem(X, Kernel("linear"), (forms.hard_margin(y),), precision="double")
    (solution,) = Native().solve(problem, EFFORT)
    assert solution.status == "converged"
    assert 2 * solution.objective <= forms.HULLS_MEET * (X**2).sum(axis=1).max()
    beta = solution.alpha * y
    np.testing.assert_allclose(beta @ X, 0, atol=1e-5 * np.abs(X).max())
    assert solution.alpha[y > 0].sum() == pytest.approx(1)


def test_equal_rows_are_one_variable_and_share_its_alpha(rng):
    X, y, _, weight = table(rng, n=40)
    repeats = rng.integers(1, 4, size=40)
    rows = np.repeat(np.arange(40), repeats)
    kernel = Kernel("rbf", gamma=0.5)
    (merged,) = Native().solve(
        DualProblem(X[rows], kernel, (forms.classification(y[rows], 2 * weight[rows]),), tol=1e-6), EFFORT
    )
    (weighted,) = Native().solve(
        DualProblem(X, kernel, (forms.classification(y, 2 * weight * repeats),), tol=1e-6), EFFORT
    )
    assert merged.objective == pytest.approx(weighted.objective, rel=1e-9)
    sums = np.bincount(rows, weights=merged.alpha)
    np.testing.assert_allclose(sums, weighted.alpha, atol=1e-4)
    for row in range(40):
        shares = merged.alpha[rows == row]
        np.testing.assert_allclose(shares, shares[0])


def test_machines_on_the_same_and_on_other_rows(rng):
    """A code of three columns, one of which leaves rows out: each is what it is alone."""
    X, y, _, _ = table(rng, n=300)
    kernel = Kernel("rbf", gamma=0.5)
    other = np.where(rng.random(300) < 0.5, 1, -1).astype(np.int8)
    some = np.flatnonzero(X[:, 2] > 0)
    machines = (
        forms.classification(y, np.full(300, 2.0)),
        forms.classification(other, np.full(300, 1.0)),
        forms.classification(y[some], np.full(len(some), 5.0), some),
    )
    together = Native().solve(DualProblem(X, kernel, machines, tol=1e-5), EFFORT)
    for machine, solution in zip(machines, together, strict=True):
        (alone,) = Native().solve(DualProblem(X, kernel, (machine,), tol=1e-5), EFFORT)
        assert solution.status == "converged"
        assert solution.objective == pytest.approx(alone.objective, rel=1e-7)
    for solution, one_thread in zip(
        together, Native().solve(DualProblem(X, kernel, machines, tol=1e-5), Effort(n_jobs=1)), strict=True
    ):
        np.testing.assert_array_equal(solution.alpha, one_thread.alpha)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_shrinking_changes_the_way_not_the_end(is_sparse, rng):
    X = rng.normal(size=(6000, 4))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=6000) > 0, 1, -1).astype(np.int8)
    points = sp.csr_matrix(X) if is_sparse else X
    machine = forms.classification(y, np.full(6000, 5.0))
    kernel = Kernel("rbf", gamma=0.5)
    found = {}
    for shrinking in (True, False):
        problem = DualProblem(points, kernel, (machine,), shrinking=shrinking)
        (found[shrinking],) = Native().solve(problem, EFFORT)
        assert found[shrinking].status == "converged"
        assert exact_violation(problem, machine, found[shrinking].alpha) <= 1e-3
    assert found[True].objective == pytest.approx(found[False].objective, rel=1e-5)
    (one_thread,) = Native().solve(DualProblem(points, kernel, (machine,)), Effort(n_jobs=1))
    np.testing.assert_array_equal(one_thread.alpha, found[True].alpha)


@pytest.mark.parametrize("name", ["one class", "regression", "nu regression", "nu"])
def test_shrinking_of_the_other_forms(name, rng):
    X, y, z, weight = table(rng, n=5000)
    machine = form(name, y, z, weight)
    problem = DualProblem(X, Kernel("rbf", gamma=0.5), (machine,))
    (solution,) = Native().solve(problem, EFFORT)
    assert solution.status == "converged"
    assert exact_violation(problem, machine, solution.alpha) <= 1e-3


def test_single_precision_never_claims_more_than_double(rng):
    """Large C, a column a million times the others: whoever says converged has converged, in float64."""
    X, y, _, _ = table(rng, n=700)
    X[:, 2] *= 1e3
    machine = forms.classification(y, np.full(700, 1e5))
    for precision in ("single", "auto"):
        problem = DualProblem(X, Kernel("rbf", gamma=1.0), (machine,), tol=1e-6, precision=precision)
        (solution,) = Native().solve(problem, EFFORT)
        worst = exact_violation(problem, machine, solution.alpha)
        assert (solution.status == "converged") == (worst <= 1e-6 * (1 + 1e-6)), (precision, solution.status, worst)
    assert solution.status == "converged"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(FORMS), st.integers(2, 25))
def test_ugly_tables_of_every_form(seed, name, n):
    random = np.random.default_rng(seed)
    X = random.integers(-1, 2, size=(n, 2)).astype(float)
    y = np.where(random.random(n) < 0.5, 1, -1).astype(np.int8)
    y[:2] = [1, -1]
    z = random.integers(-2, 3, size=n).astype(float)
    machine = form(name, y, z, random.integers(1, 4, size=n).astype(float))
    problem = DualProblem(X, Kernel("rbf", gamma=0.7), (machine,), tol=1e-5)
    (ours,), (reference,) = Native().solve(problem, EFFORT), smo(problem)
    assert ours.status == reference.status == "converged"
    assert ours.objective == pytest.approx(reference.objective, rel=1e-4, abs=1e-4)


def test_time_and_steps_run_out(rng):
    X = rng.normal(size=(4000, 5))
    y = np.where(rng.random(4000) < 0.5, 1, -1).astype(np.int8)
    machine = forms.classification(y, np.full(4000, 1e4))
    problem = DualProblem(X, Kernel("rbf", gamma=0.1), (machine,))
    started = time.monotonic()
    (late,) = Native().solve(problem, Effort(time_limit=0.2, n_jobs=2))
    assert time.monotonic() - started < 5
    assert late.status is Status.TIME_LIMIT
    (few,) = Native().solve(DualProblem(X, Kernel("rbf", gamma=0.1), (machine,), max_iter=100), EFFORT)
    assert (few.status, few.n_iter) == (Status.MAX_ITER, 100)
    for solution in (late, few):
        assert abs(solution.alpha @ y) <= 1e-9 * solution.alpha.sum()
        assert ((solution.alpha >= 0) & (solution.alpha <= 1e4)).all()
        np.testing.assert_allclose(solution.v, exact(problem, machine, solution.alpha)[0], rtol=0, atol=1)
        assert solution.violation > 1e-3


@pytest.mark.parametrize("shift", [300.0, 3000.0])
def test_rows_far_out_are_checked(shift, rng):
    """float32 loses the distances of a far cluster alone, which a random sample of the rows would hardly meet."""
    X = rng.normal(size=(3000, 4))
    y = np.where(rng.random(3000) < 0.5, 1, -1).astype(np.int8)
    X[-6:] += shift
    machine = forms.classification(y, np.full(3000, 10.0))
    problem = DualProblem(X, Kernel("rbf", gamma=1.0), (machine,))
    (solution,) = Native().solve(problem, EFFORT)
    assert solution.status == "converged"
    assert exact_violation(problem, machine, solution.alpha) <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize(("C", "noise"), [(10.0, 0.05), (1e3, 0.01), (1e5, 0.002)])
def test_tight_groups_in_conflict_are_checked(C, noise):
    """A few rows whose α goes far and comes back: rounding stays in v near them, and nowhere else."""
    random = np.random.default_rng(2)
    X = random.uniform(0, 50, size=(3000, 6))
    X[-6:] = X[-6] + noise * random.normal(size=(6, 6))
    y = np.where(random.random(3000) < 0.5, 1, -1).astype(np.int8)
    machine = forms.classification(y, np.full(3000, C))
    problem = DualProblem(X, Kernel("rbf", gamma=1.0), (machine,), max_iter=1_000_000)
    for precision in ("single", "auto"):
        (solution,) = Native().solve(replace(problem, precision=precision), EFFORT)
        worst = exact_violation(problem, machine, solution.alpha)
        assert (solution.status == "converged") == (worst <= 1e-3 * (1 + 1e-6)), (precision, solution.status, worst)
    assert solution.status == "converged"
