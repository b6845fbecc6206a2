"""Linear SVMs whose rows come in chunks: the problem of `margrove.linear_svm.problem` (penalty l2), with targets and
costs that come with the rows.

Each machine may have a *centre* (w₀, b₀) in place of 0, from which its weights are counted:

    P(w, b) = ½‖w − w₀‖² + ½((b − b₀)/s)² + Σ C_i ℓ(z_i, f(x_i))
    D(β) = Σ (term of β_i − β_i f₀(x_i)) − ½‖v‖² − ½(s u)²          best: w = w₀ + v, b = b₀ + s² u

With a centre that is Σ β x of rows seen before, D is what these rows add to the dual value of all: one step of block
minimisation (Yu et al., 2010), which is what ``partial_fit`` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import Chunked, Matrix, Partitioned, RowsProblem
from margrove.linear_svm.problem import Loss, is_of_signs, relative_gap
from margrove.status import Status


@dataclass(frozen=True)
class RowBlock:
    """Some rows, as each machine sees them."""

    X: Matrix  # (m, d), dense or CSR, float32 or float64
    target: NDArray[np.float64]  # (machines, m)
    cost: NDArray[np.float64]  # (machines, m)


@dataclass(frozen=True)
class StreamProblem(RowsProblem["tuple[StreamSolution, ...]"]):
    """Some machines on the same rows."""

    rows: Chunked[RowBlock] | Partitioned  # every pass gives the same rows in the same order
    primal_at_centre: NDArray[np.float64]  # (machines,), P where every machine begins
    spread: NDArray[np.float64]  # (machines,), about how far targets lie from each other: 1 for signs
    loss: Loss = "squared_hinge"
    intercept: float = 1.0  # s: 0 for none, ∞ for a free one
    epsilon: float = 0.0
    tol: float = 1e-4  # of the gap, relative to the primal value
    max_passes: int = 100
    centre: NDArray[np.float64] | None = None  # (machines, d + 1), (w₀, b₀); None is 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_of_signs(self.loss):
            object.__setattr__(self, "epsilon", 0.0)  # the hinges have none

    @property
    def n_machines(self) -> int:
        """One for two classes and for a regression, otherwise one per class."""
        return len(self.primal_at_centre)

    @property
    def has_intercept(self) -> bool:
        """True if there is a b."""
        return self.intercept > 0

    @property
    def is_free(self) -> bool:
        """True if b is not penalised, so that Σ β = 0."""
        return math.isinf(self.intercept)


@dataclass(frozen=True)
class StreamSolution:
    """One machine as it was left, with the two values whose difference is its proof."""

    w: NDArray[np.float64]  # (d,)
    b: float
    # (steps, d + 2): (w_j, b_j, κ_j), which give β (see `proximal`); no steps where β is 0 or the loss squared, None
    # where β is not made of steps.
    steps: NDArray[np.float64] | None
    primal: float
    dual: float
    n_iter: int  # passes over the rows
    status: Status
    solver: str
    w_dual: NDArray[np.float64]  # (d,), the weights that β of the dual value gives
    b_dual: float
    beta: NDArray[np.float64] | None = None  # (n,), of the dual value, within its bounds, where it was kept

    @property
    def gap(self) -> float:
        """P − D, relative to P; 0 where both are 0. β = 0 has D = 0."""
        return relative_gap(self.primal, max(self.dual, 0.0))
