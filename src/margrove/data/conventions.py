"""The format in which a column of text writes its numbers, or its dates.

Formats are tried on the distinct cells of the column. One cell can decide between them (``17/03/2024`` has the day
first), and so can another column of the table; where nothing does, the column is `UnclearError`, with the settings that
decide it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, InPython, Setting
from margrove.data.columns import Column, clip, some
from margrove.data.formats import DateFormat, Format, NumberFormat, Order
from margrove.data.inspection import IDENTIFIER
from margrove.data.written import (
    FRACTIONS,
    POINT_MONEY,
    WrittenDate,
    WrittenNumber,
    clock_hours,
    is_known_unit,
    is_money,
    is_no_value,
    unit_name,
    written_date,
    written_number,
)
from margrove.words import PHONE_DIGITS, says_date, says_length, says_phone, says_postcode, says_time

T = TypeVar("T")

SIGNS = {"decimal_point": ".", "decimal_comma": ","}
_PLAIN = {".": NumberFormat(".", ","), ",": NumberFormat(",", ".")}  # by the decimal sign
_NAMES = {".": "point", ",": "comma", " ": "space", "'": "apostrophe"}
_FIRST_PART = {"ymd": "year", "dmy": "day", "mdy": "month"}
_CLASSES = "<>≤≥+"  # signs beside a number that many cells of a column have if they are classes
_SAMPLE = 64  # distinct texts that are tried before all of a column are
_LETTERED = re.compile(r"[^\W\d_]+-?\d+")  # EUR6, rs98241
_PLAIN_TIME = re.compile(r"(?i)[-+]?(?:\d\d:\d\d|\d:\d\d:)|.*[aphu]")
_HAS_UNIT = re.compile(r"[(\[][^()\[\]]*[)\]]$")  # a name such as "Creatinine (µmol/L)"
_SHORT_TIME = re.compile(r"\d?\d:\d\d")
_GROUPS = re.compile(r"\d{3}([ .])\d{3}(?:\1\d{3})+")  # as in telephone numbers
_MONTH_OR_DAY = re.compile(r"[^\W\d_]{3,}\.?\s\d\d")  # Jan 24
_SEASON = re.compile(r"(?:19|20)\d\d[-/]\d\d")
_FAR = 7000  # days between a date that stands for none and the next one
_VERSION = re.compile(r"\d\.\d{1,2}\.\d\d|\d\d\.\d\.\d\d")


class UnclearError(Exception):
    """Cells that may have several formats, with the problem and what to do."""

    def __init__(self, problem: str, *cure: str | InPython) -> None:
        super().__init__(problem)
        self.problem, self.cure = problem, cure

    def note(self, name: str) -> Advice:
        """Return the note that a column stays text."""
        return Advice(f"Column {name!r} stays text: {self.problem}.", *([" ", *self.cure] if self.cure else []))


class Text:
    """A column of text with its distinct cells, and how many rows have each."""

    def __init__(self, column: Column) -> None:
        self.column, self.name, self.texts = column, column.name, list(map(str, column.levels))

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The rows that have each text."""
        return np.bincount(self.column.values[self.column.values >= 0], minlength=len(self.texts))

    @property
    def sample(self) -> list[str]:
        """Some texts of all over the column, by which most columns of words are known."""
        return self.texts[:: max(1, len(self.texts) // _SAMPLE)]

    def first(self, places: Iterable[int]) -> int:
        """Return that of some texts which stands first in the column."""
        return int(self.column.values[np.argmax(np.isin(self.column.values, list(places)))])

    def parsed(self, parse: Callable[[str], T | None]) -> list[T | None] | None:
        """Return each text parsed, None for those that cannot be; None if more than a few cannot."""
        sample = self.sample
        if len(sample) > _SAMPLE // 2 and sum(parse(cell) is None for cell in sample) > len(sample) // 4:
            return None
        found = [parse(cell) for cell in self.texts]
        return None if self.odd([cell is None for cell in found]) is None else found

    def odd(self, is_odd: Sequence[bool]) -> list[str] | None:
        """Return the texts that are odd, if they are so few that they are mistakes or say that there is no value;
        otherwise None."""
        if all(is_odd):
            return None
        strange = [place for place, odd in enumerate(is_odd) if odd and not is_no_value(self.texts[place])]
        n_rows, n_odd = int(self.counts.sum()), int(self.counts[strange].sum())
        if n_odd > max(1 if n_rows < 20 else 2, n_rows // 100):
            return None
        if strange and len(is_odd) - len(strange) < max(5, 4 * len(strange)):
            return None
        return [text for text, odd in zip(self.texts, is_odd, strict=True) if odd and any(map(str.isalnum, text))]

    def numbers(self, values: Sequence[float], form: Format) -> Column:
        """Return the column as numbers, one for each distinct text."""
        by_code = np.array([*values, math.nan])  # the last entry is that of the code -1
        plain = form == NumberFormat()
        return Column(self.name, "numeric", by_code[self.column.values], format=None if plain else form)


class Numbers:
    """A column of text of which nearly all cells are written as numbers. Raise `UnclearError` if they may be codes, or
    have several units. ``is_given``: the user says that they are numbers."""

    kind: ClassVar[str] = "number"

    def __init__(self, text: Text, written: Sequence[WrittenNumber | None], *, is_given: bool = False) -> None:
        self.text, self.written = text, written
        self.known = [(text.texts[place], cell) for place, cell in enumerate(written) if cell is not None]
        self.bodies = [cell.body for _, cell in self.known]
        self.units = Counter[str]()
        for cell, rows in zip(written, text.counts.tolist(), strict=True):
            if cell is not None and cell.unit:
                self.units[cell.unit] += rows
        if not is_given:
            self._check_codes()
            # Beside "31G", the letter of "6.1M" is a unit.
            scaled = [text for text, cell in self.known if abs(cell.factor) >= 1000 and not cell.unit]
            if len({unit_name(unit) for unit in self.units}) + (len(scaled) > 0 < len(self.units)) > 1:
                listed = some([unit for unit, _ in self.units.most_common()] + scaled, 4)
                raise UnclearError(f"its numbers have several units ({listed})", "Convert them to one.")

    @classmethod
    def of(cls, text: Text) -> Numbers | None:
        """Return the column as numbers; None if it is none, or has words behind its numbers or classes such as <50K."""
        written = _without_flags(text, text.parsed(readable_number))
        known = [cell for cell in written or () if cell is not None]
        units = {cell.unit for cell in known if cell.unit}
        is_known = all(map(is_known_unit, units))
        if written is None or 2 * sum(cell.about[:1] in _CLASSES for cell in known if cell.about) > len(known):
            return None
        # A word such as "Punkte" is a unit if it stands in every cell; a letter is part of a code, as in "12 A", unless
        # it is one of Chinese or Japanese, or numbers have decimals.
        has_decimals = any(re.search(r"[.,]\d{1,2}$", cell.body) for cell in known)
        is_word = all(
            (len(unit) > 2 or has_decimals or unit > "\u2e80") and not re.search(r"\d", unit) for unit in units
        )
        in_all = len({unit_name(cell.unit) for cell in known}) == 1 and len(known) > 1
        in_all &= all(cell is not None or is_no_value(word) for word, cell in zip(text.texts, written, strict=True))
        return cls(text, written) if is_known or (is_word and in_all) else None

    def _check_codes(self) -> None:
        cells = [cell for cell, _ in self.known]
        has_zeros = any(body[0] == "0" and len(body) > 1 and body[1] not in ".," for body in self.bodies)
        are_groups = len(cells) > 2 and len(set(map(len, cells))) == 1 and all(map(_GROUPS.fullmatch, cells))
        are_groups |= all(cell[0] == "+" and " " in cell for cell in cells)
        are_marks = all(any(re.fullmatch(rf"\d{{1,2}}\{sign}", cell) for cell in cells) for sign in "+-")  # 2+, 3-
        is_phone = says_phone(self.text.name) and min(map(len, self.bodies)) >= PHONE_DIGITS
        are_called_so = (is_phone or says_postcode(self.text.name)) and all(map(str.isdigit, self.bodies))
        if has_zeros or are_groups or are_marks or are_called_so or all(map(_LETTERED.fullmatch, cells)):
            problem = f"{cells[0]!r} may be a code or a number"
            raise UnclearError(problem, "If it is a number, set ", given_kind(self.text.name, "number"), ".")

    @cached_property
    def shown(self) -> set[str]:
        """The signs that must be the decimal sign of some cell: that of 1,5, but not of 1,500."""
        found = set()
        for text, cell in self.known:
            if not cell.body.isdigit() and text[-1] not in FRACTIONS:
                may_be = [sign for sign in ".," if _may_be_decimal(cell, sign)]
                found |= set(may_be) if len(may_be) == 1 else set()
        return found

    def format(self, elsewhere: set[str], signs: Sequence[str] = ()) -> NumberFormat:
        """Return the format of the numbers, with one of these decimal signs where some are given; ``elsewhere`` are
        the signs that other columns show."""
        unit = self.units.most_common(1)[0][0] if self.units else ""
        decimal = signs[0] if signs else self._decimal(elsewhere, unit)
        other = "," if decimal == "." else "."
        between = next((sign for sign in (other, " ", "'") if any(sign in body for body in self.bodies)), "")
        return NumberFormat(decimal, between, unit)

    def _decimal(self, elsewhere: set[str], unit: str) -> str:
        if len(self.shown) > 1:
            raise UnclearError("some numbers have a decimal point, others a decimal comma")
        signed = [cell.body for text, cell in self.known if text[-1] not in FRACTIONS]
        unsure = next((body for body in signed if "." in body or "," in body), "")
        if self.shown or not unsure:
            return next(iter(self.shown), ".")
        sign = next(letter for letter in unsure if letter in ".,")
        if len(elsewhere) == 1:
            return next(iter(elsewhere))
        is_between = any(body.isdigit() and len(body) == 3 for body in self.bodies)  # 870 beside 1,204
        if is_between or (sign == "," and unit_name(unit) in POINT_MONEY):
            return "." if sign == "," else ","
        name = self.text.name
        python = f"kinds={{{name!r}: 'decimal_comma'}} or 'decimal_point'"
        setting = InPython(python, Setting("number", f"{name}:,"), " or ", Setting("number", f"{name}:."))
        problem = f"the {_NAMES[sign]} in cells such as {unsure!r} may separate thousands or decimals"
        raise UnclearError(problem, "Set ", setting, ".")

    def notes(self, form: NumberFormat, values: Sequence[float]) -> list[str]:
        """Return how the numbers were read, where it is not plain."""
        also = ", ".join(spelled for spelled in self.units if spelled != form.unit)
        how = [f"the unit is {form.unit.rstrip('.')}{also and f' (also written {also})'}"] if form.unit else []
        how += ["the decimal sign is a comma"] if form.decimal == "," else []
        how += [f"{_NAMES[form.thousands]}s separate thousands"] if form.thousands else []
        marked = [
            f"{text!r} as {value:,.10g}"
            for text, value, cell in zip(self.text.texts, values, self.written, strict=True)
            if cell is not None and (cell.about or abs(cell.factor) >= 1000 or (cell.factor < 0 and text[-1] in ")-−"))
        ]
        notes = [f"Column {self.text.name!r} is read as numbers: {', '.join(how)}."] if how else []
        return [*notes, *([f"Column {self.text.name!r}: read {some(marked, 3)}."] if marked else [])]


def readable_number(text: str) -> WrittenNumber | None:
    """Return a cell as a number; None where it is none in any format, as 1.2.3."""
    cell = written_number(text)
    if cell is None or cell.body.isdigit() or _may_be_decimal(cell, "." if "." in cell.body[-4:] else ","):
        return cell
    return cell if any(_may_be_decimal(cell, sign) for sign in ".,") else None


def _without_flags(text: Text, written: list[WrittenNumber | None] | None) -> list[WrittenNumber | None] | None:
    """Return numbers without letters that stand behind a few of them, as "12.6 e" for an estimate."""
    marked = {place: cell for place, cell in enumerate(written or ()) if cell is not None and cell.unit}
    is_flag = all(
        len(cell.unit) < 3 and (f" {cell.unit}" in text.texts[place] or not cell.body.isdigit())
        for place, cell in marked.items()
    )
    is_known = all(is_known_unit(cell.unit) for cell in marked.values()) and not _HAS_UNIT.search(text.name)
    # Letters behind most decimals are flags if they are small and differ from a unit, as "b" for a break.
    is_small = all(cell.unit.islower() and not cell.body.isdigit() for cell in marked.values())
    if written is None or not is_flag or (2 * len(marked) > len(written) and not is_small) or is_known:
        return written
    return [
        cell._replace(unit="", about=cell.unit) if cell is not None and place in marked else cell
        for place, cell in enumerate(written)
    ]


def _may_be_decimal(cell: WrittenNumber, sign: str) -> bool:
    """Return whether a sign may be the decimal sign of a number; an amount of money has no three decimals, but for
    prices such as 1,759 € for a litre."""
    whole, _, part = cell.body.partition(sign)
    if (len(part) == 3 and len(whole) > 1 and is_money(cell.unit)) or (not part and whole[0] == "0"):
        return False  # 0,500 has no thousands
    return not math.isnan(_PLAIN[sign].value(cell))


class Dates:
    """A column of text of which nearly all cells are written as dates. Raise `UnclearError` if they may be versions."""

    kind: ClassVar[str] = "date"

    def __init__(self, text: Text, written: Sequence[WrittenDate | None], *, is_given: bool = False) -> None:
        self.text, self.written = text, written
        self.known = [(text.texts[place], cell) for place, cell in enumerate(written) if cell is not None]
        if not is_given and any(map(_VERSION.fullmatch, text.texts)) and not says_date(text.name):
            problem = f"{self.known[0][0]!r} may be a version or a date"
            raise UnclearError(problem, "If it is a date, set ", _order_setting(text.name, ["dmy"]), ".")
        if not is_given and IDENTIFIER.search(text.name) and not says_date(text.name):
            problem = f"{self.known[0][0]!r} may be an identifier or a date"
            raise UnclearError(problem, "If it is a date, set ", given_kind(text.name, "date"), ".")
        years = {cell.year for _, cell in self.known}
        if not is_given and any(map(_MONTH_OR_DAY.fullmatch, text.texts)) and 2 * len(years) > len(self.known):
            raise UnclearError(f"the number in {self.known[0][0]!r} may be a day or a year")
        if all(_SEASON.fullmatch(cell) and (int(cell[2:4]) + 1) % 100 == int(cell[5:]) for cell in text.texts):
            raise UnclearError(f"{self.known[0][0]!r} may be a month or two years")
        if years and 2400 <= min(years) <= max(years) <= 2700:
            raise UnclearError(f"years such as {min(years)} may be those of the Buddhist calendar")

    @classmethod
    def of(cls, text: Text) -> Dates | None:
        """Return the column as dates, None if it is none."""
        written = text.parsed(written_date)
        return None if written is None else cls(text, written)

    @cached_property
    def signs(self) -> set[str]:
        """The signs between the day and the month, where one of them may be the other."""
        return {cell.separator for _, cell in self.known if cell.separator}

    @cached_property
    def orders(self) -> list[Order]:
        """The orders under which the fewest dates are impossible. The year of 24/03/17 may stand first where the first
        parts of a column differ less than the last ones."""
        if self.signs == {"."}:
            return ["dmy"]
        pairs = [cell for _, cell in self.known if cell.separator]
        is_short = all(cell.is_short for cell in pairs)
        may_begin = is_short and len({cell.first for cell in pairs}) < len({cell.year for cell in pairs})
        orders: tuple[Order, ...] = ("dmy", "mdy", "ymd") if may_begin else ("dmy", "mdy")
        wrong = {order: sum(math.isnan(DateFormat(order).value(cell)) for cell in pairs) for order in orders}
        return [order for order in orders if wrong[order] == min(wrong.values())]

    @cached_property
    def shown(self) -> set[tuple[str, Order]]:
        """The orders that the column has around its signs, where it settles them."""
        return {(sign, self.orders[0]) for sign in self.signs} if len(self.orders) == 1 else set()

    def format(self, elsewhere: set[tuple[str, Order]], orders: Sequence[Order] = ()) -> DateFormat:
        """Return the format of the dates, with one of these orders where some are given; ``elsewhere`` are the orders
        of other columns."""
        has_time = any(cell.hours is not None for _, cell in self.known)
        if orders or not self.signs:
            return DateFormat(orders[0] if orders else "ymd", has_time)
        found: Sequence[Order] = self.orders
        if len(found) > 1:
            agreed = [[order for sign, order in elsewhere if sign == each] for each in self.signs]
            found = agreed[0] if len({tuple(sorted(set(each))) for each in agreed}) == 1 else ()
        if len(set(found)) != 1:
            text = next(text for text, cell in self.known if cell.separator)
            parts = " or the ".join(_FIRST_PART[order] for order in self.orders)
            problem = f"in dates such as {clip(text)!r} the {parts} may stand first"
            raise UnclearError(problem, "Set ", _order_setting(self.text.name, self.orders), ".")
        return DateFormat(found[0], has_time)

    def notes(self, form: DateFormat, values: Sequence[float]) -> list[str]:
        """Return how the dates were read. Raise `UnclearError` if words before them, as in "from 17/03/2024", are no
        weekdays."""
        how = f" with the {_FIRST_PART[form.order]} first" if self.signs else ""
        days = {(c.weekday, form.value(c._replace(hours=None, zone=None)) % 7) for _, c in self.known if c.weekday}
        if len(days) > len({word for word, _ in days}):
            raise UnclearError(f"not all cells are dates{how}, such as {self.known[0][0]!r}")
        zone = "; their times are in UTC" if any(cell.zone is not None for _, cell in self.known) else ""
        notes = [f"Column {self.text.name!r} holds dates{how}, such as {self.known[0][0]!r}{zone}."]
        return notes + far_dates(self.text.name, np.array(values))


def read(cells: Numbers | Dates, form: Any) -> tuple[Column, list[str]]:
    """Return a column under a format, with notes. Raise `UnclearError` if more than a few cells cannot be read so."""
    values = [math.nan if cell is None else form.value(cell) for cell in cells.written]
    odd = cells.text.odd(list(map(math.isnan, values)))
    if odd is None:
        place = next(place for place, value in enumerate(values) if math.isnan(value))
        how = f" with the {_FIRST_PART[form.order]} first" if isinstance(cells, Dates) and cells.signs else ""
        raise UnclearError(f"not all cells are {cells.kind}s{how}, such as {cells.text.texts[place]!r}")
    return cells.text.numbers(values, form), [*cells.notes(form, values), *odd_notes(cells.text.name, odd, cells.kind)]


def hours(text: Text) -> Column | None:
    """Return a column of times of day or durations as hours; None if it is none."""
    given = [cell for cell in text.texts if not is_no_value(cell)]
    if says_length(text.name) and {cell.count(":") for cell in given} == {1, 2}:
        raise UnclearError("some cells have three parts and others two, which may be minutes and seconds")
    if says_length(text.name) and given and all(map(_SHORT_TIME.fullmatch, given)):
        raise UnclearError(f"{given[0]!r} may be minutes and seconds, or hours and minutes")
    # 5:12 may be a pace or a ratio, unless others have two digits, seconds or a half of the day, or the name says more.
    # A column named "Time" may hold the times of runners.
    if not any(map(_PLAIN_TIME.match, text.texts)) and not says_time(text.name):
        return None
    found = text.parsed(clock_hours)
    if found is None:
        return None
    return text.numbers([math.nan if hour is None else hour for hour in found], NumberFormat(unit="h"))


def given_kind(name: str, kind: str) -> InPython:
    """Return the advice to give the kind of a column."""
    return InPython(f"kinds={{{name!r}: {kind!r}}}", Setting(kind, name))


def _order_setting(name: str, orders: Sequence[Order]) -> InPython:
    """Return the advice to say in which of these orders the dates of a column are written."""
    first, *rest = orders
    python = " or ".join([f"kinds={{{name!r}: {first!r}}}", *map(repr, rest)])
    others = (part for order in rest for part in (" or ", Setting("date", f"{name}:{order}")))
    return InPython(python, Setting("date", f"{name}:{first}"), *others)


def far_dates(name: str, days: NDArray[np.float64]) -> list[str]:
    """Return a note on a date at an end that databases write for none, as 9999-12-31, if it is far from all others."""
    known = np.unique(np.floor(days[~np.isnan(days)]))
    if known.size < 2:
        return []
    gaps, others = known[[1, -1]] - known[[0, -2]], known[[-1, -2]] - known[[1, 0]]
    ends = known[[0, -1]][gaps > np.maximum(2 * others, _FAR)]
    shown = [day for day in map(DateFormat().show, ends.tolist()) if day[5:] in ("01-01", "12-31")]
    return [f"Column {name!r}: {day} is far from all other dates, and may mark missing cells." for day in shown]


def odd_notes(name: str, odd: Sequence[str], what: str) -> list[str]:
    """Return a note on cells that are missing because they are no numbers or dates."""
    if not odd:
        return []
    cells = some([repr(clip(cell)) for cell in odd], 3)
    is_no = f"is not a {what} and is" if len(odd) == 1 else f"are not {what}s and are"
    return [f"Column {name!r}: {cells} {is_no} read as missing."]
