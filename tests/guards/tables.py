"""Small tables of different nature, made from fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from margrove import Table, load_penguins

Rng = np.random.Generator


@dataclass(frozen=True)
class Data:
    """Rows, a class of each, a number of each, and perhaps weights."""

    X: Any
    labels: Any
    numbers: Any
    weight: Any = None

    @property
    def probe(self) -> Any:
        """The rows to be predicted."""
        if isinstance(self.X, Table):
            return self.X.take(np.arange(0, len(self.X), 2))
        return self.X.head(60) if isinstance(self.X, pd.DataFrame) else self.X[:60]


def _numbers(X: np.ndarray, rng: Rng) -> np.ndarray:
    """A target that a line explains but for a bend and noise."""
    z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-30)
    return np.asarray(z @ np.linspace(1, 0.2, X.shape[1]) + np.sin(2 * z[:, 0]) + 0.1 * rng.normal(size=len(X)))


def _blobs(rng: Rng, n: int, d: int, classes: int, apart: float) -> Data:
    centres = apart * rng.normal(size=(classes, d))
    labels = np.arange(n) % classes
    X = centres[labels] + rng.normal(size=(n, d))
    return Data(X, labels, _numbers(X, rng))


def _scaled(rng: Rng, scale: Any, n: int = 60, d: int = 4) -> Data:
    data = _blobs(rng, n, d, 3, 2.0)
    return Data(data.X * scale, data.labels, data.numbers)


def _ties(rng: Rng) -> Data:
    X = rng.integers(0, 3, (80, 3)).astype(float)
    return Data(X, (X.sum(axis=1) + rng.integers(0, 2, 80) > 3).astype(int), X.sum(axis=1))


def _duplicates(rng: Rng) -> Data:
    data = _blobs(rng, 15, 3, 3, 1.5)
    again = rng.integers(0, 15, 60)
    labels = np.where(rng.random(60) < 0.1, 0, data.labels[again])
    return Data(data.X[again], labels, data.numbers[again])


def _constant(rng: Rng) -> Data:
    data = _blobs(rng, 50, 2, 2, 2.0)
    X = np.column_stack([np.full(50, 7.0), data.X[:, 0], np.zeros(50), data.X[:, 1]])
    return Data(X, data.labels, data.numbers)


def _sparse(rng: Rng) -> Data:
    dense = np.where(rng.random((60, 30)) < 0.15, rng.random((60, 30)), 0.0)
    return Data(sp.csr_matrix(dense), (dense[:, :8].sum(axis=1) > dense[:, 8:16].sum(axis=1)).astype(int), dense.sum(1))


def _weighted(rng: Rng) -> Data:
    data = _blobs(rng, 70, 3, 3, 1.5)
    return Data(data.X, data.labels, data.numbers, rng.integers(0, 4, 70).astype(float))


def _words(rng: Rng) -> Data:
    data = _blobs(rng, 30, 2, 3, 2.0)
    return Data(data.X, np.array(["oak", "ash", "élan"])[data.labels], data.numbers)


def _float32(rng: Rng) -> Data:
    data = _blobs(rng, 60, 3, 2, 1.0)
    return Data(data.X.astype(np.float32), data.labels.astype(bool), data.numbers.astype(np.float32))


def _outliers(rng: Rng) -> Data:
    data = _blobs(rng, 80, 3, 2, 1.0)
    far = rng.random(80) < 0.1
    return Data(data.X, np.where(far, 1 - data.labels, data.labels), np.where(far, 1e3, data.numbers))


def _rings(rng: Rng) -> Data:
    X = rng.uniform(-2, 2, (100, 2))
    radius = np.hypot(*X.T)
    return Data(X, (radius > 1.3).astype(int), radius)


def _imbalanced(rng: Rng) -> Data:
    X = rng.normal(size=(90, 3))
    labels = (np.arange(90) % 15 == 0).astype(int)
    return Data(X + 1.5 * labels[:, None], labels, _numbers(X, rng))


def _integers(rng: Rng) -> Data:
    X = np.asfortranarray(rng.integers(-5, 6, (50, 4)))
    return Data(X, np.where(X[:, 0] > X[:, 1], 10, -10), X @ np.array([1, -1, 0, 2]))


def _positive(rng: Rng) -> Data:
    X = rng.dirichlet(np.ones(5), 60)
    return Data(X, X[:, :4].argmax(axis=1), _numbers(X, rng))


def _frame(rng: Rng) -> Data:
    n = 90
    colour = pd.Series(rng.choice(["red", "green", "blue", None], n, p=[0.4, 0.3, 0.2, 0.1]), dtype="category")
    size = pd.Series(rng.choice(["S", "M", "L"], n))
    width = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    height = rng.normal(size=n)
    numbers = np.nan_to_num(width) + height + (size == "L") * 2.0
    labels = np.where((colour == "red") & (height > 0), "yes", np.where(numbers > 1, "perhaps", "no"))
    X = pd.DataFrame({"colour": colour, "size": size, "width": width, "height": height, "is_old": height > 1})
    return Data(X, labels, np.asarray(numbers))


def _penguins(_: Rng) -> Data:
    penguins = load_penguins().take(np.arange(0, 344, 3))
    return Data(penguins, penguins.labels(), np.nan_to_num(penguins["body_mass_g"].values))


def _missing(rng: Rng) -> Data:
    data = _blobs(rng, 60, 3, 2, 2.0)
    return Data(np.where(rng.random((60, 3)) < 0.15, np.nan, data.X), data.labels, data.numbers)


def _one_class(rng: Rng) -> Data:
    return Data(rng.normal(size=(30, 2)), np.zeros(30, int), np.full(30, 4.0))


def _one_row(_: Rng) -> Data:
    return Data(np.array([[1.0, 2.0]]), np.array([1]), np.array([3.0]))


MAKERS: dict[str, Callable[[Rng], Data]] = {
    "blobs": lambda rng: _blobs(rng, 90, 2, 3, 2.0),
    "apart": lambda rng: _blobs(rng, 24, 2, 2, 6.0),
    "mixed": lambda rng: _blobs(rng, 80, 4, 2, 0.5),
    "many classes": lambda rng: _blobs(rng, 120, 4, 12, 3.0),
    "unscaled": lambda rng: _scaled(rng, np.array([1e-5, 1.0, 1e3, 1e6])),
    "huge": lambda rng: _scaled(rng, 1e12),
    "tiny": lambda rng: _scaled(rng, 1e-12),
    "ties": _ties,
    "duplicates": _duplicates,
    "constant columns": _constant,
    "sparse": _sparse,
    "weighted": _weighted,
    "wide": lambda rng: _blobs(rng, 24, 60, 2, 0.4),
    "one column": lambda rng: _blobs(rng, 50, 1, 2, 2.0),
    "words": _words,
    "float32": _float32,
    "outliers": _outliers,
    "rings": _rings,
    "imbalanced": _imbalanced,
    "integers": _integers,
    "positive": _positive,
    "categories": _frame,
    "penguins": _penguins,
    "missing cells": _missing,
    "one class": _one_class,
    "one row": _one_row,
    "tall": lambda rng: _blobs(rng, 2200, 2, 2, 1.0),
}
SMALL = ("apart", "words", "one row")  # for the reference engine


@cache
def table(name: str) -> Data:
    """The table of that name."""
    return MAKERS[name](np.random.default_rng([2026, *name.encode()]))
