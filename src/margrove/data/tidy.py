"""Tidy a delimited file: leave out what is no row of the table, and complete short rows.

Only files that look untidy come here, for Python's parser is an order slower than pyarrow's. A line is left out on
strong evidence: it is blank, or the names once more; it stands below the rows, is mostly empty and follows a blank
line; or it is called a total, and its numbers are the sums of the rows above.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import clip
from margrove.data.dialect import Dialect, checked_records, on_lines, ragged
from margrove.data.formats import NumberFormat
from margrove.data.header import filled, is_formatted, names_numbers
from margrove.data.memory import check_memory
from margrove.data.source import Content
from margrove.data.written import written_number

_BYTES = 100  # of a cell in a list of Python
MOST_SHORT = 0.05  # of the rows may have too few cells, unless numbers show that the others are in their columns
_MEANS = r"average|mean|mittelwert|durchschnitt|moyenne|media|promedio|média|średnia|gemiddelde|medel"
TOTAL = (  # the first cell of a line of sums or means
    r"(?i)(?:^|[ -])(?:(?:sub|grand|end|eind)?-?tota(?:l|ls|le|lt|al)|(?:zwischen|gesamt|end)?summe|(?:ins)?gesamt"
    r"|(?:gesamt|teil)?ergebnis|sum|summa|suma|soma|somme|razem|ogółem|celkem|spolu|összesen|yhteensä|i alt|toplam"
    rf"|итого|всего|σύνολο|合計|小計|合计|总计|小计|{_MEANS})(?:$|[ :.(-])"
)
KEPT = "called a total but not the sum of the rows above"  # ends a note on lines that are not left out
_COUNTED = re.compile(r"\W*\d+ (?:rows?|records?|lines?|zeilen|datensätze|lignes|filas|righe)\b.*", re.IGNORECASE)
_LONGEST_LABEL = 40  # characters

Row = tuple[int, list[str]]  # its line and its cells
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]


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
    why, is_called = _reasons(rows, dialect, is_part=is_part)
    notes = [on_lines([rows[i][0] for i in np.flatnonzero(why == what)], what) for what in dict.fromkeys(why) if what]
    if is_called.any():
        notes.append(on_lines([rows[i][0] for i in np.flatnonzero(is_called)], KEPT, "kept"))
    kept = [row for row, what in zip(rows, why, strict=True) if not what]
    short = [row for row in kept if len(row[1]) < width]
    if short:
        _check_short(content, dialect, kept, short)
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


def _reasons(rows: list[Row], dialect: Dialect, *, is_part: bool) -> tuple[NDArray[Any], Flags]:
    """Return why each row is left out, "" for those of the table, and which of these are only called a total."""
    width = len(dialect.columns)
    why = np.full(len(rows), "", dtype=object)
    why[[filled(cells) == 0 for _, cells in rows]] = "without cells"
    why[_repeated_names(rows, dialect)] = "with the column names again"
    is_sum, is_called = _find_sums([cells for _, cells in rows], why != "", width, is_part=is_part)
    if is_sum.any():
        label = next(filter(str.strip, rows[int(np.argmax(is_sum))][1]), "").strip()
        why[is_sum] = f"with totals, such as {clip(label)!r},"
    why[[len(cells) == 1 < width and cells[0].startswith("#") for _, cells in rows]] = "beginning with '#'"
    below = np.arange(len(rows)) >= _first_note(rows, dialect, is_sum)
    why[below & (why == "")] = "below the rows"
    return why, is_called


def _refuse_another(content: Content, rows: list[Row], dialect: Dialect) -> None:
    """Refuse a file in which the names of another table follow a blank line: words in all cells, above numbers."""
    for i in range(1, len(rows) - 1):
        line, cells = rows[i]
        if not _follows_blank(rows, i) or filled(cells) < max(2, dialect.typical) or any(map(is_formatted, cells)):
            continue
        is_header = [*map(str.strip, cells)] == [*map(str.strip, dialect.header)]
        if not is_header and names_numbers([below for _, below in rows[i:]], [""]):
            problem = "there are several tables in the file: another one seems to begin here"
            raise content.error(problem, line=line, cure="Save each as a file of its own.")


def _follows_blank(rows: list[Row], i: int) -> bool:
    """Return whether a blank line, or a row without cells, stands above a row."""
    (before, above), (line, _) = rows[i - 1], rows[i]
    return filled(above) == 0 or line > before + 1 + sum(cell.count("\n") for cell in above)


def _is_sparse(cells: Sequence[str], dialect: Dialect) -> bool:
    return 2 * filled(cells) < dialect.typical or len(cells) == 1


def _repeated_names(rows: list[Row], dialect: Dialect) -> Flags:
    """Return which rows are the names again, or a title above them."""
    header = [cell.strip() for cell in dialect.header]
    found = np.array([bool(header) and [*map(str.strip, cells)] == header for _, cells in rows], dtype=bool)
    for i in np.flatnonzero(found):
        while i > 0 and _is_sparse(rows[i - 1][1], dialect) and not found[i - 1]:
            i -= 1
            found[i] = filled(rows[i][1]) > 0
    return found


def _first_note(rows: list[Row], dialect: Dialect, is_sum: Flags) -> int:
    """Return the first of the rows at the end that are remarks: mostly empty, and after a blank line or a sum; or half
    empty, after a blank line, such as a balance."""

    def is_apart(i: int) -> bool:
        is_half_empty = 2 * filled(rows[i][1]) <= dialect.typical and i > 0 and _follows_blank(rows, i)
        return bool(is_sum[i]) or is_half_empty or _is_sparse(rows[i][1], dialect)

    start = len(rows)
    while start > 0 and is_apart(start - 1):
        start -= 1
    longest = max((len(cells[0]) for _, cells in rows[:start]), default=0)
    for i in range(max(start, 1), len(rows)):
        cells = rows[i][1]
        words = " ".join(cells).strip()
        follows = is_sum[i - 1] or _follows_blank(rows, i)
        is_sentence = re.search(r"[\s:.]", words) is not None and not is_formatted(words)
        is_long = filled(cells) == 1 and len(words) > max(longest, 12)
        if _COUNTED.fullmatch(words) or (is_sentence and (follows or is_long)):
            return i
    return len(rows)


class _Sums:
    """The sums of the rows above a row, by column; those of rows that were left out are no part of them."""

    def __init__(self, rows: list[list[str]], skipped: Flags) -> None:
        self.rows, self.skipped = rows, skipped
        self.start = 0  # the row after the last sum
        self._left_out: list[int] = []
        self._column = cache(self._sums_of)

    def leave_out(self, i: int) -> None:
        """Take a row as a sum of others."""
        self._left_out.append(i)
        self.start = i + 1

    def _sums_of(self, j: int, decimal: str) -> tuple[Numbers, Numbers]:
        """Return the numbers of a column, and down to each row their sum and how many there are."""
        amounts = np.array([_amount(row[j], decimal) if j < len(row) else math.nan for row in self.rows])
        used = np.nan_to_num(np.where(self.skipped, 0.0, amounts))
        return amounts, np.vstack([used, used != 0]).cumsum(axis=1)

    def fits(self, i: int, j: int, *, is_called: bool, is_mean: bool) -> bool:
        """Return whether a cell is the sum, or the mean, of those above, or of those since the last sum. The cells of a
        report may be rounded, and its sum that of the cells before."""
        for decimal in ".,":
            amounts, sums = self._column(j, decimal)
            before = sums[:, i - 1] - sum(sums[:, k] - sums[:, k - 1] for k in self._left_out)
            group = sums[:, i - 1] - (sums[:, self.start - 1] if self.start else 0.0)
            unit = 0.1 ** len(re.sub(rf"\D*$|[^\d{decimal}]", "", self.rows[i][j]).partition(decimal)[2])
            for total, n in (before, group):
                wanted, slack = (total / max(n, 1), 1) if is_mean else (total, n if is_called else 1)
                if n and abs(wanted - amounts[i]) <= 0.51 * unit * slack:
                    return True
        return False


def _find_sums(rows: list[list[str]], skipped: Flags, width: int, *, is_part: bool) -> tuple[Flags, Flags]:
    """Return which rows are sums of those above (of all, or of those since the last sum), and which are only called
    so. If there are such, a word like Total is a level of a column, and only rows with fewer cells are sums."""
    found, called, lacking = (np.zeros(len(rows), dtype=bool) for _ in range(3))
    usual = [row for row, skip in zip(rows, skipped, strict=True) if not skip and len(row) == width]
    often = [sum(bool(row[j].strip()) for row in usual) > 0.9 * (len(usual) - 1) for j in range(width)]
    end = max((i for i, row in enumerate(rows) if filled(row) > 1 or is_formatted("".join(row))), default=0)
    sums = _Sums(rows, skipped)
    for i, row in enumerate(rows):
        places = [j for j, cell in enumerate(row[:width]) if cell.strip()]
        label = row[places[0]].strip() if places else ""
        is_called = len(label) <= _LONGEST_LABEL and re.search(TOTAL, label) is not None
        is_mean = is_called and re.search(_MEANS, label.lower()) is not None
        called[i] = is_called and not skipped[i]
        is_labelled = is_called or not is_formatted(label)
        numbers = [j for j in places[is_labelled:] if row[j].strip(" -–—")]
        if (
            i == 0
            or skipped[i]
            or not places
            or not (is_called or i == end)
            or not all(is_formatted(row[j]) for j in numbers)
        ):
            continue
        fitting = sum(sums.fits(i, j, is_called=is_called, is_mean=is_mean) for j in numbers)
        lacks = lacking[i] = any(often[j] and j not in places for j in range(width))  # a cell that nearly all have
        if is_called and numbers:
            found[i] = (fitting and 2 * fitting >= len(numbers)) or (i == end and (lacks or is_part))
        elif is_called:  # sums whose formulas were never computed
            found[i] = lacking[i] = True
        else:
            found[i] = lacks and bool(numbers) and fitting == len(numbers) and i > 2
        if found[i]:
            sums.leave_out(i)
    if (called & ~found).any():
        found &= lacking
    return found, called & ~found


def _amount(cell: str, decimal: str) -> float:
    """Return the number in a cell, NaN if there is none."""
    written = written_number(cell)
    return math.nan if written is None else NumberFormat(decimal, "," if decimal == "." else ".").value(written)


def _check_short(content: Content, dialect: Dialect, rows: list[Row], short: list[Row]) -> None:
    """Refuse short rows unless their cells are where they should be: numbers below numbers."""
    width, missing = len(dialect.columns), {"", *dialect.missing}
    whole = [cells for _, cells in rows if len(cells) >= width][:1000]
    columns = [[cells[j] for cells in whole if cells[j].strip() not in missing] for j in range(width)]
    is_numeric = [bool(column) and sum(map(is_formatted, column)) > 0.9 * len(column) for column in columns]
    are_many = len(short) > MOST_SHORT * len(rows)
    for line, cells in short:
        checked = [is_formatted(cell) for j, cell in enumerate(cells) if is_numeric[j] and cell.strip() not in missing]
        if not whole or not all(checked) or (are_many and not checked):
            raise ragged(content, dialect, line, cells)
