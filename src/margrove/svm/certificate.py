"""Certificates of support vector machines: the claims of `margrove.svm.kkt`, with every number recomputed.

Nothing here imports a solver or an engine, so any model can be certified if it stores its support vectors and dual
coefficients as scikit-learn does. The problem is rebuilt from the data and the model's parameters; α follows from
``dual_coef_``:

SVC           α_i = y_i β_i
NuSVC         the model is scaled by 1/ρ: ρ = ν ΣC / Σ yβ, α_i = ρ y_i β_i, and b likewise; the claims are about the
              unscaled problem
OneClassSVM   α_i = β_i, b = −ρ
SVR, NuSVR    α_i = max(β_i, 0), α*_i = max(−β_i, 0). The ν-form does not store ε, the half-width of the tube; it
              is recomputed from the marginal rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.certificate import Certificate, Claim, per_machine, recorded
from margrove.data.dask_partitions import connected, partitions_of
from margrove.data.lazy import is_files, kind_of_collection
from margrove.data.sample import class_weights, codes_of, read_points, settle_weights
from margrove.errors import InputError
from margrove.run.progress import Progress, report
from margrove.svm.kernels import NONNEGATIVE, Kernel, Matrix, are_numbers, called, diagonal_of, kernel_of, kernel_sums
from margrove.svm.kkt import (
    BOUND_TOLERANCE,
    CLASSIFICATION,
    EASY,
    HARD,
    MARGINAL,
    NU_CLASSIFICATION,
    NU_REGRESSION,
    ONE_CLASS,
    REGRESSION,
    Finding,
    Form,
    SolvedDual,
    at_bounds,
    count_support,
    judge,
    row_grades,
    sides,
)
from margrove.svm.layout import code_of, coefficients_of, dense, machine_names
from margrove.svm.partitions import SpreadPoints
from margrove.svm.problem import Dual, classification

_OF_ITS_SIZE = 1e-4  # relative to Σ|βf|: allowed error of the stored ‖w‖², for kernel values in float32
_SINGLE = 1e9  # about the ratio of the rounding errors of float32 and float64

# Where numbers overflow, the claims fail: no warning is needed.
_QUIETLY = np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")


@_QUIETLY
def _certify(form: Form, model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate:
    """Certify a fitted model of this form, Margrove's or scikit-learn's. ``y`` is ignored for a one-class machine."""
    if kind_of_collection(X) is not None or (is_files(X) and not callable(model.kernel)):  # else these are texts
        with connected(None) as client:
            y = None if form is ONE_CLASS else y
            parts = partitions_of(client, X, y, sample_weight, needs_target=form is not ONE_CLASS)
            spread = SpreadPoints(parts, model)
            return _certify(form, model, spread, spread.y, spread.weight)
    points, weight, kernel = _read(model, X, None if form is ONE_CLASS else y, sample_weight)
    support = _support_rows(model, weight)
    names: tuple[str, ...] = (form.name,)
    if form.is_classifier:
        codes, code = codes_of(y, model.classes_), code_of(model)
        names = machine_names(model.classes_, code)
    fault = _fault(model, X, points, support, len(names))
    if fault is not None:
        return Certificate.of(model, "recomputed", points.shape[0], names, (fault,))
    if form.is_classifier:
        targets: Iterable[NDArray[Any]] = (column[codes] for column in code.T)
    else:
        targets = [np.zeros(len(weight)) if form is ONE_CLASS else np.asarray(y, dtype=np.float64).ravel()]
    duals = []
    for target in targets:
        rows = np.flatnonzero((weight > 0) & ((target != 0) | (not form.is_classifier)))
        duals.append(form.pose(model, target[rows], form.cost(model) * weight[rows], rows))
    certificate = certify_duals(model, form, points, duals, names, kernel=kernel, support=support, is_reported=True)
    if not form.is_classifier or _is_scikit_learns(model):
        return certificate
    expected = class_weights(model.class_weight, model.classes_, codes)
    counts = np.bincount(codes[support], minlength=len(model.classes_))
    failed = recorded(model, class_weight_=(expected, 1e-9 * expected), n_support_=(counts, 0))
    return replace(certificate, claims=certificate.claims + failed)


certify_svc, certify_nu_svc = partial(_certify, CLASSIFICATION), partial(_certify, NU_CLASSIFICATION)
certify_svr, certify_nu_svr = partial(_certify, REGRESSION), partial(_certify, NU_REGRESSION)
certify_one_class = partial(_certify, ONE_CLASS)


@_QUIETLY
def certify_duals(
    model: Any,
    form: Form,
    points: Matrix,
    duals: Iterable[Dual],
    names: Sequence[str],
    *,
    kernel: Kernel | None = None,
    support: NDArray[np.int64] | None = None,
    is_reported: bool = False,
) -> Certificate:
    """Certify a fitted model against the duals of its machines on these points. ``kernel`` and ``support``, the rows of
    the support vectors, are those of the model if they are None."""
    kernel = kernel_of(model) if kernel is None else kernel
    diagonal = points.diagonal(kernel) if isinstance(points, SpreadPoints) else diagonal_of(kernel, points)
    support = np.asarray(model.support_, dtype=np.int64) if support is None else support
    coefficients = coefficients_of(model) if form.is_classifier else dense(model.dual_coef_)
    intercept = np.asarray(model.intercept_, dtype=np.float64).ravel()
    machines, findings = [], []
    for number, (name, dual, beta) in enumerate(zip(names, duals, coefficients, strict=True)):

        def on_share(share: float, number: int = number) -> None:
            report(Progress("certificate", number + min(1.0, share), float(len(names))))

        rows = dual.point[: len(dual.point) // 2] if form.is_doubled else dual.point
        f, own, stray = _sums(kernel, points, rows, support, beta, on_share if is_reported else None)
        stated = classification(dual.y, dual.upper, dual.point) if dual.hulls else dual
        machine = _read_off(form, name, stated, own, f, float(intercept[number]), stray)
        if form is NU_REGRESSION and hasattr(model, "epsilon_"):  # scikit-learn's has none
            machine = replace(machine, rho=-float(model.epsilon_))
        f = np.tile(f, 2) if form.is_doubled else f / machine.scale
        finding = judge(machine, f, diagonal[dual.point])
        if form is ONE_CLASS:
            off_offset = float(np.abs(np.asarray(model.offset_) + np.asarray(model.intercept_)).max())
            finding = replace(finding, off_b=max(finding.off_b, off_offset))
        machines.append(machine)
        findings.append(finding)
    claims = _claims(model, machines, findings, form, kernel)
    if is_reported and hasattr(model, "xi_alpha_bound_"):  # during a fit the bounds are not yet final
        claims += _recorded_bounds(model, machines, findings, diagonal, kernel)
    return Certificate.of(model, "recomputed", points.shape[0], names, claims)


def _recorded_bounds(
    model: Any, machines: list[SolvedDual], findings: list[Finding], diagonal: NDArray[np.float64], kernel: Kernel
) -> tuple[Claim, ...]:
    """Return a failed claim for each leave-one-out bound of a classifier that differs from the recomputed one. A bound
    of 1 always holds. In the ξα-estimate a row whose 2 α R² + ξ is 1 up to the tolerance of the solve may count or
    not."""
    radius = float(diagonal.max()) * (1 if kernel.name in NONNEGATIVE else 2)
    risky, safe = np.zeros(len(diagonal), np.bool_), np.ones(len(diagonal), np.bool_)
    for machine, finding in zip(machines, findings, strict=True):
        rows, has_alpha = machine.dual.point, machine.alpha > 0
        estimate = abs(machine.scale) * (2 * machine.alpha * radius + finding.slack)
        slip = abs(machine.scale) * (2 * float(model.tol) * finding.unit + _SINGLE * finding.rounding)
        is_stable = bool((finding.grade == MARGINAL).any())
        risky[rows[has_alpha & ((estimate >= 1 + slip) | (not is_stable))]] = True
        safe[rows[has_alpha & ((estimate >= 1 - slip) | (not is_stable))]] = False
    support, n = count_support(machines)
    least, most = risky.sum() / n, (len(safe) - safe.sum()) / n
    bounds = {"loo_bound_": (support / n, 1e-9 + abs(support / n - support / len(diagonal)))}
    bounds["xi_alpha_bound_"] = (least + most) / 2, (most - least) / 2 + 1e-9
    return recorded(model, **{name: given for name, given in bounds.items() if getattr(model, name) != 1})


def _read_off(
    form: Form, name: str, dual: Dual, beta: NDArray[np.float64], f: NDArray[np.float64], b: float, stray: float
) -> SolvedDual:
    """Return the machine whose α, b and ρ are read off β and b of a model, by the formulas above; ``f`` is Σ β K at its
    rows, ``stray`` is Σ|β| over the support vectors that are not among them."""
    if form is NU_CLASSIFICATION:
        rho = float(dual.alpha.sum() / (dual.y @ beta))  # below 0 with an indefinite kernel, as LIBSVM has it
        return SolvedDual(name, dual, rho * dual.y * beta, rho * b, rho, float(np.divide(1.0, rho)), stray=rho * stray)
    if not form.is_doubled:
        return SolvedDual(name, dual, dual.y * beta, b, stray=stray)
    alpha, rho = np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]), 0.0
    if form is NU_REGRESSION:
        residual = dual.p[len(f) :] - f  # p = −z, z
        alpha = alpha + np.tile(_lifted(dual, beta, residual - b), 2)
        rho = _radius(dual, alpha, np.tile(residual, 2), b)
    return SolvedDual(name, dual, alpha, b, rho, stray=stray)


def _radius(dual: Dual, alpha: NDArray[np.float64], v: NDArray[np.float64], b: float) -> float:
    """Return ρ for this b. The KKT conditions give an interval for b − ρ and one for b + ρ, and so two for ρ. ρ is the
    middle of their intersection, or of the space between them if they do not intersect."""
    up, low = sides(dual.y, at_bounds(alpha, dual.upper), dual.upper)
    ends = []
    for sign in (1, -1):
        part = dual.y == sign
        levels = v[up & part].max(initial=-np.inf), v[low & part].min(initial=np.inf)
        ends.append(sorted(-sign * (level - b) for level in levels))
    least, most = max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
    finite = [end for end in (least, most) if np.isfinite(end)]
    return float(np.mean(finite)) if finite else 0.0


def _lifted(dual: Dual, beta: NDArray[np.float64], distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the common part of α and α*. A model keeps their difference; where ν leaves no tube (ε = 0) both may be
    above 0, and their common part is missing from Σ(α + α*) = ν ΣC. It belongs to rows whose residual is b, so it is
    given to those of the least ``distance`` from it, up to their bounds."""
    missing = (float(dual.alpha.sum()) - float(np.abs(beta).sum())) / 2
    both = np.zeros(len(beta))
    if not missing > BOUND_TOLERANCE * float(dual.alpha.sum()):
        return both
    order = np.argsort(np.abs(distance), kind="stable")
    room = np.maximum(dual.upper[: len(beta)] - np.abs(beta), 0)[order]
    both[order] = np.clip(missing - (np.cumsum(room) - room), 0, room)
    return both


