"""Fixtures of the tests of the Dask engine."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def client():
    from tests.engine.dask_clusters import threads  # where Dask is not installed, the other tests run

    with threads(2) as own:
        yield own
