"""Find the header of a delimited file among its first records: what stands above it, its one or two lines, its names.

The table begins with the first record that has as many cells as most and is not mostly empty. It holds names when it is
unlike what stands below it: text above a column of numbers, or, where all is text, words that never come again in
their own columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median_low

from margrove.data.written import CACHED, is_known_unit, is_no_value

_NUMBER = re.compile(r"(?i)[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf(inity)?|[-+]?\d*,\d+(e[-+]?\d+)?")
_OTHER_TYPED = re.compile(r"true|false|\d{4}-\d\d-\d\d([ T].*)?|\d\d:\d\d(:\d\d)?", re.IGNORECASE)
# A number with its currency or unit, or a date: "R$ 1.099,10", "(86.40)", "85,3 m²", "3/4/2024 9:05 AM".
_FORMATTED = re.compile(
    r"[-+−(<>~]*(?:[^\W\d_]{0,3}[^\w\s]\s?|[^\W\d_]{1,3}\s)?[-+−(]?\d[\d.,:/'’\s-]*\)?\s?[^\d\s]{0,4}"
)
_YEAR = re.compile(r"(19|20)\d\d")
_UNIT_WORDS = ("anzahl", "prozent", "percent", "count", "number", "antal", "aantal", "nombre", "número", "numero")
_PER_NUMBER = re.compile(r"[^\W\d]+/\d+ ?[^\W\d]*")  # the unit cfu/100 ml
_NO_UNIT = ("", "-", "–", "—")  # stand below the name of a column without a unit


@dataclass(frozen=True)
class Header:
    """The place of the header and the rows among the records of a file."""

    first: int  # the record with which the table begins
    body: int  # the record with which the rows begin
    names: tuple[str, ...]  # of the columns; "" for one without a name
    written: tuple[str, ...] = ()  # the last line of the header as it stands in the file


def find_header(rows: list[list[str]], missing: Collection[str], header: bool | str, *, is_first: bool) -> Header:
    """Return the header; ``is_first`` if the table is known to begin with the first record."""
    if header is False:
        return Header(0, 0, ("",) * len(rows[0]))
    first = 0 if is_first else _beginning(rows, missing)
    for upper in (first,) if is_first else (first - 1, first):
        if joined := _joined(rows, upper, missing):
            return Header(upper, upper + 2, joined, tuple(rows[upper + 1]))
    names, body = rows[first], rows[first + 1 :]
    if body and all(len(row) == len(names) + 1 for row in body) and any(row[-1].strip() for row in body):
        # R writes the names of the columns, but none above the names of the rows. Other cells are one too many.
        return Header(first, first + 1, ("", *map(_name, names)) if _name_rows(body) else _names(names), tuple(names))
    if len(rows) > first + 2 and (joined := _with_units(rows[first:], missing)):
        return Header(first, first + 2, joined, tuple(rows[first + 1]))
    if header == "auto" and not _has_names([names, *_usual(body)], missing):
        return Header(first, first, ("",) * len(names))
    # Some programs end the rows with a delimiter, and not the names; or the other way round.
    width, _ = width_of(rows)
    padded = [*_names(names), *[""] * (width - len(names))]
    while len(padded) > width and not padded[-1]:
        padded.pop()
    return Header(first, first + 1, tuple(padded), tuple(names))


def _name(cell: str) -> str:
    return re.sub(r"\s*[\r\n]+\s*", " ", cell.strip())


def _names(cells: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_name, cells))


def _name_rows(rows: list[list[str]]) -> bool:
    """Return whether the first cells can be names of rows: all differ, and numbers rise."""
    first = [row[0].strip() for row in rows]
    if not all(name.isdigit() for name in first):
        return len(set(first)) == len(first) and not any(map(is_typed, first))
    return all(int(above) < int(below) for above, below in pairwise(first))


def _with_units(rows: list[list[str]], missing: Collection[str]) -> tuple[str, ...] | None:
    """Return the names with the units that stand in the line below them, above numbers: ``length (mm)``. None if there
    are no such units."""
    names, units = _names(rows[0]), _names(rows[1])
    if len(names) != len(units):
        return None
    found, n_known = list(names), 0
    for j, unit in enumerate(units):
        plain = unit[1:-1].strip() if unit[:1] + unit[-1:] in ("()", "[]") else unit
        column = [row[j].strip() for row in rows[2:] if j < len(row)]
        column = [cell for cell in column if cell and cell not in missing and not is_no_value(cell)]
        if not unit or plain in _NO_UNIT or re.search("yy|jj|aa", plain.casefold()):  # a format of dates
            continue
        if not _PER_NUMBER.fullmatch(unit) and is_formatted(unit):
            return None
        if not column or 5 * sum(map(is_formatted, column)) < 4 * len(column):
            return None
        n_known += plain != unit or is_known_unit(unit) or unit.casefold() in _UNIT_WORDS
        found[j] = f"{names[j]} ({plain})"
    n_units = sum(map(str.__ne__, found, names))
    return tuple(found) if n_units and (n_known == n_units or n_known >= max(2, n_units / 2)) else None


def filled(row: Sequence[str]) -> int:
    """Return the number of cells that are not blank."""
    return len(row) - row.count("") - sum(map(str.isspace, row))


def typical_of(rows: list[list[str]]) -> int:
    """Return the number of filled cells of a usual row."""
    width, _ = width_of(rows)
    return median_low([filled(row) for row in rows if len(row) == width and filled(row)] or [0])


def is_title(row: Sequence[str], typical: int) -> bool:
    """Return whether a row is mostly empty, beside usual ones, as a title is."""
    return 2 * filled(row) < typical or (filled(row) == 1 and typical == 2)


def _usual(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows without remarks, which are mostly empty."""
    typical = typical_of(rows)
    return [row for row in rows if 2 * filled(row) >= typical]


