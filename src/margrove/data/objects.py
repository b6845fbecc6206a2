"""Columns from Python objects of any kind, for NumPy object arrays and pandas columns of mixed content."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove.data.columns import MISSING, Column, boolean_column, category_column, clip
from margrove.errors import InputError


def column_from_objects(name: str, values: Sequence[Any], *, source: str | None = None) -> Column:
    """Infer a column from Python objects: booleans, else numbers, else dates, else text. Raise `InputError` if a cell
    is a list, a dict or another object that is no single value.

    None, NaN, NaT and pandas.NA are missing cells. Numbers and text mixed are text.
    """
    missing = np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))
    present = [value for value, is_absent in zip(values, missing, strict=True) if not is_absent]
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        truth = np.zeros(len(values), dtype=bool)
        truth[~missing] = present
        return boolean_column(name, truth, missing)
    cells = np.full(len(values), np.nan)
    if all(isinstance(value, (numbers.Real, decimal.Decimal)) for value in present):
        cells[~missing] = [float(value) for value in present]
        return Column(name, "numeric", cells)
    if all(isinstance(value, (datetime.date, np.datetime64)) for value in present):
        instants = np.array([_utc(value) for value in present], dtype="datetime64[us]")
        cells[~missing] = instants.astype(np.int64) / (86_400 * 10**6)
        return Column(name, "numeric", cells)
    for row, value in enumerate(values):
        if not missing[row] and not isinstance(value, (str, numbers.Real, decimal.Decimal, datetime.date)):
            raise InputError(
                f"the cell {clip(repr(value))} in row {row + 1} is of type {type(value).__name__}; "
                "numbers, text, booleans and dates are read",
                file=source,
                column=name,
                cure="Spread it over columns of its own, or leave the column out.",
            )
    codes = np.full(len(values), MISSING, dtype=np.int32)
    texts = np.array([str(value) for value in present], dtype=object)
    levels, codes[~missing] = np.unique(texts, return_inverse=True)
    return category_column(name, codes, levels.tolist())


def is_missing(value: object) -> bool:
    """Return whether a Python object stands for a missing cell: None, NaN, NaT, pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating, decimal.Decimal)):
        return bool(value != value)
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _utc(value: Any) -> np.datetime64:
    """Return a date as NumPy keeps it: aware datetimes are moved to UTC, as pyarrow does."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")
