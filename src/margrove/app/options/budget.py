"""The time for a search: parse ``--budget``, and count it down."""

from __future__ import annotations

import math
import time

DEFAULT_BUDGET = "60s"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(text: str) -> float:
    """Return the seconds; 0 for no search."""
    from margrove.errors import ParameterError

    word = text.strip().lower()
    unit = _UNITS.get(word[-1:])
    try:
        seconds = float(word if unit is None else word[:-1]) * (unit or 1.0)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ParameterError(f"--budget is {text!r}; it must be a time such as 90, 60s, 5m or 1h. 0 means no search.")
    return seconds


def budget_words(seconds: float) -> str:
    """Return a budget of at least so many seconds, as it is typed."""
    if seconds <= 60:
        return f"{5 * math.ceil(seconds / 5)}s"
    return f"{math.ceil(seconds / 60)}m" if seconds <= 3600 else f"{math.ceil(seconds / 3600)}h"


class Budget:
    """Seconds that run down from when it is made, or from a time by `time.monotonic`."""

    def __init__(self, seconds: float, began: float | None = None) -> None:
        self.seconds = seconds
        self._began = time.monotonic() if began is None else began

    @property
    def gone(self) -> float:
        return time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Seconds, at least 0."""
        return max(0.0, self.seconds - self.gone)

    @property
    def grace(self) -> float:
        """Seconds after the end in which a step that was planned may still be completed."""
        return 0.5 + 0.05 * self.seconds

    def longer(self, seconds: float) -> Budget:
        """Return the same with an end so many seconds later, or earlier if negative."""
        return Budget(max(0.0, self.seconds + seconds), self._began)
