"""Problems whose best machine is known, because they are made around it; and what an objective is, in few lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.linear_svm.problem import (
    LinearMachine,
    LinearSvmProblem,
    Loss,
    Penalty,
    is_of_signs,
    is_squared,
    losses,
    penalty_value,
)


def objective(X: Any, target: Any, cost: Any, w: Any, b: float, *, loss: Loss, penalty: Penalty, s: float, epsilon=0.0):
    """P(w, b)."""
    f = np.asarray(X @ w + b).ravel()
    return penalty_value(penalty, np.asarray(w), b, s) + float(cost @ losses(loss, np.asarray(target), f, epsilon))


def within_bounds(loss: Loss, target: np.ndarray, beta: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return how far each β_i lies outside its bounds; 0 within them."""
    if is_of_signs(loss):
        alpha = target * beta
        below = np.maximum(-alpha, 0)
        above = np.maximum(alpha - cost, 0) if not is_squared(loss) else np.where(cost > 0, 0.0, np.abs(alpha))
        return np.asarray(np.maximum(below, above))
    if is_squared(loss):
        return np.where(cost > 0, 0.0, np.abs(beta))
    return np.asarray(np.maximum(np.abs(beta) - cost, 0))


@dataclass(frozen=True)
class Made:
    """A problem, and the w and b that are its best."""

    problem: LinearSvmProblem
    w: np.ndarray
    b: float

    @property
    def least(self) -> float:
        return self.value_of(self.w, self.b)

    def value_of(self, w: Any, b: float) -> float:
        asked = self.problem
        machine = asked.machines[0]
        how = {"loss": asked.loss, "penalty": asked.penalty, "s": asked.intercept, "epsilon": asked.epsilon}
        return objective(asked.X, machine.target, machine.cost, w, b, **how)


def made_around(rng: np.random.Generator, loss: Loss, penalty: Penalty, s: float, *, tol: float = 1e-4) -> Made:
    """First w and b, then dual coefficients β that are stationary for them, then targets and costs that give these β.

    l2: Σ β x = w, Σ β = b/s². l1: Σ β x_j = sign(w_j), and less than 1 where w_j = 0; Σ β = sign(b)/s. Free b: Σ β = 0.
    """
    n, d, epsilon = 40, 4, 0.0 if is_of_signs(loss) else 0.1
    X = rng.normal(size=(n, d))
    w, b = rng.choice([-0.1, 0.1], size=d) * rng.uniform(0.5, 1, size=d), 0.0 if s == 0 else 0.1
    sums = w.copy()
    if penalty == "l1":
        w[1] = 0
        sums = np.where(w == 0, 0.3, np.sign(w))
    rows = X.T
    if s > 0:
        total = 0.0 if math.isinf(s) else np.sign(b) / s if penalty == "l1" else b / s**2
        rows, sums = np.vstack([X.T, np.ones(n)]), np.append(sums, total)
    beta = np.linalg.lstsq(rows, sums, rcond=None)[0]
    f = X @ w + b
    if is_of_signs(loss):
        target = np.sign(beta)
        slack = 1 - target * f
        assert (slack > 0).all()
    else:
        slack = rng.uniform(0.5, 1.5, size=n)
        target = f + np.sign(beta) * (epsilon + slack)
    cost = np.abs(beta) / (2 * slack) if is_squared(loss) else np.abs(beta)
    machine = LinearMachine(target, cost)
    return Made(LinearSvmProblem(X, (machine,), loss, penalty, s, epsilon, tol, 20000), w, b)
