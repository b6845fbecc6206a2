"""Σ β K over rows, in tiles and threads, against the kernel matrix as a whole."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from margrove.run.threads import blas_held_back, threads_allowed
from margrove.svm import kernels
from margrove.svm.kernels import Kernel, kernel_sums

KERNELS = [
    Kernel("linear"),
    Kernel("rbf", gamma=0.3),
    Kernel("poly", gamma=0.5, coef0=1.0, degree=3),
    Kernel("laplacian", gamma=0.2),
    Kernel("chi2", gamma=0.2),
    Kernel("callable", function=lambda X, Z: X @ Z.T),
]


def points(n: int = 203) -> np.ndarray:
    """Counts with duplicates, and one row far from all."""
    X = np.random.default_rng(0).poisson(1.5, (n, 4)).astype(np.float64)
    X[-1] = 1000.0
    return X


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few rows make many tiles, threads and chunks."""
    monkeypatch.setattr(kernels, "TILE", 16)
    monkeypatch.setattr(kernels, "_WIDE_TILE", 32)
    monkeypatch.setattr(kernels, "_SUPPORT_CELLS", 300)
    monkeypatch.setattr(kernels, "_WORTH_THREADS", 0)
    monkeypatch.setattr(kernels, "threads_allowed", lambda: 3)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32)], ids=["f8", "csr", "f4"])
def test_tiles_add_up_to_the_whole_matrix(kernel: Kernel, make: Any) -> None:
    if kernel.function is not None and make is sp.csr_matrix:
        pytest.skip("the function is for arrays")
    X = points()
    rows = np.flatnonzero(np.arange(len(X)) % 5 > 0)
    beta = np.random.default_rng(1).normal(size=len(rows)) * (np.arange(len(rows)) % 3 > 0)
    expected = np.array([[_value(kernel, x, z) for z in X[rows]] for x in X[rows]]) @ beta
    found = kernel_sums(kernel, make(X), rows, beta)
    assert np.allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def _value(kernel: Kernel, x: np.ndarray, z: np.ndarray) -> float:
    """By the table of formulas, a pair at a time."""
    if kernel.name == "rbf":
        return float(np.exp(-kernel.gamma * ((x - z) ** 2).sum()))
    if kernel.name == "poly":
        return float((kernel.gamma * (x @ z) + kernel.coef0) ** kernel.degree)
    if kernel.name == "laplacian":
        return float(np.exp(-kernel.gamma * np.abs(x - z).sum()))
    if kernel.name == "chi2":
        there = x + z > 0
        return float(np.exp(-kernel.gamma * (((x - z) ** 2)[there] / (x + z)[there]).sum()))
    return float(x @ z)


@pytest.mark.usefixtures("small_tiles")
def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    X, beta = points(), np.random.default_rng(1).normal(size=203)
    many = kernel_sums(KERNELS[1], X, np.arange(203), beta)
    monkeypatch.setattr(kernels, "threads_allowed", lambda: 1)
    assert np.array_equal(kernel_sums(KERNELS[1], X, np.arange(203), beta), many)


@pytest.mark.usefixtures("small_tiles")
def test_a_given_matrix_is_taken_as_it_is() -> None:
    gram = np.random.default_rng(0).normal(size=(60, 60)).astype(np.float32)
    rows, beta = np.arange(0, 60, 2), np.linspace(-1, 1, 30)
    expected = gram[np.ix_(rows, rows)].astype(np.float64) @ beta
    assert np.allclose(kernel_sums(Kernel("precomputed"), gram, rows, beta), expected, rtol=1e-12)


@pytest.mark.usefixtures("small_tiles")
def test_somebodys_function_is_called_from_one_thread_only() -> None:
    seen = set()

    def function(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        seen.add(threading.current_thread())
        return X @ Z.T

    kernel_sums(Kernel("callable", function=function), points(), np.arange(203), np.ones(203))
    assert seen == {threading.main_thread()}


@pytest.mark.usefixtures("small_tiles")
def test_progress_is_reported_and_ends_at_the_total() -> None:
    shares: list[float] = []
    kernel_sums(KERNELS[1], points(), np.arange(203), np.ones(203), shares.append)
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


@pytest.mark.usefixtures("small_tiles")
def test_ctrl_c_goes_through_and_lets_blas_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kernel_sums(KERNELS[1], points(), np.arange(203), np.ones(203), interrupt)
    from margrove.run import threads

    assert threads._holders == 0


def test_blas_is_let_go_by_the_last_that_held_it() -> None:
    def n_threads() -> int:
        from threadpoolctl import threadpool_info

        return max(int(library["num_threads"]) for library in threadpool_info() if library["user_api"] == "blas")

    before = n_threads()
    with blas_held_back():
        with blas_held_back():
            assert n_threads() == 1
        assert n_threads() == 1
    assert n_threads() == before


def test_the_environment_sets_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_allowed() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert threads_allowed() >= 1
