"""`TableEncoder` as ONNX operators. The formulas are those of `margrove.data.encoding`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from margrove.advice import Advice
from margrove.data.encoding import Description, width
from margrove.data.text import LEAVE_OUT
from margrove.onnx.graph import Value
from margrove.onnx.table import FIRST_LEVEL, MISSING, Columns, MatrixColumns, TableColumns
from margrove.store.fault import FaultError


def encoded(encoder: Any, columns: Columns) -> MatrixColumns:
    """Numbers first, then indicators, then one block for each category; and then all in the encoder's order."""
    for column in encoder.columns_:
        if column["kind"] == "text":
            raise FaultError(
                f"the column {column['name']!r} is free text, and ONNX cannot part it into words as the encoder does",
                Advice(LEAVE_OUT, ", or make its numbers before: encoder.transform(X), and export the learner alone."),
            )
    blocks: list[Value] = []
    order = np.empty(sum(width(column) for column in encoder.columns_), dtype=np.int64)
    starts = np.cumsum([0, *(width(column) for column in encoder.columns_)])
    done = 0

    def put(block: Value, places: Any) -> None:
        nonlocal done
        blocks.append(block)
        order[places] = np.arange(done, done + len(places))
        done += len(places)

    numeric = [
        (column, int(start)) for column, start in zip(encoder.columns_, starts, strict=False) if _is_number(column)
    ]
    if numeric:
        _put_numbers(numeric, columns, put)
    for column, start in zip(encoder.columns_, starts.tolist(), strict=False):
        if not _is_number(column):
            codes = columns.codes(column["index"], column["levels"])
            wanted = np.arange(FIRST_LEVEL, FIRST_LEVEL + len(column["levels"]))
            if column["missing_seen"]:
                wanted = np.append(wanted, MISSING)
            put(codes.op("Equal", wanted[None]).cast("double"), start + np.arange(len(wanted)))
    together = columns.graph.joined(blocks)
    if not np.array_equal(order, np.arange(len(order))):
        together = together.columns(order.tolist())
    return MatrixColumns(together, len(order))


def _put_numbers(numeric: list[tuple[Description, int]], columns: Columns, put: Callable[[Value, Any], None]) -> None:
    """(x̂ − mean)/scale, and 1 where an indicator says that x is missing."""
    fill, mean, scale = (
        np.array([[column[key] for column, _ in numeric]], dtype=np.float64) for key in ("fill", "mean", "scale")
    )
    places = [column["index"] for column, _ in numeric]
    cells = columns.numbers(places)
    if isinstance(columns, TableColumns):
        for column, _ in numeric:
            if column["kind"] == "boolean":
                columns.note_truth(column["index"])
    is_absent = cells.op("IsNaN")
    put(is_absent.where((fill - mean) / scale, (cells - mean) / scale), [start for _, start in numeric])
    told = [number for number, (column, _) in enumerate(numeric) if column["indicator"]]
    if told:
        put(is_absent.cast("double").columns(told), [numeric[number][1] + 1 for number in told])


def _is_number(column: Description) -> bool:
    return column["kind"] in ("numeric", "boolean")
