"""``margrove train``: a table goes in, a certified model comes out."""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from margrove.app import provenance
from margrove.app.choose.candidates import CANDIDATES, LEAST_LIMIT
from margrove.app.choose.contest import fairly_judged, meets_on_sample
from margrove.app.choose.held_out import Chosen, NestedChoice
from margrove.app.choose.nested_search import NestedSearch
from margrove.app.choose.words import (
    picks_words,
    search_words,
    tell_contest,
    tell_curve,
    tell_metric,
    tell_plan,
    tell_search,
    tell_search_space,
)
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.learning_curve import Point
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.task import Estimate
from margrove.app.estimate.words import never_words, tell_estimate
from margrove.app.files import check_destination, check_report, report_path, write_model
from margrove.app.history import rows_fingerprint
from margrove.app.models import last_step_of, learned, plain_parameters
from margrove.app.options.budget import Budget
from margrove.app.options.facts import Facts, facts_of, tell_facts
from margrove.app.options.menu import parameters_blamed
from margrove.app.options.table import STANDARD_STREAM, Reading, table_for
from margrove.app.options.training import Training
from margrove.app.proving import BudgetOverError, Proof, fit_model, prove, shown, within
from margrove.app.screen.console import Screen
from margrove.app.screen.display import tell_certificate, tell_learned
from margrove.app.screen.failures import is_interrupt
from margrove.app.screen.interrupts import end_work
from margrove.app.screen.progress import counted_down, metered
from margrove.boost.base import is_plain_tree
from margrove.boost.regressor import AdaBoostRegressor
from margrove.data import Table
from margrove.engine import Capability, Effort
from margrove.engine.registry import named
from margrove.errors import InputError, ParameterError
from margrove.explanation import explanation_of
from margrove.run.progress import Course
from margrove.status import Status

_HARDLY, _LOOKED_AT = 0.1, 5_000  # of a class's rows are predicted as it: then the model is asked about so many rows
_REPORT_SHARE, _MOST_REPORT = 0.15, 5.0  # of the budget, and in seconds: what ``--model auto`` keeps for the report


@dataclass(frozen=True)
class Decision:
    """The model to be fitted, and how that was decided."""

    training: Training
    summary: str  # the estimate, in a line
    estimate: Estimate
    history: dict[str, Any]  # parts of the training record
    document: dict[str, Any]  # parts of the JSON document
    chosen: Chosen | None = None  # by ``--model auto``
    contest: NestedChoice | None = None


@dataclass(frozen=True)
class Trained:
    """A fitted model and how it was made: for the training record in its file, and for ``--json``."""

    decision: Decision
    facts: Facts
    model: Any
    proof: Proof
    warnings: list[str]
    curve: list[Point]
    began: float

    def _shared(self) -> dict[str, Any]:
        return {
            "table": self.facts.to_dict(),
            "seconds": round(time.monotonic() - self.began, 3),
            "learning_curve": [vars(point) for point in self.curve],
            "certifying": self.proof.to_dict(),
        }

    def record(self, table: Table, course: Course) -> dict[str, Any]:
        from margrove.app.report.explain import typical_cells

        history, estimate = self.decision.history, self.decision.estimate
        is_interrupted = history["is_interrupted"] or explanation_of(self.model).status == Status.INTERRUPTED
        tested = provenance.predictions_part(estimate.predicted, table)
        record = {
            "version": provenance.VERSION,
            "source": self.facts.source,
            "target": self.facts.target,
            "fingerprint": None if table.target is None else rows_fingerprint(table, table.target),
            **self._shared(),
            **history,
            "estimate": history["estimate"] | tested,
            "is_interrupted": is_interrupted,
            "course": [
                {**point, "seconds": round(point["seconds"], 4), "value": provenance.significant(point["value"])}
                for point in course.points
                if math.isfinite(point["value"])
            ],
            "typical": typical_cells(table),
            "warnings": [*self.facts.leaks, *self.facts.warnings, *self.facts.hints, *self.warnings],
        }
        return dict(provenance.plain(record))

    def document(self, explained: dict[str, Any], destination: str, report: str | None) -> dict[str, Any]:
        learner = last_step_of(self.model)
        return {
            "command": "train",
            "learner": self.decision.training.learner.name,
            "parameters": plain_parameters(learner),
            **self.decision.document,
            "status": explanation_of(learner).status,
            "engine": explanation_of(learner).engine,
            "certificate": self.proof.certificate.to_dict(),
            "learned": explained,
            **self._shared(),
            "warnings": self.warnings,
            "model": destination,
            "report": report,
        }


