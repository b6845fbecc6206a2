"""Decision trees in a model file. The arrays are those of `margrove.tree.model`: ``tree_.feature``,
``tree_.threshold``, …, and ``grown_.…`` where pruning took something away.

Of the symbols of shapes, t is the number of nodes of a tree, or of all trees of a grove; c of the children and l of the
levels of all these nodes; k of numbers in the value of a node.

The core looks again before it lets rows through, but only for what would lead them out of the arrays. Here a tree must
be one that `margrove.tree.model` describes: then no row can leave it on its way down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from margrove.data.file import TARGET_FORMAT, check_date_part, read_format
from margrove.data.formats import format_to_json
from margrove.store.arrays import HALF_WHOLE, WHOLE, Array, Arrays
from margrove.store.check import check_fields, check_target
from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, to_json
from margrove.store.schema import (
    CERTIFICATE,
    ENDED,
    LABELS,
    N_FEATURES,
    NAMES,
    SCALARS,
    Draft,
    Part,
    Scalar,
    Schema,
    read_later,
    single,
)
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel, blank_levels, fault_of
from margrove.tree.problem import TESTS, TreeColumn

Columns = tuple[TreeColumn, ...]

TREE_ARRAYS = (
    Array("feature", "t", HALF_WHOLE, least=-1, below="d"),
    Array("threshold", "t", has_gaps=True),
    Array("child", "c", HALF_WHOLE),
    Array("child_start", "t+1", HALF_WHOLE, rises_to="c"),
    Array("level_branch", "l", HALF_WHOLE, least=-1),
    Array("level_start", "t+1", WHOLE, rises_to="l"),
    Array("missing_branch", "t", HALF_WHOLE, least=-1),
    Array("default_branch", "t", HALF_WHOLE, least=-1),
    Array("n_rows", "t", WHOLE, least=1),
    Array("weight", "t", least=0),
    Array("impurity", "t"),
    Array("gain", "t", has_gaps=True),
    Array("n_tests", "t", has_gaps=True, least=0),  # infinite for the subsets of a thousand levels and more
    Array("n_candidates", "t", has_gaps=True, least=0),
    Array("value", "t k"),
    # Of subset tests; files of trees without such a column do not have them, nor do the first ones written.
    Array("n_levels", "t", is_optional=True, least=0),
    Array("association", "t", is_optional=True, has_gaps=True, least=0),
    Array("inverse_weight", "t", is_optional=True, least=0),
)
GROVE_ARRAYS = (*TREE_ARRAYS, Array("start", "T+1", WHOLE, rises_to="t"))
_DEFAULTS = {part.name: part.default for part in fields(TreeColumn) if part.default is not MISSING}
_OF_NUMBERS = ("threshold", "intervals")


def _columns_to_json(columns: Columns) -> list[dict[str, Any]]:
    """Return the fields of each column, without those that have their defaults: there may be a million columns."""
    records = []
    for column in columns:
        record: dict[str, Any] = {"name": str(column.name)}
        for name, default in _DEFAULTS.items():
            if (value := getattr(column, name)) != default:
                value = format_to_json(value) if name == "format" else value
                value = list(value) if isinstance(value, tuple) else value
                record[name] = to_json(value, f"{name} of the column {column.name!r}")
        records.append(record)
    return records


def _read_columns(records: Any, draft: Draft) -> None:
    if not isinstance(records, list) or len(records) != draft.d:
        raise FaultError(f"the columns are {shown(records)}; a list of {draft.d} was expected")
    columns = tuple(map(_column, records))
    names = [column.name for column in columns]
    if len(set(names)) != draft.d:
        raise FaultError("two columns have the same name")
    draft.fitted["target_"] = check_target(draft.record["target"], names)
    NAMES.read(draft.record["feature_names"], draft)
    if "feature_names_in_" in draft.fitted and draft.fitted["feature_names_in_"].tolist() != names:
        raise FaultError("the column names differ from those of the tree")
    draft.notes["columns"] = columns


def _column(record: Any) -> TreeColumn:
    name = record.get("name") if isinstance(record, dict) else None
    if type(name) is not str:
        raise FaultError(f"{shown(record)} is not a column: it has no name")
    for field in record.keys() - _DEFAULTS.keys() - {"name"}:
        raise FaultError(f"column {shown(name)} has an unknown field {shown(field)}")
    given = {field: from_json(value) for field, value in record.items() if field != "name"}
    for field, value in given.items():
        if field == "format":
            given[field] = read_format(value, name)
            continue
        is_tuple = isinstance(_DEFAULTS[field], tuple)
        if type(value) is not (list if is_tuple else type(_DEFAULTS[field])):
            raise FaultError(f"column {shown(name)}: {field} is {shown(value)}")
        given[field] = tuple(value) if is_tuple else value
    column = TreeColumn(name, **given)
    _check_column(column)
    return column


def _check_column(column: TreeColumn) -> None:
    """Check what a column of its kind of test must have, and what it cannot have."""
    what, levels, cuts = f"column {shown(column.name)}", column.levels, column.cuts
    if column.test not in TESTS:
        raise FaultError(f"{what}: its test is {shown(column.test)}; it must be one of {', '.join(TESTS)}")
    if column.monotone not in ((-1, 0, 1) if column.test in _OF_NUMBERS else (0,)):
        raise FaultError(f"{what}: monotone is {column.monotone}, which the test {column.test!r} does not allow")
    if (column.test == "intervals") != bool(cuts) or (levels and column.test in _OF_NUMBERS):
        raise FaultError(f"{what}: its levels and cut points do not match its test {column.test!r}")
    if not all(type(cut) is float and math.isfinite(cut) for cut in cuts) or any(a >= b for a, b in pairwise(cuts)):
        raise FaultError(f"{what}: its cut points are {shown(cuts)}; finite, increasing numbers were expected")
    if column.format is not None and column.test not in _OF_NUMBERS:
        raise FaultError(f"{what}: a category has no format")
    if column.date_part:
        check_date_part(list(column.date_part), column.name)
    kinds = {type(level) for level in levels}
    if kinds == {bool}:
        if levels != (False, True):
            raise FaultError(f"{what}: its levels are {shown(levels)}; a boolean column must have [false, true]")
    elif not (kinds <= {str} or kinds <= {int, float}):
        raise FaultError(f"{what}: its levels are neither all text nor all numbers")
    elif any(not low < high for low, high in pairwise(levels)):
        raise FaultError(f"{what}: its levels are not sorted and distinct")


def _read_categorical(value: Any, draft: Draft) -> None:
    """Read for each category the kind of its test, and the reason."""
    check_fields(value, {column.name for column in draft.notes["columns"] if column.levels}, "the list of categories")
    if not all(type(words) is str for words in value.values()):
        raise FaultError(f"the list of categories is {shown(value)}; a text for each was expected")
    draft.fitted["categorical_"] = dict(value)


def table_parts(columns_of: Callable[[Any], Columns]) -> tuple[Part, ...]:
    """Return the parts of a record that describe the table of a model of trees."""
    return (
        N_FEATURES,
        replace(NAMES, read=read_later),
        LABELS,
        Part("target", lambda model, *_: model.target_, read_later),
        TARGET_FORMAT,
        Part("columns", lambda model, *_: _columns_to_json(columns_of(model)), _read_columns),
        Part("categorical", lambda model, *_: dict(model.categorical_), _read_categorical),
    )


def put_trees(specs: tuple[Array, ...], trees: Any, arrays: Arrays) -> dict[str, str]:
    """Keep the arrays of a tree or of a grove, those of subset tests only where there may be such a test."""
    has_levels = trees.n_levels is not None and _has_subsets(trees.columns)
    return arrays.put_all([spec for spec in specs if has_levels or not spec.is_optional], trees)


def take_trees(specs: tuple[Array, ...], layouts: Any, arrays: Arrays, draft: Draft) -> dict[str, Any]:
    """Take out the columns and the arrays that `put_trees` laid out so."""
    columns = draft.notes["columns"]
    found = arrays.take_all(specs, layouts, {"d": len(columns), "k": max(1, len(draft.labels))})
    if "n_levels" not in found and not _has_subsets(columns):
        found |= blank_levels(len(found["feature"]))
    return {"columns": columns, **found}


def read_grove(layouts: Any, draft: Draft) -> None:
    """Read several trees into the note "grove" of the draft."""
    grove = draft.notes["grove"] = Grove(**take_trees(GROVE_ARRAYS, layouts, draft.arrays.within("grove"), draft))
    if grove.n_trees == 0 or (np.diff(grove.start) < 1).any():
        raise FaultError("grove.start leaves a tree without nodes")
    if grove.start[-1] != len(grove.feature):
        raise FaultError("grove.start does not end with the last node")
    for t, tree in enumerate(grove.trees):
        check_tree(tree, f"tree {t}", is_regression=not draft.schema.is_classifier)


def _has_subsets(columns: Columns) -> bool:
    return any(column.test == "subset" for column in columns)


def _trees(model: Any, schema: Schema, arrays: Arrays) -> dict[str, Any]:
    model._refuse_several("a model file")
    trees = {"tree_": model.nodes_} | ({} if model.grown_ is model.nodes_ else {"grown_": model.grown_})
    return {name: put_trees(TREE_ARRAYS, tree, arrays.within(name)) for name, tree in trees.items()}


def _read_trees(layouts: Any, draft: Draft) -> None:
    """The tree that predicts, and the one before pruning: the same if nothing was pruned."""
    is_pruned = isinstance(layouts, dict) and "grown_" in layouts
    check_fields(layouts, {"tree_", *(["grown_"] if is_pruned else [])}, "the list of trees")
    trees = {}
    for name, layout in layouts.items():
        trees[name] = TreeModel(**take_trees(TREE_ARRAYS, layout, draft.arrays.within(name), draft))
        check_tree(trees[name], name, is_regression=not draft.schema.is_classifier)
    draft.fitted |= {"nodes_": trees["tree_"], "grown_": trees.get("grown_", trees["tree_"])}
    draft.n_splits = trees["tree_"].n_nodes - trees["tree_"].n_leaves
    if draft.schema.is_classifier:
        draft.fitted["n_classes_"] = len(draft.labels)


def check_tree(tree: TreeModel, what: str, *, is_regression: bool) -> None:
    """Check that a tree is in one piece. Shapes, types and ranges of single entries have been checked before."""
    if fault := fault_of(tree, is_regression=is_regression):
        raise FaultError(f"the arrays of {what} do not form a tree: {fault}")


_PARTS = (*table_parts(lambda model: model.nodes_.columns), SCALARS, Part("arrays", _trees, _read_trees), CERTIFICATE)
_SCALARS = {**ENDED, "ccp_alpha_": Scalar(float)}

_LATER = {"splitter": "best"}  # a stump has none
CLASSIFIER_FILE = Schema(scalars=_SCALARS, machines=single, later=_LATER, parts=_PARTS)
REGRESSOR_FILE = Schema(scalars=_SCALARS, machines=single, is_classifier=False, later=_LATER, parts=_PARTS)
