"""Tidy a delimited file: leave out what is no row of the table, and complete short rows.

Only short files and those that look untidy come here, for Python's parser is an order slower than pyarrow's. A line is
left out on strong evidence: it is blank, or the names once more; it stands below the rows, is mostly empty and follows
a blank line; it is called a total, and its numbers are the sums of the rows above; or it is unlike usual rows, with
words where these have numbers or dates, and nothing where these have something. Weaker evidence gives a note.
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
from itertools import takewhile
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import clip, is_number
from margrove.data.dialect import Dialect, checked_records, on_lines, ragged, unclear_header
from margrove.data.formats import NumberFormat
from margrove.data.header import filled, is_formatted, is_sparse, names_numbers
from margrove.data.memory import check_memory
from margrove.data.source import Content
from margrove.data.written import is_no_value, written_date, written_number

_BYTES = 100  # of a cell in a list of Python
MOST_SHORT = 0.05  # of the rows may have too few cells, unless numbers show that the others are in their columns
_MEANS = r"average|mean|mittelwert|durchschnitt|moyenne|media|promedio|média|średnia|gemiddelde|medel"
_SUM = (
    r"(?:(?:sub|grand|end|eind)?-?tota(?:l|ls|le|lt|al)|(?:zwischen|gesamt|end)?summe|(?:ins)?gesamt"
    r"|(?:gesamt|teil)?ergebnis|sum|summa|suma|soma|somme|razem|ogółem|celkem|spolu|összesen|yhteensä|i alt|toplam"
    r"|итого|всего|σύνολο|合計|小計|合计|总计|小计|(?:zwischen)?übertrag"
    rf"|carried forward|brought forward|riporto|à reporter|a reporter|report|suma y sigue|suma anterior|{_MEANS})"
)
TOTAL = rf"(?i)(?:^|[ -]){_SUM}(?:$|[ :.(-])|^\*{{1,3}}(?: |$)"  # the first cell of a line of sums or means
ABOVE, BELOW = "above the rows", "below the rows"
# What is said of lines that are kept.
KEPT = "called a total but not the sum of the rows above"
DOUBTFUL = "unlike the other rows, perhaps none of the table,"
_MOST_ABOVE = 2  # lines between the names and the rows, as of opening balances
_PROFILED = 200  # rows by which it is known how a usual one is filled
_BALANCE = re.compile(
    r"(?i)\b(?:(?:opening|closing|beginning|ending|starting|initial|final|previous) balance|balance (?:at|on|as of|"
    r"brought|carried)|(?:\w+ )?\w*saldo|solde|kontostand|eb-wert|.*bestand|.*vortrag|übertrag|stav|zůstatek"
    r"|egyenleg)\b"
)
_CALLED = re.compile(rf"{TOTAL}|(?i:{_BALANCE.pattern.removeprefix('(?i)')})")  # a cell of a balance
_SUBTOTAL = re.compile(rf"(?i){_SUM}:?$")  # a cell that says nothing else
_MOST_SUMS = 4  # lines below the rows, each of a part of them
_STATISTIC = re.compile(r"(?i)min(?:imum)?|max(?:imum)?|s\.?d\.?|std\.?(?:dev\.?)?|sem|cv|n|count|anzahl|median")
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


def _reasons(rows: list[Row], dialect: Dialect, *, is_part: bool) -> tuple[_Usual, NDArray[Any], list[str]]:
    """Return the usual rows, why each row is left out, "" for those of the table, and notes on doubtful rows that are
    kept."""
    why = np.full(len(rows), "", dtype=object)
    why[[filled(cells) == 0 for _, cells in rows]] = "without cells"
    why[_repeated_names(rows, dialect)] = "with the column names again"
    usual = _Usual(rows, why, dialect)
    is_sum, is_called = _find_sums([cells for _, cells in rows], why != "", usual, is_part=is_part)
    if is_sum.any():
        why[is_sum] = f"with totals, such as {clip(_label(rows[int(np.argmax(is_sum))][1]))!r},"
        usual = _Usual(rows, why, dialect)
    why[[len(cells) == 1 < usual.width and cells[0].startswith("#") for _, cells in rows]] = "beginning with '#'"
    first, last = 0, _first_note(rows, usual, is_sum)
    while first < last and (why[first] or usual.is_odd(rows[first][1])):
        first += 1
    is_bare = np.zeros(len(rows), dtype=bool)
    for i in np.flatnonzero(why == "").tolist():
        cells, n_filled = rows[i][1], filled(rows[i][1])
        if i < first or i >= last:
            why[i] = ABOVE if i < first else BELOW
        elif _heads_group(i, rows, why, usual, is_sum):
            why[i] = "between the rows"
        else:
            is_bare[i] = n_filled == 1 and usual.is_doubtful(cells)
    for i in np.flatnonzero(why == "")[[0, -1]] if not why.all() else ():
        is_bare[i] = usual.is_doubtful(rows[i][1])
    notes = []
    for flags, what in ((is_called & (why == ""), KEPT), (is_bare, DOUBTFUL)):
        if flags.any():
            notes.append(on_lines([rows[i][0] for i in np.flatnonzero(flags)], what, "kept"))
    return usual, why, notes


def _heads_group(i: int, rows: list[Row], why: NDArray[Any], usual: _Usual, is_sum: Flags) -> bool:
    """Return whether a row is a balance; or a heading: unlike a usual row, or, in a table with sums, a word or two
    in front where a group begins, above a whole row, and at the top or below a line that is none."""
    cells = rows[i][1]
    if 2 * filled(cells) <= usual.typical + 1 and usual.is_heading(cells):
        return True
    if usual.is_balance(cells):
        return True
    is_bare = filled(cells) == filled(cells[:2]) < len(usual.always) - 1 and cells[0].strip() != ""
    begins = i == 0 or why[i - 1] != ""
    return is_bare and begins and bool(is_sum[i:].any()) and i + 1 < len(rows) and not usual.lacks(rows[i + 1][1])


class _Usual:
    """What the cells of a usual row are: which are filled, and which of these are numbers or dates."""

    def __init__(self, rows: list[Row], why: NDArray[Any], dialect: Dialect) -> None:
        self.width, self.typical = len(dialect.columns), dialect.typical
        self.missing, self._known = {"", *dialect.missing}, dict[str, bool]()
        whole = [row for (_, row), said in zip(rows, why, strict=True) if not said and not is_sparse(row, self.typical)]
        records = [cells for cells in whole if not re.match(TOTAL, _label(cells))]
        whole = records if 2 * len(records) > len(whole) else whole
        is_full = [filled(cells) >= self.typical for cells in whole]
        if any(is_full):  # what is less full at either end may be a balance
            whole = whole[is_full.index(True) : len(whole) - is_full[::-1].index(True)]
        whole = [cells for cells in whole if len(cells) >= self.width]
        whole = whole[:: len(whole) // _PROFILED + 1]
        columns = [[row[j].strip() for row in whole if self._is_given(row[j])] for j in range(self.width)]
        n = len(whole)
        # Words that stand in a column more than once, as levels do.
        given = [
            [row[j].strip() for (_, row), said in zip(rows, why, strict=True) if not said and j < len(row)]
            for j in range(self.width)
        ]
        self.words = [{word for word, times in Counter(column).items() if times > 1} for column in given]
        self.always = {j for j, column in enumerate(columns) if n and n - len(column) <= max(0.05 * n, min(1, 0.2 * n))}
        self.mostly = {j for j, column in enumerate(columns) if 2 * len(column) > n}
        self.never = {j for j, column in enumerate(columns) if not column}
        # At either end there may be lines about the table.
        self.kinds = [_kind_of(column[len(column) // 4 : len(column) - len(column) // 8]) for column in columns]

    def _is_given(self, cell: str) -> bool:
        """Return whether a cell has a value."""
        if cell not in self._known:
            self._known[cell] = cell.strip() not in self.missing and not is_no_value(cell.strip())
        return self._known[cell]

    def _places(self, cells: list[str]) -> list[int]:
        return [j for j, cell in enumerate(cells[: self.width]) if self._is_given(cell)]

    def _clashes(self, cells: list[str], j: int) -> bool:
        """Return whether a cell is a word of its own where usual rows have numbers or dates, or one of these where they
        have the others."""
        cell, wanted = cells[j].strip(), self.kinds[j]
        fitting = ("number", "amount") if wanted in ("number", "amount") else (wanted,)
        return wanted != "" and cell not in self.words[j] and _kind(cell) not in fitting and not cell.isdigit()

    def n_clashing(self, cells: list[str]) -> int:
        """Return how many cells are no numbers or dates where usual rows have these. Beside such, numbers with letters
        count, where usual rows have none."""
        places = self._places(cells)
        found = [j for j in places if self._clashes(cells, j)]
        beside = [j for j in places if self.kinds[j] == "number" and _kind(cells[j].strip()) == "amount"]
        return len(found) + len(beside) if found else 0

    def is_odd(self, cells: list[str]) -> bool:
        """Return whether cells at an end of the table are no row. Two are words where usual rows have numbers or dates;
        or cells are missing that usual rows have, and the first, or another beside many gaps, is such a word, or is
        called a balance or a total, or the first of two is a word to the right of where the numbers or dates begin."""
        places, n_clashing = self._places(cells), self.n_clashing(cells)
        n_lacking = len(self.always.difference(places))
        if not places or n_clashing > 1 or not n_lacking:
            return n_clashing > 1
        if self._clashes(cells, places[0]) or (n_clashing and 3 * n_lacking >= len(self.always)):
            return True
        label, first = cells[places[0]].strip(), min(self.always)
        is_called = any(len(cells[j]) <= _LONGEST_LABEL and _CALLED.search(cells[j]) for j in places)
        if is_called or (places[0] in self.never and first not in places):
            return True
        is_word = not _kind(label) and label not in self.words[places[0]]
        return is_word and places[0] > first and self.kinds[first] != "" and n_lacking > 1 and len(places) < 3

    def is_unlike_first(self, cells: list[str]) -> bool:
        """Return whether the first cell is a word where usual rows have plain numbers or dates."""
        return self.kinds[0] in ("number", "date") and cells[0].strip() != "" and self._clashes(cells, 0)

    def is_remark(self, cells: list[str]) -> bool:
        """Return whether cells are none of a usual row, or most are empty."""
        return _is_sparse(cells, self.typical) or self.is_odd(cells)

    def is_heading(self, cells: list[str]) -> bool:
        """Return whether cells between the rows are none: the first is a word where usual rows have numbers or dates,
        or have nothing."""
        places = self._places(cells)
        if not places or not self.always.difference(places) or (len(cells) < self.width and len(places) > 1):
            return False
        return self._clashes(cells, places[0]) or (places[0] in self.never and len(places) == 1)

    def lacks(self, cells: list[str]) -> bool:
        """Return whether a cell is missing that usual rows have."""
        return bool(self.always.difference(self._places(cells)))

    def is_balance(self, cells: list[str]) -> bool:
        """Return whether cells begin with the name of a balance at or behind a column of numbers or dates."""
        first = min(self._places(cells), default=0)
        is_named = first < len(cells) and _BALANCE.match(cells[first].strip()) is not None
        return is_named and any(self.kinds[j] for j in self.mostly if j <= first)

    def is_doubtful(self, cells: list[str]) -> bool:
        """Return whether several cells that usual rows have, or the first of them, are missing, or one is a word."""
        places = self._places(cells)
        n_lacking = len(self.always.difference(places))
        is_bare = 3 * n_lacking >= max(len(self.always), 1) and (n_lacking > 1 or places[:1] > [min(self.always)])
        return bool(places) and (is_bare or self.n_clashing(cells) > 0)


def _kind(cell: str) -> str:
    """Return "number", "amount" (one with letters) or "date" for a cell that is one in any format, "" for words."""
    if is_number(cell):
        return "number"
    if written_date(cell) is not None:
        return "date"
    return "" if not is_formatted(cell) else "amount" if any(map(str.isalpha, cell)) else "number"


def _kind_of(cells: list[str]) -> str:
    """Return the kind of cells that are numbers or dates, but for a few."""
    kinds = Counter(map(_kind, cells))
    if kinds["amount"] > 1:
        kinds["amount"] += kinds.pop("number", 0)
    kind, times = max(kinds.items(), key=itemgetter(1), default=("", 0))
    n_others = len(cells) - times
    return kind if cells and n_others <= max(0.1 * len(cells), min(2, 0.4 * len(cells))) else ""


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


def _is_sparse(cells: Sequence[str], typical: int) -> bool:
    return 2 * filled(cells) < typical or len(cells) == 1


def _repeated_names(rows: list[Row], dialect: Dialect) -> Flags:
    """Return which rows are the names again, or a title above them."""
    header = [cell.strip() for cell in dialect.header]
    found = np.array([bool(header) and [*map(str.strip, cells)] == header for _, cells in rows], dtype=bool)
    for i in np.flatnonzero(found):
        while i > 0 and _is_sparse(rows[i - 1][1], dialect.typical) and not found[i - 1]:
            i -= 1
            found[i] = filled(rows[i][1]) > 0
    return found


def _first_note(rows: list[Row], usual: _Usual, is_sum: Flags) -> int:
    """Return the first of the rows at the end that are remarks: no rows, or mostly empty and after a blank line or a
    sum. Beside sums, there may be a minimum and a maximum."""

    def is_apart(i: int) -> bool:
        cells = rows[i][1]
        is_whole = not usual.lacks(cells) and not usual.is_unlike_first(cells)
        return (usual.n_clashing(cells) > 0 and not is_whole) or _STATISTIC.fullmatch(_label(cells)) is not None

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


def _label(cells: Sequence[str]) -> str:
    """Return the first cell that is filled."""
    return next(filter(None, map(str.strip, cells)), "")


_MAY_HAVE_COMMA = re.compile(r",|\.\d{3}(?!\d)")  # 1.234 is 1234 beside a decimal comma
_DECIMAL_COMMA = re.compile(r",\d{1,2}(?!\d)")
_LARGEST = 1e200  # amount that is added up: sums of larger ones may overflow


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
        is_used = np.abs(amounts) < _LARGEST  # False of NaN
        used = np.where(is_used & ~self.skipped, amounts, 0.0)
        return amounts, np.vstack([used, used != 0]).cumsum(axis=1)

    def fits(self, i: int, j: int, *, is_called: bool, is_mean: bool) -> bool:
        """Return whether a cell is the sum, or the mean, of those above, or of those since the last sum; in the first
        row, of those below. The cells of a report may be rounded, and its sum that of the cells before."""
        for decimal in ".," if _MAY_HAVE_COMMA.search(self.rows[i][j]) else ".":
            amounts, sums = self._column(j, decimal)
            if i == 0:
                before = group = sums[:, -1] - sums[:, 0]
            else:
                before = sums[:, i - 1] - sum(sums[:, k] - (sums[:, k - 1] if k else 0.0) for k in self._left_out)
                group = sums[:, i - 1] - (sums[:, self.start - 1] if self.start else 0.0)
            unit = 0.1 ** len(re.sub(rf"\D*$|[^\d{decimal}]", "", self.rows[i][j]).partition(decimal)[2])
            for total, n in (before, group):
                wanted, slack = (total / max(n, 1), 1) if is_mean else (total, n if is_called else 1)
                if n and abs(wanted - amounts[i]) <= 0.51 * unit * slack:
                    return True
        return False

    def may_average(self, i: int, j: int) -> bool:
        """Return whether a cell is a sum, or lies between those of its group, as an average does."""
        if self.fits(i, j, is_called=True, is_mean=False):
            return True
        amounts, _ = self._column(j, "," if _DECIMAL_COMMA.search(self.rows[i][j]) else ".")
        group = amounts[self.start : i][~self.skipped[self.start : i]]
        return bool(np.nanmin(group, initial=math.inf) <= amounts[i] <= np.nanmax(group, initial=-math.inf))


def _find_sums(rows: list[list[str]], skipped: Flags, usual: _Usual, *, is_part: bool) -> tuple[Flags, Flags]:
    """Return which rows are sums of those above (of all, or of those since the last sum), and which are only called
    so. If there are such, a word like Total is a level of a column, and only rows with fewer cells are sums."""
    found, called, lacking = (np.zeros(len(rows), dtype=bool) for _ in range(3))
    end = max((i for i, row in enumerate(rows) if filled(row) > 1 or is_formatted("".join(row))), default=0)
    first = end
    while first > 0 and (skipped[first - 1] or re.match(TOTAL, _label(rows[first - 1][: usual.width]))):
        first -= 1
    end = first if end - first < _MOST_SUMS else end
    sums = _Sums(rows, skipped)
    for i, row in enumerate(rows):
        places = [j for j, cell in enumerate(row[: usual.width]) if cell.strip()]
        label = _label(row[: usual.width])
        is_called = len(label) <= _LONGEST_LABEL and re.search(TOTAL, label) is not None
        called[i] = is_called and not skipped[i]
        is_called = is_called or any(_SUBTOTAL.match(row[j].strip()) for j in places[1:3])
        is_end = i == 0 or i >= end
        if skipped[i] or not places or not (is_called or is_end):
            continue
        is_mean = is_called and re.search(_MEANS, label.lower()) is not None
        beside = [j for j in places[is_called or not is_formatted(label) :] if row[j].strip(" -–—")]
        beside = [j for j in beside if not _SUBTOTAL.match(row[j].strip())]
        numbers = [j for j in beside if _kind(row[j].strip()) in ("number", "amount")]
        if any(not is_formatted(row[j]) and row[j].strip() not in usual.words[j] for j in beside):
            continue
        lacks = lacking[i] = usual.lacks(row)
        if i == 0 and not (is_called or lacks):
            continue
        fits = (sums.fits(i, j, is_called=is_called, is_mean=is_mean) for j in numbers)
        fitting = sum(fits) if is_called or lacks else sum(takewhile(bool, fits))  # a whole row is one only if all fit
        is_share = bool(numbers) and i > 0 and all(row[j].strip().endswith("%") for j in numbers)
        if is_called and is_share and found[:i].any():  # "Percentage of total"
            found[i] = lacking[i] = True
            continue
        if is_called and numbers:
            found[i] = 2 * fitting >= len(numbers) or (is_end and (fitting > 0 or lacks or is_part))
            found[i] |= fitting > 0 and all(sums.may_average(i, j) for j in numbers)
        elif called[i]:  # sums whose formulas were never computed
            found[i] = lacking[i] = True
        elif i == 0:
            found[i] = lacks and fitting > 1 and 2 * fitting >= len(numbers) and len(rows) > 2
        else:
            is_all = fitting == len(numbers) and (lacks or len(numbers) > 1)
            found[i] = i > 2 and bool(numbers) and (is_all or (lacks and fitting > 1 and 2 * fitting >= len(numbers)))
        if found[i]:
            sums.leave_out(i)
    if (called & ~found).any():
        found &= lacking
    return found, called & ~found


def _amount(cell: str, decimal: str) -> float:
    """Return the number in a cell, NaN if there is none."""
    if decimal == "." and is_number(cell):
        return float(cell)
    written = written_number(cell)
    return math.nan if written is None else NumberFormat(decimal, "," if decimal == "." else ".").value(written)


def _check_short(content: Content, dialect: Dialect, usual: _Usual, rows: list[Row], short: list[Row]) -> None:
    """Refuse short rows unless their cells are where they should be: numbers below numbers."""
    are_many, has_whole = len(short) > MOST_SHORT * len(rows), len(short) < len(rows)
    for line, cells in short:
        given = [(j, cell) for j, cell in enumerate(cells) if usual.kinds[j] and cell.strip() not in usual.missing]
        checked = [_kind(cell.strip()) != "" for _, cell in given]
        if not has_whole or not all(checked) or (are_many and not checked):
            raise ragged(content, dialect, line, cells)
