"""Find the lines of sums and means among the rows of a delimited file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import is_number
from margrove.data.formats import NumberFormat
from margrove.data.header import filled, is_formatted
from margrove.data.usual import LONGEST_LABEL, SUBTOTAL, TOTAL, Usual, kind_of, label_of
from margrove.data.written import written_number
from margrove.words import MEANS

_MOST_SUMS = 4  # lines below the rows, each of a part of them

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]

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

    def is_large(self, i: int, j: int) -> bool:
        """Return whether a number has two digits or more before the decimal sign."""
        return any(abs(self._column(j, decimal)[0][i]) >= 10 for decimal in ".,")

    def may_average(self, i: int, j: int) -> bool:
        """Return whether a cell is a sum, or lies between those of its group, as an average does."""
        if self.fits(i, j, is_called=True, is_mean=False):
            return True
        amounts, _ = self._column(j, "," if _DECIMAL_COMMA.search(self.rows[i][j]) else ".")
        group = amounts[self.start : i][~self.skipped[self.start : i]]
        return bool(np.nanmin(group, initial=math.inf) <= amounts[i] <= np.nanmax(group, initial=-math.inf))


@dataclass(frozen=True)
class _Line:
    """A row that may be a line of sums."""

    is_named: bool  # in front
    is_called: bool  # there or a little further on
    is_end: bool  # it is the first line, or one of the last
    lacks: bool  # cells that usual rows have
    is_share: bool  # numbers are percentages only
    is_alone: bool  # nothing stands beside the label
    numbers: list[int]  # their places


def find_sums(rows: list[list[str]], skipped: Flags, usual: Usual, *, is_part: bool) -> tuple[Flags, Flags]:
    """Return which rows are sums of those above (of all, or of those since the last sum), and which are only called
    so. If there are such, a word like Total is a level of a column, and only rows with fewer cells are sums."""
    found, called, lacking = (np.zeros(len(rows), dtype=bool) for _ in range(3))
    sums, end = _Sums(rows, skipped), _first_at_end(rows, skipped, usual)
    for i, row in enumerate(rows):
        line = None if skipped[i] else _line(row, usual, is_end=i == 0 or i >= end)
        called[i] = line is not None and line.is_named
        if line is None or not (line.is_called or (line.is_end and (i > 0 or line.lacks))):
            continue
        lacking[i] = line.lacks
        is_share = line.is_called and line.is_share and found[:i].any()  # "Percentage of total"
        if is_share or (line.is_named and line.lacks and line.is_alone):  # sums whose formulas were never computed
            found[i] = lacking[i] = True
        else:
            found[i] = bool(line.numbers) and _is_sum(i, line, sums, is_part=is_part)
        if found[i]:
            sums.leave_out(i)
    if (called & ~found).any():
        found &= lacking
    return found, called & ~found


def _first_at_end(rows: list[list[str]], skipped: Flags, usual: Usual) -> int:
    """Return the first of the lines below the rows that are called sums, or the last row."""
    last = max((i for i, row in enumerate(rows) if filled(row) > 1 or is_formatted("".join(row))), default=0)
    if not re.match(TOTAL, label_of(rows[last][: usual.width])):
        return last
    first = last
    while first > 0 and (skipped[first - 1] or re.match(TOTAL, label_of(rows[first - 1][: usual.width]))):
        first -= 1
    return first if last - first < _MOST_SUMS else last


def _line(row: list[str], usual: Usual, *, is_end: bool) -> _Line | None:
    """Return what a row has as a line of sums; None if it is not called one, nor at an end."""
    label = label_of(row[: usual.width])
    places = [j for j, cell in enumerate(row[: usual.width]) if cell.strip()]
    is_named = len(label) <= LONGEST_LABEL and re.search(TOTAL, label) is not None
    is_called = is_named or any(SUBTOTAL.match(row[j].strip()) for j in places[1:3])
    if not (is_called or is_end):
        return None
    beside = [j for j in places[is_called or not is_formatted(label) :] if row[j].strip(" -–—")]
    beside = [j for j in beside if not SUBTOTAL.match(row[j].strip())]
    is_other = any(not is_formatted(row[j]) and row[j].strip() not in usual.words[j] for j in beside)
    numbers = [] if is_other else [j for j in beside if kind_of(row[j].strip()) in ("number", "amount")]
    is_share = bool(numbers) and all(row[j].strip().endswith("%") for j in numbers)
    return _Line(
        is_named, is_called and not is_other, is_end and not is_other, usual.lacks(row), is_share, not beside, numbers
    )


def _is_sum(i: int, line: _Line, sums: _Sums, *, is_part: bool) -> bool:
    """Return whether the numbers of a line are sums of those above: of one that is called so, or is not whole, half of
    them, or some if all others may be averages; otherwise all."""
    is_mean = line.is_called and re.search(MEANS, label_of(sums.rows[i]).lower()) is not None
    fits = (sums.fits(i, j, is_called=line.is_called, is_mean=is_mean) for j in line.numbers)
    n = len(line.numbers)
    fitting = sum(fits) if line.is_called or line.lacks else sum(takewhile(bool, fits))
    is_half = 2 * fitting >= n
    if line.is_called:
        is_last = line.is_end and (fitting > 0 or line.lacks or is_part)
        if is_mean and n == 1 and not (line.is_end or line.lacks):  # "Average" may be a level
            return False
        return is_half or is_last or (fitting > 0 and all(sums.may_average(i, j) for j in line.numbers))
    if i == 0:
        return line.lacks and fitting > 1 and is_half and len(sums.rows) > 2
    if not line.lacks:  # small numbers are sums by chance
        return i > 2 and fitting == n > 2 and all(sums.is_large(i, j) for j in line.numbers)
    return i > 2 and (fitting == n or (fitting > 1 and is_half))


def _amount(cell: str, decimal: str) -> float:
    """Return the number in a cell, NaN if there is none."""
    if decimal == "." and is_number(cell):
        return float(cell)
    written = written_number(cell)
    return math.nan if written is None else NumberFormat(decimal, "," if decimal == "." else ".").value(written)
