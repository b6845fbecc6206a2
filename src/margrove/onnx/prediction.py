"""The tensors that a learner predicts, and the formulas that several families use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.onnx.graph import GraphValue, check_size
from margrove.onnx.table import Columns

_BYTES = 8  # of a double


@dataclass(frozen=True)
class Prediction:
    """Tensors with a row for each row of the table: of a regression only ``value``, of a classifier the others, as far
    as it has them."""

    classes: NDArray[Any] | None = None
    place: GraphValue | None = None  # (n,) int64, of the label among the classes
    scores: GraphValue | None = None  # (n, m): `decision_function`, as one column where that is a vector
    n_scores: int = 0  # m
    probabilities: GraphValue | None = None  # (n, K)
    value: GraphValue | None = None  # (n, 1)


def linear_classifier(model: Any, columns: Columns) -> Prediction:
    """Any classifier that goes by the sign, or the largest, of X wᵀ + b."""
    return decided(model.classes_, plane(columns.numbers(), model.coef_, model.intercept_))


def linear_regression(model: Any, columns: Columns) -> Prediction:
    """Any regression with the values X wᵀ + b."""
    return Prediction(value=plane(columns.numbers(), model.coef_, model.intercept_))


def plane(points: GraphValue, coef: Any, intercept: Any) -> GraphValue:
    """X wᵀ + b of each machine, (n, machines)."""
    check_size(_BYTES * int(np.prod(coef.shape)))
    weights = np.atleast_2d(coef.toarray() if sp.issparse(coef) else coef)
    return points @ weights.T + np.atleast_1d(np.asarray(intercept, np.float64))


def largest(scores: GraphValue) -> GraphValue:
    """The place of the largest score of each row, the first of equals."""
    return scores.op("ArgMax", axis=1, keepdims=0, select_last_index=0)


def decided(classes: NDArray[Any], scores: GraphValue, *, is_zero_second: bool = False) -> Prediction:
    """A classifier that goes by its scores: of one column, > 0 is the second class (or ≥ 0, as LIBSVM has it)."""
    if len(classes) != 2:
        return Prediction(classes, largest(scores), scores, len(classes))
    is_second = scores >= 0.0 if is_zero_second else scores > 0.0
    return Prediction(classes, is_second.cast("int64").flat(), scores, 1)


def one_hot(place: GraphValue, n_classes: int) -> GraphValue:
    """(n, K) truth values: which class each row's place is."""
    return place.upright().op("Equal", np.arange(n_classes)[None])


def by_sides(for_it: GraphValue, against: GraphValue, code: NDArray[Any]) -> GraphValue:
    """Sums over the machines of a code (K, machines): of ``for_it`` where a class is +1, of ``against`` where −1."""
    return for_it @ (code.T > 0).astype(np.float64) + against @ (code.T < 0).astype(np.float64)


def sigmoid(z: GraphValue) -> GraphValue:
    """σ(z) = 1/(1 + e^−z)."""
    return 1.0 / ((-z).exp() + 1.0)


def log_sigmoid(z: GraphValue) -> GraphValue:
    """log σ(z) = min(z, 0) − log(1 + e^−|z|)."""
    return z.op("Min", 0.0) - ((-z.op("Abs")).exp() + 1.0).op("Log")


def softmax(z: GraphValue) -> GraphValue:
    """e^z / Σ e^z of each row."""
    return shares((z - z.op("ReduceMax", np.array([1]))).exp())


def shares(p: GraphValue) -> GraphValue:
    """p / Σp of each row."""
    return p / p.sum()
