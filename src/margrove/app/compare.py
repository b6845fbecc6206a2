"""``margrove compare``: all learners on one table, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from rich import box
from rich.table import Table as Grid
from rich.text import Text

from margrove.app.estimate.classes import (
    Estimate,
    Folds,
    ModelMaker,
    cross_validate,
    refuse_interrupted,
    stratified_folds,
)
from margrove.app.estimate.numbers import NumberEstimate
from margrove.app.models import learner_of
from margrove.app.options.menu import LEARNERS, Learner, check_task
from margrove.app.options.preparation import AS_USUAL, Preparation, build_model, table_for
from margrove.app.options.table import Facts, Reading, facts_of, tell_facts
from margrove.app.proving import fit_model
from margrove.app.screen.advice import error_in_shell
from margrove.app.screen.console import Screen
from margrove.app.screen.display import decimals_of, estimate_text, interval_text, percent
from margrove.app.screen.progress import Meter, metered
from margrove.app.summary import learned
from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.status import Status

AnyEstimate = TypeVar("AnyEstimate", Estimate, NumberEstimate)


@dataclass(frozen=True)
class Contender(Generic[AnyEstimate]):
    """How one learner did, or why it could not."""

    learner: Learner
    estimate: AnyEstimate | None = None
    seconds: float | None = None  # of the fit on all rows
    certificate: Certificate | None = None
    status: str | None = None
    size: str = ""
    failure: str | None = None

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


@dataclass(frozen=True)
class Judged(Generic[AnyEstimate]):
    """A model of all rows, how well its kind does on rows not seen, and what can be certified of it."""

    estimate: AnyEstimate
    model: Any
    seconds: float  # of the fit on all rows
    certificate: Certificate


def judge(make: ModelMaker, table: Table, rounds: Folds, meter: Meter, name: str) -> Judged[Estimate]:
    """Cross-validate, fit on all rows and certify."""
    return fitted_and_certified(cross_validate(make, table, rounds, meter, name), make, table, meter, name)


def fitted_and_certified(
    estimate: AnyEstimate, make: ModelMaker, table: Table, meter: Meter, name: str
) -> Judged[AnyEstimate]:
    """Beside an estimate, a model of all rows and its certificate."""
    meter.begin(f"{name}, all rows")
    model = make()
    started = time.perf_counter()
    fit_model(model, table)
    seconds = time.perf_counter() - started
    refuse_interrupted(model)
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
    if is_estimated:
        from margrove.app.compare_numbers import compare_numbers

        compare_numbers(
            screen, reading, table, facts, folds=folds, seed=seed, time_limit=time_limit, preparation=preparation
        )
        return
    rounds = stratified_folds(table, folds, seed)
    rules = Rules(table, rounds, judge, seed, time_limit, preparation)
    contenders = contest(screen, reading, facts, list(LEARNERS.values()), rules)
    screen.essential(_grid(contenders))
    best = best_of(contenders)
    _tell_best(screen, contenders, best, time_limit)
    document(screen, facts, contenders, best)


@dataclass(frozen=True)
class Rules(Generic[AnyEstimate]):
    """What is the same for all learners of a contest."""

    table: Table
    rounds: Folds
    judge: Callable[[ModelMaker, Table, Folds, Meter, str], Judged[AnyEstimate]]
    seed: int
    time_limit: float | None
    preparation: Preparation


def contest(
    screen: Screen, reading: Reading, facts: Facts, learners: list[Learner], rules: Rules[AnyEstimate]
) -> list[Contender[AnyEstimate]]:
    """Tell of the table, and let every learner do its best."""
    as_they_are = ", ".join(learner.name for learner in learners if learner.takes_tables)
    tell_facts(screen, facts, reading, gaps=f"filled in ({as_they_are}: taken as they are)")
    if rules.preparation.text:
        screen.say(f"{as_they_are}: without the text, which they do not take", indent=2)
    with metered(screen, "comparing", total=len(learners) * (len(rules.rounds.tests) + 1)) as meter:
        contenders = [_contend(learner, rules, meter) for learner in learners]
    screen.say()
    return contenders


def document(
    screen: Screen, facts: Facts, contenders: list[Contender[AnyEstimate]], best: Contender[AnyEstimate] | None
) -> None:
    """What ``--json`` prints."""
    screen.document(
        {
            "command": "compare",
            "table": facts.to_dict(),
            "learners": [contender.to_dict() for contender in contenders],
            "best": None if best is None else best.learner.name,
        }
    )


def _contend(learner: Learner, rules: Rules[AnyEstimate], meter: Meter) -> Contender[AnyEstimate]:
    table, preparation = rules.table, rules.preparation
    prepared = preparation.for_table(learner, table)

    def make() -> Any:
        return build_model(learner, {}, seed=rules.seed, time_limit=rules.time_limit, preparation=prepared)

    try:
        taken = table_for(learner, preparation.less_text(table) if learner.takes_tables else table)
        judged = rules.judge(make, taken, rules.rounds, meter, learner.name)
    except (MargroveError, MemoryError) as error:  # told in the table: the others may still do
        return Contender(learner, failure=error_in_shell(error) or type(error).__name__)
    size, status = learned(judged.model).size_words, str(learner_of(judged.model).status_)
    return Contender(learner, judged.estimate, judged.seconds, judged.certificate, status, size)


def best_of(contenders: list[Contender[Estimate]]) -> Contender[Estimate] | None:
    """The highest mean accuracy; of equals the first, which is the simpler."""
    judged = [c for c in contenders if c.estimate is not None and c.estimate.accuracies]
    return max(judged, key=lambda c: steady(c.estimate.mean) if c.estimate else 0.0, default=None)


def rivals_of(best: Contender[Estimate], contenders: list[Contender[Estimate]]) -> list[str]:
    """The learners whose accuracy is within the 95 % interval of the best, ties among them."""
    if best.estimate is None or best.estimate.interval is None:
        return []
    floor = steady(best.estimate.interval[0])
    others = [c for c in contenders if c is not best and c.estimate is not None]
    return [c.learner.name for c in others if c.estimate is not None and steady(c.estimate.mean) >= floor]


def decimals_for(contenders: list[Contender[Estimate]]) -> int:
    """Two decimals for all, where one of them needs two or one decimal would hide that two learners differ."""
    estimates = [c.estimate for c in contenders if c.estimate is not None and c.estimate.accuracies]
    means = {steady(estimate.mean) for estimate in estimates}
    hides = len({f"{100 * mean:.1f}" for mean in means}) < len(means)
    return 2 if hides else max(map(decimals_of, estimates), default=1)


def steady(mean: float) -> float:
    """A mean without the last digits, which depend on the order of the folds."""
    return round(mean, 12)


def _grid(contenders: list[Contender[Estimate]]) -> Grid:
    best, decimals = best_of(contenders), decimals_for(contenders)
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    grid.add_column("learner", no_wrap=True)
    grid.add_column("accuracy in %\n(95 % interval)", justify="right", no_wrap=True)
    grid.add_column("fit", justify="right", no_wrap=True)
    grid.add_column("certificate")
    grid.add_column("decides by")
    for contender in contenders:
        if contender.estimate is None or contender.seconds is None or contender.certificate is None:
            grid.add_row(contender.learner.name, "-", "-", Text(f"failed: {contender.failure}", style="red"), "-")
            continue
        grid.add_row(
            Text(contender.learner.name),
            accuracy_cell(contender.estimate, decimals),
            duration_words(contender.seconds),
            certificate_words(contender.certificate),
            contender.size,
            style="bold" if contender is best else "",
        )
    return grid


def accuracy_cell(estimate: Estimate, decimals: int) -> str:
    """The accuracy and its interval, as a table has them."""
    ends = interval_text(estimate, decimals)
    return f"{100 * estimate.mean:.{decimals}f} ({ends})" if ends else "-"


def duration_words(seconds: float) -> str:
    """A time as the table has it."""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def certificate_words(certificate: Certificate) -> Text:
    """Whether it holds, and the first thing that does not."""
    if certificate.holds:
        return Text("✓ holds", style="green")
    failed = next(claim for claim in certificate.claims if claim.holds is False)
    reason = failed.words.partition(":")[0] or failed.name
    ended = "" if certificate.status == Status.CONVERGED else f" ({certificate.status})"
    return Text(f"✗ {reason}{ended}", style="red")


def _tell_best(
    screen: Screen, contenders: list[Contender[Estimate]], best: Contender[Estimate] | None, time_limit: float | None
) -> None:
    if best is None or best.estimate is None:
        for note in next((c.estimate.notes for c in contenders if c.estimate is not None), ()):
            screen.say(f"Accuracy {note}")
        return
    estimate = best.estimate
    screen.say()
    screen.essential(
        f"Best: {best.learner.name}, {estimate_text(estimate, decimals_for(contenders))}, on rows it has not seen; "
        f"always answering {str(estimate.baseline_class)!r} scores {percent(estimate.baseline)}."
    )
    rivals = rivals_of(best, contenders)
    if rivals:
        screen.say(f"Within that interval, so perhaps as good: {', '.join(rivals)}.")
    if any(c.status == Status.TIME_LIMIT for c in contenders):
        screen.say(f"A fit was stopped after {time_limit:g} s; --time-limit allows more.")
    for note in estimate.notes:
        screen.say(f"Note: {note}.")
    searched = [learner.name for learner in LEARNERS.values() if learner.is_searched]
    screen.say(f"{' and '.join(searched)} are compared as they are; `margrove train` searches C, and gamma of svm.")
