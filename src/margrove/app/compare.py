"""``margrove compare``: all learners on one table, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table as Grid
from rich.text import Text

from margrove.app.choose.candidates import LEAST_LIMIT
from margrove.app.choose.contest import fairly_judged
from margrove.app.choose.words import tell_metric
from margrove.app.estimate.classes import decimals_of
from margrove.app.estimate.task import Estimate, Folds, InterruptedFitError, Task
from margrove.app.estimate.words import never_words
from margrove.app.models import last_step_of, learned
from margrove.app.options.budget import Budget
from margrove.app.options.facts import facts_of, tell_facts
from margrove.app.options.menu import choices
from margrove.app.options.table import Reading, table_for
from margrove.app.options.training import Training
from margrove.app.proving import BudgetOverError, fit_model, within
from margrove.app.screen.advice import error_in_shell
from margrove.app.screen.console import Screen, bare_grid
from margrove.app.screen.progress import Meter, metered
from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.explanation import explanation_of
from margrove.status import Status

_OUT_OF_TIME = "did not fit into the budget"
_OVERRUN = 2.0  # a learner may take so many times its share of the budget, if as much is left


@dataclass(frozen=True)
class Entry:
    """One learner: fitted to all rows, estimated and certified; or why it could not be."""

    name: str
    estimate: Estimate | None = None
    seconds: float | None = None  # of the fit on all rows
    certificate: Certificate | None = None
    status: str | None = None
    size: str = ""
    failure: str | None = None
    is_certified: bool = True  # False where the budget ended the certificate

    @property
    def scored(self) -> Estimate | None:
        """The estimate; None where there is none, or it has no value."""
        return self.estimate if self.estimate is not None and self.estimate.rounds else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "learner": self.name,
            "cross_validation": self.estimate and self.estimate.to_dict(),
            "seconds": self.seconds,
            "certificate": self.certificate and self.certificate.to_dict(),
            "status": self.status,
            "size": self.size,
            "failure": self.failure,
            "is_certified": self.is_certified,
        }

    @property
    def cells(self) -> list[str | Text]:
        """The time of the fit and whether the certificate holds."""
        assert self.certificate is not None
        assert self.seconds is not None
        fit = f"{1000 * self.seconds:.0f} ms" if self.seconds < 1 else f"{self.seconds:.1f} s"
        if not self.is_certified:
            return [fit, Text("not checked", style="yellow")]
        if self.certificate.holds:
            return [fit, Text("✓ holds", style="green")]
        return [fit, Text("✗ fails", style="red")]

    @property
    def fault(self) -> str:
        """Why it could not be fitted, or the first claim that does not hold; often empty."""
        if self.failure is not None:
            return "" if self.failure == _OUT_OF_TIME else f"{self.name} failed: {self.failure}"
        if self.certificate is None or self.certificate.holds is not False or not self.is_certified:
            return ""
        failed = next(claim for claim in self.certificate.claims if claim.holds is False)
        ended = "" if self.certificate.status == Status.CONVERGED else f" ({self.certificate.status})"
        return f"The certificate of {self.name} fails: {failed.words.partition(':')[0] or failed.name}{ended}"


def compare(screen: Screen, reading: Reading, training: Training, began: float) -> None:
    """Cross-validate, fit and certify every learner on the same folds, and print which is best."""
    preparation, budget = training.preparation, Budget(training.budget, began) if training.budget > 0 else None
    with metered(screen, "reading"):
        table, is_estimated = reading.learnable(training.task, can_estimate=True)
        preparation.check_table(table, reading.without)
        facts = facts_of(table, is_estimated=is_estimated, text=preparation.text)
    training = replace(training, task="regress" if is_estimated else "classify", form=facts.format)
    training = fairly_judged(training.judged(training.kind.labels(table)), table)
    task = training.kind
    offered = [choice.regression if is_estimated else choice for choice in choices().values()]
    learners = [learner for learner in offered if learner is not None]
    folds = task.folds(task.labels(table), training.folds, training.seed)
    as_they_are = ", ".join(learner.name for learner in learners if learner.takes_tables)
    tell_facts(screen, facts, reading, gaps=f"imputed ({as_they_are}: handled directly)")
    if preparation.text:
        screen.say(f"{as_they_are}: trained without the text columns, which they do not take", indent=2)
    tell_metric(screen, training)
    entries: list[Entry] = []
    with metered(screen, "comparing", total=len(learners) * (len(folds.tests) + 1)) as meter:
        for n_left, learner in zip(range(len(learners), 0, -1), learners, strict=True):
            share = None if budget is None else Budget(budget.left / n_left)
            entries.append(_entry(training.of(learner), table, folds, meter, budget, share))
    screen.say()
    best = best_of(entries)
    if any(entry.estimate is not None for entry in entries):
        screen.essential(_grid(task, entries, best))
    _tell_failures(screen, entries)
    _tell_best(screen, entries, best, training)
    lines = [entry.to_dict() for entry in entries]
    winner = None if best is None else best.name
    screen.document({"command": "compare", "table": facts.to_dict(), "learners": lines, "best": winner})


def _entry(
    training: Training, table: Table, folds: Folds, meter: Meter, budget: Budget | None, share: Budget | None
) -> Entry:
    """Cross-validate, fit on all rows and certify. A failure is noted in the entry, and the other learners go on.

    The fits may take what is left of this learner's share of the budget, each an equal part."""
    n_fits = len(folds.tests) + 2  # the certificate counts as one

    def build() -> Any:
        nonlocal n_fits
        if budget is None or share is None:
            return training.build()
        if budget.left <= 0:
            raise BudgetOverError
        limit = max(LEAST_LIMIT, share.left / n_fits)
        n_fits -= 1
        return replace(training, time_limit=min(limit, training.time_limit or math.inf)).build()

    learner, task, preparation = training.learner, training.kind, training.preparation
    training = replace(training, preparation=preparation.for_table(learner, table))
    try:
        table = table_for(learner, preparation.less_text(table) if learner.takes_tables else table)
        with within(None if budget is None or share is None else Budget(min(budget.left, _OVERRUN * share.left))):
            estimate = task.cross_validate(build, table, task.labels(table), folds, meter, learner.name)
            meter.begin(f"{learner.name}, all rows")
            model = build()
            started = time.perf_counter()
            fit_model(model, table)
        seconds = time.perf_counter() - started
        status = explanation_of(model).status
        if status == Status.INTERRUPTED:
            raise InterruptedFitError
    except BudgetOverError:
        return Entry(learner.name, failure=_OUT_OF_TIME)
    except (MargroveError, MemoryError) as error:
        return Entry(learner.name, failure=error_in_shell(error) or type(error).__name__)
    is_certified = True
    try:
        with within(share):
            certificate = certify(model, table, table.labels())
    except BudgetOverError:
        certificate, is_certified = last_step_of(model).certificate_, False
    meter.advance()
    size = learned(model).size_words
    return Entry(learner.name, estimate, seconds, certificate, status, size, is_certified=is_certified)


