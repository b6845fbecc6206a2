"""What the tests of boosting share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.boost.engines import ENGINES


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _clouds(n_classes: int, n_rows: int = 200, n_columns: int = 4, noise: float = 0.0, seed: int = 0) -> Any:
    """Continuous columns, classes cut out of a sum and a product of them; a share of the labels is drawn anew."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    score = X[:, 0] + X[:, 1] * X[:, 2]
    y = np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)
    is_noise = rng.random(n_rows) < noise
    return X, np.where(is_noise, rng.integers(0, n_classes, n_rows), y)


@pytest.fixture(scope="session")
def clouds() -> Callable[..., Any]:
    return _clouds
