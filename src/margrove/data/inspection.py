"""Columns that will surprise their owner: identifiers, constants, and numbers with a word among them."""

from __future__ import annotations

import warnings

import numpy as np

from margrove.data.columns import Column, clip, named
from margrove.data.table import Table
from margrove.errors import DataWarning

LEAST_ROWS = 10  # below, all cells of an honest category may differ by chance
MOSTLY_DISTINCT = (
    0.95  # more distinct cells than this, and a category names its rows; titanic has 1,307 names for 1,309
)
MOSTLY_NUMBERS = 0.9  # the share of a category's levels that are numbers, from which on it was meant to be numeric


def is_identifier(column: Column) -> bool:
    """Whether a column names its rows: a category in which nearly every present cell differs, and ten or more are."""
    n_present = len(column) - column.n_missing
    if column.kind != "category" or n_present < LEAST_ROWS:
        return False
    return column.n_distinct > MOSTLY_DISTINCT * n_present


def is_constant(column: Column) -> bool:
    """Whether all cells are the same, or all are missing."""
    if column.n_missing:
        return column.n_missing == len(column)
    return len(column) > 0 and bool(np.all(column.values == column.values[0]))


def stray_words(column: Column) -> list[str]:
    """The few words in a category whose other levels are numbers: misprints, or unknown missing markers."""
    levels = [level for level in column.levels if isinstance(level, str)]
    if column.kind != "category" or len(levels) < LEAST_ROWS:
        return []
    words = [level for level in levels if not _is_number(level)]
    return words if len(words) <= (1 - MOSTLY_NUMBERS) * len(levels) else []


def inspect_columns(table: Table) -> dict[str, list[str]]:
    """Find the table's odd columns, and warn once of each sort, naming them.

    Parameters
    ----------
    table : Table

    Returns
    -------
    dict
        Names of columns under "identifier", "constant" and "stray words". Constants of a sparse table are its
        empty columns.

    Examples
    --------
    >>> import warnings
    >>> from margrove.data import as_table
    >>> from margrove.data.inspection import inspect_columns
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     inspect_columns(as_table([[1.0, 5.0], [2.0, 5.0]]))
    {'identifier': [], 'constant': ['x1'], 'stray words': []}
    """
    found: dict[str, list[str]] = {"identifier": [], "constant": [], "stray words": []}
    if table.sparse is not None:
        used = np.bincount(table.sparse.indices, minlength=table.n_columns)
        found["constant"] = [name for name, times in zip(table.names, used, strict=True) if times == 0]
    else:
        for column in table:
            if is_constant(column):
                found["constant"].append(column.name)
            elif is_identifier(column):
                found["identifier"].append(column.name)
            words = stray_words(column)
            if words:
                found["stray words"].append(column.name)
                _warn(
                    f"{table.source}: column {column.name!r} is read as categories because of "
                    f"{', '.join(repr(clip(word, 20)) for word in words[:3])} among its numbers"
                )
    if found["identifier"]:
        columns = named(found["identifier"])
        _warn(f"{table.source}: these columns name the rows, for every or nearly every cell differs: {columns}")
    if found["constant"]:
        _warn(f"{table.source}: these columns are constant and tell nothing: {named(found['constant'])}")
    return found


def _warn(message: str) -> None:
    warnings.warn(f"{message}.", DataWarning, stacklevel=3)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
