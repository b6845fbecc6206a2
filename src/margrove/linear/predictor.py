"""Linear models and the kernel perceptron in a program that only predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.given import Given
from margrove.store.fault import FaultError
from margrove.store.saved import Rule, Saved
from margrove.svm.predictor import Values, values_of


def linear_classifier(saved: Saved) -> Rule:
    """Return the rule of one plane for two classes, one for each of more."""
    return _classifier(saved, _planes(saved))


def perceptron(saved: Saved) -> Rule:
    """Return the rule of Perceptron. The voted one keeps all its weight vectors, and is for `margrove.load`."""
    if saved.parameter("variant") == "voted":
        raise FaultError("it is a voted perceptron, which a Predictor does not serve", "Use margrove.load.")
    return linear_classifier(saved)


def kernel_perceptron(saved: Saved) -> Rule:
    """Return the rule of KernelPerceptron."""
    return _classifier(saved, values_of(saved))


def linear_regression(saved: Saved) -> Rule:
    """Return the rule of one plane of numbers."""
    values = _planes(saved)
    return saved.rule(lambda given: values(given).ravel())


def _classifier(saved: Saved, values: Values) -> Rule:
    classes = saved.classes

    def decision_function(given: Given) -> NDArray[np.float64]:
        return values(given).ravel() if len(classes) == 2 else values(given)

    def predict(given: Given) -> NDArray[Any]:
        decision = decision_function(given)
        chosen = (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)
        return np.asarray(classes[chosen])

    return saved.rule(predict, decision_function, classes=classes)


def _planes(saved: Saved) -> Values:
    """Return w·x + b of each machine."""
    coef, intercept = np.atleast_2d(saved.array("coef_")), saved.array("intercept_")
    return lambda given: np.asarray(given.matrix() @ coef.T + intercept, dtype=np.float64)
