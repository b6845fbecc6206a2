"""JSON: one object per line, or an array of objects. Each object is a row, and its keys are the names of columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from margrove.data.columns import clip
from margrove.data.dialect import TextOptions
from margrove.data.memory import check_memory
from margrove.data.source import Content, as_utf8, bad_byte
from margrove.data.table import Table

_GROWTH = 8  # bytes in memory per byte of text, measured
_CURE = "Write one object per line, or an array of objects."


def read_json(content: Content, options: TextOptions) -> tuple[Table, Callable[[int], int] | None]:
    """Read rows of JSON: the table without a target and, of an object per line, a function that gives the line of a
    row. A key that a row does not have is a missing cell. Raise `InputError` if the text is not JSON, a row is not an
    object, or a cell is a list."""
    check_memory(_GROWTH * content.size, content.name)
    content = as_utf8(content, options.encoding)
    fault = bad_byte(content)
    if fault is not None:
        raise fault
    text = content.data.decode()
    is_array = text.lstrip().startswith("[")
    rows: list[Any] = []
    lines: list[int] = []
    for line, part in [(1, text)] if is_array else enumerate(text.split("\n"), 1):
        if part.strip():
            try:
                found = json.loads(part, object_pairs_hook=_object)
            except (ValueError, RecursionError) as error:
                problem = f"the text is not valid JSON ({getattr(error, 'msg', error)})"
                raise content.error(problem, line=line + getattr(error, "lineno", 1) - 1, cure=_CURE) from None
            rows += found if is_array else [found]
            lines.append(line)
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            problem = f"an object was expected, not {clip(json.dumps(row), 40)}"
            raise content.error(problem, line=None if is_array else lines[place], cure=_CURE)
    from margrove.data.arrow import table_from_cells

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [[row.get(name) for row in rows] for name in names]
    line_of = None if is_array else lines.__getitem__
    table = table_from_cells(names, columns, source=content.name, missing=options.missing, line_of=line_of)
    return table, line_of


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a key occurs twice in an object: {', '.join(repr(name) for name, _ in pairs)}")
    return found
