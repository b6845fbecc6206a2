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
from collections import Counter
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
from margrove.data.written import is_no_value, written_date, written_number

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
DOUBTFUL = "unlike the other rows, perhaps none of the table,"
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
    usual, why, doubts = _reasons(rows, dialect, is_part=is_part)
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


def _reasons(rows: list[Row], dialect: Dialect, *, is_part: bool) -> tuple[_Usual, NDArray[Any], list[str]]:
    """Return the usual rows, why each row is left out, "" for those of the table, and notes on doubtful rows that are
    kept."""
    width = len(dialect.columns)
    why = np.full(len(rows), "", dtype=object)
    why[[filled(cells) == 0 for _, cells in rows]] = "without cells"
    why[_repeated_names(rows, dialect)] = "with the column names again"
    is_sum, is_called = _find_sums([cells for _, cells in rows], why != "", width, is_part=is_part)
    if is_sum.any():
        label = next(filter(str.strip, rows[int(np.argmax(is_sum))][1]), "").strip()
        why[is_sum] = f"with totals, such as {clip(label)!r},"
    why[[len(cells) == 1 < width and cells[0].startswith("#") for _, cells in rows]] = "beginning with '#'"
    is_free, place = why == "", np.arange(len(rows))
    usual = _Usual([row for row, free in zip(rows, is_free, strict=True) if free], dialect)
    clashes, is_odd, is_bare = np.array([usual.judged(cells) for _, cells in rows], dtype=bool).T
    first, last = 0, _first_note(rows, dialect, is_sum, is_odd, clashes)
    while first < last and (why[first] or is_odd[first]):
        first += 1
    half = (dialect.typical + 1) // 2
    is_half = np.array([filled(cells) <= (half if len(cells) >= width else 1) for _, cells in rows], dtype=bool)
    why[is_free & clashes & is_odd & is_half] = "between the rows"
    why[is_free & (place < first)] = "above the rows"
    why[is_free & (place >= last)] = "below the rows"
    is_free = why == ""
    is_single = np.array([filled(cells) == 1 for _, cells in rows], dtype=bool)
    is_edge = np.isin(place, np.flatnonzero(is_free)[[0, -1]] if is_free.any() else [])
    is_doubtful = is_free & ((is_bare & (is_single | is_edge)) | (clashes & is_edge))
    notes = []
    for flags, what in ((is_called & is_free, KEPT), (is_doubtful, DOUBTFUL)):
        if flags.any():
            notes.append(on_lines([rows[i][0] for i in np.flatnonzero(flags)], what, "kept"))
    return usual, why, notes


class _Usual:
    """The columns that a usual row fills, and those in which all cells are numbers or dates."""

    def __init__(self, rows: list[Row], dialect: Dialect) -> None:
        self.width, self.typical = len(dialect.columns), dialect.typical
        self.missing, self._known = {"", *dialect.missing}, dict[str, bool]()
        whole = [cells for _, cells in rows if not is_sparse(cells, self.typical)]
        is_full = [filled(cells) >= self.typical for cells in whole]
        if any(is_full):  # what is less full at either end may be a balance
            whole = whole[is_full.index(True) : len(whole) - is_full[::-1].index(True)]
        whole = [cells for cells in whole[:_PROFILED] if len(cells) >= self.width]
        columns = [[row[j].strip() for row in whole if self._is_given(row[j])] for j in range(self.width)]
        n = len(whole)
        self.words = [{word for word, times in Counter(column).items() if times > 1} for column in columns]
        self.always = {j for j, column in enumerate(columns) if n and n - len(column) <= max(0.05 * n, min(1, 0.2 * n))}
        self.is_typed = [_are_values(column) for column in columns]

    def _is_given(self, cell: str) -> bool:
        """Return whether a cell has a value."""
        if cell not in self._known:
            self._known[cell] = cell.strip() not in self.missing and not is_no_value(cell.strip())
        return self._known[cell]

    def judged(self, cells: list[str]) -> tuple[bool, bool, bool]:
        """Return whether the first cell of a row is a word of its own where all others are numbers or dates; whether
        the cells are no row, for that, or for such a word to the right of where numbers or dates should be, and others
        are missing that never are; and whether the first cell is missing, or half of those that never are."""
        places = [j for j, cell in enumerate(cells[: self.width]) if self._is_given(cell)]
        if not places:
            return False, False, False
        n_lacking, label = len(self.always.difference(places)), places[0]
        word = cells[label].strip()
        is_word = (n_lacking > 0 or self.is_typed[label]) and word not in self.words[label] and not _is_value(word)
        clashes, is_odd, first = is_word and self.is_typed[label], False, min(self.always, default=0)
        if n_lacking and is_word:
            is_odd = clashes or (label > first and self.is_typed[first] and n_lacking > 1)
        return clashes, is_odd, 2 * n_lacking >= max(len(self.always), 1) and (n_lacking > 1 or label > first)


def _are_values(cells: list[str]) -> bool:
    """Return whether cells are numbers or dates, but for a few."""
    n_words = len(cells) - sum(map(_is_value, cells))
    return bool(cells) and n_words <= max(0.1 * len(cells), min(2, 0.4 * len(cells)))


def _is_value(cell: str) -> bool:
    return is_formatted(cell) or written_date(cell) is not None


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


def _first_note(rows: list[Row], dialect: Dialect, is_sum: Flags, is_odd: Flags, clashes: Flags) -> int:
    """Return the first of the rows at the end that are remarks: no rows, or mostly empty and after a blank line or a
    sum. Beside sums, there may be a minimum and a maximum."""
    is_apart, start = is_sum | is_odd | clashes, len(rows)
    while start > 0 and (is_apart[start - 1] or _is_sparse(rows[start - 1][1], dialect)):
        start -= 1
    is_odd = is_apart if is_sum[start:].any() else is_odd
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
        checked = [_is_value(cell) for _, cell in given]
        if not has_whole or not all(checked) or (are_many and not checked):
            raise ragged(content, dialect, line, cells)
