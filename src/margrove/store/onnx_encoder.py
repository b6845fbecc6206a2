"""What stands before a learner in a pipeline, as operators: `TableEncoder`, `ImpuritySelector`, scikit-learn's scalers.

The formulas are those of `margrove.data.encoding`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from margrove.advice import Advice
from margrove.data.encoder import TableEncoder
from margrove.data.encoding import Description, width
from margrove.data.text import LEAVE_OUT
from margrove.select.selector import ImpuritySelector
from margrove.store.fault import FaultError
from margrove.store.onnx_graph import Graph
from margrove.store.onnx_table import FIRST_LEVEL, MISSING, Columns, MatrixColumns, TableColumns


def transformed(graph: Graph, step: Any, columns: Columns) -> Columns:
    """The columns after one step of a pipeline."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if type(step) is TableEncoder:
        return _encoded(graph, step, columns)
    if type(step) is ImpuritySelector:
        return columns.select(np.flatnonzero(step.support_).tolist())
    if type(step) in _SCALERS:
        shift, scale = _SCALERS[type(step)](step)
        scaled = graph.op("Div", graph.op("Sub", columns.numbers(), shift), scale)
        if getattr(step, "clip", False):
            low, high = step.feature_range
            scaled = graph.op("Clip", scaled, float(low), float(high))
        # Of a single column onnxruntime would draw the scale into the product that follows, as float32; not past this.
        scaled = graph.op("Max", scaled, -np.inf)
        return MatrixColumns(graph, scaled, columns.width)
    raise FaultError(
        f"the step {type(step).__name__} of the pipeline has no form in ONNX here",
        f"Those that have: TableEncoder, ImpuritySelector, {', '.join(each.__name__ for each in _SCALERS)}.",
    )


def _rows(values: Any, otherwise: float) -> Any:
    return np.array([otherwise]) if values is None else np.asarray(values, dtype=np.float64)


# (x − shift)/scale of each. scikit-learn's scale_ of MinMaxScaler multiplies, and its min_ is added after.
_SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (_rows(step.mean_ if step.with_mean else None, 0.0), _rows(step.scale_, 1.0)),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, 1 / step.scale_),
    MaxAbsScaler: lambda step: (np.zeros(1), _rows(step.scale_, 1.0)),
    RobustScaler: lambda step: (_rows(step.center_, 0.0), _rows(step.scale_, 1.0)),
}


def _encoded(graph: Graph, encoder: TableEncoder, columns: Columns) -> MatrixColumns:
    """Numbers first, then indicators, then one block for each category; and then all in the encoder's order."""
    for column in encoder.columns_:
        if column["kind"] == "text":
            raise FaultError(
                f"the column {column['name']!r} is free text, and ONNX cannot part it into words as the encoder does",
                Advice(LEAVE_OUT, ", or make its numbers before: encoder.transform(X), and export the learner alone."),
            )
    blocks: list[str] = []
    order = np.empty(sum(width(column) for column in encoder.columns_), dtype=np.int64)
    starts = np.cumsum([0, *(width(column) for column in encoder.columns_)])
    done = 0

    def put(block: str, places: Any) -> None:
        nonlocal done
        blocks.append(block)
        order[places] = np.arange(done, done + len(places))
        done += len(places)

    numeric = [
        (column, int(start)) for column, start in zip(encoder.columns_, starts, strict=False) if _is_number(column)
    ]
    if numeric:
        _put_numbers(graph, numeric, columns, put)
    for column, start in zip(encoder.columns_, starts.tolist(), strict=False):
        if not _is_number(column):
            codes = columns.codes(column["index"], column["levels"])
            wanted = np.arange(FIRST_LEVEL, FIRST_LEVEL + len(column["levels"]))
            if column["missing_seen"]:
                wanted = np.append(wanted, MISSING)
            put(graph.cast(graph.op("Equal", codes, wanted[None]), "double"), start + np.arange(len(wanted)))
    together = graph.joined(blocks)
    if not np.array_equal(order, np.arange(len(order))):
        together = graph.columns(together, order.tolist())
    return MatrixColumns(graph, together, len(order))


def _put_numbers(
    graph: Graph, numeric: list[tuple[Description, int]], columns: Columns, put: Callable[[str, Any], None]
) -> None:
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
    is_absent = graph.op("IsNaN", cells)
    scaled = graph.op("Div", graph.op("Sub", cells, mean), scale)
    put(graph.op("Where", is_absent, (fill - mean) / scale, scaled), [start for _, start in numeric])
    told = [number for number, (column, _) in enumerate(numeric) if column["indicator"]]
    if told:
        indicators = graph.columns(graph.cast(is_absent, "double"), told)
        put(indicators, [numeric[number][1] + 1 for number in told])


def _is_number(column: Description) -> bool:
    return column["kind"] in ("numeric", "boolean")
