"""Trees written by hand, for worked examples: the leaves' counts and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrove.tree.impurity import class_impurity
from margrove.tree.model import LEAF, TreeModel
from margrove.tree.problem import TreeColumn

Written = Any  # a list (leaf) or a tuple of these (split)
WrittenCriterion = Literal["gini", "entropy", "error", "squared_error"]


def by_hand(
    root: Written,
    *,
    criterion: WrittenCriterion = "gini",
    n_columns: int = 1,
    n_tests: float | Sequence[float] = 1.0,
    n_candidates: float | Sequence[float] = 1.0,
) -> TreeModel:
    """Return the tree whose leaves hold these rows.

    A leaf is the list of its class counts, or for squared_error the list of its target values; a split is the tuple of
    its branches. Every split tests the level of the first column, a category. ``n_tests`` and ``n_candidates`` are one
    number for all splits or one for each, the root's first, each subtree in one run.
    """
    nodes: list[tuple[Any, int, int]] = []  # its rows, its parent, how many branches

    def write(part: Written, parent: int) -> NDArray[np.float64]:
        node = len(nodes)
        nodes.append((None, parent, len(part) if isinstance(part, tuple) else 0))
        if isinstance(part, tuple):
            below = [write(branch, node) for branch in part]
            rows = np.concatenate(below) if criterion == "squared_error" else np.sum(below, axis=0)
        else:
            rows = np.asarray(part, dtype=np.float64)
        nodes[node] = (rows, *nodes[node][1:])
        return rows

    write(root, -1)
    parent = np.array([parent for _, parent, _ in nodes])
    fan_out = np.array([branches for _, _, branches in nodes])
    is_inner = fan_out > 0
    if criterion == "squared_error":
        value = np.array([[rows.mean()] for rows, _, _ in nodes])
        weight = np.array([float(len(rows)) for rows, _, _ in nodes])
        impurity = np.array([rows.var() for rows, _, _ in nodes])
    else:
        value = np.array([rows for rows, _, _ in nodes])
        weight = value.sum(axis=1)
        impurity = class_impurity(criterion, value)
    child = 1 + np.argsort(parent[1:], kind="stable")
    gain = np.full(len(nodes), np.nan)
    gain[is_inner] = (impurity - np.bincount(parent[1:], (weight * impurity)[1:], len(nodes)) / weight)[is_inner]
    most = max(int(fan_out.max()), 1)
    columns = [TreeColumn(f"column {j}", "multiway", tuple(range(most))) for j in range(n_columns)]
    return TreeModel(
        columns=tuple(columns),
        feature=np.where(is_inner, 0, LEAF).astype(np.int32),
        threshold=np.full(len(nodes), np.nan),
        child_start=np.concatenate([[0], np.cumsum(fan_out)]).astype(np.int32),
        child=child.astype(np.int32),
        level_start=np.concatenate([[0], np.cumsum(np.where(is_inner, most, 0))]),
        level_branch=np.concatenate(
            [np.where(np.arange(most) < branches, np.arange(most), -1) for branches in fan_out[is_inner]]
            or [np.empty(0)]
        ).astype(np.int32),
        missing_branch=np.where(is_inner, 0, -1).astype(np.int32),
        default_branch=np.where(is_inner, 0, -1).astype(np.int32),
        n_rows=np.rint(weight).astype(np.int64),
        weight=weight,
        impurity=impurity,
        gain=gain,
        n_tests=_at_splits(n_tests, is_inner),
        n_candidates=_at_splits(n_candidates, is_inner),
        value=value,
    )


def _at_splits(number: float | Sequence[float], is_inner: NDArray[np.bool_]) -> NDArray[np.float64]:
    at_all = np.zeros(len(is_inner))
    at_all[is_inner] = number
    return at_all
