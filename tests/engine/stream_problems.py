"""Linear SVMs over chunks of rows. Unique is the objective; a gap within tol proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.engine.kind import TABLES, Kind, Learner, Twins, dense, whole_weights
from tests.engine.linear_svm_problems import (
    INTERCEPTS,
    LOSSES,
    N_ROWS,
    TOL,
    check_values,
    dual_value,
    implied_beta,
    power_of,
    primal_value,
    targets_of,
)

import margrove
from margrove.data.rows import Chunked
from margrove.linear_svm.problem import LinearMachine, LinearSvmProblem, Loss, balanced
from margrove.linear_svm.proximal import after_steps
from margrove.linear_svm.stream_problem import RowBlock, StreamProblem, StreamSolution
from margrove.status import Status


def _chunked(X: Any, targets: np.ndarray, costs: np.ndarray, size: int = 12, **options: Any) -> StreamProblem:
    """The rows in chunks of ``size``, and the problem on them."""
    starts = range(0, X.shape[0], size)
    blocks = [RowBlock(X[i : i + size], targets[:, i : i + size], costs[:, i : i + size]) for i in starts]
    rows = Chunked(int(X.shape[0]), int(X.shape[1]), sp.issparse(X), lambda: iter(blocks))
    machines = len(targets)
    at_zero = StreamProblem(rows, np.ones(machines), np.ones(machines), **options)
    centre = np.zeros((machines, rows.d + 1)) if at_zero.centre is None else at_zero.centre
    values = dense(X) @ centre[:, :-1].T + centre[:, -1]
    of_each = zip(targets, costs, values.T, strict=True)
    at_centre = [primal_value(at_zero, z, C, f, np.zeros(rows.d), 0.0) for z, C, f in of_each]
    spread = np.ones(machines) if at_zero.loss.endswith("hinge") else np.sqrt((targets**2).mean(axis=1))
    return replace(at_zero, primal_at_centre=np.array(at_centre), spread=spread)


def _stream(name: str, loss: Loss = "squared_hinge", **options: Any) -> Callable[[], StreamProblem]:
    def case() -> StreamProblem:
        rows = TABLES[name]().first(N_ROWS)
        targets = np.array([targets_of(rows, loss), np.roll(targets_of(rows, loss), 5)])
        costs = np.array([2 * rows.weight, 0.3 * rows.weight])
        return _chunked(rows.X, targets, costs, **{"loss": loss, "epsilon": 0.2, "tol": TOL, **options})

    return case


def _stream_of_many_columns(loss: Loss) -> Callable[[], StreamProblem]:
    """More than a Hessian is held for."""

    def case() -> StreamProblem:
        rng = np.random.default_rng(9)
        X = sp.random(60, 2100, 0.02, format="csr", random_state=9)
        target = np.where(rng.random(60) < 0.5, 1.0, -1.0)[None]
        return _chunked(X, target, np.ones((1, 60)), loss=loss, tol=1e-4, max_passes=10_000)

    return case


def _piece() -> StreamProblem:
    """A new piece of rows for a machine that has seen others."""
    centre = np.random.default_rng(10).normal(size=(2, 4)) * 0.3
    return _stream("weighted", "hinge", centre=centre, max_passes=1000)()


def _whole(problem: StreamProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, targets and costs of all rows."""
    blocks = list(problem.rows.blocks())
    X = np.concatenate([dense(block.X) for block in blocks])
    return X, *(np.concatenate([getattr(block, name) for block in blocks], axis=1) for name in ("target", "cost"))


def _check_stream(problem: StreamProblem, solutions: tuple[StreamSolution, ...]) -> None:
    X, targets, costs = _whole(problem)
    centres = np.zeros((len(targets), problem.rows.d + 1)) if problem.centre is None else problem.centre
    for target, cost, centre, solution in zip(targets, costs, centres, solutions, strict=True):
        f = X @ solution.w + solution.b
        moved_w, moved_b = solution.w - centre[:-1], solution.b - centre[-1]
        primal = primal_value(problem, target, cost, f, moved_w, moved_b)
        beta = _beta(problem, solution, X, target, cost)
        dual = dual_value(problem, X, target, cost, beta) - float(beta @ (X @ centre[:-1] + centre[-1]))
        check_values(solution, primal, dual, problem.tol)
        np.testing.assert_allclose(solution.w_dual, centre[:-1] + beta @ X, rtol=1e-6, atol=1e-8)
        if not problem.is_free:
            b_dual = centre[-1] + problem.intercept**2 * beta.sum()
            np.testing.assert_allclose(solution.b_dual, b_dual, rtol=1e-6, atol=1e-8)


