"""A solve runs in slices of time, with the GIL released; between slices Python reports progress and checks the time
limit and Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable

from margrove.run.effort import Effort
from margrove.status import Status

SLICE = 0.05  # seconds: Ctrl-C takes effect within about this


def run_in_slices(
    advance: Callable[[float], Status | None], effort: Effort, look_around: Callable[[], None] | None = None
) -> Status:
    """Call ``advance(seconds)``, and ``look_around`` between slices, until it names a status, the time is over, or the
    user presses Ctrl-C: `Status.INTERRUPTED` or KeyboardInterrupt, as ``effort.on_interrupt`` says."""
    started = time.monotonic()
    try:
        while True:
            left = SLICE if effort.time_limit is None else effort.time_limit - (time.monotonic() - started)
            if left <= 0:
                return Status.TIME_LIMIT
            status = advance(min(SLICE, left))
            if status is not None:
                return status
            if look_around is not None:
                look_around()
    except KeyboardInterrupt:
        if effort.on_interrupt == "raise":
            raise
        return Status.INTERRUPTED
