"""How people write numbers and dates: the format of a column, by which its cells are read and shown.

A `NumberFormat` says which signs stand for the decimal point and between thousands, and which unit or currency stands
beside the number. A `DateFormat` says in which order day, month and year are written. Both are plain values, kept in
models, so that new tables are read as the training table was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

Order = Literal["ymd", "dmy", "mdy"]

_EPOCH = datetime(1970, 1, 1)  # in UTC, as all dates are
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, where Python's calendar ends


@dataclass(frozen=True)
class NumberFormat:
    """Numbers as they are written in a column: ``1.099,10 €`` has a decimal comma, points between thousands, a unit."""

    decimal: str = "."
    thousands: str = ""  # "" where thousands are not separated
    unit: str = ""  # as written: "€", "kg", "%"

    def show(self, value: float) -> str:
        """Return a number with its unit, for people: ``1,234.5 €``."""
        digits = f"{value:,.10g}"
        if not self.unit:
            return digits
        return f"{digits}%" if self.unit == "%" else f"{digits} {self.unit}"


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


Format = NumberFormat | DateFormat


def format_to_json(form: Format | None) -> dict[str, Any] | None:
    """Return a format as plain JSON, for a model file."""
    if form is None:
        return None
    return {"kind": "date" if isinstance(form, DateFormat) else "number", **asdict(form)}


def format_from_json(record: Any) -> Format | None:
    """Return the format that `format_to_json` wrote; raise `ValueError` if it wrote nothing of the kind."""
    if record is None:
        return None
    given = dict(record) if isinstance(record, dict) else {}
    kind = given.pop("kind", None)
    form: Any = {"date": DateFormat, "number": NumberFormat}.get(kind) if isinstance(kind, str) else None
    usual = {} if form is None else asdict(form())
    is_known = form is not None and given.keys() <= usual.keys()
    if not is_known or any(type(value) is not type(usual[name]) for name, value in given.items()):
        raise ValueError(f"{record!r} is not the format of a column")
    if given.get("order", "ymd") not in get_args(Order) or not given.get("unit", "").isprintable():
        raise ValueError(f"{record!r} has an unknown order of day, month and year, or a unit that cannot be printed")
    found: Format = form(**given)
    return found
