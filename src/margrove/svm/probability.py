"""Probabilities of classes from the machines' values, with one law: the most probable class is the predicted one.

1. Each machine's value f is calibrated on rows that it was not fitted on (five folds): σ(a f + b), with a and b by
   maximum likelihood (Platt; the method of Lin, Lin and Weng, 2007). If the fit is stopped early, on the folds that are
   done; if none is, a = 0, and b gives the frequencies of the two sides. Values on training rows would claim too much:
   a machine with a large C separates random labels.
2. One-vs-one: the pairs' probabilities are coupled, min Σ (r_ji p_i − r_ij p_j)² (Wu, Lin and Weng, 2004). Other codes:
   p_k is proportional to the product of what the machines give to the sides that class k is on.
3. The law. Where the predicted class is not on top, the nearest p (least squares) for which it is takes the place of p:
   the classes above it and itself share the mean of what they have. For two classes that is ½, between the boundary of
   f and the boundary of the calibrated probability. Elsewhere nothing changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.model_selection import StratifiedKFold

from margrove.errors import InputError, shown

FOLDS = 5
ON_TOP = 1e-9  # by how much the predicted class leads where it had to be lifted
RIDGE = 1e-12  # on the diagonal of the coupling, so that it always has a solution
_NEWTON_STEPS = 100
_ROWS = 4096  # coupled at once


def splits_for(
    codes: NDArray[np.int32] | NDArray[np.intp],
    classes: NDArray[Any],
    seed: Any,
    most: int = FOLDS,
    asked: str = "probability=True",
    otherwise: str = ", or use probability=False",
) -> list[tuple[Any, Any]]:
    """Stratified folds, the same for the same seed (None is 0); fewer than ``most`` if a class has fewer rows.
    ``asked`` and ``otherwise`` are for the error about a class of one row."""
    counts = np.bincount(codes, minlength=len(classes))
    if counts.min() < 2:
        raise InputError(
            f"{asked} holds out rows, and class {shown(classes[int(np.argmin(counts))])} has only one",
            cure=f"Add rows of it{otherwise}.",
        )
    splitter = StratifiedKFold(min(most, int(counts.min())), shuffle=True, random_state=0 if seed is None else seed)
    return list(splitter.split(np.zeros(len(codes)), codes))


def fitted_sigmoid(
    f: NDArray[np.float64], is_positive: NDArray[np.bool_], weight: NDArray[np.float64] | None = None
) -> tuple[float, float]:
    """a ≥ 0 and b of σ(a f + b), by Newton's method on the likelihood of targets that are drawn in from 0 and 1 as if
    each side had one more row (Platt's prior): a machine that is never wrong does not become certain."""
    if len(f) == 0:  # no row of this machine's classes is in the folds that are done
        return 0.0, 0.0
    weight = np.ones(len(f)) if weight is None else weight
    positive, negative = float(weight[is_positive].sum()), float(weight[~is_positive].sum())
    target = np.where(is_positive, (positive + 1) / (positive + 2), 1 / (negative + 2))
    scale = float(np.abs(f).max()) or 1.0
    x = np.stack([f / scale, np.ones(len(f))])

    def loss(parameters: NDArray[np.float64]) -> float:
        z = parameters @ x
        return -float(weight @ (target * log_expit(z) + (1 - target) * log_expit(-z)))

    now = np.array([0.0, np.log((positive + 1) / (negative + 1))])
    for _ in range(_NEWTON_STEPS):
        p = expit(now @ x)
        gradient = x @ (weight * (p - target))
        if np.abs(gradient).max() <= 1e-10 * float(weight.sum()):
            break
        curve = (x * (weight * p * (1 - p))) @ x.T + 1e-12 * np.eye(2)
        step, before = np.linalg.solve(curve, gradient), loss(now)
        size = 1.0
        while size > 1e-10 and loss(now - size * step) > before - 1e-4 * size * float(gradient @ step):
            size /= 2
        now = now - size * step
        if size <= 1e-10:
            break
    if now[0] < 0:  # values that contradict the machine carry no information
        return 0.0, float(np.log((positive + 1) / (negative + 1)))
    return float(now[0] / scale), float(now[1])


def coupled(pairs: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """p of each class, shape (n, K), from r_ij = P(i | i or j) of the pairs, shape (n, K (K − 1)/2).

    The minimum of Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)² with Σp = 1 solves Q p = λ 1, where Q_ii = Σ_j r_ji² and
    Q_ij = −r_ji r_ij.
    """
    first, second = np.triu_indices(n_classes, 1)
    found = np.empty((len(pairs), n_classes))
    for start in range(0, len(pairs), _ROWS):
        part = pairs[start : start + _ROWS]
        r = np.zeros((len(part), n_classes, n_classes))
        r[:, first, second], r[:, second, first] = part, 1 - part
        Q = -r * r.transpose(0, 2, 1)
        Q[:, np.arange(n_classes), np.arange(n_classes)] = (r**2).sum(axis=1)
        Q += RIDGE * np.eye(n_classes)
        p = np.linalg.solve(Q, np.ones((len(part), n_classes, 1)))[:, :, 0]
        p = np.maximum(p, 0)
        found[start : start + _ROWS] = p / p.sum(axis=1, keepdims=True)
    return found


def by_code(sides: NDArray[np.float64], code: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return p of each class, shape (n, K), proportional to the product of the machines' σ for its side."""
    likely = log_expit(sides) @ (code.T > 0) + log_expit(-sides) @ (code.T < 0)
    p = np.exp(likely - likely.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def with_law(p: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the nearest probabilities in which ``predicted`` is on top: with the others q_1 ≥ q_2 ≥ …, it and the
    first j of them share their mean, for the smallest j whose mean is not below q_{j+1}."""
    p = p.copy()
    wrong = np.flatnonzero(p.argmax(axis=1) != predicted)
    if len(wrong) == 0:
        return p
    part, chosen, rows = p[wrong], predicted[wrong], np.arange(len(wrong))
    own = part[rows, chosen]
    others = part.copy()
    others[rows, chosen] = -np.inf
    ranked = -np.sort(-others, axis=1)[:, :-1]
    mean = (own[:, None] + np.cumsum(ranked, axis=1)) / np.arange(2, part.shape[1] + 1)
    following = np.concatenate([ranked[:, 1:], np.full((len(wrong), 1), -np.inf)], axis=1)
    shared = mean[rows, np.argmax(following <= mean, axis=1)]
    part = np.minimum(part, shared[:, None])
    part[rows, chosen] = shared * (1 + ON_TOP)
    p[wrong] = part / part.sum(axis=1, keepdims=True)
    return p