def best_of(entries: Sequence[Entry]) -> Entry | None:
    """Return the best estimate; of equals the first, which is simpler."""
    scored = [(entry.scored.task.rank(entry.scored), entry) for entry in entries if entry.scored is not None]
    return max(scored, key=lambda pair: pair[0], default=(None, None))[1]


def rivals_of(best: Entry, entries: Sequence[Entry]) -> list[str]:
    """Return the learners whose value is within the 95 % interval of the best, ties among them."""
    if best.scored is None or best.scored.interval is None:
        return []
    floor = round(best.scored.interval[0], 12)
    others = [(c.name, c.scored) for c in entries if c is not best and c.scored is not None]
    return [name for name, other in others if other.value is not None and round(other.value, 12) >= floor]


def decimals_for(entries: Sequence[Entry]) -> int:
    """Return the decimals of per cents: two where a value needs two, or where one would make two values equal."""
    estimates = [c.scored for c in entries if c.scored is not None]
    values = {round(estimate.value or 0.0, 12) for estimate in estimates}
    hides = len({f"{100 * value:.1f}" for value in values}) < len(values)
    return 2 if hides else max(map(decimals_of, estimates), default=1)


def _grid(task: Task, entries: Sequence[Entry], best: Entry | None) -> Grid:
    """Return a line for each learner that was fitted, the best first and marked."""
    numbers = (*task.columns, "fit")
    grid = bare_grid("  learner", *numbers, "certificate", task.size_column, right=numbers)
    for column in (grid.columns[0], grid.columns[len(numbers) + 1]):
        column.no_wrap = True
    decimals = decimals_for(entries)
    ranks = [() if entry.scored is None else task.rank(entry.scored) for entry in entries]
    for place in sorted(range(len(entries)), key=lambda place: (ranks[place], -place), reverse=True):
        entry = entries[place]
        name = Text(f"{'→' if entry is best else ' '} {entry.name}")
        if entry.estimate is not None:
            cells = *task.cells(entry.estimate, decimals), *entry.cells, entry.size
            grid.add_row(name, *cells, style="bold" if entry is best else "")
    return grid


def _tell_failures(screen: Screen, entries: Sequence[Entry]) -> None:
    """Print which learners were not in time, could not be fitted, or have certificates that fail."""
    late = [entry.name for entry in entries if entry.failure == _OUT_OF_TIME]
    if late:
        screen.essential(f"Not in time: {', '.join(late)}; a larger --budget allows more.", style="yellow")
    for fault in filter(None, (entry.fault for entry in entries)):
        screen.essential(f"{fault.rstrip('.')}.", style="red")


def _tell_best(screen: Screen, entries: Sequence[Entry], best: Entry | None, training: Training) -> None:
    if best is None or best.scored is None:
        for estimate in [c.estimate for c in entries if c.estimate is not None][:1]:
            for note in estimate.notes:
                screen.say(f"{estimate.task.without_estimate} {note}")
        return
    estimate, task = best.scored, best.scored.task
    screen.say()
    words = task.words(estimate, decimals_for(entries))
    screen.essential(f"Best: {best.name}, {words}{task.baseline_words(estimate)}.")
    if estimate.never:
        screen.warn(never_words(estimate.never))
    if task.useless and task.uselessness(estimate):
        screen.say(task.useless, style="yellow")
    rivals = rivals_of(best, entries)
    if rivals:
        screen.say(f"Within that interval, and possibly as good: {', '.join(rivals)}.")
    ended = [c.name for c in entries if c.status == Status.TIME_LIMIT]
    if ended and not training.budget:
        screen.say(f"A fit was stopped after {training.time_limit:g} s; a larger --time-limit allows more.")
    elif ended:
        screen.say(f"Fits stopped early: {', '.join(ended)}; a larger --budget or --time-limit allows more.")
    unchecked = [c.name for c in entries if not c.is_certified]
    if unchecked:
        screen.say(
            f"Certificates that did not fit into the budget: {', '.join(unchecked)}; a larger --budget allows more."
        )
    for note in estimate.notes:
        screen.say(f"Note: {note}.")
    offered = choices()
    searched = [c.name for c in entries if offered[c.name].is_searched]
    screen.say(f"{' and '.join(searched)} {task.searched}")
