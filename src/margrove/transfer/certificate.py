"""Certificates of the last layers, recomputed from data and model in float64, without any solver.

**Softmax.** The dual problem is

    max over q of  C Σ s_i H(q_i) − ½‖V(q)‖²,   V(q) = C Σ s_i (e_i − q_i) x_iᵀ,   Σ s_i (e_i − q_i) = 0,

with q_i probabilities of the classes, e_i the true class as a unit vector and H the entropy. Every such q proves, with
p_i the probabilities at (W, b),

    P(W, b) − min P  ≤  ½‖W − V(q)‖² + C Σ s_i KL(q_i ‖ p_i),

which is 0 at the optimum, q = p. Here q are the probabilities at W and the best intercept for it, which nearly satisfy
the equality; the excess of some classes is then moved to the others, so that they satisfy it.

**Fine-tuning.** No optimum is claimed, since none can be proved. The claims are the loss and the errors that the fit
reported, computed again from the weights and the pictures.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax, xlogy

from margrove.certificate import Certificate, Claim, per_machine
from margrove.data.sample import codes_of, float64_block
from margrove.errors import InputError
from margrove.linear.certificate import read_evidence
from margrove.linear.problem import machine_names

RELATIVE_GAP = 1e-3  # of the objective: the default of `SoftmaxClassifier`
SAME_LOSS = 0.02  # relative: for a network in float32 on another machine, or after another decoding of its pictures
_NEWTON_STEPS = 50  # for the intercept: K numbers, and a convex function of them
_FLAT = 1e-10  # of a gradient, relative to the terms it is the sum of
_ROUNDING = 8 * float(np.finfo(np.float64).eps)  # of each term of a KL: rounding may not improve a bound
_ALL_BUT_NOTHING = 1 - float(np.finfo(np.float64).eps)  # the most that may be missing, so that the rest has a logarithm

Floats = NDArray[np.float64]


def certify_softmax(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """Return the duality gap, and the rows on the wrong side. X may be a `Sample`, as a fit has read it."""
    evidence = read_evidence(model, X, y, sample_weight)
    codes, s, points = evidence.codes, evidence.s, float64_block(evidence.X, slice(None))
    K = len(model.classes_)
    with np.errstate(over="ignore", invalid="ignore"):  # weights may be no numbers: then the gap is none
        flat = np.asarray(points @ model.coef_.T)  # scores without the intercept
        if K == 2:  # one w, for the second class; the first one's score is 0
            flat = np.column_stack([np.zeros(len(flat)), flat])
        b = np.append(0.0, model.intercept_) if K == 2 else np.asarray(model.intercept_, np.float64)
        losses = _losses(flat + b, codes)
        primal = float((model.coef_**2).sum()) / 2 + model.C * float(s @ losses)
    if math.isfinite(primal):
        q = _balanced(_best_intercept(flat, codes, s, b), flat, codes, s)
        with np.errstate(over="ignore", invalid="ignore"):
            V = model.C * (_missing(q, codes) * s[:, None]).T @ points
            gap = float(((model.coef_ - V[-len(model.coef_) :]) ** 2).sum()) / 2
            gap += model.C * float(s @ _divergences(q, flat + b, codes))
    else:
        gap = math.inf
    relative = gap / primal if primal > 0 and math.isfinite(gap) else math.inf
    z = flat + b
    wrong = (z[:, 1] > 0 if K == 2 else z.argmax(axis=1)) != codes
    claims = (
        Claim("primal objective", per_machine(primal), words="½‖W‖² + C times the loss"),
        Claim("dual objective", per_machine(primal - gap), words="a lower bound on the objective of any weights"),
        Claim.bounded(
            "relative duality gap",
            np.array([relative]),
            np.array([model.tol]),
            "largest possible decrease of the objective, as a share",
        ),
        Claim("rows on the wrong side", per_machine(float(s[wrong].sum())), words="total weight of such training rows"),
    )
    return Certificate.of(model, "recomputed", len(codes), evidence.machines, claims)


def certify_fine_tuned(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Return the loss and the errors that the fit reported, computed again."""
    if sample_weight is not None:
        raise InputError(f"{type(model).__name__} does not support sample_weight", cure="Remove it.")
    scores = np.asarray(model.decision_function(X), np.float64)
    codes = codes_of(y, model.classes_)
    if len(codes) != len(scores):
        raise InputError(f"X has {len(scores)} pictures and y has {len(codes)}")
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores]) / 2
    found = mean_loss(scores, codes, model.loss)
    off = abs(found - model.training_loss_)
    limit = SAME_LOSS * max(model.training_loss_, SAME_LOSS)
    same = Claim.bounded(
        "difference from the loss that the fit reported",
        np.array([off]),
        np.array([limit]),
        "the weights are those of the fit; they are not claimed to be optimal",
    )
    stated = as_the_fit_says(model, len(codes), found, int((scores.argmax(axis=1) != codes).sum()))
    loss, wrong = stated.claims
    return replace(stated, source="recomputed", claims=(loss, same, wrong))


