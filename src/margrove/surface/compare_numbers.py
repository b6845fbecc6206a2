"""``margrove compare`` where the target is a number: all learners that estimate one, side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from margrove.certificate import Certificate
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.status import Status
from margrove.surface.compare import certificate_words, duration_words, fitted_and_certified
from margrove.surface.cures import error_in_shell
from margrove.surface.learned import learned
from margrove.surface.learners import LEARNERS, Learner
from margrove.surface.meter import Meter, metered
from margrove.surface.models import build_model, learner_of, table_for
from margrove.surface.preparation import Preparation
from margrove.surface.reading import Facts, Reading, tell_facts
from margrove.surface.regression import Deviation, NumberEstimate, cross_validate_numbers, plain_folds
from margrove.surface.screen import Screen
from margrove.surface.validation import Folds


@dataclass(frozen=True)
class NumberContender:
    """How one learner of numbers did, or why it could not."""

    learner: Learner
    estimate: NumberEstimate | None = None
    seconds: float | None = None  # of the fit on all rows
    certificate: Certificate | None = None
    status: str | None = None
    size: str = ""
    failure: str | None = None

    @property
    def overall(self) -> Deviation | None:
        """How far off it is, if there is an estimate."""
        return None if self.estimate is None else self.estimate.overall

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "learner": self.learner.name,
            "cross_validation": None if self.estimate is None else self.estimate.to_dict(),
            "seconds": self.seconds,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "status": self.status,
            "size": self.size,
            "failure": self.failure,
        }


def compare_numbers(
    screen: Screen,
    reading: Reading,
    table: Table,
    facts: Facts,
    *,
    folds: int,
    seed: int,
    time_limit: float | None,
    preparation: Preparation,
) -> None:
    """Cross-validate, fit and certify every learner that estimates numbers, on the same folds; say which is best."""
    learners = [learner.regression for learner in LEARNERS.values() if learner.regression is not None]
    as_they_are = ", ".join(learner.name for learner in learners if learner.takes_tables)
    tell_facts(screen, facts, reading, gaps=f"filled in ({as_they_are}: taken as they are)")
    if preparation.text:
        screen.say(f"{as_they_are}: without the text, which they do not take", indent=2)
    rounds = plain_folds(table, folds, seed)
    with metered(screen, "comparing", total=len(learners) * (len(rounds.tests) + 1)) as meter:
        contenders = [
            _contend(learner, table, rounds, meter, seed=seed, time_limit=time_limit, preparation=preparation)
            for learner in learners
        ]
    screen.say()
    best = best_of_numbers(contenders)
    screen.essential(_grid(contenders, best))
    _tell_best(screen, contenders, best, time_limit)
    screen.document(
        {
            "command": "compare",
            "table": facts.to_dict(),
            "learners": [contender.to_dict() for contender in contenders],
            "best": None if best is None else best.learner.name,
        }
    )


def _contend(
    learner: Learner,
    table: Table,
    rounds: Folds,
    meter: Meter,
    *,
    seed: int,
    time_limit: float | None,
    preparation: Preparation,
) -> NumberContender:
    prepared = preparation.for_table(learner, table)

    def make() -> Any:
        return build_model(learner, {}, seed=seed, time_limit=time_limit, preparation=prepared)

    try:
        taken = table_for(learner, preparation.less_text(table) if learner.takes_tables else table)
        estimate = cross_validate_numbers(make, taken, rounds, meter, learner.name)
        judged = fitted_and_certified(estimate, make, taken, meter, learner.name)
    except (MargroveError, MemoryError) as error:  # told in the table: the others may still do
        return NumberContender(learner, failure=error_in_shell(error) or type(error).__name__)
    size, status = learned(judged.model).size_words, str(learner_of(judged.model).status_)
    return NumberContender(learner, estimate, judged.seconds, judged.certificate, status, size)


def best_of_numbers(contenders: list[NumberContender]) -> NumberContender | None:
    """The highest R², or where the target does not vary the smallest error; of equals the first, the simpler."""

    def worth(contender: NumberContender) -> tuple[float, float]:
        if contender.overall is None:
            return -math.inf, -math.inf
        r2 = contender.overall.r2
        return (0.0 if r2 is None else round(r2, 12), -contender.overall.mean_absolute_error)

    return max((contender for contender in contenders if contender.overall is not None), key=worth, default=None)


def _grid(contenders: list[NumberContender], best: NumberContender | None) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column("learner", no_wrap=True)
    for name in ("R²", "mean absolute error", "fit"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("certificate")
    grid.add_column("made of")
    for contender in contenders:
        if contender.failure is not None or contender.certificate is None or contender.seconds is None:
            grid.add_row(
                Text(contender.learner.name), "-", "-", "-", Text(f"failed: {contender.failure}", style="red"), "-"
            )
            continue
        r2, error = _numbers(contender)
        grid.add_row(
            Text(contender.learner.name),
            r2,
            error,
            duration_words(contender.seconds),
            certificate_words(contender.certificate),
            contender.size,
            style="bold" if contender is best else "",
        )
    return grid


def _numbers(contender: NumberContender) -> tuple[str, str]:
    """R² and the mean absolute error, as the table has them."""
    overall = contender.overall
    if overall is None or contender.estimate is None:
        return "-", "-"
    r2 = "-" if overall.r2 is None else f"{overall.r2:.3f}"
    return r2, f"{overall.mean_absolute_error:.4g} ± {contender.estimate.spread:.2g}"


def _tell_best(
    screen: Screen, contenders: list[NumberContender], best: NumberContender | None, time_limit: float | None
) -> None:
    if best is None or best.estimate is None or best.estimate.baseline is None:
        for note in next((c.estimate.notes for c in contenders if c.estimate is not None), ()):
            screen.say(f"How far off they are: {note}")
        return
    screen.say()
    screen.essential(
        f"Best: {best.learner.name}, {best.estimate.words} on rows it has not seen; always answering the median is off "
        f"by {best.estimate.baseline:.4g}."
    )
    if not best.estimate.is_of_use:
        screen.say("None is of use: the best is no better than the mean or the median.", style="yellow")
    rivals = _rivals(best, contenders)
    if rivals:
        screen.say(f"No further off than one spread more, so perhaps as good: {', '.join(rivals)}.")
    if any(contender.status == Status.TIME_LIMIT for contender in contenders):
        screen.say(f"A fit was stopped after {time_limit:g} s; --time-limit allows more.")
    for note in best.estimate.notes:
        screen.say(f"Note: {note}.")
    screen.say("linear is compared as it is; `margrove train` searches its C.")


def _rivals(best: NumberContender, contenders: list[NumberContender]) -> list[str]:
    """The learners whose error is no further above that of the best than its spread."""
    if best.overall is None or best.estimate is None:
        return []
    most = best.overall.mean_absolute_error + best.estimate.spread
    others = [c for c in contenders if c is not best and c.overall is not None]
    return [c.learner.name for c in others if c.overall is not None and c.overall.mean_absolute_error <= most]
