"""scikit-learn's fitted trees as ours: an independent grower for the tests of what comes after growing."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.tree.model import TreeModel
from margrove.tree.problem import TreeColumn


def from_sklearn(estimator: Any, n_candidates: float = 1.0) -> TreeModel:
    """The arrays of a fitted tree. How many tests its nodes had it does not keep: ``n_candidates``, everywhere."""
    tree = estimator.tree_
    m, is_inner = tree.node_count, tree.children_left >= 0
    value = tree.value[:, 0, :].astype(np.float64)
    weight = tree.weighted_n_node_samples.astype(np.float64)
    if hasattr(estimator, "classes_"):
        value = value / value.sum(axis=1, keepdims=True) * weight[:, None]  # scikit-learn keeps shares
        value = np.where(np.abs(value - np.rint(value)) < 1e-6, np.rint(value), value)
    children = np.stack([tree.children_left, tree.children_right], axis=1)
    gain = np.full(m, np.nan)
    after = (weight * tree.impurity)[children[is_inner]].sum(axis=1) / weight[is_inner]
    gain[is_inner] = tree.impurity[is_inner] - after
    return TreeModel(
        columns=tuple(TreeColumn(f"x{j}") for j in range(tree.n_features)),
        feature=np.where(is_inner, tree.feature, -1).astype(np.int32),
        threshold=np.where(is_inner, tree.threshold, np.nan),
        child_start=np.concatenate([[0], np.cumsum(np.where(is_inner, 2, 0))]).astype(np.int32),
        child=children[is_inner].ravel().astype(np.int32),
        level_start=np.zeros(m + 1, dtype=np.int64),
        level_branch=np.empty(0, dtype=np.int32),
        missing_branch=np.where(is_inner, 1, -1).astype(np.int32),
        default_branch=np.where(is_inner, 1, -1).astype(np.int32),
        n_rows=tree.n_node_samples.astype(np.int64),
        weight=weight,
        impurity=tree.impurity.astype(np.float64),
        gain=gain,
        n_tests=np.where(is_inner, n_candidates, 0.0),
        n_candidates=np.where(is_inner, n_candidates, 0.0),
        value=value,
    )
