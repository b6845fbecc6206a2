"""A tree taken apart into a record and tensors, and put together again. The tensors are the arrays of
`margrove.tree.model`: ``tree_.feature``, ``tree_.threshold``, …, and ``grown_.…`` where pruning took something away."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from margrove.boost.model import Grove
from margrove.store.check import check_certificate, check_fields, check_parameters, check_scalar, check_whole
from margrove.store.fault import FaultError, shown
from margrove.store.labels import labels_to_json
from margrove.store.learner_parts import (
    Taken,
    parameters_to_json,
    put_away,
    read_labels,
    read_names,
    scalar_to_json,
    take_arrays,
)
from margrove.store.schema import MOST_COLUMNS, TREE_ARRAYS, TREES, Array, Learner
from margrove.store.tree_check import check_tree, columns_from_json, columns_to_json
from margrove.store.versions import Tensors
from margrove.tree.model import TreeModel, blank_levels
from margrove.tree.problem import TreeColumn

_FIELDS = {
    "class",
    "parameters",
    "n_features_in",
    "feature_names",
    "labels",
    "target",
    "columns",
    "categorical",
    "scalars",
    "arrays",
    "certificate",
}
_PREDICTING, _GROWN = "tree_", "grown_"


def take_tree_apart(model: Any, taken: Taken, prefix: str) -> dict[str, Any]:
    """The record of a fitted tree; its arrays go into ``taken``, their names begin with ``prefix``."""
    name = type(model).__name__
    learner = TREES[name]
    check_is_fitted(model)
    if not hasattr(model, "certificate_"):
        raise FaultError(f"{name} has no certificate_: its fit did not come to an end")
    trees = {_PREDICTING: model.tree_}
    if model.grown_ is not model.tree_:
        trees[_GROWN] = model.grown_
    arrays = {
        which: put_trees_away(TREE_ARRAYS, tree, taken.tensors, f"{prefix}{which}.") for which, tree in trees.items()
    }
    names = getattr(model, "feature_names_in_", None)
    return {
        "class": name,
        "parameters": parameters_to_json(model, taken),
        "n_features_in": int(model.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "labels": labels_to_json(model.classes_) if learner.is_classifier else None,
        "target": model.target_,
        "columns": columns_to_json(model.tree_.columns),
        "categorical": dict(model.categorical_),
        "scalars": {key: scalar_to_json(getattr(model, key)) for key in learner.scalars},
        "arrays": arrays,
        "certificate": model.certificate_.to_dict(),
    }


def put_tree_together(record: dict[str, Any], tensors: Tensors, prefix: str) -> Any:
    """The tree that the record describes; its tensors are taken out of ``tensors``."""
    name = record["class"]
    learner = TREES[name]
    check_fields(record, _FIELDS, f"the record of {name}")
    parameters = check_parameters(record["parameters"], learner.estimator, learner.choices, learner.ranges)
    labels = read_labels(record["labels"], learner)
    d = check_whole(record["n_features_in"], 1, "n_features_in", MOST_COLUMNS)
    check_fields(record["scalars"], set(learner.scalars), f"the list of {name}'s scalars")
    fitted = {key: check_scalar(key, record["scalars"][key], scalar) for key, scalar in learner.scalars.items()}
    columns = columns_from_json(record["columns"], d)
    fitted |= read_table_names(record, columns)
    fitted |= _trees(record["arrays"], tensors, prefix, columns, learner, max(1, len(labels)))
    fitted["categorical_"] = read_reasons(record["categorical"], columns)
    n_splits = fitted[_PREDICTING].n_nodes - fitted[_PREDICTING].n_leaves
    fitted["certificate_"] = check_certificate(record["certificate"], name, 1, n_splits)
    if learner.is_classifier:
        fitted |= {"classes_": labels, "n_classes_": len(labels)}
    model = learner.estimator(**parameters)
    vars(model).update(fitted, n_features_in_=d)
    return model


def put_trees_away(specs: tuple[Array, ...], trees: TreeModel | Grove, tensors: Tensors, prefix: str) -> dict[str, str]:
    """How the arrays of a tree or of a grove are laid out, which go into ``tensors``; those of subset tests only where
    there may be such a test."""
    is_told = trees.n_levels is not None and _has_subsets(trees.columns)
    kept = [spec for spec in specs if is_told or not spec.is_optional]
    return {spec.name: put_away(getattr(trees, spec.name), tensors, prefix + spec.name) for spec in kept}


def take_trees(
    specs: tuple[Array, ...], layouts: Any, tensors: Tensors, prefix: str, columns: tuple[TreeColumn, ...], width: int
) -> dict[str, Any]:
    """The arrays that `put_trees_away` laid out so, of trees whose values are this wide."""
    arrays = take_arrays(specs, layouts, tensors, prefix, {"d": len(columns), "k": width})
    if "n_levels" not in arrays and not _has_subsets(columns):
        arrays |= blank_levels(len(arrays["feature"]))
    return arrays


def _has_subsets(columns: tuple[TreeColumn, ...]) -> bool:
    return any(column.test == "subset" for column in columns)


def _trees(
    layouts: Any, tensors: Tensors, prefix: str, columns: tuple[TreeColumn, ...], learner: Learner, width: int
) -> dict[str, TreeModel]:
    """The tree that predicts, and the one before pruning: the same if nothing was pruned."""
    is_pruned = isinstance(layouts, dict) and _GROWN in layouts
    check_fields(layouts, {_PREDICTING, *([_GROWN] if is_pruned else [])}, "the list of trees")
    trees = {}
    for which, layout in layouts.items():
        arrays = take_trees(TREE_ARRAYS, layout, tensors, f"{prefix}{which}.", columns, width)
        trees[which] = TreeModel(columns=columns, **arrays)
        check_tree(trees[which], which, is_regression=not learner.is_classifier)
    return {_GROWN: trees[_PREDICTING], **trees}


def read_table_names(record: dict[str, Any], columns: tuple[TreeColumn, ...]) -> dict[str, Any]:
    """The names of columns and target, where the training table had them."""
    names, target = [column.name for column in columns], record["target"]
    if target is not None and (type(target) is not str or target in names):
        raise FaultError(
            f"the target is {shown(target)}; the name of a column that is not among the others was expected"
        )
    if record["feature_names"] is None:
        return {"target_": target}
    given = read_names(record["feature_names"], len(columns))
    if given.tolist() != names:
        raise FaultError("the names of the columns are others than those of the tree")
    return {"target_": target, "feature_names_in_": given}


def read_reasons(record: Any, columns: tuple[TreeColumn, ...]) -> dict[str, str]:
    """For each category how it is tested, and why."""
    check_fields(record, {column.name for column in columns if column.levels}, "the list of categories")
    if not all(type(words) is str for words in record.values()):
        raise FaultError(f"the list of categories is {shown(record)}; words were expected")
    return dict(record)