def _read(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, NDArray[np.float64], Kernel]:
    """Return the points, the weights and the kernel. If a callable kernel takes rows that are not numbers, the points
    are its Gram matrix."""
    kernel = kernel_of(model)
    points: Matrix
    if isinstance(X, SpreadPoints):
        points = X  # which have been read
    elif callable(model.kernel) and not are_numbers(X):
        points = called(model.kernel, X, X)
        kernel = Kernel("precomputed")
    else:
        points = read_points(model, X)
    labels = None if y is None else np.asarray(y).ravel()
    if labels is not None and len(labels) != points.shape[0]:
        raise InputError(f"X has {points.shape[0]} rows and y has {len(labels)}")
    # scikit-learn's NuSVC ignores its class_weight.
    is_ignored = type(model).__name__ == "NuSVC" and _is_scikit_learns(model)
    class_weight = None if is_ignored else getattr(model, "class_weight", None)
    weight = settle_weights(points, labels, sample_weight, class_weight, ignores_negative=True)
    return points, np.ones(points.shape[0]) if weight is None else weight, kernel


def _sees_same(model: Any, given: Any, gram: Matrix, support: NDArray[np.int64]) -> bool:
    """Return whether the kernel has the same values with the rows that the model was fitted on as with those given.
    Such rows are not numbers, and may have no equality."""
    values = called(model.kernel, given, model._fit_rows)
    return values.shape == gram.shape and bool(np.allclose(values[:, support], gram[:, support], rtol=1e-9, atol=0))


