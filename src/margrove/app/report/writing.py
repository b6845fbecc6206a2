"""`write_report`: the report of a model as a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from margrove.app.files import write_content
from margrove.app.report.assemble import report_of
from margrove.app.report.blocks import Report
from margrove.data import Table
from margrove.errors import ParameterError
from margrove.visible import visible

FORMATS = {"html": "html", "json": "json", "md": "md"}  # and how the names of their files end


def write_report(model: Any, table: Table, path: str | Path, format: str = "html") -> None:
    """Write what a model learned, how good it is and why it decides as it does, for a reader without mathematics.

    Parameters
    ----------
    model : a fitted estimator of Margrove's, or a ``Pipeline`` of a `TableEncoder` and one
        What `margrove train` saves. Its ``training_record_``, where it has one, tells of the training.
    table : Table
        Rows to judge, with the right answers as its target where they are known. Of more than 20,000 a sample is
        looked at, and that is said.
    path : str or Path
        Where to; a file that is there is replaced in one step.
    format : {"html", "json", "md"}
        One HTML page that needs nothing else, plain data, or Markdown.

    Raises
    ------
    ParameterError
        If there is no such format.
    InputError
        If the table lacks a column that the model needs, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from margrove import DecisionTreeClassifier, load_penguins
    >>> from margrove.app.report import write_report
    >>> penguins = load_penguins()
    >>> model = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(model, penguins, Path(folder) / "penguins.md", format="md")
    ...     print((Path(folder) / "penguins.md").read_text(encoding="utf-8").splitlines()[0])
    # How 'species' is predicted
    """
    write_content(report_content(model, table, format), path)


def report_content(model: Any, table: Table, format: str) -> bytes:
    """The report in one of the formats, in UTF-8."""
    return in_format(report_of(model, table), format)


def in_format(report: Report, format: str) -> bytes:
    """A report that was gathered, in one of the formats."""
    check_format(format)
    if format == "html":
        from margrove.app.report.html import to_html

        return to_html(report).encode()
    if format == "md":
        from margrove.app.report.markdown import to_markdown

        return visible(to_markdown(report), keep="\n").encode()
    text = json.dumps(plain(report.to_dict()), ensure_ascii=False, allow_nan=False, indent=2)
    return visible(f"{text}\n", keep="\n", is_json=True).encode()


def check_format(format: str) -> None:
    """Raise for a format that there is not."""
    if format not in FORMATS:
        raise ParameterError(f"format is {format!r}; it must be one of {', '.join(FORMATS)}.")


def plain(value: Any) -> Any:
    """The same as JSON can hold it: what is no finite number becomes null.

    Examples
    --------
    >>> from margrove.app.report.writing import plain
    >>> plain({"a": (1.0, float("nan"))})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
