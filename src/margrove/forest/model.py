"""The result of growing a forest: its trees, in one of two layouts. Nothing here learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.forest.packed import PackedForest
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel
from margrove.tree.problem import TreeColumn, TreeProblem

_MOST_PLACES = 4_000_000  # numbers of leaves of several rows and all trees at a time: 16 MB


@dataclass(frozen=True, eq=False)
class ForestModel:
    """Trees whose predictions are averaged: with tests of any kind, or plain ones in few bytes."""

    trees: Grove | PackedForest
    n_classes: int  # 0 for numbers; of several targets the sum of their classes

    @property
    def columns(self) -> tuple[TreeColumn, ...]:
        """The columns that the trees test."""
        return self.trees.columns

    @property
    def n_trees(self) -> int:
        """T."""
        return self.trees.n_trees

    def tree(self, t: int) -> TreeModel:
        """Return tree t, counted from 0."""
        return self.trees.tree(t)

    def first(self, n_trees: int) -> ForestModel:
        """Return the forest of the first trees."""
        return ForestModel(self.trees.first(n_trees), self.n_classes)

    def leaf_nodes(self, t: int) -> NDArray[np.intp]:
        """Return the nodes of tree t that `leaf_values` has rows for: the leaves, or in a grove all nodes."""
        nodes = slice(int(self.trees.start[t]), int(self.trees.start[t + 1]))
        if isinstance(self.trees, PackedForest):
            return np.flatnonzero(self.trees.feature[nodes] < 0)
        return np.arange(nodes.stop - nodes.start)

    def leaf_values(self, t: int) -> NDArray[np.float64]:
        """Return what each of `leaf_nodes` predicts: the shares of the classes (of several targets one behind the
        other), or numbers."""
        if isinstance(self.trees, PackedForest):
            return self.trees.leaf_values(t)
        tree = self.trees.tree(t)
        return tree.value / tree.weight[:, None] if self.n_classes else tree.value

    def blocks(self, n_rows: int) -> list[slice]:
        """Return blocks of rows, so that the leaves of a block in all trees take little memory."""
        step = max(1, _MOST_PLACES // max(1, self.n_trees))
        return [slice(begin, min(begin + step, n_rows)) for begin in range(0, n_rows, step)]


def joined(parts: list[Any], root: TreeProblem) -> ForestModel:
    """Return the model of these groves and packed forests of one problem: packed if its trees are plain."""
    if PackedForest.holds(root):
        packed = [PackedForest.of(part, root.growth.criterion) if isinstance(part, Grove) else part for part in parts]
        return ForestModel(PackedForest.joined(packed), root.n_classes)
    return ForestModel(Grove.joined(parts), root.n_classes)


@dataclass(frozen=True, eq=False)
class ForestSolution:
    """The forest that an engine has grown, and why it stopped: a tree that was not finished is left out."""

    model: ForestModel
    status: Status = Status.CONVERGED