def width_of(rows: list[list[str]]) -> tuple[int, int]:
    """Return the number of cells that most rows have, and the number of these rows. A few rows between many remarks are
    a table if a column of theirs holds numbers."""
    counts = Counter(map(len, rows))
    # Titles may be more than the rows, which have more cells.
    width, times = max(counts.items(), key=lambda item: ((item[1] > 1) * item[1] * item[0], item), default=(0, 0))
    if width == 1 and len(counts) > 1:
        runs: list[list[list[str]]] = []
        for row in rows:
            if runs and len(runs[-1][0]) == len(row):
                runs[-1].append(row)
            else:
                runs.append([row])
        longest = max((run for run in runs if len(run[0]) > 1), key=len)
        if len(longest) > 2 and names_numbers(longest, ("",)):
            return len(longest[0]), len(longest)
    return width, times


def _beginning(rows: list[list[str]], missing: Collection[str]) -> int:
    """Return the record with which the table begins: 0 unless what stands above is surely no part of it."""
    width, typical = width_of(rows)[0], typical_of(rows)
    if settings := _below_settings(rows, width):
        return settings
    used = max(len("\0".join(row).rstrip(" \0").split("\0")) for row in rows if len(row) == width)
    for place, row in enumerate(rows):
        is_wider = filled(row) > max(width, len(rows[min(place + 1, len(rows) - 1)]))
        is_remark = is_wider or (row[0].startswith("#") and row[0].strip() != "#")
        is_remark = is_remark and names_numbers(rows[place + 1 :], missing)
        if len(row) >= used and not is_title(row, typical) and not is_remark:
            break
    for lower in range(place + 1, min(place + 6, len(rows) - 1)):  # names of all columns, below a line that has gaps
        is_name = [cell.strip() and (not is_typed(cell) or _YEAR.fullmatch(cell.strip())) for cell in rows[lower]]
        is_full = used == sum(map(bool, is_name)) > filled(rows[place]) > 1
        if is_full and (_are_counted(rows[lower]) or names_numbers(rows[lower:], missing)):
            return lower
    if place == 0 or width < 2:
        return 0
    below = [rows[place], *_usual(rows[place + 1 :])]
    if names_numbers(below, missing) or _joined(rows, place, missing):
        return place
    # One cell may be the name of R's only column.
    titles = (
        2 * filled(row) < typical or filled(row) > width or (filled(row) == 1 and " " in row[0]) for row in rows[:place]
    )
    return place if all(titles) and _has_names(below, missing) else 0


def _below_settings(rows: list[list[str]], width: int) -> int:
    """Return the record of the names that stand above nothing but numbers, down to the end, if no record above them
    could be a row and most have gaps, as those of an instrument's settings; 0 if there is none."""
    for place in range(1, len(rows) - 3):
        row = rows[place]
        if len(row) == filled(row) == width > 2 and not any(map(is_formatted, row)):
            is_body = all(filled(below) == width and all(map(is_typed, below)) for below in rows[place + 1 :])
            full = [above for above in rows[:place] if filled(above) == width] if is_body else []
            if is_body and 2 * len(full) < place and not any(is_typed(cell) for above in full for cell in above):
                return place
    return 0


