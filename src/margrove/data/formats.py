"""The formats of numbers and dates: by the format of a column its cells are read and shown.

A `NumberFormat` says which signs stand for the decimal point and between thousands, and which unit or currency stands
beside the number. A `DateFormat` says in which order day, month and year are written. Both are plain values, kept in
models, so that new tables are read as the training table was. `inference` finds the format of a column.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal, get_args

from margrove.data.written import (
    POINT_MONEY,
    WrittenDate,
    WrittenNumber,
    clock_hours,
    unit_name,
    written_date,
    written_number,
)

Order = Literal["ymd", "dmy", "mdy"]

_IN_FRONT = ("$", "£", "¥", "₹")  # units that stand in front of the number in English
_EPOCH = datetime(1970, 1, 1)  # in UTC, as all dates are
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, where Python's calendar ends
_TWO_DIGIT_YEARS = 50  # 00 to 49 are 2000 to 2049, 50 to 99 are 1950 to 1999


@dataclass(frozen=True)
class NumberFormat:
    """Numbers as they are written in a column: ``1.099,10 €`` has a decimal comma, points between thousands, a unit."""

    decimal: str = "."
    thousands: str = ""  # "" where thousands are not separated
    unit: str = ""  # as written: "€", "kg", "%"; "h" also where the cells are times of day

    def show(self, value: float) -> str:
        """Return a number with its unit, for people: ``1,234.5 €``."""
        return self.with_unit(f"{value:,.10g}")

    def with_unit(self, digits: str) -> str:
        """Return written digits with the unit beside them: ``5 €``, ``5 %``, ``−$5``."""
        if not self.unit.endswith(_IN_FRONT):
            return f"{digits} {self.unit}".rstrip()
        sign = digits[: not digits[:1].isdigit()]
        return f"{sign}{self.unit}{digits.removeprefix(sign)}"

    @property
    def sample(self) -> str:
        """A cell of this format."""
        return self.with_unit(f"1{self.thousands}234{self.decimal}5")

    def parse(self, text: str) -> float:
        """Return the number that a cell of this format spells, or NaN."""
        if self.unit == "h" and (hours := clock_hours(text)) is not None:
            return hours
        written = written_number(text)
        if written is None or (written.unit and unit_name(written.unit) != unit_name(self.unit)):
            return math.nan
        return self.value(written)

    def value(self, written: WrittenNumber) -> float:
        """Return the number under this format's decimal sign, or NaN where the cell does not follow it."""
        whole, sign, part = written.body.partition(self.decimal)
        thousands = self.thousands
        if not thousands and (sign or self.decimal == "," or unit_name(self.unit) in POINT_MONEY):
            thousands = "," if self.decimal == "." else "."  # it can separate nothing else, also if training saw none
        if (sign and not part.isdigit()) or not is_grouped(whole or "0", thousands):
            return math.nan
        number = float(f"{''.join(filter(str.isdigit, whole)) or 0}.{part or 0}") * written.factor
        return number if math.isfinite(number) else math.nan


@dataclass(frozen=True)
class DateFormat:
    """Dates, as days since 1970-01-01 in UTC."""

    order: Order = "ymd"
    has_time: bool = False

    def show(self, value: float) -> str:
        """Return a number of days as a date, with the time where the column has times: ``2024-03-04 13:05``. What is
        smaller than a day, or a second, is cut off."""
        if not _FIRST_DAY <= value <= _LAST_DAY:
            return f"{value:g} days"
        moment = _EPOCH + timedelta(days=value)
        if not self.has_time:
            return moment.date().isoformat()
        return moment.isoformat(" ", "seconds" if moment.second else "minutes")

    @property
    def sample(self) -> str:
        """A cell of this format."""
        return {"ymd": "2024-12-31", "dmy": "31/12/2024", "mdy": "12/31/2024"}[self.order]

    def parse(self, text: str) -> float:
        """Return the day that a cell of this format spells, or NaN."""
        written = written_date(text)
        return math.nan if written is None else self.value(written)

    def value(self, written: WrittenDate) -> float:
        """Return the day under this format's order, or NaN where there is no such day."""
        year, month, day = written.year, written.first, written.second
        # With points the day is first, also in a column whose other dates have slashes and the month first.
        if written.separator and (self.order == "dmy" or (self.order == "mdy" and written.separator == ".")):
            month, day = day, month
        elif written.separator and self.order == "ymd":
            if not written.is_short:  # 03/04/2024
                return math.nan
            year, month, day = written.first, written.second, written.year
        if written.is_short:
            year += 2000 if year < _TWO_DIGIT_YEARS else 1900
        try:
            days = date(year, month, day).toordinal() - _EPOCH.toordinal()
        except ValueError:
            return math.nan
        return days + ((written.hours or 0.0) - (written.zone or 0.0)) / 24


@dataclass(frozen=True)
class EmptyFormat:
    """A column without cells: nothing is known of how they are written."""

    def show(self, value: float) -> str:
        """Return the number."""
        return f"{value:g}"

    def parse(self, text: str) -> float:
        """Return NaN: training learned nothing from the column, so that its cells are of no account."""
        return math.nan


Format = NumberFormat | DateFormat | EmptyFormat


_KINDS: dict[str, type[Format]] = {"number": NumberFormat, "date": DateFormat, "empty": EmptyFormat}


def format_to_json(form: Format | None) -> dict[str, Any] | None:
    """Return a format as plain JSON, for a model file."""
    if form is None:
        return None
    return {"kind": next(kind for kind, known in _KINDS.items() if isinstance(form, known)), **asdict(form)}


def format_from_json(record: Any) -> Format | None:
    """Return the format that `format_to_json` wrote; raise `ValueError` if it wrote nothing of the kind."""
    if record is None:
        return None
    given = dict(record) if isinstance(record, dict) else {}
    kind = given.pop("kind", None)
    form: Any = _KINDS.get(kind) if isinstance(kind, str) else None
    usual = {} if form is None else asdict(form())
    if (
        form is None
        or not given.keys() <= usual.keys()
        or any(type(value) is not type(usual[name]) for name, value in given.items())
        or given.get("order", "ymd") not in get_args(Order)
        or given.get("decimal", ".") not in (".", ",")
        or given.get("thousands", "") not in ("", ".", ",", " ", "'")
        or given.get("decimal", ".") == given.get("thousands", "")
        or not given.get("unit", "").isprintable()
    ):
        raise ValueError(f"{record!r} is not the format of a column")
    found: Format = form(**given)
    return found


def is_grouped(whole: str, separator: str) -> bool:
    """Return whether digits are separated as thousands are: 1,234,567, or 12,34,567 as in India."""
    if whole.isdigit():
        return True
    if " " in whole or "'" in whole:
        separator = " " if " " in whole else "'"
    groups = whole.split(separator) if separator else [whole]
    if not all(map(str.isdigit, groups)) or len(groups[-1]) != 3 or len(groups[0]) > 3:
        return False
    return all(len(group) == 3 for group in groups[1:]) or (
        separator == "," and len(groups[0]) <= 2 and all(len(group) == 2 for group in groups[1:-1])
    )
