"""Hostile tables, labels, values and weights, drawn from a seeded generator.

Most tables are well formed and only numerically unpleasant; some are of an odd type, and some are wrong. `table`
returns a kind and X, `labels` and `values` a kind and y, `weights` a kind and weights.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

Rng = np.random.Generator
Array = Any

SCALES = (1e-300, 1e-150, 1e-20, 1e-8, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e8, 1e20, 1e150, 1e300)


class Odd:
    """An object that is no number and says nothing of itself."""


class Spiteful:
    """An object whose every conversion fails."""

    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]


# ---- numbers, n × d


def _points(rng: Rng, n: int, d: int) -> Array:
    kind = rng.integers(12)
    X = rng.normal(size=(n, d))
    if kind == 0:  # ties
        X = rng.integers(0, 3, size=(n, d)).astype(float)
    elif kind == 1:  # unscaled columns
        X = X * 10.0 ** rng.uniform(-8, 8, size=d)
    elif kind == 2:  # duplicated rows
        X = X[rng.integers(0, max(1, n // 3), size=n)]
    elif kind == 3:  # constant columns
        X[:, rng.random(d) < 0.5] = rng.normal()
    elif kind == 4:  # columns that are constant but for rounding
        X = 1 + 1e-15 * np.round(3 * X)
    elif kind == 5:  # far from the origin
        X = X + 10.0 ** rng.integers(3, 13)
    elif kind == 6:  # collinear columns
        X = X[:, :1] @ rng.normal(size=(1, d))
    elif kind == 7:
        X = X * rng.choice(SCALES)
    elif kind == 8:
        X = np.zeros((n, d))
    elif kind == 9:  # one row far out
        X[rng.integers(n)] *= 10.0 ** rng.integers(3, 200)
    elif kind == 10:
        X = 1e3 * X
    return X


def _shape(rng: Rng, least: int) -> tuple[int, int]:
    n = max(least, int(rng.choice([1, 2, 3, 4, 6, 10, 10, 20, 20, 40, 60])))
    d = int(rng.choice([1, 1, 2, 3, 5, 10, 10, 30]))
    return n, d


# ---- the types a table may have


def _cells(value: Callable[[Rng], Any]) -> Callable[[Rng, Array], Array]:
    """Objects, some of which are not numbers."""

    def make(rng: Rng, X: Array) -> Array:
        cells = X.astype(object)
        where = rng.random(X.shape) < 0.2
        where.flat[rng.integers(X.size)] = True
        for place in zip(*np.nonzero(where), strict=True):
            cells[place] = value(rng)
        return cells

    return make


def _with(value: float) -> Callable[[Rng, Array], Array]:
    def make(rng: Rng, X: Array) -> Array:
        X = X.copy()
        X.flat[rng.integers(X.size)] = value
        return X

    return make


def _sparsified(X: Array, rng: Rng) -> Any:
    return sp.csr_matrix(np.where(rng.random(X.shape) < 0.6, 0, X))


def _malformed(rng: Rng, X: Array) -> Any:
    """A CSR matrix whose arrays contradict each other."""
    S = sp.csr_array(np.where(X == 0, 1.0, X))
    kind = rng.integers(8)
    if kind == 0:
        S.indices[rng.integers(len(S.indices))] = S.shape[1] + 10 ** int(rng.integers(0, 9))
    elif kind == 1:
        S.indices[rng.integers(len(S.indices))] = -1 - 10 ** int(rng.integers(0, 9))
    elif kind == 2:
        S.indptr[-1] += 10 ** int(rng.integers(0, 9))
    elif kind == 3:
        S.indptr[rng.integers(len(S.indptr))] = -5
    elif kind == 4:
        S.indptr[rng.integers(len(S.indptr))] = 2**31 - 1
    elif kind == 5:
        S.indptr = S.indptr[::-1].copy()
    elif kind == 6:
        S.data = S.data[: len(S.data) // 2]
    else:
        S.indptr = S.indptr[:-1]
    return S


def _odd_sparse(rng: Rng, X: Array) -> Any:
    """A sparse matrix that is right, in a way that is rarely seen."""
    S = _sparsified(X, rng)
    kind = rng.integers(9)
    if kind == 0:
        return S.tocsc()
    if kind == 1:
        return S.tocoo()
    if kind == 2:
        return sp.csr_array(S.astype(np.float32))
    if kind == 3:  # explicit zeros
        S.data[:] = 0
        return S
    if kind == 4:  # cells in several parts, unsorted
        return sp.csr_matrix((np.tile(S.data, 2), np.tile(S.indices, 2), _indptr_of_two(S)), shape=S.shape)
    if kind == 5:
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
        return S
    if kind == 6:
        return S.tolil()
    if kind == 7:
        with np.errstate(all="ignore"):
            return S.astype(np.int8)
    return sp.csr_matrix(S.shape)


def _indptr_of_two(S: Any) -> Array:
    """One row holds all cells twice; the others are empty."""
    indptr = np.zeros(S.shape[0] + 1, np.int32)
    indptr[-1] = 2 * S.nnz
    return indptr


def _frame(rng: Rng, X: Array) -> Any:
    import pandas as pd

    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    kind = rng.integers(10)
    if kind == 0:
        frame["c0"] = rng.choice(["a", "b", "=1+1", "\x1b[31m"], size=len(X))
    elif kind == 1:
        frame["c0"] = pd.Categorical(rng.choice(["a", "b"], size=len(X)))
    elif kind == 2:
        frame["c0"] = pd.array([None, *range(len(X) - 1)], dtype="Int64")
    elif kind == 3:
        frame["c0"] = pd.date_range("2026-01-01", periods=len(X))
    elif kind == 4:
        frame.columns = ["c0"] * X.shape[1]
    elif kind == 5:
        frame.columns = range(X.shape[1])
    elif kind == 6:
        frame["c0"] = [None, "x", 1.0, object()][rng.integers(4)]
    elif kind == 7:
        frame["c0"] = pd.array([True] * len(X), dtype="boolean")
    elif kind == 8:
        frame.columns = pd.MultiIndex.from_tuples([("a", j) for j in range(X.shape[1])])
    return frame


def _other_frame(rng: Rng, X: Array) -> Any:
    import polars as pl
    import pyarrow as pa

    columns: dict[str, Any] = {f"c{j}": X[:, j] for j in range(X.shape[1])}
    kind = rng.integers(5)
    if kind == 0:
        columns["c0"] = rng.choice(["a", "b", ""], size=len(X)).tolist()
    elif kind == 1:
        columns["c0"] = [None, *range(len(X) - 1)]
    elif kind == 2:
        columns["c0"] = [datetime.date(2026, 1, 1 + i % 28) for i in range(len(X))]
    elif kind == 3:
        columns["c0"] = [[1, 2]] * len(X)
    return pl.DataFrame(columns) if rng.random() < 0.6 else pa.table(columns)


def _table(rng: Rng, X: Array) -> Any:
    import pandas as pd

    from margrove import as_table

    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    frame["text"] = rng.choice(["a", "b", "c"], size=len(X))
    return as_table(frame)


def _wrong_shape(rng: Rng, X: Array) -> Any:
    kind = rng.integers(9)
    shapes = [X[:0], X[:, :0], X.ravel(), X[None], X[0, 0], None, "table", {"a": [1, 2]}]
    return shapes[kind] if kind < len(shapes) else [[1.0], [2.0, 3.0]]


def _cast(dtype: Any) -> Callable[[Rng, Array], Array]:
    def make(rng: Rng, X: Array) -> Array:
        with np.errstate(all="ignore"):
            return X.astype(dtype)

    return make


def _read_only(rng: Rng, X: Array) -> Array:
    X = X.copy()
    X.flags.writeable = False
    return X


# name, weight, maker
_KINDS: list[tuple[str, float, Callable[[Rng, Array], Any]]] = [
    ("float64", 70, lambda rng, X: X),
    ("float32", 5, _cast(np.float32)),
    ("float16", 0.5, _cast(np.float16)),
    ("longdouble", 0.5, _cast(np.longdouble)),
    ("big endian", 0.5, _cast(">f8")),
    ("int64", 2, _cast(np.int64)),
    ("int8", 1, _cast(np.int8)),
    ("uint64", 0.5, _cast(np.uint64)),
    ("bool", 1, lambda rng, X: X > 0),
    ("complex", 0.5, _cast(complex)),
    ("object numbers", 1, _cast(object)),
    ("text cells", 0.5, _cast(str)),
    ("bytes", 0.3, _cast(bytes)),
    ("dates", 0.5, lambda rng, X: np.full(X.shape, np.datetime64("2026-01-01"))),
    ("durations", 0.3, lambda rng, X: np.full(X.shape, np.timedelta64(3, "s"))),
    ("Fortran", 1, lambda rng, X: np.asfortranarray(X)),
    ("strided", 1, lambda rng, X: np.repeat(X, 2, axis=0)[::2]),
    ("read-only", 0.5, _read_only),
    ("lists", 1, lambda rng, X: X.tolist()),
    ("matrix", 0.3, lambda rng, X: np.matrix(X)),
    ("masked", 0.3, lambda rng, X: np.ma.masked_less(X, 0)),
    ("NaN", 2, _with(np.nan)),
    ("infinity", 2, _with(np.inf)),
    ("largest", 1, _with(1.7e308)),
    ("denormal", 1, _with(5e-324)),
    ("None among numbers", 1, _cells(lambda rng: None)),
    ("text among numbers", 0.5, _cells(lambda rng: str(rng.choice(["a", "", "1e5", "nan"])))),
    ("dates among numbers", 0.3, _cells(lambda rng: datetime.date(2026, 1, 1))),
    ("huge integers", 0.7, _cells(lambda rng: 10 ** int(rng.choice([19, 25, 400])))),
    ("decimals", 0.3, _cells(lambda rng: Decimal("1.5") if rng.random() < 0.5 else Fraction(1, 3))),
    ("odd objects", 0.7, _cells(lambda rng: Odd())),
    ("spiteful objects", 0.4, _cells(lambda rng: Spiteful())),
    ("lists as cells", 0.4, _cells(lambda rng: [1, 2])),
    ("complex among numbers", 0.3, _cells(lambda rng: 1j)),
    ("sparse", 6, lambda rng, X: _sparsified(X, rng)),
    ("odd sparse", 4, _odd_sparse),
    ("malformed sparse", 3, _malformed),
    ("pandas", 5, _frame),
    ("polars or arrow", 3, _other_frame),
    ("Table", 1, _table),
    ("wrong shape", 2, _wrong_shape),
]


# Kinds that nothing is wrong with: what is hostile then is in the numbers and the parameters alone.
SOBER = {
    *("float64", "float32", "sparse", "Fortran", "integers", "signs", "text", "Booleans", "numbers", "scaled", "far"),
    *("constant", "ties", "outlier", "none", "uniform", "some zero", "wide"),
}


def _drawn(rng: Rng, kinds: list[tuple[str, float, Any]], sober: bool) -> tuple[str, Any]:
    kinds = [kind for kind in kinds if not sober or kind[0] in SOBER]
    chance = np.array([weight for _, weight, _ in kinds])
    name, _, make = kinds[rng.choice(len(kinds), p=chance / chance.sum())]
    return name, make


def table(rng: Rng, sober: bool, kernel: Any = None) -> tuple[str, Any, int]:
    """A kind, X, and the number of rows that X has or should have."""
    n, d = _shape(rng, 4 if sober else 1)
    X = _points(rng, n, d)
    if kernel in ("chi2", "intersection"):
        X = np.abs(X)
    if kernel == "precomputed" and rng.random() < 0.95:
        X = _gram(rng, X)
    kind, make = _drawn(rng, _KINDS, sober)
    with np.errstate(all="ignore"):
        return kind, make(rng, X), n


def _gram(rng: Rng, X: Array) -> Array:
    with np.errstate(all="ignore"):
        K = X @ X.T
        kind = rng.integers(4)
        if kind == 0:  # indefinite
            K = np.tanh(0.5 * K - 1)
        elif kind == 1:  # negative definite
            K = -K
        elif kind == 2:  # indefinite, of no particular form
            K = rng.normal(size=K.shape)
            K = K + K.T
    return K


# ---- y


def _places(rng: Rng, n: int) -> Array:
    """Class numbers 0, 1, … of n rows, every class present if there are rows enough."""
    n_classes = int(rng.choice([2, 2, 2, 2, 3, 4, 7]))
    codes = np.arange(n) % n_classes
    if rng.random() < 0.3:  # one class is rare
        codes = np.where(np.arange(n) < n_classes, codes, 0)
    return rng.permutation(codes)


def _series(rng: Rng, y: Array) -> Any:
    import pandas as pd
    import polars as pl

    kind = rng.integers(4)
    if kind == 0:
        return pd.Series(y, index=np.arange(len(y))[::-1])
    if kind == 1:
        return pd.Series(pd.Categorical(y.astype(str)))
    if kind == 2:
        return pd.Series([None, *y[1:].tolist()], dtype="Int64")
    return pl.Series(y)


def _first_is(value: Any) -> Callable[[Rng, Array], Any]:
    def make(rng: Rng, y: Array) -> Any:
        y = y.astype(object)
        y[0] = value
        return y

    return make


def _of_wrong_shape(rng: Rng, y: Array) -> Any:
    kind = rng.integers(6)
    shapes = [y[:-1], np.append(y, 0), np.column_stack([y, y]), y[0], [], {}]
    return shapes[kind]


_ODD_TARGETS: list[tuple[str, float, Callable[[Rng, Array], Any]]] = [
    ("first odd", 0.7, lambda rng, y: _first_is(Odd())(rng, y)),
    ("first spiteful", 0.4, lambda rng, y: _first_is(Spiteful())(rng, y)),
    ("first list", 0.5, lambda rng, y: _first_is([1])(rng, y)),
    ("first decimal", 0.5, lambda rng, y: _first_is(Decimal("1.5"))(rng, y)),
    ("wrong shape", 2, _of_wrong_shape),
    ("sparse column", 0.5, lambda rng, y: sp.csr_matrix(y[:, None])),
]

_LABELS: list[tuple[str, float, Callable[[Rng, Array], Any]]] = [
    ("integers", 80, lambda rng, y: y),
    ("signs", 5, lambda rng, y: np.where(y > 0, 1, -1)),
    ("text", 6, lambda rng, y: np.array(["a", "b\x1b[0m", "ß", "d", "e", "f", "g"])[y]),
    ("text objects", 2, lambda rng, y: np.array(["a", "b", "", "d", "e", "f", "g"], dtype=object)[y]),
    ("Booleans", 3, lambda rng, y: y > 0),
    ("floats", 3, lambda rng, y: y.astype(float)),
    ("list", 3, lambda rng, y: y.tolist()),
    ("column", 1.5, lambda rng, y: y[:, None]),
    ("series", 3, _series),
    ("one class", 3, lambda rng, y: np.zeros_like(y)),
    ("continuous", 1.5, lambda rng, y: rng.normal(size=len(y))),
    ("dates", 0.7, lambda rng, y: np.array(["2026-01-01"], "M8[D]") + y),
    ("bytes", 0.5, lambda rng, y: y.astype(str).astype(bytes)),
    ("complex", 0.5, lambda rng, y: y * 1j),
    ("none at all", 2, lambda rng, y: None),
    ("first None", 2, _first_is(None)),
    ("first NaN", 2, _first_is(np.nan)),
    ("float NaN", 1.5, lambda rng, y: np.where(np.arange(len(y)) == 0, np.nan, y)),
    ("first infinite", 1, _first_is(np.inf)),
    ("first text", 1, _first_is("text")),
    ("first beyond int64", 1.5, lambda rng, y: _first_is(10 ** int(rng.choice([19, 25, 400])))(rng, y)),
    ("uint64", 0.7, lambda rng, y: y.astype(np.uint64) + np.uint64(2**63)),
    *_ODD_TARGETS,
]

_VALUES: list[tuple[str, float, Callable[[Rng, Array], Any]]] = [
    ("numbers", 60, lambda rng, y: rng.normal(size=len(y)) * 10),
    ("scaled", 25, lambda rng, y: rng.normal(size=len(y)) * rng.choice(SCALES)),
    ("constant", 4, lambda rng, y: np.full(len(y), rng.normal())),
    ("far", 5, lambda rng, y: rng.normal(size=len(y)) + 10.0 ** rng.integers(3, 16)),
    ("ties", 5, lambda rng, y: y.astype(float)),
    ("float32", 2, lambda rng, y: rng.normal(size=len(y)).astype(np.float32)),
    ("integers", 3, lambda rng, y: y),
    ("outlier", 4, lambda rng, y: np.where(np.arange(len(y)) == 0, 1e12, y)),
    ("list", 2, lambda rng, y: rng.normal(size=len(y)).tolist()),
    ("series", 2, _series),
    ("column", 1, lambda rng, y: y[:, None] * 1.5),
    ("letters", 1, lambda rng, y: np.array(list("abcdefg"))[y]),
    ("text of numbers", 1, lambda rng, y: y.astype(str)),
    ("truth values", 1, lambda rng, y: y > 0),
    ("dates", 0.7, lambda rng, y: np.array(["2026-01-01"], "M8[D]") + y),
    ("complex", 0.5, lambda rng, y: y * 1j),
    ("none at all", 2, lambda rng, y: None),
    ("first None", 2, _first_is(None)),
    ("first NaN", 2, _first_is(np.nan)),
    ("float NaN", 2, lambda rng, y: np.where(np.arange(len(y)) == 0, np.nan, y)),
    ("infinite", 2, lambda rng, y: np.where(np.arange(len(y)) == 0, -np.inf, y)),
    ("first beyond int64", 1.5, lambda rng, y: _first_is(10 ** int(rng.choice([19, 25, 400])))(rng, y)),
    *_ODD_TARGETS,
]

_WEIGHTS: list[tuple[str, float, Callable[[Rng, int], Any]]] = [
    ("none", 80, lambda rng, n: None),
    ("uniform", 8, lambda rng, n: rng.random(n) + 0.1),
    ("some zero", 8, lambda rng, n: rng.integers(0, 3, size=n)),
    ("integers", 3, lambda rng, n: rng.integers(1, 4, size=n)),
    ("wide", 4, lambda rng, n: 10.0 ** rng.uniform(-12, 12, size=n)),
    ("tiny", 2, lambda rng, n: np.full(n, 1e-300)),
    ("huge", 2, lambda rng, n: np.full(n, 1e300)),
    ("all zero", 1, lambda rng, n: np.zeros(n)),
    ("negative", 1, lambda rng, n: np.linspace(-1, 1, n)),
    ("NaN", 1, lambda rng, n: np.full(n, np.nan)),
    ("infinite", 1, lambda rng, n: np.full(n, np.inf)),
    ("wrong length", 1, lambda rng, n: np.ones(n + 1)),
    ("one number", 1, lambda rng, n: 2.0),
    ("letters", 0.5, lambda rng, n: ["a"] * n),
    ("None inside", 0.5, lambda rng, n: [None] * n),
    ("two columns", 0.5, lambda rng, n: np.ones((n, 2))),
]


def labels(rng: Rng, n: int, sober: bool) -> tuple[str, Any]:
    """A kind, and labels of n rows."""
    kind, make = _drawn(rng, _LABELS, sober)
    return kind, make(rng, _places(rng, n))


def values(rng: Rng, n: int, sober: bool) -> tuple[str, Any]:
    """A kind, and numbers to predict of n rows."""
    kind, make = _drawn(rng, _VALUES, sober)
    with np.errstate(all="ignore"):
        return kind, make(rng, _places(rng, n))


def weights(rng: Rng, n: int, sober: bool) -> tuple[str, Any]:
    """A kind, and weights of n rows."""
    kind, make = _drawn(rng, _WEIGHTS, sober)
    return kind, make(rng, n)
