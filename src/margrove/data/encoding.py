"""Encode one column as numbers for a margin-based learner: what is learned of it, and how it is applied.

numeric, boolean    x  ↦  (x̂ − mean) / scale,   x̂ = x, or `fill` where x is missing
category            x  ↦  one column for each level, 1 where x is that level; one more for missing cells where
                          training had any. A level that training did not know is 0 in all of them.
sparse table        x  ↦  x̂ / scale,   scale = √(Σx̂²/n), the root mean square with all zeros. Nothing is centred,
                          since that would turn every zero into a number.

What is learned is a plain dict, so that a model file can hold it as JSON:

``{"name", "index", "kind": "numeric" | "boolean", "fill", "mean", "scale", "indicator"}``
``{"name", "index", "kind": "category", "levels", "missing_seen"}``

and of a column of free text, see `text`. A column that has them has two more: ``"format"``, how its cells are written
(`formats`), and ``"date_part"``, the column of dates that it comes from and the part (`dates`).

Booleans stay 0 and 1 (mean 0, scale 1). With ``indicator`` the column is followed by another, 1 where the cell is
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from margrove.advice import Advice, InPython
from margrove.data.alignment import sparse_as_trained
from margrove.data.columns import MISSING, Column, Kind, Level
from margrove.data.formats import format_to_json
from margrove.data.rows import Matrix
from margrove.data.table import Table
from margrove.data.text import encode_text, word_of
from margrove.errors import InputError

Description = dict[str, Any]

# Beyond these, the squares in a variance leave the range of float64 (1e±308).
_SAFE = (1e-140, 1e140)


class Origin(NamedTuple):
    """The meaning of an encoded column: `column` is `level`, or is missing, or its number, or has the word `level`."""

    column: str
    level: Level | None
    is_missing: bool
    is_word: bool = False


def describe_category(column: Column, index: int) -> Description:
    """Return what is learned of a category: the levels that occur, and whether cells are missing."""
    levels = [column.levels[code] for code in column.present()]
    return category_description(column.name, index, levels, column.n_missing > 0) | writing_of(column)


def writing_of(column: Any) -> Description:
    """Return the fields of a description that say how cells are written and where they come from: often none."""
    form = column.learned_format if isinstance(column, Column) else column.format
    written = {} if form is None else {"format": format_to_json(form)}
    return written | ({"date_part": list(column.date_part)} if column.date_part else {})


def category_description(name: str, index: int, levels: list[Level], missing_seen: bool) -> Description:
    """Return the description of a category."""
    return {"name": name, "index": index, "kind": "category", "levels": levels, "missing_seen": missing_seen}


def number_description(
    name: str, index: int, kind: Kind, fill: float, mean: float = 0.0, scale: float = 1.0, indicator: bool = False
) -> Description:
    """Return the description of a numeric or boolean column."""
    formula = {"fill": fill, "mean": mean, "scale": scale, "indicator": indicator}
    return {"name": name, "index": index, "kind": kind, **formula}


def describe_numeric(column: Column, index: int, impute: str, standardise: bool, add_indicator: bool) -> Description:
    """Return what is learned of a numeric or boolean column: its fill, mean and scale."""
    numbers = numbers_of(column).astype(np.float64)
    is_absent = np.isnan(numbers)
    fill = _fill_of(numbers[~is_absent], impute)
    mean, scale = 0.0, 1.0
    if standardise and column.kind == "numeric":
        numbers[is_absent] = fill
        mean, deviation = mean_and_deviation(numbers)
        scale = deviation or 1.0
    indicator = bool(add_indicator and is_absent.any())
    return number_description(column.name, index, column.kind, fill, mean, scale, indicator) | writing_of(column)


def _fill_of(present: NDArray[np.float64], impute: str) -> float:
    if not present.size or impute == "zero":
        return 0.0
    return float(np.median(present)) if impute == "median" else mean_and_deviation(present)[0]


def describe_sparse(
    table: Table, impute: str, standardise: bool, drop_constant: bool
) -> tuple[list[Description], list[Description]]:
    """Return what is learned of the columns of a sparse table, and those that are left out."""
    matrix = table.sparse.tocsc(copy=True).astype(np.float64, copy=False)
    matrix.sum_duplicates()
    n, d = matrix.shape
    column_of = np.repeat(np.arange(d), np.diff(matrix.indptr))  # of each stored cell
    is_absent = np.isnan(matrix.data)
    fills = np.zeros(d)
    for index in np.unique(column_of[is_absent]):
        column = matrix[:, [index]].toarray().ravel()
        fills[index] = _fill_of(column[~np.isnan(column)], impute)
    matrix.data[is_absent] = fills[column_of[is_absent]]
    low, high = matrix.min(axis=0).toarray().ravel(), matrix.max(axis=0).toarray().ravel()
    largest = np.maximum(np.abs(low), np.abs(high))
    scales = np.ones(d)
    if standardise:
        # Squares of cells relative to the column's largest neither overflow nor vanish.
        unit = np.where(largest > 0, largest, 1.0)
        squares = np.bincount(column_of, weights=(matrix.data / unit[column_of]) ** 2, minlength=d)
        scales = np.where(largest > 0, unit * np.sqrt(squares / n), 1.0)
    is_dropped = drop_constant & (low == high)
    learned = list(enumerate(zip(table.names, fills.tolist(), scales.tolist(), is_dropped, strict=True)))
    kept = [number_description(n, j, "numeric", fill, scale=scale) for j, (n, fill, scale, out) in learned if not out]
    return kept, [{"name": name, "index": j, "why": "constant"} for j, (name, _, _, is_out) in learned if is_out]


def mean_and_deviation(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard deviation (exactly 0 if all numbers are equal), accurate from 1e-300 to 1e300."""
    least, most = float(numbers.min()), float(numbers.max())
    if least == most:
        return most, 0.0
    size = max(abs(least), abs(most))
    unit = 1.0 if _SAFE[0] < size < _SAFE[1] else size
    scaled = numbers / unit
    return float(scaled.mean()) * unit, float(scaled.std()) * unit


