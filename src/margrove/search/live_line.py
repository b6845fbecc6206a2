"""One line about the progress of a search: rewritten in place on a terminal, now and then a new one elsewhere."""

from __future__ import annotations

import sys
import time

import numpy as np

from margrove.run.progress import Pace, Progress, in_short
from margrove.search.table import ScoreTable
from margrove.status import Status

_OFTEN, _SELDOM = 0.2, 5.0  # seconds between two lines, on a terminal and elsewhere
_CLEAR = "\r\x1b[K"  # back to the start of the line, and wipe it


class LiveLine:
    """The output of a search with ``verbose=True``: its name, and the progress of its table."""

    def __init__(self, name: str, table: ScoreTable) -> None:
        self._name, self._table = name, table
        self._pace = Pace()
        self._started = time.monotonic()
        self._pace.see(0.0, self._started)
        self._is_live = bool(getattr(sys.stdout, "isatty", lambda: False)())
        self._told_at = self._started
        self._done, self._total = 0.0, 0.0

    def watch(self, progress: Progress) -> None:
        """Take in a report of the search, and print if it is time to."""
        if progress.stage != "search" or not progress.total:
            return
        now = time.monotonic()
        self._done, self._total = progress.done, progress.total
        self._pace.see(progress.done, now)
        if now - self._told_at >= (_OFTEN if self._is_live else _SELDOM):
            self._told_at = now
            self._print(self.words(now), is_last=not self._is_live)

    def words(self, now: float) -> str:
        """Share done, best score so far, seconds elapsed and left; the last two if known."""
        parts = [f"{100 * self._done / self._total:.0f} % of {self._total:,.0f} machines", *self._best()]
        parts.append(f"{in_short(now - self._started)} elapsed")
        left = self._pace.left(self._total)
        return ", ".join([*parts, *([] if left is None else [f"about {in_short(left)} left"])])

    def end(self, status: Status) -> None:
        """Print the last line, which stays."""
        cells = self._table.is_complete
        words = f"{int(cells.sum()):,} of {cells.size:,} cells scored in {in_short(time.monotonic() - self._started)}"
        ended = "" if status is Status.CONVERGED else f" ({status})"
        self._print(", ".join([words + ended, *self._best(is_last=True)]), is_last=True)

    def _best(self, *, is_last: bool = False) -> list[str]:
        cells = self._table.is_complete
        if not cells.any():
            return []
        best = float(np.where(cells, self._table.score.mean(axis=-1), -np.inf).max())
        return [f"best score {best:.4g}{'' if is_last else ' so far'}"]

    def _print(self, words: str, *, is_last: bool) -> None:
        start = _CLEAR if self._is_live else ""
        print(f"{start}[{self._name}] {words}", end="\n" if is_last else "", flush=True)
