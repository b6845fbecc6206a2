"""Certificates of linear SVMs: primal, dual and their gap, recomputed from data and model in float64, block by block.

Nothing here imports a solver or an engine. P(w, b) is that of `margrove.linear_svm.problem`. D needs a β: of a
squared loss the one that w implies, unless the model keeps a better one, so scikit-learn's models can be judged too; of
the others the model's ``dual_coef_``, or what its ``dual_steps_`` give for each row (see `proximal`). Whatever β is, it
is made feasible before it is used, so D is always below the best that there is, and P − D never less than what the
model misses:

bounds            β is clipped to them; a claim reports by how much
free intercept    the side (β > 0 or β < 0) that weighs more is scaled down until Σ β = 0
penalty l1        β is divided by max(1, ‖Σ β x‖_∞, s |Σ β|)

P and D are sums in float64. For a large C or β their rounding error can exceed tol: C times the error of f in P, β
times that of x in D. A bound on it is added to the gap, so the claimed gap is what float64 can prove.

Penalty l1, columns of weight 0. With G = P − D, and β implied by w, no best model has a v*_j = Σ β*_i x_ij further
from v_j than r_j = √(4 G Σ C_i x_ij²), because a squared loss bends by 2C at most. So |v_j| + r_j < 1 proves
that column j has the weight 0 in every best model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.certificate import Certificate, Claim, per_machine, recorded
from margrove.data.rows import Matrix
from margrove.data.sample import codes_of, float64_block, one_vs_rest_signs, read_points, settle_weights
from margrove.errors import InputError
from margrove.linear.problem import machine_names
from margrove.linear_svm.chunks import read_chunked_sample, read_chunked_values
from margrove.linear_svm.layout import costs_of_classes, is_joint, scale_of_intercept, weights_of
from margrove.linear_svm.problem import (
    ROUNDING_OF_SUMS,
    CrammerSingerProblem,
    LinearProblem,
    Loss,
    Penalty,
    balancing_shares,
    bounds_of,
    crammer_singer_losses,
    excess,
    implied_beta,
    is_of_signs,
    is_squared,
    losses,
    relative_gap,
    rounding_of_losses,
)
from margrove.linear_svm.proximal import after_steps

BLOCK_CELLS = 1 << 20  # numbers of X, or of β, held in float64 at once
BOUND_TOLERANCE = 1e-9  # of β outside its bounds, and of Σ β, relative to the largest cost or to Σ|β|
_ROUNDING = 1e-6  # of the gap against tol, relative to tol: two sums of the same terms in another order
_DIGITS = 1e-13  # of the gap, which is a difference of two numbers relative to one of them

# Where numbers overflow, the claims fail: no warning is needed.
_QUIETLY = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


@dataclass(frozen=True)
class _Evidence:
    """Data and model as the certificate reads them."""

    X: Matrix  # (n, d)
    target: NDArray[np.float64]  # (machines, n)
    cost: list[NDArray[np.float64]]  # of each machine
    w: NDArray[np.float64]  # (machines, d)
    b: NDArray[np.float64]  # (machines,)
    dual_coef: NDArray[np.float64] | None  # (machines, n)
    loss: Loss
    penalty: Penalty
    s: float
    epsilon: float
    machines: tuple[str, ...]
    dual_steps: NDArray[np.float64] | None = None  # (machines, steps, d + 2)

    @property
    def is_free(self) -> bool:
        return math.isinf(self.s)

    def blocks(self) -> Iterator[slice]:
        return _blocks(self.X, len(self.w))


@dataclass
class _Tally:
    """Sums over the rows, of each machine; those of β for each side (β > 0, β < 0) of a free intercept by itself."""

    loss: NDArray[np.float64]  # (machines,), Σ C ℓ
    rounding: NDArray[np.float64]  # (machines,), by how much float64 may be wrong about it
    spread: NDArray[np.float64]  # (machines, d), by how much float64 may be wrong about Σ β x
    v: NDArray[np.float64]  # (sides, machines, d), Σ β x
    total: NDArray[np.float64]  # (sides, machines), Σ β
    linear: NDArray[np.float64]  # (sides, machines), Σ z β − ε|β|
    square: NDArray[np.float64]  # (sides, machines), Σ β²/(4C)
    outside: NDArray[np.float64]  # (machines,), the farthest β from its bounds
    size: NDArray[np.float64]  # (machines,), Σ |β|
    largest: NDArray[np.float64]  # (machines,), the largest cost
    column: NDArray[np.float64]  # (machines, d), Σ 4 C x²; for penalty l1
    errors: NDArray[np.int64]  # (machines,), rows on the wrong side, or outside the tube
    margin_errors: NDArray[np.int64]  # (machines,), rows with a loss


@_QUIETLY
def certify_linear_svc(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted linear SVM, Margrove's, or scikit-learn's of a squared loss."""
    X, y, own = _read(model, X, y, sample_weight)
    codes = codes_of(y, model.classes_)
    costs = costs_of_classes(model, model.classes_, codes, own)
    if is_joint(model):
        return _certify_joint(model, X, codes, costs[0])
    sign = one_vs_rest_signs(codes, len(model.classes_)).astype(np.float64)
    names = machine_names(model.classes_)
    return _certify(model, _evidence(model, X, sign, costs, names, penalty=model.penalty, epsilon=0.0))


