"""Tables that the tests of the support vector machines share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def two_classes(rng):
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=80) > 0, "yes", "no")
    return X, y


@pytest.fixture
def four_classes(rng):
    codes = np.arange(120) % 4
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])[codes] + rng.normal(size=(120, 2))
    return X, np.array(["ash", "beech", "elm", "oak"])[codes]


@pytest.fixture
def values(rng):
    X = rng.uniform(-3, 3, size=(90, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=90)
