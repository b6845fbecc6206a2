"""Trees without a grower: scikit-learn's, converted, and random ones of every kind of test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeColumn


@dataclass
class Node:
    """A node written by hand: a leaf has no children."""

    value: Sequence[float]
    children: list[Node] = field(default_factory=list)
    feature: int = -1
    threshold: float = np.nan
    levels: Sequence[int] = ()  # the branch of each code
    missing: int = -1
    default: int = -1
    n_rows: int | None = None


def tree_of(root: Node, columns: Sequence[TreeColumn]) -> TreeModel:
    """The arrays of a tree written by hand, its nodes numbered depth first; no recursion, so it may be deep."""
    nodes, waiting = [], [root]
    while waiting:
        nodes.append(waiting.pop())
        waiting += nodes[-1].children[::-1]
    number = {id(node): i for i, node in enumerate(nodes)}
    value = np.array([node.value for node in nodes], np.float64)
    weight = value.sum(axis=1) if value.shape[1] > 1 else np.ones(len(nodes))
    n_rows = np.array([w if node.n_rows is None else node.n_rows for node, w in zip(nodes, weight, strict=True)], int)
    is_leaf = np.array([node.feature < 0 for node in nodes])
    return TreeModel(
        columns=tuple(columns),
        feature=np.array([node.feature for node in nodes], np.int32),
        threshold=np.array([node.threshold for node in nodes]),
        child_start=np.cumsum([0, *(len(node.children) for node in nodes)]).astype(np.int32),
        child=np.array([number[id(child)] for node in nodes for child in node.children], np.int32),
        level_start=np.cumsum([0, *(len(node.levels) for node in nodes)]).astype(np.int64),
        level_branch=np.array([branch for node in nodes for branch in node.levels], np.int32),
        missing_branch=np.array([node.missing for node in nodes], np.int32),
        default_branch=np.array([node.default for node in nodes], np.int32),
        n_rows=n_rows,
        weight=weight if value.shape[1] > 1 else n_rows.astype(np.float64),
        impurity=np.zeros(len(nodes)),
        gain=np.where(is_leaf, np.nan, 0.0),
        n_tests=np.where(is_leaf, 0.0, 1.0),
        n_candidates=np.where(is_leaf, 0.0, 1.0),
        value=value,
    )


def from_sklearn(fitted: Any, names: Sequence[str], *, has_missing: bool = False) -> TreeModel:
    """A fitted tree of scikit-learn's. Its thresholds are those of float32 columns."""
    t = fitted.tree_
    is_leaf = t.children_left < 0
    is_classifier = hasattr(fitted, "classes_")
    value = t.value[:, 0, :] * (t.weighted_n_node_samples[:, None] if is_classifier else 1.0)
    fan_out = np.where(is_leaf, 0, 2)
    heavier = np.where(t.n_node_samples[t.children_left] >= t.n_node_samples[t.children_right], 0, 1)
    default = np.where(is_leaf, -1, heavier).astype(np.int32)
    missing = np.where(is_leaf, -1, np.where(t.missing_go_to_left, 0, 1)).astype(np.int32)
    children = np.column_stack([t.children_left, t.children_right])[~is_leaf]
    gain = np.full(t.node_count, np.nan)
    parts = t.weighted_n_node_samples[children] / t.weighted_n_node_samples[~is_leaf][:, None]
    gain[~is_leaf] = t.impurity[~is_leaf] - (parts * t.impurity[children]).sum(axis=1)
    return TreeModel(
        columns=tuple(TreeColumn(str(name), has_missing=has_missing) for name in names),
        feature=np.where(is_leaf, -1, t.feature).astype(np.int32),
        threshold=np.where(is_leaf, np.nan, t.threshold),
        child_start=np.concatenate([[0], np.cumsum(fan_out)]).astype(np.int32),
        child=children.ravel().astype(np.int32),
        level_start=np.zeros(t.node_count + 1, np.int64),
        level_branch=np.empty(0, np.int32),
        missing_branch=missing,
        default_branch=default,
        n_rows=t.n_node_samples.astype(np.int64),
        weight=t.weighted_n_node_samples.copy(),
        impurity=t.impurity.copy(),
        gain=gain,
        n_tests=np.where(is_leaf, 0.0, 1.0),
        n_candidates=np.where(is_leaf, 0.0, 1.0),
        value=value,
    )


