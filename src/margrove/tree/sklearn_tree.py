"""A tree as scikit-learn's ``Tree``, the object whose arrays and methods other tools read.

scikit-learn rounds cells to float32 before it compares them with θ. Here θ is left as it is, so cells that float32
represents take the same branch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.tree._tree import TREE_LEAF, TREE_UNDEFINED, Tree

from margrove.tree.model import TreeModel


def sklearn_tree(tree: TreeModel, n_classes: Sequence[int], values: Sequence[NDArray[np.float64]]) -> Tree:
    """Return the nodes as scikit-learn's ``Tree``. ``n_classes`` (1 for numbers) and ``values``, those of the nodes,
    have an entry for each target. Raise `AttributeError` if a test cannot be written as x ≤ θ."""
    inner = np.flatnonzero(~tree.is_leaf)
    made = Tree(len(tree.columns), np.array(n_classes, dtype=np.intp), len(n_classes))
    nodes = np.zeros(tree.n_nodes, dtype=made.__getstate__()["nodes"].dtype)
    nodes["left_child"] = nodes["right_child"] = TREE_LEAF
    nodes["feature"], nodes["threshold"] = TREE_UNDEFINED, TREE_UNDEFINED
    nodes["feature"][inner] = tree.feature[inner]
    nodes["impurity"], nodes["n_node_samples"] = tree.impurity, tree.n_rows
    nodes["weighted_n_node_samples"] = tree.weight
    for node in inner.tolist():
        threshold, left = _two_way(tree, node)
        nodes["threshold"][node] = threshold
        nodes["left_child"][node], nodes["right_child"][node] = tree.children(node)[[left, 1 - left]]
        nodes["missing_go_to_left"][node] = tree.missing_branch[node] == left
    value = np.zeros((tree.n_nodes, len(n_classes), max(n_classes)))
    for t, own in enumerate(values):
        value[:, t, : own.shape[1]] = own
    noise = 16 * np.finfo(np.float64).eps * np.abs(value).max()  # an inner mean of 0 but for rounding reads "-0.0"
    value[inner] = np.where(np.abs(value[inner]) < noise, 0.0, value[inner])
    made.__setstate__({"max_depth": tree.max_depth, "node_count": tree.n_nodes, "nodes": nodes, "values": value})
    return made


def _two_way(tree: TreeModel, node: int) -> tuple[float, int]:
    """Return θ of the node's test as x ≤ θ, and the branch where that holds."""
    column, levels = tree.columns[tree.feature[node]], tree.levels(node)
    if column.test == "threshold":
        return float(tree.threshold[node]), 0
    # Booleans and intervals are in the order of their codes; codes that did not occur take the default branch.
    branch = np.where(levels < 0, tree.default_branch[node], levels)
    change = np.flatnonzero(np.diff(branch))
    if len(tree.children(node)) == 2 and len(change) <= 1:
        if column.test == "intervals":
            at = float(np.nextafter(column.cuts[change[0]], -np.inf)) if len(change) else np.inf
            return at, int(branch[0])
        if column.levels == (False, True):
            return 0.5 if len(change) else np.inf, int(branch[0])
    option = "split_values" if column.test == "intervals" else "categorical"
    raise AttributeError(
        f"tree_ has only tests x ≤ θ, and column {column.name!r} is tested by its "
        f"{'intervals' if column.test == 'intervals' else 'levels'} ({option}). Use nodes_, which has every test, or "
        "encode the column as numbers before the tree, for example with TableEncoder."
    )
