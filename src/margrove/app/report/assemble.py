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
from margrove.app.report.sections import details, overview
from margrove.app.report.sections.decisions import decisions_section
from margrove.app.report.sections.families import machine_section
from margrove.app.report.trusted_rows import evidence_of
from margrove.data import Table

# Each section is written by a function of the findings; None leaves it out. First those for everybody.
SectionMaker = Callable[[Findings], Section | None]
FIRST: tuple[SectionMaker, ...] = (
    overview.summary_section,
    overview.quality_section,
    overview.matters_section,
    decisions_section,
    overview.proof_section,
)
DETAILS: tuple[SectionMaker, ...] = (
    details.data_section,
    details.training_section,
    details.mistakes_section,
    machine_section,
    details.scores_section,
    details.certificate_section,
    details.about_section,
)


def report_of(model: Any, table: Table) -> Report:
    """Return the report of a fitted model on the rows of a table."""
    subject = subject_of(model, table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the subject keeps the warnings of these rows
        folds = Folds(subject.model, subject.table)
        found = Findings(subject, evidence_of(subject, folds), importances_of(subject, folds))
        first, last = ([each for make in makers if (each := make(found))] for makers in (FIRST, DETAILS))
    verb = "estimated" if subject.classes is None else "predicted"
    is_novelty = subject.explanation.task == "novelty"
    title = "Which rows are unusual" if is_novelty else f"How {subject.target!r} is {verb}"
    return Report(title, f"{capital(subject.explanation.called)} on {subject.source}", first, last)
