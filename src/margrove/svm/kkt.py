"""KKT conditions, feasibility and duality gap of a solved support vector machine, for every form in the same way.

Given a `Dual` (see `margrove.svm.problem`), an α, an offset b (and the ρ of the forms ``by_sign``; 0 for others), and
f_t = Σ_s y_s α_s K(x_s, x_t):

violation   as the problem defines it, with v_t = −f_t − y_t p_t
equality    |yᵀα − δ|, and |Σα − M| where the form has that; δ and M are those of the feasible start
dual        −D,  D = ½ αᵀQα + pᵀα
primal      ½‖w‖² + bδ − ρM + Σ C_t max(0, −g_t),   g_t = y_t (f_t + b) + p_t − ρ
gap         primal − dual = Σ α_t max(0, g_t) + (C_t − α_t) max(0, −g_t)  ≥ 0  for feasible α, 0 at the optimum alone

(The last line is Σ α g + Σ C max(0, −g), because ‖w‖² + pᵀα + bδ − ρM = Σ α_t g_t wherever α meets the equalities.)
With the table of `margrove.svm.problem` the primal is the textbook's:

===============  ==============  ==================  =====================================================
form             δ, M            −g_t                primal
===============  ==============  ==================  =====================================================
classification   0, –            1 − y (f + b)       ½‖w‖² + Σ C ξ
ν-classification 0, ν ΣC         ρ − y (f + b)       ½‖w‖² − ρ ν ΣC + Σ C ξ
one class        ν ΣC, –         ρ' − f, b = −ρ'     ½‖w‖² − ρ' ν ΣC + Σ C ξ
regression       0, –            ±(z − f − b) − ε    ½‖w‖² + Σ C (ξ + ξ*)
ν-regression     0, ν ΣC         ±(z − f − b) − ε    ½‖w‖² + ε ν ΣC + Σ C (ξ + ξ*),  ε = −ρ
===============  ==============  ==================  =====================================================

Where nothing bounds α (the hard margin) no slack is allowed: with m = min y (f + b) > 0, (w, b)/m is feasible and the
primal is ½‖w‖²/m²; otherwise it is ∞.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.certificate import Claim, per_machine
from margrove.svm.kernels import Kernel
from margrove.svm.problem import Dual, sides, tolerance_unit, violation

BOUND_TOLERANCE = 1e-9  # of α against its box and of the equalities, relative to the largest bound or to Σα
_EPS = float(np.finfo(np.float64).eps)
# Estimate of the rounding of Σ β K, relative to √(K(x, x) Σ β² K): errors of the terms add up like random ones.
_ROUNDING_OF_SUMS = 4 * _EPS
AT_UPPER = 1e-10  # α that close to C, relative to it, is at C: models that are scaled (ν) keep it no closer
AT_ZERO = 1e-13  # α that small, relative to the largest, is what rounding left of 0
EASY, MARGINAL, HARD = 1, 2, 3
WORDS = np.array(["", "easy", "marginal", "hard"])  # the first for a row that has no part


@dataclass(frozen=True)
class Form:
    """How a formulation's primal and dual read, whether it has two sides, and whether rows have two variables."""

    primal: str
    dual: str
    is_classifier: bool = False
    is_doubled: bool = False


CLASSIFICATION = Form("½‖w‖² + Σ C ξ", "Σ α − ½‖w‖²", is_classifier=True)
NU_CLASSIFICATION = Form("½‖w‖² − ρ ν ΣC + Σ C ξ", "−½‖w‖²", is_classifier=True)
ONE_CLASS = Form("½‖w‖² − ρ ν ΣC + Σ C ξ", "−½‖w‖²")
REGRESSION = Form("½‖w‖² + Σ C (ξ + ξ*)", "Σ z (α − α*) − ε Σ (α + α*) − ½‖w‖²", is_doubled=True)
NU_REGRESSION = Form("½‖w‖² + ε ν ΣC + Σ C (ξ + ξ*)", "Σ z (α − α*) − ½‖w‖²", is_doubled=True)


@dataclass(frozen=True)
class Machine:
    """A dual problem with its solution α, b, ρ."""

    name: str
    dual: Dual
    alpha: NDArray[np.float64]  # (m,); below 0 or above C if the model is broken
    b: float
    rho: float = 0.0
    scale: float = 1.0  # what the model keeps is this times α, b and w: 1/ρ for ν-classification
    stray: float = 0.0  # Σ|β| of support vectors that have no part in this machine