@_QUIETLY
def certify_linear_svr(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted linear regression by support vectors, Margrove's, or scikit-learn's of a squared loss."""
    X, y, own = _read(model, X, y, sample_weight)
    z = np.asarray(y, dtype=np.float64)[None]
    evidence = _evidence(
        model, X, z, [float(model.C) * own], ("regression",), penalty="l2", epsilon=float(model.epsilon)
    )
    return _certify(model, evidence)


@_QUIETLY
def certify_problem(model: Any, problem: LinearProblem, names: tuple[str, ...]) -> Certificate:
    """Judge a fitted model by the problem that it solves."""
    if isinstance(problem, CrammerSingerProblem):
        return _certify_joint(model, problem.X, problem.codes, problem.cost)
    target, cost = np.array([each.target for each in problem.machines]), [each.cost for each in problem.machines]
    evidence = _evidence(model, problem.X, target, cost, names, penalty=problem.penalty, epsilon=problem.epsilon)
    return _certify(model, evidence)


@_QUIETLY
def certify_linear_stream(model: Any, chunks: Any) -> Certificate:
    """Judge a linear SVM of ours on chunks of rows, as `fit_stream` takes them; memory is that of a chunk."""
    is_regression = not hasattr(model, "classes_")
    if not is_regression and is_joint(model):
        raise InputError(
            "multi_class='crammer_singer' has no certificate over chunks", cure="Give all rows: certify(model, X, y)."
        )
    epsilon = float(model.epsilon) if is_regression else 0.0
    if is_regression:
        sample = read_chunked_values(model, chunks, model.loss, epsilon, is_first=False)
    else:
        sample = read_chunked_sample(model, chunks, model.classes_, is_first=False)
    tally, evidence, start = None, None, 0
    penalty: Penalty = getattr(model, "penalty", "l2")
    n, machines = sample.rows.n, ("regression",) if is_regression else machine_names(sample.classes)
    for block in sample.rows.blocks():
        cost = list(block.cost)
        evidence = _evidence(model, block.X, block.target, cost, machines, penalty=penalty, epsilon=epsilon)
        if evidence.dual_coef is not None:
            kept = evidence.dual_coef.shape[1]
            if kept != n:
                return _certificate(model, n, machines, [_other_rows(kept, n)])
            own = evidence.dual_coef[:, start : start + block.X.shape[0]]
            evidence = replace(evidence, dual_coef=own)
        start += block.X.shape[0]
        tally = tally or _empty_tally(evidence)
        _add_rows(tally, evidence)
    if tally is None or evidence is None:
        raise AssertionError("a stream without rows is refused before")
    return _certificate(model, n, machines, _claims(model, evidence, tally))


def _read(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, NDArray[Any], NDArray[np.float64]]:
    X, y = read_points(model, X), np.asarray(y).ravel()
    if len(y) != X.shape[0]:
        raise InputError(f"X has {X.shape[0]} rows and y has {len(y)}")
    own = settle_weights(X, y, sample_weight, None)
    return X, y, np.ones(len(y)) if own is None else own


def _evidence(
    model: Any,
    X: Matrix,
    target: NDArray[np.float64],
    cost: list[NDArray[np.float64]],
    names: tuple[str, ...],
    *,
    penalty: Penalty,
    epsilon: float,
) -> _Evidence:
    w = weights_of(model)
    if len(w) != len(names) or np.size(model.intercept_) not in (1, len(w)):
        raise InputError(f"coef_ has {len(w)} machines and intercept_ {np.size(model.intercept_)}, not {len(names)}")
    dual_coef, dual_steps = getattr(model, "dual_coef_", None), getattr(model, "dual_steps_", None)
    if not is_squared(model.loss) and dual_coef is None and dual_steps is None:
        raise _without_beta(model)
    return _Evidence(
        X,
        target,
        cost,
        w,
        np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(w)),
        dual_coef,
        model.loss,
        penalty,
        scale_of_intercept(model),
        epsilon,
        names,
        dual_steps,
    )


def _without_beta(model: Any) -> InputError:
    """Return the error for a loss that is not squared, of which w alone proves no gap."""
    name, squared = type(model).__name__, f"squared_{model.loss}"
    if hasattr(model, "n_seen_"):
        return InputError(
            f"this {name} was left by partial_fit, which forgets its rows and the pull of each, and with loss="
            f"{model.loss!r} w alone does not tell them: there is no certificate",
            cure=f"Use loss={squared!r}, which w alone proves, or fit_stream over all rows.",
        )
    if hasattr(model, "gap_"):
        return InputError(
            f"this {name} saw so many rows of so many columns that the pull of each was not kept, and loss="
            f"{model.loss!r} has no certificate without them",
            cure=f"Use loss={squared!r}, which w alone proves. The gap that the solver reached is in gap_.",
        )
    return InputError(
        f"this {name} keeps no dual coefficients, and loss={model.loss!r} has no certificate without them",
        cure="Fit Margrove's, or use the squared loss.",
    )


def _blocks(X: Matrix, width: int) -> Iterator[slice]:
    """Yield slices of rows of about BLOCK_CELLS numbers: those of X, or ``width`` per row where that is more."""
    stored = X.nnz // max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
    step = max(1, BLOCK_CELLS // max(1, stored, width))
    return (slice(start, start + step) for start in range(0, X.shape[0], step))


def _certify(model: Any, evidence: _Evidence) -> Certificate:
    n = evidence.X.shape[0]
    if evidence.dual_coef is not None and evidence.dual_coef.shape != evidence.target.shape:
        return _certificate(model, n, evidence.machines, [_other_rows(evidence.dual_coef.shape[1], n)])
    tally = _empty_tally(evidence)
    _add_rows(tally, evidence)
    return _certificate(model, n, evidence.machines, _claims(model, evidence, tally))


def _claims(model: Any, evidence: _Evidence, tally: _Tally) -> list[Claim]:
    """Return the claims from the sums over all rows; only the model's part of the evidence is used."""
    claims = _gap_claims(model, evidence, tally)
    if is_of_signs(evidence.loss):
        with np.errstate(divide="ignore"):
            width = 2 / np.linalg.norm(evidence.w, axis=1)
        claims += [
            Claim("rows on the wrong side", per_machine(tally.errors), words="training errors of each machine"),
            Claim("rows within the margin", per_machine(tally.margin_errors), words="y f(x) < 1: these have a loss"),
            Claim("width of the margin", per_machine(width), words="2/‖w‖, a distance"),
        ]
    else:
        claims.append(Claim("rows outside the tube", per_machine(tally.margin_errors), words="|y − f(x)| > ε"))
    return claims


def _empty_tally(evidence: _Evidence) -> _Tally:
    machines, d = evidence.w.shape
    sides = 2 if evidence.is_free else 1
    return _Tally(
        loss=np.zeros(machines),
        rounding=np.zeros(machines),
        spread=np.zeros((machines, d)),
        v=np.zeros((sides, machines, d)),
        total=np.zeros((sides, machines)),
        linear=np.zeros((sides, machines)),
        square=np.zeros((sides, machines)),
        outside=np.zeros(machines),
        size=np.zeros(machines),
        largest=np.zeros(machines),
        column=np.zeros((machines, d if evidence.penalty == "l1" else 0)),
        errors=np.zeros(machines, np.int64),
        margin_errors=np.zeros(machines, np.int64),
    )


def _add_rows(tally: _Tally, evidence: _Evidence) -> None:
    """Add the rows of the evidence to the sums."""
    for rows in evidence.blocks():
        block = float64_block(evidence.X, rows)
        given = z = evidence.target[:, rows]
        cost = np.array([each[rows] for each in evidence.cost])
        f = (block @ evidence.w.T).T  # (machines, rows)
        if is_of_signs(evidence.loss):
            f = f + evidence.b[:, None]
        else:  # targets far from 0 that differ by little keep their digits
            z = z - evidence.b[:, None]
        loss = losses(evidence.loss, z, f, evidence.epsilon)
        counted = cost > 0
        tally.loss += np.where(counted, cost * loss, 0).sum(axis=1)
        beyond = excess(evidence.loss, z, f, evidence.epsilon)
        tally.margin_errors += (counted & (beyond > 0)).sum(axis=1)  # the square of a loss may underflow
        tally.errors += (counted & ~(z * f > 0)).sum(axis=1)
        tally.largest = np.maximum(tally.largest, cost.max(axis=1, initial=0))
        beta = _beta(evidence, tally, rows, block, z, f, cost)
        unsure, spread = _rounding(evidence, block, beta)
        tally.rounding += rounding_of_losses(evidence.loss, beyond, cost, evidence.epsilon, unsure).sum(axis=1)
        tally.spread += spread
        tally.size += np.abs(beta).sum(axis=1)
        for side, part in enumerate([np.maximum(beta, 0), np.minimum(beta, 0)] if evidence.is_free else [beta]):
            tally.v[side] += part @ block
            tally.total[side] += part.sum(axis=1)
            # Σ β = 0 where b is free, so there z may be counted from b too.
            brought = (z if evidence.is_free else given) * part - evidence.epsilon * np.abs(part)
            tally.linear[side] += brought.sum(axis=1)
            if is_squared(evidence.loss):
                tally.square[side] += np.divide(part**2, 4 * cost, out=np.zeros_like(part), where=counted).sum(axis=1)
        if evidence.penalty == "l1":
            squares = block.multiply(block) if sp.issparse(block) else block**2
            tally.column += 4 * cost @ squares


def _beta(
    evidence: _Evidence,
    tally: _Tally,
    rows: slice,
    block: Matrix,
    z: NDArray[np.float64],
    f: NDArray[np.float64],
    cost: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return β of some rows, within its bounds."""
    if evidence.dual_coef is None and evidence.dual_steps is not None:
        found = []
        for steps, own, upper in zip(evidence.dual_steps, evidence.target[:, rows], cost, strict=True):
            values = np.asarray(block @ steps[:, :-2].T + steps[:, -2])
            found.append(after_steps(evidence.loss, own, values, upper, evidence.epsilon, steps[:, -1]))
        return np.array(found)
    if evidence.dual_coef is None:
        return implied_beta(evidence.loss, z, f, cost, evidence.epsilon)
    beta = np.asarray(evidence.dual_coef[:, rows], dtype=np.float64)
    low, high = bounds_of(evidence.loss, z, cost)
    clipped = np.clip(beta, low, high)
    tally.outside = np.maximum(tally.outside, np.abs(beta - clipped).max(axis=1, initial=0))
    return np.asarray(clipped)


def _rounding(
    evidence: _Evidence, block: Matrix, beta: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds on the rounding error of f of each row, shape (machines, rows), and of Σ β x over these rows, shape
    (machines, d)."""
    size = abs(block)
    sizes = np.asarray(size @ np.abs(evidence.w).T).T
    if is_of_signs(evidence.loss):  # otherwise the targets are counted from b
        sizes = np.where(sizes > 0, sizes + np.abs(evidence.b)[:, None], 0)
    return ROUNDING_OF_SUMS * sizes, ROUNDING_OF_SUMS * (np.abs(beta) @ size)


def _gap_claims(model: Any, evidence: _Evidence, tally: _Tally) -> list[Claim]:
    s, w, b = evidence.s, evidence.w, evidence.b
    scaled_b = np.zeros(len(b)) if s == 0 or evidence.is_free else b / s
    if evidence.penalty == "l1":
        penalty = np.abs(w).sum(axis=1) + np.abs(scaled_b)
    else:
        penalty = 0.5 * (w**2).sum(axis=1) + 0.5 * scaled_b**2
    primal = penalty + tally.loss
    primal[(primal == 0) & (w.any(axis=1) | (tally.margin_errors > 0))] = np.nan  # squares underflow: P is not known
    share = _feasible_shares(evidence, tally)  # (sides, machines)
    dual = (share * tally.linear - share**2 * tally.square).sum(axis=0)
    v = (share[..., None] * tally.v).sum(axis=0)
    u = 0.0 if evidence.is_free else s * (share * tally.total).sum(axis=0)
    if evidence.penalty == "l2":
        dual = dual - 0.5 * (v**2).sum(axis=1) - 0.5 * u**2
        rounding = tally.rounding + ((np.abs(v) + tally.spread / 2) * tally.spread).sum(axis=1)
    else:
        rounding = tally.rounding + np.abs(dual) * tally.spread.max(axis=1, initial=0)
    claims = gap_claims(model, primal, dual, rounding)
    if evidence.dual_coef is not None:
        claims.append(_bound_claim(tally.outside, tally.largest))
        if evidence.is_free:
            off, limits = np.abs(tally.total.sum(axis=0)), BOUND_TOLERANCE * tally.size
            claims.append(Claim.bounded("sum of β", off, limits, "|Σ β| = 0: b is free"))
    if evidence.penalty == "l1":
        claims += _column_claims(evidence, tally, primal - dual)
    return claims


def gap_claims(
    model: Any, primal: NDArray[np.float64], dual: NDArray[np.float64], rounding: NDArray[np.float64]
) -> list[Claim]:
    """Return the claim that the gap is within tol, and its parts. β = 0 proves D = 0. ``rounding`` bounds the error of
    P − D: the claimed gap includes it."""
    dual, tol = np.maximum(dual, 0), float(model.tol)
    values = (getattr(model, "primal_", primal), np.maximum(getattr(model, "dual_", dual), 0))  # as recorded
    kept = np.array([relative_gap(P, D) for P, D in zip(*np.broadcast_arrays(*values), strict=True)])
    bound = tol * primal + rounding
    unproved = np.divide(rounding, primal, out=np.zeros(len(primal)), where=primal > 0)
    gap = unproved + np.array([relative_gap(P, D) for P, D in zip(primal, dual, strict=True)])
    limits = np.full(len(gap), tol * (1 + _ROUNDING) + _DIGITS)
    holds = bool(((gap >= 0) & (gap <= limits)).all())
    words = "(P − D)/P: nothing can be better by more"
    if (unproved > limits).any():
        words = f"(P − D)/P, of which {unproved.max():.3g} is rounding: float64 cannot prove less with this C"
    return [
        Claim("relative duality gap", per_machine(gap), per_machine(limits), holds, words),
        Claim("primal value", per_machine(primal), words="P: the penalty, and C times the losses"),
        Claim("dual value", per_machine(dual), words="D: no w and b have a P below it"),
        *recorded(model, primal_=(primal, bound), dual_=(dual, bound), gap_=(kept, 1e-9 * np.abs(kept))),
    ]


def _feasible_shares(evidence: _Evidence, tally: _Tally) -> NDArray[np.float64]:
    """Return the factors that make β of each side feasible."""
    share = np.ones_like(tally.total)
    if evidence.is_free:
        share[0], share[1] = balancing_shares(tally.total[0], -tally.total[1])
    if evidence.penalty == "l1":
        largest = np.abs((share[..., None] * tally.v).sum(axis=0)).max(axis=1, initial=0)
        if not evidence.is_free:
            largest = np.maximum(largest, np.abs(evidence.s * tally.total[0]))
        share = share / np.maximum(1, largest)
    return share


def _bound_claim(outside: NDArray[np.float64], largest: NDArray[np.float64]) -> Claim:
    words = "the farthest that a dual coefficient lies outside"
    return Claim.bounded("β outside its bounds", outside, BOUND_TOLERANCE * largest, words)


def _column_claims(evidence: _Evidence, tally: _Tally, gap: NDArray[np.float64]) -> list[Claim]:
    """Return the claims about columns that penalty l1 leaves out; formula above. Only a squared loss has curvature."""
    is_zero = evidence.w == 0
    claims = [Claim("columns of weight zero", per_machine(is_zero.sum(axis=1)), words="left out by penalty l1")]
    if not is_squared(evidence.loss):
        return claims
    v = np.abs(tally.v.sum(axis=0))
    radius = np.sqrt(np.maximum(gap, 0)[:, None] * tally.column)
    proved = (is_zero & (v + radius < 1)).sum(axis=1)
    excess = np.where(is_zero, v - radius * (1 + _ROUNDING), 0).max(axis=1, initial=0)
    return [
        *claims,
        Claim(
            "certified by their subgradient",
            per_machine(proved),
            words="of these: |Σ β x_j| + √(4 G Σ C x_j²) < 1, so zero in every best model",
        ),
        Claim(
            "largest pull on a column of weight zero",
            per_machine(excess),
            per_machine(np.ones(len(excess))),
            bool((excess <= 1 + _ROUNDING).all()),
            "|Σ β x_j| less what the gap allows: with 1 or less, 0 is where such a weight belongs",
        ),
    ]


def _certify_joint(model: Any, X: Matrix, codes: NDArray[np.integer[Any]], cost: NDArray[np.float64]) -> Certificate:
    """Judge Crammer and Singer's machine. Of two classes a model keeps w_1 − w_0; the best pair has w_0 = −w_1."""
    n, n_classes = X.shape[0], len(model.classes_)
    w, b = weights_of(model), np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    b = np.broadcast_to(b, len(w))
    if n_classes == 2:
        w, b = np.vstack([-w, w]) / 2, np.concatenate([-b, b]) / 2
    if not hasattr(model, "dual_coef_"):
        raise InputError(
            f"this {type(model).__name__} keeps no dual coefficients, and multi_class='crammer_singer' has no "
            "certificate without them",
            cure="Fit Margrove's.",
        )
    beta, s = model.dual_coef_, scale_of_intercept(model)
    names = ("all classes",)
    if beta.shape != (n_classes, n):
        return _certificate(model, n, names, [_other_rows(beta.shape[1], n)])
    loss = brought = outside = rounding = 0.0
    errors = 0
    v, total, spread = np.zeros_like(w), np.zeros(n_classes), np.zeros_like(w)
    for rows in _blocks(X, n_classes):
        block, z, part = float64_block(X, rows), codes[rows], np.asarray(beta[:, rows], dtype=np.float64)
        f = np.asarray(block @ w.T + b)
        own = (np.arange(len(z)), z)
        loss += float(cost[rows] @ crammer_singer_losses(f, z))
        size = abs(block)
        unsure = 2 * ROUNDING_OF_SUMS * (size @ np.abs(w).T + np.abs(b)).max(axis=1)
        rounding += float(cost[rows] @ np.where(crammer_singer_losses(f, z, margin=1 + unsure) > 0, unsure, 0))
        spread += ROUNDING_OF_SUMS * (np.abs(part) @ size)
        upper = np.zeros_like(f)
        upper[own] = cost[rows]
        above = (part.T - upper).max(initial=0)
        outside = float(np.maximum(outside, np.maximum(above, np.abs(part.sum(axis=0)).max(initial=0))))
        brought += float(part.T[own].sum())
        v += part @ block
        total += part.sum(axis=1)
        errors += int(((cost[rows] > 0) & (f.argmax(axis=1) != z)).sum())
    scaled_b = b / s if s > 0 else np.zeros_like(b)
    primal = 0.5 * float((w**2).sum() + (scaled_b**2).sum()) + loss
    dual = brought - 0.5 * float((v**2).sum() + ((s * total) ** 2).sum())
    rounding += float(((np.abs(v) + spread / 2) * spread).sum())
    claims = [
        *gap_claims(model, np.array([primal]), np.array([dual]), np.array([rounding])),
        _bound_claim(np.array([outside]), np.array([cost.max(initial=0)])),
        Claim("rows of the wrong class", (float(errors),), words="training errors"),
    ]
    return _certificate(model, n, names, claims)


def _other_rows(fitted_on: int, given: int) -> Claim:
    words = f"fitted on {fitted_on} rows, given {given}: certify on the very rows the model was fitted on"
    return Claim("the rows are those it was fitted on", (float(given),), (float(fitted_on),), False, words)


def _certificate(model: Any, n: int, machines: tuple[str, ...], claims: list[Claim]) -> Certificate:
    status = str(getattr(model, "status_", "unknown"))
    return Certificate(type(model).__name__, status, "recomputed", n, machines, tuple(claims))


def solver_certificate(model: Any, n: int, machines: tuple[str, ...]) -> Certificate:
    """Return the solver's own numbers, without a verdict."""
    numbers = {"relative duality gap": model.gap_, "primal value": model.primal_, "dual value": model.dual_}
    claims = tuple(Claim(name, per_machine(values), words="as the solver has it") for name, values in numbers.items())
    return Certificate(type(model).__name__, str(model.status_), "solver", n, machines, claims)
