"""The learning curve: would more rows help, judging by the scores of fewer?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_HARDLY = 0.01  # of accuracy or R²: nobody collects twice the rows for less


@dataclass(frozen=True)
class Point:
    """The score after learning from so many rows, and its standard error."""

    rows: int
    score: float
    error: float | None


def verdict_on_rows(points: Sequence[Point]) -> str:
    """Compare the gain of at least twice the rows at the end of the curve with what chance may bring.

    The last two points alone would not do: they lie close together, so that a rising curve would seem flat."""
    last = points[-1]
    before = [point for point in points if 2 * point.rows <= last.rows] or points[:1]
    gain, error = last.score - before[-1].score, math.hypot(last.error or 0.0, before[-1].error or 0.0)
    if gain <= _HARDLY:
        return "more rows would hardly help"
    return "more rows would likely help" if gain > error else "more rows may help"
