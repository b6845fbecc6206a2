"""JSON: one object per line, or an array of objects. Each object is a row, and its keys are the names of columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from margrove.data.columns import clip
from margrove.data.dialect import TextOptions
from margrove.data.memory import check_memory
from margrove.data.source import Content, as_utf8, bad_byte
from margrove.data.table import Table, duplicate_names

_GROWTH = 8  # bytes in memory per byte of text, measured
_CURE = "Write one object per line, or an array of objects."


def read_json(content: Content, options: TextOptions) -> tuple[Table, Callable[[int], int] | None]:
    """Read rows of JSON: the table without a target and, of an object per line, a function that gives the line of a
    row. A key that a row does not have is a missing cell; a column of lists is left out. Raise `InputError` if the text
    is not JSON, or a row is not an object."""
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

    for place, row in enumerate(rows):
        cells = list(_flat(row))
        rows[place] = dict(cells)
        if len(rows[place]) < len(cells):
            raise duplicate_names([name for name, _ in cells], file=content.name)
    names = list(dict.fromkeys(name for row in rows for name in row))
    lists = [name for name in names if any(isinstance(row.get(name), list) for row in rows)]
    names = [name for name in names if name not in lists]
    columns = [[row.get(name) for row in rows] for name in names]
    line_of = None if is_array else lines.__getitem__
    table = table_from_cells(names, columns, source=content.name, missing=options.missing, line_of=line_of)
    return table.with_target(None, *(f"Column {name!r} holds lists and is left out." for name in lists)), line_of


def _flat(row: dict[str, Any], outer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the cells of a row; those of an object in it are called ``outer.inner``."""
    for name, cell in row.items():
        if isinstance(cell, dict):
            yield from _flat(cell, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", cell


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a key occurs twice in an object: {', '.join(repr(name) for name, _ in pairs)}")
    return found
