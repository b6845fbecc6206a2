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
primal is ½‖w‖²/m²; otherwise it is ∞. In a regression (the hard tube) f is feasible for a tube of half-width ε + s,
with s = max ξ; primal and dual are those of that tube: ½‖w‖² and −D − s Σα.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.svm.problem import (
    Dual,
    classification,
    hard_margin,
    nu_classification,
    nu_regression,
    one_class,
    regression,
)

BOUND_TOLERANCE = 1e-9  # of α against its box and of the equalities, relative to the largest bound or to Σα
_EPS = float(np.finfo(np.float64).eps)
# Estimate of the rounding of Σ β K, relative to √(K(x, x) Σ β² K): errors of the terms add up like random ones.
_ROUNDING_OF_SUMS = 4 * _EPS
AT_UPPER = 1e-10  # α that close to C, relative to it, is at C: models that are scaled (ν) keep it no closer
AT_ZERO = 1e-13  # α that small, relative to the largest, is what rounding left of 0
EASY, MARGINAL, HARD = 1, 2, 3
WORDS = np.array(["", "easy", "marginal", "hard"])  # the first for a row that is ignored


@dataclass(frozen=True)
class Form:
    """A formulation: its primal and dual as text, its dual for a model, and whether it has two sides, two variables per
    row, and a C."""

    primal: str
    dual: str
    pose: Callable[[Any, NDArray[Any], NDArray[np.float64], NDArray[np.int64]], Dual]  # of model, targets, C_i, rows
    is_classifier: bool = False
    is_doubled: bool = False
    has_cost: bool = True
    name: str = ""  # of its only machine

    def cost(self, model: Any) -> float:
        """Return what multiplies the weights of the rows."""
        return float(model.C) if self.has_cost else 1.0


CLASSIFICATION = Form(
    "½‖w‖² + Σ C ξ",
    "Σ α − ½‖w‖²",
    lambda _, y, upper, rows: hard_margin(y, rows) if np.isinf(upper).any() else classification(y, upper, rows),
    is_classifier=True,
)
NU_CLASSIFICATION = Form(
    "½‖w‖² − ρ ν ΣC + Σ C ξ",
    "−½‖w‖²",
    lambda model, sign, upper, rows: nu_classification(sign, upper, float(model.nu), rows),
    is_classifier=True,
    has_cost=False,
)
ONE_CLASS = Form(
    "½‖w‖² − ρ ν ΣC + Σ C ξ",
    "−½‖w‖²",
    lambda model, _, upper, rows: one_class(upper, float(model.nu), rows),
    has_cost=False,
    name="one class",
)
REGRESSION = Form(
    "½‖w‖² + Σ C (ξ + ξ*)",
    "Σ z (α − α*) − ε Σ (α + α*) − ½‖w‖²",
    lambda model, z, upper, rows: regression(z, upper, float(model.epsilon), rows),
    is_doubled=True,
    name="regression",
)
NU_REGRESSION = Form(
    "½‖w‖² + ε ν ΣC + Σ C (ξ + ξ*)",
    "Σ z (α − α*) − ½‖w‖²",
    lambda model, z, upper, rows: nu_regression(z, upper, float(model.nu), rows),
    is_doubled=True,
    name="regression",
)


@dataclass(frozen=True)
class SolvedDual:
    """A dual problem with its solution α, b, ρ."""

    name: str
    dual: Dual
    alpha: NDArray[np.float64]  # (m,); below 0 or above C if the model is broken
    b: float
    rho: float = 0.0
    scale: float = 1.0  # what the model keeps is this times α, b and w: 1/ρ for ν-classification
    stray: float = 0.0  # Σ|β| of support vectors that are none of its rows


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


