"""Whether a table holds the rows that a model learned from: what it gets right there is no promise for others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data import Column, Table
from margrove.run.checkpoint import fingerprint

MOST_COLUMNS = 8  # the target alone may be the same in two tables whose rows are sorted by it


def rows_fingerprint(table: Table, target: Column) -> dict[str, Any]:
    """What tells the rows of a table that have a target from those of another: digests of the target and of the first
    columns, as plain JSON values."""
    known = ~target.is_missing
    return {
        "target": fingerprint(target.take(known).labels()),
        "columns": {name: _digest(table[name], known) for name in table.names[:MOST_COLUMNS]},
    }


def has_rows(mark: Any, table: Table, target: Column | None) -> bool:
    """Whether the table has the rows of a fingerprint, which may come from a stranger's file, in the same order;
    without a target by the other columns alone."""
    columns = mark.get("columns") if isinstance(mark, dict) else None
    if not isinstance(columns, dict) or not columns or not all(name in table for name in columns):
        return False
    known = np.ones(table.n_rows, np.bool_) if target is None else ~target.is_missing
    if target is not None and mark.get("target") != fingerprint(target.take(known).labels()):
        return False
    return all(_digest(table[name], known) == digest for name, digest in columns.items())


def _digest(column: Column, rows: NDArray[np.bool_]) -> str:
    return fingerprint(column.kind, column.values[rows], [str(level) for level in column.levels])
