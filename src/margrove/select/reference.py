"""The best test of each column, one after the other, by the tree's own search in plain NumPy (`tree/split.py`)."""

from __future__ import annotations

from math import nan

import numpy as np

from margrove.select.problem import ColumnProblem, ColumnTests
from margrove.tree.split import SplitSearch


def best_tests(problem: ColumnProblem) -> ColumnTests:
    """Search all columns at the root.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.select.problem import ColumnProblem
    >>> from margrove.select.reference import best_tests
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> weight, is_heavy = np.array([15.0, 16, 19, 22, 27, 29]), np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    >>> tests = best_tests(ColumnProblem(TreeProblem(Cells((TreeColumn("weight"),), 6, (weight,)), is_heavy, 2)))
    >>> tests.threshold, tests.table
    (array([20.5]), array([[3., 0.],
           [0., 3.]]))
    """
    search = SplitSearch(problem.root)
    root = search.node(np.arange(problem.root.cells.n_rows))
    splits = [search.best_test(root, j) for j in range(len(problem.root.cells.columns))]
    tables = [np.empty((0, problem.root.n_classes)) if split is None else split.branches.value for split in splits]
    return ColumnTests(
        n_tests=np.array([0.0 if split is None else split.n_tests for split in splits]),
        threshold=np.array([nan if split is None else split.threshold for split in splits]),
        start=np.concatenate([[0], np.cumsum([len(table) for table in tables])]).astype(np.int64),
        table=np.concatenate(tables),
    )
