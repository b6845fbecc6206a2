"""Fixtures every family's tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings

# `make test` looks at the same examples every time, `make test-all` at new ones. Neither keeps examples between runs,
# and no clock decides.
_SHARED = settings(database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _SHARED, derandomize=True)
settings.register_profile("explore", _SHARED, derandomize=False, print_blob=True)
settings.load_profile("explore" if os.environ.get("MARGROVE_EXPLORE") else "same")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


def shared_data() -> Path | None:
    """The folder of real data sets, if some folder above this one has it."""
    for folder in Path(__file__).resolve().parents:
        candidate = folder / "shared" / "data"
        if (candidate / "README.md").is_file():
            return candidate
    return None


@pytest.fixture
def real_arrays() -> Callable[[str], tuple[Any, Any]]:
    """`real_arrays("letter")` gives X, y of a real set's training part; skips where the sets are absent."""

    def read(name: str) -> tuple[Any, Any]:
        folder = shared_data()
        if folder is None or not (folder / f"{name}.npz").is_file():
            pytest.skip(f"the real data set {name} is not here")
        with np.load(folder / f"{name}.npz") as z:
            if "X_train_data" in z:
                parts = (z["X_train_data"], z["X_train_indices"], z["X_train_indptr"])
                return sp.csr_matrix(parts, shape=z["X_train_shape"]), z["y_train"]
            return z["X_train"], z["y_train"]

    return read


def pytest_configure(config: pytest.Config) -> None:
    """Under `make sanitize`, make sure that the sanitized core is the one under test."""
    expected = os.environ.get("MARGROVE_EXPECT_CORE")
    if expected:
        # An editable install answers imports before PYTHONPATH does.
        sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
        import margrove._core

        assert Path(margrove._core.__file__).parent == Path(expected), margrove._core.__file__