@dataclass(frozen=True)
class Finding:
    """The numbers of one machine."""

    grade: NDArray[np.int8]  # (m,): EASY, MARGINAL or HARD
    slack: NDArray[np.float64]  # (m,): ξ_t = max(0, −g_t)
    norm: float  # ‖w‖, before scaling
    primal: float
    dual: float
    violation: float
    equality: float
    outside: float  # by how much the worst α leaves [0, C], as a share of its own C
    off_b: float  # by how much b leaves the interval that KKT allows
    sum_alpha: float
    unit: float  # of tol, see `tolerance_unit`
    rounding: float  # of y (f + b) + p, an estimate
    size: float  # Σ|β f|, the scale of the rounding of ‖w‖²
    is_hard_margin: bool
    is_indefinite: bool  # ‖w‖² came out below 0


# The numbers of a finding that claims are made of.
_NUMBERS = (
    "violation",
    "equality",
    "outside",
    "off_b",
    "sum_alpha",
    "unit",
    "rounding",
    "size",
    "primal",
    "dual",
    "norm",
    "is_hard_margin",
    "is_indefinite",
)


def at_bounds(alpha: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """α with what is at a bound but for rounding put there: a row that rounding alone makes marginal would pin b."""
    at_upper = np.isfinite(upper) & (np.abs(alpha - upper) <= AT_UPPER * upper)
    at_zero = np.abs(alpha) <= AT_ZERO * np.abs(alpha).max(initial=0)
    return np.where(at_upper, upper, np.where(at_zero, 0.0, alpha))


def judge(machine: Machine, f: NDArray[np.float64], own: NDArray[np.float64]) -> Finding:
    """Return every number above, from f_t and ``own``, K(x_t, x_t), of each variable."""
    dual, alpha = machine.dual, machine.alpha
    y, p, C = dual.y, dual.p, dual.upper
    held = at_bounds(alpha, C)
    v = -f - y * p
    up, low = sides(y, held, C)
    squared_norm = float((y * alpha) @ f)
    slack = np.maximum(0, -(y * (f + machine.b) + p - machine.rho))
    delta, mass = float(y @ dual.alpha), float(dual.alpha.sum())
    is_hard_margin = not np.isfinite(C).any()
    if is_hard_margin:
        smallest = float((y * (f + machine.b)).min())
        primal = 0.5 * squared_norm / smallest**2 if smallest > 0 else np.inf
    else:
        primal = 0.5 * squared_norm + machine.b * delta - machine.rho * mass + float(C @ slack)
    equality = abs(float(y @ alpha) - delta)
    if dual.by_sign:
        equality = max(equality, abs(float(alpha.sum()) - mass))
    size, own = float(np.abs(alpha) @ np.abs(f)), np.abs(own)
    return Finding(
        grade=np.where(held <= 0, EASY, np.where(held < C, MARGINAL, HARD)).astype(np.int8),
        slack=slack,
        norm=float(np.sqrt(max(squared_norm, 0))),
        primal=primal,
        dual=-0.5 * squared_norm - float(p @ alpha),
        violation=violation(v, up, low, y if dual.by_sign else None),
        equality=equality,
        outside=_outside(alpha, C, machine.stray),
        off_b=_off_levels(machine, v, up, low),
        sum_alpha=max(float(np.abs(alpha).sum()), mass),
        unit=tolerance_unit(dual, own),
        rounding=_ROUNDING_OF_SUMS * float(np.sqrt(own.max(initial=0)) * np.linalg.norm(alpha * np.sqrt(own)))
        + _EPS * (float(np.abs(p).max(initial=0)) + abs(machine.b)),
        size=size,
        is_hard_margin=is_hard_margin,
        is_indefinite=squared_norm < -BOUND_TOLERANCE * size,
    )


def _outside(alpha: NDArray[np.float64], C: NDArray[np.float64], stray: float) -> float:
    """Each α is measured by its own C, or by the largest α where there is no bound: a heavy row must hide nothing."""
    largest = float(np.abs(alpha).max(initial=0)) or 1.0
    own = np.where(np.isfinite(C) & (C > 0), C, largest)
    excess = np.maximum(-alpha, np.where(np.isfinite(C), alpha - C, 0))
    return float(max(np.max(excess / own, initial=0), stray / largest)) + 0.0


def _off_levels(machine: Machine, v: NDArray[np.float64], up: NDArray[np.bool_], low: NDArray[np.bool_]) -> float:
    """KKT leaves b between the largest v of I_up and the smallest of I_low; ``by_sign``, b − ρ between those of sign +
    and b + ρ between those of sign −."""
    y = machine.dual.y
    levels = [(np.ones(len(y), np.bool_), machine.b)]
    if machine.dual.by_sign:
        levels = [(y > 0, machine.b - machine.rho), (y < 0, machine.b + machine.rho)]
    off = 0.0
    for part, level in levels:
        highest, lowest = v[up & part].max(initial=-np.inf), v[low & part].min(initial=np.inf)
        off = np.maximum(off, np.maximum(min(highest, lowest) - level, level - max(highest, lowest)))
    return float(off)


def carrying_rows(machines: list[Machine]) -> tuple[int, int]:
    """How many rows are support vectors of any machine, and how many take part in any."""
    n = 1 + max(int(machine.dual.point.max()) for machine in machines)
    carries, takes_part = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for machine in machines:
        takes_part[machine.dual.point] = True
        carries[machine.dual.point[machine.alpha != 0]] = True
    return int(carries.sum()), int(takes_part.sum())


def claims_of(
    machines: list[Machine], findings: list[Finding], form: Form, tol: float, kernel: Kernel
) -> tuple[Claim, ...]:
    """Return the claims of the certificate."""
    numbers = {name: np.array([getattr(each, name) for each in findings], np.float64) for name in _NUMBERS}
    # Each side of a hard margin is solved to tol, and together they are judged like the soft one: twice that.
    limits = tol * numbers["unit"] * np.where(numbers["is_hard_margin"] > 0, 2.0, 1.0)
    is_indefinite = kernel.is_semidefinite is False or bool(numbers["is_indefinite"].any())
    scale = np.array([machine.scale for machine in machines])
    counts = np.array([row_counts(*each, form) for each in zip(machines, findings, strict=True)])
    support, n = carrying_rows(machines) if form.is_classifier else (0, 1)
    claims = [Claim.bounded("violation", numbers["violation"], limits, "worst breach of the KKT conditions")]
    if not (numbers["rounding"] <= limits).all():
        words = "an estimate; the KKT conditions cannot be checked to tol"
        claims.append(Claim.bounded("rounding of f", numbers["rounding"], limits, words))
    sums = BOUND_TOLERANCE * numbers["sum_alpha"]
    words = "|Σ y α|, 0 when feasible" if form.is_classifier else "|Σ y α − δ|, 0 when feasible"
    claims.append(Claim.bounded("equality residual", numbers["equality"], sums, words))
    shares = np.full(len(findings), BOUND_TOLERANCE)
    claims.append(Claim.bounded("α outside [0, C]", numbers["outside"], shares, "worst excess, as a share of its C"))
    claims.append(Claim.bounded("b outside its interval", numbers["off_b"], limits, "KKT leaves b between two numbers"))
    claims.append(_gap_claim(numbers["primal"], numbers["dual"], numbers["size"], kernel, is_indefinite))
    claims.append(Claim("primal", per_machine(numbers["primal"]), words=form.primal))
    claims.append(Claim("dual", per_machine(numbers["dual"]), words=form.dual))
    if form.is_classifier and not is_indefinite:
        with np.errstate(divide="ignore"):
            width = 2 / (scale * numbers["norm"])
        claims.append(Claim("margin width", per_machine(width), words="2/‖w‖, in the feature space"))
    for name, grade, words in (("easy", EASY, "α = 0"), ("marginal", MARGINAL, "0 < α < C"), ("hard", HARD, "α = C")):
        claims.append(Claim(f"{name} points", per_machine(counts[:, grade]), words=words))
    if form.is_classifier:
        words = f"{support} of {n} rows are support vectors: without any other row nothing changes"
        is_solved = bool((numbers["violation"] <= limits).all())
        if not is_solved:
            words = "not solved to tol: nothing is known of what leaving a row out would change"
        claims.append(Claim("leave-one-out bound", (support / n if is_solved else 1.0,), words=words))
    return tuple(claims)


def _gap_claim(
    primal: NDArray[np.float64],
    dual: NDArray[np.float64],
    size: NDArray[np.float64],
    kernel: Kernel,
    is_indefinite: bool,
) -> Claim:
    """The gap informs: how small is small depends on the problem. Below 0 the numbers are not of this problem."""
    gap = primal - dual
    words = "primal − dual: 0 at the optimum alone"
    if is_indefinite:
        words = "primal − dual; the kernel is not positive semidefinite: a KKT point, and no proof of an optimum"
        return Claim("duality gap", per_machine(gap), words=words)
    if kernel.is_semidefinite is None:
        words += ", if the kernel is positive semidefinite"
    is_possible = bool((gap >= -BOUND_TOLERANCE * (size + np.abs(primal) + np.abs(dual))).all())
    return Claim("duality gap", per_machine(gap), None, None if is_possible else False, words)


def row_grades(machine: Machine, grade: NDArray[np.int8], n: int) -> NDArray[np.int8]:
    """The grade of each of n rows, 0 for those that have no part; of a row's two variables the higher one counts."""
    grades = np.zeros(n, np.int8)
    for each in (EASY, MARGINAL, HARD):
        grades[machine.dual.point[grade == each]] = each
    return grades


def row_counts(machine: Machine, finding: Finding, form: Form) -> NDArray[np.intp]:
    """How many rows have each grade."""
    grades = finding.grade
    if form.is_doubled:
        grades = row_grades(machine, grades, int(machine.dual.point.max()) + 1)
    return np.bincount(grades, minlength=HARD + 1)
