"""Everything that a report says, gathered from a model, a table and the training record."""

from __future__ import annotations

import warnings
from typing import Any

from margrove.app.report.blocks import Report
from margrove.app.report.charts import capital
from margrove.app.report.held_out import Folds
from margrove.app.report.importance import worth_of
from margrove.app.report.model_on_table import Subject, subject_of
from margrove.app.report.plain_words import learner_name
from margrove.app.report.sections.decisions import decisions_section
from margrove.app.report.sections.details import (
    about_section,
    data_section,
    mistakes_section,
    scores_section,
    training_section,
)
from margrove.app.report.sections.families import machine_section
from margrove.app.report.sections.overview import matters_section, quality_section, summary_section
from margrove.app.report.sections.proof import certificate_section, proof_section
from margrove.app.report.trusted_rows import evidence_of
from margrove.data import Table


def report_of(model: Any, table: Table) -> Report:
    """Judge the rows of a table by a fitted model, and say all there is to say.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, load_penguins
    >>> from margrove.app.report.assemble import report_of
    >>> penguins = load_penguins()
    >>> model = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> report = report_of(model, penguins)
    >>> report.title
    "How 'species' is predicted"
    >>> [section.title for section in report.first]
    ['In short', 'How good is it?', 'What matters', 'Decisions explained', 'What is proven']
    """
    subject = subject_of(model, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the rows give cause for, the subject has noted
        return _written(subject)


def _written(subject: Subject) -> Report:
    folds = Folds(subject.model, subject.table)
    evidence, worth = evidence_of(subject, folds), worth_of(subject, folds)
    measure = "R²" if subject.classes is None else "accuracy"
    columns = subject.table.names if worth is None else [column.name for column in worth.columns]
    first = [
        summary_section(subject, evidence, worth),
        None if evidence is None else quality_section(subject, evidence),
        None if worth is None else matters_section(subject, worth),
        decisions_section(subject),
        proof_section(subject, has_quality=evidence is not None),
    ]
    details = [
        data_section(subject),
        training_section(subject, measure),
        None if evidence is None else mistakes_section(subject, evidence),
        machine_section(subject, measure, columns),
        None if worth is None else scores_section(subject, worth),
        certificate_section(subject),
        about_section(subject),
    ]
    is_one_class = hasattr(subject.learner, "offset_")
    verb = "estimated" if subject.classes is None else "predicted"
    title = "Which rows are unusual" if is_one_class else f"How {subject.target!r} is {verb}"
    subtitle = f"{capital(learner_name(subject.model))} on {subject.source}"
    kept = [section for section in first if section is not None]
    return Report(title, subtitle, kept, [section for section in details if section is not None])
