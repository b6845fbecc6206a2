"""The one live display of ``--model auto``: what is running, the best so far, and the time left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from margrove.app.options.budget import Budget
from margrove.app.screen.console import Screen, safe_console
from margrove.app.screen.progress import Meter, appearing
from margrove.run.progress import Progress as Report
from margrove.run.progress import in_short

_WIDTH = 16  # of the bar


class Countdown(Meter):
    """What runs, and the best so far, beside a budget that runs down; `counted_down` draws it.

    What a single solver reports is not drawn: the bar is the time.

    Parameters
    ----------
    budget : Budget
    title : str
        What is running.
    """

    def __init__(self, budget: Budget, title: str = "") -> None:
        super().__init__(None, title, 1)
        self._budget, self._title = budget, title
        self._part = self._best = ""
        self._spinner = Spinner("dots")

    def best(self, title: str, score: float, *, is_share: bool) -> None:
        """Say what is best so far."""
        worth = f"{100 * score:.1f} %" if is_share else f"R² {score:.3f}"
        self._best = f"best so far: {title}, {worth}"

    def enter(self, part: str) -> None:
        """Say which part of the whole comes now, in which another one is best."""
        self._part, self._best = part, ""

    def begin(self, title: str) -> None:
        """Say what is running."""
        self._title = title

    def watch(self, report: Report) -> None:
        """Nothing of it is drawn."""

    @property
    def lines(self) -> tuple[str, str]:
        """What is drawn beside the bar, and below it."""
        left = self._budget.left
        return in_short(max(1.0, left)) + " left" if left > 0 else "finishing", "; ".join(
            filter(None, [self._part, self._best])
        )

    def __rich__(self) -> Group:
        left, below = self.lines
        head = Grid.grid(padding=(0, 1))
        for _ in range(4):
            head.add_column(no_wrap=True, overflow="ellipsis")
        bar = ProgressBar(total=self._budget.seconds, completed=self._budget.gone, width=_WIDTH)
        head.add_row(self._spinner, bar, Text(left, style="bold"), Text(self._title))
        return Group(head, Text(f"  {below}", style="dim", no_wrap=True, overflow="ellipsis"))


@contextmanager
def counted_down(screen: Screen, budget: Budget, title: str = "") -> Iterator[Countdown]:
    """Draw while the block runs. Nothing may be printed inside: the lines are the display's."""
    meter = Countdown(budget, title)
    if not screen.shows_progress:
        yield meter
        return
    live = Live(
        meter,
        console=safe_console(stderr=True),
        transient=True,
        refresh_per_second=8,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with appearing(live):
        yield meter
