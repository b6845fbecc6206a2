"""``margrove train --cluster``: the table is files that the workers of a Dask cluster read, and stays there.

This process gets counts, and all rows of a small table, some rows drawn at random of a large one: they stand for the
table in the report, and a model of other rows is judged by a part of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from margrove.app import provenance
from margrove.app.estimate.classes import CLASSES
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.task import Estimate, Labels, check_folds
from margrove.app.estimate.words import tell_estimate
from margrove.app.models import last_step_of, takes_tables
from margrove.app.options.budget import Budget
from margrove.app.options.facts import Facts, facts_of, tell_facts
from margrove.app.options.menu import parameters_blamed
from margrove.app.options.table import STANDARD_STREAM, Reading, table_for
from margrove.app.options.training import Training
from margrove.app.proving import shown
from margrove.app.screen.console import Screen
from margrove.app.screen.progress import metered
from margrove.app.train import Decision, Trained, fit
from margrove.certificate import Certificate, certify
from margrove.data import Table
from margrove.data.dask_partitions import Key, Tasks, check_extra, connected, last_of, scattered
from margrove.data.encoding import writing_of
from margrove.data.file_set import MOST_CLASSES, Counts, Draw, FileSet
from margrove.data.partitions import stacked
from margrove.data.target import choose_target
from margrove.errors import InputError, ParameterError
from margrove.explanation import counted, explanation_of
from margrove.run.progress import Course
from margrove.status import Status

LEARNERS = ("linear", "tree", "forest")  # that train over partitions
# Defaults of the command line that they do not have there.
_DEFAULTS: dict[str, dict[str, Any]] = {"tree": {"complexity": 0.0}, "forest": {"oob_score": False}}
_MOST_ROWS = 20_000  # that come to this process


def check_for_cluster(reading: Reading, training: Training) -> None:
    """Refuse, before any work, what is not done over partitions."""
    able = ", ".join(f"--model {name}" for name in LEARNERS)
    if training.model not in LEARNERS:
        given = training.model or "auto"
        why = "tries several learners" if training.is_auto else "does not do so from the command line"
        raise ParameterError(f"--cluster trains over partitions, and --model {given} {why}. Learners that can: {able}.")
    if training.has_probabilities or training.kind.metric.needs == "probabilities":
        option = "--probabilities" if training.has_probabilities else f"--metric {training.metric}"
        raise ParameterError(f"{option} needs a fit in memory, which --cluster is not. Leave it out.")
    _check_files(reading)
    check_folds(training.folds)
    check_extra()
    last_step_of(_over_partitions(training).build())._check_spread()


def _check_files(reading: Reading) -> None:
    if reading.file in (None, STANDARD_STREAM):
        raise ParameterError("--cluster needs files that every worker can read, such as 'data/*.parquet'. Name them.")


def _files(reading: Reading) -> FileSet:
    return FileSet.of(reading.file, how=reading.format() | {"drop_unlabelled": reading.drop_unlabelled})


def certified_on_cluster(model: Any, reading: Reading) -> Certificate:
    """Return the certificate of a model, recomputed over the files; ``reading`` knows its target."""
    _check_files(reading)
    if not takes_tables(model):
        raise ParameterError("--cluster needs a model that was trained on tables. This one takes an array.")
    is_labelled = explanation_of(model).task != "novelty"
    if is_labelled and reading.target is None:
        raise ParameterError("the model does not name its target, and --cluster needs it: --target NAME.")
    with connected(reading.cluster):
        return certify(model, _files(reading), reading.target if is_labelled else None)


def _over_partitions(training: Training) -> Training:
    """Return the training without what is not done over partitions: the search, thresholds, some defaults."""
    params = {**_DEFAULTS.get(training.model or "", {}), **training.params}
    return replace(training.bare, budget=0.0, params=params)


def learn_on_cluster(screen: Screen, reading: Reading, training: Training, began: float) -> tuple[Trained, Table]:
    """Read, fit, certify and estimate; return the model, with its training record, and its table or rows of it."""
    training, course = _over_partitions(training), Course()
    files = _files(reading)
    with parameters_blamed(training.params), connected(reading.cluster) as client:
        threads = client.nthreads()
        screen.say(
            f"Cluster {reading.cluster}: {counted(len(threads), 'worker')}, {counted(sum(threads.values()), 'thread')}"
        )
        with metered(screen, "reading"):
            sample, look, tested, is_tested = _drawn(Tasks(client), files, reading, training)
            table, is_estimated = replace(reading, held=sample).learnable(
                training.task, can_estimate=training.can_estimate
            )
            training.preparation.check_table(table, reading.without)
            if not is_estimated and not look.labels:
                fewer = f"Choose another target: --target; or predict it as a number: --task {NUMBERS.name}."
                problem = f"the target has more than {MOST_CLASSES:,} classes in one partition"
                raise InputError(problem, file=table.source, cure=fewer)
            facts = _facts(table, look, reading, training, is_estimated=is_estimated)
        training = replace(training, task=(NUMBERS if is_estimated else CLASSES).name, form=facts.format)
        training = training.judged(table.labels() if is_estimated else _as_many(look.labels)).bare
        tell_facts(screen, facts, reading, gaps="handled directly" if training.learner.takes_tables else "imputed")
        screen.say(f"Learner: {training.learner.name} ({training.learner.words})", indent=2)
        screen.say("Its parameters are not searched over partitions; --param sets them.", indent=2)
        table = table_for(training.learner, table)
        has_parts = table.block is None and table.sparse is None and any(column.date_part for column in table)
        files = replace(
            files,
            parts_of_dates=tuple({"name": column.name, **writing_of(column)} for column in table) if has_parts else (),
            without=tuple(name for name in sample.names if name not in table),
        )
        budget = Budget(0.0, began)
        nothing = training.kind.estimate(table.labels(), [], ["not estimated: interrupted"])
        unjudged = Decision(training, "", nothing, {"is_interrupted": False}, {})
        model, proof, warnings = fit(screen, unjudged, table, budget, course, (files, facts.target))
        estimate = unjudged.estimate
        if not _is_interrupted(model):
            estimate = _estimate(screen, training, replace(files, drawn=tested), table, is_tested)
    tell_estimate(screen, estimate, advice="" if training.learner.regression is None else facts.advice)
    summary = training.kind.prefix + training.kind.words(estimate)
    history = {"estimate": provenance.estimate_part(estimate), "search": None, "is_interrupted": False}
    decision = Decision(training, summary, estimate, history, {"search": None, "estimate": estimate.to_dict()})
    trained = Trained(decision, facts, model, proof, warnings, [], began)
    model.training_record_ = trained.record(table, course)
    return trained, table


def _drawn(
    tasks: Tasks, files: FileSet, reading: Reading, training: Training
) -> tuple[Table, Counts, Draw, NDArray[np.bool_]]:
    """Return some rows with their target, what is known of all, the rows to train on where a model is judged, and
    which of those returned to judge it by."""
    sent = Key("the names of the files", partial(scattered, tasks.client, files))
    read = [tasks.submit(name, FileSet.table, sent, p, reading.target) for p, name in enumerate(files.names)]
    look = Counts.total(last_of(tasks.results([tasks.submit(key.name, Counts.of, key) for key in read])))
    drawn = Draw(min(1.0, _MOST_ROWS / max(1, look.n)), training.seed)
    tested = replace(drawn, share=min(1 / max(2, training.folds), drawn.share))
    keys = [tasks.submit(key.name, drawn.of_table, key, p, tested) for p, key in enumerate(read)]
    tables, names, are_tested = zip(*last_of(tasks.results(keys)), strict=True)
    sample = choose_target(stacked([each for each in tables if each.n_rows] or tables[:1]), names[0])
    sample = sample.renamed(sample.names, source=str(reading.file))
    return sample, look, replace(tested, are_others=True), np.concatenate(are_tested)


def _facts(table: Table, look: Counts, reading: Reading, training: Training, *, is_estimated: bool) -> Facts:
    """Return the facts about all rows: the counts of all, and what was seen in some."""
    text = training.preparation.text
    facts = facts_of(table, is_estimated=is_estimated, text=text)
    missing = {name: n for name, n in look.missing.items() if name in table and name not in text and n}
    least, total, largest = look.numbers
    classes = [] if is_estimated else look.labels.most_common()
    numbers = (least, total / look.n, largest) if is_estimated else None
    return replace(facts, n_rows=look.n, missing=missing, classes=classes, numbers=numbers)


def _as_many(labels: Counter[Any], most: int = 100_000) -> Labels:
    """Return labels in these shares, each at least once; of more than ``most`` about so many."""
    divisor = max(1.0, sum(labels.values()) / most)
    return np.repeat(np.array(list(labels)), [max(1, round(n / divisor)) for n in labels.values()])


def _is_interrupted(model: Any) -> bool:
    return explanation_of(last_step_of(model)).status == Status.INTERRUPTED


def _estimate(
    screen: Screen, training: Training, files: FileSet, table: Table, is_tested: NDArray[np.bool_]
) -> Estimate:
    """Fit a model to these files, and judge it by rows that they leave out."""
    task, labels = training.kind, training.kind.labels(table)
    if training.folds == 0:
        return task.estimate(labels, [], ["not estimated, as requested (--folds 0)"])
    rows = np.flatnonzero(is_tested)
    if not rows.size:
        return task.estimate(labels, [], ["not estimated: there are too few rows"])
    model, learned = training.build(), labels if is_tested.all() else labels[~is_tested]
    assert table.target is not None
    try:
        with shown(screen, "fit without the rows held out; Ctrl-C skips this", None), catch_warnings():
            simplefilter("ignore")  # the fit on all rows gave the same warnings
            model.fit(files, table.target.name)
    except KeyboardInterrupt:
        return task.estimate(labels, [], ["not estimated: interrupted"])
    if _is_interrupted(model):
        return task.estimate(labels, [], ["not estimated: interrupted"])
    asked = table.take(rows).with_target(None)
    predicted = task.predicted(model, asked, rows, labels[rows], learned, has_scores=True)
    return task.estimate(labels, [predicted], (), "hold-out")
