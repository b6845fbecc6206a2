"""A permutation test of the relation between the target and predictions that are no better than a constant.

The statistic is computed again with the targets in random order. p is the share of these values, the true one among
them, that are at least as large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from margrove.app.estimate.metrics import Judged, auc_of

_DRAWS = 999
_MOST_VALUES = 20_000_000  # of all draws together, so that they take about a second
LEVEL = 0.05


def relation_of_classes(parts: Sequence[Judged], seed: int) -> str:
    """Return in a sentence whether scores, or predictions where there are none, are related to the classes.

    The statistic is the mean over the classes of the ROC AUC of a class against the rest."""
    classes = np.arange(len(parts[0].classes))
    has_scores = all(part.scores is not None for part in parts)
    ranks = [rankdata(part.scores if has_scores else part.values[:, None] == classes, axis=0) for part in parts]
    members = [part.truth[:, None] == classes for part in parts]

    def auc(orders: Sequence[NDArray[np.intp]]) -> float:
        """Return the mean AUC with the targets of each part in this order."""
        found = [auc_of(rank, each[order]) for rank, each, order in zip(ranks, members, orders, strict=True)]
        return float(np.nanmean(found))

    value, p = _tested(auc, [len(part.truth) for part in parts], len(classes), seed)
    what, test = "scores" if has_scores else "predictions", f"ROC AUC {value:.2f}, p = {p:.2g}"
    if p <= LEVEL:
        return f"Nevertheless, its {what} are related to the target ({test} by a permutation test)."
    return f"A permutation test finds no relation of its {what} to the target ({test})."


def relation_of_numbers(truth: NDArray[np.float64], values: NDArray[np.float64], seed: int) -> str:
    """Return in a sentence whether predictions are correlated with the target."""
    if np.ptp(values) == 0:
        return "It predicts the same number for all rows."
    off, centred = values - values.mean(), truth - truth.mean()
    size = float(np.sqrt((off**2).sum() * (centred**2).sum()))
    value, p = _tested(lambda orders: float(off @ centred[orders[0]]) / size, [len(truth)], 1, seed)
    if p <= LEVEL:
        return f"Nevertheless, its predictions are correlated with the target (r = {value:.2f}, p = {p:.2g})."
    return f"A permutation test finds no correlation of its predictions with the target (r = {value:.2f}, p = {p:.2g})."


def _tested(
    statistic: Callable[[Sequence[NDArray[np.intp]]], float], sizes: Sequence[int], n_columns: int, seed: int
) -> tuple[float, float]:
    """Return the statistic and its p-value."""
    rng = np.random.default_rng(seed)
    value = statistic([np.arange(n) for n in sizes])
    n_draws = min(_DRAWS, max(99, _MOST_VALUES // (sum(sizes) * n_columns)))
    drawn = np.array([statistic([rng.permutation(n) for n in sizes]) for _ in range(n_draws)])
    return value, (1 + np.count_nonzero(drawn >= value - 1e-12)) / (1 + n_draws)