def train(
    screen: Screen, reading: Reading, training: Training, output: str | None, began: float, *, has_report: bool = True
) -> None:
    """Read, estimate, fit, certify, save and report, and print each result. The budget runs from ``began``."""
    training.check()  # first: a wrong parameter fails before a large file is read
    Effort(training.time_limit)
    if reading.cluster is not None:
        from margrove.app.cluster import check_for_cluster, learn_on_cluster

        check_for_cluster(reading, training)
    reading.refuse_folder()
    destination = f"{reading.stem}.margrove" if output is None else output
    is_replaced = check_destination(destination)
    report = report_path(destination) if has_report else None
    if report is not None:
        check_report(report)
    # Of one learner the budget is for its search alone.
    budget = Budget(training.budget, began) if training.is_auto else None
    kept = 0.0 if budget is None or report is None else min(_MOST_REPORT, _REPORT_SHARE * budget.seconds)
    if reading.cluster is None:
        trained, table = learn(screen, reading, training, began, kept)
    else:
        trained, table = learn_on_cluster(screen, reading, training, began)
    decision, model, proof = trained.decision, trained.model, trained.proof
    explained = learned(model, table_for(decision.training.learner, table))
    for warning in trained.warnings:
        screen.warn(warning)
    tell_learned(screen, explained)
    tell_curve(screen, decision.training.kind, trained.curve)
    tell_certificate(screen, proof.certificate, data="TABLE", why_not=proof.reason)
    if report is not None:
        import margrove.app.report  # noqa: F401, now: an import that Ctrl-C ends would hide that the model is saved
    before, is_saved = _file_of(destination), False
    try:
        write_model(model, destination)
        is_saved = True
        if report is not None:
            report = _reported(screen, reading, model, table, destination, report, budget)
        has_rules = explanation_of(model).has_rules and explained.forest is None  # nobody reads hundreds of trees
        _tell_saved(screen, reading, destination, report, is_replaced=is_replaced, has_rules=has_rules)
        if screen.is_quiet:
            screen.essential(f"{decision.training.learner.name}: {decision.summary}; {destination}")
        screen.document(trained.document(explained.to_dict(), destination, report))
        screen.finish()
        end_work()
    except (KeyboardInterrupt, ImportError) as error:
        if is_interrupt(error) and (is_saved or _file_of(destination) != before):
            raise KeyboardInterrupt(f"the model is saved: {destination}") from error
        raise


def learn(
    screen: Screen, reading: Reading, training: Training, began: float, kept: float = 0.0
) -> tuple[Trained, Table]:
    """Read, estimate, fit and certify; return the model, with its training record, and its table. So many seconds of
    the budget are kept for what comes after."""
    training, table, facts = _read(screen, reading, training)
    budget, course = Budget(training.budget, began).longer(-kept), Course()
    with parameters_blamed(training.params):
        decide = _decide_among_many if training.is_auto else _decide_on_one
        decision = decide(screen, training, table, facts, budget)
        model, proof, warnings = fit(screen, decision, table, budget, course)
    curve = [] if proof.is_left_out else _curve(screen, decision, budget)
    trained = Trained(decision, facts, model, proof, warnings, curve, began)
    model.training_record_ = trained.record(table, course)
    return trained, table


