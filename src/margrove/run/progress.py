"""Progress reports from solvers to watchers.

A solver calls `report`; nothing happens unless a caller watches through `watched`. The command line draws a bar from
them, a test may count them. `Pace` estimates the time left, `Course` keeps the reports to be drawn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Self

from margrove.errors import ParameterError

_KEPT = 10  # points that a course may hold for each that it gives, before every other one is dropped


@dataclass(frozen=True)
class Progress:
    """One report: ``done`` of ``total`` (None if unknown), and the quantity that tells how far the solver is, such as
    the KKT violation of an SVM, with its name; perhaps it ends at a ``goal``."""

    stage: str
    done: float
    total: float | None = None
    objective: float | None = None
    objective_name: str = "objective"
    goal: float | None = None


Watcher = Callable[[Progress], None]
_watcher: ContextVar[Watcher | None] = ContextVar("margrove_watcher", default=None)


def report(progress: Progress) -> None:
    """Call the watcher, if there is one."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(progress)


@contextmanager
def watched(watcher: Watcher | None) -> Iterator[None]:
    """Send every report made inside the block to ``watcher``.

    Examples
    --------
    >>> from margrove.run.progress import Progress, report, watched
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
def overheard(watcher: Watcher) -> Iterator[None]:
    """Send every report made inside the block to ``watcher``, and on to the present one."""
    outer = _watcher.get()

    def both(progress: Progress) -> None:
        watcher(progress)
        if outer is not None:
            outer(progress)

    with watched(both):
        yield


@contextmanager
def _changed(change: Callable[[Progress], Progress]) -> Iterator[None]:
    """Send every report made inside the block to the present watcher, changed."""
    outer = _watcher.get()
    with watched(None if outer is None else lambda progress: outer(change(progress))):
        yield


def part_of(before: float, after: float) -> AbstractContextManager[None]:
    """Report the work inside the block as one part: ``before`` was done already, and ``after`` comes after it."""

    def whole(progress: Progress) -> Progress:
        total = None if progress.total is None else before + progress.total + after
        return replace(progress, done=before + progress.done, total=total)

    return _changed(whole)


def as_one_of(stage: str, number: int, total: int) -> AbstractContextManager[None]:
    """Report the work inside the block as one piece of ``total``: ``number`` were done before it."""

    def share(progress: Progress) -> Progress:
        done = progress.done / progress.total if progress.total else 0.0
        return Progress(stage, number + min(1.0, done), float(total))

    return _changed(share)


class Course:
    """The course of a fit: the reports of its solver, with their times, and the ``goal`` at which it stops.

    A solver reports about twenty times a second, so a very short fit reports nothing.

    Parameters
    ----------
    most : int, default=200
        Points that are kept of a longer course, evenly spread; the first and the last are among them.

    Examples
    --------
    >>> from margrove.run.progress import Course, Progress, report
    >>> with Course() as course:
    ...     report(Progress("svm", done=0, objective=0.5, objective_name="violation", goal=0.001))
    ...     report(Progress("svm", done=1, objective=0.0008, objective_name="violation", goal=0.001))
    >>> [(point["stage"], point["name"], point["value"]) for point in course.points]
    [('svm', 'violation', 0.5), ('svm', 'violation', 0.0008)]
    >>> course.goal
    0.001
    """

    def __init__(self, most: int = 200) -> None:
        if most < 2:
            raise ParameterError(f"most is {most}; a course has at least two points.")
        self.most = most
        self.goal: float | None = None
        self._points: list[dict[str, Any]] = []
        self._listening: AbstractContextManager[None] | None = None
        self._began = 0.0

    def __enter__(self) -> Self:
        self._points, self.goal, self._began = [], None, perf_counter()
        self._listening = overheard(self._note)
        self._listening.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        assert self._listening is not None
        self._listening.__exit__(*error)
        self._listening = None

    def _note(self, progress: Progress) -> None:
        if progress.objective is None:
            return
        self.goal = progress.goal
        seconds, value = perf_counter() - self._began, float(progress.objective)
        self._points.append(
            {"seconds": seconds, "value": value, "name": progress.objective_name, "stage": progress.stage}
        )
        if len(self._points) > _KEPT * self.most:  # memory stays bounded however long it takes
            self._points = self._points[::2]

    @property
    def points(self) -> list[dict[str, Any]]:
        """One dictionary for each report, in order: ``seconds`` since the block was entered, the ``value`` of the
        objective, its ``name`` (gap, violation, exponential loss) and the solver's ``stage``. Plain JSON."""
        last = len(self._points) - 1
        if last < self.most:
            return list(self._points)
        chosen = sorted({round(k * last / (self.most - 1)) for k in range(self.most)})
        return [self._points[k] for k in chosen]


class Pace:
    """An estimate of the time left, from the pace in the last half of the time gone: the first steps of a search are
    often its cheapest. There is none before a second is gone and a twentieth of the work is done."""

    _SOON = 1.0  # seconds
    _LITTLE = 0.05  # of the work

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()  # (when, how much was done), as far back as still matters
        self._first: tuple[float, float] | None = None

    @property
    def elapsed(self) -> float:
        """Seconds from the first observation to the last."""
        return self._seen[-1][0] - self._first[0] if self._first is not None else 0.0

    def see(self, done: float, at: float) -> None:
        """Record that so much was done at that time, in seconds."""
        if self._first is None:
            self._first = (at, done)
        self._seen.append((at, done))
        since = (self._first[0] + at) / 2
        while len(self._seen) > 2 and self._seen[1][0] <= since:
            self._seen.popleft()

    def left(self, total: float) -> float | None:
        """Return the seconds until ``total`` is done, None if it is too early to say."""
        if self._first is None or self.elapsed < self._SOON:
            return None
        (began, before), (now, done) = self._seen[0], self._seen[-1]
        if done <= before or done - self._first[1] < self._LITTLE * (total - self._first[1]):
            return None
        return max(0.0, total - done) * (now - began) / (done - before)


def in_short(seconds: float) -> str:
    """Return a time for people to read.

    Examples
    --------
    >>> from margrove.run.progress import in_short
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
