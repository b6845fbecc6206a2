"""``margrove compare``: all learners on one table, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from margrove.app.estimate.classes import CLASSES, decimals_of
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.predictions import InterruptedFitError
from margrove.app.estimate.task import Estimate, Folds, Task
from margrove.app.options.menu import Choice, check_task, choices
from margrove.app.options.preparation import AS_USUAL, Preparation, build_model, table_for
from margrove.app.options.table import Reading, facts_of, tell_facts
from margrove.app.proving import fit_model
from margrove.app.screen.advice import error_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import Meter, metered
from margrove.app.summary import learned
from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.explanation import explanation_of
from margrove.status import Status


@dataclass(frozen=True)
class Judged:
    """A model of all rows, the estimate of its kind, and its certificate."""

    estimate: Estimate
    model: Any
    seconds: float  # of the fit on all rows
    certificate: Certificate

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, without the model."""
        return {
            "cross_validation": self.estimate.to_dict(),
            "seconds": self.seconds,
            "certificate": self.certificate.to_dict(),
        }

    @property
    def cells(self) -> list[str | Text]:
        """The time of the fit and whether the certificate holds, or the first claim that does not."""
        fit = f"{1000 * self.seconds:.0f} ms" if self.seconds < 1 else f"{self.seconds:.1f} s"
        if self.certificate.holds:
            return [fit, Text("✓ holds", style="green")]
        failed = next(claim for claim in self.certificate.claims if claim.holds is False)
        reason = failed.words.partition(":")[0] or failed.name
        ended = "" if self.certificate.status == Status.CONVERGED else f" ({self.certificate.status})"
        return [fit, Text(f"✗ {reason}{ended}", style="red")]