def _beta(
    problem: StreamProblem, solution: StreamSolution, X: np.ndarray, target: np.ndarray, cost: np.ndarray
) -> np.ndarray:
    """β of the dual value: implied by w for a squared loss, as it was kept, or from its steps."""
    if power_of(problem.loss) == 2:
        return implied_beta(problem, target, cost, X @ solution.w + solution.b)
    if solution.beta is not None:
        return solution.beta
    assert solution.steps is not None
    w, b, kappas = solution.steps[:, :-2], solution.steps[:, -2], solution.steps[:, -1]
    beta = after_steps(problem.loss, target, X @ w.T + b, cost, problem.epsilon, kappas)
    return balanced(beta) if problem.is_free else beta


def _compare(problem: StreamProblem, solutions: Any, expected: Any) -> None:
    for mine, theirs in zip(solutions, expected, strict=True):
        assert mine.status is theirs.status is Status.CONVERGED
        np.testing.assert_allclose(mine.primal, theirs.primal, rtol=2 * problem.tol, atol=1e-9)


def _in_memory(problem: StreamProblem) -> LinearSvmProblem | None:
    """The same problem for the reference, which knows no centre."""
    if problem.centre is not None:
        return None
    X, targets, costs = _whole(problem)
    machines = tuple(LinearMachine(z, C) for z, C in zip(targets, costs, strict=True))
    how = {"loss": problem.loss, "intercept": problem.intercept, "epsilon": problem.epsilon, "tol": problem.tol}
    return LinearSvmProblem(X, machines, **how, max_iter=10**5)


def _streamed_noise(n: int, d: int, **options: Any) -> StreamProblem:
    rng = np.random.default_rng(0)
    target = np.where(rng.random((1, n)) < 0.5, 1.0, -1.0)
    return _chunked(rng.normal(size=(n, d)), target, np.full((1, n), 10.0), size=1000, **options)


def _stream_twins() -> Twins:
    rows, times = whole_weights(8)
    again = np.repeat(np.arange(rows.n), times)
    z = targets_of(rows, "squared_hinge")[None]
    weighted = _chunked(rows.X, z, 2.0 * times[None], tol=1e-9)
    repeated = _chunked(rows.X[again], z[:, again], np.full((1, len(again)), 2.0), tol=1e-9)
    return Twins(weighted, repeated, lambda found: {"primal": found[0].primal, "w": found[0].w}, rtol=1e-3)


def _chunks(target: str) -> list[tuple[Any, Any, Any]]:
    rows = TABLES["weighted"]()
    y = getattr(rows, target)
    return [(rows.X[i : i + 12], y[i : i + 12], rows.weight[i : i + 12]) for i in range(0, rows.n, 12)]


def _stream_learner(estimator: Any, target: str) -> Learner:
    return Learner(
        lambda engine: estimator.set_params(engine=engine).fit_stream(_chunks(target)),
        lambda model: margrove.certify(model, _chunks(target)),
    )


STREAMS = Kind(
    StreamProblem,
    {
        **{name: _stream(name) for name in TABLES},
        **{
            f"{loss}, {name}": _stream("weighted", loss, intercept=s)
            for loss in LOSSES
            for name, s in INTERCEPTS.items()
        },
        "hinge of ties": _stream("ugly", "hinge"),
        "hinge of many columns": _stream_of_many_columns("hinge"),
        "squared hinge of many columns": _stream_of_many_columns("squared_hinge"),
        "a piece": _piece,
    },
    _check_stream,
    _compare,
    lambda solutions: [solution.status for solution in solutions],
    oracle=_in_memory,
    long=lambda: _streamed_noise(20_000, 300, loss="hinge", tol=1e-15, max_passes=10**9),
    large=lambda: _streamed_noise(6000, 40, loss="hinge", tol=1e-4),
    cut=lambda problem: replace(problem, max_passes=1),
    twins=_stream_twins,
    learners={
        "LinearSVC.fit_stream": _stream_learner(margrove.LinearSVC(loss="hinge"), "codes"),
        "LinearSVR.fit_stream": _stream_learner(margrove.LinearSVR(), "z"),
    },
)

KINDS = (STREAMS,)
