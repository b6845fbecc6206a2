"""The groups into which a column divides the rows of a node: those that no test of the column can divide.

They are the distinct values of a number (or the bins between its candidate thresholds), the levels of a category, or
the given intervals. The missing cells are a group of their own, the last. A `Tally` sums the rows up by groups, once;
from it come the number of rows, weight, impurity and value of groups and of sets of groups.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
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
    codes: NDArray[np.int32]  # of the groups of present cells of a category or of intervals
    distinct: Floats | None = None  # the numbers of the groups of present cells, if no number shares its group
    cuts: Floats = field(default_factory=lambda: np.empty(0))  # else between those groups

    @cached_property
    def thresholds(self) -> Floats:
        """Return the candidates between the groups of present cells of a number."""
        return self.cuts if self.distinct is None else halfway(self.distinct)

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
    has_missing = not is_present.all()
    present = x[is_present] if has_missing else x
    numbers: NDArray[Any]
    numbers, bins = np.unique(present if cuts is None else np.searchsorted(cuts, present), return_inverse=True)
    group = np.full(len(x), len(numbers), dtype=np.intp)
    group[is_present] = bins
    n_groups, codes = len(numbers) + has_missing, np.empty(0, np.int32)
    if cuts is None:
        return Groups("threshold", group, n_groups, has_missing, codes, distinct=numbers)
    return Groups("threshold", group, n_groups, has_missing, codes, cuts=cuts[numbers[:-1]])  # of equal cuts the first


def groups_of_levels(kind: Test, codes: NDArray[np.int32]) -> Groups:
    """Return groups by the levels or intervals that occur."""
    is_missing = codes == MISSING
    found, group = np.unique(np.where(is_missing, np.iinfo(np.int32).max, codes), return_inverse=True)
    has_missing = bool(is_missing.any())
    present = found[: len(found) - has_missing].astype(np.int32)
    return Groups(kind, group, len(found), has_missing, present)


@dataclass(frozen=True)
class Parts:
    """Sets of rows, in arrays of one shape; ``value`` has one axis more."""

    n_rows: NDArray[np.int64]
    weight: Floats
    impurity: Floats
    value: Floats  # (…, K): weight of each class; (…, 1): the mean or median

    def __getitem__(self, index: int | slice | tuple[slice | None, ...] | NDArray[np.integer[Any]]) -> Parts:
        return Parts(self.n_rows[index], self.weight[index], self.impurity[index], self.value[index])


Sums = tuple[NDArray[Any], ...]  # of groups, or of sets of groups: the first is the number of rows


class Tally(ABC):
    """The rows of a node summed up by groups, which are numbered from 0 and not empty."""

    @abstractmethod
    def each(self) -> Parts:
        """Return each group by itself: shape (n_groups,)."""

    @abstractmethod
    def two_way(self, order: NDArray[np.intp] | None = None) -> Parts:
        """Return every prefix of the groups in this order against the others: shape (2, n_groups − 1)."""

    @abstractmethod
    def one_vs_rest(self) -> Parts:
        """Return every group against the others: shape (2, n_groups)."""


class _Summed(Tally):
    """Sums of each group, from which those of sets of groups come without another look at the rows."""

    def __init__(self, measure: Measure, sums: Sums) -> None:
        self.measure, self.sums = measure, sums

    def each(self) -> Parts:
        return self._parts(self.sums)

    def two_way(self, order: NDArray[np.intp] | None = None) -> Parts:
        first, others = self._from_both_ends(self.sums if order is None else tuple(each[order] for each in self.sums))
        return self._parts(tuple(np.stack([a[:-1], b[1:]]) for a, b in zip(first, others, strict=True)))

    def one_vs_rest(self) -> Parts:
        before, after = self._from_both_ends(self.sums)
        none = tuple(np.zeros_like(each[:1]) for each in self.sums)
        rest = self._joined(
            tuple(np.concatenate([a, b[:-1]]) for a, b in zip(none, before, strict=True)),
            tuple(np.concatenate([a[1:], b]) for a, b in zip(after, none, strict=True)),
        )
        return self._parts(tuple(np.stack(pair) for pair in zip(self.sums, rest, strict=True)))

    def _from_both_ends(self, sums: Sums) -> tuple[Sums, Sums]:
        """Return the groups 0 … g together, and the groups g … n − 1, for each g."""
        turned = self._running(tuple(each[::-1] for each in sums))
        return self._running(sums), tuple(each[::-1] for each in turned)

    def _running(self, sums: Sums) -> Sums:
        return tuple(np.cumsum(each, axis=0) for each in sums)

    def _joined(self, one: Sums, other: Sums) -> Sums:
        return tuple(a + b for a, b in zip(one, other, strict=True))

    @abstractmethod
    def _parts(self, sums: Sums) -> Parts: ...


class _OfClasses(_Summed):
    """The weight of each class."""

    def _parts(self, sums: Sums) -> Parts:
        n_rows, table = sums
        return Parts(n_rows, table.sum(axis=-1), class_impurity(self.measure.criterion, table), table)


class _OfCounts(_Summed):
    """Of counts y with weights w, W = Σ w: W, Σ w y, Σ w y ln(y/mean) around the mean of each group, W y ln y of it."""

    def _parts(self, sums: Sums) -> Parts:
        n_rows, total, number, inside, own = sums
        value = number / total
        # Σ w y ln(y/M) of a set: those of its groups around their own means, and of these around M.
        impurity = np.maximum(inside + (own - xlogy(number, value)), 0) / total
        return Parts(n_rows, total, impurity, value[..., None])


class _OfNumbers(_Summed):
    """Weight, mean and Σ w (y − mean)², of numbers counted from ``origin``.

    That of two sets together is the sum of theirs and of w W/(w + W) (m − M)² (Chan, Golub, LeVeque): nothing cancels.
    """

    def __init__(self, measure: Measure, sums: Sums, origin: float) -> None:
        super().__init__(measure, sums)
        self.origin = origin

    def _running(self, sums: Sums) -> Sums:
        n_rows, own, mean, inside = sums
        total = np.cumsum(own)
        running = np.cumsum(own * mean) / total
        apart = np.zeros(len(own))
        apart[1:] = own[1:] * total[:-1] / total[1:] * (mean[1:] - running[:-1]) ** 2
        return np.cumsum(n_rows), total, running, np.cumsum(inside + apart)

    def _joined(self, one: Sums, other: Sums) -> Sums:
        total = one[1] + other[1]
        apart = one[1] * other[1] / total * (one[2] - other[2]) ** 2
        mean = (one[1] * one[2] + other[1] * other[2]) / total
        return one[0] + other[0], total, mean, one[3] + other[3] + apart

    def _parts(self, sums: Sums) -> Parts:
        n_rows, total, mean, inside = sums
        impurity = inside / total
        if self.measure.criterion == "gaussian_entropy":
            impurity = gaussian_entropy_of_variance(impurity, self.measure.variance_floor)
        return Parts(n_rows, total, impurity, (mean + self.origin)[..., None])


@dataclass(frozen=True)
class _OfMedians(Tally):
    """The rows themselves: medians come from no sums."""

    target: Floats
    weight: Floats
    group: NDArray[np.intp]
    n_groups: int

    def each(self) -> Parts:
        members = [self.group == g for g in range(self.n_groups)]
        impurity = np.array([absolute_error(self.target[mine], self.weight[mine]) for mine in members])
        value = np.array([median(self.target[mine], self.weight[mine]) for mine in members])
        n_rows = np.bincount(self.group, minlength=self.n_groups)
        return Parts(n_rows, _sums(self.group, self.weight, self.n_groups), impurity, value[:, None])

    def two_way(self, order: NDArray[np.intp] | None = None) -> Parts:
        group = self.group if order is None else np.argsort(order)[self.group]
        first, others = self._prefixes(group), self._prefixes(self.n_groups - 1 - group)[::-1]
        return _combined(np.stack, [first[:-1], others[1:]])

    def one_vs_rest(self) -> Parts:
        others = [(self.group != g).astype(np.intp) for g in range(self.n_groups)]
        each = [_OfMedians(self.target, self.weight, other, 2).two_way() for other in others]
        return _combined(partial(np.concatenate, axis=1), each)

    def _prefixes(self, group: NDArray[np.intp]) -> Parts:
        n_rows = np.cumsum(np.bincount(group, minlength=self.n_groups))
        order = np.argsort(group, kind="stable")
        impurity, value = running_absolute_error(self.target[order], self.weight[order])
        total = np.cumsum(_sums(group, self.weight, self.n_groups))
        return Parts(n_rows, total, impurity[n_rows - 1], value[n_rows - 1, None])


@dataclass(frozen=True)
class _OfSeveral(Tally):
    """Several targets: the mean of their impurities, and their values side by side."""

    tallies: list[Tally]

    def each(self) -> Parts:
        return self._together([tally.each() for tally in self.tallies])

    def two_way(self, order: NDArray[np.intp] | None = None) -> Parts:
        return self._together([tally.two_way(order) for tally in self.tallies])

    def one_vs_rest(self) -> Parts:
        return self._together([tally.one_vs_rest() for tally in self.tallies])

    @staticmethod
    def _together(found: list[Parts]) -> Parts:
        impurity = np.mean([each.impurity for each in found], axis=0)
        value = np.concatenate([each.value for each in found], axis=-1)
        return Parts(found[0].n_rows, found[0].weight, impurity, value)


@dataclass(frozen=True)
class Measure:
    """The criterion by which sets of rows are measured."""

    criterion: Criterion
    n_classes: int  # 0 for numbers
    variance_floor: float = 0.0  # of the Gaussian entropy
    outputs: tuple[int, ...] = ()  # of several targets: the number of classes of each, 1 for numbers

    def tally(self, target: NDArray[Any], weight: Floats, group: NDArray[np.intp], n_groups: int) -> Tally:
        """Sum up the rows by groups."""
        if self.outputs:
            measures = [Measure(self.criterion, 0 if self.n_classes == 0 else size) for size in self.outputs]
            return _OfSeveral(
                [each.tally(target[:, t], weight, group, n_groups) for t, each in enumerate(measures)],
            )
        if self.criterion == "absolute_error":
            return _OfMedians(target, weight, group, n_groups)
        n_rows = np.bincount(group, minlength=n_groups)
        if self.n_classes > 0:
            cell = group * self.n_classes + target.astype(np.intp)
            table = _sums(cell, weight, n_groups * self.n_classes).reshape(n_groups, self.n_classes)
            return _OfClasses(self, (n_rows, table))
        total = _sums(group, weight, n_groups)
        if self.criterion == "poisson":
            number = _sums(group, weight * target, n_groups)
            value = number / total
            inside = _sums(group, weight * _rel_entr(target, value[group]), n_groups)
            return _OfCounts(self, (n_rows, total, number, inside, xlogy(number, value)))
        centred = target - target[0]  # far from zero the mean itself has too few digits
        mean = _sums(group, weight * centred, n_groups) / total
        inside = _sums(group, weight * (centred - mean[group]) ** 2, n_groups)
        return _OfNumbers(self, (n_rows, total, mean, inside), float(target[0]))

    def groups(self, target: NDArray[Any], weight: Floats, group: NDArray[np.intp], n_groups: int) -> Parts:
        """Return each group by itself: shape (n_groups,)."""
        return self.tally(target, weight, group, n_groups).each()


def _combined(how: Callable[[list[NDArray[Any]]], NDArray[Any]], parts: list[Parts]) -> Parts:
    return Parts(*(how([getattr(each, part.name) for each in parts]) for part in fields(Parts)))


def _rel_entr(y: Floats, mean: Floats | np.float64) -> Floats:
    """Return y ln(y/mean), 0 where y is 0."""
    return np.asarray(rel_entr(y, np.where(y > 0, mean, 1.0)))


def _sums(group: NDArray[np.intp], weight: Floats, n_groups: int) -> Floats:
    return np.bincount(group, weight, n_groups).astype(np.float64)
