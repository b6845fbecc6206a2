"""`SoftmaxClassifier` as ONNX operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from margrove.onnx.answer import Answer, linear_classifier, sigmoid, softmax
from margrove.onnx.table import Columns


def softmax_classifier(model: Any, columns: Columns) -> Answer:
    """Of two classes σ(−f) and σ(f), of more the softmax of the scores."""
    answer = linear_classifier(model, columns)
    assert answer.scores is not None
    if len(model.classes_) > 2:
        return replace(answer, probabilities=softmax(answer.scores))
    sides = [sigmoid(-answer.scores), sigmoid(answer.scores)]
    return replace(answer, probabilities=columns.graph.joined(sides))
