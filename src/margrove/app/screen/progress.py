"""Progress on standard error for anything that takes over a second: the step at hand, the solver's objective, and of
``--model auto`` the best so far and the time left."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from margrove.app.options.budget import Budget
from margrove.app.screen.console import Screen, safe_console
from margrove.run.progress import Pace, in_short, watched
from margrove.run.progress import Progress as Report

PATIENCE = 1.0  # seconds before a bar appears: what is over sooner would only flicker
_COUNTED = {"tree": "rows in leaves", "machines": "machines", "pictures": "pictures"}  # by stage
_ROUNDS = {"boost": (0, "rounds"), "fine-tuning": (1, "epochs")}  # by stage: decimals, and what is counted


class Meter:
    """The progress of a piece of work of ``total`` steps; made by `metered`."""

    def __init__(self, bar: Progress, title: str, total: float) -> None:
        self.bar = bar
        self._done = 0
        self._share = 0.0  # of the step at hand
        self._start: float | None = None  # where the objective of the step at hand was first seen
        self._pace = Pace()
        self._task = bar.add_task(title, total=total, objective="")

    def begin(self, title: str) -> None:
        """Name the step at hand."""
        self._share, self._start = 0.0, None
        self._pace = Pace()
        self._pace.see(0.0, time.monotonic())
        self.bar.update(self._task, description=title, objective="")

    def advance(self) -> None:
        """Count one step as done."""
        self._done += 1
        self._share, self._start = 0.0, None
        self.bar.update(self._task, completed=self._done)

    def watch(self, report: Report) -> None:
        """Draw the report of a solver on the step at hand."""
        share = min(1.0, (report.done + self._fallen(report)) / report.total) if report.total else 0.0
        self._share = max(self._share, share)  # an objective may rise on its way down, but no bar should fall back
        words = in_words(report)
        if report.stage == "search":  # its machines can be counted; its violations come and go
            self._pace.see(report.done, time.monotonic())
            left = self._pace.left(report.total or math.inf)
            words = "" if left is None else f"about {in_short(left)} left in this search"
        self.bar.update(self._task, completed=self._done + self._share, objective=words)

    def _fallen(self, report: Report) -> float:
        """Return the share of the digits between start and goal that the objective of the step at hand has fallen."""
        objective, goal = report.objective, report.goal
        if objective is None or goal is None or not math.isfinite(objective):
            return 0.0
        if self._start is None:
            self._start = objective
        if objective <= goal:
            return 1.0
        return max(0.0, math.log(self._start / objective) / math.log(self._start / goal)) if self._start > goal else 0.0


def in_words(report: Report) -> str:
    """Return the solver's objective, and how far it has to fall."""
    if report.stage in _COUNTED and report.total:
        return f"{report.done:,.0f} of {report.total:,.0f} {_COUNTED[report.stage]}"
    if report.objective is None or not math.isfinite(report.objective):
        return ""
    if report.stage in _ROUNDS and report.total:
        decimals, noun = _ROUNDS[report.stage]
        done = f"{report.done:,.{decimals}f} of {report.total:,.0f} {noun}"
        return f"{done}, {report.objective_name} {report.objective:.3g}"
    if report.goal is None:
        return f"{report.objective:g} {report.objective_name}"
    so_far = f"{report.done:g} of {report.total:g}, " if report.total and report.total > 1 else ""
    return f"{so_far}{report.objective_name} {report.objective:.2g}, target {report.goal:g}"


class Countdown(Meter):
    """The step at hand, and the best so far, beside a budget that runs down. The reports of a single solver are not
    drawn: the bar is the time."""

    def __init__(self, budget: Budget, title: str = "") -> None:
        self.budget = budget
        self._part = self._best = ""
        super().__init__(_CountdownBar(self), title, budget.seconds)

    def best(self, words: str) -> None:
        """Name the best so far, and its score."""
        self._best = f"best so far: {words}"

    def enter(self, part: str) -> None:
        """Name the part of the whole that begins, in which another one is best."""
        self._part, self._best = part, ""

    def advance(self) -> None:
        """Nothing of it is drawn."""

    def watch(self, report: Report) -> None:
        """Nothing of it is drawn."""

    @property
    def lines(self) -> tuple[str, str]:
        left = self.budget.left
        beside = in_short(max(1.0, left)) + " left" if left > 0 else "finishing"
        return beside, "; ".join(filter(None, [self._part, self._best]))


class _CountdownBar(Progress):
    def __init__(self, meter: Countdown) -> None:
        self._meter = meter
        super().__init__(SpinnerColumn(), BarColumn(16), _text("fields[objective]", "bold"), _text(), **_on_stderr())

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the line of the bar, brought up to date, and the line below it."""
        beside, below = self._meter.lines
        for task in self.tasks:
            task.completed, task.fields["objective"] = self._meter.budget.gone, beside
        yield self.make_tasks_table(self.tasks)
        yield Text(f"  {below}", style="dim", no_wrap=True, overflow="ellipsis")


def _text(what: str = "description", style: str = "none") -> TextColumn:
    return TextColumn(f"{{task.{what}}}", markup=False, style=style)


def _on_stderr() -> dict[str, Any]:
    """Return the place of a bar; it is removed in the end."""
    redirect = {"redirect_stdout": False, "redirect_stderr": False}
    return {"console": safe_console(stderr=True), "transient": True, "refresh_per_second": 8, **redirect}


@contextmanager
def metered(screen: Screen, title: str, total: int = 1) -> Iterator[Meter]:
    """Watch the work done inside the block. Nothing may be printed inside: the bar owns the line."""
    if not screen.shows_progress:
        yield Meter(Progress(disable=True), title, total)
        return
    columns = SpinnerColumn(), _text(), BarColumn(24), TimeElapsedColumn(), _text("fields[objective]", "dim")
    bar = Progress(*columns, **_on_stderr())
    meter = Meter(bar, title, total)
    with _appearing(bar), watched(meter.watch):
        yield meter


@contextmanager
def counted_down(screen: Screen, budget: Budget, title: str = "") -> Iterator[Countdown]:
    """Draw a budget while the block runs. Nothing may be printed inside: the lines are the display's."""
    meter = Countdown(budget, title)
    with _appearing(meter.bar) if screen.shows_progress else nullcontext():
        yield meter


@contextmanager
def _appearing(bar: Progress) -> Iterator[None]:
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
