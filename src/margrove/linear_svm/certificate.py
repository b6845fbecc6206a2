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
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.certificate import Certificate, Claim, per_machine, recorded
from margrove.data.dask_partitions import connected, partitions_of
from margrove.data.lazy import is_files, kind_of_collection
from margrove.data.rows import Matrix, Partitioned
from margrove.data.sample import codes_of, float64_block, one_vs_rest_signs, read_points, settle_weights
from margrove.errors import InputError
from margrove.linear.problem import machine_names
from margrove.linear_svm.chunks import ChunkedSample, read_chunked_sample, read_chunked_values
from margrove.linear_svm.layout import costs_of_classes, is_joint, scale_of_intercept, stated_problem, weights_of
from margrove.linear_svm.partitions import read_partitioned_sample, read_partitioned_values
from margrove.linear_svm.problem import (
    ROUNDING_OF_SUMS,
    CrammerSingerProblem,
    LinearProblem,
    LinearSvmProblem,
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
from margrove.linear_svm.stream_problem import RowBlock

BLOCK_CELLS = 1 << 20  # numbers of X, or of β, held in float64 at once
BOUND_TOLERANCE = 1e-9  # of β outside its bounds, and of Σ β, relative to the largest cost or to Σ|β|
_ROUNDING = 1e-6  # of the gap against tol, relative to tol: two sums of the same terms in another order
_DIGITS = 1e-13  # of the gap, which is a difference of two numbers relative to one of them

# Of `_Sums`: the sums that are added over parts of the rows, and those of which the largest counts.
_ADDED = ("loss", "rounding", "spread", "v", "total", "linear", "square", "size", "column", "errors", "margin_errors")
_LARGEST = ("outside", "largest")

# Where numbers overflow, the claims fail: no warning is needed.
_QUIETLY = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


class _Sums:
    """Sums over the rows of a problem, for each machine of a fitted model; those of β for each side (β > 0, β < 0) of a
    free intercept by itself."""

    def __init__(self, model: Any, problem: LinearSvmProblem) -> None:
        self.model, self.problem = model, problem  # of the problem all but the rows is used
        self.is_free = math.isinf(problem.intercept)
        self.w = weights_of(model)
        machines, d = self.w.shape
        wanted, given = len(problem.machines), np.size(model.intercept_)
        if machines != wanted or given not in (1, machines):
            raise InputError(f"coef_ has {machines} machines and intercept_ has {given}; {wanted} were expected")
        self.b = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), machines)
        self.dual_coef, self.dual_steps = getattr(model, "dual_coef_", None), getattr(model, "dual_steps_", None)
        if not is_squared(problem.loss) and self.dual_coef is None and self.dual_steps is None:
            raise _without_beta(model)
        sides = 2 if self.is_free else 1
        self.loss = np.zeros(machines)  # Σ C ℓ
        self.rounding = np.zeros(machines)  # by how much float64 may be wrong about it
        self.spread = np.zeros((machines, d))  # by how much float64 may be wrong about Σ β x
        self.v = np.zeros((sides, machines, d))  # Σ β x
        self.total = np.zeros((sides, machines))  # Σ β
        self.linear = np.zeros((sides, machines))  # Σ z β − ε|β|
        self.square = np.zeros((sides, machines))  # Σ β²/(4C)
        self.outside = np.zeros(machines)  # the farthest β from its bounds
        self.size = np.zeros(machines)  # Σ |β|
        self.largest = np.zeros(machines)  # the largest cost
        self.column = np.zeros((machines, d))  # Σ 4 C x²; for penalty l1
        self.errors = np.zeros(machines, np.int64)  # rows on the wrong side
        self.margin_errors = np.zeros(machines, np.int64)  # rows with a loss

    def add(self, part: LinearSvmProblem, start: int) -> None:
        """Add the rows of a part of the problem, of which ``start`` rows came before."""
        loss, epsilon = part.loss, part.epsilon
        for rows in _blocks(part.X, len(self.w)):
            block = float64_block(part.X, rows)
            given = z = np.array([machine.target[rows] for machine in part.machines])
            cost = np.array([machine.cost[rows] for machine in part.machines])
            f = (block @ self.w.T).T  # (machines, rows)
            if is_of_signs(loss):
                f = f + self.b[:, None]
            else:  # targets far from 0 that differ by little keep their digits
                z = z - self.b[:, None]
            counted = cost > 0
            self.loss += np.where(counted, cost * losses(loss, z, f, epsilon), 0).sum(axis=1)
            beyond = excess(loss, z, f, epsilon)
            self.margin_errors += (counted & (beyond > 0)).sum(axis=1)  # the square of a loss may underflow
            self.errors += (counted & ~(z * f > 0)).sum(axis=1)
            self.largest = np.maximum(self.largest, cost.max(axis=1, initial=0))
            if self.dual_coef is not None:
                first = start + rows.start
                kept = np.asarray(self.dual_coef[:, first : first + block.shape[0]], dtype=np.float64)
                beta = np.clip(kept, *bounds_of(loss, z, cost))
                self.outside = np.maximum(self.outside, np.abs(kept - beta).max(axis=1, initial=0))
            elif self.dual_steps is not None:
                beta = self._stepped(self.dual_steps, block, given, cost)
            else:
                beta = implied_beta(loss, z, f, cost, epsilon)
            size = abs(block)
            sizes = np.asarray(size @ np.abs(self.w).T).T
            if is_of_signs(loss):  # otherwise the targets are counted from b
                sizes = np.where(sizes > 0, sizes + np.abs(self.b)[:, None], 0)
            unsure = ROUNDING_OF_SUMS * sizes
            self.rounding += rounding_of_losses(loss, beyond, cost, epsilon, unsure).sum(axis=1)
            self.spread += ROUNDING_OF_SUMS * (np.abs(beta) @ size)
            self.size += np.abs(beta).sum(axis=1)
            for side, own in enumerate([np.maximum(beta, 0), np.minimum(beta, 0)] if self.is_free else [beta]):
                self.v[side] += own @ block
                self.total[side] += own.sum(axis=1)
                # Σ β = 0 where b is free, so there z may be counted from b too.
                terms = (z if self.is_free else given) * own - epsilon * np.abs(own)
                self.linear[side] += terms.sum(axis=1)
                if is_squared(loss):
                    self.square[side] += np.divide(own**2, 4 * cost, out=np.zeros_like(own), where=counted).sum(axis=1)
            if part.penalty == "l1":
                self.column += 4 * cost @ (block.multiply(block) if sp.issparse(block) else block**2)

    def _stepped(
        self, dual_steps: NDArray[np.float64], block: Matrix, target: NDArray[np.float64], cost: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return β of some rows from the steps that the model keeps."""
        found = []
        for steps, z, upper in zip(dual_steps, target, cost, strict=True):
            values = np.asarray(block @ steps[:, :-2].T + steps[:, -2])
            found.append(after_steps(self.problem.loss, z, values, upper, self.problem.epsilon, steps[:, -1]))
        return np.array(found)

    def take(self) -> dict[str, NDArray[Any]]:
        """Return the sums alone, for `merge`."""
        return {name: getattr(self, name) for name in (*_ADDED, *_LARGEST)}

    def merge(self, sums: dict[str, NDArray[Any]]) -> None:
        """Add the sums over further rows."""
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + sums[name])
        for name in _LARGEST:
            setattr(self, name, np.maximum(getattr(self, name), sums[name]))

    def claims(self) -> list[Claim]:
        """Return the claims from the sums over all rows."""
        claims = self._gap_claims()
        if is_of_signs(self.problem.loss):
            width = 2 / np.linalg.norm(self.w, axis=1)
            return [
                *claims,
                Claim("rows on the wrong side", per_machine(self.errors), words="training errors of each machine"),
                Claim("rows within the margin", per_machine(self.margin_errors), words="y f(x) < 1: their loss is > 0"),
                Claim("width of the margin", per_machine(width), words="2/‖w‖"),
            ]
        return [*claims, Claim("rows outside the tube", per_machine(self.margin_errors), words="|y − f(x)| > ε")]

    def _gap_claims(self) -> list[Claim]:
        s, w, is_l1 = self.problem.intercept, self.w, self.problem.penalty == "l1"
        scaled_b = np.zeros(len(w)) if s == 0 or self.is_free else self.b / s
        if is_l1:
            penalty = np.abs(w).sum(axis=1) + np.abs(scaled_b)
        else:
            penalty = 0.5 * (w**2).sum(axis=1) + 0.5 * scaled_b**2
        primal = penalty + self.loss
        primal[(primal == 0) & (w.any(axis=1) | (self.margin_errors > 0))] = np.nan  # squares underflow: P is not known
        share = self._feasible_shares()  # (sides, machines)
        dual = (share * self.linear - share**2 * self.square).sum(axis=0)
        v = (share[..., None] * self.v).sum(axis=0)
        u = 0.0 if self.is_free else s * (share * self.total).sum(axis=0)
        if is_l1:
            rounding = self.rounding + np.abs(dual) * self.spread.max(axis=1, initial=0)
        else:
            dual = dual - 0.5 * (v**2).sum(axis=1) - 0.5 * u**2
            rounding = self.rounding + ((np.abs(v) + self.spread / 2) * self.spread).sum(axis=1)
        claims = gap_claims(self.model, primal, dual, rounding)
        if self.dual_coef is not None:
            claims.append(_bound_claim(self.outside, self.largest))
            if self.is_free:
                off, limits = np.abs(self.total.sum(axis=0)), BOUND_TOLERANCE * self.size
                claims.append(Claim.bounded("sum of β", off, limits, "|Σ β|, 0 for a free intercept"))
        return [*claims, *self._column_claims(primal - dual)] if is_l1 else claims

    def _feasible_shares(self) -> NDArray[np.float64]:
        """Return the factors that make β of each side feasible."""
        share = np.ones_like(self.total)
        if self.is_free:
            share[0], share[1] = balancing_shares(self.total[0], -self.total[1])
        if self.problem.penalty == "l1":
            largest = np.abs((share[..., None] * self.v).sum(axis=0)).max(axis=1, initial=0)
            if not self.is_free:
                largest = np.maximum(largest, np.abs(self.problem.intercept * self.total[0]))
            share = share / np.maximum(1, largest)
        return share

    def _column_claims(self, gap: NDArray[np.float64]) -> list[Claim]:
        """Return the claims about columns that penalty l1 leaves out; formula above. Only a squared loss has
        curvature."""
        is_zero = self.w == 0
        claims = [Claim("columns of weight zero", per_machine(is_zero.sum(axis=1)), words="unused, due to penalty l1")]
        if not is_squared(self.problem.loss):
            return claims
        v = np.abs(self.v.sum(axis=0))
        radius = np.sqrt(np.maximum(gap, 0)[:, None] * self.column)
        proved = per_machine((is_zero & (v + radius < 1)).sum(axis=1))
        words = "of these, |Σ β x_j| + √(4 G Σ C x_j²) < 1: zero in every optimal model"
        claims.append(Claim("certified by their subgradient", proved, words=words))
        beyond = np.where(is_zero, v - radius * (1 + _ROUNDING), 0).max(axis=1, initial=0)
        words = "|Σ β x_j| minus what the gap allows: at most 1 where a weight of 0 is optimal"
        holds, limits = bool((beyond <= 1 + _ROUNDING).all()), per_machine(np.ones(len(beyond)))
        claims.append(
            Claim("largest subgradient of a column of weight zero", per_machine(beyond), limits, holds, words)
        )
        return claims


@_QUIETLY
def certify_linear_svc(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted linear SVM, Margrove's, or scikit-learn's of a squared loss."""
    if kind_of_collection(X) is not None or is_files(X):
        return _certify_collection(model, X, y, sample_weight)
    X, y, own = _read(model, X, y, sample_weight)
    codes = codes_of(y, model.classes_)
    costs = costs_of_classes(model, model.classes_, codes, own)
    if is_joint(model):
        return _certify_joint(model, X, codes, costs[0])
    signs = one_vs_rest_signs(codes, len(model.classes_)).astype(np.float64)
    return certify_problem(model, stated_problem(model, X, signs, costs), machine_names(model.classes_))


@_QUIETLY
def certify_linear_svr(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted linear regression by support vectors, Margrove's, or scikit-learn's of a squared loss."""
    if kind_of_collection(X) is not None or is_files(X):
        return _certify_collection(model, X, y, sample_weight)
    X, y, own = _read(model, X, y, sample_weight)
    problem = stated_problem(model, X, [np.asarray(y, dtype=np.float64)], [float(model.C) * own])
    return certify_problem(model, problem, ("regression",))


@_QUIETLY
def certify_problem(model: Any, problem: LinearProblem, names: tuple[str, ...]) -> Certificate:
    """Judge a fitted model by the problem that it solves."""
    if isinstance(problem, CrammerSingerProblem):
        return _certify_joint(model, problem.X, problem.codes, problem.cost)
    return _certify(model, [problem], problem.X.shape[0], names)


@_QUIETLY
def certify_linear_stream(model: Any, chunks: Any) -> Certificate:
    """Judge a linear SVM of ours on chunks of rows, as `fit_stream` takes them; memory is that of a chunk."""
    if not hasattr(model, "classes_"):
        sample = read_chunked_values(model, chunks, is_first=False)
    elif is_joint(model):
        raise InputError(
            "multi_class='crammer_singer' cannot be certified over chunks", cure="Pass all rows: certify(model, X, y)."
        )
    else:
        sample = read_chunked_sample(model, chunks, model.classes_, is_first=False)
    names = machine_names(sample.classes) if len(sample.classes) else ("regression",)
    parts = (stated_problem(model, block.X, block.target, block.cost) for block in sample.rows.blocks())
    return _certify(model, parts, sample.rows.n, names)


def _certify_collection(model: Any, X: Any, y: Any, sample_weight: Any) -> Certificate:
    """Judge a linear SVM of ours on a Dask collection, where it lies, by the current client."""
    is_classifier = hasattr(model, "classes_")
    if (is_classifier and is_joint(model)) or hasattr(model, "dual_coef_") or not hasattr(model, "gap_"):
        problem = f"this {type(model).__name__} cannot be certified over partitions: it was fitted in memory"
        raise InputError(problem, cure="Pass rows in memory: X.compute().")
    with connected(None) as client:
        parts = partitions_of(client, X, y, sample_weight)
        if is_classifier:
            sample = read_partitioned_sample(model, parts, model.classes_, is_first=False)
            return certify_partitioned(model, sample, machine_names(model.classes_))
        return certify_partitioned(model, read_partitioned_values(model, parts, is_first=False), ("regression",))


@_QUIETLY
def certify_partitioned(model: Any, sample: ChunkedSample, names: tuple[str, ...]) -> Certificate:
    """Judge a linear SVM of ours on rows in partitions: each worker adds up its own."""
    rows = sample.rows
    assert isinstance(rows, Partitioned)
    nothing = np.zeros((len(names), 0))
    sums = _Sums(model, stated_problem(model, np.empty((0, rows.d)), nothing, nothing))
    if sums.dual_coef is not None:
        raise AssertionError("a fit over partitions keeps steps, not the β of rows")
    for part in rows.parts.map(_sums_of_part, model):
        sums.merge(part)
    return Certificate.of(model, "recomputed", rows.n, names, sums.claims())


@_QUIETLY
def _sums_of_part(block: RowBlock, model: Any) -> dict[str, NDArray[Any]]:
    problem = stated_problem(model, block.X, block.target, block.cost)
    sums = _Sums(model, problem)
    sums.add(problem, 0)
    return sums.take()


def _certify(model: Any, parts: Iterable[LinearSvmProblem], n: int, names: tuple[str, ...]) -> Certificate:
    """Judge a model by a problem whose n rows come in parts."""
    sums, start = None, 0
    for part in parts:
        sums = sums or _Sums(model, part)
        if sums.dual_coef is not None and sums.dual_coef.shape != (len(names), n):
            return Certificate.of(model, "recomputed", n, names, [_other_rows(sums.dual_coef.shape[1], n)])
        sums.add(part, start)
        start += part.X.shape[0]
    if sums is None:
        raise AssertionError("a problem without rows is refused earlier")
    return Certificate.of(model, "recomputed", n, names, sums.claims())


def _read(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, NDArray[Any], NDArray[np.float64]]:
    X, y = read_points(model, X), np.asarray(y).ravel()
    if len(y) != X.shape[0]:
        raise InputError(f"X has {X.shape[0]} rows and y has {len(y)}")
    own = settle_weights(X, y, sample_weight, None)
    return X, y, np.ones(len(y)) if own is None else own


def _without_beta(model: Any) -> InputError:
    """Return the error for a loss that is not squared, of which w alone proves no gap."""
    name, squared = type(model).__name__, f"squared_{model.loss}"
    if hasattr(model, "n_seen_"):
        return InputError(
            f"this {name} was fitted by partial_fit, which keeps neither the rows nor their dual coefficients, and "
            f"with loss={model.loss!r} w does not determine them: there is no certificate",
            cure=f"Use loss={squared!r}, whose certificate needs only w, or fit_stream over all rows.",
        )
    if hasattr(model, "gap_"):
        return InputError(
            f"this {name} was fitted on too many rows and columns to keep the dual coefficients, and loss="
            f"{model.loss!r} has no certificate without them",
            cure=f"Use loss={squared!r}, whose certificate needs only w. The gap that the solver reached is in gap_.",
        )
    return InputError(
        f"this {name} keeps no dual coefficients, and loss={model.loss!r} has no certificate without them",
        cure="Fit Margrove's estimator, or use the squared loss.",
    )


def _blocks(X: Matrix, width: int) -> Iterator[slice]:
    """Yield slices of rows of about BLOCK_CELLS numbers: those of X, or ``width`` per row where that is more."""
    stored = X.nnz // max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
    step = max(1, BLOCK_CELLS // max(1, stored, width))
    return (slice(start, start + step) for start in range(0, X.shape[0], step))


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
    words = "(P − D)/P: the optimum is not better by more than this"
    if (unproved > limits).any():
        words = f"(P − D)/P, of which {unproved.max():.3g} is rounding: float64 cannot prove less with this C"
    return [
        Claim("relative duality gap", per_machine(gap), per_machine(limits), holds, words),
        Claim("primal value", per_machine(primal), words="P: the penalty plus C times the losses"),
        Claim("dual value", per_machine(dual), words="D: a lower bound of P for all w and b"),
        *recorded(model, primal_=(primal, bound), dual_=(dual, bound), gap_=(kept, 1e-9 * np.abs(kept))),
    ]


def _bound_claim(outside: NDArray[np.float64], largest: NDArray[np.float64]) -> Claim:
    words = "largest distance of a dual coefficient from its bounds"
    return Claim.bounded("β outside its bounds", outside, BOUND_TOLERANCE * largest, words)


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
            cure="Fit Margrove's estimator.",
        )
    beta, s = model.dual_coef_, scale_of_intercept(model)
    names = ("all classes",)
    if beta.shape != (n_classes, n):
        return Certificate.of(model, "recomputed", n, names, [_other_rows(beta.shape[1], n)])
    loss = linear = outside = rounding = 0.0
    errors = 0
    v, total, spread = np.zeros_like(w), np.zeros(n_classes), np.zeros_like(w)
    # After each block: the loss, D's linear term, v = Σ β x, Σ β and the rounding bounds of all rows so far.
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
        linear += float(part.T[own].sum())
        v += part @ block
        total += part.sum(axis=1)
        errors += int(((cost[rows] > 0) & (f.argmax(axis=1) != z)).sum())
    scaled_b = b / s if s > 0 else np.zeros_like(b)
    primal = 0.5 * float((w**2).sum() + (scaled_b**2).sum()) + loss
    dual = linear - 0.5 * float((v**2).sum() + ((s * total) ** 2).sum())
    rounding += float(((np.abs(v) + spread / 2) * spread).sum())
    claims = [
        *gap_claims(model, np.array([primal]), np.array([dual]), np.array([rounding])),
        _bound_claim(np.array([outside]), np.array([cost.max(initial=0)])),
        Claim("rows of the wrong class", (float(errors),), words="training errors"),
    ]
    return Certificate.of(model, "recomputed", n, names, claims)


def _other_rows(fitted_on: int, given: int) -> Claim:
    words = f"fitted on {fitted_on} rows, given {given}: certify on the same rows that the model was fitted on"
    return Claim("the rows are those it was fitted on", (float(given),), (float(fitted_on),), False, words)


def solver_certificate(model: Any, n: int, machines: tuple[str, ...]) -> Certificate:
    """Return the solver's own numbers, without a verdict."""
    numbers = {"relative duality gap": model.gap_, "primal value": model.primal_, "dual value": model.dual_}
    claims = [Claim(name, per_machine(values), words="reported by the solver") for name, values in numbers.items()]
    return Certificate.of(model, "solver", n, machines, claims)
