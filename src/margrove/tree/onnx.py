"""Decision trees as ONNX's ``TreeEnsemble``, whose thresholds and leaves are doubles.

Every test is x ≤ θ, and NaN takes the branch of missing cells. Where x is a number, that is the tree's own test. A test
of the levels of a category, or of intervals, first becomes a number: a table has the branch of each code
(`margrove.onnx.table`; an interval counts as a level), so that missing cells and codes that the node has not seen are
entries like others. Its branches are then separated by halves.

Sets of codes have a test of their own in ONNX, BRANCH_MEMBER, which is not used: onnxruntime (1.31) takes leaves of
equal weight for the same leaf there, whatever class they are for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.onnx.graph import ML, GraphValue, onnx_package
from margrove.onnx.prediction import Prediction
from margrove.onnx.table import FIRST_LEVEL, MISSING, Columns
from margrove.tree.model import TreeModel
from margrove.tree.problem import TreeColumn
from margrove.tree.words import branch_of_codes

_LEQ = 0  # of nodes_modes
_SUM, _NONE = 1, 0  # aggregate_function, post_transform
# Leaves that no node leads to: where the one child of a root is a leaf and the other a node of the same number, some
# versions of onnxruntime (1.21 to 1.23) take the root for a leaf, its issue 24679. Leaves after these have higher
# numbers than the nodes below their root.
_IDLE_LEAVES = 2

Slot = tuple[int, int]  # a node, and one of its branches: 0 where its test is true, 1 where it is false
Asked = tuple[int, tuple[int, ...]]  # a column, and of a test of codes the branch of each: unseen, missing, levels


@dataclass
class TreeEnsemble:
    """Trees on their way into a ``TreeEnsemble``: node by node, leaf by leaf."""

    columns: Sequence[TreeColumn]
    roots: list[int] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)  # of each node
    splits: list[float] = field(default_factory=list)
    missing_is_true: list[int] = field(default_factory=list)
    children: list[list[int]] = field(default_factory=list)  # of each node, by branch; ~number where it is a leaf
    targets: list[int] = field(default_factory=lambda: [0] * _IDLE_LEAVES)
    weights: list[float] = field(default_factory=lambda: [0.0] * _IDLE_LEAVES)

    def add(self, tree: TreeModel, targets: NDArray[Any], weights: NDArray[Any]) -> None:
        """Add a tree; as a leaf each of its nodes adds its weight to its target."""
        self.roots.append(len(self.asked))
        waiting: list[tuple[int, Slot | None]] = [(0, None)]
        while waiting:
            node, slot = waiting.pop()
            j = int(tree.feature[node])
            if j < 0:
                # A tree that is one leaf needs a node all the same, with equal leaves on both branches.
                root = self._node(None, (0, ()), 0.0) if slot is None else 0
                for number, branch in [(root, 0), (root, 1)] if slot is None else [slot]:
                    self.children[number][branch] = ~len(self.targets)
                    self.targets.append(int(targets[node]))
                    self.weights.append(float(weights[node]))
            elif self.columns[j].test == "threshold":
                missing_is_true = int(tree.missing_branch[node]) == 0
                number = self._node(slot, (j, ()), float(tree.threshold[node]), missing_is_true=missing_is_true)
                yes, no = tree.children(node).tolist()
                waiting += [(no, (number, 1)), (yes, (number, 0))]
            else:
                waiting += self._branches(tree, node, slot)

    def _branches(self, tree: TreeModel, node: int, slot: Slot | None) -> list[tuple[int, Slot | None]]:
        """Add the nodes that separate the branches of a test of codes; return the children with their slots."""
        children = tree.children(node).tolist()
        others = int(tree.default_branch[node]), int(tree.missing_branch[node])  # UNSEEN, MISSING
        asked = int(tree.feature[node]), (*others, *branch_of_codes(tree, node))
        below: list[tuple[int, Slot | None]] = []
        parting: list[tuple[int, int, Slot | None]] = [(0, len(children), slot)]
        while parting:
            first, end, slot = parting.pop()
            if end - first == 1:
                below.append((children[first], slot))
                continue
            half = (first + end) // 2
            number = self._node(slot, asked, half - 0.5)
            parting += [(half, end, (number, 1)), (first, half, (number, 0))]
        return below

    def _node(self, slot: Slot | None, asked: Asked, split: float, *, missing_is_true: bool = False) -> int:
        """Add a node below a slot, or a root; return its number."""
        number = len(self.asked)
        if slot is not None:
            self.children[slot[0]][slot[1]] = number
        self.asked.append(asked)
        self.splits.append(split)
        self.missing_is_true.append(int(missing_is_true))
        self.children.append([0, 0])
        return number

    def into(self, columns: Columns, n_targets: int) -> GraphValue:
        """Return the sums of the weights of each row's leaves, (n, targets)."""
        tensor = onnx_package().numpy_helper.from_array
        cells, places = self._cells(columns)
        children = np.array(self.children)
        is_leaf = (children < 0).astype(np.int64)
        below = np.where(children < 0, ~children, children)
        return cells.op(
            "TreeEnsemble",
            domain=ML,
            n_targets=n_targets,
            aggregate_function=_SUM,
            post_transform=_NONE,
            tree_roots=self.roots,
            nodes_modes=tensor(np.full(len(self.asked), _LEQ, dtype=np.uint8)),
            nodes_featureids=[places.get(asked, 0) for asked in self.asked],
            nodes_splits=tensor(np.array(self.splits)),
            nodes_missing_value_tracks_true=self.missing_is_true,
            nodes_truenodeids=below[:, 0].tolist(),
            nodes_trueleafs=is_leaf[:, 0].tolist(),
            nodes_falsenodeids=below[:, 1].tolist(),
            nodes_falseleafs=is_leaf[:, 1].tolist(),
            leaf_targetids=self.targets,
            leaf_weights=tensor(np.array(self.weights)),
        )

    def _cells(self, columns: Columns) -> tuple[GraphValue, dict[Asked, int]]:
        """Return the cells that the nodes test as doubles, (n, asked), and the place of each: numbers as they are, then
        of each other column the branches that its tables give, each table once."""
        tables: dict[int, dict[Asked, None]] = {}
        for asked in self.asked:
            if asked[1]:
                tables.setdefault(asked[0], {})[asked] = None
        numbers = [j for j, column in enumerate(self.columns) if column.test == "threshold"]
        places: dict[Asked, int] = {(j, ()): place for place, j in enumerate(numbers)}
        parts = [columns.numbers(numbers)] if numbers else []
        for j, column in enumerate(self.columns):
            if column.test == "threshold":
                continue
            if column.cuts:  # the code of an interval is how many cut points are at or below the number
                number = columns.numbers([j])
                count = (number >= np.array([column.cuts])).cast("int64").sum() + FIRST_LEVEL
                codes = number.op("IsNaN").where(MISSING, count)
            else:
                codes = columns.codes(j, column.levels)
            if j in tables or (not parts and j == len(self.columns) - 1):  # at least one, for a tree without a test
                own = list(tables.get(j, {(j, (0,) * (FIRST_LEVEL + column.n_codes)): None}))
                places |= {asked: len(places) + number for number, asked in enumerate(own)}
                branches = np.array([branches for _, branches in own], dtype=np.float64).T
                parts.append(columns.graph.op("Gather", branches, codes.flat(), axis=0))
        return columns.graph.joined(parts), places


