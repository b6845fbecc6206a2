"""How one column becomes numbers for a margin: what is learned of it, and how that is applied.

numeric, boolean    x  ↦  (x̂ − mean) / scale,   x̂ = x, or `fill` where x is missing
category            x  ↦  one column for each level, 1 where x is that level; one more for missing cells where
                          training had any. A level that training did not know is 0 in all of them.

What is learned is a plain dict, so that a model file can hold it as JSON:

``{"name", "index", "kind": "numeric" | "boolean", "fill", "mean", "scale", "indicator"}``
``{"name", "index", "kind": "category", "levels", "missing_seen"}``

and of a column of free text, see `text`.

Booleans stay 0 and 1 (mean 0, scale 1). ``indicator`` says that the column is followed by another, 1 where
the cell is missing. How a sparse table is encoded is told in `sparse_encoding`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from margrove.data.columns import MISSING, Column, Level
from margrove.data.text import encode_text, word_of

Description = dict[str, Any]

# Beyond these, the squares in a variance leave the range of float64 (1e±308).
_SAFE = (1e-140, 1e140)


class Origin(NamedTuple):
    """What an encoded column says of the table: that `column` is `level`, or is missing, or its number, or has the
    word `level` in it."""

    column: str
    level: Level | None
    is_missing: bool
    is_word: bool = False


def describe_category(column: Column, index: int) -> Description:
    """What is learned of a category: the levels that occur, and whether cells are missing."""
    occurs = np.bincount(column.values[column.values >= 0], minlength=len(column.levels)) > 0
    levels = [level for level, is_there in zip(column.levels, occurs, strict=True) if is_there]
    missing_seen = bool(np.any(column.values == MISSING))
    return {
        "name": column.name,
        "index": index,
        "kind": "category",
        "levels": levels,
        "missing_seen": missing_seen,
    }


def describe_numeric(column: Column, index: int, *, impute: str, standardise: bool, add_indicator: bool) -> Description:
    """What is learned of a numeric or boolean column: what fills it, its mean and its scale."""
    numbers = numbers_of(column).astype(np.float64)
    is_absent = np.isnan(numbers)
    present = numbers[~is_absent]
    fill = 0.0
    if present.size and impute == "median":
        fill = float(np.median(present))
    elif present.size and impute == "mean":
        fill = mean_and_deviation(present)[0]
    mean, scale = 0.0, 1.0
    if standardise and column.kind == "numeric":
        numbers[is_absent] = fill
        mean, deviation = mean_and_deviation(numbers)
        scale = deviation or 1.0
    return {
        "name": column.name,
        "index": index,
        "kind": column.kind,
        "fill": fill,
        "mean": mean,
        "scale": scale,
        "indicator": bool(add_indicator and is_absent.any()),
    }


def mean_and_deviation(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """The mean and the standard deviation (0 exactly, where all numbers are equal), sound from 1e-300 to 1e300."""
    least, most = float(numbers.min()), float(numbers.max())
    if least == most:
        return most, 0.0
    size = max(abs(least), abs(most))
    unit = 1.0 if _SAFE[0] < size < _SAFE[1] else size
    scaled = numbers / unit
    return float(scaled.mean()) * unit, float(scaled.std()) * unit


def numbers_of(column: Column) -> NDArray[Any]:
    """The cells of a numeric or boolean column as floats, missing ones as NaN."""
    if column.kind == "numeric":
        return column.values
    return np.where(column.values == MISSING, np.float32(np.nan), column.values.astype(np.float32))


def width(description: Mapping[str, Any]) -> int:
    """How many columns the encoded column takes."""
    if description["kind"] == "category":
        return len(description["levels"]) + int(description["missing_seen"])
    if description["kind"] == "text":
        return int(description["n_columns"])
    return 1 + int(description["indicator"])


def origins(descriptions: Iterable[Mapping[str, Any]]) -> list[Origin]:
    """What each encoded column says of the table, in order."""
    found = []
    for description in descriptions:
        name = description["name"]
        if description["kind"] == "category":
            found += [Origin(name, level, False) for level in description["levels"]]
        elif description["kind"] == "text":
            found += [Origin(name, word_of(description, j), False, True) for j in range(width(description))]
        else:
            found.append(Origin(name, None, False))
        if description.get("missing_seen") or description.get("indicator"):
            found.append(Origin(name, None, True))
    return found


def encoded_name(origin: Origin, levels: Iterable[Level] = ()) -> str:
    """``body_mass``, ``island=Biscoe``, ``island=missing`` (``=(missing)`` beside a level of that name), ``body:
    word``."""
    if origin.is_word:
        return f"{origin.column}: {origin.level}"
    if origin.is_missing:
        return f"{origin.column}=(missing)" if "missing" in levels else f"{origin.column}=missing"
    return origin.column if origin.level is None else f"{origin.column}={origin.level}"


def encode_dense(column: Column, description: Mapping[str, Any], out: NDArray[Any]) -> None:
    """Write a column, encoded, into `out` of shape (n, width), which holds zeros."""
    if description["kind"] == "category":
        codes = _output_codes(column, description)
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1
        return
    if description["kind"] == "text":
        out[:] = encode_text(column, description, out.dtype).toarray()
        return
    numbers = numbers_of(column)
    is_absent = np.isnan(numbers)
    # In float64 whatever comes in: a mean rounded to float32 would shift a column whose spread is small.
    cells = (numbers - np.float64(description["mean"])) / description["scale"]
    cells[is_absent] = (description["fill"] - description["mean"]) / description["scale"]
    out[:, 0] = cells
    if description["indicator"]:
        out[:, 1] = is_absent


def encode_sparse(column: Column, description: Mapping[str, Any], dtype: DTypeLike) -> scipy.sparse.csr_matrix:
    """A column, encoded, as a CSR matrix of shape (n, width)."""
    n, d = len(column), width(description)
    if description["kind"] == "text":
        return encode_text(column, description, dtype)
    if description["kind"] != "category":
        cells = np.zeros((n, d), dtype=dtype)
        encode_dense(column, description, cells)
        return scipy.sparse.csr_matrix(cells)
    codes = _output_codes(column, description)
    is_known = codes >= 0
    indptr = np.concatenate(([0], np.cumsum(is_known)))
    return scipy.sparse.csr_matrix((np.ones(indptr[-1], dtype=dtype), codes[is_known], indptr), shape=(n, d))


def _output_codes(column: Column, description: Mapping[str, Any]) -> NDArray[np.int32]:
    """The encoded column that is 1 in each row; negative where none is."""
    if not description["missing_seen"]:
        return column.values
    return np.where(column.values == MISSING, np.int32(len(description["levels"])), column.values)
