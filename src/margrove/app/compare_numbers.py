"""``margrove compare`` where the target is a number: all learners that estimate one, side by side."""

from __future__ import annotations

import math
from typing import TypeAlias

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from margrove.app.compare import (
    Contender,
    Judged,
    Rules,
    certificate_words,
    contest,
    document,
    duration_words,
    fitted_and_certified,
)
from margrove.app.estimate.classes import Folds, ModelMaker
from margrove.app.estimate.numbers import Deviation, NumberEstimate, cross_validate_numbers, plain_folds
from margrove.app.options.menu import LEARNERS
from margrove.app.options.preparation import Preparation
from margrove.app.options.table import Facts, Reading
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import Meter
from margrove.data import Table
from margrove.status import Status

NumberContender: TypeAlias = Contender[NumberEstimate]


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
    rules = Rules(table, plain_folds(table, folds, seed), _judge, seed, time_limit, preparation)
    contenders = contest(screen, reading, facts, learners, rules)
    best = best_of_numbers(contenders)
    screen.essential(_grid(contenders, best))
    _tell_best(screen, contenders, best, time_limit)
    document(screen, facts, contenders, best)


def _judge(make: ModelMaker, table: Table, rounds: Folds, meter: Meter, name: str) -> Judged[NumberEstimate]:
    estimate = cross_validate_numbers(make, table, rounds, meter, name)
    return fitted_and_certified(estimate, make, table, meter, name)


def deviation(contender: NumberContender) -> Deviation | None:
    """How far off it is, if there is an estimate."""
    return None if contender.estimate is None else contender.estimate.overall


def best_of_numbers(contenders: list[NumberContender]) -> NumberContender | None:
    """The highest R², or where the target does not vary the smallest error; of equals the first, the simpler."""

    def worth(contender: NumberContender) -> tuple[float, float]:
        overall = deviation(contender)
        if overall is None:
            return -math.inf, -math.inf
        return (0.0 if overall.r2 is None else round(overall.r2, 12), -overall.mean_absolute_error)

    return max((contender for contender in contenders if deviation(contender) is not None), key=worth, default=None)


def _grid(contenders: list[NumberContender], best: NumberContender | None) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column("learner", no_wrap=True)
    for name in ("R²\n(95 % interval)", "mean absolute\nerror", "fit"):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("certificate")
    grid.add_column("made of")
    for contender in contenders:
        if contender.failure is not None or contender.certificate is None or contender.seconds is None:
            grid.add_row(
                Text(contender.learner.name), *["-"] * 3, Text(f"failed: {contender.failure}", style="red"), "-"
            )
            continue
        grid.add_row(
            Text(contender.learner.name),
            *_numbers(contender),
            duration_words(contender.seconds),
            certificate_words(contender.certificate),
            contender.size,
            style="bold" if contender is best else "",
        )
    return grid


def _numbers(contender: NumberContender) -> tuple[str, str]:
    """R² with its interval and the mean absolute error, as the table has them."""
    overall = deviation(contender)
    if overall is None or contender.estimate is None:
        return "-", "-"
    ends = contender.estimate.interval
    interval = "" if ends is None else f" ({ends[0]:.3f} … {ends[1]:.3f})"
    return "-" if overall.r2 is None else f"{overall.r2:.3f}{interval}", f"{overall.mean_absolute_error:.4g}"


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
        screen.say(f"Within that interval, so perhaps as good: {', '.join(rivals)}.")
    if any(contender.status == Status.TIME_LIMIT for contender in contenders):
        screen.say(f"A fit was stopped after {time_limit:g} s; --time-limit allows more.")
    for note in best.estimate.notes:
        screen.say(f"Note: {note}.")
    screen.say("linear is compared as it is; `margrove train` searches its C.")


def _rivals(best: NumberContender, contenders: list[NumberContender]) -> list[str]:
    """The learners whose R² is within the 95 % interval of the best."""
    if best.estimate is None or best.estimate.interval is None:
        return []
    floor = best.estimate.interval[0]
    others = [(c.learner.name, deviation(c)) for c in contenders if c is not best]
    return [name for name, off in others if off is not None and off.r2 is not None and off.r2 >= floor]
