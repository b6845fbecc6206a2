"""Boosted trees taken apart into a record and tensors, and put together again.

The tensors are the arrays of `margrove.boost.model.Grove` (``grove.start``, ``grove.feature``, …) and what was seen in
each round (``error``, ``vote``, …). Learners that are not trees of ours are not for a file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove.boost.base import settle_learner
from margrove.boost.model import BoostModel, Grove, Rounds
from margrove.store.check import check_certificate, check_fields, check_parameters, check_scalar, check_whole
from margrove.store.fault import FaultError, shown
from margrove.store.labels import labels_to_json
from margrove.store.learner_parts import (
    Taken,
    parameters_to_json,
    put_away,
    read_labels,
    scalar_to_json,
    take_arrays,
)
from margrove.store.schema import BOOSTS, GROVE_ARRAYS, MOST_COLUMNS, TREES, Learner
from margrove.store.tree_check import check_tree, columns_from_json, columns_to_json
from margrove.store.tree_parts import put_trees_away, read_reasons, read_table_names, take_trees
from margrove.store.versions import Tensors

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
    "grove",
    "arrays",
    "certificate",
}


def take_boost_apart(model: Any, taken: Taken, prefix: str) -> dict[str, Any]:
    """The record of fitted boosted trees; their arrays go into ``taken``, their names begin with ``prefix``."""
    name = type(model).__name__
    learner = BOOSTS[name]
    check_is_fitted(model)
    if not hasattr(model, "certificate_"):
        raise FaultError(f"{name} has no certificate_: its fit did not come to an end")
    kind = type(model.estimator_)
    if not any(kind is tree.estimator for tree in TREES.values()):
        raise FaultError(
            f"{name} boosts a {kind.__module__}.{kind.__qualname__}, and a model file holds boosted trees of ours only",
            "Boost a DecisionStump or a DecisionTreeClassifier (of numbers, a DecisionTreeRegressor).",
        )
    if model.model_ is None:
        raise FaultError(
            f"the trees of this {name} saw rows with other levels or missing cells each, so they make no grove",
            "Boost trees without pruning and randomness, which are given all levels.",
        )
    grove = model.model_.grove
    names = getattr(model, "feature_names_in_", None)
    return {
        "class": name,
        "parameters": boost_parameters_to_json(model, taken),
        "n_features_in": int(model.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "labels": labels_to_json(model.classes_) if learner.is_classifier else None,
        "target": model.target_,
        "columns": columns_to_json(grove.columns),
        "categorical": dict(model.categorical_),
        "scalars": {key: scalar_to_json(getattr(model, key)) for key in learner.scalars},
        "grove": put_trees_away(GROVE_ARRAYS, grove, taken.tensors, f"{prefix}grove."),
        "arrays": {
            key: put_away(array, taken.tensors, prefix + key)
            for key, array in _seen(model).items()
            if array is not None
        },
        "certificate": model.certificate_.to_dict(),
    }


def put_boost_together(record: dict[str, Any], tensors: Tensors, prefix: str) -> Any:
    """The boosted trees that the record describes; their tensors are taken out of ``tensors``."""
    name = record["class"]
    learner = BOOSTS[name]
    check_fields(record, _FIELDS, f"the record of {name}")
    parameters = boost_parameters_from_json(record["parameters"], learner)
    labels = read_labels(record["labels"], learner)
    d = check_whole(record["n_features_in"], 1, "n_features_in", MOST_COLUMNS)
    check_fields(record["scalars"], set(learner.scalars), f"the list of {name}'s scalars")
    fitted = {key: check_scalar(key, record["scalars"][key], scalar) for key, scalar in learner.scalars.items()}
    columns = columns_from_json(record["columns"], d)
    fitted |= read_table_names(record, columns)
    fitted["categorical_"] = read_reasons(record["categorical"], columns)
    width = max(1, len(labels))
    grove = Grove(columns, **take_trees(GROVE_ARRAYS, record["grove"], tensors, f"{prefix}grove.", columns, width))
    _check_grove(grove, is_regression=not learner.is_classifier)
    seen = take_arrays(learner.arrays, record["arrays"], tensors, prefix, {"d": d})
    n_trees = grove.n_trees
    if len(seen["vote"]) < n_trees or (len(seen["vote"]) > n_trees and not learner.is_classifier):
        raise FaultError(f"there are {n_trees} trees and {len(seen['vote'])} votes")
    fitted["certificate_"] = check_certificate(record["certificate"], name, 1)
    fitted["n_estimators_"] = n_trees
    fitted["model_"] = BoostModel(grove, seen["vote"][:n_trees], len(labels))
    if not learner.is_classifier:
        fitted |= {"estimator_weights_": seen["vote"], "estimator_errors_": seen["error"]}
    else:
        of_rounds: dict[str, Any] = {key: seen.get(key) for key in _ROUNDS}
        rounds = Rounds(**of_rounds, n_classes=len(labels))
        fitted |= {"classes_": labels, "n_classes_": len(labels), "rounds_": rounds}
        fitted["validation_rows_"] = seen.get(_HELD_OUT)
    model = learner.estimator(**parameters)
    fitted["estimator_"] = settle_learner(model.estimator, model._default_learner, name)
    vars(model).update(fitted, n_features_in_=d)
    return model


_ROUNDS = ("error", "vote", "training_error", "validation_error")
_HELD_OUT = "validation_rows"


def _seen(model: Any) -> dict[str, Any]:
    """What was seen in each round."""
    if not hasattr(model, "rounds_"):
        return {"error": model.estimator_errors_, "vote": model.estimator_weights_}
    seen = {**{key: getattr(model.rounds_, key) for key in _ROUNDS}, _HELD_OUT: model.validation_rows_}
    return {key: array for key, array in seen.items() if array is not None}


def boost_parameters_to_json(model: Any, taken: Taken) -> dict[str, Any]:
    """The parameters of boosted trees, fitted or not; the tree that is boosted is a record among them."""
    is_drawn = hasattr(model, "_drawn_seed")
    parameters = parameters_to_json(model, taken, skipped=("estimator", "random_state") if is_drawn else ("estimator",))
    if is_drawn:
        name = type(model).__name__
        taken.left_out.append(f"{name}: random_state is a generator, whose state is not kept; saved as what it gave.")
        parameters["random_state"] = int(model._drawn_seed)
    learner = None
    if model.estimator is not None:
        learner = {"class": type(model.estimator).__name__, "parameters": parameters_to_json(model.estimator, taken)}
    return {**parameters, "estimator": learner}


def boost_parameters_from_json(record: Any, learner: Learner) -> dict[str, Any]:
    """The parameters that the record tells."""
    given = record.get("estimator") if isinstance(record, dict) else None
    record = {**record, "estimator": None} if isinstance(record, dict) and "estimator" in record else record
    parameters = check_parameters(record, learner.estimator, learner.choices, learner.ranges)
    if given is not None:
        check_fields(given, {"class", "parameters"}, "the learner")
        tree = TREES.get(given["class"]) if isinstance(given["class"], str) else None
        if tree is None or tree.is_classifier != learner.is_classifier:
            raise FaultError(f"the learner is a {shown(given['class'])}, which is none that {_name(learner)} boosts")
        settings = check_parameters(given["parameters"], tree.estimator, tree.choices, tree.ranges)
        parameters["estimator"] = tree.estimator(**settings)
    return parameters


def _name(learner: Learner) -> str:
    return learner.estimator.__name__


def _check_grove(grove: Grove, *, is_regression: bool) -> None:
    """Every tree is one; none is without nodes."""
    if grove.n_trees == 0 or (np.diff(grove.start) < 1).any():
        raise FaultError("grove.start leaves a tree without nodes")
    if grove.start[-1] != len(grove.feature):
        raise FaultError("grove.start does not end with the last node")
    for t in range(grove.n_trees):
        check_tree(grove.tree(t), f"tree {t}", is_regression=is_regression)
