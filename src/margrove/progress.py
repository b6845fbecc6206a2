"""Word of how far a long piece of work has come, from whoever does it to whoever watches.

A solver calls `report`; nothing happens unless somebody up the stack watches through `watched`. The command line draws
a bar from it, a notebook may print it, a test may count it.
"""

from __future__ import annotations

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
