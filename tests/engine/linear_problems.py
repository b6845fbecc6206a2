"""Centroids, least squares and perceptrons. All are unique: a perceptron's seed decides the order of its mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from tests.engine.kind import TABLES, Kind, Learner, Table, Twins, dense, table, whole_weights

import margrove
from margrove.data.sample import one_vs_rest_signs
from margrove.linear.problem import (
    CentroidProblem,
    KernelPerceptronProblem,
    KernelPerceptronSolution,
    LeastSquaresProblem,
    LinearSolution,
    PerceptronProblem,
    PerceptronSolution,
)
from margrove.status import Status
from margrove.svm.kernels import Kernel

N_ROWS = 24  # the reference goes over single rows in Python
RBF = Kernel("rbf", gamma=0.3)
START = (np.array([[-1.0, 0.5, 0.2]]), np.array([3.0]))  # w and b of one machine


def _signs(rows: Table) -> np.ndarray:
    return one_vs_rest_signs(rows.codes, 3)


def _learner(estimator: Any, name: str = "weighted") -> Learner:
    rows = TABLES[name]()
    return Learner(
        lambda engine: estimator.set_params(engine=engine).fit(rows.X, rows.codes, sample_weight=rows.weight),
        lambda model: margrove.certify(model, rows.X, rows.codes, sample_weight=rows.weight),
    )


def _compare(problem: Any, solution: LinearSolution, expected: LinearSolution) -> None:
    assert solution.status is expected.status
    np.testing.assert_allclose(solution.coef, expected.coef, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(solution.intercept, expected.intercept, rtol=1e-7, atol=1e-7)


def _weights_and_intercepts(solution: LinearSolution) -> dict[str, Any]:
    return {"coef": solution.coef, "intercept": solution.intercept}


# Centroids


def _centroids(name: str, n_classes: int = 3) -> Callable[[], CentroidProblem]:
    def case() -> CentroidProblem:
        rows = TABLES[name]()
        codes = rows.codes if n_classes == 3 else (rows.codes > 0).astype(np.int32)
        return CentroidProblem(rows.X, codes, n_classes, rows.weight)

    return case


def _check_centroids(problem: CentroidProblem, solution: LinearSolution) -> None:
    """w leads from the mean of the others to that of the class, and f is 0 in the middle and ½‖w‖² at the mean."""
    X, weight = dense(problem.X), np.ones(len(problem.codes)) if problem.weight is None else problem.weight
    positives = [1] if problem.n_classes == 2 else range(problem.n_classes)
    for positive, w, b in zip(positives, solution.coef, solution.intercept, strict=True):
        inside = problem.codes == positive
        means = [weight[part] @ X[part] / weight[part].sum() for part in (inside, ~inside)]
        np.testing.assert_allclose(w, means[0] - means[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose([mean @ w + b for mean in means], [w @ w / 2, -w @ w / 2], rtol=1e-9, atol=1e-12)


def _centroid_twins() -> Twins:
    rows, times = whole_weights(8)
    again = np.repeat(np.arange(rows.n), times)
    weighted = CentroidProblem(rows.X, rows.codes, 3, times.astype(np.float64))
    return Twins(weighted, CentroidProblem(rows.X[again], rows.codes[again], 3), _weights_and_intercepts, rtol=1e-9)


CENTROIDS = Kind(
    CentroidProblem,
    {**{name: _centroids(name) for name in TABLES}, "two classes": _centroids("weighted", 2)},
    _check_centroids,
    _compare,
    lambda solution: [solution.status],
    large=lambda: CentroidProblem(table(7, 9000, 6).X, table(7, 9000, 6).codes, 3),
    twins=_centroid_twins,
    learners={
        "BasicLinearClassifier": _learner(margrove.BasicLinearClassifier()),
        "BasicLinearClassifier of sparse": _learner(margrove.BasicLinearClassifier(), "sparse"),
    },
)


# Least squares


def _least_squares(name: str, **options: Any) -> Callable[[], LeastSquaresProblem]:
    def case() -> LeastSquaresProblem:
        rows = TABLES[name]()
        return LeastSquaresProblem(rows.X, _signs(rows), rows.weight, **options)

    return case


def _check_least_squares(problem: LeastSquaresProblem, solution: LinearSolution) -> None:
    """The residual is orthogonal to every column and to the constant: the normal equations."""
    X, weight = dense(problem.X), problem.weight
    if problem.fit_intercept:
        X = np.hstack([X, np.ones((len(X), 1))])
    weights = np.column_stack([solution.coef, solution.intercept]) if problem.fit_intercept else solution.coef
    residual = X @ weights.T - problem.sign.T
    size = np.sqrt(weight @ X**2)[:, None] * np.sqrt(weight.sum())
    assert (np.abs(X.T @ (weight[:, None] * residual)) <= 1e-7 * size).all()
    assert problem.fit_intercept or not solution.intercept.any()


def _least_squares_twins() -> Twins:
    rows, times = whole_weights(8)
    again = np.repeat(np.arange(rows.n), times)
    weighted = LeastSquaresProblem(rows.X, _signs(rows), times.astype(np.float64))
    return Twins(weighted, LeastSquaresProblem(rows.X[again], _signs(rows)[:, again]), _weights_and_intercepts, 1e-7)


LEAST_SQUARES = Kind(
    LeastSquaresProblem,
    {
        **{name: _least_squares(name) for name in TABLES},
        "no intercept": _least_squares("weighted", fit_intercept=False),
    },
    _check_least_squares,
    _compare,
    lambda solution: [solution.status],
    large=lambda: LeastSquaresProblem(table(7, 4000, 20).X, _signs(table(7, 4000, 20))),
    twins=_least_squares_twins,
    learners={
        "LeastSquaresClassifier": _learner(margrove.LeastSquaresClassifier()),
        "LeastSquaresClassifier of sparse": _learner(margrove.LeastSquaresClassifier(), "sparse"),
    },
)


# Perceptrons


def _separable(rows: Table) -> Table:
    """The rows moved apart by their sign."""
    return replace(rows, X=rows.X + 3.0 * rows.sign[:, None])


def _perceptron(name: str, **options: Any) -> Callable[[], PerceptronProblem]:
    def case() -> PerceptronProblem:
        rows = TABLES[name]().first(N_ROWS)
        how = {"eta": 0.5, "max_iter": 5, "seeds": (3, 1 << 40, 5), **options}
        return PerceptronProblem(rows.X, _signs(rows), rows.weight, **how)

    return case


def _separated(**options: Any) -> PerceptronProblem:
    rows = _separable(TABLES["dense"]())
    return PerceptronProblem(rows.X, rows.sign[None], **{"seeds": (1,), **options})


def _rows_left_out() -> PerceptronProblem:
    rows = TABLES["dense"]().first(N_ROWS)
    sign = _signs(rows)
    sign[:, ::4] = 0
    return PerceptronProblem(rows.X, sign, max_iter=5, seeds=(1, 2, 3))


def _check_perceptron(problem: PerceptronProblem, solution: PerceptronSolution) -> None:
    """w = start + η Σ α s y (x, 1); a walk's corrections are those that α counts; converged is separated."""
    assert (solution.last_pass <= solution.mistakes).all()
    if problem.is_penalised:
        _check_penalised(problem, solution)
        return
    X = np.hstack([dense(problem.X), np.full((problem.X.shape[0], 1), float(problem.fit_intercept))])
    weight = np.ones(len(X)) if problem.weight is None else problem.weight
    assert (solution.mistakes == solution.alpha.sum(axis=1)).all()
    start = np.zeros((len(problem.sign), X.shape[1]))
    if problem.start is not None:
        start = np.column_stack(problem.start)
    last = start + problem.eta * (solution.alpha * weight * problem.sign) @ X
    found = np.column_stack([solution.coef, solution.intercept])
    if problem.variant == "last":
        np.testing.assert_allclose(found, last, rtol=1e-9, atol=1e-9)
        assert solution.walks == ()
    for machine, walk in enumerate(solution.walks):
        np.testing.assert_array_equal(np.bincount(walk.makers, minlength=len(X)), solution.alpha[machine])
        step = problem.eta * (weight * problem.sign[machine])[walk.makers]
        if problem.variant == "voted":
            np.testing.assert_allclose(walk.prototypes, start[machine] + np.cumsum(step[:, None] * X[walk.makers], 0))
        else:
            lived = (walk.steps - walk.times + 1) / walk.steps
            np.testing.assert_allclose(found[machine], start[machine] + (step * lived) @ X[walk.makers], atol=1e-9)
    if solution.status is Status.CONVERGED:
        f = last[:, :-1] @ X[:, :-1].T + last[:, -1:]
        assert (problem.sign * f > 0)[problem.sign != 0].all()
        assert not solution.last_pass.any()


