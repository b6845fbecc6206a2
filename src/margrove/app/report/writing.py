"""Assemble the report of a model, a table and the training record; write it to a file, in any of the formats."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from margrove.app.files import write_content
from margrove.app.report.blocks import Report, Section
from margrove.app.report.charts import capital
from margrove.app.report.findings import Findings, evidence_of
from margrove.app.report.held_out import ReportFolds
from margrove.app.report.importance import importances_of
from margrove.app.report.model_on_table import Subject
from margrove.app.report.sections import details, overview
from margrove.app.report.sections.decisions import decisions_section
from margrove.app.report.sections.families import machine_section
from margrove.data import Table
from margrove.errors import ParameterError
from margrove.visible import visible

FORMATS = ("html", "json", "md")  # also the suffixes of their files
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


def write_report(model: Any, table: Table, path: str | Path, format: str = "html") -> None:
    """Write a report of a model on a table, in one of the `FORMATS`; a file that exists is replaced in one step."""
    check_format(format)
    write_content(in_format(report_of(model, table), format), path)


def report_of(model: Any, table: Table, metric: str | None = None) -> Report:
    """Return the report of a fitted model on some rows, judged by a metric, by default that of the training."""
    subject = Subject(model, table, metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the subject keeps the warnings of these rows
        folds = ReportFolds(subject.model, subject.table)
        found = Findings(subject, evidence_of(subject, folds), importances_of(subject, folds))
        first, last = ([each for make in makers if (each := make(found))] for makers in (FIRST, DETAILS))
    verb = "estimated" if subject.classes is None else "predicted"
    is_novelty = subject.explanation.task == "novelty"
    title = "Which rows are unusual" if is_novelty else f"How {subject.target!r} is {verb}"
    return Report(title, f"{capital(subject.explanation.called)} on {subject.source}", first, last)


def in_format(report: Report, format: str) -> bytes:
    """Return a report in one of the formats, in UTF-8."""
    if format == "html":
        from margrove.app.report.html import to_html

        return to_html(report).encode()
    if format == "md":
        from margrove.app.report.markdown import to_markdown

        return visible(to_markdown(report), keep="\n").encode()
    text = json.dumps(plain(report.to_dict()), ensure_ascii=False, allow_nan=False, indent=2)
    return visible(f"{text}\n", keep="\n", is_json=True).encode()


def check_format(format: str) -> None:
    """Raise `ParameterError` for an unknown format."""
    if format not in FORMATS:
        raise ParameterError(f"format is {format!r}; it must be one of {', '.join(FORMATS)}.")


def plain(value: Any) -> Any:
    """Return a value as JSON values; numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
