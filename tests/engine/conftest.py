"""Fixtures of the tests of the Dask engine."""

from __future__ import annotations

import pytest
from tests.engine.dask_clusters import threads


@pytest.fixture(scope="module")
def client():
    with threads(2) as own:
        yield own
