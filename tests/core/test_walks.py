"""The core's walks over the rows against reference.py: the same seed makes the same mistakes in the same order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from margrove.data.sample import one_vs_rest_signs
from margrove.engine import Effort, Native
from margrove.linear import reference
from margrove.linear.problem import (
    CentroidProblem,
    KernelPerceptronProblem,
    LeastSquaresProblem,
    PerceptronProblem,
)
from margrove.svm.kernels import NATIVE_KERNELS, Kernel

EFFORT = Effort(n_jobs=2)


def blobs(rng, n, d, classes, spread):
    codes = rng.integers(0, classes, size=n)
    codes[:classes] = np.arange(classes)
    X = rng.normal(size=(classes, d))[codes] * 2 + spread * rng.normal(size=(n, d))
    return X, codes


@pytest.mark.parametrize("variant", ["last", "averaged", "voted"])
@pytest.mark.parametrize("spread", [0.1, 3.0])  # separable with few mistakes; hopeless with many
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("d", [1, 3, 8, 50])
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
def test_perceptron_makes_the_corrections_of_the_reference(variant, spread, shuffle, d, form, rng):
    X, codes = blobs(rng, 60, d, 3, spread)
    X = {
        "float64": X,
        "float32": X.astype(np.float32),
        "csr": sp.csr_matrix(np.where(rng.random(X.shape) < 0.5, X, 0)),
    }[form]
    weight = rng.integers(0, 3, size=60).astype(float) if d == 3 else None
    sign = one_vs_rest_signs(codes, 3)
    if weight is not None:
        sign[:, weight == 0] = 0
    problem = PerceptronProblem(
        X,
        sign,
        weight,
        eta=0.5,
        variant=variant,
        shuffle=shuffle,
        max_iter=6,
        seeds=(3, 1 << 40, 5),
        fit_intercept=d != 8,
    )
    found, expected = Native().solve(problem, EFFORT), reference.perceptron(problem)
    np.testing.assert_array_equal(found.mistakes, expected.mistakes)
    np.testing.assert_array_equal(found.last_pass, expected.last_pass)
    np.testing.assert_allclose(found.alpha, expected.alpha, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-9, atol=1e-9)
    assert (found.status, found.n_iter) == (expected.status, expected.n_iter)
    for mine, theirs in zip(found.walks, expected.walks, strict=True):
        np.testing.assert_array_equal(mine.times, theirs.times)
        np.testing.assert_array_equal(mine.makers, theirs.makers)
        np.testing.assert_allclose(mine.prototypes, theirs.prototypes, rtol=1e-9, atol=1e-9)


def test_perceptron_stalls_as_the_reference(rng):
    X, codes = blobs(rng, 80, 4, 2, 3.0)
    problem = PerceptronProblem(X, one_vs_rest_signs(codes, 2), tol=0.01, n_iter_no_change=3, max_iter=500, seeds=(9,))
    found, expected = Native().solve(problem, EFFORT), reference.perceptron(problem)
    assert found.status == expected.status == "stalled"
    assert found.n_iter == expected.n_iter < 500
    np.testing.assert_allclose(found.coef, expected.coef)


def test_perceptron_goes_on_from_a_given_start(rng):
    X, codes = blobs(rng, 50, 4, 2, 2.0)
    start = (rng.normal(size=(1, 4)), rng.normal(size=1))
    problem = PerceptronProblem(X, one_vs_rest_signs(codes, 2), max_iter=3, seeds=(9,), start=start)
    for variant in ("last", "averaged"):
        varied = replace(problem, variant=variant)
        np.testing.assert_allclose(Native().solve(varied, EFFORT).coef, reference.perceptron(varied).coef)


def test_slices_of_time_change_nothing(rng):
    """A solve cut into many slices ends where an uncut one does."""
    from margrove.engine.native.core import core, points_of

    X, codes = blobs(rng, 12000, 20, 2, 3.0)
    sign = one_vs_rest_signs(codes, 2)
    walk = core.Walk(sign=sign, weight=np.empty(0), seeds=[7], eta=1.0, fit_intercept=True, shuffle=True)
    rules = {"variant": core.Variant.last, "patience": 0, "tolerance": 0.0, "kept_bytes": 0}
    solvers = [core.Perceptron(points_of(X), walk, **rules) for _ in range(2)]
    solvers[0].run(5, 60.0, 1)
    slices = 0
    while solvers[1].standing(0).passes < 5:
        solvers[1].run(5, 0.0, 1)  # no time at all: one stretch of rows
        slices += 1
    assert slices > 5
    np.testing.assert_array_equal(solvers[0].state(0).w, solvers[1].state(0).w)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.001, 0.2, 1.5])  # the last shrinks too fast for columns to wait
@pytest.mark.parametrize("d", [1, 3, 8, 50])
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
def test_a_penalised_walk_is_that_of_the_reference(l1_ratio, alpha, d, form, rng):
    """Many visits, so that weights become 0 between two rows that have the column, and powers of the factor end."""
    X, codes = blobs(rng, 60, d, 3, 2.0)
    X = {
        "float64": X,
        "float32": X.astype(np.float32),
        "csr": sp.csr_matrix(np.where(rng.random(X.shape) < 0.2, X, 0)),
    }[form]
    sign = one_vs_rest_signs(codes, 3)
    sign[:, ::7] = 0
    weight = rng.uniform(0.5, 2, size=60) if d == 3 else None
    start = (rng.normal(size=(3, d)), rng.normal(size=3)) if d == 8 else None
    problem = PerceptronProblem(
        X, sign, weight, eta=0.5, max_iter=9, seeds=(3, 1 << 40, 5), start=start, alpha=alpha, l1_ratio=l1_ratio
    )
    found, expected = Native().solve(problem, EFFORT), reference.perceptron(problem)
    np.testing.assert_array_equal(found.mistakes, expected.mistakes)
    np.testing.assert_array_equal(found.last_pass, expected.last_pass)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.coef == 0, expected.coef == 0)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-9, atol=1e-9)
    assert (found.status, found.n_iter) == (expected.status, expected.n_iter)


def test_a_penalised_walk_on_sparse_rows_stops_anywhere(rng):
    """Columns that wait are up to date in a model that is taken in the middle of a pass, and the walk goes on alike."""
    from margrove.engine.native.core import core, points_of

    X = sp.csr_matrix(np.where(rng.random((20000, 30)) < 0.1, rng.normal(size=(20000, 30)), 0))
    sign = np.where(rng.random((1, 20000)) < 0.5, 1, -1).astype(np.int8)
    walk = core.Walk(sign=sign, weight=np.empty(0), seeds=[7], eta=1.0, fit_intercept=True, shuffle=True)
    rules = {"alpha": 0.01, "l1_ratio": 0.2, "patience": 0, "tolerance": 0.0}
    whole, cut, dense = (core.PenalisedPerceptron(points_of(rows), walk, **rules) for rows in (X, X, X.toarray()))
    whole.run(2, 60.0, 1)
    slices = 0
    while cut.standing(0).passes < 2:
        cut.run(2, 0.0, 1)
        dense.run(2, 0.0, 1)
        np.testing.assert_allclose(cut.state(0).w, dense.state(0).w, rtol=1e-9, atol=1e-9)
        slices += 1
    assert slices > 5
    np.testing.assert_array_equal(whole.state(0).w, cut.state(0).w)


@pytest.mark.parametrize("name", NATIVE_KERNELS)
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
def test_kernel_perceptron_makes_the_corrections_of_the_reference(name, form, rng):
    X, codes = blobs(rng, 40, 5, 3, 1.5)
    X = np.abs(X)
    X[:, 0] += 0.1  # a row of zeros would meet exact ties, which rounding decides
    kept = rng.random(X.shape) < [1.0, 0.6, 0.6, 0.6, 0.6]
    X = {"float64": X, "float32": X.astype(np.float32), "csr": sp.csr_matrix(np.where(kept, X, 0))}[form]
    gamma = 0.01 if name == "sigmoid" else 0.2  # tanh near 1 makes every value alike, and then rounding decides
    kernel = Kernel(name, gamma=gamma, coef0=0.1, degree=2)
    sign = one_vs_rest_signs(codes, 3)
    problem = KernelPerceptronProblem(X, sign, kernel=kernel, max_iter=5, seeds=(1, 2, 3), eta=0.25)
    found, expected = Native().solve(problem, EFFORT), reference.kernel_perceptron(problem)
    if form == "float32":  # kernel values are float32 there: compare what they decide, not each count
        assert np.abs(found.alpha - expected.alpha).sum() <= 0.1 * expected.alpha.sum()
        return
    np.testing.assert_array_equal(found.alpha, expected.alpha)
    np.testing.assert_allclose(found.decision, expected.decision, rtol=1e-8, atol=1e-8)
    assert (found.status, found.n_iter) == (expected.status, expected.n_iter)


@pytest.mark.parametrize("rows_kept", [1, 3, 10, 40])
def test_a_small_cache_changes_nothing(rows_kept, rng):
    X, codes = blobs(rng, 40, 5, 2, 2.0)
    sign = one_vs_rest_signs(codes, 2)
    kernel, room = Kernel("rbf", gamma=0.2), rows_kept * 40 * 8
    problem = KernelPerceptronProblem(X, sign, kernel=kernel, max_iter=8, seeds=(1,), cache_bytes=room)
    expected = reference.kernel_perceptron(problem)
    np.testing.assert_array_equal(Native().solve(problem, EFFORT).alpha, expected.alpha)
    by_call = replace(problem, kernel=Kernel("callable", function=lambda a, b: problem.kernel.matrix(a, b)))
    np.testing.assert_array_equal(Native().solve(by_call, EFFORT).alpha, expected.alpha)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("form", ["float64", "float32", "csr"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_centroids_equal_the_reference(classes, form, is_weighted, rng):
    X, codes = blobs(rng, 9000, 6, classes, 1.0)  # more than one piece of rows
    X = {
        "float64": X,
        "float32": X.astype(np.float32),
        "csr": sp.csr_matrix(np.where(rng.random(X.shape) < 0.3, X, 0)),
    }[form]
    weight = rng.random(9000) if is_weighted else None
    problem = CentroidProblem(X, codes.astype(np.int32), classes, weight)
    found, expected = Native().solve(problem, EFFORT), reference.basic_linear(problem)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-10, atol=1e-10)
    assert np.array_equal(found.coef, Native().solve(problem, Effort(n_jobs=1)).coef)


@pytest.mark.parametrize("shape", [(60, 5), (10, 30)])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_least_squares_equals_the_reference(shape, is_sparse, fit_intercept, rng):
    X, codes = blobs(rng, shape[0], shape[1], 3, 1.0)
    weight = rng.integers(0, 3, size=shape[0]).astype(float)
    X = sp.csr_matrix(X) if is_sparse else X
    problem = LeastSquaresProblem(X, one_vs_rest_signs(codes, 3), weight, fit_intercept)
    found, expected = Native().solve(problem, EFFORT), reference.least_squares(problem)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.intercept, expected.intercept, rtol=1e-6, atol=1e-7)
