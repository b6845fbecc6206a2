"""A forest grown as in textbooks, by the rules of `problem.py`: one tree after the other."""

from __future__ import annotations

from margrove.forest.model import ForestSolution, joined
from margrove.forest.problem import ForestProblem
from margrove.tree.grove import Grove
from margrove.tree.reference import grow


def grow_forest(problem: ForestProblem) -> ForestSolution:
    """Grow the trees of a problem.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.forest.problem import ForestProblem
    >>> from margrove.forest.reference import grow_forest
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> x, y = np.array([0.0, 1, 2, 3]), np.array([0, 0, 1, 1], dtype=np.int32)
    >>> root = TreeProblem(Cells((TreeColumn("x"),), 4, (x,)), y, n_classes=2)
    >>> forest = grow_forest(ForestProblem(root, n_trees=2, n_drawn=4)).model
    >>> forest.n_trees
    2
    """
    columns = problem.root.cells.columns
    trees = [grow(problem.tree(t)) for t in range(problem.first, problem.first + problem.n_trees)]
    return ForestSolution(joined([Grove.of(columns, trees)], problem.root))
