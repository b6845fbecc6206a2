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
from margrove.data.header import filled, is_formatted, is_sparse, names_numbers
from margrove.data.memory import check_memory
from margrove.data.source import Content
from margrove.data.written import is_no_value, written_number

_BYTES = 100  # of a cell in a list of Python
MOST_SHORT = 0.05  # of the rows may have too few cells, unless numbers show that the others are in their columns
_MEANS = r"average|mean|mittelwert|durchschnitt|moyenne|media|promedio|média|średnia|gemiddelde|medel"
TOTAL = (  # the first cell of a line of sums or means
    r"(?i)(?:^|[ -])(?:(?:sub|grand|end|eind)?-?tota(?:l|ls|le|lt|al)|(?:zwischen|gesamt|end)?summe|(?:ins)?gesamt"
    r"|(?:gesamt|teil)?ergebnis|sum|summa|suma|soma|somme|razem|ogółem|celkem|spolu|összesen|yhteensä|i alt|toplam"
    rf"|итого|всего|σύνολο|合計|小計|合计|总计|小计|{_MEANS})(?:$|[ :.(-])"
)
# What is said of lines that are kept.
KEPT = "called a total but not the sum of the rows above"
DOUBTFUL = "with few cells, perhaps no row of the table,"
_PROFILED = 1000  # rows by which it is known how a usual one is filled
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
    usual = _Usual(rows, dialect)
    why, doubts = _reasons(rows, dialect, usual, is_part=is_part)
    notes = [on_lines([rows[i][0] for i in np.flatnonzero(why == what)], what) for what in dict.fromkeys(why) if what]
    notes += doubts
    kept = [row for row, what in zip(rows, why, strict=True) if not what]
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


def _reasons(rows: list[Row], dialect: Dialect, usual: _Usual, *, is_part: bool) -> tuple[NDArray[Any], list[str]]:
    """Return why each row is left out, "" for those of the table, and notes on doubtful rows that are kept."""
    width = len(dialect.columns)
    why = np.full(len(rows), "", dtype=object)
    why[[filled(cells) == 0 for _, cells in rows]] = "without cells"
    why[_repeated_names(rows, dialect)] = "with the column names again"
    is_sum, is_called = _find_sums([cells for _, cells in rows], why != "", width, is_part=is_part)
    if is_sum.any():
        label = next(filter(str.strip, rows[int(np.argmax(is_sum))][1]), "").strip()
        why[is_sum] = f"with totals, such as {clip(label)!r},"
    why[[len(cells) == 1 < width and cells[0].startswith("#") for _, cells in rows]] = "beginning with '#'"
    is_odd = np.array([not said and usual.is_odd(cells) for (_, cells), said in zip(rows, why, strict=True)], dtype=bool)
    first, last = 0, _first_note(rows, dialect, is_sum, is_odd)
    while first < last and (why[first] or is_odd[first]):
        first += 1
    place, is_free = np.arange(len(rows)), why == ""
    why[is_free & (place < first)] = "above the rows"
    why[is_free & (place >= last)] = "below the rows"
    is_free = why == ""
    is_single = np.array([filled(cells) == 1 for _, cells in rows], dtype=bool)
    why[is_free & is_odd & is_single] = "between the rows"
    is_free = why == ""
    inside = np.flatnonzero(is_free)
    lacks = np.array([usual.is_doubtful(cells) for _, cells in rows], dtype=bool)
    is_doubtful = is_free & lacks & (is_single | np.isin(place, inside[[0, -1]] if inside.size else []))
    notes = []
    for flags, what in ((is_called & is_free, KEPT), (is_doubtful, DOUBTFUL)):
        if flags.any():
            notes.append(on_lines([rows[i][0] for i in np.flatnonzero(flags)], what, "kept"))
    return why, notes