def _check_penalised(problem: PerceptronProblem, solution: PerceptronSolution) -> None:
    """Finite weights, and no α; converged is separated."""
    assert np.isfinite(solution.coef).all()
    assert np.isfinite(solution.intercept).all()
    assert not solution.alpha.size
    if solution.status is Status.CONVERGED:
        f = solution.coef @ dense(problem.X).T + solution.intercept[:, None]
        assert (problem.sign * f > 0)[problem.sign != 0].all()


def _compare_perceptrons(problem: PerceptronProblem, solution: Any, expected: Any) -> None:
    _compare(problem, solution, expected)
    assert solution.n_iter == expected.n_iter
    for name in ("alpha", "mistakes", "last_pass"):
        np.testing.assert_array_equal(getattr(solution, name), getattr(expected, name))
    for mine, theirs in zip(solution.walks, expected.walks, strict=True):
        assert mine.steps == theirs.steps
        np.testing.assert_array_equal(mine.makers, theirs.makers)
        np.testing.assert_array_equal(mine.times, theirs.times)
        np.testing.assert_allclose(mine.prototypes, theirs.prototypes, rtol=1e-9, atol=1e-9)


def _noise(n: int, d: int, max_iter: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sign = np.where(rng.random((2, n)) < 0.5, 1, -1).astype(np.int8)
    return {"rows": rng.normal(size=(n, d)), "sign": sign, "max_iter": max_iter, "seeds": (1, 2)}


def _penalised(name: str, **options: Any) -> Callable[[], PerceptronProblem]:
    return _perceptron(name, **{"alpha": 0.01, **options})


_PENALISED: dict[str, Callable[[], PerceptronProblem]] = {
    **{name: _penalised(name) for name in TABLES},
    "l1": _penalised("weighted", l1_ratio=1.0),
    "l1 of sparse": _penalised("sparse", l1_ratio=1.0, max_iter=40),
    "l2": _penalised("weighted", l1_ratio=0.0, shuffle=False, fit_intercept=False),
    "l2 of sparse": _penalised("sparse", l1_ratio=0.0),
    "shrinks fast": _penalised("weighted", alpha=1.5),
    "shrinks fast, sparse": _penalised("sparse", alpha=1.5),
    "shrinks to 0": _penalised("sparse", alpha=30.0, l1_ratio=0.0),
    "pays far too much": _penalised("sparse", alpha=1e300, l1_ratio=1.0),
    "stalled": _penalised("weighted", tol=0.01, n_iter_no_change=2, max_iter=50),
    "separated": lambda: _separated(alpha=1e-4),
    "from a start": lambda: _separated(alpha=1e-4, start=START),
    "from a start, b fixed": lambda: _separated(alpha=1e-4, start=START, fit_intercept=False),
    "rows left out": lambda: replace(_rows_left_out(), alpha=0.01),
}


PERCEPTRONS = Kind(
    PerceptronProblem,
    {
        **{name: _perceptron(name) for name in TABLES},
        **{variant: _perceptron("weighted", variant=variant) for variant in ("averaged", "voted")},
        "averaged of sparse": _perceptron("sparse", variant="averaged"),
        "in the rows' order": _perceptron("weighted", shuffle=False, fit_intercept=False),
        "stalled": _perceptron("weighted", tol=0.01, n_iter_no_change=2, max_iter=50),
        "separated": _separated,
        "separated and averaged": lambda: _separated(variant="averaged"),
        "from a start": lambda: _separated(start=START),
        "from a start, b fixed": lambda: _separated(start=START, fit_intercept=False),
        "rows left out": _rows_left_out,
        **{f"penalty: {name}": case for name, case in _PENALISED.items()},
    },
    _check_perceptron,
    _compare_perceptrons,
    lambda solution: [solution.status],
    long=lambda: PerceptronProblem(**_noise(4000, 20, 10**9)),
    large=lambda: PerceptronProblem(**_noise(4000, 20, 30)),
    cut=lambda problem: replace(problem, max_iter=1),
    learners={
        "Perceptron with a penalty": Learner(
            lambda engine: margrove.Perceptron(engine=engine, penalty="l2").fit(_separated().X, _separated().sign[0]),
            lambda model: margrove.certify(model, _separated().X, _separated().sign[0]),
        ),
        "Perceptron": Learner(
            lambda engine: margrove.Perceptron(engine=engine).fit(_separated().X, _separated().sign[0]),
            lambda model: margrove.certify(model, _separated().X, _separated().sign[0]),
        ),
    },
)


# Kernel perceptrons


def _kernel_perceptron(name: str, kernel: Kernel = RBF, **options: Any) -> Callable[[], KernelPerceptronProblem]:
    def case() -> KernelPerceptronProblem:
        rows = TABLES[name]().first(N_ROWS)
        X = RBF.matrix(rows.X, rows.X) if kernel.name == "precomputed" else rows.X
        how = {"eta": 0.25, "max_iter": 5, "seeds": (1, 2, 3), **options}
        return KernelPerceptronProblem(X, _signs(rows), rows.weight, kernel=kernel, **how)

    return case


def _separated_by_kernel() -> KernelPerceptronProblem:
    rows = TABLES["dense"]()
    return KernelPerceptronProblem(rows.X, rows.sign[None], kernel=Kernel("rbf", gamma=5.0), seeds=(1,))


def _check_kernel_perceptron(problem: KernelPerceptronProblem, solution: KernelPerceptronSolution) -> None:
    """f = η Σ α s y (K + 1); converged is separated."""
    G = problem.X if problem.kernel.name == "precomputed" else problem.kernel.matrix(problem.X, problem.X)
    weight = np.ones(len(G)) if problem.weight is None else problem.weight
    f = problem.eta * (solution.alpha * weight * problem.sign) @ (G + float(problem.fit_intercept)).T
    np.testing.assert_allclose(solution.decision, f, rtol=1e-5, atol=1e-5)  # kernel values of float32 rows are float32
    assert (solution.mistakes == solution.alpha.sum(axis=1)).all()
    if solution.status is Status.CONVERGED:
        assert (problem.sign * f > 0)[problem.sign != 0].all()


def _compare_kernel_perceptrons(problem: KernelPerceptronProblem, solution: Any, expected: Any) -> None:
    assert (solution.status, solution.n_iter) == (expected.status, expected.n_iter)
    np.testing.assert_array_equal(solution.alpha, expected.alpha)
    np.testing.assert_array_equal(solution.mistakes, expected.mistakes)
    np.testing.assert_allclose(solution.decision, expected.decision, rtol=1e-5, atol=1e-5)


def _noisy_kernel(n: int, max_iter: int) -> KernelPerceptronProblem:
    return KernelPerceptronProblem(**_noise(n, 20, max_iter), kernel=Kernel("linear"))


KERNEL_PERCEPTRONS = Kind(
    KernelPerceptronProblem,
    {
        **{name: _kernel_perceptron(name) for name in TABLES},
        "precomputed": _kernel_perceptron("weighted", Kernel("precomputed")),
        "callable": _kernel_perceptron("weighted", Kernel("callable", function=lambda X, Z: (X @ Z.T + 1) ** 2)),
        "no intercept": _kernel_perceptron("weighted", fit_intercept=False, shuffle=False),
        "few rows kept": _kernel_perceptron("weighted", cache_bytes=3 * 24 * 8),
        "separated": _separated_by_kernel,
    },
    _check_kernel_perceptron,
    _compare_kernel_perceptrons,
    lambda solution: [solution.status],
    long=lambda: _noisy_kernel(1500, 10**9),
    large=lambda: _noisy_kernel(1500, 20),
    cut=lambda problem: replace(problem, max_iter=1),
    learners={
        "KernelPerceptron": Learner(
            lambda engine: margrove.KernelPerceptron(gamma=5.0, engine=engine).fit(*_points_and_signs()),
            lambda model: margrove.certify(model, *_points_and_signs()),
        )
    },
)


def _points_and_signs() -> tuple[Any, Any]:
    rows = TABLES["dense"]()
    return rows.X, rows.sign


KINDS = (CENTROIDS, LEAST_SQUARES, PERCEPTRONS, KERNEL_PERCEPTRONS)
