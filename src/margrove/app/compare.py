"""``margrove compare``: all learners on one table, or (``--schemes``) all ways to make one learner tell many classes
apart, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table as Grid
from rich.text import Text
from sklearn.base import clone

from margrove.app.estimate.classes import CLASSES, decimals_of
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.predictions import InterruptedFitError
from margrove.app.estimate.task import Estimate, Folds, Task
from margrove.app.models import learner_of
from margrove.app.options.menu import Choice, choice_named, choices
from margrove.app.options.preparation import table_for
from margrove.app.options.table import Reading, facts_of, tell_facts
from margrove.app.options.training import Training
from margrove.app.proving import fit_model
from margrove.app.screen.advice import error_in_shell
from margrove.app.screen.console import Screen, bare_grid
from margrove.app.screen.progress import Meter, metered
from margrove.app.summary import learned
from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.errors import InputError, MargroveError
from margrove.explanation import explanation_of
from margrove.multiclass.classifiers import BitStringClassifier, OneVsOneClassifier, OneVsRestClassifier
from margrove.multiclass.codes import code_for, most_bits
from margrove.status import Status

MORE_BITS = 15  # of the code that is drawn
MOST_EXHAUSTIVE_HERE = 7  # classes: 63 machines


@dataclass(frozen=True)
class Entry:
    """One learner, or scheme: fitted to all rows, estimated and certified; or why it could not be."""

    name: str
    facts: Mapping[str, Any] = field(default_factory=dict)  # beside those below
    estimate: Estimate | None = None
    seconds: float = 0.0  # of the fit on all rows
    certificate: Certificate | None = None
    failure: str | None = None
    model: Any = None

    @property
    def scored(self) -> Estimate | None:
        """The estimate; None where there is none, or it has no value."""
        return self.estimate if self.estimate is not None and self.estimate.rounds else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, without the name and the model."""
        return {
            "cross_validation": self.estimate and self.estimate.to_dict(),
            "seconds": None if self.failure else self.seconds,
            "certificate": self.certificate and self.certificate.to_dict(),
            **self.facts,
            "failure": self.failure,
        }

    @property
    def cells(self) -> list[str | Text]:
        """The time of the fit and whether the certificate holds, or the first claim that does not."""
        assert self.certificate is not None
        fit = f"{1000 * self.seconds:.0f} ms" if self.seconds < 1 else f"{self.seconds:.1f} s"
        if self.certificate.holds:
            return [fit, Text("✓ holds", style="green")]
        failed = next(claim for claim in self.certificate.claims if claim.holds is False)
        reason = failed.words.partition(":")[0] or failed.name
        ended = "" if self.certificate.status == Status.CONVERGED else f" ({self.certificate.status})"
        return [fit, Text(f"✗ {reason}{ended}", style="red")]


def compare(screen: Screen, reading: Reading, training: Training) -> None:
    """Cross-validate, fit and certify every learner on the same folds, and print which is best."""
    preparation = training.preparation
    with metered(screen, "reading"):
        table, is_estimated = reading.learnable(training.task, can_estimate=True)
        preparation.check_table(table, reading.without)
        facts = facts_of(table, is_estimated=is_estimated, text=preparation.text)
    task = NUMBERS if is_estimated else CLASSES
    offered = [choice.regression if is_estimated else choice for choice in choices().values()]
    learners = [learner for learner in offered if learner is not None]
    folds = task.folds(task.labels(table), training.folds, training.seed)
    as_they_are = ", ".join(learner.name for learner in learners if learner.takes_tables)
    tell_facts(screen, facts, reading, gaps=f"filled in ({as_they_are}: taken as they are)")
    if preparation.text:
        screen.say(f"{as_they_are}: without the text, which they do not take", indent=2)

    def judged(learner: Choice) -> Entry:
        own = replace(training, taken=learner, preparation=preparation.for_table(learner, table))
        taken = table_for(learner, preparation.less_text(table) if learner.takes_tables else table)
        entry = _judge(learner.name, task, own.build, taken, folds, meter)
        size = learned(entry.model).size_words
        return replace(entry, facts={"status": explanation_of(entry.model).status, "size": size})

    with metered(screen, "comparing", total=len(learners) * (len(folds.tests) + 1)) as meter:
        nothing = {"status": None, "size": ""}
        entries = [_or_failure(learner.name, nothing, partial(judged, learner)) for learner in learners]
    screen.say()
    best = best_of(entries)
    decimals = decimals_for(entries)

    def cells(entry: Entry, estimate: Estimate) -> tuple[list[str], list[str]]:
        return [*task.cells(estimate, decimals)], [entry.facts["size"]]

    screen.essential(_grid("learner", task.columns, [task.size_column], entries, best, cells))
    _tell_best(screen, entries, best, training.time_limit)
    lines = [{"learner": entry.name, **entry.to_dict()} for entry in entries]
    winner = None if best is None else best.name
    screen.document({"command": "compare", "table": facts.to_dict(), "learners": lines, "best": winner})


