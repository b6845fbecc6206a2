"""Find out which cells rows of a table usually fill, and with what. Recognise the labels of totals and balances."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from margrove.data.columns import is_number
from margrove.data.header import filled, is_formatted, is_title
from margrove.data.written import is_no_value, written_date
from margrove.words import BALANCE, SUM

if TYPE_CHECKING:
    from margrove.data.dialect import Dialect

TOTAL = rf"(?i)(?:^|[ -]){SUM}(?:$|[ :.(-])|^\*{{1,3}}(?: |$)"  # the first cell of a line of sums or means
_BALANCE = re.compile(f"(?i){BALANCE}")
_CALLED = re.compile(f"{TOTAL}|(?i:{BALANCE})")  # a cell of a total or a balance
SUBTOTAL = re.compile(rf"(?i){SUM}:?$")  # a cell that says nothing else
_PROFILED = 200  # rows by which it is known how a usual one is filled
LONGEST_LABEL = 40  # characters

Row = tuple[int, list[str]]  # its line and its cells


def label_of(cells: Sequence[str]) -> str:
    """Return the first cell that is filled."""
    return next(filter(None, map(str.strip, cells)), "")


def kind_of(cell: str) -> str:
    """Return "number", "amount" (one with letters) or "date" for a cell that is one in any format, "" for words."""
    if is_number(cell):
        return "number"
    if written_date(cell) is not None:
        return "date"
    return "" if not is_formatted(cell) else "amount" if any(map(str.isalpha, cell)) else "number"


def _kind_of_column(cells: list[str]) -> str:
    """Return the kind of cells that are numbers or dates, but for a few."""
    kinds = Counter(map(kind_of, cells))
    if kinds["amount"] > 1:
        kinds["amount"] += kinds.pop("number", 0)
    kind, times = max(kinds.items(), key=itemgetter(1), default=("", 0))
    n_others = len(cells) - times
    return kind if cells and n_others <= max(0.1 * len(cells), min(2, 0.4 * len(cells))) else ""


def is_mostly_empty(cells: Sequence[str], typical: int) -> bool:
    """Return whether a row is mostly empty."""
    return 2 * filled(cells) < typical or len(cells) == 1


class Usual:
    """A profile of the usual rows: which cells are filled, and with numbers, dates or words."""

    def __init__(self, rows: list[Row], why: NDArray[Any], dialect: Dialect) -> None:
        self.width, self.typical = len(dialect.columns), dialect.typical
        self.missing, self._known = {"", *dialect.missing}, dict[str, bool]()
        whole = [row for (_, row), said in zip(rows, why, strict=True) if not said and not is_title(row, self.typical)]
        records = [cells for cells in whole if not re.match(TOTAL, label_of(cells))]
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
        self.kinds = [_kind_of_column(column[len(column) // 4 : len(column) - len(column) // 8]) for column in columns]

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
        return wanted != "" and cell not in self.words[j] and kind_of(cell) not in fitting and not cell.isdigit()

    def n_clashing(self, cells: list[str]) -> int:
        """Return how many cells are no numbers or dates where usual rows have these. Beside such, numbers with letters
        count, where usual rows have none."""
        places = self._places(cells)
        found = [j for j in places if self._clashes(cells, j)]
        beside = [j for j in places if self.kinds[j] == "number" and kind_of(cells[j].strip()) == "amount"]
        return len(found) + len(beside) if found else 0

    def is_odd(self, cells: list[str], *, is_top: bool = False) -> bool:
        """Return whether cells at an end of the table are no row. Two are words where usual rows have numbers or dates;
        or cells are missing that usual rows have, and the first, or another beside many gaps, is such a word, or is
        called a balance or a total, or the first of two is a word to the right of where the numbers or dates begin."""
        places, n_clashing = self._places(cells), self.n_clashing(cells)
        n_lacking = len(self.always.difference(places))
        if n_clashing > 1:
            words = [cells[j].strip() for j in places if self._clashes(cells, j)]
            is_level = len(words) > 1 and len(set(words)) == 1  # one word again and again
            return (is_top or n_lacking > 0 or self._clashes(cells, places[0])) and not is_level
        if not places or not n_lacking:
            return False
        if self._clashes(cells, places[0]) or (n_clashing and 3 * n_lacking >= len(self.always)):
            return True
        label, first = cells[places[0]].strip(), min(self.always)
        # Behind the first cell a total may be a level, unless more is missing.
        called = [_CALLED if j == places[0] or n_lacking > 1 else _BALANCE for j in places]
        is_called = any(
            len(cells[j]) <= LONGEST_LABEL and c.search(cells[j]) for j, c in zip(places, called, strict=True)
        )
        if is_called or (places[0] in self.never and first not in places):
            return True
        is_word = not kind_of(label) and label not in self.words[places[0]]
        return is_word and places[0] > first and self.kinds[first] != "" and n_lacking > 1 and len(places) < 3

    def is_unlike_first(self, cells: list[str]) -> bool:
        """Return whether the first cell is a word where usual rows have plain numbers or dates."""
        return self.kinds[0] in ("number", "date") and cells[0].strip() != "" and self._clashes(cells, 0)

    def is_remark(self, cells: list[str]) -> bool:
        """Return whether cells are none of a usual row, or most are empty."""
        return is_mostly_empty(cells, self.typical) or self.is_odd(cells)

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
        label = cells[first].strip() if first < len(cells) else ""
        is_named = _BALANCE.match(label) is not None or label in ("Report", "REPORT")  # carried forward, in French
        return is_named and any(self.kinds[j] for j in self.mostly if j <= first)

    def is_doubtful(self, cells: list[str]) -> bool:
        """Return whether several cells that usual rows have, or the first of them, are missing, or one is a word."""
        places = self._places(cells)
        n_lacking = len(self.always.difference(places))
        is_bare = 3 * n_lacking >= max(len(self.always), 1) and (n_lacking > 1 or places[:1] > [min(self.always)])
        return bool(places) and (is_bare or self.n_clashing(cells) > 0)
