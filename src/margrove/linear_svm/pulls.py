"""The pull of a row, told by w alone: no number per row has to be kept.

For a given f the pull that the proximal dual max D(β) − Σ (β_i − λ_i)²/(2σ_i) likes best is

    β_i = λ_i + σ_i (z_i − f_i), shrunk towards 0 by σ_i ε, cut to its bounds

and as a function of f it is −dφ_i/df of φ_i(f) = β_i (z_i − f) − ε|β_i| − (β_i − λ_i)²/(2σ_i), which is smooth. A
squared loss has λ = 0 and σ = 2C: there it is `problem.implied_pull`, and φ is the price of the loss. The other losses
have σ_i = κ C_i, and λ is the pull of the step before, the first one 0: the method of multipliers. So a few steps
(w_j, b_j, κ_j) tell β of every row, of those that are seen and of those to come, and with it the dual value.

Sums over β > 0 and over β < 0 are kept apart where the intercept is free: `balancing_shares` makes Σ β = 0 of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margrove.linear_svm.problem import Loss, is_of_signs, is_squared

Array = NDArray[np.float64]

KAPPA_OF_SQUARES = 2.0  # σ = 2C


def proximal_pull(
    loss: Loss, target: Array, values: Array, cost: Array, epsilon: float, before: Array | float, kappa: float
) -> tuple[Array, NDArray[np.bool_]]:
    """β of each row and whether it is free, so that it follows f at the slope −σ; ``before`` is λ, σ = κ C."""
    sigma = kappa * cost
    pull = before + sigma * (target - values)
    if is_of_signs(loss):
        alpha = target * pull
        most = np.inf if is_squared(loss) else cost
        is_free = (alpha > 0) & (alpha < most)
        return np.asarray(target * np.clip(alpha, 0, most)), is_free
    pull = pull - np.clip(pull, -sigma * epsilon, sigma * epsilon)
    if is_squared(loss):
        return pull, pull != 0
    return np.asarray(np.clip(pull, -cost, cost)), (pull != 0) & (np.abs(pull) < cost)


def pull_after(
    loss: Loss, target: Array, values: NDArray[np.float64], cost: Array, epsilon: float, kappas: Array
) -> Array:
    """β of each row, shape (n,), after the steps whose f are the columns of ``values``, shape (n, steps)."""
    beta = np.zeros(len(target))
    for f, kappa in zip(values.T, kappas, strict=True):
        if kappa > 0:  # steps of machines that needed fewer are filled up with 0
            beta, _ = proximal_pull(loss, target, f, cost, epsilon, beta, kappa)
    return beta


def balancing_shares(positive: Array, negative: Array) -> tuple[Array, Array]:
    """What Σ of β > 0 and Σ |β| of β < 0 are multiplied by to be equal: the heavier shrinks, which keeps bounds."""
    lighter, heavier = np.minimum(positive, negative), np.maximum(positive, negative)
    ratio = np.divide(lighter, heavier, out=np.ones_like(heavier), where=heavier > 0)
    return np.where(positive > negative, ratio, 1.0), np.where(negative > positive, ratio, 1.0)
