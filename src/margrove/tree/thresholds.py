"""The candidates θ of a test x ≤ θ.

exact       halfway between two neighbouring values of the node's rows
histogram   the same of all training rows, but only at quantiles: at most ``n_bins`` bins. With the present values
            sorted, the cut b = 1 … n_bins − 1 lies behind the value at which a share b/n_bins of the rows is reached
gaussian    for each pair of classes of the node, normal densities times the weight of the class; where they cross
            between the two means. A variance below VARIANCE_FLOOR of the column's counts as that
logistic    for each class of the node against the others (for two, once): the point where a logistic regression of the
            class on the column gives one half. The column is standardised and its slope is penalised by RIDGE/2 ·
            slope², beside the mean loss, so the fit is finite where a cut separates the classes

The last two fit the present cells of the node, so they need classes. The gain of a candidate is computed from the rows
like that of any other.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from margrove.tree.problem import VARIANCE_FLOOR

NUDGE = 1e-9  # of the column's deviation: a cut that falls on a value lies above it, whatever the rounding
RIDGE = 1e-3  # on the slope of a standardised column: its logistic regression stays finite
_NEWTON_STEPS = 100  # enough for any one-dimensional fit; most take five
_FLAT = 1e-12  # of a gradient per unit of weight: there is nothing left to gain
_ROUNDING = 1e-14  # of a mean loss: near the minimum the gradient has more digits than the loss

Floats = NDArray[np.float64]


def halfway(values: Floats) -> Floats:
    """Return the midpoints of ascending values; even a rounded one separates x ≤ midpoint from the next value."""
    low, high = values[:-1], values[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        whole = low + high
    middle = np.where(np.isfinite(whole), whole / 2, low / 2 + high / 2)  # halves of tiny numbers lose their last digit
    return np.asarray(np.where((low <= middle) & (middle < high), middle, low))


def quantile_cuts(values: Floats, n_bins: int) -> Floats:
    """Return the cut points of ``thresholds="histogram"``, ascending, at most n_bins − 1."""
    distinct, count = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(distinct) <= n_bins:
        return halfway(distinct)
    reached = np.cumsum(count)
    wanted = np.arange(1, n_bins) * reached[-1]  # n_bins times the rank: whole numbers
    at = np.unique(np.searchsorted(reached * n_bins, wanted))
    return np.asarray(halfway(distinct)[at[at < len(distinct) - 1]])


def gaussian_cuts(x: Floats, classes: NDArray[np.intp], w: Floats) -> Floats:
    """Return the crossings of the classes' normal densities between their means, ascending."""
    z, back = _standardised(x, w)
    if back is None:
        return np.empty(0)
    fits = []
    for k in np.unique(classes):
        mine = classes == k
        weight = w[mine].sum()
        mean = w[mine] @ z[mine] / weight
        variance = max(w[mine] @ (z[mine] - mean) ** 2 / weight, VARIANCE_FLOOR)
        fits.append((weight, mean, variance))
    found = [root for one, other in combinations(fits, 2) for root in _crossings(*one, *other)]
    return back(np.asarray(found, dtype=np.float64))


def _crossings(w1: float, m1: float, v1: float, w2: float, m2: float, v2: float) -> list[float]:
    """Return where log w − ½ log v − (x − m)²/2v is equal for both: a x² + b x + c = 0, between the means."""
    a = 0.5 / v2 - 0.5 / v1
    b = m1 / v1 - m2 / v2
    c = 0.5 * m2**2 / v2 - 0.5 * m1**2 / v1 + np.log(w1 / w2) - 0.5 * np.log(v1 / v2)
    discriminant = b * b - 4 * a * c
    if m1 == m2 or discriminant < 0:
        return []
    q = -0.5 * (b + np.copysign(np.sqrt(discriminant), b))  # of b's sign turned: nothing cancels
    roots = [part / whole for part, whole in ((q, a), (c, q)) if whole != 0]
    return [root for root in roots if min(m1, m2) <= root <= max(m1, m2)]


def logistic_cuts(x: Floats, classes: NDArray[np.intp], w: Floats) -> Floats:
    """Return where each class's logistic regression against the others gives one half, ascending."""
    z, back = _standardised(x, w)
    present = np.unique(classes)
    if back is None or len(present) < 2:
        return np.empty(0)
    halves = [
        _one_half(z, (classes == k).astype(np.float64), w) for k in (present[1:] if len(present) == 2 else present)
    ]
    return back(np.array([half for half in halves if np.isfinite(half)]))


def _one_half(z: Floats, is_one: Floats, w: Floats) -> float:
    """Return −intercept/slope of the logistic regression of is_one on z, by Newton's method with halved steps."""
    share = w / w.sum()
    design = np.column_stack([np.ones_like(z), z])
    ridge = np.diag([0.0, RIDGE])
    odds = (share @ is_one) / (share @ (1 - is_one))
    if not 0 < odds < np.inf:
        return np.nan

    def loss(coef: Floats) -> float:
        line = design @ coef
        return float(share @ (np.logaddexp(0, line) - is_one * line) + 0.5 * coef @ ridge @ coef)

    coef = np.array([np.log(odds), 0.0])
    for _ in range(_NEWTON_STEPS):
        p = 0.5 * (1 + np.tanh(0.5 * (design @ coef)))
        gradient = design.T @ (share * (p - is_one)) + ridge @ coef
        if np.abs(gradient).max() <= _FLAT:
            break
        hessian = (design * (share * p * (1 - p))[:, None]).T @ design + ridge
        if hessian[0, 0] == 0:  # the class has next to none of the weight, or all
            return np.nan
        step = np.linalg.solve(hessian, gradient)
        here, length = loss(coef), 1.0
        while length > _FLAT and loss(coef - length * step) > here + _ROUNDING - 1e-4 * length * gradient @ step:
            length /= 2
        coef = coef - length * step
    return float(-coef[0] / coef[1]) if coef[1] != 0 else np.nan


def _standardised(x: Floats, w: Floats) -> tuple[Floats, Callable[[Floats], Floats] | None]:
    """Return (x − mean)/deviation and the way back for cuts; None for a constant column, and for none."""
    if len(x) == 0 or x.min() == x.max():
        return np.zeros_like(x), None
    # In units of the power of two above the largest: no difference overflows, no part of a tiny number vanishes.
    power = int(np.frexp(np.abs(x).max())[1])
    x = np.ldexp(x, -power)
    size = float(np.abs(x - x[0]).max())
    z, share = (x - x[0]) / size, w / w.sum()
    z = z - share @ z
    spread = float(np.sqrt(share @ z**2))
    if spread == 0:  # all the weight is on one value, up to rounding
        return np.zeros_like(x), None
    centre = float(x[0] - size * z[0])

    def back(cuts: Floats) -> Floats:
        with np.errstate(over="ignore"):  # a cut beyond all numbers splits none of them
            return np.asarray(np.ldexp(centre + size * spread * (np.unique(cuts) + NUDGE), power))

    return z / spread, back