def _file_of(path: str) -> tuple[int, int] | None:
    """Return what differs after a file is replaced: its number and its time; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _reported(
    screen: Screen, reading: Reading, model: Any, table: Table, destination: str, report: str, budget: Budget | None
) -> str | None:
    """Write the report of a model that is saved; return its path, or None after an interrupt or the budget."""
    from margrove.app.report import write_report

    words = "the model is saved, its report is not"
    cure = f"Write it: {reading.command('report', destination)}"
    try:
        late = None if budget is None else budget.longer(budget.grace)
        if late is not None and late.left <= 0:
            raise BudgetOverError
        with metered(screen, "writing the report"), within(late), catch_warnings():
            simplefilter("ignore")  # warnings about the table and the model were printed before
            write_report(model, table, report)
    except (KeyboardInterrupt, BudgetOverError) as error:
        is_over = isinstance(error, BudgetOverError)
        screen.warn(f"{'the budget is used up' if is_over else 'interrupted'}: {words}. {cure}")
        return None
    except InputError as error:
        raise InputError(f"{error.problem}; {words}", file=error.file, cure=cure) from error
    return report


def _read(screen: Screen, reading: Reading, training: Training) -> tuple[Training, Table, Facts]:
    """Read the table, settle the task by its target, and print what was read."""
    can_estimate, text = training.can_estimate, training.preparation.text
    with metered(screen, "reading"):
        table, is_estimated = reading.learnable(training.task, can_estimate=can_estimate)
        training.preparation.check_table(table, reading.without)
        facts = facts_of(table, is_estimated=is_estimated, text=text)
    training = replace(training, task=(NUMBERS if is_estimated else CLASSES).name, form=facts.format)
    training = training.judged(training.kind.labels(table))
    if training.is_auto:
        gaps = "imputed (trees handle them directly)"
    else:
        gaps = "handled directly" if training.learner.takes_tables else "imputed"
    tell_facts(screen, facts, reading, gaps=gaps)
    if can_estimate and facts.is_number and not is_estimated and len(facts.classes) > 2:
        screen.say("The target's integers are treated as classes; --task regress predicts them as numbers.", indent=2)
    return training, table, facts


def _decide_among_many(screen: Screen, training: Training, table: Table, facts: Facts, budget: Budget) -> Decision:
    """Try several learners, choose the best, and estimate its score on held-out rows."""
    training = fairly_judged(training, table)
    tell_plan(screen, training, training.budget, is_sampled=meets_on_sample(table.n_rows, table.n_columns))
    with counted_down(screen, budget) as meter:
        contest = NestedChoice(training, table, budget, meter)
        chosen = contest.run()
    tell_contest(screen, chosen)
    tell_estimate(screen, chosen.estimate, how=chosen.how, remarks=picks_words(chosen), advice=facts.advice)
    trial, estimate = chosen.trial, chosen.estimate
    candidate = CANDIDATES[training.kind.name][0] if trial is None else trial.candidate
    params = {**candidate.params, **({} if trial is None else trial.params)}
    part = provenance.auto_part(chosen)
    preparation = training.preparation.for_table(candidate.learner, table)
    return Decision(
        replace(training.of(candidate.learner), params=params, preparation=preparation),
        f"{training.kind.words(estimate)} ({estimate.method}); {candidate.titled(params)}",
        estimate,
        part,
        part,
        chosen=chosen,
        contest=contest,
    )


def _decide_on_one(screen: Screen, training: Training, table: Table, facts: Facts, budget: Budget) -> Decision:
    """Search the parameters of the given learner that were not set, and estimate the score of the result."""
    training = replace(training, preparation=training.preparation.for_table(training.learner, table))
    learner, space, task = training.learner, training.search_space(), training.kind
    table = table_for(learner, table)
    _check_vote_of_numbers(last_step_of(training.build()), table, training.params)
    engine = training.params.get("engine", "auto")
    if space is not None and engine != "auto" and Capability.TIME_LIMIT not in named(engine).can:
        raise ParameterError(f"--param engine={engine} cannot search within a --budget. Use --budget 0.")
    screen.say(f"Learner: {learner.name} ({learner.words})", indent=2)
    is_set = training.params.keys() & {*learner.defaults, *(f"estimator__{name}" for name in learner.boosted)}
    if learner.remark and not is_set:
        screen.say(learner.remark, indent=2)
    tell_metric(screen, training)
    if not training.preparation.is_scaled:
        screen.say("The columns are sparse and are not scaled.", indent=2)
    labels, seed, tuned = task.labels(table), training.seed, None
    folds = task.folds(labels, training.folds, seed)
    if space is None:
        title = "cross-validation"
        with metered(screen, title, total=max(1, len(folds.tests))) as meter:
            estimate = task.cross_validate(training.build, table, labels, folds, meter, title, has_scores=True)
    else:
        tell_search_space(screen, space, training.budget, facts.n_rows)
        with metered(screen, "search", total=1 + len(folds.tests)) as meter:
            own = Budget(training.budget)
            tuned = NestedSearch(space, training.build, table, folds, seed, own, meter).run()
        tell_search(screen, tuned.found, is_interrupted=tuned.is_interrupted)
        estimate = tuned.estimate
    tell_estimate(screen, estimate, advice="" if learner.regression is None else facts.advice)
    summary = task.prefix + task.words(estimate)
    history = {"estimate": provenance.estimate_part(estimate), "search": None, "is_interrupted": False}
    document: dict[str, Any] = {"search": None, "estimate": estimate.to_dict()}
    if tuned is None:
        return Decision(training, summary, estimate, history, document)
    history["is_interrupted"] = tuned.is_interrupted
    if tuned.found.cells:
        history["search"] = provenance.search_part(learner.name, tuned.found)
    document["search"] = {"budget": training.budget, **tuned.to_dict()}
    summary += f" ({estimate.method}); {search_words(tuned.found)}"
    training = replace(training, params={**training.params, **tuned.found.params})
    return Decision(training, summary, estimate, history, document)


def _check_vote_of_numbers(learner: Any, table: Table, params: Iterable[str]) -> None:
    """Raise an error if AdaBoost.R2 is to boost pruned or random trees on a table with categories. Each such tree is
    grown only from the rows drawn for it, which may lack some levels, so that the trees have different columns."""
    if not isinstance(learner, AdaBoostRegressor) or is_plain_tree(learner.estimator, learner.engine):
        return
    if table.sparse is not None or table.block is not None:
        return
    name = next((column.name for column in table if column.kind == "category"), None)
    if name is not None:
        typed = ", ".join(param for param in params if param.startswith(("estimator", "engine")))
        raise ParameterError(
            f"--param {typed}: such a tree is grown only from the rows drawn for it, which may lack levels of the "
            f"category {name!r}, so that the trees cannot vote. Leave it out, or use --model tree."
        )


def fit(
    screen: Screen,
    decision: Decision,
    table: Table,
    budget: Budget,
    course: Course,
    given: tuple[Any, Any] | None = None,
) -> tuple[Any, Proof, list[str]]:
    """Fit on all rows and recompute the certificate; return the model, the proof and warnings. ``given`` is X and y
    where the table has only some of the rows."""
    training, own = decision.training, None
    limit = training.time_limit
    if decision.chosen is not None:  # only auto has a budget for it
        own = budget.longer(budget.grace)
        limit = min(limit or math.inf, max(own.left, LEAST_LIMIT))
    model = replace(training, time_limit=limit).build()
    table = table_for(training.learner, table)
    X, y = given or (table, None)
    with shown(screen, "fit on all rows", own), course:
        warnings = fit_model(model, X, y)
    proof = prove(screen, model, X, own, y)
    learner = last_step_of(model)
    if "time_limit" in learner.get_params():
        learner.set_params(time_limit=training.time_limit)  # the rest of the budget is not a parameter of the model
    if not proof.is_left_out:
        # The file stores the recomputed certificate, not the solver's own.
        learner.certificate_ = proof.certificate
    warnings += _never_predicted(training, model, table, decision.estimate)
    if explanation_of(learner).status == Status.INTERRUPTED:
        score = "; the score above is that of models fitted completely" if decision.estimate.rounds else ""
        screen.warn(f"interrupted: the model was fitted in part{score}")
    return model, proof, warnings


def _never_predicted(training: Training, model: Any, table: Table, estimate: Estimate) -> list[str]:
    """Return a warning of classes that the models of the estimate hardly predicted, and the model on all rows never."""
    labels, found = training.kind.labels(table), estimate.predicted
    if training.kind.is_number or found is None or estimate.never:
        return []
    classes, counts = np.unique(labels[found.rows], return_counts=True)
    n_predicted = np.array([np.count_nonzero(found.values == label) for label in classes])
    is_rare = n_predicted < _HARDLY * counts
    if not is_rare.any():
        return []
    rows = training.kind.sample(labels, _LOOKED_AT, training.seed)
    predicted = np.unique(np.asarray(model.predict(table.take(rows).with_target(None))))
    never = np.setdiff1d(classes[is_rare], predicted).astype(str).tolist()
    return [never_words(never, "training rows")] if never else []


def _curve(screen: Screen, decision: Decision, budget: Budget) -> list[Point]:
    """Return the learning curve, if the budget allows and nothing was interrupted."""
    if decision.chosen is None or decision.contest is None or decision.chosen.is_interrupted:
        return []
    with counted_down(screen, budget) as meter:
        return decision.contest.curve(decision.chosen, meter)


def _tell_saved(
    screen: Screen, reading: Reading, destination: str, report: str | None, *, is_replaced: bool, has_rules: bool
) -> None:
    if destination == STANDARD_STREAM:
        return
    screen.heading(f"Saved {destination}{' (replacing an existing model)' if is_replaced else ''}")
    if report is not None:
        screen.say(f"Report: {report}", indent=2)
    if reading.file == STANDARD_STREAM:
        screen.say(shlex.join(["margrove", "show", destination]), indent=2)
        return
    screen.say("Next:", indent=2)
    for command in (
        reading.of_new_rows.command("predict", destination),
        shlex.join(["margrove", "show", destination, *(["--rules"] if has_rules else [])]),
        reading.command("certify", destination),
    ):
        screen.say(command, indent=4)
