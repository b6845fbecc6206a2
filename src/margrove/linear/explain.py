"""Explanations of the perceptrons; those of the other linear classifiers are `margrove.explanation.Weights`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from margrove.explanation import Explanation, Inputs, MachineSummary, ModelSummary, Weights


def explain_perceptron(model: Any) -> Explanation:
    """Explain a perceptron with one weight vector, or with many that vote."""
    return VotedPerceptron(model) if model.variant == "voted" else Weights(model)


class VotedPerceptron(Weights):
    """The explanation of a voted perceptron."""

    has_margins = False  # a vote has no w

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        voters = np.diff(self.model.starts_)
        machines = [MachineSummary(*side, n_voters=int(n)) for side, n in zip(self._sides(), voters, strict=True)]
        return ModelSummary("votes", tuple(machines), int(voters.sum()))

    def description(self) -> str:
        return f"A vote of {int(np.diff(self.model.starts_).sum()):,} linear boundaries ({self.called})."

    def weights(self, code: int, other: int) -> None:
        return None
