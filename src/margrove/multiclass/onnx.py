"""Schemes for many classes as ONNX operators: the values of their machines, and the decoding of these.

The formulas are those of `margrove.multiclass.decoding`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.multiclass.classifiers import BitStringClassifier, OneVsOneClassifier, OneVsRestClassifier
from margrove.multiclass.decoding import CERTAIN, MOST
from margrove.onnx.graph import GraphValue
from margrove.onnx.model import written
from margrove.onnx.prediction import Prediction, by_sides, decided, log_sigmoid, sigmoid, softmax
from margrove.onnx.table import Columns
from margrove.store.fault import FaultError
from margrove.svm.onnx import coupled, machine_values, positive_sides, scores_of_votes, with_law

Loss = Callable[[GraphValue], GraphValue]

_LOSSES: dict[str, Loss] = {
    "hamming": lambda z: (1.0 - z.op("Sign")) * 0.5,
    "hinge": lambda z: (1.0 - z).op("Max", 0.0),
    "exponential": lambda z: (-z).op("Clip", -MOST, MOST).exp(),
    "linear": lambda z: -z,
}
_AT_ZERO = {"hamming": 0.5, "hinge": 1.0, "exponential": 1.0, "linear": 0.0}


def coded_classifier(model: Any, columns: Columns) -> Prediction:
    """`OneVsRestClassifier`, `OneVsOneClassifier` and `BitStringClassifier`."""
    if not hasattr(model, "code_"):
        kind = "several labels per row" if model._machines.layout.has_several else "a single class"
        raise FaultError(
            f"{type(model).__name__} of {kind} cannot be exported to ONNX",
            "Export the estimators_ one by one; a constant needs no model.",
        )
    values, q = _machines(model, columns)
    prediction = decided(model.classes_, _scores(model, values))
    if q is None or prediction.place is None:
        return prediction
    return replace(prediction, probabilities=_probabilities(model, q, prediction.place))


def _machines(model: Any, columns: Columns) -> tuple[GraphValue, GraphValue | None]:
    """Return the value of each machine, and the probability of its positive side if it has one; both (n, machines)."""
    machines = model._machines
    if machines.is_shared:
        svc = machines.estimators[0]
        values = machine_values(svc, columns.numbers())
        has_probabilities = svc._is_calibrated and svc._calibration is not None
        q = sigmoid(positive_sides(svc, values)) if has_probabilities else None
        if machines.flips:
            return -values, None if q is None else 1.0 - q
        return values, q
    predictions = [written(each, columns) for each in machines.estimators]
    sides = [
        prediction.probabilities.columns([1]) for prediction in predictions if prediction.probabilities is not None
    ]
    q = columns.graph.joined(sides) if len(sides) == len(predictions) else None
    return columns.graph.joined([_value(prediction) for prediction in predictions]), q


def _value(prediction: Prediction) -> GraphValue:
    """As `margrove.multiclass.machines.value_of`: every classifier here has scores or probabilities."""
    if prediction.scores is not None:
        return prediction.scores
    assert prediction.probabilities is not None
    return prediction.probabilities.columns([1]) - 0.5


def _scores(model: Any, values: GraphValue) -> GraphValue:
    """`decision_function`."""
    if type(model) is BitStringClassifier:
        scores = -_losses(model.code_, values, _LOSSES[model.decoding], _AT_ZERO[model.decoding])
        return scores if len(model.classes_) != 2 else scores.columns([1]) - scores.columns([0])
    if type(model) is OneVsRestClassifier or len(model.classes_) == 2:
        return values
    return scores_of_votes(values, values > 0.0, model.code_)


def _losses(code: Any, values: GraphValue, loss: Loss, at_zero: float) -> GraphValue:
    """Return the loss of each class's code word, (n, K)."""
    unseen: NDArray[np.float64] = at_zero * (code == 0).sum(axis=1)
    return by_sides(loss(values), loss(-values), code) + unseen


def _probabilities(model: Any, q: GraphValue, place: GraphValue) -> GraphValue:
    """Return `predict_proba`, given the probabilities of the machines' positive sides."""
    k, joined = len(model.classes_), q.graph.joined
    if type(model) is OneVsRestClassifier:
        if k == 2:
            q = joined([1.0 - q, q])
        total = q.sum()
        is_there = total > 0.0
        return with_law(is_there.where(q / is_there.where(total, 1.0), 1 / k), place, k)
    q = q.op("Clip", CERTAIN, 1 - CERTAIN)
    if type(model) is OneVsOneClassifier:
        first = 1.0 - q
        return with_law(joined([first, 1.0 - first]) if k == 2 else coupled(first, k), place, k)
    log_odds = (q / (1.0 - q)).op("Log")
    losses = _losses(model.code_, log_odds, lambda z: -log_sigmoid(z), float(np.log(2)))
    return with_law(softmax(-losses), place, k)
