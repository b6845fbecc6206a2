"""Tables with a column shuffled or set to its typical value, and the text of cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data import Column, Table
from margrove.data.columns import clip
from margrove.tree.words import rounded

_LONGEST_CELL = 60  # letters
_USUAL = 0.1  # of the rows, at least, have what is called usual


def typical(column: Column) -> Any:
    """Return the median of numbers, or the most frequent level or truth value, as the column stores it; missing if that
    is more frequent than any level, or than all numbers."""
    present, n_missing = column.values[~column.is_missing], column.n_missing
    most = len(present) if column.kind == "numeric" else np.bincount(present, minlength=1).max()
    if n_missing > most:
        return column.values[column.is_missing][0]
    if column.kind == "numeric":
        # Of an even number of cells the lower middle: a value that occurs, so 0.5 children are never typical.
        return np.sort(present)[(len(present) - 1) // 2]
    return np.bincount(present).argmax()


def cell_text(column: Column, row: int) -> str:
    """Return the text of a cell."""
    return value_text(column, column.values[row])


def value_text(column: Column, value: Any) -> str:
    """Return the text of a value that the column stores."""
    if _is_missing(column, value):
        return "missing"
    if column.kind == "numeric":
        return rounded(float(value))
    if column.kind == "boolean":
        return "yes" if value else "no"
    return clip(str(column.levels[int(value)]), _LONGEST_CELL)


def estimate_text(number: float) -> str:
    """Return an estimate with its significant digits: four, and all before the point."""
    return rounded(float(f"{number:.4g}") if abs(number) < 1000 else round(number))


def typical_words(column: Column, value: Any) -> str:
    """Describe the typical value of a column: "usually" only where a tenth of the rows have it."""
    text = value_text(column, value)
    has_it = column.is_missing if _is_missing(column, value) else column.values == value
    if has_it.mean() >= _USUAL:
        return f"usually {text}"
    return f"median {text}" if column.kind == "numeric" else f"compared with {text}"


def _is_missing(column: Column, value: Any) -> bool:
    return bool(np.isnan(value) if column.kind == "numeric" else value < 0)


def with_column(table: Table, name: str, values: NDArray[Any]) -> Table:
    """Return the table with other cells in one column."""
    if table.block is not None:
        block = table.block.copy()
        block[:, table.position(name)] = values
        return _block_table(table, block)
    changed = [replace(column, values=values) if column.name == name else column for column in table.columns]
    return Table(changed, source=table.source, absent_is_zero=table.absent_is_zero)


def each_typical(table: Table, row: int, values: list[Any]) -> Table:
    """Repeat one row: as it is, then with each column in turn set to its typical value, at last with all of them."""
    d = table.n_columns
    if table.block is not None:
        block = np.repeat(table.block[[row]], d + 2, axis=0)
        block[np.arange(1, d + 1), np.arange(d)] = values
        block[-1] = values
        return _block_table(table, block)
    columns = []
    for j, column in enumerate(table.columns):
        cells = np.repeat(column.values[[row]], d + 2)
        cells[[j + 1, d + 1]] = values[j]
        columns.append(replace(column, values=cells))
    return Table(columns, source=table.source, absent_is_zero=table.absent_is_zero)


def _block_table(table: Table, block: NDArray[Any]) -> Table:
    return Table(block=block, names=table.names, source=table.source, absent_is_zero=table.absent_is_zero)
