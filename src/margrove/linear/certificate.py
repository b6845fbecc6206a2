"""Certificates of the linear learners: every number recomputed from data and model, in float64, block by block.

Nothing here imports a solver or an engine. What is checked:

basic linear        w = mean(+) − mean(−) and the boundary lies halfway
least squares       no column is correlated with the residual: |A_jᵀ r| ≤ tol ‖A_j‖ ‖y‖
perceptron          y_i f(x_i) > 0 for every row;  w = η Σ α_i s_i y_i x_i;  mistakes ≤ (R/γ)² (Novikoff).
                    With a penalty, or after partial_fit, w is no such sum: only that the rows are separated.
                    Averaged and voted: the corrections are repeated one by one, and must give w̄ or the vectors
                    that vote; their average or vote need not separate.
kernel perceptron   the same in the feature space: ‖w‖² = βᵀKβ, R² = max K(x,x) + 1

Novikoff's bound holds for the margin γ of any separating (w, b) in homogeneous coordinates, so also for the one found.
With weights s_i on the corrections it reads  mistakes ≤ (R/γ)² (s_max/s_min)².
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.certificate import Certificate, Claim, per_machine, recorded
from margrove.data.sample import (
    Sample,
    codes_of,
    float64_block,
    one_vs_rest_signs,
    read_points,
    settle_weights,
)
from margrove.errors import InputError
from margrove.linear.problem import ROUNDING_OF_A_MEAN, machine_names, normalised
from margrove.svm.kernels import Matrix, kernel_norms, kernel_of, squared_norms

BLOCK_CELLS = 1 << 20  # numbers of X, or of the kernel, held in float64 at once
IDENTITY_TOLERANCE = 1e-12  # of sums that only differ in the order of their terms, relative to the sum of their sizes
_NORM_TOLERANCE = 1e-5  # of a solver that may keep its kernel values in float32
STATIONARITY_TOLERANCE = 1e-6  # of least squares: its gradient by a column, relative to the column and the labels


@dataclass(frozen=True)
class LinearEvidence:
    """Data and labels as the certificate reads them."""

    X: Matrix  # (n, d)
    y: NDArray[np.int8]  # (machines, n); 0 for rows of no weight
    s: NDArray[np.float64]  # (n,)
    codes: NDArray[np.int32]
    machines: tuple[str, ...]

    def blocks(self, width: int = 1) -> Iterator[slice]:
        """Yield slices of rows of about BLOCK_CELLS numbers: those of X, or ``width`` per row where that is more."""
        stored = self.X.nnz // max(1, self.X.shape[0]) if sp.issparse(self.X) else self.X.shape[1]
        step = max(1, BLOCK_CELLS // max(1, stored, width, len(self.y)))
        return (slice(start, start + step) for start in range(0, self.X.shape[0], step))


def _certifier(claims_of: Callable[[Any, LinearEvidence], list[Claim]]) -> Callable[..., Certificate]:
    """Make a certifier of a function that returns claims."""

    @wraps(claims_of)
    def certify(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
        with np.errstate(all="ignore"):  # where numbers overflow, the claims fail: no warning is needed
            evidence = read_evidence(model, X, y, sample_weight)
            claims = claims_of(model, evidence)
        return Certificate.of(model, "recomputed", evidence.X.shape[0], evidence.machines, claims)

    return certify


@_certifier
def certify_centroid(model: Any, evidence: LinearEvidence) -> list[Claim]:
    """w is the difference of the class means, and the boundary lies halfway."""
    evidence = replace(evidence, s=normalised(evidence.s))
    positive, negative = np.zeros_like(model.coef_), np.zeros_like(model.coef_)
    for rows in evidence.blocks():
        block, sign, s = float64_block(evidence.X, rows), evidence.y[:, rows], evidence.s[rows]
        positive += ((sign > 0) * s) @ block
        negative += ((sign < 0) * s) @ block
    positive /= ((evidence.y > 0) * evidence.s).sum(axis=1)[:, None]
    negative /= ((evidence.y < 0) * evidence.s).sum(axis=1)[:, None]
    size = _norms(positive) + _norms(negative)
    off = _norms(model.coef_ - (positive - negative))
    at_middle = np.einsum("md,md->m", model.coef_, (positive + negative) / 2) + model.intercept_
    norm = _norms(model.coef_)
    reach = np.where((norm > 0) & (size * norm < np.finfo(np.float64).tiny), np.nan, size * norm)  # NaN: b underflows
    return [
        _identity("w is the difference of the class means", off, size, "‖w − (mean(+) − mean(−))‖"),
        _identity("the boundary lies halfway between them", np.abs(at_middle), reach, "|f(midpoint)|"),
        *_linear_margin_claims(model, evidence),
    ]


@_certifier
def certify_least_squares(model: Any, evidence: LinearEvidence) -> list[Claim]:
    """No column, nor the constant, is correlated with the residual: the normal equations."""
    total = evidence.s.sum()
    mean = np.zeros(evidence.X.shape[1])
    if model.fit_intercept:
        for rows in evidence.blocks():
            mean += evidence.s[rows] @ float64_block(evidence.X, rows) / total
    machines, d = model.coef_.shape
    gradient, column_norm = np.zeros((machines, d + 1)), np.zeros(d + 1)
    residual_norm = np.zeros(machines)
    # Dense points are centred, which keeps their digits; sparse ones stay as they are and are multiplied out. Both are
    # measured in units of their columns, so that no square overflows or vanishes.
    is_sparse = sp.issparse(evidence.X)
    unit = _column_units(evidence, np.zeros(d) if is_sparse else mean)
    coef, mean = model.coef_ * unit, mean / unit
    centre, left = (np.zeros(d), mean) if is_sparse else (mean, np.zeros(d))
    offset = model.intercept_ + coef @ centre
    for rows in evidence.blocks():
        s, block = evidence.s[rows], float64_block(evidence.X, rows)
        block = block @ sp.diags(1 / unit) if is_sparse else block / unit - centre
        residual = block @ coef.T + offset - evidence.y[:, rows].T
        weighted = (s[:, None] * residual).T  # (machines, rows)
        summed = weighted.sum(axis=1)[:, None]
        gradient += np.hstack([weighted @ block - summed * left, summed])
        squares = s @ (block.multiply(block) if sp.issparse(block) else block**2)
        column_norm += np.append(squares - 2 * left * (s @ block) + s.sum() * left**2, s.sum())
        residual_norm += s @ residual**2
    gradient[:, d] *= float(model.fit_intercept)
    scale = np.sqrt(np.maximum(column_norm, 0)) * np.sqrt(total)  # ‖A_j‖ ‖y‖
    # A column that is constant up to rounding has weight 0; its correlation with the residual is rounding error.
    is_constant = np.sqrt(np.maximum(column_norm[:d], 0)) <= ROUNDING_OF_A_MEAN * np.abs(mean) * np.sqrt(total)
    scale[:d][is_constant & ~model.coef_.any(axis=0)] = 0
    cosine = np.divide(np.abs(gradient), scale, out=np.zeros_like(gradient), where=scale > 0).max(axis=1)
    cosine += np.finfo(np.float64).eps * (np.abs(model.intercept_) + np.abs(coef) @ np.abs(mean))  # rounding of r
    return [
        Claim.bounded(
            "no column is correlated with the residual",
            cosine,
            np.full(machines, STATIONARITY_TOLERANCE),
            "largest |A_jᵀr| / (‖A_j‖ ‖y‖): the normal equations; constant columns are left out",
        ),
        Claim("mean squared residual", per_machine(residual_norm / total), words="minimised by least squares"),
        *_linear_margin_claims(model, evidence),
    ]


def _column_units(evidence: LinearEvidence, centre: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a power of two near each column's largest |x − centre|; 1 for a column of zeros."""
    largest = np.zeros(evidence.X.shape[1])
    for rows in evidence.blocks():
        block = float64_block(evidence.X, rows)
        block = abs(block) if sp.issparse(block) else np.abs(block - centre)
        highest = block.max(axis=0)
        largest = np.maximum(largest, np.asarray(highest.toarray() if sp.issparse(highest) else highest).ravel())
    return np.asarray(np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0)))))


