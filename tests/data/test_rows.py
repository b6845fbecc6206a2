"""Rows are the same wherever they are, and an engine that cannot read them says so."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from margrove.data.rows import Chunked, Home, InMemory
from margrove.engine import Native, Reference, choose, solve
from margrove.errors import EngineError
from margrove.linear_svm.problem import LinearMachine, LinearPathProblem, LinearSvmProblem


def in_chunks(X, *cuts):
    bounds = [0, *cuts, X.shape[0]]
    return Chunked(*X.shape, sp.issparse(X), lambda: (InMemory(X[a:b]) for a, b in pairwise(bounds)))


@pytest.fixture(params=[np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def X(request, rng):  # noqa: N802
    return request.param(rng.integers(0, 3, size=(20, 4)).astype(np.float32))


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("make", [InMemory, lambda X: in_chunks(X, 3, 3, 11)], ids=["memory", "chunks"])
def test_rows_have_a_shape_and_can_be_indexed_and_iterated_again(make, X, rng):
    rows = make(X)
    assert (rows.n, rows.d, rows.is_sparse) == (20, 4, sp.issparse(X))
    for index in (rng.integers(0, 20, size=50), np.arange(20)[::-1], np.empty(0, np.int64)):
        taken = rows.take(index)
        assert (taken.dtype, sp.issparse(taken)) == (X.dtype, rows.is_sparse)
        np.testing.assert_array_equal(dense(taken), dense(X)[index])
    for _ in range(2):
        np.testing.assert_array_equal(np.vstack([dense(block.X) for block in rows.blocks()]), dense(X))


def test_a_problem_takes_a_matrix_or_rows_and_copies_neither(X):
    machine = LinearMachine(np.ones(20), np.ones(20))
    for given in (X, InMemory(X)):
        problem = LinearSvmProblem(given, (machine,))
        assert problem.rows.home is Home.MEMORY
        assert problem.X is X


def test_engines_refuse_rows_that_they_cannot_read(X):
    problem = LinearSvmProblem(in_chunks(X, 5), (LinearMachine(np.ones(20), np.ones(20)),))
    with pytest.raises(EngineError, match="LinearSvmProblem are in chunks, but a matrix in memory is needed"):
        problem.X  # noqa: B018
    for asked in (problem, LinearPathProblem(problem, np.ones(1))):
        for engine in (Native(), Reference()):
            assert not engine.solves(asked)
            with pytest.raises(EngineError, match="cannot solve"):
                solve(asked, engine)
        with pytest.raises(EngineError, match="no engine solves"):
            choose("auto", asked)