def compare_schemes(screen: Screen, reading: Reading, training: Training) -> None:
    """Cross-validate, fit and certify one learner by itself and by every scheme, on the same folds."""
    learner, preparation = choice_named(training.model or ""), training.preparation
    preparation.check_learner(learner)
    with metered(screen, "reading"):
        table = reading.labelled()
        preparation.check_table(table, reading.without)
        facts = facts_of(table, text=preparation.text)
    classes = np.unique(table.labels())
    if len(classes) < 3:
        raise InputError(
            f"--schemes compares ways to tell many classes apart, and there are {len(classes)}",
            file=table.source,
            cure="Leave --schemes out.",
        )
    tell_facts(screen, facts, reading, gaps="taken as they are" if learner.takes_tables else "filled in")
    folds = CLASSES.folds(table.labels(), training.folds, training.seed)
    schemes = {f"{learner.name} itself": None, **schemes_for(classes, training.seed)}
    base = learner.estimator({}, seed=training.seed, time_limit=training.time_limit)
    taken, prepared = table_for(learner, table), preparation.for_table(learner, table)

    def judged(name: str, scheme: Any) -> Entry:
        def make() -> Any:
            own = clone(base)
            return prepared.in_front_of(learner, own if scheme is None else clone(scheme).set_params(estimator=own))

        entry = _judge(name, CLASSES, make, taken, folds, meter)
        assert entry.certificate is not None
        fitted = learner_of(entry.model)  # a learner by itself has no code, and so no distance
        code = {fact: getattr(fitted, f"{fact}_", None) for fact in ("min_distance", "errors_corrected")}
        return replace(entry, facts={"machines": len(entry.certificate.machines), **code})

    with metered(screen, "comparing", total=len(schemes) * (len(folds.tests) + 1)) as meter:
        nothing = {"machines": 0, "min_distance": None, "errors_corrected": None}
        entries = [_or_failure(name, nothing, partial(judged, name, scheme)) for name, scheme in schemes.items()]
    screen.say()
    best = best_of(entries)
    screen.essential(_grid("scheme", ["machines", "distance", *CLASSES.columns], [], entries, best, _scheme_cells))
    if best is not None and best.scored is not None:
        screen.say()
        whose = f" of {learner.name}" if best.facts["min_distance"] is not None else ""
        estimate = f"{CLASSES.words(best.scored)}{CLASSES.baseline_words(best.scored)}"
        screen.essential(f"Best: {best.name}{whose}, {estimate}.")
    screen.document(
        {
            "command": "compare",
            "table": facts.to_dict(),
            "learner": learner.name,
            "schemes": [{"scheme": entry.name, **entry.to_dict()} for entry in entries],
            "best": None if best is None else best.name,
        }
    )