def numbers_of(column: Column) -> NDArray[Any]:
    """Return the cells of a numeric or boolean column as floats, missing ones as NaN."""
    if column.kind == "numeric":
        return column.values
    return np.where(column.values == MISSING, np.float32(np.nan), column.values.astype(np.float32))


def width(description: Mapping[str, Any]) -> int:
    """Return the number of columns that the encoded column takes."""
    if description["kind"] == "category":
        return len(description["levels"]) + int(description["missing_seen"])
    if description["kind"] == "text":
        return int(description["n_columns"])
    return 1 + int(description["indicator"])


def origins(descriptions: Iterable[Mapping[str, Any]]) -> list[Origin]:
    """Return the meaning of each encoded column, in order."""
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
    """Return the name of an encoded column: ``mass``, ``island=Biscoe``, ``island=missing`` (``island=(missing)``
    beside a level of that name), or ``body: word``."""
    if origin.is_word:
        return f"{origin.column}: {origin.level}"
    if origin.is_missing:
        return f"{origin.column}=(missing)" if "missing" in levels else f"{origin.column}=missing"
    return origin.column if origin.level is None else f"{origin.column}={origin.level}"


def encode(column: Column, description: Mapping[str, Any], dtype: DTypeLike) -> Matrix:
    """Return an encoded column, shape (n, width): numbers as an array, categories and text as a CSR matrix."""
    if description["kind"] == "text":
        return encode_text(column, description, dtype)
    if description["kind"] == "category":
        codes = _output_codes(column, description)
        indptr = np.concatenate(([0], np.cumsum(codes >= 0)))
        cells = (np.ones(indptr[-1], dtype=dtype), codes[codes >= 0], indptr)
        return scipy.sparse.csr_matrix(cells, shape=(len(column), width(description)))
    numbers = numbers_of(column)
    is_absent = np.isnan(numbers)
    # In float64 whatever comes in: a mean rounded to float32 would shift a column whose spread is small.
    encoded = (numbers - np.float64(description["mean"])) / description["scale"]
    encoded[is_absent] = (description["fill"] - description["mean"]) / description["scale"]
    columns = [encoded, is_absent] if description["indicator"] else [encoded]
    return np.column_stack(columns).astype(dtype, copy=False)


def _output_codes(column: Column, description: Mapping[str, Any]) -> NDArray[np.int32]:
    """Return the encoded column that is 1 in each row; negative where none is."""
    if not description["missing_seen"]:
        return column.values
    return np.where(column.values == MISSING, np.int32(len(description["levels"])), column.values)


def scale_sparse(table: Table, descriptions: list[Description]) -> Matrix:
    """Return the encoded sparse table as a new CSR matrix. Raise `InputError` if training was on a dense table, so that
    this one would have to become dense."""
    if any(column["kind"] != "numeric" or column["mean"] or column["indicator"] for column in descriptions):
        dense = InPython("Pass a dense table (X.toarray())", "Give a table in the format of the training data")
        problem = "the table is sparse, but the training table was dense and its columns were centred"
        raise InputError(problem, file=table.source, cure=Advice(dense, "."))
    matrix = sparse_as_trained(table, [column["name"] for column in descriptions])
    fill = np.array([column["fill"] for column in descriptions])
    scale = np.array([column["scale"] for column in descriptions])
    cells = np.where(np.isnan(matrix.data), fill[matrix.indices], matrix.data) / scale[matrix.indices]
    parts = (cells.astype(matrix.dtype), matrix.indices.copy(), matrix.indptr.copy())
    return type(matrix)(parts, shape=matrix.shape)
