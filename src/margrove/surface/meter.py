"""A progress bar on standard error for anything that takes over a second, with what the solver would like to see
fall."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from margrove.progress import Progress as Report
from margrove.progress import watched
from margrove.surface.screen import Screen

PATIENCE = 1.0  # seconds before a bar appears: what is over sooner would only flicker


class Meter:
    """How far a piece of work of ``total`` steps has come; made by `metered`."""

    def __init__(self, bar: Progress | None, title: str, total: int) -> None:
        self._bar = bar
        self._done = 0
        self._task = None if bar is None else bar.add_task(title, total=total, objective="")

    def begin(self, title: str) -> None:
        """Say what the step at hand is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=title, objective="")

    def advance(self) -> None:
        """One step is done."""
        self._done += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._done)

    def watch(self, report: Report) -> None:
        """Draw what a solver reports of the step at hand."""
        if self._bar is None or self._task is None:
            return
        share = report.done / report.total if report.total else 0.0
        objective = "" if report.objective is None else f"{report.objective:g} {report.objective_name}"
        self._bar.update(self._task, completed=self._done + share, objective=objective)


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
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    meter = Meter(bar, title, total)
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
        with watched(meter.watch):
            yield meter
    finally:
        timer.cancel()
        with lock:
            is_over = True
            bar.stop()
