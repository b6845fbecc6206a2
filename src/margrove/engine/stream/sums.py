"""Sums over the rows of a pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.linear_svm.problem import is_squared
from margrove.linear_svm.stream_problem import StreamProblem

Array = NDArray[np.float64]


@dataclass
class DualSums:
    """Sums of which D is made. Where the intercept is free there are two sides, β > 0 and β < 0: scaled each by a share
    of their own, they meet Σ β = 0."""

    v: Array  # (sides, width), Σ β x
    total: Array  # (sides,), Σ β
    linear: Array  # (sides,), Σ z β − ε|β| − β f_centre
    square: Array  # (sides,), Σ β²/(4C), of a squared loss

    @classmethod
    def none(cls, problem: StreamProblem, width: int) -> DualSums:
        """Return the sums over no rows."""
        sides = 2 if problem.is_free else 1
        return cls(np.zeros((sides, width)), np.zeros(sides), np.zeros(sides), np.zeros(sides))

    def add(
        self, problem: StreamProblem, points: Matrix, gain: Array, C: Array, beta: Array, sign: float = 1.0
    ) -> None:
        """Add some rows, or subtract them (``sign`` −1); ``gain`` is z − f_centre."""
        for side, part in enumerate([np.maximum(beta, 0), np.minimum(beta, 0)] if problem.is_free else [beta]):
            if not part.any():
                continue
            self.v[side] += sign * (points.T @ part)
            self.total[side] += sign * part.sum()
            self.linear[side] += sign * float((gain * part - problem.epsilon * np.abs(part)).sum())
            if is_squared(problem.loss):
                squares = np.divide(part**2, 4 * C, out=np.zeros_like(part), where=C > 0)
                self.square[side] += sign * float(squares.sum())