@_certifier
def certify_perceptron(model: Any, evidence: LinearEvidence) -> list[Claim]:
    """Certify a perceptron: last, averaged or voted; scikit-learn's Perceptron as far as its attributes allow."""
    if hasattr(model, "makers_"):
        return _walk_claims(model, evidence)
    functional = _functional(model, evidence)
    claims = [
        _wrong_side(functional, evidence, must_separate=True),
        _margin(functional, _norms(np.asarray(model.coef_, np.float64)), evidence),
    ]
    alpha = getattr(model, "alpha_", None)
    if alpha is None:
        return claims
    if alpha.shape[0] != evidence.X.shape[0]:
        return [*claims, _other_rows(alpha.shape[0], evidence)]
    # In units of η, which scales w and decides nothing.
    coef, intercept, functional = model.coef_ / model.eta0, model.intercept_ / model.eta0, functional / model.eta0
    v, size, radius = np.zeros((len(coef), coef.shape[1] + 1)), np.zeros(len(coef)), 0.0
    one = float(model.fit_intercept)
    for rows in evidence.blocks():
        block = float64_block(evidence.X, rows)
        step = alpha[rows].T * evidence.s[rows]
        signed = step * evidence.y[:, rows]
        v += np.hstack([signed @ block, one * signed.sum(axis=1)[:, None]])
        norms = _row_norms(block, one)
        size += np.abs(step) @ norms
        radius = max(radius, float(norms[evidence.s[rows] > 0].max(initial=0)))
    found = np.hstack([coef, intercept[:, None]])
    if not model.is_warm_:
        off = _norms(found - v)
        whole = np.maximum(np.round(alpha), 0)
        counted = np.abs(alpha - whole).max(axis=0) + np.abs(alpha.sum(axis=0) - model.n_mistakes_)
        claims += [
            _identity("w is the sum of the corrections", off, size, "‖w/η − Σ α y x‖"),
            _identity("the counts add up to the mistakes", counted, alpha.sum(axis=0), "|Σα − mistakes|"),
            _mistakes(model.n_mistakes_, evidence, functional, _norms(found), radius),
            *recorded(model, n_mistakes_=(alpha.sum(axis=0), 0.5)),
        ]
    return claims


