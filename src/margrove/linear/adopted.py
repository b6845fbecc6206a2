"""Convert fitted perceptrons to scikit-learn."""

from __future__ import annotations

from typing import Any

from margrove.errors import InputError
from margrove.store.adoption import with_parameters_of


def to_sklearn(model: Any, estimator: type) -> Any:
    """Return our perceptron as scikit-learn's, which predicts by one w: the last one or the average."""
    if model.variant == "voted":
        cure = 'Fit with variant="averaged", which predicts nearly the same.'
        raise InputError("a voted perceptron predicts by many weight vectors, and scikit-learn's has one", cure=cure)
    return with_parameters_of(model, estimator)
