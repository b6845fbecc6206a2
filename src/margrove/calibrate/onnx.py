"""A calibrated classifier as ONNX operators: those of its estimator, the calibration, and the law or the factors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from margrove.onnx.model import written
from margrove.onnx.prediction import Prediction, largest, sigmoid, softmax
from margrove.onnx.table import Columns
from margrove.svm.onnx import with_law


def calibrated_classifier(model: Any, columns: Columns) -> Prediction:
    """`CalibratedClassifier`."""
    predicted, k = written(model.estimator_, columns), len(model.classes_)
    scores = predicted.scores
    if scores is None:  # as `margrove.calibrate.probability.scores_of`
        assert predicted.probabilities is not None
        scores = predicted.probabilities.columns([1]) if k == 2 else predicted.probabilities
    z = scores * model.slopes_ + model.intercepts_
    p = columns.graph.joined([sigmoid(-z), sigmoid(z)]) if k == 2 else softmax(z)
    if hasattr(model, "class_factors_"):
        return Prediction(predicted.classes, largest(p * model.class_factors_), probabilities=p)
    assert predicted.place is not None
    return replace(predicted, scores=None, n_scores=0, probabilities=with_law(p, predicted.place, k))