@_certifier
def certify_kernel_perceptron(model: Any, evidence: LinearEvidence) -> list[Claim]:
    """Certify a kernel perceptron."""
    if evidence.X.shape[0] != model.n_rows_ or not _has_support(model, evidence.X):
        return [_other_rows(model.n_rows_, evidence)]
    support, dual, one = model.support_, model.dual_coef_, float(model.fit_intercept)
    kernel = kernel_of(model)
    is_given = kernel.name == "precomputed"
    gram = evidence.X[support][:, support].astype(np.float64) if is_given else None
    norm = kernel_norms(kernel, model.support_vectors_, dual, gram)
    functional, radius = np.empty(evidence.y.shape), 0.0
    for rows in evidence.blocks(len(support)):
        block = evidence.X[rows]
        K = block[:, support].astype(np.float64) if is_given else kernel.matrix(block, model.support_vectors_)
        functional[:, rows] = evidence.y[:, rows] * (K @ dual.T + model.intercept_).T
        own = evidence.X.diagonal()[rows] if is_given else kernel.diagonal(block)
        radius = max(radius, float(np.sqrt(own[evidence.s[rows] > 0].max(initial=0) + one)))
    counts = dual / (model.eta0 * evidence.s[support] * evidence.y[:, support])  # α
    off = np.abs(counts - np.maximum(np.round(counts), 0)).max(axis=1, initial=0)
    off += np.abs(counts.sum(axis=1) - model.n_mistakes_)
    b_off, b_size = np.abs(model.intercept_ - one * dual.sum(axis=1)), np.abs(dual).sum(axis=1)
    homogeneous_norm = np.hypot(norm, one * dual.sum(axis=1))
    words = "|α − whole number| + |Σα − mistakes|"
    return [
        _wrong_side(functional, evidence, must_separate=True),
        _margin(functional, norm, evidence),
        _identity("the dual coefficients count the mistakes", off, counts.sum(axis=1), words),
        _identity("b is the sum of the corrections", b_off, b_size, "|b − Σ η α y|"),
        Claim("‖w‖", per_machine(model.norm_), words="as stored in the model"),
        *recorded(model, norm_=(norm, _NORM_TOLERANCE * (norm + radius * b_size))),
        _mistakes(model.n_mistakes_, evidence, functional, homogeneous_norm, radius),
    ]


