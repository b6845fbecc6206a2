"""How people write numbers and dates: the format of a column, by which its cells are read and shown.

A `NumberFormat` says which signs stand for the decimal point and between thousands, and which unit or currency stands
beside the number. A `DateFormat` says in which order day, month and year are written. Both are plain values, kept in
models, so that new tables are read as the training table was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

Order = Literal["ymd", "dmy", "mdy"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST_DAY = 2_932_896  # 9999-12-31, where Python's calendar ends


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
        """Return a number of days as a date, with the time where the column has times: ``2024-03-04 13:05``."""
        if not abs(value) <= _LARGEST_DAY:
            return f"{value:g} days"
        moment = _EPOCH + timedelta(days=value)
        return f"{moment:%Y-%m-%d %H:%M}" if self.has_time else f"{moment:%Y-%m-%d}"


Format = NumberFormat | DateFormat


def format_to_json(form: Format | None) -> dict[str, Any] | None:
    """Return a format as plain JSON, for a model file."""
    if form is None:
        return None
    return {"kind": "date" if isinstance(form, DateFormat) else "number", **asdict(form)}
