"""Decision trees as ``TreeEnsemble``, whose thresholds and leaves are doubles.

Every column of a tree becomes a double. A number stays one, and a test x ≤ θ is BRANCH_LEQ, which says where NaN goes.
A category, or a number with cut points, becomes its code (`onnx_table`; the interval of a number counts as level), and
its test is a set of codes, BRANCH_MEMBER: missing cells are a code like others, and a code that nobody asks for, such
as one that training did not know, is left for the default branch. A test of many branches is asked by halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store.onnx_answer import Answer
from margrove.store.onnx_graph import ML, Graph, onnx_package
from margrove.store.onnx_table import FIRST_LEVEL, MISSING, Columns
from margrove.tree.model import TreeModel
from margrove.tree.problem import TreeColumn
from margrove.tree.words import branch_of_codes

_LEQ, _MEMBER = 0, 6  # of nodes_modes
_SUM, _NONE = 1, 0  # aggregate_function, post_transform

Slot = tuple[int, bool]  # a node and its side, true or false, that something is to be hung below


@dataclass
class Ensemble:
    """Trees on their way into a ``TreeEnsemble``: node by node, leaf by leaf."""

    roots: list[int] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    splits: list[float] = field(default_factory=list)
    missing_is_true: list[int] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)  # the true and the false child of each node
    is_leaf: list[list[int]] = field(default_factory=list)  # whether these are leaves
    members: list[float] = field(default_factory=list)  # of all sets in the order of nodes, NaN after each
    targets: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, tree: TreeModel, targets: NDArray[Any], weights: NDArray[Any]) -> None:
        """A tree, and to which target each of its nodes, as a leaf, adds how much."""
        self.roots.append(len(self.modes))
        if tree.n_nodes == 1:  # a node whose branches are the same
            only = self._node(_LEQ, 0, 0.0, is_true=False)
            for side in (True, False):
                self._hang_leaf((only, side), int(targets[0]), float(weights[0]))
            return
        waiting: list[tuple[int, Slot | None]] = [(0, None)]
        while waiting:
            node, slot = waiting.pop()
            if tree.feature[node] < 0:
                assert slot is not None
                self._hang_leaf(slot, int(targets[node]), float(weights[node]))
                continue
            children = tree.children(node).tolist()
            if tree.columns[int(tree.feature[node])].test == "threshold":
                is_true = int(tree.missing_branch[node]) == 0
                number = self._node(_LEQ, int(tree.feature[node]), float(tree.threshold[node]), is_true=is_true)
                self._hang_node(slot, number)
                waiting += [(children[1], (number, False)), (children[0], (number, True))]
            else:
                waiting += self._sets(tree, node, children, slot)

    def _sets(
        self, tree: TreeModel, node: int, children: list[int], slot: Slot | None
    ) -> list[tuple[int, Slot | None]]:
        """The nodes that part a test of levels or intervals; what hangs below them."""
        codes: list[list[int]] = [[] for _ in children]
        for code, branch in enumerate(branch_of_codes(tree, node)):
            codes[branch].append(FIRST_LEVEL + code)
        codes[int(tree.missing_branch[node])].append(MISSING)
        last = int(tree.default_branch[node])
        branches = [b for b in range(len(children)) if b != last and codes[b]] + [last]
        below: list[tuple[int, Slot | None]] = []
        parting: list[tuple[list[int], Slot | None]] = [(branches, slot)]
        while parting:
            group, slot = parting.pop()
            if len(group) == 1:
                below.append((children[group[0]], slot))
                continue
            half = len(group) // 2
            asked = sorted(code for branch in group[:half] for code in codes[branch])
            number = self._node(_MEMBER, int(tree.feature[node]), 0.0, is_true=False)
            self.members += [*map(float, asked), np.nan]
            self._hang_node(slot, number)
            parting += [(group[half:], (number, False)), (group[:half], (number, True))]
        return below

    def _node(self, mode: int, feature: int, split: float, *, is_true: bool) -> int:
        self.modes.append(mode)
        self.features.append(feature)
        self.splits.append(split)
        self.missing_is_true.append(int(is_true))
        self.below.append([0, 0])
        self.is_leaf.append([0, 0])
        return len(self.modes) - 1

    def _hang_node(self, slot: Slot | None, number: int) -> None:
        if slot is not None:
            self.below[slot[0]][int(not slot[1])] = number

    def _hang_leaf(self, slot: Slot, target: int, weight: float) -> None:
        self.below[slot[0]][int(not slot[1])] = len(self.targets)
        self.is_leaf[slot[0]][int(not slot[1])] = 1
        self.targets.append(target)
        self.weights.append(weight)

    def into(self, graph: Graph, cells: str, n_targets: int) -> str:
        """The sums of what the leaves of each row add, (n, targets)."""
        tensor = onnx_package().numpy_helper.from_array
        below, is_leaf = np.array(self.below), np.array(self.is_leaf)
        sets = {"membership_values": tensor(np.array(self.members))} if self.members else {}
        return graph.op(
            "TreeEnsemble",
            cells,
            domain=ML,
            n_targets=n_targets,
            aggregate_function=_SUM,
            post_transform=_NONE,
            tree_roots=self.roots,
            nodes_modes=tensor(np.array(self.modes, dtype=np.uint8)),
            nodes_featureids=self.features,
            nodes_splits=tensor(np.array(self.splits)),
            nodes_missing_value_tracks_true=self.missing_is_true,
            nodes_truenodeids=below[:, 0].tolist(),
            nodes_trueleafs=is_leaf[:, 0].tolist(),
            nodes_falsenodeids=below[:, 1].tolist(),
            nodes_falseleafs=is_leaf[:, 1].tolist(),
            leaf_targetids=self.targets,
            leaf_weights=tensor(np.array(self.weights)),
            **sets,
        )


def cells_of(graph: Graph, trained: Sequence[TreeColumn], columns: Columns) -> str:
    """The columns of a tree as doubles, (n, d): numbers, and codes of categories and intervals."""
    if all(column.test == "threshold" for column in trained):
        return columns.numbers()
    parts: list[str] = []
    numbers: list[int] = []  # neighbours that are taken together
    for j, column in enumerate(trained):
        if column.test == "threshold":
            numbers.append(j)
            continue
        if numbers:
            parts.append(columns.numbers(numbers))
            numbers = []
        parts.append(_interval(graph, column, columns, j) if column.cuts else columns.codes(j, column.levels))
    if numbers:
        parts.append(columns.numbers(numbers))
    return graph.joined(parts)


def _interval(graph: Graph, column: TreeColumn, columns: Columns, j: int) -> str:
    """The code of the interval that a number is in: how many cut points are at or below it."""
    number = columns.numbers([j])
    above = graph.cast(graph.op("GreaterOrEqual", number, np.array([column.cuts])), "double")
    count = graph.op("Add", graph.op("ReduceSum", above, np.array([1])), float(FIRST_LEVEL))
    return graph.op("Where", graph.op("IsNaN", number), float(MISSING), count)


def tree_classifier(graph: Graph, model: Any, columns: Columns) -> Answer:
    """`DecisionTreeClassifier` and `DecisionStump`: the number of the leaf, and what is known of it."""
    tree: TreeModel = model.tree_
    leaf = _leaf(graph, tree, columns)
    smoothed = tree.value + model.smoothing
    return Answer(
        model.classes_,
        graph.op("Gather", tree.value.argmax(axis=1), leaf),
        probabilities=graph.op("Gather", smoothed / smoothed.sum(axis=1, keepdims=True), leaf, axis=0),
    )


def tree_regression(graph: Graph, model: Any, columns: Columns) -> Answer:
    """`DecisionTreeRegressor`."""
    leaf = _leaf(graph, model.tree_, columns)
    return Answer(value=graph.op("Gather", model.tree_.value[:, :1], leaf, axis=0))


def _leaf(graph: Graph, tree: TreeModel, columns: Columns) -> str:
    """The number of each row's leaf, (n,) int64: a sum of one whole number, which a double holds exactly."""
    ensemble = Ensemble()
    ensemble.add(tree, np.zeros(tree.n_nodes, dtype=np.int64), np.arange(tree.n_nodes))
    leaf = ensemble.into(graph, cells_of(graph, tree.columns, columns), 1)
    return graph.flat(graph.cast(leaf, "int64"))
