"""The certificate at the end of ``margrove train``, recomputed; Ctrl-C and the end of the budget leave it out.

``--model auto`` keeps time for it (`margrove.app.choose.candidates`, ``proof``). Where that is not enough, messages and
the report say so.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from margrove.app.models import last_step_of
from margrove.app.options.budget import Budget
from margrove.app.screen.advice import warnings_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import Countdown, Meter, counted_down, metered
from margrove.certificate import Certificate, certify
from margrove.errors import ConvergenceWarning, DataWarning
from margrove.run.progress import Progress, in_short, overheard, watched

TITLE = "checking the certificate; Ctrl-C skips this"


class BudgetOverError(Exception):
    """The budget is used up, and the work at hand was ended."""


@contextmanager
def within(budget: Budget | None) -> Iterator[None]:
    """End the work inside the block at its first report of progress after the budget: raise `BudgetOverError`."""

    def check(report: Progress) -> None:
        if budget is not None and budget.left <= 0:
            raise BudgetOverError

    with overheard(check):
        yield


@dataclass(frozen=True)
class Proof:
    """A certificate, and the time it took."""

    certificate: Certificate
    seconds: float
    reason: str = ""  # why it was left out

    @property
    def is_left_out(self) -> bool:
        return bool(self.reason)

    @property
    def words(self) -> str:
        """Why it was left out; often empty."""
        words = f"The check of the certificate {self.reason}: its numbers are the solver's own."
        return f"{words} `margrove certify MODEL FILE` recomputes them." if self.reason else ""

    def to_dict(self) -> dict[str, Any]:
        return {"seconds": round(self.seconds, 3), "is_left_out": self.is_left_out, "words": self.words}


def fit_model(model: Any, table: Any, y: Any = None) -> list[str]:
    """Fit on all rows; return the warnings, each once. ``y`` is needed where the table is no `Table`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for reported in (DataWarning, ConvergenceWarning):  # by `facts_of` and `tell_certificate`
            warnings.simplefilter("ignore", reported)
        model.fit(table, table.labels() if y is None else y)
    return warnings_in_shell(caught)


def prove(screen: Screen, model: Any, table: Any, budget: Budget | None = None, y: Any = None) -> Proof:
    """Recompute the certificate of a model on its rows; Ctrl-C and the end of the budget leave the solver's."""
    began = time.monotonic()
    try:
        with shown(screen, TITLE, budget) as meter, watched(partial(_draw, meter)), within(budget):
            certificate, reason = certify(model, table, table.labels() if y is None else y), ""
    except (KeyboardInterrupt, BudgetOverError) as error:
        certificate, after = last_step_of(model).certificate_, in_short(time.monotonic() - began)
        end = "did not fit into the budget" if isinstance(error, BudgetOverError) else "was interrupted by Ctrl-C"
        reason = f"{end} (ended after {after})"
        if certificate.source == "recomputed":  # of little data the fit has recomputed it already
            reason = ""
    return Proof(certificate, time.monotonic() - began, reason)


def shown(screen: Screen, title: str, budget: Budget | None) -> AbstractContextManager[Meter]:
    """Return the countdown of a budget, or a bar where there is none."""
    return metered(screen, title) if budget is None else counted_down(screen, budget, title)


def _draw(meter: Meter, report: Progress) -> None:
    """Draw the share that is done: in the title of a countdown, whose bar is the time."""
    if not isinstance(meter, Countdown):
        meter.watch(report)
    elif report.total:
        meter.begin(f"{TITLE} ({100 * report.done / report.total:.0f} % done)")
