"""The association of a category with the target, over all its levels.

A subset test is one of 2^(L−1) − 1 ways to split the L levels that occur in a node. The whole table, all L levels by
the classes or the numbers, depends on no choice:

    classes   φ² = Σ_lk O_lk² / (n_l n_k) − 1, so that X² = n φ² with (L − 1)(K − 1) degrees of freedom
    numbers   η² = Σ_l n_l (mean_l − mean)² / Σ_i (y_i − mean)², so that F = [η²/(L − 1)] / [(1 − η²)/(n − L)]

Merging levels never increases X² or η², so the X² or η² of any subset is at most that of the whole table: its test
accounts for the choice (K. R. Gabriel, Simultaneous test procedures, 1969). `significance.py` tests it. Where weights
differ much, as in boosting, a level may weigh less than the rounding of its node's weight: n_l is then that rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LevelTable:
    """All levels of a category in a node."""

    n_levels: float = 0.0  # L, missing cells being a level; 0: no subset test
    association: float = nan  # φ² or η²
    inverse_weight: float = 0.0  # Σ_l 1/n_l: how thin the levels are


NO_LEVELS = LevelTable()
LEAST_LEVEL = float(np.finfo(np.float64).eps)  # of the weight of the node


def level_table(
    target: NDArray[np.float64], weight: NDArray[np.float64], level: NDArray[np.intp], n_classes: int
) -> LevelTable:
    """Return the whole table of rows with levels 0 … L − 1, each of which occurs; ``n_classes`` is 0 for numbers."""
    of_level = np.bincount(level, weight)
    of_level = np.maximum(of_level, LEAST_LEVEL * of_level.sum())
    if n_classes:
        table = np.zeros((len(of_level), n_classes))
        np.add.at(table, (level, target.astype(np.intp)), weight)
        share = np.divide(table, table.sum(axis=0), out=np.zeros_like(table), where=table > 0)
        association = max(float((table / of_level[:, None] * share).sum()) - 1, 0.0)
    else:
        centred = target - target[0]  # far from zero the mean itself has too few digits
        off = centred - np.average(centred, weights=weight)
        sums = np.bincount(level, weight * off)
        between = float((sums / of_level * sums).sum())
        total = float(weight @ off**2)
        association = min(between / total, 1.0) if total > 0 else 0.0
    return LevelTable(float(len(of_level)), association, float((1 / of_level).sum()))
