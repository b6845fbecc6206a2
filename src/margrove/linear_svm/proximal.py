"""The proximal step on the dual, which gives β of a row from w alone: no number per row has to be kept.

For a given f the proximal dual max D(β) − Σ (β_i − λ_i)²/(2σ_i) is largest at

    β_i = λ_i + σ_i (z_i − f_i), shrunk towards 0 by σ_i ε, clipped to its bounds

and as a function of f this is −dφ_i/df of φ_i(f) = β_i (z_i − f) − ε|β_i| − (β_i − λ_i)²/(2σ_i), which is smooth. A
squared loss has λ = 0 and σ = 2C: there β is `problem.implied_beta`, and φ is C times the loss. The other losses have
σ_i = κ C_i, and λ is β of the step before, at first 0: the method of multipliers. So a few steps (w_j, b_j, κ_j) give β
of every row, of those seen and of those to come, and with it the dual value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margrove.linear_svm.problem import Loss, is_of_signs, is_squared

Array = NDArray[np.float64]

KAPPA_OF_SQUARES = 2.0  # σ = 2C


def proximal_step(
    loss: Loss, target: Array, values: Array, cost: Array, epsilon: float, before: Array | float, kappa: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Return β of each row, and whether it is free, so that it follows f at the slope −σ; ``before`` is λ, σ = κ C."""
    sigma = kappa * cost
    beta = before + sigma * (target - values)
    if is_of_signs(loss):
        alpha = target * beta
        most = np.inf if is_squared(loss) else cost
        is_free = (alpha > 0) & (alpha < most)
        return np.asarray(target * np.clip(alpha, 0, most)), is_free
    beta = beta - np.clip(beta, -sigma * epsilon, sigma * epsilon)
    if is_squared(loss):
        return beta, beta != 0
    return np.asarray(np.clip(beta, -cost, cost)), (beta != 0) & (np.abs(beta) < cost)


def smoothed_loss(
    target: Array, values: Array, cost: Array, epsilon: float, beta: Array, before: Array | float, kappa: float
) -> Array:
    """Return φ of each row, whose `proximal_step` is ``beta``."""
    moved = np.divide((beta - before) ** 2, 2 * kappa * cost, out=np.zeros_like(beta), where=cost > 0)
    return np.asarray(beta * (target - values) - epsilon * np.abs(beta) - moved)


def after_steps(
    loss: Loss, target: Array, values: NDArray[np.float64], cost: Array, epsilon: float, kappas: Array
) -> Array:
    """Return β of each row, shape (n,), after the steps whose f are the columns of ``values``, shape (n, steps)."""
    beta = np.zeros(len(target))
    for f, kappa in zip(values.T, kappas, strict=True):
        if kappa > 0:  # steps of machines that needed fewer are filled up with 0
            beta, _ = proximal_step(loss, target, f, cost, epsilon, beta, kappa)
    return beta
