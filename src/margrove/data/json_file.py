"""JSON: one object per line, or an array of objects. Each object is a row, and its keys are the names of columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from margrove.data.dialect import TextOptions
from margrove.data.frames import check_finite
from margrove.data.memory import check_memory
from margrove.data.source import Content, as_utf8, bad_byte, damage_refused
from margrove.data.table import Table
from margrove.errors import InputError

_GROWTH = 8  # bytes in memory per byte of text, measured
_CURE = "Write one object per line, or an array of objects."


def read_json(content: Content, options: TextOptions) -> tuple[Table, Callable[[int], int]]:
    """Read rows of JSON: the table without a target, and a function that gives the line of a row. An object in an
    object becomes columns ``outer.inner``; a key that a row does not have is a missing cell. Raise `InputError` if the
    text is not JSON, a row is not an object, or a cell is a list."""
    import pyarrow as pa

    from margrove.data.arrow import array_of_cells, table_from_typed

    check_memory(_GROWTH * content.size, content.name)
    content = as_utf8(content, options.encoding)
    fault = bad_byte(content)
    if fault is not None:
        raise fault
    text = content.data.decode()
    rows, starts = _rows(text, content)
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: array_of_cells(name, [row.get(name) for row in rows], content.name) for name in names}
    with damage_refused(content.name, "JSON"):
        arrow = pa.table(columns)
    table = table_from_typed(arrow, source=content.name, missing=options.missing)

    def line_of(row: int) -> int:
        return text.count("\n", 0, starts[row]) + 1

    check_finite(table, line_of)
    return table, line_of


def _rows(text: str, content: Content) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the rows, and where each begins in the text."""

    def fault(problem: str, place: int) -> InputError:
        return content.error(problem, line=text.count("\n", 0, place) + 1, cure=_CURE)

    start, between, end = map(re.compile, (r"\s*\[\s*", r"\s*,\s*", r"\s*\]\s*\Z"))
    opened = start.match(text)
    if opened is None:
        between, end = map(re.compile, (r"\s*", r"\s*\Z"))
    place = opened.end() if opened is not None else 0
    decode = json.JSONDecoder(object_pairs_hook=_object).raw_decode
    rows: list[dict[str, Any]] = []
    starts: list[int] = []
    while not end.match(text, place):
        gap = between.match(text, place) if rows else None
        if rows and gap is None:
            raise fault("a comma or the end of the array was expected", place)
        starts.append(place if gap is None else gap.end())
        try:
            row, place = decode(text, starts[-1])
        except (ValueError, RecursionError) as error:
            problem = f"the text is not valid JSON ({getattr(error, 'msg', error)})"
            raise fault(problem, getattr(error, "pos", starts[-1])) from None
        if not isinstance(row, dict):
            raise fault(f"an object was expected, not a {type(row).__name__}", starts[-1])
        rows.append(row)
    return rows, starts


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, the members of objects in it as ``outer.inner``; no two may have the same name."""
    if any(isinstance(value, dict) for _, value in pairs):
        parts = [(f"{key}.", value) if isinstance(value, dict) else ("", {key: value}) for key, value in pairs]
        pairs = [(f"{prefix}{name}", cell) for prefix, part in parts for name, cell in part.items()]
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice in an object")
    return found
