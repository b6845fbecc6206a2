"""The core's kernels against the formulas of svm/kernels.py, through decisions with one dual coefficient at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from margrove.engine.native.core import kernel_sums
from margrove.svm.kernels import NATIVE_KERNELS, Kernel

KERNELS = [Kernel(name, gamma=0.3, coef0=0.5, degree=3.0) for name in NATIVE_KERNELS]


def some_points(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    points = rng.exponential(size=(n, d))  # not negative: chi2 and intersection are for counts
    points[rng.random((n, d)) < 0.4] = 0
    points[n // 2] = 0  # a row of zeros
    points[-1] = points[0]  # a duplicate
    return points


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("d", [1, 7, 8, 33, 70])
def test_native_kernel_equals_the_formula(kernel, dtype, is_sparse, d, rng):
    X, Z = some_points(rng, 70, d).astype(dtype), some_points(rng, 5, d).astype(dtype)
    expected = kernel.matrix(X, Z)
    if is_sparse:
        X, Z = sp.csr_matrix(X), sp.csr_matrix(Z)
    found = kernel_sums(kernel, X, Z, np.eye(5), n_jobs=2)
    np.testing.assert_allclose(
        found,
        expected,
        rtol=2e-5 if dtype == np.float32 else 1e-10,
        atol=1e-6 if dtype == np.float32 else 1e-12,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rbf_keeps_its_digits_far_from_the_origin(dtype, rng):
    near = rng.integers(0, 4, size=(40, 3)).astype(np.float64)
    expected = Kernel("rbf", gamma=0.5).matrix(near, near[:6])
    far = (near + 4096).astype(dtype)
    found = kernel_sums(Kernel("rbf", gamma=0.5), far, far[:6], np.eye(6), n_jobs=1)
    np.testing.assert_allclose(found, expected, atol=1e-5 if dtype == np.float32 else 1e-9)


def test_threads_change_no_bit(rng):
    X, Z, dual = rng.normal(size=(500, 20)), rng.normal(size=(30, 20)), rng.normal(size=(3, 30))
    one, four = (kernel_sums(Kernel("rbf", gamma=0.1), X, Z, dual, n_jobs=n) for n in (1, 4))
    assert np.array_equal(one, four)


def test_no_support_vector_and_no_row(rng):
    kernel = Kernel("linear")
    assert kernel_sums(kernel, rng.normal(size=(3, 2)), np.empty((0, 2)), np.empty((1, 0)), 1).tolist() == [
        [0],
        [0],
        [0],
    ]
    assert kernel_sums(kernel, np.empty((0, 2)), rng.normal(size=(3, 2)), np.ones((1, 3)), 1).shape == (
        0,
        1,
    )