def _has_support(model: Any, X: Any) -> bool:
    """Return whether the model's support vectors are these rows."""
    if model.kernel == "precomputed" or not len(model.support_):
        return True
    return bool(abs(X[model.support_] - model.support_vectors_).max() == 0)


def _walk_claims(model: Any, evidence: LinearEvidence) -> list[Claim]:
    """Return the claims of the averaged or voted perceptron, whose corrections are made again: every one was of a
    mistake, and the model is made of them. Neither average nor vote need separate even where the last vector does."""
    if model.n_rows_ != evidence.X.shape[0] or model.makers_.max(initial=0) >= evidence.X.shape[0]:
        return [_other_rows(model.n_rows_, evidence)]
    is_voted = model.variant == "voted"
    machines = range(len(evidence.y))
    unfounded, disorder, off, size = np.array([_retrace(model, evidence, machine) for machine in machines]).T
    if is_voted:
        functional = _voted_functional(model, evidence)
        last = np.hstack([model.coef_, model.intercept_[:, None]])
        for machine, (start, stop) in enumerate(pairwise(model.starts_)):
            last[machine] -= model.prototypes_[stop - 1] if stop > start else 0
        off = np.maximum(off, _norms(last))
        made_of = "each weight vector is the one before plus a correction"
    else:
        functional = _functional(model, evidence)
        made_of = "w is the average over the steps"
    none = np.zeros(len(unfounded))
    claims = [
        Claim.bounded("corrections of correctly classified rows", unfounded, none, "when training is repeated"),
        Claim.bounded("corrections out of order", disorder, none, "their steps increase, and none is missing"),
        _identity(made_of, off, size, "largest difference" if is_voted else "‖w − Σ η y x (T − t + 1)/T‖"),
        _wrong_side(functional, evidence, must_separate=False),
    ]
    if not is_voted:
        claims.append(_margin(functional, _norms(model.coef_), evidence))
    return claims


