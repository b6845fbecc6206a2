"""``margrove train``: a table goes in, a certified model comes out."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from margrove.app import provenance as record
from margrove.app.choose.candidates import CLASSIFIERS, REGRESSORS
from margrove.app.choose.held_out import Chosen, Point, Search
from margrove.app.choose.nested_search import NumberTuning, Tuned, Tuning
from margrove.app.choose.search import Question
from margrove.app.choose.search_words import search_words, tell_question, tell_search
from margrove.app.choose.words import tell_contest, tell_curve, tell_plan, tell_worth, worth_text
from margrove.app.estimate.classes import Estimate, cross_validate, stratified_folds
from margrove.app.estimate.numbers import (
    NumberEstimate,
    check_vote_of_numbers,
    cross_validate_numbers,
    plain_folds,
    tell_number_estimate,
)
from margrove.app.files import check_destination, write_model
from margrove.app.models import learner_of, plain_parameters
from margrove.app.options.budget import Budget
from margrove.app.options.menu import parameters_blamed
from margrove.app.options.preparation import table_for
from margrove.app.options.table import STANDARD_STREAM, Facts, Reading, facts_of, tell_facts
from margrove.app.options.training import Training
from margrove.app.proving import Proof, fit_model, prove
from margrove.app.report_path import check_report, report_path, write_report
from margrove.app.screen.console import Screen
from margrove.app.screen.display import estimate_text, tell_certificate, tell_estimate, tell_learned
from margrove.app.screen.progress import Meter, counted_down, metered
from margrove.app.summary import learned
from margrove.app.training_rows import rows_fingerprint
from margrove.data import Table
from margrove.engine import Effort
from margrove.explanation import explanation_of
from margrove.run.progress import Course
from margrove.status import Status

_OVERRUN = 0.5  # of the budget, at most, if the last fit takes longer than was predicted


@dataclass(frozen=True)
class Decision:
    """What is fitted in the end, what that is worth in a line, and what there is to tell of how it came about."""

    training: Training
    worth: str
    document: dict[str, Any]  # parts of the JSON document
    history: dict[str, Any]  # parts of the training record
    found: Mapping[str, Any] = field(default_factory=dict)  # parameters besides those that were typed
    chosen: Chosen | None = None  # by ``--model auto``
    search: Search | None = None


def train(screen: Screen, reading: Reading, training: Training, output: str | None, *, has_report: bool = True) -> None:
    """Read, estimate, fit, certify, save, report, and tell of each."""
    began = time.monotonic()
    training.check()  # so that a wrong parameter is told before a large file is read
    Effort(training.time_limit)
    reading.refuse_folder()
    destination = output or f"{reading.stem}.margrove"
    is_replaced = check_destination(destination)
    report = report_path(destination) if has_report else None
    if report is not None:
        check_report(report)
    with metered(screen, "reading"):
        table, is_estimated = reading.learnable(training.task, can_estimate=training.can_estimate)
        training.preparation.check_table(table, reading.without)
        facts = facts_of(table, is_estimated=is_estimated, text=training.preparation.text)
    can_estimate = training.can_estimate
    training = replace(training, task="regress" if is_estimated else "classify")
    _tell_table(screen, training, reading, facts)
    if can_estimate and facts.is_number and not is_estimated:
        screen.say("whole numbers that repeat are taken as classes; --task regress estimates them", indent=2)
    budget = Budget(training.budget, began)
    with parameters_blamed(training.params):
        decide = _decide_among_many if training.is_auto else _decide_on_one
        decision = decide(screen, training, table, facts, budget)
        training = decision.training
        course = Course()
        model, proof, warnings = _fit(screen, decision, table, budget, course)
    curve = [] if proof.is_left_out else _curve(screen, decision, budget)
    lessons = learned(model, table_for(training.learner, table))
    for warning in warnings:
        screen.warn(warning)
    tell_certificate(screen, proof.certificate)
    if proof.words:
        screen.say(proof.words, indent=2)
    tell_learned(screen, lessons)
    tell_curve(screen, curve, is_number=is_estimated)
    model.training_record_ = record.plain(
        {
            "version": record.VERSION,
            "source": facts.source,
            "target": facts.target,
            "seconds": round(time.monotonic() - began, 3),
            "fingerprint": None if table.target is None else rows_fingerprint(table, table.target),
            "table": facts.to_dict(),
            **decision.history,
            "is_interrupted": decision.history["is_interrupted"] or learner_of(model).status_ is Status.INTERRUPTED,
            "learning_curve": [vars(point) for point in curve],
            "course": record.course_part(course),
            "certifying": proof.to_dict(),
            "warnings": [*facts.warnings, *facts.hints, *warnings],
        }
    )
    write_model(model, destination)
    if report is not None:
        try:
            write_report(screen, model, table, report)
        except KeyboardInterrupt:
            screen.warn(f"interrupted: the model is saved, its report is not; margrove report {destination} writes it")
            report = None
    has_rules = explanation_of(model).has_rules
    _tell_saved(screen, reading, destination, report, is_replaced=is_replaced, has_rules=has_rules)
    if screen.is_quiet:
        screen.essential(f"{training.learner.name}: {decision.worth}; {destination}")
    screen.document(
        {
            "command": "train",
            "table": facts.to_dict(),
            "learner": training.learner.name,
            "parameters": plain_parameters(learner_of(model)),
            "search": None,
            **decision.document,
            "status": str(learner_of(model).status_),
            "engine": learner_of(model).engine_,
            "certificate": proof.certificate.to_dict(),
            "certifying": proof.to_dict(),
            "learned": lessons.to_dict(),
            "learning_curve": [vars(point) for point in curve],
            "warnings": warnings,
            "seconds": round(time.monotonic() - began, 3),
            "model": destination,
            "report": report,
        }
    )
    screen.finish()


def _tell_table(screen: Screen, training: Training, reading: Reading, facts: Facts) -> None:
    if training.is_auto:
        gaps = "filled in (trees: taken as they are)"
    else:
        gaps = "taken as they are" if training.learner.takes_tables else "filled in"
    tell_facts(screen, facts, reading, gaps=gaps)


def _decide_among_many(screen: Screen, training: Training, table: Table, facts: Facts, budget: Budget) -> Decision:
    """Try several learners, take the best, and ask rows that were set aside what that is worth."""
    asked = training.asked()
    tell_plan(screen, asked, training.budget, table.n_rows, table.n_columns)
    with counted_down(screen, budget) as meter:
        search = Search(asked, table, budget, meter)
        chosen = search.run()
    tell_contest(screen, chosen)
    tell_worth(screen, chosen.worth)
    trial = chosen.trial
    candidate = (REGRESSORS if asked.is_estimated else CLASSIFIERS)[0] if trial is None else trial.candidate
    params = {**candidate.params, **({} if trial is None else trial.params)}
    history = record.auto_part(chosen, table)
    training = replace(training, taken=candidate.learner, params=params)
    preparation = training.preparation.for_table(training.learner, table)
    return Decision(
        replace(training, preparation=preparation),
        f"{worth_text(chosen.worth)} ({chosen.worth.method}); {candidate.titled(params)}",
        {
            "search": history["search"],
            "subsample": history["subsample"],
            "leaderboard": history["leaderboard"],
            "choice": history["choice"],
            "is_interrupted": chosen.is_interrupted,
            "estimate": chosen.worth.to_dict(),
        },
        history,
        chosen=chosen,
        search=search,
    )


def _decide_on_one(screen: Screen, training: Training, table: Table, facts: Facts, budget: Budget) -> Decision:
    """The learner that was named: what is open is searched, and what it is worth is estimated."""
    training = replace(training, preparation=training.preparation.for_table(training.learner, table))
    learner, question = training.learner, training.question()
    table = table_for(learner, table)
    check_vote_of_numbers(learner_of(training.build()), table, training.params)
    _tell_learner(screen, training)
    tuned = None
    estimate: Estimate | NumberEstimate
    if question is None:
        estimate = (_estimate_numbers if training.task == "regress" else _estimate)(screen, training, table)
    else:
        tell_question(screen, question, training.budget, facts.n_rows)
        tuned = _tune(screen, training, question, table)
        tell_search(screen, tuned.found, is_interrupted=tuned.is_interrupted)
        estimate = tuned.estimate
    if isinstance(estimate, Estimate):
        tell_estimate(screen, estimate)
        worth = f"accuracy {estimate_text(estimate)}"
    else:
        tell_number_estimate(screen, estimate)
        worth = estimate.words
    chosen = "" if tuned is None else f" ({tuned.estimate.method}); {search_words(tuned.found)}"
    searched = None if tuned is None else {"budget": training.budget, **tuned.to_dict()}
    return Decision(
        training,
        worth + chosen,
        {"search": searched, "estimate": estimate.to_dict()},
        record.one_part(
            learner,
            estimate,
            None if tuned is None else tuned.found,
            table,
            is_interrupted=tuned is not None and tuned.is_interrupted,
        ),
        {} if tuned is None else tuned.found.params,
    )


def _estimate(screen: Screen, training: Training, table: Table) -> Estimate:
    folds = stratified_folds(table, training.folds, training.seed)
    with metered(screen, "cross-validation", total=max(1, len(folds.tests))) as meter:
        return cross_validate(training.build, table, folds, meter, "cross-validation", keeps_answers=True)


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
    screen: Screen, decision: Decision, table: Table, budget: Budget, course: Course
) -> tuple[Any, Proof, list[str]]:
    """The model fitted on all rows, its certificate recomputed, and warnings."""
    training = decision.training
    limit = training.time_limit
    if decision.chosen is not None:
        limit = min(limit or math.inf, budget.left + _OVERRUN * budget.seconds)
    model = replace(training, time_limit=limit).build(decision.found)
    table = table_for(training.learner, table)
    began = time.monotonic()
    with _watched(screen, decision, budget, "fit on all rows"), course:
        warnings = fit_model(model, table)
    proof = _prove(screen, decision, model, table, budget, time.monotonic() - began)
    learner = learner_of(model)
    if "time_limit" in learner.get_params():
        learner.set_params(time_limit=training.time_limit)  # what is left of a budget is no setting of the model's
    if not proof.is_left_out:
        # The file keeps what was recomputed, not what the solver says of itself.
        learner.certificate_ = proof.certificate
    if learner.status_ is Status.INTERRUPTED:
        screen.warn("interrupted: the model is kept as far as it came; the accuracy above is of whole fits")
    return model, proof, warnings


def _prove(screen: Screen, decision: Decision, model: Any, table: Table, budget: Budget, took: float) -> Proof:
    """The certificate, after a fit that took so many seconds; only a contest has a budget for it."""
    if decision.chosen is None:
        return prove(screen, model, table)
    trial = decision.chosen.trial
    return prove(screen, model, table, budget, 0.0 if trial is None else trial.candidate.proof_seconds(took))


def _watched(screen: Screen, decision: Decision, budget: Budget, title: str) -> AbstractContextManager[Meter]:
    """The display of a contest goes on to its end; else there is a bar for each piece of work."""
    if decision.chosen is None:
        return metered(screen, title)
    return counted_down(screen, budget, title)


def _curve(screen: Screen, decision: Decision, budget: Budget) -> list[Point]:
    """The learning curve, if the budget allows; after Ctrl-C nobody waits for it."""
    if decision.chosen is None or decision.search is None or decision.chosen.is_interrupted:
        return []
    with counted_down(screen, budget) as meter:
        return decision.search.curve(decision.chosen, meter)


def _tell_learner(screen: Screen, training: Training) -> None:
    learner = training.learner
    screen.say(f"Learner: {learner.name} ({learner.words})", indent=2)
    if learner.remark and learner.is_as_it_comes(training.params):
        screen.say(learner.remark, indent=2)
    if not training.preparation.is_scaled:
        screen.say("The numbers are sparse and taken as they are, not scaled.", indent=2)


def _tell_saved(
    screen: Screen, reading: Reading, destination: str, report: str | None, *, is_replaced: bool, has_rules: bool
) -> None:
    if destination == STANDARD_STREAM:
        return
    screen.heading(f"Saved {destination}{' (replacing the model that was there)' if is_replaced else ''}")
    if report is not None:
        screen.say(f"Report: {report}", indent=2)
    if reading.file == STANDARD_STREAM:
        screen.say(shlex.join(["margrove", "show", destination]), indent=2)
        return
    screen.say("Next:", indent=2)
    for command in next_commands(reading, destination, has_rules=has_rules):
        screen.say(command, indent=4)


def next_commands(reading: Reading, destination: str, *, has_rules: bool = False) -> Sequence[str]:
    """What to type next: of new rows, and what works as it stands."""
    return (
        reading.of_new_rows.command("predict", destination),
        shlex.join(["margrove", "show", destination, *(["--rules"] if has_rules else [])]),
        reading.command("certify", destination),
    )
