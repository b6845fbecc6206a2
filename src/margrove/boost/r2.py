"""AdaBoost.R2, which boosts learners of numbers (Drucker 1997), as formulas. No solver lives here.

Given n rows with numbers y_i and weights w_i that sum to one, rounds t = 1, 2, … each

1. draw n rows with replacement, row i with probability w_i, and fit a learner T_t to them,
2. take its loss on every row,  L_i = |T_t(x_i) − y_i| / max_j |T_t(x_j) − y_j|  ("linear"), L_i² ("square") or
   1 − exp(−L_i) ("exponential"), and the average  ε_t = Σ_i w_i L_i,
3. give it the vote  a_t = ν ln((1 − ε_t)/ε_t), ν the learning rate,
4. multiply the weight of every row by  β^(ν (1 − L_i)), β = ε_t/(1 − ε_t),  and divide by the sum.

A row is given the median of what the learners predict, weighted by their votes. Rounds end as `problem.py` has it:
ε_t = 0 is a perfect learner, which gets the vote 1; one with ε_t ≥ ½ is no better than chance and is not taken, unless
it is the first: then it is the model, for want of a better one.

Weights are kept at `LEAST_WEIGHT` at least, and drawn with, as scikit-learn does: with its learner and the same
``random_state`` the rounds are the same to the last bit.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.data.sample import settle_weights

Loss = Literal["linear", "square", "exponential"]
LOSSES: tuple[Loss, ...] = get_args(Loss)
LEAST_WEIGHT = float(np.finfo(np.float64).eps)
CHANCE = 0.5

Floats = NDArray[np.float64]


def first_weights(y: Floats, sample_weight: ArrayLike | None) -> Floats:
    """Return the weights of the first round, which sum to one."""
    weight = settle_weights(np.empty((len(y), 0)), y, sample_weight, None)
    # Scaled first: the sum of very large weights overflows.
    weight = np.ones(len(y)) if weight is None else weight / weight.max()
    return np.asarray(weight / weight.sum())


def lifted(weight: Floats, first: Floats) -> Floats:
    """Return the weights, at least `LEAST_WEIGHT` but for those that were zero from the first."""
    return np.where(first == 0, 0.0, np.maximum(weight, LEAST_WEIGHT))


def next_seed(generator: np.random.RandomState) -> int:
    """Return the seed of a learner, drawn as scikit-learn's ensembles do."""
    return int(generator.randint(np.iinfo(np.int32).max))


def drawn_rows(weight: Floats, generator: np.random.RandomState) -> NDArray[np.intp]:
    """Return n rows, drawn with replacement."""
    return np.asarray(generator.choice(np.arange(len(weight)), size=len(weight), replace=True, p=weight))


def losses(predicted: Floats, y: Floats, weight: Floats, loss: Loss) -> Floats:
    """Return L_i of each row; rows with zero weight are ignored in the maximum."""
    off = np.abs(predicted - y)
    largest = off[weight > 0].max()
    if largest != 0:
        off = off / largest
    if loss == "square":
        return np.asarray(off**2)
    return 1.0 - np.exp(-off) if loss == "exponential" else off


def average(loss: Floats, weight: Floats) -> float:
    """Return ε_t."""
    has_weight = weight > 0
    return float((weight[has_weight] * loss[has_weight]).sum())


def vote(error: float, learning_rate: float) -> float:
    """Return a_t; 1 for a perfect learner, 0 for one that is no better than chance and is the only one."""
    if error <= 0:
        return 1.0
    if error >= CHANCE:
        return 0.0
    return float(learning_rate * np.log(1.0 / (error / (1.0 - error))))


def next_weights(weight: Floats, loss: Floats, error: float, learning_rate: float) -> Floats | None:
    """Return the weights after a learner with these losses; None if a large rate makes all of them zero."""
    beta = error / (1.0 - error)
    has_weight = weight > 0
    changed = weight.copy()
    changed[has_weight] *= np.power(beta, (1.0 - loss[has_weight]) * learning_rate)
    total = float(np.sum(changed))
    return changed / total if total > 0 else None


def weighted_median(predicted: Floats, vote: Floats) -> Floats:
    """Return for each row (n, T) the smallest prediction at or below which half of the votes lie."""
    order = np.argsort(predicted, axis=1)
    share = np.cumsum(vote[order], axis=1)
    place = (share >= 0.5 * share[:, -1:]).argmax(axis=1)
    rows = np.arange(len(predicted))
    return np.asarray(predicted[rows, order[rows, place]])
