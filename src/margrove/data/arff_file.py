"""ARFF files, read by liac-arff: nominal attributes become categories with their declared levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse

from margrove.data.columns import MISSING, Column, category_column, clip, column_from_objects
from margrove.data.frames import check_finite
from margrove.data.memory import check_memory
from margrove.data.source import Content, as_utf8, bad_byte, damage_refused
from margrove.data.table import Table, duplicate_names
from margrove.errors import InputError

if TYPE_CHECKING:
    import arff

AttributeType: TypeAlias = str | list[str]  # the name of a type, or the levels of a nominal attribute

_NUMERIC = ("NUMERIC", "REAL", "INTEGER")


def read_arff(content: Content, *, encoding: str) -> Table:
    """Read an ARFF file, dense or sparse: the table without a target. Raise `InputError` if the file is malformed, with
    the line; or has no rows."""
    import arff

    content = as_utf8(content, encoding)
    fault = bad_byte(content)
    if fault is not None:
        raise fault
    text = content.data.decode()
    # about 100 bytes per cell in liac-arff, measured
    check_memory(100 * (text.count(",") + text.count("\n")), content.name)
    is_sparse = re.search(r"@data[^\n]*(\s|%[^\n]*\n)*\{", text, re.IGNORECASE) is not None
    with damage_refused(content.name, "ARFF", "Check its @relation and @attribute lines."):
        try:
            document = arff.loads(text, return_type=arff.LOD if is_sparse else arff.DENSE)
        except arff.ArffException as error:
            raise _malformed(error, text, content) from None
    attributes, rows = document["attributes"], document["data"]
    names = [name for name, _ in attributes]
    if len(set(names)) < len(names):
        raise duplicate_names(names, file=content.name)
    if not rows:
        raise content.error("the file has attributes but no rows", cure="Was it fully written?")
    if is_sparse and all(_is_numeric(kind) for _, kind in attributes):
        table = Table(block=_csr(rows, len(names)), names=names, source=content.name)
    else:
        cells = _dense_cells(rows, attributes) if is_sparse else list(zip(*rows, strict=True))
        columns = [
            _column(name, kind, values, content.name) for (name, kind), values in zip(attributes, cells, strict=True)
        ]
        table = Table(columns, source=content.name)
    check_finite(table, lambda row: data_lines(text)[row])
    return table


def _malformed(error: arff.ArffException, text: str, content: Content) -> InputError:
    """Return liac-arff's error, with the line as a number and its text."""
    # str(error) would format the message, and fail where the file's own text in it has a percent sign.
    words = clip(error.message.replace("%d", str(error.line)), 160).rstrip(". ")
    if error.line < 1:
        return content.error(words, cure="Mend the file.")
    problem = re.sub(rf"(,? at| in) line {error.line}\b", "", words).split(":")[0]
    found = clip(text.splitlines()[error.line - 1])
    return content.error(f"{problem}: {found!r}", line=error.line, cure="Mend the line.")


def data_lines(text: str) -> list[int]:
    """Return the line of each row: those after @data that are neither blank nor comments."""
    lines = list(enumerate(text.splitlines(), start=1))
    start = next(number for number, line in lines if line.strip().lower().startswith("@data"))
    return [number for number, line in lines[start:] if line.strip() and not line.lstrip().startswith("%")]


def _is_numeric(kind: AttributeType) -> bool:
    return isinstance(kind, str) and kind.upper() in _NUMERIC


def _csr(rows: list[dict[int, float | None]], d: int) -> scipy.sparse.csr_matrix:
    """Return the rows of a sparse file, each a dict from column to number, as a CSR matrix of shape (n, d)."""
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    indices = np.array([column for row in rows for column in sorted(row)], dtype=np.int32)
    cells = [row[column] for row in rows for column in sorted(row)]
    data = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=(len(rows), d))


def _dense_cells(rows: list[dict[int, Any]], attributes: list[tuple[str, AttributeType]]) -> list[list[Any]]:
    """Return the columns of a sparse file; a cell left out is 0, or the first level declared."""
    left_out = [kind[0] if isinstance(kind, list) else 0 for _, kind in attributes]
    return [[row.get(j, left_out[j]) for row in rows] for j in range(len(attributes))]


def _column(name: str, kind: AttributeType, values: Sequence[Any], source: str) -> Column:
    if isinstance(kind, list):
        code = {level: place for place, level in enumerate(kind)}
        codes = np.array([MISSING if value is None else code[value] for value in values], dtype=np.int32)
        return category_column(name, codes, kind)
    if _is_numeric(kind):
        numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        return Column(name, "numeric", numbers)
    return column_from_objects(name, values, source=source)
