"""Certificates of the last layers, recomputed from data and model in float64. Nothing here imports a solver.

**Softmax.** With p_i the probabilities at (W, b), e_i the true class as a unit vector and V = C Σ s_i (e_i − p_i) x_iᵀ,

    P(W, b) − min P  ≤  P(W, b) − P(W, b′) + ½‖W − V(b′)‖²,

where b′ is the best intercept for this W: it makes Σ s_i (e_i − p_i) = 0, so that the p_i are feasible in the dual
problem, max C Σ s_i H(p_i) − ½‖V‖², and the difference of the two objectives is that square. At the optimum V = W.

**Fine-tuning.** No optimum is claimed, since none can be proved. What is claimed is what the fit said of its own rows:
the loss and the errors, computed again from the weights and the pictures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from margrove.certificate import Certificate, Claim, per_machine
from margrove.data.sample import float64_block, read_points, settle_weights
from margrove.errors import InputError
from margrove.linear.margins import codes_of
from margrove.linear.problem import machine_names

RELATIVE_GAP = 1e-3  # of the objective: what `SoftmaxClassifier` asks for unless told otherwise
SAME_LOSS = 0.02  # relative: a network in float32 on another machine, or after its pictures were decoded anew
_NEWTON_STEPS = 50  # for the intercept: K numbers, and a convex function of them
_FLAT = 1e-10  # of a slope per row: nothing is left to gain

Floats = NDArray[np.float64]


def certify_softmax(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """The duality gap, and the rows on the wrong side."""
    points = read_points(model, X)
    codes = codes_of(y, model.classes_)
    if len(codes) != points.shape[0]:
        raise InputError(f"X has {points.shape[0]} rows and y has {len(codes)}")
    s = settle_weights(points, np.asarray(y), sample_weight, model.class_weight)
    s = np.ones(len(codes)) if s is None else s
    points = float64_block(points, slice(None))
    truth = (codes == 1)[:, None] if len(model.classes_) == 2 else codes[:, None] == np.arange(len(model.classes_))
    flat = np.asarray(points @ model.coef_.T)  # scores without the intercept
    best = _best_intercept(flat, truth, s, model.intercept_)
    penalty = float((model.coef_**2).sum()) / 2
    primal = penalty + model.C * float(s @ _losses(flat + model.intercept_, truth))
    lowered = penalty + model.C * float(s @ _losses(flat + best, truth))
    pull = model.C * ((truth - _probabilities(flat + best)) * s[:, None]).T @ points  # V
    gap = max(0.0, primal - lowered) + float(((model.coef_ - pull) ** 2).sum()) / 2
    relative = gap / primal if primal > 0 else 0.0
    wrong = _answers(flat + model.intercept_) != codes
    claims = (
        Claim("primal objective", per_machine(primal), words="½‖W‖² + C times the loss"),
        Claim("dual objective", per_machine(primal - gap), words="no weights at all have a smaller objective"),
        Claim(
            "relative duality gap",
            per_machine(relative),
            per_machine(model.tol),
            bool(relative <= model.tol),
            "how much smaller the objective could be at most",
        ),
        Claim("rows on the wrong side", per_machine(float(s[wrong].sum())), words="by weight, of the training rows"),
    )
    return _certificate(model, len(codes), machine_names(model.classes_), claims)


def certify_fine_tuned(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """What the fit said of its rows, computed again."""
    if sample_weight is not None:
        raise InputError(f"{type(model).__name__} takes no weights", cure="Leave sample_weight out.")
    scores = np.asarray(model.decision_function(X), np.float64)
    codes = codes_of(y, model.classes_)
    if len(codes) != len(scores):
        raise InputError(f"X has {len(scores)} pictures and y has {len(codes)}")
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores]) / 2
    found = mean_loss(scores, codes, model.loss)
    off = abs(found - model.training_loss_)
    limit = SAME_LOSS * max(model.training_loss_, SAME_LOSS)
    wrong = int((scores.argmax(axis=1) != codes).sum())
    claims = (
        Claim("mean loss", per_machine(found), words=f"{model.loss}, of the training pictures"),
        Claim(
            "difference from the loss that the fit stated",
            per_machine(off),
            per_machine(limit),
            bool(off <= limit),
            "the weights are those that the fit ended with; no optimum is claimed",
        ),
        Claim("rows on the wrong side", per_machine(wrong), words="training pictures that it misjudges"),
    )
    return _certificate(model, len(codes), machine_names(model.classes_), claims)


def as_the_fit_says(model: Any, n: int, loss: float, n_wrong: int) -> Certificate:
    """The numbers of a fit as it ended, and no verdict."""
    claims = (
        Claim("mean loss", per_machine(loss), words=f"{model.loss}, of the training pictures"),
        Claim("rows on the wrong side", per_machine(n_wrong), words="training pictures that it misjudges"),
    )
    name, machines = type(model).__name__, machine_names(model.classes_)
    return Certificate(name, str(model.status_), "solver", n, machines, claims)


def mean_loss(scores: Floats, codes: NDArray[Any], loss: str) -> float:
    """Softmax: the mean of −log p(y). Hinge (Crammer and Singer): the mean of max(0, 1 + max_{k≠y} z_k − z_y).

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.transfer.certificate import mean_loss
    >>> mean_loss(np.array([[2.0, 0.5], [0.0, 0.0]]), np.array([0, 1]), "hinge")
    0.5
    """
    rows = np.arange(len(codes))
    if loss == "softmax":
        return float(-log_softmax(scores, axis=1)[rows, codes].mean())
    others = scores.copy()
    others[rows, codes] = -np.inf
    return float(np.maximum(0.0, 1 + others.max(axis=1) - scores[rows, codes]).mean())


def _losses(z: Floats, truth: NDArray[np.bool_]) -> Floats:
    if z.shape[1] == 1:
        return np.logaddexp(0, np.where(truth, -z, z))[:, 0]
    return np.asarray(-log_softmax(z, axis=1)[truth])


def _probabilities(z: Floats) -> Floats:
    return np.asarray(expit(z) if z.shape[1] == 1 else softmax(z, axis=1))


def _answers(z: Floats) -> NDArray[np.intp]:
    return (z[:, 0] > 0).astype(np.intp) if z.shape[1] == 1 else z.argmax(axis=1)


def _best_intercept(flat: Floats, truth: NDArray[np.bool_], s: Floats, start: Floats) -> Floats:
    """The b that minimises Σ s_i ℓ_i(flat_i + b): Newton's method, halving steps that do not help."""
    b = np.array(start, np.float64)
    value = float(s @ _losses(flat + b, truth))
    for _ in range(_NEWTON_STEPS):
        p = _probabilities(flat + b)
        slope = s @ (p - truth)
        if np.abs(slope).max() <= _FLAT * s.sum():
            break
        curve = np.diag(s @ p) - (p * s[:, None]).T @ p
        step = np.linalg.lstsq(curve, -slope, rcond=None)[0]  # of many classes a common shift changes nothing
        share = 1.0
        while share > _FLAT and not float(s @ _losses(flat + b + share * step, truth)) <= value:
            share /= 2
        if share <= _FLAT:
            break
        b += share * step
        value = float(s @ _losses(flat + b, truth))
    return b


def _certificate(model: Any, n: int, machines: tuple[str, ...], claims: tuple[Claim, ...]) -> Certificate:
    return Certificate(type(model).__name__, str(model.status_), "recomputed", n, machines, claims)