def _joined(rows: list[list[str]], upper: int, missing: Collection[str]) -> tuple[str, ...] | None:
    """Return the names of a header of two lines, the upper of which names groups of columns; None if it is none."""
    if not 0 <= upper < len(rows) - 2 or len(rows[upper]) != len(rows[upper + 1]):
        return None
    above, below = ([_name(cell) for cell in row] for row in rows[upper : upper + 2])
    group, groups, is_wide = "", [], False
    for over, under in zip(above, below, strict=True):
        is_wide |= bool(under and group and over in ("", group))
        group = "" if over == under else over or group  # one name in both lines: a cell merged with the one below it
        groups.append(group if under or over else "")
        group = group if under else ""  # a name that is merged with the cell below it, not with the next ones
    lower = [name for name in below if name]
    has_blank = any(over and not under for over, under in zip(above, below, strict=True))
    joined = tuple(" ".join(filter(None, pair)) for pair in zip(groups, below, strict=True))
    names = [name for name in joined if name]
    is_repeated = len(set(lower)) < len(lower) or any(a == b != "" for a, b in pairwise(above))
    # A name that comes twice has a group above it, and is no unit.
    is_split = len(set(lower)) < len(lower) and not any(
        is_typed(name) or _PER_NUMBER.fullmatch(name) or is_known_unit(name.strip("[]()")) for name in lower
    )
    is_split &= all(over or below.count(under) < 2 for over, under in zip(above, below, strict=True))
    is_merged = filled(above) > 1 and ((is_wide and (has_blank or is_repeated)) or (is_split and filled(above) > 2))
    if not is_merged or len(set(names)) < len(names):
        return None
    is_header = _are_counted(below) or names_numbers([below, *_usual(rows[upper + 2 :])], missing)
    return joined if is_header else None


def names_numbers(rows: list[list[str]], missing: Collection[str]) -> bool:
    """Return whether a word of the first row stands above nothing but numbers or dates."""
    first = [cell.strip() for cell in rows[0]] if rows else []
    below = [row for row in rows[1:] if row != rows[0]]  # a header comes again on each page
    # The header may have more lines, all of words.
    n_first = filled(rows[0]) if rows else 0
    more = next((i for i, row in enumerate(below) if any(map(is_formatted, row)) or filled(row) > n_first), 0)
    below = below[more if more < min(3, len(below) - 1) else 0 :]
    for j, cell in enumerate(first):
        column = [row[j].strip() for row in below if j < len(row)]
        column = [other for other in column if other and other not in missing]
        for test in (is_typed, is_formatted):
            if column and cell and cell not in missing and not test(cell) and all(map(test, column)):
                return True
    return False


def _has_names(rows: list[list[str]], missing: Collection[str]) -> bool:
    if names_numbers(rows, missing):
        return True
    first = [cell.strip() for cell in rows[0]]
    columns = [[row[j].strip() for row in rows[1:] if j < len(row)] for j in range(len(first))]
    again = any(cell in column and cell not in missing for cell, column in zip(first, columns, strict=True))
    is_year_table = _are_counted(first) and not all(map(_YEAR.fullmatch, columns[-1]))
    return (is_year_table or not any(map(is_typed, first))) and not again


def _are_counted(cells: list[str]) -> bool:
    """Return whether the numbers among these cells are consecutive years, or 1, 2, 3, …, and there are others, or a
    blank in front."""
    typed = [cell for cell in cells if is_typed(cell)]
    if len(set(typed)) < 2 or not all(map(str.isdigit, typed)) or (filled(cells) == len(typed) and cells[0]):
        return False
    first, last = min(map(int, typed)), max(map(int, typed))
    is_usual = all(map(_YEAR.fullmatch, typed)) or (first == 1 and len(typed) > 2)
    return is_usual and last - first == len(set(typed)) - 1


@lru_cache(CACHED)
def is_typed(cell: str) -> bool:
    """Return whether a cell is a number, a truth value, a date or a time, rather than words."""
    text = cell.strip()
    return bool(_NUMBER.fullmatch(text) or _OTHER_TYPED.fullmatch(text))


@lru_cache(CACHED)
def is_formatted(cell: str) -> bool:
    """Return whether a cell is one of these, or a number with its unit, or a date in any format of digits."""
    return is_typed(cell) or bool(_FORMATTED.fullmatch(cell.strip()))
