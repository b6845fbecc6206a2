"""Schemes for many classes as operators: what the machines say, and how that is decoded.

The formulas are those of `margrove.multiclass.decoding`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from margrove.multiclass.bit_string import BitStringClassifier
from margrove.multiclass.decoding import CERTAIN, MOST
from margrove.multiclass.one_vs_one import OneVsOneClassifier
from margrove.multiclass.one_vs_rest import OneVsRestClassifier
from margrove.store.onnx_answer import Answer, decided, log_sigmoid, sigmoid, softmax
from margrove.store.onnx_boost import Written
from margrove.store.onnx_graph import Graph
from margrove.store.onnx_kernel import machine_values
from margrove.store.onnx_table import Columns
from margrove.store.onnx_votes import coupled, positive_sides, with_law

Loss = Callable[[Graph, str], str]

_LOSSES: dict[str, Loss] = {
    "hamming": lambda graph, z: graph.op("Mul", graph.op("Sub", 1.0, graph.op("Sign", z)), 0.5),
    "hinge": lambda graph, z: graph.op("Max", graph.op("Sub", 1.0, z), 0.0),
    "exponential": lambda graph, z: graph.op("Exp", graph.op("Clip", graph.op("Neg", z), -MOST, MOST)),
    "linear": lambda graph, z: graph.op("Neg", z),
}
_AT_ZERO = {"hamming": 0.5, "hinge": 1.0, "exponential": 1.0, "linear": 0.0}


def coded_classifier(graph: Graph, model: Any, columns: Columns, written: Written) -> Answer:
    """`OneVsRestClassifier`, `OneVsOneClassifier` and `BitStringClassifier`."""
    values, q = _machines(graph, model, columns, written)
    answer = decided(graph, model.classes_, _scores(graph, model, values))
    if q is None:
        return answer
    return replace(answer, probabilities=_probabilities(graph, model, q, str(answer.place)))


def _machines(graph: Graph, model: Any, columns: Columns, written: Written) -> tuple[str, str | None]:
    """What each machine says, and gives to its positive side if it has probabilities; both (n, machines)."""
    machines = model._machines
    if machines.is_shared:
        svc = machines.estimators[0]
        values = machine_values(graph, svc, columns.numbers())
        has_probabilities = svc._is_calibrated and hasattr(svc, "probA_")
        q = sigmoid(graph, positive_sides(graph, svc, values)) if has_probabilities else None
        if machines.flips:
            return graph.op("Neg", values), None if q is None else graph.op("Sub", 1.0, q)
        return values, q
    answers = [written(graph, each, columns) for each in machines.estimators]
    given = [answer.probabilities for answer in answers]
    shares = [graph.columns(each, [1]) for each in given if each is not None]
    q = graph.joined(shares) if len(shares) == len(answers) else None
    return graph.joined([_value(graph, answer) for answer in answers]), q


def _value(graph: Graph, answer: Answer) -> str:
    """As `margrove.multiclass.machines.value_of`: every classifier here has scores or probabilities."""
    if answer.scores is not None:
        return answer.scores
    assert answer.probabilities is not None
    return graph.op("Sub", graph.columns(answer.probabilities, [1]), 0.5)


def _scores(graph: Graph, model: Any, values: str) -> str:
    """`decision_function`."""
    if type(model) is BitStringClassifier:
        loss = _LOSSES[model.decoding]
        scores = graph.op("Neg", _losses(graph, model.code_, values, loss, _AT_ZERO[model.decoding]))
        if len(model.classes_) != 2:
            return scores
        return graph.op("Sub", graph.columns(scores, [1]), graph.columns(scores, [0]))
    if type(model) is OneVsRestClassifier or len(model.classes_) == 2:
        return values
    signs = model.code_.T.astype(np.float64)
    won = graph.op("Where", graph.op("Greater", values, 0.0), 1.0, -1.0)
    known = (model.code_ != 0).sum(axis=1).astype(np.float64)
    count = graph.op("Mul", graph.op("Add", graph.op("MatMul", won, signs), known[None]), 0.5)
    total = graph.op("MatMul", values, signs)
    share = graph.op("Mul", graph.op("Add", graph.op("Abs", total), 1.0), 3.0)
    return graph.op("Add", count, graph.op("Div", total, share))


def _losses(graph: Graph, code: Any, values: str, loss: Loss, at_zero: float) -> str:
    """What the word of each class pays, (n, K)."""
    paid = graph.op(
        "Add",
        graph.op("MatMul", loss(graph, values), (code.T > 0).astype(np.float64)),
        graph.op("MatMul", loss(graph, graph.op("Neg", values)), (code.T < 0).astype(np.float64)),
    )
    return graph.op("Add", paid, at_zero * (code == 0).sum(axis=1).astype(np.float64)[None])


def _probabilities(graph: Graph, model: Any, q: str, place: str) -> str:
    """`predict_proba` of what the machines give to their positive sides."""
    k = len(model.classes_)
    if type(model) is OneVsRestClassifier:
        if k == 2:
            q = graph.joined([graph.op("Sub", 1.0, q), q])
        total = graph.op("ReduceSum", q, np.array([1]))
        is_there = graph.op("Greater", total, 0.0)
        p = graph.op("Where", is_there, graph.op("Div", q, graph.op("Where", is_there, total, 1.0)), 1 / k)
        return with_law(graph, p, place, k)
    q = graph.op("Clip", q, CERTAIN, 1 - CERTAIN)
    if type(model) is OneVsOneClassifier:
        first = graph.op("Sub", 1.0, q)
        p = graph.joined([first, graph.op("Sub", 1.0, first)]) if k == 2 else coupled(graph, first, k)
        return with_law(graph, p, place, k)
    log_odds = graph.op("Log", graph.op("Div", q, graph.op("Sub", 1.0, q)))

    def surprise(graph: Graph, z: str) -> str:
        return graph.op("Neg", log_sigmoid(graph, z))

    losses = _losses(graph, model.code_, log_odds, surprise, float(np.log(2)))
    return with_law(graph, softmax(graph, graph.op("Neg", losses)), place, k)
