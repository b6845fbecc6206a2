"""The problem of feature selection by impurity, as data, without a solver.

Given the rows of a tree's root (`tree/problem.py`) and a target of K classes. Each column by itself offers tests there;
its best, of the largest gain and the first of equals, parts the rows into branches. Wanted, for every column: the class
weights of these branches, the (B, K) table from which every score and p-value follows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.problem import Problem
from margrove.tree.problem import TreeProblem


@dataclass(frozen=True)
class ColumnProblem(Problem["ColumnTests"]):
    """Rows, classes, weights, and which tests are looked at: the criterion and the thresholds of ``root.growth``. Its
    limits and stops are for trees, and not looked at."""

    root: TreeProblem


@dataclass(frozen=True, eq=False)
class ColumnTests:
    """The best test of each of d columns. One that is constant offers none, and has no branches."""

    n_tests: NDArray[np.float64]  # (d,): how many tests the column offered
    threshold: NDArray[np.float64]  # (d,): θ of x ≤ θ, ∞ of "present or missing"; NaN of all others
    start: NDArray[np.int64]  # (d + 1,): column j's branches are table[start[j] : start[j + 1]]
    table: NDArray[np.float64]  # (branches of all columns, K): the weight of each class

    @property
    def is_offered(self) -> NDArray[np.bool_]:
        """True for the columns that have a test."""
        return np.asarray(np.diff(self.start) > 0)
