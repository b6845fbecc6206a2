"""ARFF files, read by liac-arff: nominal attributes become categories with their declared levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.data.columns import MISSING, Column, category_column, clip, column_from_objects
from margrove.data.frames import check_finite
from margrove.data.memory import check_memory
from margrove.data.source import Content, as_utf8, bad_byte, damage_refused
from margrove.data.table import Table, duplicate_names
from margrove.errors import InputError

if TYPE_CHECKING:
    import arff


def read_arff(content: Content, *, encoding: str) -> Table:
    """Read an ARFF file: the table without a target. Raise `InputError` if it is malformed or has no rows."""
    import arff

    content = as_utf8(content, encoding)
    fault = bad_byte(content)
    if fault is not None:
        raise fault
    text = content.data.decode()
    head, _, body = text.lower().partition("@data")
    n_cells = max(text.count(",") + text.count("\n"), head.count("@attribute") * body.count("\n"))
    check_memory(100 * n_cells, content.name)  # of a cell in liac-arff, measured; it makes sparse rows dense
    with damage_refused(content.name, "ARFF", "Check its @relation and @attribute lines."):
        try:
            document = arff.loads(text)
        except arff.ArffException as error:
            raise _malformed(error, text, content) from None
    attributes, rows = document["attributes"], document["data"]
    names = [name for name, _ in attributes]
    if len(set(names)) < len(names):
        raise duplicate_names(names, file=content.name)
    if not rows:
        raise content.error("the file has attributes but no rows", cure="Was it fully written?")
    cells = zip(attributes, zip(*rows, strict=True), strict=True)
    table = Table([_column(name, kind, values, content.name) for (name, kind), values in cells], source=content.name)
    check_finite(table, lambda row: _data_lines(text)[row])
    return table


def _malformed(error: arff.ArffException, text: str, content: Content) -> InputError:
    """Return liac-arff's error, with the line as a number and its text."""
    # str(error) would format the message, and fail where the file's own text in it has a percent sign.
    words = clip(error.message.replace("%d", str(error.line)), 160).rstrip(". ")
    if error.line < 1:
        return content.error(words, cure="Fix the file.")
    problem = re.sub(rf"(,? at| in) line {error.line}\b", "", words).split(":")[0]
    found = clip(text.splitlines()[error.line - 1])
    return content.error(f"{problem}: {found!r}", line=error.line, cure="Fix the line.")


def _data_lines(text: str) -> list[int]:
    """Return the line of each row: those after @data that are neither blank nor comments."""
    lines = list(enumerate(text.splitlines(), start=1))
    start = next(number for number, line in lines if line.strip().lower().startswith("@data"))
    return [number for number, line in lines[start:] if line.strip() and not line.lstrip().startswith("%")]


def _column(name: str, kind: str | list[str], values: Sequence[Any], source: str) -> Column:
    """Return a column of a type, or of the levels of a nominal attribute."""
    if isinstance(kind, list):
        code = {level: place for place, level in enumerate(kind)}
        codes = np.array([MISSING if value is None else code[value] for value in values], dtype=np.int32)
        return category_column(name, codes, kind)
    if kind.upper() in ("NUMERIC", "REAL", "INTEGER"):
        numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return Column(name, "numeric", numbers)
    return column_from_objects(name, values, source=source)
