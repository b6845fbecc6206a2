"""What a model says of rows that it has not seen, kept for whoever judges it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import learner_of
from margrove.data import Table


@dataclass(frozen=True)
class Answers:
    """What a model said of rows that it had not seen."""

    rows: NDArray[np.int64]  # of the table
    answers: NDArray[Any]
    scores: NDArray[np.float64] | None  # (rows, classes): decision values, or probabilities
    learner: str  # that gave them
    means: NDArray[np.float64] | None = None  # of numbers: the mean of what was learned from, for each row


def joined(answers: Sequence[Answers]) -> Answers:
    """Those of several rounds as one, by row. Scores only where each round gave them on the same scale: of the same
    learner."""
    order = np.argsort(np.concatenate([part.rows for part in answers]), kind="stable")
    scores = [part.scores for part in answers if part.scores is not None]
    means = [part.means for part in answers if part.means is not None]
    learners = sorted({part.learner for part in answers})
    has_scores = len(scores) == len(answers) and len(learners) == 1
    return Answers(
        np.concatenate([part.rows for part in answers])[order],
        np.concatenate([part.answers for part in answers])[order],
        np.concatenate(scores)[order] if has_scores else None,
        ", ".join(learners),
        np.concatenate(means)[order] if means else None,
    )


def scores_of(model: Any, table: Table, classes: NDArray[Any]) -> NDArray[np.float64]:
    """How much each class has for it, a column for each: probabilities where the model has them, so that it can be seen
    whether they are right, else decision values; of a class that the model has not met, the least there is."""
    own, least = learner_of(model).classes_, 0.0
    if hasattr(model, "predict_proba"):
        values = np.asarray(model.predict_proba(table), np.float64)
    else:
        values = np.asarray(model.decision_function(table), np.float64)
        if values.ndim == 1:
            values = np.column_stack([-values, values])
        least = float(values.min(initial=0.0))
    scores = np.full((len(values), len(classes)), least)
    scores[:, np.searchsorted(classes, own)] = values
    return scores


def answered(model: Any, asked: Table, rows: NDArray[np.int64], said: NDArray[Any], labels: NDArray[Any]) -> Answers:
    """What a classifier said of these rows of a table with these labels, and how much each class had for it."""
    return Answers(rows, said, scores_of(model, asked, np.unique(labels)), type(learner_of(model)).__name__)
