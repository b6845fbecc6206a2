"""Forests in a model file: plain trees in few bytes (``packed.feature``, ``packed.cut``, …), others as a grove.

Of the symbols of shapes, T is the number of trees, t of all nodes, s of those with a test, l of leaves, u of different
predictions of leaves, k of numbers in a prediction. Of a node with a test ``cut`` is θ and ``right`` its second child.
Out-of-bag predictions and training targets are not in a file.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError
from margrove.forest.model import ForestModel
from margrove.forest.packed import PackedForest
from margrove.store.arrays import WHOLE, Array, Arrays
from margrove.store.fault import FaultError
from margrove.store.schema import CERTIFICATE, ENDED, ROWS, SCALARS, Draft, Part, Scalar, Schema, single
from margrove.tree.file import GROVE_ARRAYS, put_trees, read_grove, table_parts
from margrove.tree.problem import CLASS_CRITERIA, VALUE_CRITERIA
from margrove.tree.settings import settle_criterion

_NARROW = ("int16", "int32")  # the narrowest that holds the numbers
_MOST = np.iinfo(np.int16).max
_PACKED = (
    Array("start", "T+1", WHOLE, rises_to="t"),
    Array("feature", "t", _NARROW, least=-1, below="d"),
    Array("cut", "s"),
    Array("right", "s", _NARROW, least=2),
    Array("weight", "l", ("int16", "float64"), least=0),
    Array("n_rows", "l", _NARROW, least=1),
    Array("value", "u k"),
    Array("place", "l", _NARROW, is_optional=True, least=0, below="u"),
    Array("impurity", "l", is_optional=True, least=0),
)


def _narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the narrowest type of a file."""
    return numbers.astype(np.int16 if numbers.max(initial=0) <= _MOST else np.int32)


def _packed(model: Any, schema: Schema, arrays: Arrays) -> dict[str, str] | None:
    forest = model.model_.trees
    if not isinstance(forest, PackedForest):
        return None
    is_leaf, weight = forest.feature < 0, forest.weight
    is_count = bool((weight == np.rint(weight)).all()) and weight.max() <= _MOST
    found = {
        "start": forest.start,
        "feature": _narrow(forest.feature),
        "cut": forest.threshold[~is_leaf],
        "right": _narrow(forest.right[~is_leaf]),
        "weight": weight.astype(np.int16) if is_count else weight,
        "n_rows": _narrow(forest.n_rows),
        "value": forest.value,
        "place": None if forest.place is None else _narrow(forest.place),
        "impurity": forest.impurity,
    }
    within = arrays.within("packed")
    return {name: within.put(name, array) for name, array in found.items() if array is not None}


def _read_packed(layouts: Any, draft: Draft) -> None:
    symbols = {"d": draft.d, "k": max(1, len(draft.labels))}
    found = draft.arrays.within("packed").take_all(_PACKED, layouts, symbols)
    is_leaf, sizes = found["feature"] < 0, np.diff(found["start"])
    if len(sizes) == 0 or (sizes < 1).any():
        raise FaultError("packed.start leaves a tree without nodes")
    of_classes = draft.schema.is_classifier
    if of_classes != ("place" in found) or of_classes == ("impurity" in found):
        raise FaultError("the leaves of the forest do not match its kind of target")
    value, pure = found["value"], np.eye(symbols["k"])
    if of_classes and not np.array_equal(value[: len(pure)], pure):
        raise FaultError("the first values of the forest are not those of leaves of one class")
    if not of_classes and len(value) != symbols["l"]:
        raise FaultError("the forest does not have a value for each leaf")
    if np.count_nonzero(~is_leaf) != symbols["s"] or np.count_nonzero(is_leaf) != symbols["l"]:
        raise FaultError("the forest has more or fewer tests or leaves than its nodes")
    criterion = settle_criterion(draft.parameters["criterion"], CLASS_CRITERIA if of_classes else VALUE_CRITERIA)
    forest = PackedForest.of_inner(draft.notes["columns"], criterion, found)
    _check_children(forest.right, is_leaf, forest.start)
    _keep(ForestModel(forest, len(draft.labels)), draft)


def _check_children(right: NDArray[np.int32], is_leaf: NDArray[np.bool_], start: NDArray[np.int64]) -> None:
    """Check that every node but the roots is the child of one node before it, in its own tree."""
    root = np.repeat(start[:-1], np.diff(start))
    end = np.repeat(start[1:], np.diff(start))
    inner = np.flatnonzero(~is_leaf)
    first, second = inner + 1, root[inner] + right[inner]
    is_inside = bool((first < end[inner]).all() and (second < end[inner]).all() and (second > first).all())
    n_parents = np.bincount(np.concatenate([first, second]), minlength=len(right)) if is_inside else np.zeros(1)
    if not is_inside or (n_parents[start[:-1]] != 0).any() or n_parents.sum() != len(right) - len(start) + 1:
        raise FaultError("the arrays of the forest do not form trees: a child does not exist")
    if n_parents.max(initial=0) > 1:
        raise FaultError("the arrays of the forest do not form trees: a node has two parents")


def _grove(model: Any, schema: Schema, arrays: Arrays) -> dict[str, str] | None:
    trees = model.model_.trees
    return None if isinstance(trees, PackedForest) else put_trees(GROVE_ARRAYS, trees, arrays.within("grove"))


def _read_grove(layouts: Any, draft: Draft) -> None:
    if "model_" in draft.fitted:
        raise FaultError("the forest is stored twice")
    read_grove(layouts, draft)
    _keep(ForestModel(draft.notes["grove"], len(draft.labels)), draft)


def _keep(model: ForestModel, draft: Draft) -> None:
    draft.fitted |= {"model_": model, "n_outputs_": 1}
    if draft.schema.is_classifier:
        draft.fitted["n_classes_"] = len(draft.labels)
    draft.n_splits = model.n_trees


class _ForestFile(Schema):
    """The trees are a grove, or packed."""

    def take_apart(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        if getattr(model, "n_outputs_", 1) > 1:
            problem = f"a model file takes one target, and this {type(model).__name__} has {model.n_outputs_}"
            raise InputError(problem, cure="Fit one model for each target.")
        name = type(model).__name__
        if hasattr(model, "training_"):
            arrays.left_out.append(f"{name}: the training targets, for predict_quantiles, are not saved.")
        if callable(model.oob_score):
            arrays.left_out.append(f"{name}: oob_score is a function, which is not saved, nor is its oob_score_.")
            model = copy(model)
            model.oob_score = False
            vars(model).pop("oob_score_", None)
        elif np.isnan(getattr(model, "oob_score_", 0.0)):
            arrays.left_out.append(f"{name}: oob_score_ is NaN, as every tree has seen all rows, and is not saved.")
            model = copy(model)
            del model.oob_score_
        return super().take_apart(model, arrays)

    def build(self, draft: Draft) -> Any:
        if "model_" not in draft.fitted:
            raise FaultError(f"the record of {draft.name} has no trees")
        return super().build(draft)


_PARTS = (
    *table_parts(lambda model: model.model_.columns),
    SCALARS,
    Part("packed", _packed, _read_packed, is_optional=True),
    Part("grove", _grove, _read_grove, is_optional=True),
    CERTIFICATE,
)
_SCALARS = {**ENDED, **ROWS, "oob_score_": Scalar(float, least=-1e300, is_optional=True)}

CLASSES_FILE = _ForestFile(scalars=_SCALARS, machines=single, parts=_PARTS)
NUMBERS_FILE = _ForestFile(scalars=_SCALARS, machines=single, is_classifier=False, parts=_PARTS)
