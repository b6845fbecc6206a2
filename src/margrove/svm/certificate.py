"""Certificates of support vector machines: the KKT conditions and the duality gap, recomputed in float64.

Nothing here imports a solver or an engine, so it judges any model that shows its support vectors and dual coefficients
the way scikit-learn's ``SVC`` does. For each machine (one for two classes, one per pair for more), with β = y α:

primal      ½‖w‖² + Σ C_i ξ_i,  ξ_i = max(0, 1 − y_i f(x_i))
dual        Σ α_i − ½‖w‖²,      ‖w‖² = βᵀKβ
gap         primal − dual ≥ 0 at every feasible pair, and 0 at the optimum alone: the proof, for a PSD kernel
violation   max over I_up of v − min over I_low of v,  v_i = y_i − Σ_j β_j K(x_j, x_i)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.certificate import Certificate, Claim, per_machine
from margrove.data.sample import read_points, settle_weights
from margrove.errors import InputError
from margrove.linear.margins import codes_of, kernel_of
from margrove.svm.kernels import Kernel, Matrix
from margrove.svm.problem import sides, violation

BLOCK_CELLS = 1 << 22  # kernel values held at once
BOUND_TOLERANCE = 1e-9  # of α against its box and of yᵀα against 0, relative to the largest bound or to Σα


@dataclass(frozen=True)
class Machine:
    """One two-class machine of a model: its rows and signs, and the α it claims for each of them."""

    name: str
    rows: NDArray[np.intp]  # rows of X that take part
    y: NDArray[np.int8]  # +1 or −1 for each
    alpha: NDArray[np.float64]  # y β of each, as the model has it: below 0 if the model is broken
    b: float


@dataclass(frozen=True)
class Finding:
    """What was recomputed for one machine."""

    primal: float
    dual: float
    violation: float
    equality: float  # |Σ y α|
    outside: float  # by how much the worst α leaves [0, C]
    off_b: float  # by how much b leaves the interval that KKT allows
    easy: int
    marginal: int
    hard: int
    norm: float
    sum_alpha: float
    most_upper: float


def certify_svc(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate:
    """Judge a fitted C-SVC, Margrove's or scikit-learn's."""
    X = read_points(model, X)
    labels = np.asarray(y).ravel()
    if len(labels) != X.shape[0]:
        raise InputError(f"X has {X.shape[0]} rows and y has {len(labels)}")
    weight = settle_weights(X, labels, sample_weight, getattr(model, "class_weight", None))
    upper = np.full(X.shape[0], float(model.C)) if weight is None else float(model.C) * weight
    codes = codes_of(labels, model.classes_)
    machines = list(machines_of(model, codes))
    kernel = kernel_of(model)
    if not _are_rows(model, X):
        words = "the support vectors are not rows of X: certify on the rows the model was fitted on"
        claims: tuple[Claim, ...] = (
            Claim("the rows are those it was fitted on", (float(X.shape[0]),), None, False, words),
        )
    else:
        findings = [_examine(machine, kernel, X, upper) for machine in machines]
        claims = tuple(_claims(findings, float(model.tol)))
    return Certificate(
        type(model).__name__,
        str(getattr(model, "status_", "unknown")),
        "recomputed",
        X.shape[0],
        tuple(machine.name for machine in machines),
        claims,
    )


def machines_of(model: Any, codes: NDArray[np.intp]) -> Iterator[Machine]:
    """The machines behind scikit-learn's layout of ``dual_coef_``.

    Support vectors stand class by class. For two classes the one row of ``dual_coef_`` is β, the second class being +1.
    For more, the pair (i, j), with i as +1, has its β of class i in row j − 1 and that of class j in row i.
    """
    classes, support, dual = model.classes_, np.asarray(model.support_), model.dual_coef_
    dual = np.asarray(dual.toarray() if hasattr(dual, "toarray") else dual, dtype=np.float64)
    starts = np.concatenate([[0], np.cumsum(model.n_support_)])
    place = np.full(len(codes), -1)
    place[support[support < len(codes)]] = np.flatnonzero(support < len(codes))
    for number, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        rows = np.flatnonzero((codes == i) | (codes == j))
        positive = j if len(classes) == 2 else i
        sign = np.where(codes[rows] == positive, 1, -1).astype(np.int8)
        beta = np.zeros(dual.shape[1])
        beta[starts[i] : starts[i + 1]] = dual[j - 1, starts[i] : starts[i + 1]]
        beta[starts[j] : starts[j + 1]] = dual[i if len(classes) > 2 else 0, starts[j] : starts[j + 1]]
        alpha = np.asarray(np.where(place[rows] >= 0, beta[place[rows]], 0.0) * sign, dtype=np.float64)
        yield Machine(
            f"{classes[positive]} vs {classes[i + j - positive]}", rows, sign, alpha, float(model.intercept_[number])
        )


def _are_rows(model: Any, X: Matrix) -> bool:
    support = np.asarray(model.support_)
    if len(support) and support.max() >= X.shape[0]:
        return False
    if model.kernel == "precomputed":
        return True
    difference = X[support] - model.support_vectors_
    return bool(abs(difference).max() == 0) if difference.shape[0] else True


def _examine(machine: Machine, kernel: Kernel, X: Matrix, upper: NDArray[np.float64]) -> Finding:
    y, alpha, C = machine.y, machine.alpha, upper[machine.rows]
    beta = y * alpha
    carriers = np.flatnonzero(beta)
    f = np.zeros(len(y))  # without b
    step = max(1, BLOCK_CELLS // max(1, len(carriers)))
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        f[rows] = _kernel_block(kernel, X, machine.rows[rows], machine.rows[carriers]) @ beta[carriers]
    squared_norm = float(beta @ f)
    v = y - f
    up, low = sides(y, alpha, C)
    highest, lowest = v[up].max(initial=-np.inf), v[low].min(initial=np.inf)
    slack = np.maximum(0, 1 - y * (f + machine.b))
    return Finding(
        primal=0.5 * squared_norm + float((C[slack > 0] * slack[slack > 0]).sum()),
        dual=float(alpha.sum()) - 0.5 * squared_norm,
        violation=violation(v, up, low),
        equality=abs(float(beta.sum())),
        outside=float(max(np.max(-alpha, initial=0), np.max((alpha - C)[np.isfinite(C)], initial=0))),
        off_b=float(max(0.0, min(highest, lowest) - machine.b, machine.b - max(highest, lowest))),
        easy=int((alpha <= 0).sum()),
        marginal=int(((alpha > 0) & (alpha < C)).sum()),
        hard=int(((alpha > 0) & (alpha >= C)).sum()),
        norm=float(np.sqrt(max(squared_norm, 0))),
        sum_alpha=float(np.abs(alpha).sum()),
        most_upper=float(np.max(C[np.isfinite(C)], initial=float(np.abs(alpha).max(initial=0)))),
    )


def _kernel_block(kernel: Kernel, X: Matrix, a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.float64]:
    if kernel.name == "precomputed":
        return np.asarray(X[np.ix_(a, b)], dtype=np.float64)
    return kernel.matrix(X[a], X[b])


def _claims(findings: list[Finding], tol: float) -> Iterator[Claim]:
    def each(name: str) -> NDArray[np.float64]:
        return np.array([getattr(finding, name) for finding in findings], dtype=np.float64)

    def bounded(name: str, values: NDArray[np.float64], limits: NDArray[np.float64], words: str) -> Claim:
        return Claim(name, per_machine(values), per_machine(limits), bool((values <= limits).all()), words)

    slack = BOUND_TOLERANCE * (1 + each("most_upper"))
    yield bounded("violation", each("violation"), np.full(len(findings), tol), "worst breach of the KKT conditions")
    yield bounded(
        "equality residual", each("equality"), BOUND_TOLERANCE * (1 + each("sum_alpha")), "|Σ y α|, 0 when feasible"
    )
    yield bounded("α outside [0, C]", each("outside"), slack, "by how much the worst leaves its box")
    yield bounded(
        "b outside its interval", each("off_b"), np.full(len(findings), tol), "KKT leaves b between two numbers"
    )
    gap = each("primal") - each("dual")
    # A feasible pair has a gap ≥ 0; below 0 the kernel is not PSD, or the numbers are not of this problem.
    lowest = -BOUND_TOLERANCE * (1 + np.abs(each("primal")))
    yield Claim(
        "duality gap", per_machine(gap), None, bool((gap >= lowest).all()), "primal − dual: 0 at the optimum alone"
    )
    yield Claim("primal", per_machine(each("primal")), words="½‖w‖² + Σ C ξ")
    yield Claim("dual", per_machine(each("dual")), words="Σ α − ½‖w‖²")
    with np.errstate(divide="ignore"):
        yield Claim("margin width", per_machine(2 / each("norm")), words="2/‖w‖, in the feature space")
    yield Claim("easy points", per_machine(each("easy")), words="α = 0")
    yield Claim("marginal points", per_machine(each("marginal")), words="0 < α < C")
    yield Claim("hard points", per_machine(each("hard")), words="α = C")
