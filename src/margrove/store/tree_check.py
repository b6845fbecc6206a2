"""Whether arrays and columns from a file make a tree: then no row can leave it on its way down.

The core looks again before it lets rows through, but only for what would lead them out of the arrays. Here a tree must
be one that `margrove.tree.model` describes.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, to_json
from margrove.tree.model import TreeModel
from margrove.tree.problem import Test, TreeColumn

_DEFAULTS = {part.name: part.default for part in fields(TreeColumn) if part.default is not MISSING}
_TESTS: tuple[str, ...] = get_args(Test)
_OF_NUMBERS = ("threshold", "intervals")


def columns_to_json(columns: tuple[TreeColumn, ...]) -> list[dict[str, Any]]:
    """What each column is to a tree, without what goes without saying: a million columns may all be thresholds."""
    records = []
    for column in columns:
        record: dict[str, Any] = {"name": str(column.name)}
        for name, default in _DEFAULTS.items():
            value = getattr(column, name)
            if value != default:
                value = list(value) if isinstance(value, tuple) else value
                record[name] = to_json(value, f"{name} of the column {column.name!r}")
        records.append(record)
    return records


def columns_from_json(records: Any, n_columns: int) -> tuple[TreeColumn, ...]:
    """The columns that `columns_to_json` wrote."""
    if not isinstance(records, list) or len(records) != n_columns:
        raise FaultError(f"the columns are {shown(records)}; a list of {n_columns} was expected")
    columns = tuple(map(_column, records))
    if len({column.name for column in columns}) != n_columns:
        raise FaultError("two columns have the same name")
    return columns


def _column(record: Any) -> TreeColumn:
    name = record.get("name") if isinstance(record, dict) else None
    if type(name) is not str:
        raise FaultError(f"{shown(record)} is no column: it has no name")
    for field in record.keys() - _DEFAULTS.keys() - {"name"}:
        raise FaultError(f"column {shown(name)} has {shown(field)}, which is unknown here")
    told = {field: from_json(value) for field, value in record.items() if field != "name"}
    for field, value in told.items():
        is_tuple = isinstance(_DEFAULTS[field], tuple)
        if type(value) is not (list if is_tuple else type(_DEFAULTS[field])):
            raise FaultError(f"column {shown(name)}: {field} is {shown(value)}")
        told[field] = tuple(value) if is_tuple else value
    column = TreeColumn(name, **told)
    _check_column(column)
    return column


def _check_column(column: TreeColumn) -> None:
    """What a column of its kind of test must have, and what it cannot have."""
    what, levels, cuts = f"column {shown(column.name)}", column.levels, column.cuts
    if column.test not in _TESTS:
        raise FaultError(f"{what}: its test is {shown(column.test)}; it must be one of {', '.join(_TESTS)}")
    if column.monotone not in ((-1, 0, 1) if column.test in _OF_NUMBERS else (0,)):
        raise FaultError(f"{what}: monotone is {column.monotone}, which its test {column.test!r} cannot have")
    if (column.test == "intervals") != bool(cuts) or (levels and column.test in _OF_NUMBERS):
        raise FaultError(f"{what}: its levels and cut points do not fit its test {column.test!r}")
    if not all(type(cut) is float and math.isfinite(cut) for cut in cuts) or any(a >= b for a, b in pairwise(cuts)):
        raise FaultError(f"{what}: its cut points are {shown(cuts)}; finite and rising ones were expected")
    kinds = {type(level) for level in levels}
    if kinds == {bool}:
        if levels != (False, True):
            raise FaultError(f"{what}: its levels are {shown(levels)}; of truth values there are two")
    elif not (kinds <= {str} or kinds <= {int, float}):
        raise FaultError(f"{what}: its levels are neither all text nor all numbers")
    elif any(not low < high for low, high in pairwise(levels)):
        raise FaultError(f"{what}: its levels are not sorted and distinct")


def check_tree(tree: TreeModel, what: str, *, is_regression: bool) -> None:
    """A tree in one piece. Shapes, types and ranges of single entries have been checked before (`schema`)."""
    _check_order(tree, what)
    fan_out = np.diff(tree.child_start)
    _require((tree.is_leaf == (fan_out == 0)).all(), what, "a leaf has children, or an inner node has none")
    _require((fan_out[~tree.is_leaf] >= 2).all(), what, "an inner node has a single child")
    _check_tests(tree, what, fan_out)
    _check_branches(tree, what, fan_out)
    _require((np.isnan(tree.gain) == tree.is_leaf).all(), what, "gains do not stand where the splits are")
    _require(not np.isinf(tree.gain).any(), what, "a gain is infinite")
    for name in ("n_tests", "n_candidates"):
        counts = getattr(tree, name)
        are_counts = not tree.tells_tests or bool((counts >= 0).all())
        _require(are_counts and bool((counts[tree.is_leaf] == 0).all()), what, f"{name} does not count tests")
    _require((tree.weight > 0).all(), what, "a node has no weight")
    _check_levels(tree, what)
    if not is_regression:
        with np.errstate(over="ignore"):
            total = tree.value.sum(axis=1)
        is_count = (tree.value >= 0).all() and (total > 0).all() and np.isfinite(total).all()
        _require(is_count, what, "a node's value is no weight of classes")


def _check_levels(tree: TreeModel, what: str) -> None:
    """What is kept of all levels stands where subset tests are."""
    kept = tree.n_levels, tree.association, tree.inverse_weight
    if tree.n_levels is None or tree.association is None or tree.inverse_weight is None:
        _require(all(array is None for array in kept), what, "not all that is kept of levels is there")
        return
    is_subset = np.array([column.test == "subset" for column in tree.columns])
    has_levels = ~tree.is_leaf & is_subset[tree.feature]
    is_told = (tree.n_levels >= 2) & (tree.inverse_weight > 0)
    is_blank = (tree.n_levels == 0) & (tree.inverse_weight == 0) & np.isnan(tree.association)
    _require(np.where(has_levels, is_told, is_blank).all(), what, "levels are not counted where subset tests are")


def _require(is_so: bool | np.bool_, what: str, otherwise: str) -> None:
    if not is_so:
        raise FaultError(f"the arrays of {what} do not make a tree: {otherwise}")


def _check_order(tree: TreeModel, what: str) -> None:
    """Depth first, branches in order: with that, each node but the root is the child of one node before it."""
    m = tree.n_nodes
    _require(m > 0 and len(tree.child) == m - 1, what, f"{m} nodes, and {len(tree.child)} of them are children")
    start, child = tree.child_start.tolist(), tree.child.tolist()
    waiting = [0]
    for node in range(m):
        is_next = bool(waiting) and waiting.pop() == node
        _require(is_next, what, f"node {node} does not stand where its parent has it")
        waiting += child[start[node] : start[node + 1]][::-1]


def _check_tests(tree: TreeModel, what: str, fan_out: NDArray[Any]) -> None:
    """A threshold where the column has one, and a branch for each code where it has codes."""
    is_cut = np.array([column.test == "threshold" for column in tree.columns])
    n_codes = np.array([0 if column.test == "threshold" else column.n_codes for column in tree.columns])
    inner = ~tree.is_leaf
    has_threshold, wanted = np.zeros(tree.n_nodes, dtype=bool), np.zeros(tree.n_nodes, dtype=np.int64)
    has_threshold[inner], wanted[inner] = is_cut[tree.feature[inner]], n_codes[tree.feature[inner]]
    _require((np.isnan(tree.threshold) == ~has_threshold).all(), what, "thresholds do not stand where such tests are")
    _require((tree.threshold[has_threshold] > -np.inf).all(), what, "a threshold is below every number")
    _require((fan_out[has_threshold] == 2).all(), what, "a threshold has other than two branches")
    _require((np.diff(tree.level_start) == wanted).all(), what, "a test has more or fewer codes than its column")


def _check_branches(tree: TreeModel, what: str, fan_out: NDArray[Any]) -> None:
    """Every branch that is named is there."""
    for name in ("missing_branch", "default_branch"):
        branch = getattr(tree, name)
        is_there = np.where(tree.is_leaf, branch == -1, (branch >= 0) & (branch < fan_out))
        _require(is_there.all(), what, f"{name} names a branch that is not there")
    most = np.repeat(fan_out, np.diff(tree.level_start))
    _require((tree.level_branch < most).all(), what, "level_branch names a branch that is not there")
