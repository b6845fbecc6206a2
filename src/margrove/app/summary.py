"""Summarise a fitted model, or a pipeline that ends in one, by the columns of a table."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from margrove.app.models import encoder_of, learner_of
from margrove.data import Table
from margrove.explanation import InputColumn, Inputs, ModelSummary, explanation_of

_OF_WORDS = ", that word alone against none of a text"
_OF_COLUMNS = ", per standard deviation of a number, yes against no of a category"


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
    columns = [
        InputColumn(
            origin.column,
            "missing" if origin.is_missing else None if origin.level is None else str(origin.level),
            origin.is_word,
        )
        for origin in encoder.output_origins()
    ]
    if table is not None and not hasattr(encoder, "deviations_"):
        encoder.remember_deviations(encoder.transform(table))
    if hasattr(encoder, "deviations_"):
        return Inputs(columns, np.asarray(encoder.deviations_), " of one standard deviation")
    unit = _OF_COLUMNS + (_OF_WORDS if any(column.is_word for column in columns) else "")
    return Inputs(columns, unit=unit if encoder.standardise else "")


def _names(model: Any) -> Any:
    if learner_of(model) is not model and hasattr(model[:-1], "get_feature_names_out"):  # of pictures, from a network
        return model[:-1].get_feature_names_out()
    return getattr(model, "feature_names_in_", [f"x{j}" for j in range(learner_of(model).n_features_in_)])
