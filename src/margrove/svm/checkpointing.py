"""The checkpoint of a solve: its fingerprint, and α of its machines as arrays.

v is not kept: it follows from α when the solve begins. Nor is which machines have ended: from their own solution they
end at once, after one look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.run.checkpoint import Record, fingerprint
from margrove.svm.kernels import Kernel, Matrix
from margrove.svm.problem import Dual

_ROUNDING = 1e-9  # of Σα: how far sums may have drifted by rounding


def solve_fingerprint(points: Matrix, kernel: Kernel, duals: Sequence[Dual]) -> str:
    """Return the fingerprint of all that decides the solution; tol, limits and threads may change between calls."""
    machines = [
        (dual.y, dual.p, dual.upper, dual.point, dual.by_sign, dual.hulls, _fixed_sums(dual, dual.alpha))
        for dual in duals
    ]
    return fingerprint("solve", points, kernel_key(kernel), machines)


def kernel_key(kernel: Kernel) -> tuple[str, float, float, float]:
    """Return a kernel's part of a fingerprint. A callable one is solved by its Gram matrix."""
    return kernel.name, float(kernel.gamma), float(kernel.coef0), float(kernel.degree)


def keeper(record: Record, write: Callable[[Callable[[], Any]], None]) -> Callable[[Callable[[], Any]], None]:
    """Return the function that writes between slices, when the interval is over."""

    def look(present: Callable[[], Any]) -> None:
        if record.is_due:
            write(present)

    return look


def keep(record: Record, alphas: Sequence[NDArray[np.float64]]) -> None:
    """Write α of all machines: the number, places and values of those that are not 0."""
    places = [np.flatnonzero(alpha) for alpha in alphas]
    values = np.concatenate([alpha[place] for alpha, place in zip(alphas, places, strict=True)])
    if not np.isfinite(values).all():  # nothing to go on from: what was written before stands
        return
    count = np.array([len(place) for place in places], np.int64)
    record.write({"count": count, "place": np.concatenate(places).astype(np.int64), "alpha": values})


def resumed(duals: Sequence[Dual], record: Record) -> Sequence[Dual]:
    """Return the duals started from the α that was written last; as they are if there is none."""
    arrays = record.read()
    if arrays is None:
        return duals
    found, start = [], 0
    for dual, count in zip(duals, arrays["count"].tolist(), strict=True):
        part = slice(start, start + count)
        alpha = np.zeros(len(dual.y))
        alpha[arrays["place"][part]] = arrays["alpha"][part]
        drift = np.abs(_fixed_sums(dual, alpha) - _fixed_sums(dual, dual.alpha))
        # No solve leaves an infeasible α; written so that NaN is not feasible either.
        if not ((alpha >= 0).all() and (alpha <= dual.upper).all() and (drift <= _ROUNDING * alpha.sum()).all()):
            raise record.damaged()
        found.append(replace(dual, alpha=alpha))
        start += count
    return found


def _fixed_sums(dual: Dual, alpha: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums that no step changes: yᵀα, or Σα of each sign, which holds ν."""
    sums = [alpha[dual.y > 0].sum(), alpha[dual.y < 0].sum()]
    fixed = np.array(sums if dual.by_sign else [sums[0] - sums[1]])
    return np.where(np.abs(fixed) <= _ROUNDING * sum(sums), 0.0, fixed)
