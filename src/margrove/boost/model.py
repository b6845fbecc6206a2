"""The result of boosting: a grove of small trees, and the vote of each. Nothing here learns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.boost.problem import alpha, normaliser
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel

_SHOWN_ROUNDS = 10  # the first and the last so many are printed


@dataclass(frozen=True, eq=False, repr=False)
class Rounds:
    """The numbers of each round, as arrays with one entry per round. Printed as a table of the first and the last ones.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import AdaBoostClassifier
    >>> AdaBoostClassifier(n_estimators=3).fit([[1.0], [2.0], [3.0]], ["out", "in", "out"]).rounds_
    round   error   alpha    loss  training error
        1  0.3333  0.3466  0.9428          0.3333
        2    0.25  0.5493  0.8165          0.3333
        3  0.1667  0.8047  0.6086               0
    """

    error: NDArray[np.float64]  # ε_t
    vote: NDArray[np.float64]  # a_t
    training_error: NDArray[np.float64]  # share of the first weights on rows that the votes so far get wrong
    validation_error: NDArray[np.float64] | None = None  # the same on rows held out
    n_classes: int = 2

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.error)

    @property
    def alpha(self) -> NDArray[np.float64]:
        """α_t."""
        return np.array([alpha(vote, self.n_classes) for vote in self.vote.tolist()])

    @property
    def normaliser(self) -> NDArray[np.float64]:
        """Z_t. For a perfect learner, whose vote is 1 by definition, that of its vote."""
        pairs = zip(self.error.tolist(), self.vote.tolist(), strict=True)
        return np.array([normaliser(error, vote, self.n_classes) for error, vote in pairs])

    @property
    def loss(self) -> NDArray[np.float64]:
        """The mean exponential loss after each round: Z_1 … Z_t."""
        with np.errstate(over="ignore"):  # a rate above 2 may make it overflow to infinity
            return np.asarray(np.cumprod(self.normaliser), dtype=np.float64)

    @property
    def bound(self) -> NDArray[np.float64]:
        """Π 2 √(ε (1 − ε)): the loss for two classes if each vote is the best."""
        return np.cumprod(2 * np.sqrt(self.error * (1 - self.error)))

    @property
    def best_round(self) -> int:
        """The first round with the smallest error on held-out rows; the last round without such rows."""
        if self.validation_error is None:
            return self.n_rounds
        return int(np.argmin(self.validation_error)) + 1

    def __repr__(self) -> str:
        columns = {
            "error": self.error,
            "alpha": self.alpha,
            "loss": self.loss,
            "training error": self.training_error,
        }
        if self.validation_error is not None:
            columns["error on held-out rows"] = self.validation_error
        shown = list(range(self.n_rounds))
        if self.n_rounds > 2 * _SHOWN_ROUNDS:
            shown = shown[:_SHOWN_ROUNDS] + shown[-_SHOWN_ROUNDS:]
        lines = [["round", *columns]]
        lines += [[str(t + 1), *(f"{values[t]:.4g}" for values in columns.values())] for t in shown]
        if len(shown) < self.n_rounds:
            lines.insert(_SHOWN_ROUNDS + 1, ["…"] * (len(columns) + 1))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)

    def first(self, n_rounds: int) -> Rounds:
        """Return the first rounds."""
        held_out = None if self.validation_error is None else self.validation_error[:n_rounds]
        error, vote, training_error = self.error[:n_rounds], self.vote[:n_rounds], self.training_error[:n_rounds]
        return Rounds(error, vote, training_error, held_out, self.n_classes)


@dataclass(frozen=True, eq=False)
class BoostModel:
    """A grove whose trees vote."""

    grove: Grove
    vote: NDArray[np.float64]  # (T,) a_t
    n_classes: int


@dataclass(frozen=True, eq=False)
class BoostSolution:
    """The trees that an engine has boosted, and why it stopped: none if the first was no better than chance."""

    model: BoostModel
    rounds: Rounds
    status: Status = Status.CONVERGED


@dataclass(frozen=True, eq=False)
class R2Solution:
    """The trees of numbers that an engine has boosted, the error and the vote of each, and why it stopped."""

    trees: list[TreeModel]
    errors: list[float]
    votes: list[float]
    status: Status = Status.CONVERGED
