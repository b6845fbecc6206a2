"""``margrove train``: a table goes in, a certified model comes out."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.engine import Effort
from margrove.errors import ParameterError
from margrove.status import Status
from margrove.surface.display import (
    accuracy_text,
    tell_certificate,
    tell_estimate,
    tell_learned,
)
from margrove.surface.learned import learned
from margrove.surface.learners import (
    DEFAULT,
    MANY_ROWS,
    Learner,
    check_task,
    learner_named,
    learner_of_numbers,
    parameters_blamed,
)
from margrove.surface.meter import metered
from margrove.surface.models import (
    build_model,
    check_destination,
    fit_model,
    has_rules,
    learner_of,
    table_for,
    write_model,
)
from margrove.surface.preparation import AS_USUAL, Preparation
from margrove.surface.reading import STANDARD_STREAM, Reading, facts_of, tell_facts
from margrove.surface.regression import (
    NumberEstimate,
    check_vote_of_numbers,
    cross_validate_numbers,
    plain_folds,
    tell_number_estimate,
)
from margrove.surface.rounds import NumberTuning, Tuned, Tuning
from margrove.surface.screen import Screen
from margrove.surface.search import Question, question_of
from margrove.surface.search_words import search_words, tell_question, tell_search
from margrove.surface.validation import Estimate, cross_validate, stratified_folds


@dataclass(frozen=True)
class Training:
    """What the options say about the learning."""

    model: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    folds: int = 5
    time_limit: float | None = None
    budget: float = 0.0  # seconds for the search; 0 for none
    task: str | None = None  # one of TASKS; None: as the target looks
    preparation: Preparation = AS_USUAL

    def __post_init__(self) -> None:
        check_task(self.task)

    @property
    def learner(self) -> Learner:
        """The learner asked for, or the default."""
        learner = learner_named(self.model or DEFAULT)
        return learner_of_numbers(learner) if self.task == "regress" else learner

    def check(self) -> None:
        """Raise for a parameter that the learner does not have, whatever the target will be, or for text that it does
        not take."""
        self.preparation.check_learner(self.learner)
        try:
            self.question()
        except ParameterError as refused:
            if self.task is not None or self.learner.regression is None:
                raise
            try:
                replace(self, task="regress").question()
            except ParameterError:  # of neither: its classes are what most people mean
                raise refused from None

    def build(self, found: Mapping[str, Any] | None = None) -> Any:
        """An unfitted model, with the parameters that a search found besides those that were typed."""
        params = {**self.params, **(found or {})}
        return build_model(
            self.learner, params, seed=self.seed, time_limit=self.time_limit, preparation=self.preparation
        )

    def question(self) -> Question | None:
        """What there is to search."""
        estimator = learner_of(self.build())
        question = question_of(self.learner, self.params, estimator) if self.budget > 0 else None
        return None if question is None else replace(question, preparation=self.preparation)


def train(screen: Screen, reading: Reading, training: Training, output: str | None) -> None:
    """Read, estimate, fit, certify, save, and tell of each."""
    training.check()  # so that a wrong parameter is told before a large file is read
    Effort(training.time_limit)
    destination = output or f"{reading.stem}.margrove"
    is_replaced = check_destination(destination)
    can_estimate = training.task is None and training.learner.regression is not None
    with metered(screen, "reading"):
        table, is_estimated = reading.learnable(training.task, can_estimate=can_estimate)
        training.preparation.check_table(table, reading.without)
        facts = facts_of(table, is_estimated=is_estimated, text=training.preparation.text)
    training = replace(training, task="regress" if is_estimated else "classify")
    training = replace(training, preparation=training.preparation.for_table(training.learner, table))
    learner, question = training.learner, training.question()
    tell_facts(screen, facts, reading, gaps="taken as they are" if learner.takes_tables else "filled in")
    if can_estimate and facts.is_number and not is_estimated:
        screen.say("whole numbers that repeat are taken as classes; --task regress estimates them", indent=2)
    table = table_for(learner, table)
    check_vote_of_numbers(learner_of(training.build()), table, training.params)
    _tell_learner(screen, training, facts.n_rows)
    if not training.preparation.is_scaled:
        screen.say("The numbers are sparse and taken as they are, not scaled.", indent=2)
    tuned = None
    with parameters_blamed(training.params):
        estimate: Estimate | NumberEstimate
        if question is None:
            estimate = (_estimate_numbers if is_estimated else _estimate)(screen, training, table)
        else:
            tell_question(screen, question, training.budget, facts.n_rows)
            tuned = _tune(screen, training, question, table)
            tell_search(screen, tuned.found, is_interrupted=tuned.is_interrupted)
            estimate = tuned.estimate
        if isinstance(estimate, Estimate):
            tell_estimate(screen, estimate)
        else:
            tell_number_estimate(screen, estimate)
        model, certificate, warnings = _fit(screen, training, table, {} if tuned is None else tuned.found.params)
    lessons = learned(model, table)
    for warning in warnings:
        screen.warn(warning)
    tell_certificate(screen, certificate)
    tell_learned(screen, lessons)
    write_model(model, destination)
    _tell_saved(screen, reading, destination, is_replaced=is_replaced, has_rules=has_rules(model))
    if screen.is_quiet:
        chosen = "" if tuned is None else f" ({tuned.estimate.method}); {search_words(tuned.found)}"
        worth = f"accuracy {accuracy_text(estimate)}" if isinstance(estimate, Estimate) else estimate.words
        screen.essential(f"{learner.name}: {worth}{chosen}; {destination}")
    screen.document(
        {
            "command": "train",
            "table": facts.to_dict(),
            "learner": learner.name,
            "parameters": plain_parameters(learner_of(model)),
            "search": None if tuned is None else {"budget": training.budget, **tuned.to_dict()},
            "estimate": estimate.to_dict(),
            "status": str(learner_of(model).status_),
            "engine": learner_of(model).engine_,
            "certificate": certificate.to_dict(),
            "learned": lessons.to_dict(),
            "warnings": warnings,
            "model": destination,
        }
    )
    screen.finish()


def _estimate(screen: Screen, training: Training, table: Table) -> Estimate:
    folds = stratified_folds(table, training.folds, training.seed)
    with metered(screen, "cross-validation", total=max(1, len(folds.tests))) as meter:
        return cross_validate(training.build, table, folds, meter, "cross-validation")


def _estimate_numbers(screen: Screen, training: Training, table: Table) -> NumberEstimate:
    folds = plain_folds(table, training.folds, training.seed)
    with metered(screen, "cross-validation", total=max(1, len(folds.tests))) as meter:
        return cross_validate_numbers(training.build, table, folds, meter)


def _tune(screen: Screen, training: Training, question: Question, table: Table) -> Tuned:
    folds = (plain_folds if question.is_of_numbers else stratified_folds)(table, training.folds, training.seed)
    with metered(screen, "search", total=1 + len(folds.tests)) as meter:
        rounds = (NumberTuning if question.is_of_numbers else Tuning)(
            question, training.build, table, folds, seed=training.seed, seconds=training.budget, meter=meter
        )
        return rounds.run()


def _fit(
    screen: Screen, training: Training, table: Table, found: Mapping[str, Any]
) -> tuple[Any, Certificate, list[str]]:
    """The model fitted on all rows, its certificate recomputed, and warnings."""
    model = training.build(found)
    with metered(screen, "fit on all rows") as meter:
        warnings = fit_model(model, table)
        meter.begin("recomputing the certificate")
        certificate = certify(model, table, table.labels())
    learner_of(
        model
    ).certificate_ = certificate  # the file keeps what was recomputed, not what the solver says of itself
    if learner_of(model).status_ is Status.INTERRUPTED:
        screen.warn("interrupted: the model is kept as far as it came; the accuracy above is of whole fits")
    return model, certificate, warnings


def _tell_learner(screen: Screen, training: Training, n_rows: int) -> None:
    learner = training.learner
    if training.model is None:
        screen.say(
            f"No --model given: using {learner.name} ({learner.words}), the best all-round learner there is yet; "
            "`margrove compare` tries them all.",
            indent=2,
        )
        if n_rows > MANY_ROWS:
            screen.say(
                f"Its time grows with the square of the rows, and {n_rows:,} are many: --model linear is quick at any "
                "size, and --time-limit ends each fit.",
                indent=2,
            )
    else:
        screen.say(f"Learner: {learner.name} ({learner.words})", indent=2)
    if learner.remark and learner.is_as_it_comes(training.params):
        screen.say(learner.remark, indent=2)


def _tell_saved(screen: Screen, reading: Reading, destination: str, *, is_replaced: bool, has_rules: bool) -> None:
    if destination == STANDARD_STREAM:
        return
    screen.heading(f"Saved {destination}{' (replacing the model that was there)' if is_replaced else ''}")
    if reading.file == STANDARD_STREAM:
        screen.say(shlex.join(["margrove", "show", destination]), indent=2)
        return
    screen.say("Next:", indent=2)
    for command in next_commands(reading, destination, has_rules=has_rules):
        screen.say(command, indent=4)


def next_commands(reading: Reading, destination: str, *, has_rules: bool = False) -> Sequence[str]:
    """What to type next, so that it works as it stands."""
    return (
        reading.command("predict", destination),
        shlex.join(["margrove", "show", destination, *(["--rules"] if has_rules else [])]),
        reading.command("certify", destination),
    )


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as JSON can hold them."""
    return {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):  # a code matrix
        return value.tolist()
    is_plain = isinstance(value, str | int | float | bool | None | dict | list)
    return value if is_plain and value not in (math.inf, -math.inf) else " ".join(str(value).split())
