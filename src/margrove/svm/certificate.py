"""Certificates of support vector machines: what `margrove.svm.kkt` says, with every number recomputed.

Nothing here imports a solver or an engine, so it judges any model that shows its support vectors and dual coefficients
the way scikit-learn's do. The problem is rebuilt from the data and the model's parameters; α is read off
``dual_coef_``:

SVC           α_i = y_i β_i
NuSVC         the model is scaled by 1/ρ: ρ = ν ΣC / Σ yβ, α_i = ρ y_i β_i, and b likewise; judged unscaled
OneClassSVM   α_i = β_i, b = −ρ
SVR, NuSVR    α_i = max(β_i, 0), α*_i = max(−β_i, 0). The ν-form's tube ε is not kept by the model: it is found again
              from the marginal rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.certificate import Certificate, Claim, recorded
from margrove.data.sample import class_weights, codes_of, read_points, settle_weights
from margrove.errors import InputError
from margrove.run.progress import as_one_of
from margrove.svm.kernels import Kernel, Matrix, diagonal_of, kernel_of
from margrove.svm.kkt import (
    BOUND_TOLERANCE,
    CLASSIFICATION,
    NU_CLASSIFICATION,
    NU_REGRESSION,
    ONE_CLASS,
    REGRESSION,
    Finding,
    Form,
    Machine,
    at_bounds,
    claims_of,
    judge,
)
from margrove.svm.layout import code_of, coefficients_of, dense, machine_names
from margrove.svm.problem import (
    Dual,
    classification,
    nu_classification,
    nu_regression,
    one_class,
    regression,
    sides,
)
from margrove.svm.sums import kernel_sums

_OF_ITS_SIZE = 1e-4  # of Σ|βf|: how far the ‖w‖² that a model keeps may be off, as kernel values in float32 make it
_SINGLE = 1e9  # the rounding of float32 over that of float64

# What overflows is told by the claims, which then fail.
_QUIETLY = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


@dataclass(frozen=True)
class Claimed:
    """A machine as a model shows it: the rows it is about, and β and f = Σ β K of each."""

    name: str
    rows: NDArray[np.int64]
    beta: NDArray[np.float64]
    f: NDArray[np.float64]
    b: float
    stray: float  # Σ|β| of support vectors that are none of the rows


@_QUIETLY
def certify_svc(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted C-SVC, Margrove's or scikit-learn's."""

    def build(sign: NDArray[np.int8], weight: NDArray[np.float64], rows: NDArray[np.int64]) -> Dual:
        upper = float(model.C) * weight if np.isfinite(model.C) else np.full(len(rows), np.inf)
        return classification(sign, upper, rows)

    def settle(name: str, dual: Dual, claimed: Claimed) -> Machine:
        return Machine(name, dual, dual.y * claimed.beta, claimed.b, stray=claimed.stray)

    return _certify_classifier(model, X, y, sample_weight, CLASSIFICATION, build, settle)


