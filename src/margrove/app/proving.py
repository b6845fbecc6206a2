"""The certificate at the end of ``margrove train``, recomputed; Ctrl-C leaves it out.

``--model auto`` keeps time for it (`margrove.app.choose.candidates`, ``proof``). Where that is not enough, it is
recomputed all the same, and messages say so: before it begins, after it is done, and in the report.
"""

from __future__ import annotations

import time
import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from margrove.app.models import last_step_of
from margrove.app.options.budget import Budget
from margrove.app.screen.advice import warnings_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import Countdown, Meter, counted_down, metered
from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.errors import ConvergenceWarning, DataWarning
from margrove.run.progress import Progress, in_short, watched

TITLE = "checking the certificate; Ctrl-C skips this"
_NOTICED = 0.5  # seconds: less beyond a budget is not reported


@dataclass(frozen=True)
class Proof:
    """A certificate, and the time it took."""

    certificate: Certificate
    seconds: float
    beyond: float = 0.0  # seconds of these after the end of the budget
    is_left_out: bool = False

    @property
    def words(self) -> str:
        """A remark on the time; often empty."""
        if self.is_left_out:
            return (
                f"The certificate was not checked (Ctrl-C after {in_short(self.seconds)}): its numbers are the "
                "solver's own. `margrove certify MODEL FILE` checks them."
            )
        if self.beyond < _NOTICED:
            return ""
        share = "all of it" if self.beyond >= self.seconds else f"{in_short(self.beyond)} of it"
        return f"Checking the certificate took {in_short(self.seconds)}, {share} beyond the budget."

    def to_dict(self) -> dict[str, Any]:
        return {
            "seconds": round(self.seconds, 3),
            "seconds_beyond_budget": round(self.beyond, 3),
            "is_left_out": self.is_left_out,
            "words": self.words,
        }


def warning_words(predicted: float, left: float) -> str:
    """Return a warning before a certificate that will take longer than the time left; often empty."""
    if predicted < left + _NOTICED:
        return ""
    rest = "the budget is used up" if left < _NOTICED else f"{in_short(left)} of the budget is left"
    return f"Checking the certificate takes about {in_short(predicted)}, and {rest}: it is checked anyway."


def fit_model(model: Any, table: Table) -> list[str]:
    """Fit on all rows; return the warnings, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for reported in (DataWarning, ConvergenceWarning):  # by `facts_of` and `tell_certificate`
            warnings.simplefilter("ignore", reported)
        model.fit(table, table.labels())
    return warnings_in_shell(caught)


def prove(screen: Screen, model: Any, table: Table, budget: Budget | None = None, predicted: float = 0.0) -> Proof:
    """Recompute the certificate of a model on its rows; warn if that exceeds the budget. Ctrl-C leaves the solver's."""
    if budget is not None:
        words = warning_words(predicted, budget.left)
        if words:
            screen.say(words, indent=2)
    left, began = 0.0 if budget is None else budget.left, time.monotonic()
    try:
        with shown(screen, TITLE, budget) as meter, watched(partial(_draw, meter)):
            certificate = certify(model, table, table.labels())
    except KeyboardInterrupt:
        own = last_step_of(model).certificate_  # of little data the fit has recomputed it already
        return Proof(own, time.monotonic() - began, is_left_out=own.source != "recomputed")
    took = time.monotonic() - began
    return Proof(certificate, took, 0.0 if budget is None else max(0.0, took - left))


def shown(screen: Screen, title: str, budget: Budget | None) -> AbstractContextManager[Meter]:
    """Return the countdown of a budget, or a bar where there is none."""
    return metered(screen, title) if budget is None else counted_down(screen, budget, title)


def _draw(meter: Meter, report: Progress) -> None:
    """Draw the share that is done: in the title of a countdown, whose bar is the time."""
    if not isinstance(meter, Countdown):
        meter.watch(report)
    elif report.total:
        meter.begin(f"{TITLE} ({100 * report.done / report.total:.0f} % done)")