def _is_scikit_learns(model: Any) -> bool:
    return type(model).__module__.startswith("sklearn.")


def _support_rows(model: Any, weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return ``support_`` as rows of X. scikit-learn numbers only the rows of weight > 0."""
    support = np.asarray(model.support_, dtype=np.int64)
    counted = np.flatnonzero(weight > 0)
    if not _is_scikit_learns(model) or len(counted) == len(weight) or support.max(initial=0) >= len(counted):
        return support
    return counted[support]


def _fault(model: Any, given: Any, X: Matrix, support: NDArray[np.int64], machines: int) -> Claim | None:
    """Return the claim that fails if the model's arrays do not fit each other or the rows ``given``, read as X."""
    n, dual = X.shape[0], model.dual_coef_
    sizes = {len(support), len(np.unique(support)), dual.shape[1], int(np.sum(model.n_support_))}
    if len(sizes) > 1 or len(np.asarray(model.intercept_).ravel()) != machines:
        return Claim("the sizes of the model's arrays match", (float(len(support)),), None, False, "they differ")
    if len(support) and (support.min() < 0 or support.max() >= n):
        is_same = False
    elif getattr(model, "_fit_rows", None) is not None:
        is_same = _sees_same(model, given, X, support)
    elif model.kernel == "precomputed" or (callable(model.kernel) and model.support_vectors_.shape[0] == 0):
        is_same = True  # scikit-learn keeps no support vectors for a callable
    elif model.support_vectors_.shape != (len(support), X.shape[1]):
        is_same = False
    else:
        difference = X[support] - model.support_vectors_
        is_same = len(support) == 0 or bool(abs(difference).max() == 0)
    if is_same:
        return None
    words = "this is not the table the model was trained on; give that table"
    return Claim("the rows are those it was fitted on", (float(n),), None, False, words)


def _sums(
    kernel: Kernel,
    X: Matrix,
    rows: NDArray[np.int64],
    support: NDArray[np.int64],
    coefficients: NDArray[np.float64],
    on_share: Callable[[float], None] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return f = Σ β K and β of each row, and Σ|β| over the support vectors that are not among the rows."""
    everywhere = np.zeros(X.shape[0])
    everywhere[support] = coefficients
    beta = everywhere[rows]
    everywhere[rows] = 0
    if isinstance(X, SpreadPoints):
        is_support = beta != 0
        f = X.sums(kernel, rows[is_support], beta[is_support])[rows]
        return f, beta, float(np.abs(everywhere).sum())
    return kernel_sums(kernel, X, rows, beta, on_share), beta, float(np.abs(everywhere).sum())


def _claims(
    model: Any, machines: list[SolvedDual], findings: list[Finding], form: Form, kernel: Kernel
) -> tuple[Claim, ...]:
    """Return the claims of a model and of its recorded numbers. For scikit-learn's models tol is absolute, as in
    LIBSVM."""
    if _is_scikit_learns(model):
        findings = [replace(finding, unit=1.0) for finding in findings]
    claims = claims_of(machines, findings, form, float(model.tol), kernel)
    scale, norm = np.abs([machine.scale for machine in machines]), np.array([finding.norm for finding in findings])
    allowed = [_OF_ITS_SIZE * each.size + _SINGLE * each.rounding * each.sum_alpha for each in findings]
    off = np.nan_to_num(np.divide(allowed, np.maximum(norm, np.sqrt(allowed))))  # 0/0: no support vectors
    return claims + recorded(model, norm_=(scale * norm, scale * off))


def claims_of(
    machines: list[SolvedDual], findings: list[Finding], form: Form, tol: float, kernel: Kernel
) -> tuple[Claim, ...]:
    """Return the claims of the certificate."""

    def numbers(name: str) -> NDArray[np.float64]:
        return np.array([getattr(each, name) for each in findings], np.float64)

    violation, rounding, primal, dual = map(numbers, ("violation", "rounding", "primal", "dual"))
    # Each side of a hard margin is solved to tol; the violation here is over both sides, so its limit is 2 tol.
    limits = tol * numbers("unit") * np.where(numbers("is_hard_margin") > 0, 2.0, 1.0)
    is_semidefinite = False if numbers("is_indefinite").any() else kernel.is_semidefinite
    grades = [
        row_grades(machine, finding.grade, int(machine.dual.point.max()) + 1)
        for machine, finding in zip(machines, findings, strict=True)
    ]
    counts = np.array([np.bincount(each, minlength=HARD + 1) for each in grades])
    support, n = count_support(machines) if form.is_classifier else (0, 1)
    claims = [Claim.bounded("violation", violation, limits, "largest violation of the KKT conditions")]
    if not (rounding <= limits).all():
        words = "an estimate; the KKT conditions cannot be checked to tol"
        claims.append(Claim.bounded("rounding of f", rounding, limits, words))
    sums = BOUND_TOLERANCE * numbers("sum_alpha")
    words = "|Σ y α|, 0 when feasible" if form.is_classifier else "|Σ y α − δ|, 0 when feasible"
    claims.append(Claim.bounded("equality residual", numbers("equality"), sums, words))
    shares = np.full(len(findings), BOUND_TOLERANCE)
    claims.append(Claim.bounded("α outside [0, C]", numbers("outside"), shares, "largest excess, as a fraction of C"))
    claims.append(Claim.bounded("b outside its interval", numbers("off_b"), limits, "distance from its KKT interval"))
    claims.append(_gap_claim(primal, dual, numbers("size"), is_semidefinite))
    claims.append(Claim("primal", per_machine(primal), words=form.primal))
    claims.append(Claim("dual", per_machine(dual), words=form.dual))
    if form.is_classifier and is_semidefinite is not False:
        with np.errstate(divide="ignore"):
            width = 2 / (np.array([machine.scale for machine in machines]) * numbers("norm"))
        claims.append(Claim("margin width", per_machine(width), words="2/‖w‖, in the feature space"))
    for name, grade, words in (("easy", EASY, "α = 0"), ("marginal", MARGINAL, "0 < α < C"), ("hard", HARD, "α = C")):
        claims.append(Claim(f"{name} points", per_machine(counts[:, grade]), words=words))
    if form.is_classifier:
        words = f"{support} of {n} rows are support vectors: removing any other row changes nothing"
        is_solved = bool((violation <= limits).all())
        if not is_solved:
            words = "not solved to tol: the effect of leaving a row out is unknown"
        claims.append(Claim("leave-one-out bound", (support / n if is_solved else 1.0,), words=words))
    return tuple(claims)


def _gap_claim(
    primal: NDArray[np.float64], dual: NDArray[np.float64], size: NDArray[np.float64], is_semidefinite: bool | None
) -> Claim:
    """Return the claim about the gap. It has no limit, as the scale of the gap depends on the problem, but it fails if
    the gap is negative, which no feasible primal and dual can give."""
    gap = primal - dual
    words = "primal − dual: 0 only at the optimum"
    if is_semidefinite is False:
        words = "primal − dual; the kernel is not positive semidefinite: this is a KKT point, not a proven optimum"
        return Claim("duality gap", per_machine(gap), words=words)
    if is_semidefinite is None:
        words += ", if the kernel is positive semidefinite"
    is_possible = bool((gap >= -BOUND_TOLERANCE * (size + np.abs(primal) + np.abs(dual))).all())
    return Claim("duality gap", per_machine(gap), None, None if is_possible else False, words)


def solver_certificate(
    model: Any, n_rows: int, machines: list[SolvedDual], findings: list[Finding], form: Form
) -> Certificate:
    """Return the same claims computed from the solver's own numbers."""
    claims = claims_of(machines, findings, form, float(model.tol), kernel_of(model))
    return Certificate.of(model, "solver", n_rows, [machine.name for machine in machines], claims)
