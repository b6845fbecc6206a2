"""Find unusual columns: identifiers, constants, free text, and numbers with a word among them."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from margrove.advice import Advice, InPython, Part, Setting
from margrove.data.columns import Column, clip, is_number, is_whole, named
from margrove.errors import DataWarning

if TYPE_CHECKING:
    from margrove.data.table import Table

LEAST_ROWS = 10  # below, all cells of a real category may differ by chance
MOSTLY_DISTINCT = 0.95  # the share of distinct cells beyond which a category names its rows: 1,307 of 1,309 in titanic
LEAST_WORDS = 5  # on average, from which on a cell is a sentence and not a name
DISTINCT_TEXT = 0.5  # the share of distinct cells beyond which one column for each text would overfit
IDENTIFIER = re.compile(
    r"(?i)(?<![a-z])(id|ids|nr|no|nbr|number|nummer|num[eé]ro|index|idx|key|row|#)\.?$|[a-z]((nr|nummer)\.?|(?-i:I[dD]))$"
)
MOSTLY_NUMBERS = 0.9  # the share of a category's levels that are numbers, from which on it was meant to be numeric


def is_identifier(column: Column) -> bool:
    """Return whether a column names its rows: a category of ten cells or more, nearly all different, or as many whole
    numbers that rise from row to row, in a column that is called a number or an identifier."""
    n_present = len(column) - column.n_missing
    if n_present < LEAST_ROWS:
        return False
    if column.kind == "category":
        return column.n_distinct > MOSTLY_DISTINCT * n_present
    is_called_so = column.kind == "numeric" and not column.format and IDENTIFIER.search(column.name) is not None
    return is_called_so and is_whole(column.values) and bool(np.all(np.diff(column.values) > 0))


def is_free_text(column: Column) -> bool:
    """Return whether a category is free text: ten cells or more of several words, most of them different."""
    n_present = len(column) - column.n_missing
    if column.kind != "category" or n_present < LEAST_ROWS or column.n_distinct <= DISTINCT_TEXT * n_present:
        return False
    return mean_words(column) >= LEAST_WORDS


def mean_words(column: Column) -> float:
    """Return the mean number of words of the distinct cells of a category; 0 for other columns."""
    occurs = column.present() if column.kind == "category" else np.empty(0, np.int64)
    return sum(len(str(column.levels[code]).split()) for code in occurs) / max(1, len(occurs))


def is_constant(column: Column) -> bool:
    """Return whether all cells are the same, or all are missing."""
    if column.n_missing:
        return column.n_missing == len(column)
    return len(column) > 0 and bool(np.all(column.values == column.values[0]))


def stray_words(column: Column) -> list[str]:
    """Return the few words in a category whose other levels are numbers: misprints, or unknown missing markers."""
    levels = [level for level in column.levels if isinstance(level, str)]
    if column.kind != "category" or len(levels) < LEAST_ROWS:
        return []
    words = [level for level in levels if not is_number(level)]
    return words if len(words) <= (1 - MOSTLY_NUMBERS) * len(levels) else []


def inspect_columns(table: Table) -> dict[str, list[str]]:
    """Return the names of the table's unusual columns by kind, and warn once of each kind but identifiers, which are
    harmless. Constants of a sparse table are its empty columns; free text whose cells nearly all differ is an
    identifier, too."""
    found: dict[str, list[str]] = {"identifier": [], "constant": [], "stray words": [], "free text": []}
    if table.sparse is not None:
        used = np.bincount(table.sparse.indices, minlength=table.n_columns)
        found["constant"] = [name for name, times in zip(table.names, used, strict=True) if times == 0]
    else:
        for column in table:
            if is_constant(column):
                found["constant"].append(column.name)
            elif is_identifier(column):
                found["identifier"].append(column.name)
            if is_free_text(column):
                found["free text"].append(column.name)
                _warn(
                    f"{table.source}: column {column.name!r} looks like free text "
                    f"({mean_words(column):.0f} words per cell), but its words are not used; ",
                    InPython("", "all learners but trees can "),
                    "use them with ",
                    Setting("text", column.name),
                )
            words = stray_words(column)
            if words:
                found["stray words"].append(column.name)
            if words and not any(str(note).startswith(f"Column {column.name!r} stays text") for note in table.notes):
                _warn(
                    f"{table.source}: column {column.name!r} is read as categories because of "
                    f"{', '.join(repr(clip(word, 20)) for word in words[:3])} among its numbers",
                    InPython("", "; if one of these marks a missing cell, set ", Setting("missing", words[0])),
                )
    if found["constant"]:
        _warn(f"{table.source}: constant or empty columns carry no information: {named(found['constant'])}")
    return found


def _warn(*message: Part) -> None:
    warnings.warn(Advice(*message, "."), DataWarning, stacklevel=3)
