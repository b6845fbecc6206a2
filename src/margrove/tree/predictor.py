"""Decision trees in a program that only predicts: the core sends rows down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove import _core as core
from margrove.data.given import Given
from margrove.data.predictor import check_plain
from margrove.run.threads import threads_for
from margrove.store.plain import from_json
from margrove.store.saved import Rule, Saved
from margrove.tree.model import TreeModel

_ARRAYS = (
    *("feature", "threshold", "child_start", "child", "level_start", "level_branch", "missing_branch"),
    "default_branch",
)


def trees_for_core(model: Any, n_trees: int = 1) -> core.Trees:
    """Return the arrays of a tree, or of several one behind the other, that send rows down."""
    return core.Trees(**{name: getattr(model, name) for name in _ARRAYS}, n_trees=n_trees)


def cells_for_core(saved: Saved) -> Callable[[Given], dict[str, Any]]:
    """Return the function that makes the core's arguments of rows: ``points``, or ``columns`` and ``n``."""
    columns = [{key: from_json(value) for key, value in column.items()} for column in saved.record["columns"]]
    for column in columns:
        check_plain(column)
    tests = [core.Test[column.get("test", "threshold")] for column in columns]
    nothing = np.empty(0)

    def column_of(given: Given, j: int) -> core.Column:
        levels, cuts = columns[j].get("levels", ()), columns[j].get("cuts", ())
        cells = given.codes(j, levels) if levels else given.numbers(j)
        n_codes = len(cuts) + 1 if cuts else len(levels)
        given_cuts = np.array(cuts, dtype=np.float64) if cuts else nothing
        return core.Column(test=tests[j], monotone=0, cells=cells, n_codes=n_codes, cuts=given_cuts, rows=None)

    def cells(given: Given) -> dict[str, Any]:
        if given.block is not None and all(test is core.Test.threshold for test in tests):
            return {"points": core.dense_points(np.ascontiguousarray(given.block))}
        return {"columns": [column_of(given, j) for j in range(len(columns))], "n": given.n}

    return cells


def leaves_of(trees: core.Trees, cells: dict[str, Any], threads: int) -> NDArray[np.int32]:
    """Return the node that each row ends in."""
    if "points" in cells:
        return core.apply_tree_to_rows(trees, cells["points"], threads=threads)
    return core.apply_tree_to_columns(trees, **cells, threads=threads)


def tree(saved: Saved) -> Rule:
    """Return the rule of a tree of classes or of numbers."""
    own, layouts = saved.within("tree_"), saved.record["arrays"]["tree_"]
    model = TreeModel((), **{name: own.array(name, layouts) for name in layouts})
    trees, cells, names = trees_for_core(model), cells_for_core(saved), table_names(saved)

    def leaf(given: Given) -> NDArray[np.int32]:
        return leaves_of(trees, cells(given), threads_for(saved.parameter("n_jobs")))

    if saved.record.get("labels") is None:
        return saved.rule(lambda given: np.asarray(model.value[leaf(given), 0]), names=names)
    classes, heaviest = saved.classes, model.value.argmax(axis=1)
    smoothed = model.value + saved.parameter("smoothing", 0.0)
    share = smoothed / smoothed.sum(axis=1, keepdims=True)
    predict = lambda given: np.asarray(classes[heaviest][leaf(given)])  # noqa: E731
    return saved.rule(predict, None, lambda given: np.asarray(share[leaf(given)]), classes=classes, names=names)


def table_names(saved: Saved) -> tuple[str, ...]:
    """Return the names of the columns that a model of trees was fitted on."""
    return tuple(column["name"] for column in saved.record["columns"])
