"""A solve is a resumable object: it is run for slices of time, with the GIL released, and Python looks around in
between.

That is all there is to progress reports, time limits and Ctrl-C.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from margrove.status import Status

SLICE = 0.05  # seconds: Ctrl-C is answered within about this


def run_in_slices(
    advance: Callable[[float], Status | None],
    *,
    time_limit: float | None = None,
    look_around: Callable[[], None] | None = None,
) -> Status:
    """Call ``advance(seconds)`` until it names a status, the time is over, or the user presses Ctrl-C.

    Ctrl-C ends this solve and keeps what it has: the answer is `Status.INTERRUPTED`, not an exception.
    """
    started = time.monotonic()
    try:
        while True:
            left = SLICE if time_limit is None else time_limit - (time.monotonic() - started)
            if left <= 0:
                return Status.TIME_LIMIT
            status = advance(min(SLICE, left))
            if status is not None:
                return status
            if look_around is not None:
                look_around()
    except KeyboardInterrupt:
        return Status.INTERRUPTED
