"""The problem of growing a forest, as data, without a solver.

Given rows, target and weights w_i as for one tree (`tree/problem.py`), a number of trees T and a seed s. Tree t is the
tree of its own `TreeProblem`:

- its seed is s_t = `tree_seed(s, t)`, from which the columns and thresholds of its nodes are drawn;
- with `n_drawn` m it draws m rows with replacement (`drawn_rows`). A row drawn c times has the weight c · w_i. A row
  that was not drawn is *out of bag*: the tree has not seen it. Without `n_drawn` every tree has all rows;
- with `is_balanced` its rows are also weighted by m / (K m_k), where m_k of its draws are of their class; of several
  targets by the product of these.

The forest predicts the mean of what its trees predict: of the shares of the classes in the leaves, or of their values.
Its out-of-bag prediction for a training row is the mean over the trees that have not seen the row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.problem import Problem
from margrove.tree.draws import drawn_rows, tree_seed
from margrove.tree.problem import TreeProblem

if TYPE_CHECKING:
    from margrove.forest.model import ForestSolution  # noqa: F401  (the type of the solution, below)


@dataclass(frozen=True)
class ForestProblem(Problem["ForestSolution"]):
    """All rows, how a tree is grown, and what is drawn for each tree."""

    root: TreeProblem  # all rows, with the weights that they have before any is drawn
    n_trees: int
    seed: int = 0
    n_drawn: int | None = None
    is_balanced: bool = False
    min_weight_share: float = 0.0  # the least weight of a leaf, as a share of the weight of its tree's rows
    first: int = 0  # trees that have been grown before: the next one is tree `first`
    rows: NDArray[np.intp] | None = None  # which of the given rows these are; None: all

    def counts(self, t: int) -> NDArray[np.intp]:
        """Return how often tree t drew each row."""
        n_rows = self.root.cells.n_rows
        if self.n_drawn is None:
            return np.ones(n_rows, dtype=np.intp)
        return np.bincount(drawn_rows(tree_seed(self.seed, t), n_rows, self.n_drawn), minlength=n_rows)

    def weight(self, counts: NDArray[np.intp]) -> NDArray[np.float64] | None:
        """Return the weights of the rows that a tree drew, each so often; None where all are one."""
        root, rows = self.root, np.flatnonzero(counts)
        weight = counts[rows].astype(np.float64)
        if self.is_balanced:
            for target in root.target.reshape(len(root.target), -1).T:
                of_class = np.bincount(target, counts)
                weight *= (counts.sum() / (np.count_nonzero(of_class) * np.maximum(of_class, 1)))[target[rows]]
        if root.weight is not None:
            weight *= root.weight[rows]
        return None if (weight == 1).all() else weight

    def tree(self, t: int) -> TreeProblem:
        """Return the problem of tree t."""
        root, counts = self.root, self.counts(t)
        rows, weight = np.flatnonzero(counts), self.weight(counts)
        total = float(len(rows) if weight is None else weight.sum())
        growth = replace(root.growth, seed=tree_seed(self.seed, t), min_weight_leaf=self.min_weight_share * total)
        cells = root.cells if len(rows) == root.cells.n_rows else root.cells.take(rows)
        return replace(root, cells=cells, target=root.target[rows], weight=weight, growth=growth)


@dataclass(frozen=True)
class SpreadForestProblem(Problem["ForestSolution"]):
    """The same of rows that lie on the workers of a cluster. ``forest`` has their columns and their number, but no
    cells, target or weights."""

    rows: Any  # in partitions; the engine's own
    forest: ForestProblem
