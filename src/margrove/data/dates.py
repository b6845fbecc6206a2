"""Parts of dates as columns of their own: month, weekday and hour, beside the date itself, which is a trend.

A learner sees a date as one number that grows. What repeats, such as a busy Monday, it finds only in a part. A part
carries information only if it repeats in the table: within one year, the months merely order the rows as the date does.
So a part is added if the dates span more than its cycle (a year, a week, a day) and it has two values or more.

Dates are in UTC. Month and weekday are categories, the hour (0 to 23) is a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import MISSING, Column, category_column

CYCLES = {"month": 366, "weekday": 7, "hour": 1}  # in days
MOST_DAYS = 1e8  # beyond, the microseconds are no int64; the year is 275,760
_PER_DAY = 86_400 * 10**6  # microseconds
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
IN_CALENDAR = {name: place for names in (_MONTHS, _WEEKDAYS) for place, name in enumerate(names)}


def instants(days: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """Return days since 1970-01-01 as instants, not a time (NaT) where one is missing or above `MOST_DAYS`."""
    is_known = np.abs(days) <= MOST_DAYS
    found = np.round(np.where(is_known, days, 0.0).astype(np.float64) * _PER_DAY).astype("datetime64[us]")
    found[~is_known] = np.datetime64("NaT")
    return found


def date_part(dates: Column, part: str) -> Column:
    """Return the month, weekday or hour of a column of dates, as a column."""
    moments = instants(dates.values)
    is_missing, ticks = np.isnat(moments), moments.astype(np.int64)
    name, origin = f"{dates.name} {part}", (dates.name, part)
    if part == "hour":
        hours = np.where(is_missing, np.nan, ticks // (_PER_DAY // 24) % 24)
        return Column(name, "numeric", hours, date_part=origin)
    is_month = part == "month"
    weekday = (ticks // _PER_DAY + 3) % 7  # 1970-01-01 was a Thursday
    codes = moments.astype("datetime64[M]").astype(np.int64) % 12 if is_month else weekday
    names = _MONTHS if is_month else _WEEKDAYS
    return replace(category_column(name, np.where(is_missing, MISSING, codes), names), date_part=origin)


def informative_parts(dates: Column) -> Iterator[Column]:
    """Yield the parts that repeat in a column of dates and differ in it."""
    known = dates.values[~dates.is_missing]
    span = float(np.ptp(known)) if known.size else 0.0
    for part, cycle in CYCLES.items():
        if span > cycle and (column := date_part(dates, part)).n_distinct > 1:
            yield column
