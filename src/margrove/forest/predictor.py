"""Forests in a program that only predicts: the core sends rows down, and averages."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from margrove import _core as core
from margrove.data.given import Given
from margrove.forest.packed import PackedForest
from margrove.run.threads import threads_for
from margrove.store.saved import Rule, Saved
from margrove.tree.grove import Grove
from margrove.tree.predictor import cells_for_core, leaves_of, table_names, trees_for_core
from margrove.tree.problem import Criterion

Mean = Callable[[Given], NDArray[np.float64]]


def forest(saved: Saved) -> Rule:
    """Return the rule of a forest of classes or of numbers."""
    is_of_classes, names = saved.record.get("labels") is not None, table_names(saved)
    mean = _packed(saved) if "packed" in saved.record else _grove(saved, is_of_classes)
    if not is_of_classes:
        return saved.rule(lambda given: mean(given)[:, 0], names=names)
    classes = saved.classes
    predict = lambda given: np.asarray(classes[mean(given).argmax(axis=1)])  # noqa: E731
    return saved.rule(predict, None, mean, classes=classes, names=names)


_in_core: WeakKeyDictionary[PackedForest, dict[bool, core.ForestTrees]] = WeakKeyDictionary()


def trees_in_core(forest: PackedForest, has_missing: bool) -> core.ForestTrees:
    """Return the forest as the core takes it: for rows with missing cells it has the branches of these."""
    kinds = _in_core.setdefault(forest, {})
    if has_missing not in kinds:
        nodes = {name: getattr(forest, name) for name in ("start", "feature", "threshold", "right", "leaf_start")}
        kinds[has_missing] = core.ForestTrees(**nodes, missing_branch=forest.missing_branch if has_missing else None)
    return kinds[has_missing]


def _packed(saved: Saved) -> Mean:
    own, layouts, n_jobs = saved.within("packed"), saved.record["packed"], saved.parameter("n_jobs")
    criterion: Criterion = "squared_error" if "impurity" in layouts else "gini"  # only which branch is heavier counts
    trees = PackedForest.of_inner((), criterion, {name: own.array(name, layouts) for name in layouts})
    d, value = len(saved.record["columns"]), np.ascontiguousarray(trees.value)

    def mean(given: Given) -> NDArray[np.float64]:
        block = np.column_stack([given.numbers(j) for j in range(d)]) if given.block is None else given.block
        in_core = trees_in_core(trees, has_missing=bool(np.isnan(block).any()))
        points = core.dense_points(np.ascontiguousarray(block))
        sums = core.forest_sums(in_core, points, value=value, place=trees.place, threads=threads_for(n_jobs))
        return np.divide(sums, trees.n_trees, out=sums)

    return mean


def _grove(saved: Saved, is_of_classes: bool) -> Mean:
    own, layouts, n_jobs = saved.within("grove"), saved.record["grove"], saved.parameter("n_jobs")
    grove, cells = Grove((), **{name: own.array(name, layouts) for name in layouts}), cells_for_core(saved)
    trees = grove.trees
    values = [tree.value / tree.weight[:, None] if is_of_classes else tree.value for tree in trees]
    parts = list(zip(map(trees_for_core, trees), values, strict=True))

    def mean(given: Given) -> NDArray[np.float64]:
        rows, threads = cells(given), threads_for(n_jobs)
        total = np.zeros((given.n, values[0].shape[1]))
        for tree, value in parts:
            total += value[leaves_of(tree, rows, threads)]
        return total / len(parts)

    return mean
