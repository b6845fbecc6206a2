"""Word of how far a long piece of work has come, from whoever does it to whoever watches.

A solver calls `report`; nothing happens unless somebody up the stack watches through `watched`. The command line draws
a bar from it, a notebook may print it, a test may count it. `Pace` judges from it how long the rest takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Progress:
    """One report: ``done`` of ``total`` (None if nobody can know), and what the solver would like to see fall, perhaps
    to a ``goal``."""

    stage: str
    done: float
    total: float | None = None
    objective: float | None = None
    objective_name: str = "objective"
    goal: float | None = None


Watcher = Callable[[Progress], None]
_watcher: ContextVar[Watcher | None] = ContextVar("margrove_watcher", default=None)


def report(progress: Progress) -> None:
    """Tell the watcher, if there is one."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(progress)


@contextmanager
def watched(watcher: Watcher | None) -> Iterator[None]:
    """Send every report made inside the block to ``watcher``.

    Examples
    --------
    >>> from margrove.progress import Progress, report, watched
    >>> seen = []
    >>> with watched(seen.append):
    ...     report(Progress("perceptron", done=3, total=10))
    >>> seen[0].done
    3
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def towards(goal: float) -> Iterator[None]:
    """Reports made inside the block say that their objective is to fall to ``goal``: an engine need not know it."""
    watcher = _watcher.get()
    with watched(None if watcher is None else lambda progress: watcher(replace(progress, goal=goal))):
        yield


@contextmanager
def overheard(watcher: Watcher) -> Iterator[None]:
    """Reports made inside the block go to ``watcher``, and on to whoever watches already."""
    outer = _watcher.get()

    def both(progress: Progress) -> None:
        watcher(progress)
        if outer is not None:
            outer(progress)

    with watched(both):
        yield


@contextmanager
def part_of(before: float, after: float) -> Iterator[None]:
    """Reports made inside the block are of one part: ``before`` was done already, and ``after`` comes after it."""
    watcher = _watcher.get()

    def whole(progress: Progress) -> None:
        assert watcher is not None
        total = None if progress.total is None else before + progress.total + after
        watcher(replace(progress, done=before + progress.done, total=total))

    with watched(None if watcher is None else whole):
        yield


@contextmanager
def as_one_of(stage: str, number: int, total: int) -> Iterator[None]:
    """Reports made inside the block are told as those of one piece of several: ``number`` were done before it."""
    watcher = _watcher.get()

    def share(progress: Progress) -> None:
        assert watcher is not None
        done = progress.done / progress.total if progress.total else 0.0
        watcher(Progress(stage, number + min(1.0, done), float(total)))

    with watched(None if watcher is None else share):
        yield


class Pace:
    """How long the rest takes, judged by the recent pace: the last half of the time gone, since the first steps of a
    search are often its cheapest.

    Nothing is said before there is something to go on: a second gone, and a twentieth of the work done.

    Examples
    --------
    >>> from margrove.progress import Pace
    >>> pace = Pace()
    >>> for second in range(5):
    ...     pace.see(done=10 * second, at=float(second))
    >>> pace.left(100)
    6.0
    """

    _SOON = 1.0  # seconds
    _LITTLE = 0.05  # of the work

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # (when, how much was done), as far back as still matters
        self._first: tuple[float, float] | None = None

    @property
    def elapsed(self) -> float:
        """Seconds from the first thing seen to the last."""
        return self._seen[-1][0] - self._first[0] if self._first is not None else 0.0

    def see(self, done: float, at: float) -> None:
        """So much was done at that time, in seconds."""
        if self._first is None:
            self._first = (at, done)
        self._seen.append((at, done))
        since = (self._first[0] + at) / 2
        while len(self._seen) > 2 and self._seen[1][0] <= since:
            self._seen.popleft()

    def left(self, total: float) -> float | None:
        """Seconds until ``total`` is done; None where nobody can say yet."""
        if self._first is None or self.elapsed < self._SOON:
            return None
        (began, before), (now, done) = self._seen[0], self._seen[-1]
        if done <= before or done - self._first[1] < self._LITTLE * (total - self._first[1]):
            return None
        return max(0.0, total - done) * (now - began) / (done - before)


def in_short(seconds: float) -> str:
    """A time as people say it, no finer than anybody waits.

    Examples
    --------
    >>> from margrove.progress import in_short
    >>> [in_short(seconds) for seconds in (0.26, 4.4, 75, 600, 7300)]
    ['0.3 s', '4 s', '1 min 15 s', '10 min', '2 h 1 min']
    """
    if seconds < 1:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 and whole < 600 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")
