"""The groups into which a column divides the rows of a node: those that no test of the column can divide.

They are the distinct values of a number (or the bins between its candidate thresholds), the levels of a category, or
the given intervals. The missing cells are a group of their own, the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.tree.problem import MISSING, Test
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
        """Return the number of tests for which p-values are corrected: 1 for subsets, whose p accounts for the choice
        among the levels already (`association.py`)."""
        return float(self.n_groups > 1) if self.kind == "subset" else self.n_tests


def groups_of_numbers(x: Floats, cuts: Floats | None) -> Groups:
    """Return groups by distinct values, with thresholds halfway between them; or by the bins between cuts, without
    empty ones."""
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