def schemes_for(classes: NDArray[Any], seed: int) -> dict[str, Any]:
    """Return one-vs-rest, one-vs-one and the different bit strings for so many classes, without estimators."""
    found: dict[str, Any] = {"one-vs-rest": OneVsRestClassifier(), "one-vs-one": OneVsOneClassifier()}
    n_bits = min(MORE_BITS, most_bits(len(classes)))
    codes = {"": code_for("binary", classes), " hadamard": code_for("hadamard", classes)}
    if len(classes) <= MOST_EXHAUSTIVE_HERE:
        codes[" exhaustive"] = code_for("exhaustive", classes)
    codes[" max-min"] = code_for("max_min", classes, n_bits, seed)
    seen = set()
    for word, code in codes.items():
        columns = frozenset((column * column[0]).tobytes() for column in code.T)  # whatever their order and sign
        if columns not in seen:
            seen.add(columns)
            # The matrix itself: a code that has to be drawn is drawn once.
            found[f"{code.shape[1]}-bit{word}"] = BitStringClassifier(code=code)
    return found


def _judge(name: str, task: Task, make: Callable[[], Any], table: Table, folds: Folds, meter: Meter) -> Entry:
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
    return Entry(name, estimate=estimate, seconds=seconds, certificate=certificate, model=model)


def _or_failure(name: str, facts: Mapping[str, Any], judged: Callable[[], Entry]) -> Entry:
    """Return what was judged, or the failure: it stands in the table, and the others go on."""
    try:
        return judged()
    except (MargroveError, MemoryError) as error:
        return Entry(name, facts, failure=error_in_shell(error) or type(error).__name__)


def best_of(entries: Sequence[Entry]) -> Entry | None:
    """Return the best estimate; of equals the one with the fewest machines, of these the first, which is simpler."""
    scored = [(c.scored.task.rank(c.scored), -c.facts.get("machines", 0), c) for c in entries if c.scored is not None]
    return max(scored, key=lambda each: each[:2], default=(None,))[-1]


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


def _scheme_cells(entry: Entry, estimate: Estimate) -> tuple[list[str], list[str]]:
    distance, accuracy = entry.facts["min_distance"], CLASSES.cells(estimate, decimals_of(estimate))
    return [f"{entry.facts['machines']:,}", "-" if distance is None else f"{distance:g}", *accuracy], []


def _grid(
    title: str,
    columns: Sequence[str],
    others: Sequence[str],
    entries: Sequence[Entry],
    best: Entry | None,
    cells_of: Callable[[Entry, Estimate], tuple[list[str], list[str]]],
) -> Grid:
    """Return a table of learners or schemes: columns of numbers, fit, certificate and others. ``cells_of`` returns the
    cells in front of the fit and behind the certificate."""
    grid = bare_grid(title, *columns, "fit", "certificate", *others, right=(*columns, "fit"))
    grid.columns[0].no_wrap = True
    for entry in entries:
        if entry.estimate is None:
            failure = Text(f"failed: {entry.failure}", style="red")
            grid.add_row(Text(entry.name), *["-"] * (len(columns) + 1), failure, *["-"] * len(others))
            continue
        before, behind = cells_of(entry, entry.estimate)
        grid.add_row(Text(entry.name), *before, *entry.cells, *behind, style="bold" if entry is best else "")
    return grid


def _tell_best(screen: Screen, entries: Sequence[Entry], best: Entry | None, time_limit: float | None) -> None:
    if best is None or best.scored is None:
        for estimate in [c.estimate for c in entries if c.estimate is not None][:1]:
            for note in estimate.notes:
                screen.say(f"{estimate.task.without_estimate} {note}")
        return
    estimate, task = best.scored, best.scored.task
    screen.say()
    words = task.words(estimate, decimals_for(entries))
    screen.essential(f"Best: {best.name}, {words}{task.baseline_words(estimate)}.")
    if task.useless and task.uselessness(estimate):
        screen.say(task.useless, style="yellow")
    rivals = rivals_of(best, entries)
    if rivals:
        screen.say(f"Within that interval, so perhaps as good: {', '.join(rivals)}.")
    if any(c.facts["status"] == Status.TIME_LIMIT for c in entries):
        screen.say(f"A fit was stopped after {time_limit:g} s; --time-limit allows more.")
    for note in estimate.notes:
        screen.say(f"Note: {note}.")
    offered = choices()
    searched = [c.name for c in entries if offered[c.name].is_searched]
    screen.say(f"{' and '.join(searched)} {task.searched}")
