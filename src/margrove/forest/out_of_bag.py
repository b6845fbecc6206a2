"""Out-of-bag predictions: those of the trees that have not seen a training row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from margrove.forest.model import ForestModel
from margrove.forest.problem import ForestProblem

Floats = NDArray[np.float64]
Places = Callable[[slice], NDArray[np.int32]]  # the place in `leaf_values` of each of these rows in each tree, (n, T)


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """The mean prediction of the trees that have not seen a row; NaN where every tree has."""

    value: Floats  # (n, K) or (n, targets)
    n_trees: NDArray[np.int64]  # (n,) the trees that have not seen the row

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """The rows that some tree has not seen."""
        return np.asarray(self.n_trees > 0)


def out_of_bag(
    problem: ForestProblem, model: ForestModel, places: Places, rows: NDArray[np.intp] | None = None
) -> OutOfBag:
    """Return the out-of-bag predictions of all training rows, or of these, which ``places`` counts from 0. The sums are
    over the trees in their order."""
    n_trees, of_rows = model.n_trees, slice(None) if rows is None else rows
    is_out = np.stack([(problem.counts(t) == 0)[of_rows] for t in range(n_trees)], axis=1)  # (n, T)
    n_rows = len(is_out)
    values = [model.leaf_values(t) for t in range(n_trees)]
    total = np.zeros((n_rows, values[0].shape[1]))
    for block in model.blocks(n_rows):
        found = places(block)
        for t, value in enumerate(values):
            out = is_out[block, t]
            total[block][out] += value[found[out, t]]
    count = is_out.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return OutOfBag(total / np.where(count, count, np.nan)[:, None], count)


def measure_of(model: Any) -> str:
    """Return the name of a forest's out-of-bag score."""
    if callable(model.oob_score):
        return str(getattr(model.oob_score, "__name__", "score"))
    return "accuracy" if model.model_.n_classes else "R²"


def error_interval(n_wrong: int, n_rows: int) -> tuple[float, float]:
    """Return the exact 95 % interval (Clopper and Pearson) of an error rate."""
    found = binomtest(n_wrong, n_rows).proportion_ci(confidence_level=0.95, method="exact")
    return float(found.low), float(found.high)
