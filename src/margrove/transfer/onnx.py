"""`SoftmaxClassifier` as ONNX operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from margrove.onnx.prediction import Prediction, linear_classifier, sigmoid, softmax
from margrove.onnx.table import Columns


def softmax_classifier(model: Any, columns: Columns) -> Prediction:
    """Of two classes σ(−f) and σ(f), of more the softmax of the scores."""
    prediction = linear_classifier(model, columns)
    assert prediction.scores is not None
    if len(model.classes_) > 2:
        return replace(prediction, probabilities=softmax(prediction.scores))
    sides = [sigmoid(-prediction.scores), sigmoid(prediction.scores)]
    return replace(prediction, probabilities=columns.graph.joined(sides))
