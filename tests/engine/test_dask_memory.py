"""A table that is larger than the memory of all workers together: what does not fit lies on their disks."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from tests.engine.dask_clusters import OF_DASK, processes

from margrove import LinearSVC

pytestmark = [pytest.mark.filterwarnings(words) for words in OF_DASK]

N_WORKERS, LIMIT = 2, 600_000_000  # bytes
N_ROWS, N_COLUMNS = 10_000, 100  # of a block of 8 MB


def _block(place):
    return np.random.default_rng(place).random((N_ROWS, N_COLUMNS)) - 0.5


@pytest.mark.slow
def test_a_linear_machine_of_three_times_the_memory_of_all_workers():
    n_blocks = 3 * N_WORKERS * LIMIT // (8 * N_ROWS * N_COLUMNS) + 1
    blocks = (da.from_delayed(dask.delayed(_block)(k), (N_ROWS, N_COLUMNS), dtype=float) for k in range(n_blocks))
    X = da.concatenate(list(blocks))
    y = (X @ np.random.default_rng(99).normal(size=N_COLUMNS) > 0).astype(int)
    assert X.nbytes > 3 * N_WORKERS * LIMIT
    with processes(N_WORKERS, memory_limit=LIMIT):
        model = LinearSVC(C=1e-3, engine="dask").fit(X, y)
        assert model.status_ == "converged"
        assert model.gap_ <= model.tol
        assert model.score(np.concatenate([_block(0), _block(1)]), np.asarray(y[: 2 * N_ROWS])) > 0.99