def tree_classifier(model: Any, columns: Columns) -> Prediction:
    """`DecisionTreeClassifier` and `DecisionStump`: the number of the leaf, and what is known of it."""
    model._refuse_several("ONNX")
    tree: TreeModel = model.nodes_
    gather, leaf = columns.graph.op, _leaf(tree, columns)
    smoothed = tree.value + model.smoothing
    return Prediction(
        model.classes_,
        gather("Gather", tree.value.argmax(axis=1), leaf),
        probabilities=gather("Gather", smoothed / smoothed.sum(axis=1, keepdims=True), leaf, axis=0),
    )


def tree_regression(model: Any, columns: Columns) -> Prediction:
    """`DecisionTreeRegressor`."""
    model._refuse_several("ONNX")
    leaf = _leaf(model.nodes_, columns)
    return Prediction(value=columns.graph.op("Gather", model.nodes_.value[:, :1], leaf, axis=0))


def _leaf(tree: TreeModel, columns: Columns) -> GraphValue:
    """The number of each row's leaf, (n,) int64: a sum of one whole number, which a double holds exactly."""
    ensemble = TreeEnsemble(tree.columns)
    ensemble.add(tree, np.zeros(tree.n_nodes, dtype=np.int64), np.arange(tree.n_nodes))
    return ensemble.into(columns, 1).cast("int64").flat()
