"""Tidy a delimited file: leave out what is no row of the table, and complete short rows.

Only short files and those that look untidy come here, for Python's parser is an order slower than pyarrow's. A line is
left out on strong evidence: it is blank, or the names once more; it stands below the rows, is mostly empty and follows
a blank line; it is called a total, and its numbers are the sums of the rows above; or it is unlike usual rows, with
words where these have numbers or dates, and nothing where these have something. Weaker evidence gives a note.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import clip
from margrove.data.dialect import Dialect, checked_records, on_lines, ragged, unclear_header
from margrove.data.header import filled, is_formatted, names_numbers
from margrove.data.memory import check_memory
from margrove.data.source import Content
from margrove.data.totals import Flags, find_sums
from margrove.data.usual import Row, Usual, is_mostly_empty, kind_of, label_of

_BYTES = 100  # of a cell in a list of Python
MOST_SHORT = 0.05  # of the rows may have too few cells, unless numbers show that the others are in their columns
ABOVE, BELOW = "above the rows", "below the rows"
# What is said of lines that are kept.
KEPT = "called a total but not the sum of the rows above"
DOUBTFUL = "unlike the other rows, perhaps none of the table,"
_MOST_ABOVE = 2  # lines between the names and the rows, as of opening balances
_STATISTIC = re.compile(r"(?i)min(?:imum)?|max(?:imum)?|s\.?d\.?|std\.?(?:dev\.?)?|sem|cv|n|count|anzahl|median")
_COUNTED = re.compile(r"\W*\d+ (?:rows?|records?|lines?|zeilen|datensätze|lignes|filas|righe)\b.*", re.IGNORECASE)


def tidied(content: Content, dialect: Dialect, *, is_part: bool = False) -> tuple[Content, Dialect] | None:
    """Return the file without the lines that are no rows, all rows complete, and the dialect of that; None if there is
    nothing to do. Raise `InputError` if a row has too many cells, or too few and it is not clear which. ``is_part``:
    these are the last rows of a file, whose sums cannot be checked."""
    width = len(dialect.columns)
    check_memory(_BYTES * min(content.count_lines(dialect.body) * width, content.size), content.name)
    rows = list(checked_records(content, dialect))
    for line, cells in rows:
        if any(cell.strip() for cell in cells[width:]):
            raise ragged(content, dialect, line, cells)
    _refuse_another(content, rows, dialect)
    usual, why, doubts = _reasons(rows, dialect, is_part=is_part)
    if sum(why == ABOVE) > _MOST_ABOVE:
        raise unclear_header(content, "several lines above the rows are none, and may be titles", rows[0][0])
    notes = [on_lines([rows[i][0] for i in np.flatnonzero(why == what)], what) for what in dict.fromkeys(why) if what]
    notes += doubts
    kept = [row for row, what in zip(rows, why, strict=True) if not what]
    if sum(filled(cells) > 1 for (_, cells), what in zip(rows, why, strict=True) if what == BELOW) > len(kept):
        problem = "there are several tables in the file, or more lines below the rows than rows"
        raise content.error(problem, line=rows[0][0], cure="Save each table as a file of its own.")
    short = [row for row in kept if len(row[1]) < width]
    if short:
        _check_short(content, dialect, usual, kept, short)
        lines = [line for line, _ in short]
        notes.append(on_lines(lines, "with fewer cells than there are columns", "completed with missing cells"))
    if not notes and all(len(cells) == width for _, cells in kept):
        return None
    text = io.StringIO()
    writer = csv.writer(text, delimiter=dialect.delimiter, lineterminator="\n")
    writer.writerows([*cells[:width], *[""] * (width - len(cells))] for _, cells in kept)
    lines = [line for line, _ in kept]
    tidy = replace(dialect, body=0, lines=lines, notes=(*dialect.notes, *notes))
    return content.replaced(text.getvalue().encode()), tidy


def _reasons(rows: list[Row], dialect: Dialect, *, is_part: bool) -> tuple[Usual, NDArray[Any], list[str]]:
    """Return the usual rows, why each row is left out, "" for those of the table, and notes on doubtful rows that are
    kept."""
    why = np.full(len(rows), "", dtype=object)
    why[[filled(cells) == 0 for _, cells in rows]] = "without cells"
    why[_repeated_names(rows, dialect)] = "with the column names again"
    usual = Usual(rows, why, dialect)
    is_balance = np.array([usual.is_balance(cells) for _, cells in rows])  # no part of sums
    is_sum, is_called = find_sums([cells for _, cells in rows], (why != "") | is_balance, usual, is_part=is_part)
    if is_sum.any():
        why[is_sum] = f"with totals, such as {clip(label_of(rows[int(np.argmax(is_sum))][1]))!r},"
        usual = Usual(rows, why, dialect)
    why[[len(cells) == 1 < usual.width and cells[0].startswith("#") for _, cells in rows]] = "beginning with '#'"
    first, last = 0, _first_note(rows, usual, is_sum)
    while first < last and (why[first] or usual.is_odd(rows[first][1], is_top=True)):
        first += 1
    bare = np.array([_is_bare(i, rows, usual) for i in range(len(rows))])
    are_headings = not is_sum.any() and _are_headings(rows, bare)
    is_doubtful = np.zeros(len(rows), dtype=bool)
    for i in np.flatnonzero(why == "").tolist():
        cells, n_filled = rows[i][1], filled(rows[i][1])
        if i < first or i >= last:
            why[i] = ABOVE if i < first else BELOW
            continue
        is_unlike = 2 * n_filled <= usual.typical + 1 and usual.is_heading(cells)
        begins_group = bare[i] and (are_headings or (is_sum[i:].any() and (i == 0 or why[i - 1] != "")))
        if is_unlike or begins_group or usual.is_balance(cells):
            why[i] = "between the rows"
        else:
            is_doubtful[i] = n_filled == 1 and usual.is_doubtful(cells)
    for i in np.flatnonzero(why == "")[[0, -1]] if not why.all() else ():
        is_doubtful[i] = usual.is_doubtful(rows[i][1])
    notes = []
    for flags, what in ((is_called & (why == ""), KEPT), (is_doubtful, DOUBTFUL)):
        if flags.any():
            notes.append(on_lines([rows[i][0] for i in np.flatnonzero(flags)], what, "kept"))
    return usual, why, notes


def _are_headings(rows: list[Row], bare: Flags) -> bool:
    """Return whether the ``bare`` rows of a file without sums are headings of groups: it begins with one and has
    several, all in capitals. With sums, one is a heading at the top or below a line that is left out."""
    labels = [label_of(cells) for (_, cells), is_bare in zip(rows, bare, strict=True) if is_bare]
    return bool(bare[0]) and len(labels) > 1 and all(map(str.isupper, labels)) and not label_of(rows[1][1]).isupper()


def _is_bare(i: int, rows: list[Row], usual: Usual) -> bool:
    """Return whether a row has only one or two words in front, above a whole row."""
    first, cells = min(usual.always, default=0), rows[i][1]
    own = cells[first : first + 2]
    is_bare = filled(cells) == filled(own) < len(usual.always) - 1 and filled(own[:1]) == 1
    return is_bare and i + 1 < len(rows) and not usual.lacks(rows[i + 1][1])


def _refuse_another(content: Content, rows: list[Row], dialect: Dialect) -> None:
    """Refuse a file in which the names of another table follow a blank line: words in all cells, above numbers."""
    for i in range(1, len(rows) - 1):
        line, cells = rows[i]
        is_titled = i > 1 and filled(rows[i - 1][1]) == 1 and _follows_blank(rows, i - 1)
        fewest = max(3, dialect.typical - 1) if is_titled else max(2, dialect.typical)
        if not (is_titled or _follows_blank(rows, i)) or filled(cells) < fewest or any(map(is_formatted, cells)):
            continue
        is_header = [*map(str.strip, cells)] == [*map(str.strip, dialect.header)]
        if not is_header and names_numbers([below for _, below in rows[i:]], [""]):
            problem = "there are several tables in the file: another one seems to begin here"
            raise content.error(problem, line=line, cure="Save each as a file of its own.")


def _follows_blank(rows: list[Row], i: int) -> bool:
    """Return whether a blank line, or a row without cells, stands above a row."""
    (before, above), (line, _) = rows[i - 1], rows[i]
    return filled(above) == 0 or line > before + 1 + sum(cell.count("\n") for cell in above)


def _repeated_names(rows: list[Row], dialect: Dialect) -> Flags:
    """Return which rows are the names again, or a title above them."""
    header = [cell.strip() for cell in dialect.header]
    found = np.array([bool(header) and [*map(str.strip, cells)] == header for _, cells in rows], dtype=bool)
    for i in np.flatnonzero(found):
        while i > 0 and is_mostly_empty(rows[i - 1][1], dialect.typical) and not found[i - 1]:
            i -= 1
            found[i] = filled(rows[i][1]) > 0
    return found


def _first_note(rows: list[Row], usual: Usual, is_sum: Flags) -> int:
    """Return the first of the rows at the end that are remarks: no rows, or mostly empty and after a blank line or a
    sum. Beside sums, there may be a minimum and a maximum."""

    def is_apart(i: int) -> bool:
        cells = rows[i][1]
        is_whole = not usual.lacks(cells) and not usual.is_unlike_first(cells)
        return (usual.n_clashing(cells) > 0 and not is_whole) or _STATISTIC.fullmatch(label_of(cells)) is not None

    start = len(rows)
    while start > 0 and (is_sum[start - 1] or is_apart(start - 1) or usual.is_remark(rows[start - 1][1])):
        start -= 1
    has_sums = bool(is_sum[start:].any())
    longest = max((len(cells[0]) for _, cells in rows[:start]), default=0)
    for i in range(max(start, 1), len(rows)):
        cells = rows[i][1]
        words = " ".join(cells).strip()
        follows = is_sum[i - 1] or _follows_blank(rows, i)
        is_sentence = re.search(r"[\s:.]", words) is not None and not is_formatted(words)
        is_long = filled(cells) == 1 and len(words) > max(longest, 12)
        is_none = is_sum[i] or usual.is_odd(cells) or (has_sums and is_apart(i))
        if is_none or _COUNTED.fullmatch(words) or (is_sentence and (follows or is_long)):
            return i
    return len(rows)


def _check_short(content: Content, dialect: Dialect, usual: Usual, rows: list[Row], short: list[Row]) -> None:
    """Refuse short rows unless their cells are where they should be: numbers below numbers."""
    are_many, has_whole = len(short) > MOST_SHORT * len(rows), len(short) < len(rows)
    for line, cells in short:
        given = [(j, cell) for j, cell in enumerate(cells) if usual.kinds[j] and cell.strip() not in usual.missing]
        checked = [kind_of(cell.strip()) != "" for _, cell in given]
        if not has_whole or not all(checked) or (are_many and not checked):
            raise ragged(content, dialect, line, cells)
