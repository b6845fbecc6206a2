"""Predictions of rows that a model has not seen, kept to score them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import learner_of
from margrove.data import Table


class InterruptedFitError(KeyboardInterrupt):
    """Ctrl-C in a fit: the solver keeps what it has, but the predictions of half a model estimate nothing."""


@dataclass(frozen=True)
class Predicted:
    """Predictions of rows that the model had not seen."""

    rows: NDArray[np.int64]  # of the table
    values: NDArray[Any]
    learner: str
    scores: NDArray[np.float64] | None = None  # (rows, classes): decision values, or probabilities
    means: NDArray[np.float64] | None = None  # of numbers: the mean of the training targets, for each row
    medians: NDArray[np.float64] | None = None  # and their median


def joined(parts: Sequence[Predicted]) -> Predicted:
    """Join several rounds, sorted by row. Scores are kept where all rounds have them, of one learner: others differ."""
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    learners = sorted({part.learner for part in parts})

    def column(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if any(values is None for values in columns) else np.concatenate(columns)[order]

    scores = column("scores") if len(learners) == 1 else None
    return Predicted(rows[order], column("values"), ", ".join(learners), scores, column("means"), column("medians"))


def taken(table: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of a table or of an array."""
    return table.take(rows) if isinstance(table, Table) else table[rows]


def scores_of(model: Any, table: Table, classes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return a column of scores for each class: probabilities where the model has them, else decision values, else
    None; for a class that the model has not met, the least there is."""
    own, least = learner_of(model).classes_, 0.0
    if hasattr(model, "predict_proba"):
        values = np.asarray(model.predict_proba(table), np.float64)
    elif not hasattr(model, "decision_function"):
        return None
    else:
        values = np.asarray(model.decision_function(table), np.float64)
        if values.ndim == 1:
            values = np.column_stack([-values, values])
        least = float(values.min(initial=0.0))
    scores = np.full((len(values), len(classes)), least)
    scores[:, np.searchsorted(classes, own)] = values
    return scores
