"""Permutation importances of a tree (Breiman 2001).

    importance = score(X, y) − score(X with the cells of one column shuffled, y)

A column that no test uses has exactly 0, and is not shuffled. Cells are shuffled as the tree sees them, so a table of
any kind, even a sparse matrix, is read once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells


def permutation_losses(
    tree: TreeModel,
    cells: Cells,
    score: Callable[[Cells], float],
    n_repeats: int,
    generator: np.random.RandomState,
) -> NDArray[np.float64]:
    """Return the loss of each column in each repetition, (d, n_repeats)."""
    losses = np.zeros((len(tree.columns), n_repeats))
    before = score(cells)
    for j in np.unique(tree.feature[~tree.is_leaf]).tolist():
        for repeat in range(n_repeats):
            losses[j, repeat] = before - score(_shuffled(cells, j, generator.permutation(cells.n_rows)))
    return losses


def _shuffled(cells: Cells, j: int, order: NDArray[np.intp]) -> Cells:
    """Return the same rows with the cells of column j in another order."""
    if cells.sparse is None:
        values = (*cells.values[:j], cells.values[j][order], *cells.values[j + 1 :])
        return replace(cells, values=values, block=None)
    column = cells.sparse[:, [j]].tocsr()[order].tocsc()
    return replace(cells, sparse=sp.hstack([cells.sparse[:, :j], column, cells.sparse[:, j + 1 :]], format="csc"))