@_QUIETLY
def certify_nu_svc(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted ν-SVC, Margrove's or scikit-learn's."""

    def build(sign: NDArray[np.int8], weight: NDArray[np.float64], rows: NDArray[np.int64]) -> Dual:
        return nu_classification(sign, weight, float(model.nu), rows)

    def settle(name: str, dual: Dual, claimed: Claimed) -> Machine:
        rho = float(dual.alpha.sum() / (dual.y @ claimed.beta))  # below 0 with an indefinite kernel, as LIBSVM has it
        alpha = rho * dual.y * claimed.beta
        scale = float(np.divide(1.0, rho))
        return Machine(name, dual, alpha, rho * claimed.b, rho, scale, stray=rho * claimed.stray)

    return _certify_classifier(model, X, y, sample_weight, NU_CLASSIFICATION, build, settle)


@_QUIETLY
def certify_one_class(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """Judge a fitted one-class machine, Margrove's or scikit-learn's; ``y`` is ignored."""
    points, weight = _read(model, X, None, sample_weight)
    support = _support_rows(model, weight)
    fault = _fault(model, points, support)
    if fault is not None:
        return _certificate(model, points, ["one class"], (fault,))
    rows = np.flatnonzero(weight > 0)
    f, beta, stray = _sums(kernel_of(model), points, rows, support, dense(model.dual_coef_)[0])
    claimed = Claimed("one class", rows, beta, f, _offset_of(model, 0), stray)
    dual = replace(one_class(weight[rows], float(model.nu)), point=rows)
    machine = Machine(claimed.name, dual, claimed.beta, claimed.b, stray=claimed.stray)
    finding = judge(machine, claimed.f, diagonal_of(kernel_of(model), points)[rows])
    off_offset = float(np.abs(np.asarray(model.offset_) + np.asarray(model.intercept_)).max())
    finding = replace(finding, off_b=max(finding.off_b, off_offset))
    return _certificate(model, points, [claimed.name], _claims(model, [machine], [finding], ONE_CLASS))


@_QUIETLY
def certify_svr(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted ε-SVR, Margrove's or scikit-learn's."""

    def settle(z: NDArray[np.float64], upper: NDArray[np.float64], claimed: Claimed) -> Machine:
        dual = regression(z, upper, float(model.epsilon))
        alpha = np.concatenate([np.maximum(claimed.beta, 0), np.maximum(-claimed.beta, 0)])
        return Machine(claimed.name, dual, alpha, claimed.b, stray=claimed.stray)

    return _certify_regression(model, X, y, sample_weight, REGRESSION, settle)


@_QUIETLY
def certify_nu_svr(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted ν-SVR, Margrove's or scikit-learn's."""

    def settle(z: NDArray[np.float64], upper: NDArray[np.float64], claimed: Claimed) -> Machine:
        dual = nu_regression(z, upper, float(model.nu))
        both = _lifted(dual, claimed, z - claimed.f)
        alpha = np.concatenate([np.maximum(claimed.beta, 0) + both, np.maximum(-claimed.beta, 0) + both])
        rho = _radius(dual, alpha, np.tile(z - claimed.f, 2), claimed.b)
        return Machine(claimed.name, dual, alpha, claimed.b, rho, stray=claimed.stray)

    return _certify_regression(model, X, y, sample_weight, NU_REGRESSION, settle)


def _radius(dual: Dual, alpha: NDArray[np.float64], v: NDArray[np.float64], b: float) -> float:
    """The ρ that goes with b: KKT wants b − ρ and b + ρ each in an interval, and this ρ is in the middle of what both
    allow (or between them, where they agree on none)."""
    up, low = sides(dual.y, at_bounds(alpha, dual.upper), dual.upper)
    ends = []
    for sign in (1, -1):
        part = dual.y == sign
        levels = v[up & part].max(initial=-np.inf), v[low & part].min(initial=np.inf)
        ends.append(sorted(-sign * (level - b) for level in levels))
    least, most = max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
    finite = [end for end in (least, most) if np.isfinite(end)]
    return float(np.mean(finite)) if finite else 0.0


def _lifted(dual: Dual, claimed: Claimed, residual: NDArray[np.float64]) -> NDArray[np.float64]:
    """What α and α* share. A model keeps their difference; where ν leaves no tube (ε = 0) both may be above 0, and
    their common part is missing from Σ(α + α*) = ν ΣC. It belongs to rows whose residual is b: it is poured into those
    that are nearest to that, as far as their boxes reach."""
    missing = (float(dual.alpha.sum()) - float(np.abs(claimed.beta).sum())) / 2
    both = np.zeros(len(residual))
    if not missing > BOUND_TOLERANCE * float(dual.alpha.sum()):
        return both
    order = np.argsort(np.abs(residual - claimed.b), kind="stable")
    room = np.maximum(dual.upper[: len(residual)] - np.abs(claimed.beta), 0)[order]
    both[order] = np.clip(missing - (np.cumsum(room) - room), 0, room)
    return both


def _certify_classifier(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    form: Form,
    build: Callable[[NDArray[np.int8], NDArray[np.float64], NDArray[np.int64]], Dual],
    settle: Callable[[str, Dual, Claimed], Machine],
) -> Certificate:
    points, weight = _read(model, X, y, sample_weight)
    codes, code = codes_of(y, model.classes_), code_of(model)
    names = machine_names(model.classes_, code)
    support = _support_rows(model, weight)
    fault = _fault(model, points, support, len(names))
    if fault is not None:
        return _certificate(model, points, names, (fault,))
    kernel, coefficients = kernel_of(model), coefficients_of(model)
    diagonal = diagonal_of(kernel, points)
    machines: list[Machine] = []
    findings: list[Finding] = []
    for number, (name, beta) in enumerate(zip(names, coefficients, strict=True)):
        sign = code[codes, number]
        rows = np.flatnonzero((sign != 0) & (weight > 0))
        with as_one_of("certificate", number, len(names)):
            f, own, stray = _sums(kernel, points, rows, support, beta)
        claimed = Claimed(name, rows, own, f, _offset_of(model, number), stray)
        machines.append(settle(name, build(sign[rows], weight[rows], rows), claimed))
        findings.append(judge(machines[-1], claimed.f / machines[-1].scale, diagonal[rows]))
    claims = _claims(model, machines, findings, form)
    if not _is_scikit_learns(model):
        expected = class_weights(model.class_weight, model.classes_, codes)
        counts = np.bincount(codes[support], minlength=len(model.classes_))
        claims += recorded(model, class_weight_=(expected, 1e-9 * expected), n_support_=(counts, 0))
    return _certificate(model, points, names, claims)


def _certify_regression(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    form: Form,
    settle: Callable[[NDArray[np.float64], NDArray[np.float64], Claimed], Machine],
) -> Certificate:
    points, weight = _read(model, X, y, sample_weight)
    support = _support_rows(model, weight)
    fault = _fault(model, points, support)
    if fault is not None:
        return _certificate(model, points, ["regression"], (fault,))
    rows = np.flatnonzero(weight > 0)
    f, beta, stray = _sums(kernel_of(model), points, rows, support, dense(model.dual_coef_)[0])
    claimed = Claimed("regression", rows, beta, f, _offset_of(model, 0), stray)
    machine = settle(np.asarray(y, dtype=np.float64).ravel()[rows], float(model.C) * weight[rows], claimed)
    machine = replace(machine, dual=replace(machine.dual, point=rows[machine.dual.point]))
    finding = judge(machine, np.tile(claimed.f, 2), np.tile(diagonal_of(kernel_of(model), points)[rows], 2))
    return _certificate(model, points, [claimed.name], _claims(model, [machine], [finding], form))


def _read(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, NDArray[np.float64]]:
    points = read_points(model, X)
    labels = None if y is None else np.asarray(y).ravel()
    if labels is not None and len(labels) != points.shape[0]:
        raise InputError(f"X has {points.shape[0]} rows and y has {len(labels)}")
    weight = settle_weights(points, labels, sample_weight, _class_weight(model))
    return points, np.ones(points.shape[0]) if weight is None else weight


def _is_scikit_learns(model: Any) -> bool:
    return type(model).__module__.startswith("sklearn.")


def _class_weight(model: Any) -> Any:
    """scikit-learn's NuSVC takes a class_weight and does nothing with it."""
    is_ignored = type(model).__name__ == "NuSVC" and _is_scikit_learns(model)
    return None if is_ignored else getattr(model, "class_weight", None)


def _support_rows(model: Any, weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """``support_`` as rows of X. scikit-learn counts only the rows of weight > 0."""
    support = np.asarray(model.support_, dtype=np.int64)
    counted = np.flatnonzero(weight > 0)
    if not _is_scikit_learns(model) or len(counted) == len(weight) or support.max(initial=0) >= len(counted):
        return support
    return counted[support]


def _fault(model: Any, X: Matrix, support: NDArray[np.int64], machines: int = 1) -> Claim | None:
    """What makes it pointless to look further."""
    n, dual = X.shape[0], model.dual_coef_
    sizes = {len(support), len(np.unique(support)), dual.shape[1], int(np.sum(model.n_support_))}
    if len(sizes) > 1 or len(np.asarray(model.intercept_).ravel()) != machines:
        return Claim("the model's arrays belong together", (float(len(support)),), None, False, "their sizes differ")
    if len(support) and (support.min() < 0 or support.max() >= n):
        is_same = False
    elif model.kernel == "precomputed" or (callable(model.kernel) and model.support_vectors_.shape[0] == 0):
        is_same = True  # scikit-learn keeps no support vectors for a callable
    elif model.support_vectors_.shape != (len(support), X.shape[1]):
        is_same = False
    else:
        difference = X[support] - model.support_vectors_
        is_same = len(support) == 0 or bool(abs(difference).max() == 0)
    if is_same:
        return None
    words = "the support vectors are not rows of X: certify on the rows the model was fitted on"
    return Claim("the rows are those it was fitted on", (float(n),), None, False, words)


def _sums(
    kernel: Kernel, X: Matrix, rows: NDArray[np.int64], support: NDArray[np.int64], coefficients: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """f = Σ β K and β of each row, and Σ|β| of support vectors that are none of the rows."""
    everywhere = np.zeros(X.shape[0])
    everywhere[support] = coefficients
    beta = everywhere[rows]
    everywhere[rows] = 0
    return kernel_sums(kernel, X, rows, beta), beta, float(np.abs(everywhere).sum())


def _claims(model: Any, machines: list[Machine], findings: list[Finding], form: Form) -> tuple[Claim, ...]:
    """Return the claims of a model and of its recorded numbers. For scikit-learn's models tol is absolute, as in
    LIBSVM."""
    if _is_scikit_learns(model):
        findings = [replace(finding, unit=1.0) for finding in findings]
    claims = claims_of(machines, findings, form, float(model.tol), kernel_of(model))
    scale, norm = np.abs([machine.scale for machine in machines]), np.array([finding.norm for finding in findings])
    allowed = [_OF_ITS_SIZE * each.size + _SINGLE * each.rounding * each.sum_alpha for each in findings]
    off = np.nan_to_num(np.divide(allowed, np.maximum(norm, np.sqrt(allowed))))  # 0/0: no support vectors
    return claims + recorded(model, norm_=(scale * norm, scale * off))


def _offset_of(model: Any, machine: int) -> float:
    return float(np.asarray(model.intercept_).ravel()[machine])


def _certificate(model: Any, X: Matrix, names: Any, claims: tuple[Claim, ...]) -> Certificate:
    status = str(getattr(model, "status_", "unknown"))
    return Certificate(type(model).__name__, status, "recomputed", X.shape[0], tuple(names), claims)


def solver_certificate(
    model: Any, n_rows: int, machines: list[Machine], findings: list[Finding], form: Form
) -> Certificate:
    """Return the same claims computed from the solver's own numbers."""
    claims = claims_of(machines, findings, form, float(model.tol), kernel_of(model))
    names = tuple(machine.name for machine in machines)
    return Certificate(type(model).__name__, str(model.status_), "solver", n_rows, names, claims)
