"""Limits of a solve: time, threads, and the effect of Ctrl-C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from margrove.advice import Advice, InPython, Value
from margrove.errors import ParameterError, check_choice, check_number, check_whole

OnInterrupt = Literal["keep", "raise"]
_SECONDS = Advice("It is in seconds; ", InPython("None means", "leave it out for"), " no limit.")
_POLICIES = ("keep", "raise")
MOST_THREADS = 1024  # a system that cannot start so many may end the process
_LEAST_SECONDS = 1e-9  # the time limit of a solve whose time is over: it ends at once
_policy: ContextVar[OnInterrupt | None] = ContextVar("on_interrupt", default=None)


@contextmanager
def on_interrupt(policy: OnInterrupt) -> Iterator[None]:
    """Set what Ctrl-C does to the fits inside the block.

    Parameters
    ----------
    policy : {"keep", "raise"}
        ``keep`` ends the fit with the status ``interrupted`` and keeps the model so far; the program goes on. ``raise``
        lets KeyboardInterrupt through: for a loop of fits that Ctrl-C should end as a whole.

    Examples
    --------
    >>> from margrove import SVC
    >>> from margrove.run.effort import on_interrupt
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> with on_interrupt("raise"):
    ...     models = [SVC(C=C).fit(X, y) for C in (1, 10, 100)]
    """
    check_choice("policy", policy, _POLICIES)
    before = _policy.set(policy)
    try:
        yield
    finally:
        _policy.reset(before)


def interrupt_policy(default: OnInterrupt = "keep") -> OnInterrupt:
    """Return the policy of the innermost `on_interrupt` block, ``default`` outside of any."""
    return _policy.get() or default


def check_time_limit(name: str, seconds: float) -> None:
    """Raise `ParameterError` unless the limit is a number of seconds, or infinite."""
    if not (isinstance(seconds, float) and seconds == math.inf):
        check_number(name, seconds, above=0, cure=_SECONDS)


def check_threads(name: str, threads: int) -> None:
    """Raise `ParameterError` unless it is a number of threads, scikit-learn's way."""
    check_whole(name, threads, least=-MOST_THREADS, cure=Advice("-1 means all threads, as does ", Value(None), "."))
    if threads == 0 or threads > MOST_THREADS:
        words = f"{name} is {threads}; it must be a number of threads up to {MOST_THREADS}, -1 for all of them, or "
        raise ParameterError(Advice(words, Value(None), "."))


@dataclass(frozen=True)
class Effort:
    """The limits of a solve, a callback between its slices, and the effect of Ctrl-C."""

    time_limit: float | None = None  # seconds
    n_jobs: int | None = None  # threads; None means all
    # Called between slices with a function that returns the present state without disturbing the solve: α of each
    # machine, for duals. A search passes a function that returns None: its units are handed over as they end.
    look_around: Callable[[Callable[[], Any]], None] | None = None
    # "keep" ends the solve with Status.INTERRUPTED and what it has; "raise" lets KeyboardInterrupt through.
    on_interrupt: OnInterrupt = field(default_factory=interrupt_policy)

    def __post_init__(self) -> None:
        if self.time_limit is not None:
            check_time_limit("time_limit", self.time_limit)
        if self.n_jobs is not None:
            check_threads("n_jobs", self.n_jobs)
        if self.on_interrupt not in _POLICIES:
            check_choice("on_interrupt", self.on_interrupt, _POLICIES)

    def left(self, started: float) -> Effort:
        """Return the effort with what is left of its time limit since ``started``, a time of `time.monotonic`."""
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max(_LEAST_SECONDS, self.time_limit - (time.monotonic() - started)))