@dataclass(frozen=True)
class Contender:
    """How one learner, or scheme, did, or why it could not."""

    name: str
    judged: Judged | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # beside the judgement
    failure: str | None = None

    @property
    def estimate(self) -> Estimate | None:
        """None where it failed, or nothing was estimated."""
        return self.judged.estimate if self.judged is not None and self.judged.estimate.rounds else None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, but for the name."""
        nothing = {"cross_validation": None, "seconds": None, "certificate": None}
        return {**(self.judged.to_dict() if self.judged else nothing), **self.facts, "failure": self.failure}


def judge(task: Task, make: Callable[[], Any], table: Table, folds: Folds, meter: Meter, name: str) -> Judged:
    """Cross-validate, fit on all rows and certify."""
    estimate = task.cross_validate(make, table, task.labels(table), folds, meter, name)
    meter.begin(f"{name}, all rows")
    model = make()
    started = time.perf_counter()
    fit_model(model, table)
    seconds = time.perf_counter() - started
    if explanation_of(model).status == Status.INTERRUPTED:
        raise InterruptedFitError
    certificate = certify(model, table, table.labels())
    meter.advance()
    return Judged(estimate, model, seconds, certificate)


def compare(
    screen: Screen,
    reading: Reading,
    *,
    task: str | None = None,
    folds: int,
    seed: int,
    time_limit: float | None,
    preparation: Preparation = AS_USUAL,
) -> None:
    """Cross-validate, fit and certify every learner on the same folds, and say which is best. ``task`` is one of TASKS;
    None: as the target looks."""
    check_task(task)
    with metered(screen, "reading"):
        table, is_estimated = reading.learnable(task, can_estimate=True)
        preparation.check_table(table, reading.without)
        facts = facts_of(table, is_estimated=is_estimated, text=preparation.text)
    kind = NUMBERS if is_estimated else CLASSES
    learners = [choice.regression if is_estimated else choice for choice in choices().values()]
    rules = _Rules(kind, table, kind.folds(kind.labels(table), folds, seed), seed, time_limit, preparation)
    as_they_are = ", ".join(learner.name for learner in learners if learner and learner.takes_tables)
    tell_facts(screen, facts, reading, gaps=f"filled in ({as_they_are}: taken as they are)")
    if preparation.text:
        screen.say(f"{as_they_are}: without the text, which they do not take", indent=2)
    able = [learner for learner in learners if learner is not None]
    with metered(screen, "comparing", total=len(able) * (len(rules.folds.tests) + 1)) as meter:
        contenders = [rules.contend(learner, meter) for learner in able]
    screen.say()
    best = best_of(contenders)
    decimals = decimals_for(contenders)

    def cells(contender: Contender, judged: Judged) -> tuple[list[str], list[str]]:
        return [*kind.cells(judged.estimate, decimals)], [contender.facts["size"]]

    screen.essential(grid_of("learner", kind.columns, [kind.size_column], contenders, best, cells))
    _tell_best(screen, contenders, best, time_limit)
    screen.document(
        {
            "command": "compare",
            "table": facts.to_dict(),
            "learners": [{"learner": contender.name, **contender.to_dict()} for contender in contenders],
            "best": None if best is None else best.name,
        }
    )


@dataclass(frozen=True)
class _Rules:
    """What is the same for all learners."""

    task: Task
    table: Table
    folds: Folds
    seed: int
    time_limit: float | None
    preparation: Preparation

    def contend(self, learner: Choice, meter: Meter) -> Contender:
        prepared = self.preparation.for_table(learner, self.table)

        def make() -> Any:
            return build_model(learner, {}, seed=self.seed, time_limit=self.time_limit, preparation=prepared)

        try:
            taken = table_for(learner, self.preparation.less_text(self.table) if learner.takes_tables else self.table)
            judged = judge(self.task, make, taken, self.folds, meter, learner.name)
        except (MargroveError, MemoryError) as error:  # told in the table: the others may still do
            failure = error_in_shell(error) or type(error).__name__
            return Contender(learner.name, facts={"status": None, "size": ""}, failure=failure)
        size = learned(judged.model).size_words
        return Contender(learner.name, judged, {"status": explanation_of(judged.model).status, "size": size})


def best_of(contenders: Sequence[Contender]) -> Contender | None:
    """Return the best estimate; of equals the first, which is the simpler."""
    estimated = [(c.estimate, c) for c in contenders if c.estimate is not None]
    return max(estimated, key=lambda pair: pair[0].task.rank(pair[0]), default=(None, None))[1]


def rivals_of(best: Contender, contenders: Sequence[Contender]) -> list[str]:
    """Return the learners whose value is within the 95 % interval of the best, ties among them."""
    if best.estimate is None or best.estimate.interval is None:
        return []
    floor = round(best.estimate.interval[0], 12)
    others = [(c.name, c.estimate) for c in contenders if c is not best and c.estimate is not None]
    return [name for name, other in others if other.value is not None and round(other.value, 12) >= floor]


def decimals_for(contenders: Sequence[Contender]) -> int:
    """Two decimals of per cent for all, where one of them needs two or one decimal would hide that two differ."""
    estimates = [c.estimate for c in contenders if c.estimate is not None]
    values = {round(estimate.value or 0.0, 12) for estimate in estimates}
    hides = len({f"{100 * value:.1f}" for value in values}) < len(values)
    return 2 if hides else max(map(decimals_of, estimates), default=1)


def grid_of(
    title: str,
    columns: Sequence[str],
    others: Sequence[str],
    contenders: Sequence[Contender],
    best: Contender | None,
    cells_of: Callable[[Contender, Judged], tuple[list[str], list[str]]],
) -> Grid:
    """A table of learners or schemes: columns of numbers, fit, certificate and others. ``cells_of`` returns what
    stands in front of the fit and behind the certificate."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column(title, no_wrap=True)
    for name in (*columns, "fit"):
        grid.add_column(name, justify="right", no_wrap=True)
    for name in ("certificate", *others):
        grid.add_column(name)
    for contender in contenders:
        judged = contender.judged
        if judged is None:
            failure = Text(f"failed: {contender.failure}", style="red")
            grid.add_row(Text(contender.name), *["-"] * (len(columns) + 1), failure, *["-"] * len(others))
            continue
        before, behind = cells_of(contender, judged)
        style = "bold" if contender is best else ""
        grid.add_row(Text(contender.name), *before, *judged.cells, *behind, style=style)
    return grid


def _tell_best(
    screen: Screen, contenders: Sequence[Contender], best: Contender | None, time_limit: float | None
) -> None:
    if best is None or best.estimate is None:
        for judged in [c.judged for c in contenders if c.judged is not None][:1]:
            for note in judged.estimate.notes:
                screen.say(f"{judged.estimate.task.without_estimate} {note}")
        return
    estimate, task = best.estimate, best.estimate.task
    screen.say()
    words = task.words(estimate, decimals_for(contenders))
    screen.essential(f"Best: {best.name}, {words}{task.baseline_words(estimate)}.")
    if task.useless and task.uselessness(estimate):
        screen.say(task.useless, style="yellow")
    rivals = rivals_of(best, contenders)
    if rivals:
        screen.say(f"Within that interval, so perhaps as good: {', '.join(rivals)}.")
    if any(c.facts["status"] == Status.TIME_LIMIT for c in contenders):
        screen.say(f"A fit was stopped after {time_limit:g} s; --time-limit allows more.")
    for note in estimate.notes:
        screen.say(f"Note: {note}.")
    searched = [c.name for c in contenders if choices()[c.name].is_searched]
    screen.say(f"{' and '.join(searched)} {task.searched}")
