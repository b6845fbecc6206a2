"""Convert fitted trees from and to scikit-learn, whose trees are binary, with thresholds on numbers.

scikit-learn rounds cells to float32 before it compares them. Margrove compares them as they are, so θ of an adopted
tree becomes the largest number that float32 rounds to a number ≤ θ: every cell takes the same branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.tree import DecisionTreeClassifier

from margrove.data.frames import array_names
from margrove.engine import default
from margrove.status import Status
from margrove.store.adoption import with_parameters_of
from margrove.tree.model import LEAF, TreeModel, blank_levels
from margrove.tree.problem import TreeColumn

_ROUNDING = 1e-9  # relative, of a count of rows that was stored as a share


def adopted_tree(columns: tuple[TreeColumn, ...], tree: Any, n_classes: Sequence[int]) -> TreeModel:
    """Return the nodes of scikit-learn's ``tree_``. ``n_classes`` has an entry for each target of classes, and is empty
    for numbers. The number of tests that each node chose from is not known: NaN."""
    order = _depth_first(tree.children_left, tree.children_right)
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    is_leaf = tree.children_left[order] < 0
    inner = order[~is_leaf]
    children = np.stack([tree.children_left[inner], tree.children_right[inner]], axis=1)
    weight = np.asarray(tree.weighted_n_node_samples, dtype=np.float64)
    impurity = np.asarray(tree.impurity, dtype=np.float64)
    share = weight[children] / weight[inner][:, None]
    gain = np.maximum(impurity[inner] - (share * impurity[children]).sum(axis=1), 0.0)
    heaviest = (weight[children[:, 1]] > weight[children[:, 0]]).astype(np.int32)
    goes_right = (np.asarray(tree.missing_go_to_left)[inner] == 0).astype(np.int32)
    value = np.asarray(tree.value, dtype=np.float64)
    if len(n_classes):  # shares, or weights: counts of rows are integers
        value = np.concatenate([value[:, t, :size] for t, size in enumerate(n_classes)], axis=1)
        value = value / (value.sum(axis=1, keepdims=True) / len(n_classes)) * weight[:, None]
        whole = np.round(value)
        value = whole if np.allclose(value, whole, rtol=_ROUNDING, atol=_ROUNDING) else value
    else:
        value = value[:, :, 0]

    def where_inner(numbers: NDArray[Any], blank: float) -> NDArray[Any]:
        spread = np.full(len(order), blank, dtype=numbers.dtype)
        spread[~is_leaf] = numbers
        return spread

    return TreeModel(
        columns=columns,
        feature=where_inner(tree.feature[inner].astype(np.int32), LEAF),
        threshold=where_inner(_for_any_number(np.asarray(tree.threshold, dtype=np.float64)[inner]), np.nan),
        child_start=np.concatenate([[0], np.cumsum(np.where(is_leaf, 0, 2))]).astype(np.int32),
        child=number[children.ravel()],
        level_start=np.zeros(len(order) + 1, dtype=np.int64),
        level_branch=np.empty(0, dtype=np.int32),
        missing_branch=where_inner(goes_right, -1),
        default_branch=where_inner(heaviest, -1),
        n_rows=np.asarray(tree.n_node_samples, dtype=np.int64)[order],
        weight=weight[order],
        impurity=impurity[order],
        gain=where_inner(gain, np.nan),
        n_tests=where_inner(np.full(len(inner), np.nan), 0.0),
        n_candidates=where_inner(np.full(len(inner), np.nan), 0.0),
        value=value[order],
        **blank_levels(len(order)),
    )


def _depth_first(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.intp]:
    """Return the nodes, each subtree in one run: scikit-learn numbers them so unless ``max_leaf_nodes`` is given."""
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if left[node] >= 0:
            waiting += [int(right[node]), int(left[node])]
    return np.array(order, dtype=np.intp)


def _for_any_number(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest float64 that rounds to a float32 ≤ θ.

    With a the largest float32 ≤ θ and b the next one, numbers up to their mean round to a; the mean itself does if a is
    the even one of the two.
    """
    with np.errstate(over="ignore"):
        below = threshold.astype(np.float32)
        too_high = below.astype(np.float64) > threshold
        below[too_high] = np.nextafter(below[too_high], np.float32(-np.inf))
        above = np.nextafter(below, np.float32(np.inf)).astype(np.float64)
        mean = below.astype(np.float64) / 2 + above / 2
        is_even = mean.astype(np.float32) == below
    largest = np.where(is_even, mean, np.nextafter(mean, -np.inf))
    return np.where(np.isfinite(above), largest, threshold)  # beyond float32 there is nothing to round


def adopt_sklearn(estimator: type, model: Any) -> Any:
    """Return scikit-learn's tree as ours."""
    ours = with_parameters_of(model, estimator, correct_significance=False)
    n_classes: Sequence[int] = ()
    if is_classifier(model):
        n_classes = np.atleast_1d(model.n_classes_).tolist()
        is_several = isinstance(model.classes_, list)
        ours.classes_ = [np.asarray(own) for own in model.classes_] if is_several else np.asarray(model.classes_)
        ours.n_classes_ = np.array(n_classes) if is_several else n_classes[0]
    if model.n_outputs_ > 1:
        ours._n_targets = model.n_outputs_
    d = int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", None)
    names = array_names(d) if names is None else [str(name) for name in names]
    directions = np.zeros(d, dtype=np.int64) if model.monotonic_cst is None else np.asarray(model.monotonic_cst)
    # Columns had missing cells in training where these go, in some node, to the child of fewer rows.
    tree, is_missed = model.tree_, np.zeros(d, dtype=np.bool_)
    inner, rows = np.flatnonzero(tree.children_left >= 0), np.asarray(tree.n_node_samples)
    as_usual = rows[tree.children_left[inner]] > rows[tree.children_right[inner]]
    is_missed[tree.feature[inner][(np.asarray(tree.missing_go_to_left)[inner] != 0) != as_usual]] = True
    columns = tuple(
        TreeColumn(name, monotone=int(direction), has_missing=bool(missed))
        for name, direction, missed in zip(names, directions, is_missed, strict=True)
    )
    ours.n_features_in_ = d
    ours.nodes_ = ours.grown_ = adopted_tree(columns, model.tree_, n_classes)
    ours.status_, ours.engine_, ours.ccp_alpha_ = Status.CONVERGED, default().name, float(model.ccp_alpha)
    ours.categorical_, ours.target_ = {}, None
    return ours


def to_sklearn(model: Any, estimator: type = DecisionTreeClassifier) -> Any:
    """Return our tree or stump as an ``estimator`` of scikit-learn's."""
    model.tree_  # noqa: B018 an AttributeError names the test that scikit-learn does not have
    return with_parameters_of(model, estimator)
