"""Hints about columns that are too good, or too scattered, to be learned from without a second thought."""

from __future__ import annotations

import shlex

import numpy as np
from numpy.typing import NDArray

from margrove.data import Column, Table
from margrove.data.inspection import DISTINCT_TEXT, is_free_text, is_identifier

LEAST_ROWS = 100  # of fewer a column may tell the target by chance
MOST_ROWS = 20_000  # that are looked at
MOST_COLUMNS = 500
MOST_CLASSES = 50
# A column that leaves so few rows wrong, and so small a part of those that the largest class leaves, may be known only
# once the target is: of the Titanic's passengers 'boat' leaves 2 %, the largest class 38 %.
LEAST_WRONG = 0.05
LEAST_PART = 0.1
_BINS = 32  # of a number


def hints_of(table: Table, *, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return hints, one line each: a column that alone tells the classes nearly always, and categories with a value for
    nearly every row. Columns in ``without`` are skipped, and so are tables of numbers alone, sparse or in a block."""
    if table.sparse is not None or table.block is not None or table.n_rows < LEAST_ROWS:
        return ()
    columns = [column for column in table if column.name not in without and not is_identifier(column)]
    return (*_telling(table, columns[:MOST_COLUMNS]), *_scattered(columns))


def _telling(table: Table, columns: list[Column]) -> list[str]:
    target = table.target
    if target is None or (target.kind == "numeric" and target.n_distinct > MOST_CLASSES):
        return []
    step = -(-table.n_rows // MOST_ROWS)
    classes, codes = np.unique(target.values[::step], return_inverse=True)
    if not 2 <= len(classes) <= MOST_CLASSES:
        return []
    codes = codes.astype(np.int64)
    wrong = 1 - np.bincount(codes).max() / len(codes)
    hints = []
    for column in columns:
        missed = share_wrong(_groups(column.take(slice(None, None, step))), codes)
        if missed <= min(LEAST_WRONG, LEAST_PART * wrong):
            hints.append(
                f"{column.name!r} alone tells {target.name!r} in {100 * (1 - missed):.1f} % of the rows: is it known "
                f"when you predict? If not, leave it out: --without {shlex.quote(column.name)}"
            )
    return hints


def share_wrong(groups: NDArray[np.int64], codes: NDArray[np.int64]) -> float:
    """Return the share of rows whose class is not that of most other rows of their group: each row is left out in turn,
    so that a value of its own tells nothing. Where two classes are as many, half are wrong."""
    n_classes = int(codes.max()) + 1
    counts = np.bincount(groups * n_classes + codes, minlength=(int(groups.max()) + 1) * n_classes)
    ordered = np.sort(counts.reshape(-1, n_classes), axis=1)
    most, second = ordered[:, -1], ordered[:, -2]
    lead = most - second
    right = np.where(lead >= 2, most, np.where((lead == 1) & (most > 1), most / 2, 0.0))
    return float(1 - right.sum() / len(codes))


def _groups(column: Column) -> NDArray[np.int64]:
    """Return the group of each row: its level, or of a number its quantile; missing cells are one more."""
    if column.kind != "numeric":
        return column.values.astype(np.int64) + 1
    is_missing = column.is_missing
    present = column.values[~is_missing]
    cuts = np.unique(np.quantile(present, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(present) else present
    return np.where(is_missing, 0, 1 + np.searchsorted(cuts, column.values, side="right")).astype(np.int64)


def _scattered(columns: list[Column]) -> list[str]:
    found = []
    for column in columns:
        n_present = len(column) - column.n_missing
        if column.kind != "category" or n_present < LEAST_ROWS or is_free_text(column):
            continue
        if column.n_distinct > DISTINCT_TEXT * n_present:
            found.append(f"{column.name!r} ({column.n_distinct:,} in {n_present:,} rows)")
    return [f"So many different values tell little of new rows: {', '.join(found)}"] if found else []
