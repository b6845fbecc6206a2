"""A solve is a resumable object: it is run for slices of time, with the GIL released, and Python looks around in
between.

That is all there is to progress reports, time limits and Ctrl-C.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable

from margrove.status import Status

SLICE = 0.05  # seconds: Ctrl-C is answered within about this

# Ctrl-C keeps the model of the solve it ends. Whoever presses it in the middle of a search wants out of the search as
# well, and half a model must not be scored as a whole one: a solve that one of these has asked for raises instead.
_SEARCHERS = (
    "joblib",
    "sklearn.calibration",
    "sklearn.ensemble",
    "sklearn.feature_selection",
    "sklearn.inspection",
    "sklearn.model_selection",
    "sklearn.multiclass",
    "sklearn.multioutput",
)
# In a loop of one's own a solve that begins so soon after an interrupted one, in seconds, is part of the same work and
# is not begun.
SAME_WORK = 1.0
_interrupted_at = -SAME_WORK


def run_in_slices(
    advance: Callable[[float], Status | None],
    *,
    time_limit: float | None = None,
    look_around: Callable[[], None] | None = None,
) -> Status:
    """Call ``advance(seconds)`` until it names a status, the time is over, or the user presses Ctrl-C.

    Ctrl-C ends this solve and keeps what it has: the answer is `Status.INTERRUPTED`, not an exception. Under one of
    scikit-learn's searches or ensembles it is KeyboardInterrupt, as it is for a solve that is asked for within
    `SAME_WORK` seconds of an interrupted one.
    """
    global _interrupted_at
    started = time.monotonic()
    if started - _interrupted_at < SAME_WORK:
        raise KeyboardInterrupt(f"the solve before this one was interrupted less than {SAME_WORK:g} s ago")
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
        if _is_under_a_search():
            raise
        _interrupted_at = time.monotonic()
        return Status.INTERRUPTED


def _is_under_a_search() -> bool:
    frame = inspect.currentframe()
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if any(name == searcher or name.startswith(f"{searcher}.") for searcher in _SEARCHERS):
            return True
        frame = frame.f_back
    return False


def forget_interruption() -> None:
    """Whoever calls this has told Ctrl-C's meaning by itself: a solve that begins now is other work, and is begun."""
    global _interrupted_at
    _interrupted_at = -SAME_WORK
