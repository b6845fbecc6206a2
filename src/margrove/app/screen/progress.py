"""A progress bar on standard error for anything that takes over a second, with what the solver would like to see
fall."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from margrove.app.screen.console import Screen, safe_console
from margrove.run.progress import Pace, in_short, watched
from margrove.run.progress import Progress as Report

PATIENCE = 1.0  # seconds before a bar appears: what is over sooner would only flicker


class Meter:
    """How far a piece of work of ``total`` steps has come; made by `metered`."""

    def __init__(self, bar: Progress | None, title: str, total: int) -> None:
        self._bar = bar
        self._done = 0
        self._share = 0.0  # of the step at hand
        self._start: float | None = None  # where the objective of the step at hand was first seen
        self._pace = Pace()
        self._task = None if bar is None else bar.add_task(title, total=total, objective="")

    def begin(self, title: str) -> None:
        """Say what the step at hand is."""
        self._share, self._start = 0.0, None
        self._pace = Pace()
        self._pace.see(0.0, time.monotonic())
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=title, objective="")

    def advance(self) -> None:
        """One step is done."""
        self._done += 1
        self._share, self._start = 0.0, None
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def watch(self, report: Report) -> None:
        """Draw what a solver reports of the step at hand."""
        if self._bar is None or self._task is None:
            return
        share = min(1.0, (report.done + self._fallen(report)) / report.total) if report.total else 0.0
        self._share = max(self._share, share)  # an objective may rise on its way down, but no bar should fall back
        words = self._time_left(report) if report.stage == "search" else in_words(report)
        self._bar.update(self._task, completed=self._done + self._share, objective=words)

    def _time_left(self, report: Report) -> str:
        """Of a search, whose machines can be counted; its violations come and go."""
        self._pace.see(report.done, time.monotonic())
        left = self._pace.left(report.total or math.inf)
        return "" if left is None else f"about {in_short(left)} left of this search"

    def _fallen(self, report: Report) -> float:
        """Of what is at work now: how many of the digits between its start and its goal the objective has fallen."""
        objective, goal = report.objective, report.goal
        if objective is None or goal is None or not math.isfinite(objective):
            return 0.0
        if self._start is None:
            self._start = objective
        if objective <= goal:
            return 1.0
        return max(0.0, math.log(self._start / objective) / math.log(self._start / goal)) if self._start > goal else 0.0


def in_words(report: Report) -> str:
    """What the solver would like to see fall, and how far it has to.

    Examples
    --------
    >>> from margrove.run.progress import Progress
    >>> from margrove.app.screen.progress import in_words
    >>> in_words(Progress("svm", 2, 3, 0.0417, "violation", goal=0.001))
    '2 of 3, violation 0.042, to fall to 0.001'
    """
    if report.stage == "tree" and report.total:
        return f"{report.done:,.0f} of {report.total:,.0f} rows in leaves"
    if report.stage == "machines" and report.total:
        return f"{report.done:.0f} of {report.total:.0f} machines"
    if report.stage == "pictures" and report.total:
        return f"{report.done:,.0f} of {report.total:,.0f} pictures"
    if report.objective is None or not math.isfinite(report.objective):
        return ""
    if report.stage == "boost" and report.total:
        return f"{report.done:,.0f} of {report.total:,.0f} rounds, {report.objective_name} {report.objective:.3g}"
    if report.stage == "fine-tuning" and report.total:
        return f"{report.done:,.1f} of {report.total:,.0f} epochs, {report.objective_name} {report.objective:.3g}"
    if report.goal is None:
        return f"{report.objective:g} {report.objective_name}"
    so_far = f"{report.done:g} of {report.total:g}, " if report.total and report.total > 1 else ""
    return f"{so_far}{report.objective_name} {report.objective:.2g}, to fall to {report.goal:g}"


@contextmanager
def metered(screen: Screen, title: str, total: int = 1) -> Iterator[Meter]:
    """Watch the work done inside the block. Nothing may be printed inside: the bar owns the line."""
    if not screen.shows_progress:
        yield Meter(None, title, total)
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.fields[objective]}", markup=False, style="dim"),
        console=safe_console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    meter = Meter(bar, title, total)
    with appearing(bar), watched(meter.watch):
        yield meter


@contextmanager
def appearing(bar: Progress | Live) -> Iterator[None]:
    """Show the bar once the block has run for `PATIENCE` seconds, and take it away in the end."""
    # A timer, since not every learner reports: LAPACK is silent until it is done.
    lock, is_over = threading.Lock(), False

    def appear() -> None:
        with lock:
            if not is_over:
                bar.start()

    timer = threading.Timer(PATIENCE, appear)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with lock:
            is_over = True
            bar.stop()