def as_the_fit_says(model: Any, n: int, loss: float, n_wrong: int) -> Certificate:
    """Return the numbers of a fit as it ended, without a verdict."""
    claims = (
        Claim("mean loss", per_machine(loss), words=f"{model.loss}, of the training pictures"),
        Claim("rows on the wrong side", per_machine(n_wrong), words="misclassified training pictures"),
    )
    return Certificate.of(model, "solver", n, machine_names(model.classes_), claims)


def mean_loss(scores: Floats, codes: NDArray[Any], loss: str) -> float:
    """Return the mean of −log p(y), or for the hinge (Crammer and Singer) of max(0, 1 + max_{k≠y} z_k − z_y)."""
    rows = np.arange(len(codes))
    if loss == "softmax":
        return float(-log_softmax(scores, axis=1)[rows, codes].mean())
    return float(np.maximum(0.0, 1 + _others(scores, codes).max(axis=1) - scores[rows, codes]).mean())


def _others(z: Floats, codes: NDArray[Any]) -> Floats:
    """Return the scores with −∞ for the true class."""
    others = np.array(z)
    others[np.arange(len(codes)), codes] = -np.inf
    return others


def _losses(z: Floats, codes: NDArray[Any]) -> Floats:
    """Return −log p of the true class as log(1 + Σ_{k≠y} exp(z_k − z_y)), exact also for small losses."""
    own = z[np.arange(len(codes)), codes]
    return np.asarray(np.logaddexp(0.0, logsumexp(_others(z, codes), axis=1) - own))


def _divergences(q: Floats, z: Floats, codes: NDArray[Any]) -> Floats:
    """Return KL(q_i ‖ p_i) of each row, p_i the softmax of z_i, plus the most that its terms may be rounded."""
    rows = np.arange(len(codes))
    log_p = np.asarray(log_softmax(z, axis=1))
    log_p[rows, codes] = -_losses(z, codes)
    own = xlogy(q, q)
    own[rows, codes] = q[rows, codes] * np.log1p(-np.minimum(_missing(q, codes)[rows, codes], _ALL_BUT_NOTHING))
    terms = own - q * log_p
    rounded = _ROUNDING * (np.abs(own) + np.abs(q * log_p)).sum(axis=1)
    return np.asarray(np.maximum(0.0, terms.sum(axis=1)) + rounded)


def _missing(q: Floats, codes: NDArray[Any]) -> Floats:
    """Return e − q of each row; 1 − q of the true class is the sum of the others, exact also if it is small."""
    rows = np.arange(len(codes))
    found = -q
    found[rows, codes] = 0.0
    found[rows, codes] = -found.sum(axis=1)
    return np.asarray(found)


def _best_intercept(flat: Floats, codes: NDArray[Any], s: Floats, start: Floats) -> Floats:
    """Return the b that minimises Σ s_i ℓ_i(flat_i + b), by Newton's method with step halving."""
    rows = np.arange(len(codes))

    def loss(b: Floats) -> float:
        return float(s @ _losses(flat + b, codes))

    b, value = np.array(start, np.float64), loss(start)
    for _ in range(_NEWTON_STEPS):
        p = softmax(flat + b, axis=1)
        missing = _missing(p, codes)
        slope = -(s @ missing)
        if np.abs(slope).max() <= _FLAT * float(s @ missing[rows, codes]):
            break
        curve = np.diag(s @ p) - (p * s[:, None]).T @ p
        step = np.linalg.lstsq(curve, -slope, rcond=None)[0]  # a common shift changes nothing
        share = 1.0
        while share > _FLAT and not loss(b + share * step) <= value:
            share /= 2
        if share <= _FLAT:
            break
        b = b + share * step
        value = loss(b)
    return b


def _balanced(b: Floats, flat: Floats, codes: NDArray[Any], s: Floats) -> Floats:
    """Return probabilities q near those at an intercept with Σ s_i (q_i − e_i) = 0.

    Every row gives the same share of a class that has too much; the classes that have too little share it by need.
    """
    q = np.asarray(softmax(flat + b, axis=1))
    excess = -(s @ _missing(q, codes))  # of each class; their sum is 0
    too_much, too_little = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
    if not too_little.sum() > 0:
        return q
    given = q * (too_much / np.maximum(s @ q, np.finfo(np.float64).tiny))
    return np.asarray(q - given + np.outer(given.sum(axis=1), too_little / too_little.sum()))
