"""The parts of a model, the table it takes, and a summary of what it learned."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from margrove.calibrate.classifier import CalibratedClassifier
from margrove.data import Table, TableEncoder
from margrove.data.formats import Format
from margrove.errors import InputError
from margrove.explanation import InputColumn, Inputs, ModelSummary, explanation_of

_OF_WORDS = ", that word alone versus no word for a text"
_OF_COLUMNS = ", per standard deviation for a number, yes versus no for a category"


def target_of(model: Any) -> str | None:
    """Return the name of the column that the model predicts; None where the model was not made by the command line."""
    target: str | None = getattr(_knows_target(model), "target_", None)
    return target


def format_of(model: Any) -> Format | None:
    """Return how the target is written; None where that is plain, or the model does not keep it."""
    form: Format | None = getattr(_knows_target(model), "target_format_", None)
    return form


def _knows_target(model: Any) -> Any:
    """Return the part of a model that keeps what it learned about the target."""
    encoder, parts = encoder_of(model), explanation_of(model).parts
    if encoder is None and parts:
        return _knows_target(parts[0])
    return last_step_of(model) if encoder is None else encoder


def encoder_of(model: Any) -> TableEncoder | None:
    first = model[0] if isinstance(model, Pipeline) else None
    return first if isinstance(first, TableEncoder) else None


def columns_of(model: Any) -> list[dict[str, Any]] | None:
    """Return the name and the kind, for people ("date" is one more), of each column that the model takes, and how it is
    written where it is not plain; None if it does not keep them."""
    encoder, parts = encoder_of(model), explanation_of(model).parts
    if encoder is None and parts:
        return columns_of(parts[0])
    columns = explanation_of(model).columns() if encoder is None else encoder.columns_
    if columns is None:
        return None
    kept = ("name", "kind", "format", "date_part")
    found = [{key: column[key] for key in kept if key in column} for column in columns]
    return [{**c, "kind": "date"} if c.get("format", {}).get("kind") == "date" else c for c in found]


def last_step_of(model: Any) -> Any:
    """Return the learner, the last step of a pipeline."""
    return model[-1] if isinstance(model, Pipeline) else model


def uncalibrated(learner: Any) -> Any:
    """Return the learner whose probabilities are calibrated; of another learner itself."""
    return learner.estimator_ if isinstance(learner, CalibratedClassifier) else learner


def is_classifier(learner: Any) -> bool:
    """Return whether it predicts classes; a file may hold a regression or a one-class machine too."""
    return hasattr(learner, "classes_")


def takes_tables(model: Any) -> bool:
    """Return whether it takes tables as they are: by an encoder in front, or by trees of named columns."""
    explanation = explanation_of(model)
    return encoder_of(model) is not None or explanation.takes_tables or any(map(takes_tables, explanation.parts[:1]))


def features_of(model: Any, table: Table) -> Any:
    """Return the table in the form the model takes: as it is, or as an array for a model that was trained on one."""
    if takes_tables(model):
        return table
    if not hasattr(model, "predict"):
        found = f"the file holds a {type(model).__name__}, which predicts nothing"
        raise InputError(found, cure="Save a whole pipeline.")
    names = [str(name) for name in getattr(model, "feature_names_in_", table.names)]
    if len(names) != model.n_features_in_:
        found = f"has {len(names)} columns, and the model takes {model.n_features_in_}"
        raise InputError(
            found, file=table.source, cure="This model was trained on an array, whose columns have no names."
        )
    chosen, first = table.select(names), type(model[0] if isinstance(model, Pipeline) else model)
    is_numeric = all(column.kind == "numeric" for column in chosen)
    if first is ColumnTransformer or (first.__module__.startswith("sklearn.") and not is_numeric):
        found = f"the model begins with scikit-learn's {first.__name__}, which takes a data frame"
        raise InputError(found, cure="Use it in Python: margrove.load(path).predict(frame).")
    if chosen.sparse is not None or chosen.block is not None:
        return chosen.block if chosen.sparse is None else chosen.sparse
    for column in chosen:
        if column.kind != "numeric":
            cure = "This model was trained on numbers, without an encoder."
            raise InputError(f"is a {column.kind}, not a number", file=table.source, column=column.name, cure=cure)
    return np.column_stack([column.values for column in chosen])


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters as JSON can hold them."""
    return {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):  # a code matrix
        return value.tolist()
    is_plain = isinstance(value, str | int | float | bool | None | dict | list)
    return value if is_plain and value not in (math.inf, -math.inf) else " ".join(str(value).split())


def learned(model: Any, table: Table | None = None) -> ModelSummary:
    """Return the summary of a fitted model.

    The weight of a column is that of one standard deviation over the training rows, so that a rare category counts for
    little. Given the training table, the encoder keeps these deviations, also in a file that is written later. Without
    them the weight of a category is that of yes against no.
    """
    return explanation_of(model).data(partial(_inputs, model, table))


def _inputs(model: Any, table: Table | None) -> Inputs:
    encoder = encoder_of(model)
    if encoder is None:
        return Inputs([InputColumn(str(name)) for name in _names(model)], unit=_OF_COLUMNS)
    dates = {column["name"] for column in columns_of(model) or () if column["kind"] == "date"}
    columns = [
        InputColumn(
            origin.column,
            "missing" if origin.is_missing else None if origin.level is None else str(origin.level),
            origin.is_word,
            origin.column in dates,
        )
        for origin in encoder.output_origins()
    ]
    if table is not None and not hasattr(encoder, "deviations_"):
        encoder.remember_deviations(encoder.transform(table))
    if hasattr(encoder, "deviations_"):
        return Inputs(columns, np.asarray(encoder.deviations_), " per standard deviation")
    unit = _OF_COLUMNS + (_OF_WORDS if any(column.is_word for column in columns) else "")
    return Inputs(columns, unit=unit if encoder.standardise else "")


def _names(model: Any) -> Any:
    if last_step_of(model) is not model and hasattr(model[:-1], "get_feature_names_out"):  # of pictures, from a network
        return model[:-1].get_feature_names_out()
    return getattr(model, "feature_names_in_", [f"x{j}" for j in range(last_step_of(model).n_features_in_)])