NASTY_COLUMNS = (
    TreeColumn("petal length"),
    TreeColumn('is "quoted" \\ */ --', "multiway", ("it's", 'a "word"', "back\\slash", "ünï, {x}", "", "new\nline")),
    TreeColumn("class", "subset", tuple(range(-3, 9))),
    TreeColumn("0 größe\n'?\n??/", "intervals", cuts=(-0.1, 0.30000000000000004, 1.0)),
    TreeColumn("smoker", "one_vs_rest", (False, True)),
    TreeColumn("lambda"),
)


def random_tree(seed: int, *, n_nodes: int = 60, n_classes: int = 3, max_fan: int = 6) -> TreeModel:
    """A tree of every kind of test on `NASTY_COLUMNS`, in no way sensible; regression where ``n_classes`` is 0."""
    rng = np.random.default_rng(seed)

    def leaf() -> Node:
        if n_classes == 0:
            return Node([float(rng.normal())], n_rows=int(rng.integers(1, 50)))
        return Node(rng.integers(0, 9, n_classes) + np.eye(n_classes)[rng.integers(n_classes)])

    root = leaf()
    ends, count = [root], 1
    deck: list[int] = []
    while count < n_nodes:
        # Half of the nodes breadth first, and each column in its turn: rows reach tests of every kind.
        node = ends.pop(int(rng.integers(len(ends))) if rng.random() < 0.5 else 0)
        deck = deck or rng.permutation(len(NASTY_COLUMNS)).tolist()
        node.feature = deck.pop()
        column = NASTY_COLUMNS[node.feature]
        fan = 2
        if column.test == "threshold":
            node.threshold = float(rng.choice([rng.normal(), 0.1, np.inf], p=[0.7, 0.2, 0.1]))
        else:
            fan = min(column.n_codes, max_fan) if column.test in ("multiway", "intervals") else 2
            node.levels = rng.integers(-1, fan, column.n_codes)
        node.missing, node.default = int(rng.integers(fan)), int(rng.integers(fan))
        node.children = [leaf() for _ in range(fan)]
        ends += node.children
        count += fan
    return tree_of(root, NASTY_COLUMNS)


def random_cells(model: TreeModel, n: int, seed: int) -> tuple[Cells, list[list[Any]]]:
    """Random rows, as cells and as a person has them: None where missing, and levels that no training row had.

    Many numbers are on a threshold or next to it.
    """
    rng = np.random.default_rng(seed)
    arrays: list[NDArray[Any]] = []
    columns: list[list[Any]] = []
    for j, column in enumerate(model.columns):
        is_missing = rng.random(n) < 0.15
        if column.test in ("threshold", "intervals"):
            edges = model.threshold[model.feature == j] if column.test == "threshold" else np.array(column.cuts)
            edges = edges[np.isfinite(edges)]
            edges = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), [0.0]])
            values = np.where(rng.random(n) < 0.5, rng.choice(edges, n), rng.normal(size=n))
            arrays.append(np.where(is_missing, np.nan, values))
            columns.append([None if gone else float(x) for x, gone in zip(values, is_missing, strict=True)])
        else:
            codes = rng.integers(0, len(column.levels) + 1, n)
            known = [*column.levels, "never seen" if isinstance(column.levels[0], str) else 99]
            arrays.append(np.where(is_missing, -1, codes).astype(np.int32))
            columns.append([None if gone else known[code] for code, gone in zip(codes, is_missing, strict=True)])
    return Cells(model.columns, n, tuple(arrays)), [list(row) for row in zip(*columns, strict=True)]
