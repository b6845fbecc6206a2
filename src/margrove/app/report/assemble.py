"""Assemble a report from a model, a table and the training record."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from margrove.app.report.blocks import Report, Section
from margrove.app.report.charts import capital
from margrove.app.report.findings import Findings
from margrove.app.report.held_out import Folds
from margrove.app.report.importance import importances_of
from margrove.app.report.model_on_table import subject_of
from margrove.app.report.sections.decisions import decisions_section
from margrove.app.report.sections.details import (
    about_section,
    certificate_section,
    data_section,
    mistakes_section,
    scores_section,
    training_section,
)
from margrove.app.report.sections.families import machine_section
from margrove.app.report.sections.overview import matters_section, proof_section, quality_section, summary_section
from margrove.app.report.trusted_rows import evidence_of
from margrove.data import Table

# Each section is written by a function of the findings; None leaves it out. First those for everybody.
SectionMaker = Callable[[Findings], Section | None]
FIRST: tuple[SectionMaker, ...] = (
    summary_section,
    quality_section,
    matters_section,
    decisions_section,
    proof_section,
)
DETAILS: tuple[SectionMaker, ...] = (
    data_section,
    training_section,
    mistakes_section,
    machine_section,
    scores_section,
    certificate_section,
    about_section,
)


def report_of(model: Any, table: Table) -> Report:
    """Return the report of a fitted model on the rows of a table.

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
        warnings.simplefilter("ignore")  # the subject keeps the warnings of these rows
        folds = Folds(subject.model, subject.table)
        found = Findings(subject, evidence_of(subject, folds), importances_of(subject, folds))
        first, details = ([each for make in makers if (each := make(found))] for makers in (FIRST, DETAILS))
    verb = "estimated" if subject.classes is None else "predicted"
    is_novelty = subject.explanation.task == "novelty"
    title = "Which rows are unusual" if is_novelty else f"How {subject.target!r} is {verb}"
    return Report(title, f"{capital(subject.explanation.called)} on {subject.source}", first, details)
