"""What a model is made of, and the table it takes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margrove.data import Table, TableEncoder
from margrove.errors import InputError


def target_of(model: Any) -> str | None:
    """The name of the column that the model predicts; None where the model was not made by the command line."""
    encoder = encoder_of(model)
    if encoder is None and is_coded(model):
        return target_of(learner_of(model).estimators_[0])
    target: str | None = getattr(learner_of(model) if encoder is None else encoder, "target_", None)
    return target


def encoder_of(model: Any) -> TableEncoder | None:
    """The encoder in front, where there is one."""
    first = model[0] if hasattr(model, "steps") else None
    return first if isinstance(first, TableEncoder) else None


def learner_of(model: Any) -> Any:
    """The learner itself."""
    return model[-1] if hasattr(model, "steps") else model


def is_classifier(learner: Any) -> bool:
    """Whether it tells classes apart; a file may hold a regression or a one-class machine too."""
    return hasattr(learner, "classes_")


def is_tree(model: Any) -> bool:
    """Whether it is a decision tree, alone or at the end of a pipeline."""
    return hasattr(learner_of(model), "tree_")


def is_coded(model: Any) -> bool:
    """Whether it is a scheme for many classes, of several machines, alone or at the end of a pipeline."""
    return hasattr(learner_of(model), "code_")


def is_boosted(model: Any) -> bool:
    """Whether it is a vote of learners, alone or at the end of a pipeline."""
    return hasattr(learner_of(model), "estimator_weights_")


def has_rules(model: Any) -> bool:
    """Whether it is a tree of ours, or trees of ours that vote."""
    return is_tree(model) or (is_boosted(model) and learner_of(model).model_ is not None)


def takes_tables(model: Any) -> bool:
    """Whether it predicts from a table as it is: an encoder in front, or trees of named columns, or machines such."""
    if is_coded(model) and encoder_of(model) is None:
        return takes_tables(learner_of(model).estimators_[0])
    return encoder_of(model) is not None or (has_rules(model) and hasattr(model, "feature_names_in_"))


def features_of(model: Any, table: Table) -> Any:
    """The table in the form the model takes: as it is, or as an array for a model that was trained on one."""
    if takes_tables(model):
        return table
    names = [str(name) for name in getattr(model, "feature_names_in_", table.names)]
    if len(names) != model.n_features_in_:
        found = f"has {len(names)} columns, and the model takes {model.n_features_in_}"
        raise InputError(
            found, file=table.source, cure="This model was trained on an array, whose columns have no names."
        )
    chosen = table.select(names)
    if chosen.sparse is not None or chosen.block is not None:
        return chosen.block if chosen.sparse is None else chosen.sparse
    for column in chosen:
        if column.kind != "numeric":
            cure = "This model was trained on numbers, without an encoder."
            raise InputError(f"is a {column.kind}, not numbers", file=table.source, column=column.name, cure=cure)
    return np.column_stack([column.values for column in chosen])


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as JSON can hold them."""
    return {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):  # a code matrix
        return value.tolist()
    is_plain = isinstance(value, str | int | float | bool | None | dict | list)
    return value if is_plain and value not in (math.inf, -math.inf) else " ".join(str(value).split())
