"""`TableEncoder` as ONNX operators. The formulas are those of `margrove.data.encoding`."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.advice import Advice
from margrove.data.encoding import Description, width
from margrove.data.text import LEAVE_OUT
from margrove.onnx.graph import GraphValue
from margrove.onnx.table import FIRST_LEVEL, MISSING, Columns
from margrove.store.fault import FaultError


def encoded(encoder: Any, columns: Columns) -> Columns:
    """Numbers first, then indicators, then one block for each category; and then all in the encoder's order."""
    for column in encoder.columns_:
        if column["kind"] == "text":
            raise FaultError(
                f"the column {column['name']!r} is free text, which ONNX cannot split into words as the encoder does",
                Advice(LEAVE_OUT, ", or encode it beforehand with encoder.transform(X) and export the learner alone."),
            )
    starts = np.cumsum([0, *map(width, encoder.columns_)]).tolist()
    placed = list(zip(encoder.columns_, starts[:-1], strict=True))
    numeric = [(column, start) for column, start in placed if column["kind"] in ("numeric", "boolean")]
    blocks, places = _numbers(numeric, columns) if numeric else ([], [])
    for column, start in placed:
        if column["kind"] == "category":
            codes = columns.codes(column["index"], column["levels"])
            wanted = np.arange(FIRST_LEVEL, FIRST_LEVEL + len(column["levels"]))
            if column["missing_seen"]:
                wanted = np.append(wanted, MISSING)
            blocks.append(codes.op("Equal", wanted[None]).cast("double"))
            places += range(start, start + len(wanted))
    together = columns.graph.joined(blocks)
    if places != sorted(places):
        together = together.columns(np.argsort(places).tolist())
    return Columns(together, len(places))


def _numbers(numeric: list[tuple[Description, int]], columns: Columns) -> tuple[list[GraphValue], list[int]]:
    """(x̂ − mean)/scale, and 1 where an indicator says that x is missing; and where their columns stand."""
    fill, mean, scale = (
        np.array([[column[key] for column, _ in numeric]], dtype=np.float64) for key in ("fill", "mean", "scale")
    )
    cells = columns.numbers([column["index"] for column, _ in numeric])
    for column, _ in numeric:
        if column["kind"] == "boolean":
            columns.note_truth(column["index"])
    is_absent = cells.op("IsNaN")
    blocks, places = [is_absent.where((fill - mean) / scale, (cells - mean) / scale)], [start for _, start in numeric]
    indicated = [number for number, (column, _) in enumerate(numeric) if column["indicator"]]
    if indicated:
        blocks.append(is_absent.cast("double").columns(indicated))
        places += [places[number] + 1 for number in indicated]
    return blocks, places
