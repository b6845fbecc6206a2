"""What a learner's operators come to: names of tensors, all of them with a row for each row of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store.onnx_graph import Graph


@dataclass(frozen=True)
class Answer:
    """What a learner says. Of a regression only ``value``; of a classifier the others, as far as it has them."""

    classes: NDArray[Any] | None = None
    place: str | None = None  # (n,) int64, of the label among the classes
    scores: str | None = None  # (n, m): `decision_function`, as one column where that is a vector
    n_scores: int = 0  # m
    probabilities: str | None = None  # (n, K)
    value: str | None = None  # (n, 1)


def largest(graph: Graph, scores: str) -> str:
    """The place of the largest score of each row, the first of equals."""
    return graph.op("ArgMax", scores, axis=1, keepdims=0, select_last_index=0)


def decided(graph: Graph, classes: NDArray[Any], scores: str, *, is_zero_second: bool = False) -> Answer:
    """A classifier that goes by its scores: of one column, > 0 is the second class (or ≥ 0, as LIBSVM has it)."""
    if len(classes) != 2:
        return Answer(classes, largest(graph, scores), scores, len(classes))
    is_second = graph.op("GreaterOrEqual" if is_zero_second else "Greater", scores, 0.0)
    return Answer(classes, graph.flat(graph.cast(is_second, "int64")), scores, 1)


def one_hot(graph: Graph, place: str, n_classes: int) -> str:
    """(n, K) truth values: which class each row's place is."""
    row = graph.op("Unsqueeze", place, np.array([1]))
    return graph.op("Equal", row, np.arange(n_classes)[None])


def sigmoid(graph: Graph, z: str) -> str:
    """σ(z) = 1/(1 + e^−z)."""
    return graph.op("Div", 1.0, graph.op("Add", graph.op("Exp", graph.op("Neg", z)), 1.0))


def log_sigmoid(graph: Graph, z: str) -> str:
    """log σ(z) = min(z, 0) − log(1 + e^−|z|)."""
    small = graph.op("Exp", graph.op("Neg", graph.op("Abs", z)))
    return graph.op("Sub", graph.op("Min", z, 0.0), graph.op("Log", graph.op("Add", small, 1.0)))


def softmax(graph: Graph, z: str) -> str:
    """e^z / Σ e^z of each row."""
    top = graph.op("ReduceMax", z, np.array([1]))
    power = graph.op("Exp", graph.op("Sub", z, top))
    return shares(graph, power)


def shares(graph: Graph, p: str) -> str:
    """p / Σp of each row."""
    return graph.op("Div", p, graph.op("ReduceSum", p, np.array([1])))
