"""Perceptrons as ONNX operators."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from margrove.onnx.graph import GraphValue
from margrove.onnx.prediction import Prediction, decided, linear_classifier, plane
from margrove.onnx.table import Columns
from margrove.svm.onnx import machine_values


def perceptron(model: Any, columns: Columns) -> Prediction:
    """`Perceptron`."""
    if model.variant == "voted":
        return decided(model.classes_, _votes(model, columns.numbers()))
    return linear_classifier(model, columns)


def kernel_perceptron(model: Any, columns: Columns) -> Prediction:
    """`KernelPerceptron`."""
    return decided(model.classes_, machine_values(model, columns.numbers()))


def _votes(model: Any, points: GraphValue) -> GraphValue:
    """Of the voted perceptron: Σ votes · sign(x·w + b) / Σ votes over the vectors that it passed through."""
    machines = []
    for start, stop in pairwise(model.starts_.tolist()):
        w, votes = model.prototypes_[start:stop], model.votes_[start:stop].astype(np.float64)
        if len(w) == 0:  # it never made a mistake, and has no vector
            w, votes = np.zeros((1, model.n_features_in_ + 1)), np.ones(1)
        sides = plane(points, w[:, :-1], w[:, -1]).op("Sign")
        machines.append(sides @ (votes[:, None] / max(1.0, votes.sum())))
    return points.graph.joined(machines)
