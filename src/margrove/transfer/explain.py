"""Explanations of the layers on top of a network."""

from __future__ import annotations

from typing import Any

from margrove.explanation import Explanation, Weights


class SoftmaxWeights(Weights):
    """The weights of a last layer."""

    is_probable = True


class FineTunedNetwork(Explanation):
    """A network of which every layer was trained."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.is_probable = model.loss == "softmax"