def _retrace(model: Any, evidence: LinearEvidence, machine: int) -> tuple[float, float, float, float]:
    """Repeat one machine's corrections, a block of them at a time. Return the number of corrections of rows that were
    classified correctly at the time, the number of steps out of order, the distance of the model from the repeated
    weights, and the sum of the sizes of the corrections."""
    start, stop = model.starts_[machine], model.starts_[machine + 1]
    makers, times, total = model.makers_[start:stop], model.times_[start:stop], int(model.n_steps_[machine])
    missing = abs(len(makers) - int(model.n_mistakes_[machine]))
    disorder = int((np.diff(times, prepend=0, append=total + 1) < 1).sum()) + missing
    d = evidence.X.shape[1]
    v, average, unfounded, off, size = np.zeros(d + 1), np.zeros(d + 1), 0, 0.0, 0.0
    for first in range(0, len(makers), max(1, BLOCK_CELLS // (d + 1))):
        part = slice(first, first + max(1, BLOCK_CELLS // (d + 1)))
        rows = makers[part]
        points = float64_block(evidence.X, rows)
        points = points.toarray() if sp.issparse(points) else points
        points = np.hstack([points, np.full((len(points), 1), float(model.fit_intercept))])
        y = evidence.y[machine, rows].astype(np.float64)
        corrections = (model.eta0 * evidence.s[rows] * y)[:, None] * points
        after = v + np.cumsum(corrections, axis=0)
        before = np.vstack([v, after[:-1]])
        rounding = IDENTITY_TOLERANCE * (1 + first + len(rows)) * (np.abs(points) * np.abs(before)).sum(axis=1)
        unfounded += int((y * np.einsum("kd,kd->k", points, before) > rounding).sum())
        average += (total - times[part] + 1.0) / max(1, total) @ corrections
        size += float(np.abs(corrections).sum())
        if model.variant == "voted":
            off = float(np.maximum(off, np.abs(model.prototypes_[start:stop][part] - after).max(initial=0)))
        v = after[-1]
    if model.variant == "averaged":
        off = float(_norms((np.append(model.coef_[machine], model.intercept_[machine]) - average)[None])[0])
    return unfounded, disorder, off, size


def _voted_functional(model: Any, evidence: LinearEvidence) -> NDArray[np.float64]:
    """Return y times the vote, shape (machines, n)."""
    functional = np.zeros(evidence.y.shape)
    all_votes = model.votes_
    for machine in range(len(evidence.y)):
        mine = slice(model.starts_[machine], model.starts_[machine + 1])
        prototypes, votes = model.prototypes_[mine], all_votes[mine]
        for rows in evidence.blocks(len(votes)):
            opinions = np.sign(float64_block(evidence.X, rows) @ prototypes[:, :-1].T + prototypes[:, -1])
            functional[machine, rows] = evidence.y[machine, rows] * (opinions @ votes)
    return functional


def read_evidence(model: Any, X: Any, y: Any, sample_weight: Any) -> LinearEvidence:
    """Read the rows, unless X is a `Sample`, as a fit has read them."""
    if not isinstance(X, Sample):
        points, labels = read_points(model, X), np.asarray(y).ravel()
        if len(labels) != points.shape[0]:
            raise InputError(f"X has {points.shape[0]} rows and y has {len(labels)}")
        codes = codes_of(labels, model.classes_).astype(np.int32)
        weight = settle_weights(points, labels, sample_weight, getattr(model, "class_weight", None))
        X = Sample(points, model.classes_, codes, weight)
    s = np.ones(len(X.codes)) if X.weight is None else X.weight
    sign = one_vs_rest_signs(X.codes, len(model.classes_)) * (s > 0).astype(np.int8)
    return LinearEvidence(X.X, sign, s, X.codes, machine_names(model.classes_))


def _functional(model: Any, evidence: LinearEvidence) -> NDArray[np.float64]:
    """Return y f(x), shape (machines, n)."""
    functional = np.empty(evidence.y.shape)
    for rows in evidence.blocks():
        decision = float64_block(evidence.X, rows) @ np.asarray(model.coef_, np.float64).T + model.intercept_
        functional[:, rows] = evidence.y[:, rows] * decision.T
    return functional


def _linear_margin_claims(model: Any, evidence: LinearEvidence) -> list[Claim]:
    functional = _functional(model, evidence)
    norm = _norms(np.asarray(model.coef_, np.float64))
    return [_wrong_side(functional, evidence, must_separate=False), _margin(functional, norm, evidence)]


def _wrong_side(functional: NDArray[np.float64], evidence: LinearEvidence, *, must_separate: bool) -> Claim:
    """Return the number of rows with y f(x) ≤ 0; it must be 0 for a learner that separates."""
    wrong = (evidence.y != 0) & ~(functional > 0)
    count = wrong.sum(axis=1)
    words = "y f(x) > 0 for every row" if must_separate else "training errors of each machine"
    if must_separate and count.any():
        machine = int(np.argmax(count))
        words = f"the rows are not separated: row {int(np.argmax(wrong[machine]))} is the first on the wrong side"
    limits = per_machine(np.zeros(len(count))) if must_separate else None
    holds = not count.any() if must_separate else None
    return Claim("rows on the wrong side", per_machine(count), limits, holds, words)


def _margin(functional: NDArray[np.float64], norm: NDArray[np.float64], evidence: LinearEvidence) -> Claim:
    smallest = np.where(evidence.y != 0, functional, np.inf).min(axis=1) / norm
    return Claim("margin", per_machine(smallest), words="smallest y f(x)/‖w‖, a distance; negative on the wrong side")


def _mistakes(
    mistakes: NDArray[np.int64],
    evidence: LinearEvidence,
    functional: NDArray[np.float64],
    homogeneous_norm: NDArray[np.float64],
    radius: float,
) -> Claim:
    """Return Novikoff's claim, mistakes ≤ (R/γ)² (s_max/s_min)², which holds where the machine separates."""
    counted = evidence.s > 0
    ratio = evidence.s[counted].max() / evidence.s[counted].min()
    gamma = np.where(evidence.y != 0, functional, np.inf).min(axis=1) / homogeneous_norm
    bound = np.where(gamma > 0, (radius / gamma * ratio) ** 2, np.inf)
    bounded = np.isfinite(bound)
    holds = bool((mistakes <= bound * (1 + 1e-9)).all()) if bounded.any() else None
    words = "Novikoff's bound (R/γ)²" if bounded.all() else "no bound where the rows are not separated"
    return Claim("mistakes made", per_machine(mistakes), per_machine(bound) if bounded.any() else None, holds, words)


def _identity(name: str, off: NDArray[np.float64], size: NDArray[np.float64], words: str) -> Claim:
    """Return the claim that two sums of the same terms agree, up to rounding. Infinite sums never agree."""
    limits = IDENTITY_TOLERANCE * size
    holds = bool((np.isfinite(limits) & (off <= limits)).all())
    return Claim(name, per_machine(off), per_machine(limits), holds, words)


def _norms(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ‖v‖ of each row, though squares may overflow or underflow."""
    largest = np.abs(vectors).max(axis=1, initial=0)
    safe = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    return np.asarray(safe * np.linalg.norm(vectors / safe[:, None], axis=1))


def _row_norms(X: Matrix, one: float) -> NDArray[np.float64]:
    """Return ‖(x, one)‖ of each row, dense or sparse, likewise."""
    largest = float(abs(X).max()) if X.shape[0] and X.shape[1] else 1.0
    safe = largest if largest > 0 and np.isfinite(largest) else 1.0
    return np.asarray(np.hypot(safe * np.sqrt(squared_norms(X / safe)), one))


def _other_rows(fitted_on: int, evidence: LinearEvidence) -> Claim:
    """Return the failed claim of a model that was not fitted on these rows."""
    given = f"{evidence.X.shape[0]} different ones" if fitted_on == evidence.X.shape[0] else str(evidence.X.shape[0])
    words = f"fitted on {fitted_on} rows, given {given}: certify with the rows the model was fitted on"
    name = "the rows are those it was fitted on"
    return Claim(name, (float(evidence.X.shape[0]),), (float(fitted_on),), False, words)


def solver_certificate(model: Any, n_rows: int, numbers: dict[str, NDArray[Any]]) -> Certificate:
    """Return the solver's own numbers, without a verdict."""
    claims = [Claim(name, per_machine(values), words="as reported by the solver") for name, values in numbers.items()]
    return Certificate.of(model, "solver", n_rows, machine_names(model.classes_), claims)