def sides(
    y: NDArray[np.int8], alpha: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return I_up and I_low."""
    can_grow, can_fall = alpha < upper, alpha > 0
    return np.where(y > 0, can_grow, can_fall), np.where(y > 0, can_fall, can_grow)


def violation(
    v: NDArray[np.float64], up: NDArray[np.bool_], low: NDArray[np.bool_], sign: NDArray[np.int8] | None = None
) -> float:
    """max over I_up − min over I_low, within each sign where ``sign`` is given; −∞ where nothing can move."""
    if sign is not None:
        return max(violation(v[part], up[part], low[part]) for part in (sign > 0, sign < 0))
    return float(v[up].max(initial=-np.inf) - v[low].min(initial=np.inf))


def tolerance_unit(dual: Dual, own: NDArray[np.float64]) -> float:
    """Return the unit of ``tol``, at most 1, which is LIBSVM's. Classification measures f in margins, ε-regression in
    the units of z. The ν-forms and the one-class machine have no fixed unit: without p, f scales with the largest of
    ``own``, K(x, x) of each variable; with p = ∓z, with the range of z."""
    if dual.hulls or (dual.p.any() and not dual.by_sign):
        return 1.0
    unit = np.ptp(dual.p[dual.y < 0]) if dual.p.any() else np.abs(own).max(initial=0)
    return min(1.0, float(unit)) or 1.0


def offset(
    v: NDArray[np.float64], alpha: NDArray[np.float64], upper: NDArray[np.float64], y: NDArray[np.int8]
) -> float:
    """Return b: the mean of v over the marginal points; the middle of the interval KKT leaves where there are none."""
    free = (alpha > 0) & (alpha < upper)
    if free.any():
        return float(v[free].mean())
    up, low = sides(y, alpha, upper)
    ends = [value for value in (v[up].max(initial=-np.inf), v[low].min(initial=np.inf)) if np.isfinite(value)]
    return float(np.mean(ends)) if ends else 0.0


def offset_and_radius(
    v: NDArray[np.float64], alpha: NDArray[np.float64], upper: NDArray[np.float64], y: NDArray[np.int8]
) -> tuple[float, float]:
    """b and ρ of a machine ``by_sign``: marginal rows of sign + have v = b − ρ, those of sign − have v = b + ρ."""
    levels = [offset(v[part], alpha[part], upper[part], y[part]) for part in (y > 0, y < 0)]
    return (levels[0] + levels[1]) / 2, (levels[1] - levels[0]) / 2


def at_bounds(alpha: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """α with what is at a bound but for rounding put there: a row that rounding alone makes marginal would pin b."""
    at_upper = np.isfinite(upper) & (np.abs(alpha - upper) <= AT_UPPER * upper)
    at_zero = np.abs(alpha) <= AT_ZERO * np.abs(alpha).max(initial=0)
    return np.where(at_upper, upper, np.where(at_zero, 0.0, alpha))


def judge(machine: SolvedDual, f: NDArray[np.float64], own: NDArray[np.float64]) -> Finding:
    """Return every number above, from f_t and ``own``, K(x_t, x_t), of each variable."""
    dual, alpha = machine.dual, machine.alpha
    y, p, C = dual.y, dual.p, dual.upper
    held = at_bounds(alpha, C)
    v = -f - y * p
    up, low = sides(y, held, C)
    squared_norm = float((y * alpha) @ f)
    slack = np.maximum(0, -(y * (f + machine.b) + p - machine.rho))
    # dual.alpha is the start, which fixes the right-hand sides yᵀα = δ and Σ α = M.
    delta, mass = float(y @ dual.alpha), float(dual.alpha.sum())
    is_hard_margin = not np.isfinite(C).any()
    widened = float(slack.max(initial=0)) if is_hard_margin and dual.is_doubled else 0.0
    if is_hard_margin and dual.is_doubled:
        primal = 0.5 * squared_norm
    elif is_hard_margin:
        # w scaled until the nearest row has y f = 1 is feasible; a row on the wrong side leaves no feasible w.
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
        dual=-0.5 * squared_norm - float(p @ alpha) - widened * float(alpha.sum()),
        violation=violation(v, up, low, y if dual.by_sign else None),
        equality=equality,
        outside=_outside(alpha, C, machine.stray),
        off_b=_off_levels(machine, v, up, low),
        sum_alpha=max(float(np.abs(alpha).sum()), mass),
        unit=tolerance_unit(dual, own),
        rounding=_ROUNDING_OF_SUMS * float(np.sqrt(own.max(initial=0)) * np.linalg.norm(alpha * np.sqrt(own)))
        + _EPS * (float(np.abs(p).max(initial=0)) + abs(machine.b)),
        size=size,
        is_hard_margin=is_hard_margin and not dual.is_doubled,
        is_indefinite=squared_norm < -BOUND_TOLERANCE * size,
    )


def _outside(alpha: NDArray[np.float64], C: NDArray[np.float64], stray: float) -> float:
    """Return the largest excess of α over its bounds, as a share of its own C, or of the largest α without a bound."""
    largest = float(np.abs(alpha).max(initial=0)) or 1.0
    own = np.where(np.isfinite(C) & (C > 0), C, largest)
    excess = np.maximum(-alpha, np.where(np.isfinite(C), alpha - C, 0))
    return float(max(np.max(excess / own, initial=0), stray / largest)) + 0.0


def _off_levels(machine: SolvedDual, v: NDArray[np.float64], up: NDArray[np.bool_], low: NDArray[np.bool_]) -> float:
    """Return how far b lies outside the interval between the largest v of I_up and the smallest of I_low; ``by_sign``,
    b − ρ outside that of sign +, and b + ρ outside that of sign −."""
    y = machine.dual.y
    levels = [(np.ones(len(y), np.bool_), machine.b)]
    if machine.dual.by_sign:
        levels = [(y > 0, machine.b - machine.rho), (y < 0, machine.b + machine.rho)]
    off = 0.0
    for part, level in levels:
        highest, lowest = v[up & part].max(initial=-np.inf), v[low & part].min(initial=np.inf)
        off = np.maximum(off, np.maximum(min(highest, lowest) - level, level - max(highest, lowest)))
    return float(off)


def count_support(machines: list[SolvedDual]) -> tuple[int, int]:
    """Return the number of rows that are support vectors of any machine, and of those that any machine has."""
    n = 1 + max(int(machine.dual.point.max()) for machine in machines)
    is_support, is_row = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for machine in machines:
        is_row[machine.dual.point] = True
        is_support[machine.dual.point[machine.alpha != 0]] = True
    return int(is_support.sum()), int(is_row.sum())


def row_grades(machine: SolvedDual, grade: NDArray[np.int8], n: int) -> NDArray[np.int8]:
    """Return the grade of each of n rows, the higher one of two variables, 0 for rows that the machine ignores."""
    grades = np.zeros(n, np.int8)
    for each in (EASY, MARGINAL, HARD):
        grades[machine.dual.point[grade == each]] = each
    return grades
