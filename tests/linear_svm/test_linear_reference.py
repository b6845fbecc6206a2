"""The solvers against machines that are known: made around their solution, or solved by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.linear_svm.objectives import made_around, within_bounds

from margrove.engine import Effort, solve
from margrove.errors import EngineError
from margrove.linear_svm.problem import (
    LOSSES,
    CrammerSingerProblem,
    LinearMachine,
    LinearPathProblem,
    LinearSvmProblem,
    balanced,
    bounds_of,
    crammer_singer_losses,
    dual_terms,
    implied_beta,
    is_squared,
    losses,
)
from margrove.status import Status

ENGINES = ["reference", "native"]
INTERCEPTS = [0.0, 1.0, 2.5, math.inf]
SQUARED = [loss for loss in LOSSES if is_squared(loss)]
CASES = [(loss, "l2") for loss in LOSSES] + [(loss, "l1") for loss in SQUARED]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("s", INTERCEPTS)
@pytest.mark.parametrize(("loss", "penalty"), CASES)
def test_the_gap_bounds_the_distance_from_the_optimum(loss, penalty, s, engine, rng):
    """The best machine is known: found is never below it, and above it by no more than the gap says."""
    made = made_around(rng, loss, penalty, s, tol=1e-3)
    (found,) = solve(made.problem, engine, Effort(n_jobs=1))
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-3
    value = made.value_of(found.w, found.b)
    assert value == pytest.approx(found.primal, rel=1e-9)
    assert found.dual <= made.least * (1 + 1e-9)
    assert made.least * (1 - 1e-9) <= value <= made.least + found.gap * value + 1e-12


@pytest.mark.parametrize("s", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_penalty_l1_with_a_kink_in_the_loss_is_solved_by_the_core(loss, s, rng):
    made = made_around(rng, loss, "l1", s, tol=1e-3)
    (found,) = solve(made.problem, "native", Effort(n_jobs=1))
    assert found.status is Status.CONVERGED
    value = made.value_of(found.w, found.b)
    assert made.least * (1 - 1e-9) <= value <= made.least + 1e-3 * value
    assert found.dual <= made.least * (1 + 1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("s", [0.0, 2.5, math.inf])
@pytest.mark.parametrize(("loss", "penalty"), CASES)
def test_beta_proves_the_dual_value(loss, penalty, s, engine, rng):
    """β as it is handed over is feasible, and worth what is said."""
    made = made_around(rng, loss, penalty, s, tol=1e-3)
    (found,) = solve(made.problem, engine, Effort(n_jobs=1))
    machine, X = made.problem.machines[0], made.problem.X
    assert within_bounds(loss, machine.target, found.beta, machine.cost).max() <= 1e-12
    v, u = X.T @ found.beta, found.beta.sum()
    value = dual_terms(loss, machine.target, found.beta, machine.cost, made.problem.epsilon).sum()
    if math.isinf(s):
        assert abs(u) <= 1e-9 * np.abs(found.beta).sum()
    if penalty == "l1":
        assert np.abs(v).max() <= 1 + 1e-9
        assert math.isinf(s) or s * abs(u) <= 1 + 1e-9
    else:
        value -= 0.5 * (v @ v) + (0.0 if math.isinf(s) else 0.5 * (s * u) ** 2)
    assert value == pytest.approx(found.dual, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_points_on_a_line(engine):
    """x = ±1, no intercept: hinge has w = min(1, 2C); squared hinge w = 4C/(1 + 4C)."""
    X, z = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    for C in (0.25, 3.0):
        problem = LinearSvmProblem(X, (LinearMachine(z, np.full(2, C)),), "hinge", intercept=0.0, tol=1e-9)
        assert solve(problem, engine)[0].w[0] == pytest.approx(min(1, 2 * C), abs=1e-4)
        squared = solve(replace(problem, loss="squared_hinge"), engine)[0]
        assert squared.w[0] == pytest.approx(4 * C / (1 + 4 * C), abs=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_value_to_predict(engine):
    """x = 1, z = 3, ε = 1, no intercept: w = min(2, C); squared w = 4C/(1 + 2C)."""
    X, z = np.array([[1.0]]), np.array([3.0])
    for C in (0.5, 5.0):
        machine = (LinearMachine(z, np.array([C])),)
        problem = LinearSvmProblem(X, machine, "epsilon_insensitive", intercept=0.0, epsilon=1.0, tol=1e-9)
        assert solve(problem, engine)[0].w[0] == pytest.approx(min(2, C), abs=1e-4)
        squared = solve(replace(problem, loss="squared_epsilon_insensitive"), engine)[0]
        assert squared.w[0] == pytest.approx(4 * C / (1 + 2 * C), abs=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_penalty_l1_leaves_a_weak_column_out(engine):
    """One column x = ±1 under l1, squared hinge: 4C(1 − w) = 1 or w = 0, so w = max(0, 1 − 1/(4C))."""
    X, z = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    for C, w in ((0.2, 0.0), (1.0, 0.75)):
        problem = LinearSvmProblem(X, (LinearMachine(z, np.full(2, C)),), "squared_hinge", "l1", 0.0, tol=1e-9)
        assert solve(problem, engine)[0].w[0] == pytest.approx(w, abs=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_crammer_and_singer_of_two_points(engine):
    """x = ±1 of two classes: w_1 = −w_0 = v, so P = v² + 2C max(0, 1 − 2v), which is least at v = min(½, 2C)."""
    X, codes = np.array([[1.0], [-1.0]]), np.array([1, 0], np.int32)
    for C in (0.1, 1.0):
        found = solve(CrammerSingerProblem(X, codes, 2, np.full(2, C), 0.0, 1e-9), engine)
        assert found.w[:, 0] == pytest.approx([-min(0.5, 2 * C), min(0.5, 2 * C)], abs=1e-4)


@pytest.mark.parametrize("s", [0.0, 1.0])
def test_crammer_and_singers_gap_is_between_two_values_that_anybody_can_compute(s, rng):
    X, codes = rng.normal(size=(40, 3)), rng.integers(0, 4, size=40).astype(np.int32)
    cost = rng.uniform(0, 2, size=40)
    cost[:3] = 0
    found = solve(CrammerSingerProblem(X, codes, 4, cost, s, 1e-3, 5000), "reference")
    assert found.status is Status.CONVERGED
    scaled = found.b / s if s else found.b * 0
    primal = 0.5 * (found.w**2).sum() + 0.5 * (scaled**2).sum()
    primal += cost @ crammer_singer_losses(X @ found.w.T + found.b, codes)
    v = found.beta.T @ X
    dual = (
        found.beta[np.arange(40), codes].sum()
        - 0.5 * (v**2).sum()
        - 0.5 * (s * found.beta.sum(axis=0)) ** 2 @ np.ones(4)
    )
    assert (primal, dual) == pytest.approx((found.primal, found.dual), rel=1e-9)
    assert np.abs(found.beta.sum(axis=1)).max() < 1e-9
    upper = np.zeros((40, 4))
    upper[np.arange(40), codes] = cost
    assert (found.beta <= upper + 1e-12).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_path_is_the_machines_one_by_one(loss, engine, rng):
    made = made_around(rng, loss, "l2", 1.0, tol=1e-3)
    factors = np.array([0.1, 1.0, 3.0])
    path = solve(LinearPathProblem(made.problem, factors), engine, Effort(n_jobs=1))
    handed = {}
    taken = solve(
        LinearPathProblem(made.problem, factors, lambda step, k, found: handed.update({(step, k): found})), engine
    )
    assert taken == ()
    assert sorted(handed) == [(0, 0), (1, 0), (2, 0)]
    for number, (factor, (found,)) in enumerate(zip(factors, path, strict=True)):
        machine = made.problem.machines[0]
        alone = replace(made.problem, machines=(replace(machine, cost=factor * machine.cost),))
        (single,) = solve(alone, engine, Effort(n_jobs=1))
        assert found.primal == pytest.approx(single.primal, rel=2e-3)
        assert found.status is Status.CONVERGED
        assert handed[number, 0].primal == pytest.approx(single.primal, rel=2e-3)


def test_a_start_at_the_end_takes_no_pass(rng):
    for loss, penalty in CASES:
        made = made_around(rng, loss, penalty, 1.0)
        (found,) = solve(made.problem, "reference")
        begun = replace(made.problem.machines[0], w=found.w, b=found.b, beta=found.beta)
        (again,) = solve(replace(made.problem, machines=(begun,)), "reference")
        assert (again.n_iter, again.status) == (0, Status.CONVERGED)


def test_rows_of_cost_zero_are_ignored(rng):
    for loss in LOSSES:
        made = made_around(rng, loss, "l2", 1.0)
        machine = made.problem.machines[0]
        X = np.vstack([made.problem.X, 1e3 * np.ones((2, 4))])
        more = LinearMachine(np.append(machine.target, [1.0, -1.0]), np.append(machine.cost, [0.0, 0.0]))
        for engine in ENGINES:
            (found,) = solve(replace(made.problem, rows=X, machines=(more,)), engine)
            assert found.beta[-2:].tolist() == [0, 0]
            assert found.primal == pytest.approx(made.least, rel=1e-3)


def test_sparse_points_are_the_same_points(rng):
    made = made_around(rng, "squared_hinge", "l2", 1.0)
    for engine in ENGINES:
        (dense,) = solve(made.problem, engine)
        (sparse,) = solve(replace(made.problem, rows=sp.csr_matrix(made.problem.X)), engine)
        assert sparse.primal == pytest.approx(dense.primal, rel=1e-4)


def test_too_few_passes_are_reported_and_keep_a_proof(rng):
    made = made_around(rng, "squared_hinge", "l2", 1.0)
    (found,) = solve(replace(made.problem, max_iter=1, tol=1e-12), "reference")
    assert found.status is Status.MAX_ITER
    assert found.dual <= made.least <= found.primal * (1 + 1e-12)


def test_overflow_ends_with_status_nonfinite(rng):
    made = made_around(rng, "squared_hinge", "l2", 1.0)
    (found,) = solve(replace(made.problem, rows=made.problem.X * 1e200), "reference")
    assert found.status is Status.NONFINITE


def test_penalty_l1_with_a_kink_in_the_loss_is_refused_by_the_reference(rng):
    made = made_around(rng, "hinge", "l2", 1.0)
    with pytest.raises(EngineError, match="penalty='l1' with loss='hinge'"):
        solve(replace(made.problem, penalty="l1"), "reference")


NUMBERS = st.floats(-5, 5)


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_balanced_dual_coefficients_sum_to_zero_and_never_grow(values):
    beta = np.array(values)
    even = balanced(beta)
    assert abs(even.sum()) <= 1e-12 * (1 + np.abs(beta).sum())
    assert (np.abs(even) <= np.abs(beta)).all()
    assert (even * beta >= 0).all()


@given(st.sampled_from(LOSSES), NUMBERS, NUMBERS, st.floats(0.01, 5), st.floats(0, 2), NUMBERS)
def test_no_dual_term_exceeds_the_conjugate_bound(loss, z, f, C, epsilon, beta):
    """Fenchel and Young, on which the whole certificate rests: C ℓ(f) + β f ≥ the dual term of β."""
    z = math.copysign(1.0, z) if loss.endswith("hinge") else z
    target, cost = np.array([z]), np.array([C])
    low, high = bounds_of(loss, target, cost)
    feasible = np.clip(np.array([beta]), low, high)
    assert within_bounds(loss, target, feasible, cost)[0] == 0
    total = C * losses(loss, target, np.array([f]), epsilon)[0] + feasible[0] * f
    assert total >= dual_terms(loss, target, feasible, cost, epsilon)[0] - 1e-9
    if is_squared(loss):  # and the β that f implies attains it
        implied = implied_beta(loss, target, np.array([f]), cost, epsilon)
        total = C * losses(loss, target, np.array([f]), epsilon)[0] + implied[0] * f
        assert total == pytest.approx(dual_terms(loss, target, implied, cost, epsilon)[0], rel=1e-9, abs=1e-9)
