"""Explanations of the perceptrons; those of the other linear classifiers are `margrove.explanation.Weights`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.explanation import Explanation, Inputs, Kernels, Learned, Lesson, Weights
from margrove.svm.explain import kernel_words
from margrove.svm.kernels import kernel_of


def explain_perceptron(model: Any) -> Explanation:
    """A perceptron with one weight vector, or with many that vote."""
    return VotedPerceptron(model) if model.variant == "voted" else Weights(model)


class VotedPerceptron(Weights):
    """The weight vectors of a voted perceptron."""

    @property
    def has_margins(self) -> bool:
        """No: a vote has no w."""
        return False

    def data(self, inputs: Callable[[], Inputs]) -> Learned:
        voters = np.diff(self.model.starts_)
        lessons = [Lesson(*side, n_voters=int(n)) for side, n in zip(self._sides(), voters, strict=True)]
        return Learned("votes", tuple(lessons), int(voters.sum()))

    def in_words(self) -> str:
        return f"A vote of {int(np.diff(self.model.starts_).sum()):,} straight boundaries ({self.called})."

    def weights(self, code: int, other: int) -> None:
        return None


class KernelPerceptronRows(Kernels):
    """The rows that a kernel perceptron made mistakes on."""

    @property
    def kernel(self) -> str:
        return kernel_words(self.model)

    def _kernel(self, rows: Any, vectors: Any) -> NDArray[np.float64]:
        return kernel_of(self.model).matrix(rows, vectors)
