"""The problem of AdaBoost, as data and formulas, without a solver.

Given n rows of K classes and weights w_i > 0 that sum to one, rounds t = 1, 2, … each

1. fit a weak learner T_t to the rows with the weights w,
2. take its weighted error  ε_t = Σ_i w_i [T_t(x_i) ≠ y_i],
3. give it the vote  a_t = ν (ln((1 − ε_t)/ε_t) + ln(K − 1))  (`vote`), ν the learning rate,
4. multiply the weight of every row by a factor and divide by Z_t, so that they sum to one again:

       right  exp(−(K − 1)/K · a_t)      wrong  exp(a_t / K)      Z_t = (1 − ε_t) · right + ε_t · wrong.

A row is given the class of the largest sum of votes, the first of equals: sums that differ by less than `EQUAL_VOTES`
of all votes are equal (SAMME; Zhu, Zou, Rosset, Hastie 2009). For two classes coded ±1 this is the textbook's sign of
Σ α_t T_t with α_t = a_t/2 = ½ ln((1 − ε_t)/ε_t) and w_i ← w_i exp(−α_t y_i T_t(x_i))/Z_t.
For K classes α_t = (K − 1)²/K · a_t where T_t is the vector with 1 at its class and −1/(K − 1) elsewhere.

The mean exponential loss  Σ_i w_i⁰ exp(−y_i·f(x_i)/K), f = Σ α_t T_t, is the product of the Z_t: an identity, for any
K and ν. For ν = 1 each α_t makes Z_t as small as it can be, for K = 2 to 2 √(ε_t (1 − ε_t)). For two classes a row that
is misclassified has y f ≤ 0, so the share of such rows is at most Π Z_t; for more classes that is not so.

Rounds end with the first status (`margrove.status`) of these that is true:

=======================  ==============================================================================================
perfect_learner          ε_t = 0: this learner alone is right on every row. It gets the vote 1 and is the last
no_better_than_chance    ε_t ≥ 1 − 1/K, up to rounding: this learner is not used. If it is the first there is no model
nonfinite                ν > `LARGEST_RATE` and exp(a_t) overflows: no weights follow from this learner. It is the last
bound_reached            Π Z_t, which bounds the training error of two classes, is at most `stop_at_bound`
converged                all requested rounds are done
early_stopped            the error on held-out rows has not fallen for `n_iter_no_change` rounds
time_limit, interrupted  the model has the rounds fitted so far
=======================  ==============================================================================================

Of one class (K = 1) the first learner is perfect.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.boost.r2 import Loss
from margrove.problem import Problem
from margrove.tree.problem import Cells, TreeProblem

if TYPE_CHECKING:
    from margrove.boost.model import BoostModel, BoostSolution, R2Solution  # noqa: F401  (types of solutions, below)

LEAST_WEIGHT = 1e-100  # of a row, relative to 1: rows that hundreds of learners classify correctly would get weight 0
LARGEST_RATE = 5.0  # of rates up to it the factors of a round are finite, since no error is below LEAST_WEIGHT
_LARGEST_EXPONENT = math.log(sys.float_info.max)
EQUAL_VOTES = 1e-12  # sums of votes that differ by less, of all votes, are equal: rounding
_ROUNDING_OF_CHANCE = 1e-12  # of an error: a learner that adds nothing has 1/2 but for rounding, on either side


@dataclass(frozen=True)
class HeldOut:
    """Rows that no learner sees, and how many rounds may go by without a smaller error on them."""

    cells: Cells
    target: NDArray[Any]  # (n,): int32 classes
    weight: NDArray[np.float64] | None
    patience: int


@dataclass(frozen=True)
class BoostProblem(Problem["BoostSolution"]):
    """Boosted trees: the problem of each learner, with the weights of the first round, and the number of rounds."""

    learner: TreeProblem  # its weights need not sum to one; `min_weight_leaf` is of weights that do
    n_rounds: int
    learning_rate: float = 1.0
    stop_at_bound: float = 0.0  # two classes only; 0 never stops
    held_out: HeldOut | None = None
    # Rounds that are done already: their trees classify the rows again and change the weights as before, and no time is
    # spent on growing them. The solution includes them.
    before: BoostModel | None = None

    @property
    def n_classes(self) -> int:
        """K."""
        return self.learner.n_classes


@dataclass(frozen=True)
class SpreadBoostProblem(Problem["BoostSolution"]):
    """The same of rows that lie on the workers of a cluster. ``boost`` has their columns and their number, but no
    cells, target or weights, and no rows held out."""

    rows: Any  # in partitions; the engine's own
    boost: BoostProblem


@dataclass(frozen=True)
class SpreadR2Problem(Problem["R2Solution"]):
    """Boosting of trees of numbers (`r2.py`) over rows that lie on the workers of a cluster. ``learner`` has their
    columns and their number, but no cells, target or weights."""

    rows: Any  # in partitions; the engine's own
    learner: TreeProblem
    n_rounds: int
    learning_rate: float
    loss: Loss
    seed: int


def vote(error: float, n_classes: int, learning_rate: float = 1.0) -> float:
    """a_t of a learner with this weighted error; 1 if it is perfect, as scikit-learn has it."""
    if error <= 0:
        return 1.0
    return learning_rate * (math.log((1 - error) / error) + math.log(n_classes - 1))


def factors(vote: float, n_classes: int) -> tuple[float, float]:
    """Return the factors of the weights of correctly and of misclassified rows, before the division by Z_t."""
    of_wrong = vote / n_classes
    wrong = math.exp(of_wrong) if of_wrong < _LARGEST_EXPONENT else math.inf
    return math.exp(-(n_classes - 1) / n_classes * vote), wrong


def normaliser(error: float, vote: float, n_classes: int) -> float:
    """Z_t."""
    right, wrong = factors(vote, n_classes)
    return (1 - error) * right + error * wrong


def alpha(vote: float, n_classes: int) -> float:
    """The textbook's α_t: a_t/2 for two classes."""
    return (n_classes - 1) ** 2 / n_classes * vote


def is_no_better_than_chance(error: float, n_classes: int) -> bool:
    """Return True if a learner with this weighted error is no better than chance."""
    return error > 0 and error >= 1 - 1 / n_classes - _ROUNDING_OF_CHANCE


def is_overflow(vote: float, learning_rate: float) -> bool:
    """Return True if boosting stops after this vote: its exponential, by which scikit-learn multiplies weights, is no
    finite number."""
    return learning_rate > LARGEST_RATE and vote > _LARGEST_EXPONENT


def judged(votes: NDArray[np.float64]) -> NDArray[np.intp]:
    """The class of each row, from its sums of votes (n, K): that of the largest, the first of equals."""
    least = votes.max(axis=1) - EQUAL_VOTES * votes.sum(axis=1)
    first = np.zeros(len(votes), dtype=np.intp)
    for k in reversed(range(votes.shape[1])):
        first[votes[:, k] >= least] = k
    return first


def cast(votes: NDArray[np.float64], label: NDArray[np.integer], vote: float) -> None:
    """Add the vote of a learner to the sums (n, K); a label of -1 is none of the classes."""
    rows = np.flatnonzero(label >= 0)
    votes[rows, label[rows]] += vote
