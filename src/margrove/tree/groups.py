"""The groups into which a column divides the rows of a node: those that no test of the column can divide.

They are the distinct values of a number (or the bins between its candidate thresholds), the levels of a category, or
the given intervals. The missing cells are a group of their own, the last. `Measure` gives the number of rows, weight,
impurity and value of groups and of prefixes of groups.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr, xlogy

from margrove.tree.impurity import (
    absolute_error,
    class_impurity,
    gaussian_entropy_of_variance,
    median,
    running_absolute_error,
)
from margrove.tree.problem import MISSING, Criterion, Test
from margrove.tree.thresholds import halfway

Floats = NDArray[np.float64]
_MOST_BITS = 1000  # that name a subset: 2 to that power is still a float64


@dataclass(frozen=True)
class Groups:
    """The rows of a node by the groups of a column."""

    kind: Test
    group: NDArray[np.intp]  # (n,): 0 … n_groups − 1, ascending with the value, the level, the interval
    n_groups: int
    has_missing: bool  # the last group are the missing cells
    thresholds: Floats  # between the groups of present cells of a number
    codes: NDArray[np.int32]  # of the groups of present cells of a category or of intervals

    @property
    def n_present(self) -> int:
        """Return the number of groups of present cells."""
        return self.n_groups - self.has_missing

    @property
    def n_tests(self) -> float:
        """Return how many tests the column offers, which sets the bits that name one of them."""
        n = self.n_groups
        if self.kind in ("intervals", "multiway"):
            return float(n > 1)
        if self.kind == "subset":
            return 2.0 ** min(n - 1, _MOST_BITS) - 1
        if self.kind == "one_vs_rest" and n > 2:
            return float(n)
        return max(0.0, n - 1.0)  # thresholds, and "present or missing"; one of two levels

    @property
    def n_choices(self) -> float:
        """Return the tests that p-values are corrected for: 1 for subsets (`association.py`)."""
        return float(self.n_groups > 1) if self.kind == "subset" else self.n_tests


def groups_of_numbers(x: Floats, cuts: Floats | None) -> Groups:
    """Return groups by distinct values, with thresholds halfway between them; or by the occupied bins of cuts."""
    is_present = ~np.isnan(x)
    present = x[is_present]
    if cuts is None:
        distinct, bins = np.unique(present, return_inverse=True)
        thresholds = halfway(distinct)
    else:
        occupied, bins = np.unique(np.searchsorted(cuts, present), return_inverse=True)
        thresholds = cuts[occupied[:-1]]  # of cuts that split these rows alike the first
    has_missing = len(present) < len(x)
    n_groups = len(thresholds) + int(len(present) > 0) + has_missing
    group = np.full(len(x), n_groups - 1, dtype=np.intp)
    group[is_present] = bins
    return Groups("threshold", group, n_groups, has_missing, thresholds, np.empty(0, np.int32))


def groups_of_levels(kind: Test, codes: NDArray[np.int32]) -> Groups:
    """Return groups by the levels or intervals that occur."""
    is_missing = codes == MISSING
    found, group = np.unique(np.where(is_missing, np.iinfo(np.int32).max, codes), return_inverse=True)
    has_missing = bool(is_missing.any())
    present = found[: len(found) - has_missing].astype(np.int32)
    return Groups(kind, group, len(found), has_missing, thresholds=np.empty(0), codes=present)


@dataclass(frozen=True)
class Parts:
    """Sets of rows, in arrays of one shape; ``value`` has one axis more."""

    n_rows: NDArray[np.int64]
    weight: Floats
    impurity: Floats
    value: Floats  # (…, K): weight of each class; (…, 1): the mean or median

    def __getitem__(self, index: int | slice | tuple[slice | None, ...] | NDArray[np.integer[Any]]) -> Parts:
        return Parts(self.n_rows[index], self.weight[index], self.impurity[index], self.value[index])


@dataclass(frozen=True)
class Measure:
    """The criterion by which sets of rows are measured. Groups are numbered from 0 and none is empty."""

    criterion: Criterion
    n_classes: int  # 0 for numbers
    variance_floor: float = 0.0  # of the Gaussian entropy
    outputs: tuple[int, ...] = ()  # of several targets: the number of classes of each, 1 for numbers

    def groups(self, target: NDArray[Any], weight: Floats, group: NDArray[np.intp], n_groups: int) -> Parts:
        """Return each group by itself: shape (n_groups,)."""
        if self.outputs:
            return self._of_several("groups", target, weight, group, n_groups)
        n_rows, total = np.bincount(group, minlength=n_groups), _sums(group, weight, n_groups)
        if self.n_classes > 0:
            return self._of_classes(n_rows, self._class_table(target, weight, group, n_groups))
        if self.criterion == "absolute_error":
            members = [group == g for g in range(n_groups)]
            impurity = np.array([absolute_error(target[mine], weight[mine]) for mine in members])
            value = np.array([median(target[mine], weight[mine]) for mine in members])
        elif self.criterion == "poisson":
            value = _sums(group, weight * target, n_groups) / total
            impurity = _sums(group, weight * _rel_entr(target, value[group]), n_groups) / total
        else:
            centred = target - target[0]  # far from zero the mean itself has too few digits
            mean = _sums(group, weight * centred, n_groups) / total
            value = target[0] + mean
            impurity = self._of_variance(_sums(group, weight * (centred - mean[group]) ** 2, n_groups) / total)
        return Parts(n_rows, total, impurity, value[:, None])

    def prefixes(self, target: NDArray[Any], weight: Floats, group: NDArray[np.intp], n_groups: int) -> Parts:
        """Return the groups 0 … g together, for each g: shape (n_groups,)."""
        if self.outputs:
            return self._of_several("prefixes", target, weight, group, n_groups)
        n_rows = np.cumsum(np.bincount(group, minlength=n_groups))
        if self.n_classes > 0:
            return self._of_classes(n_rows, np.cumsum(self._class_table(target, weight, group, n_groups), axis=0))
        own = _sums(group, weight, n_groups)
        total = np.cumsum(own)
        if self.criterion == "absolute_error":
            order = np.argsort(group, kind="stable")
            impurity, value = running_absolute_error(target[order], weight[order])
            return Parts(n_rows, total, impurity[n_rows - 1], value[n_rows - 1, None])
        if self.criterion == "poisson":
            # Σ w y ln(y/M) of a prefix: those of its groups around their own means, and of these around M.
            own_sum = _sums(group, weight * target, n_groups)
            inside = np.cumsum(_sums(group, weight * _rel_entr(target, (own_sum / own)[group]), n_groups))
            value = np.cumsum(own_sum) / total
            apart = np.cumsum(xlogy(own_sum, own_sum / own)) - xlogy(total * value, value)
            return Parts(n_rows, total, np.maximum(inside + apart, 0) / total, value[:, None])
        # Σ w (y − mean)² grows, from one prefix to the next, by that of the group itself and by the distance of the two
        # means: w W/(w + W) (m − M)² (Chan, Golub, LeVeque). Nothing cancels.
        centred = target - target[0]
        mean = _sums(group, weight * centred, n_groups) / own
        running = np.cumsum(own * mean) / total
        inside = _sums(group, weight * (centred - mean[group]) ** 2, n_groups)
        apart = np.zeros(n_groups)
        apart[1:] = own[1:] * total[:-1] / total[1:] * (mean[1:] - running[:-1]) ** 2
        impurity = self._of_variance(np.cumsum(inside + apart) / total)
        return Parts(n_rows, total, impurity, (running + target[0])[:, None])

    def two_way(self, target: NDArray[Any], weight: Floats, group: NDArray[np.intp], n_groups: int) -> Parts:
        """Return the groups 0 … g against the others, for each g but the last: shape (2, n_groups − 1)."""
        first = self.prefixes(target, weight, group, n_groups)[:-1]
        second = self.prefixes(target, weight, n_groups - 1 - group, n_groups)[:-1][::-1]
        return Parts(*(np.stack([getattr(side, each.name) for side in (first, second)]) for each in fields(Parts)))

    def _of_several(
        self, part: str, target: NDArray[Any], weight: Floats, group: NDArray[np.intp], n_groups: int
    ) -> Parts:
        """Return the mean impurity of the targets, and their values side by side."""
        n_classes = [0 if self.n_classes == 0 else size for size in self.outputs]
        found = [
            getattr(Measure(self.criterion, size), part)(target[:, t], weight, group, n_groups)
            for t, size in enumerate(n_classes)
        ]
        impurity = np.mean([each.impurity for each in found], axis=0)
        return Parts(
            found[0].n_rows, found[0].weight, impurity, np.concatenate([each.value for each in found], axis=-1)
        )

    def _class_table(self, target: NDArray[Any], weight: Floats, group: NDArray[np.intp], n_groups: int) -> Floats:
        cell = group * self.n_classes + target.astype(np.intp)
        table = _sums(cell, weight, n_groups * self.n_classes)
        return table.reshape(n_groups, self.n_classes)

    def _of_classes(self, n_rows: NDArray[np.int64], table: Floats) -> Parts:
        return Parts(n_rows, table.sum(axis=-1), class_impurity(self.criterion, table), table)

    def _of_variance(self, variance: Floats) -> Floats:
        if self.criterion == "squared_error":
            return variance
        return gaussian_entropy_of_variance(variance, self.variance_floor)


def _rel_entr(y: Floats, mean: Floats | np.float64) -> Floats:
    """Return y ln(y/mean), 0 where y is 0."""
    return np.asarray(rel_entr(y, np.where(y > 0, mean, 1.0)))


def _sums(group: NDArray[np.intp], weight: Floats, n_groups: int) -> Floats:
    return np.bincount(group, weight, n_groups).astype(np.float64)