class _Usual:
    """The columns that a usual row fills, and those in which all cells are numbers or dates."""

    def __init__(self, rows: list[Row], dialect: Dialect) -> None:
        self.width, self.typical = len(dialect.columns), dialect.typical
        self.missing = {"", *dialect.missing}
        whole = [cells for _, cells in rows if not is_sparse(cells, self.typical)]
        is_full = [filled(cells) >= self.typical for cells in whole]
        if any(is_full):  # what is less full at either end may be a balance
            whole = whole[is_full.index(True) : len(whole) - is_full[::-1].index(True)]
        whole = [cells for cells in whole[:_PROFILED] if len(cells) >= self.width]
        n, columns = len(whole), [self._given([row[j] for row in whole]) for j in range(self.width)]
        self.words = [set(column) for column in columns]
        self.always = [j for j, column in enumerate(columns) if n and len(column) >= 0.95 * n]
        self.is_typed = [bool(column) and sum(map(is_formatted, column)) > 0.9 * len(column) for column in columns]

    def _given(self, cells: Sequence[str]) -> list[str]:
        return [cell for cell in map(str.strip, cells) if cell not in self.missing]

    def _places(self, cells: list[str]) -> tuple[list[int], int]:
        """Return the cells that are filled, and how many are not that always are."""
        places = [j for j, cell in enumerate(cells[: self.width]) if cell.strip() not in self.missing]
        return places, len(set(self.always).difference(places))

    def is_odd(self, cells: list[str]) -> bool:
        """Return whether cells are no row: the first of them is a word of its own, stands where numbers or dates do, or
        to the right of such, and cells are not filled that always are."""
        places, n_lacking = self._places(cells)
        if not places or not n_lacking:  # so that a column is always filled
            return False
        label, first = cells[places[0]].strip(), self.always[0]
        if is_formatted(label) or is_no_value(label) or label in self.words[places[0]]:
            return False
        return self.is_typed[places[0]] or (places[0] > first and self.is_typed[first] and n_lacking > 1)

    def is_doubtful(self, cells: list[str]) -> bool:
        """Return whether a row lacks its first cell, or most of those that are always filled."""
        places, n_lacking = self._places(cells)
        return bool(places and n_lacking) and n_lacking > (places[0] <= self.always[0]) and 2 * n_lacking >= len(self.always)


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


def _first_note(rows: list[Row], dialect: Dialect, is_sum: Flags, is_odd: Flags) -> int:
    """Return the first of the rows at the end that are remarks: no rows, or mostly empty and after a blank line or a
    sum."""
    start = len(rows)
    while start > 0 and (is_sum[start - 1] or is_odd[start - 1] or _is_sparse(rows[start - 1][1], dialect)):
        start -= 1
    longest = max((len(cells[0]) for _, cells in rows[:start]), default=0)
    for i in range(max(start, 1), len(rows)):
        cells = rows[i][1]
        words = " ".join(cells).strip()
        follows = is_sum[i - 1] or _follows_blank(rows, i)
        is_sentence = re.search(r"[\s:.]", words) is not None and not is_formatted(words)
        is_long = filled(cells) == 1 and len(words) > max(longest, 12)
        if is_odd[i] or _COUNTED.fullmatch(words) or (is_sentence and (follows or is_long)):
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
            found[i] = (lacks or len(numbers) > 1) and bool(numbers) and fitting == len(numbers) and i > 2
        if found[i]:
            sums.leave_out(i)
    if (called & ~found).any():
        found &= lacking
    return found, called & ~found


def _amount(cell: str, decimal: str) -> float:
    """Return the number in a cell, NaN if there is none."""
    written = written_number(cell)
    return math.nan if written is None else NumberFormat(decimal, "," if decimal == "." else ".").value(written)


def _check_short(content: Content, dialect: Dialect, usual: _Usual, rows: list[Row], short: list[Row]) -> None:
    """Refuse short rows unless their cells are where they should be: numbers below numbers."""
    are_many, has_whole = len(short) > MOST_SHORT * len(rows), len(short) < len(rows)
    for line, cells in short:
        given = [(j, cell) for j, cell in enumerate(cells) if usual.is_typed[j] and cell.strip() not in usual.missing]
        checked = [is_formatted(cell) for _, cell in given]
        if not has_whole or not all(checked) or (are_many and not checked):
            raise ragged(content, dialect, line, cells)
