"""The training record: how a model was made, as plain JSON values, kept with it in its file.

A report is made of it, besides the model and the table: the leaderboard, the choice, the estimate with its predictions,
the search, the learning curve, the course of the fit. `margrove.app.history` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.app.choose.words import choice_words, subsample_words
from margrove.app.estimate.task import Estimate, Predicted
from margrove.app.estimate.words import how_words
from margrove.data import Table

if TYPE_CHECKING:
    from margrove.app.choose.contest import Result
    from margrove.app.choose.held_out import Chosen
    from margrove.app.choose.search import SearchResult

VERSION = 1
MOST_ROWS = 5_000  # whose predictions are kept
_DIGITS = 6  # significant, of scores: nobody draws more


def significant(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def auto_part(chosen: Chosen) -> dict[str, Any]:
    """Return the record of ``--model auto``, without the predictions."""
    result, trial, estimate = chosen.result, chosen.trial, chosen.estimate
    is_sampled = result.n_first < result.n_rows
    subsample = {"rows": result.n_first, "of": result.n_rows, "words": subsample_words(result).rstrip(":.") + "."}
    found = None if trial is None else trial.found
    return {
        "subsample": subsample if is_sampled else None,
        "leaderboard": leaderboard_of(result),
        "choice": {"prefer": result.prefer, "words": choice_words(chosen)},
        "is_interrupted": chosen.is_interrupted,
        "estimate": estimate_part(estimate, chosen.how)
        | {"rows_tested": estimate.n_tested, "picks": list(chosen.picks), "notes": list(estimate.notes)},
        "search": None if found is None or trial is None else search_part(trial.candidate.learner.name, found),
    }


def estimate_part(estimate: Estimate, words: str = "") -> dict[str, Any]:
    """Return the estimate, without the predictions; ``words`` say how it was made, by default by the named learner."""
    off, how = estimate.deviation, [how_words(estimate)] if estimate.rounds else []
    return {
        "method": estimate.method,
        "words": words or "; ".join([*how, *estimate.notes]),
        "measure": estimate.task.value_name,
        "metric": estimate.task.metric.name,
        "value": None if estimate.value is None else estimate.task.natural(estimate.value),
        **estimate.ends,
        "mean_absolute_error": None if off is None else off.mean_absolute_error,
        "baseline": estimate.task.natural(estimate.baseline),
        "baseline_class": estimate.baseline_class,
        "accuracy": estimate.accuracy,
        "never_predicted": list(estimate.never),
    }


def leaderboard_of(result: Result) -> list[dict[str, Any]]:
    """Return a line for each candidate, the best first."""
    return [
        {
            "learner": trial.candidate.learner.name,
            "candidate": trial.candidate.name,
            "title": trial.title,
            "words": trial.candidate.words,
            "parameters": {**trial.candidate.params, **trial.params},
            "score": trial.mean if trial.is_scored else None,
            "error": trial.error if trial.is_scored else None,
            "fold_scores": list(trial.scores),
            "rows": trial.n_rows if trial.is_scored else None,
            "seconds": trial.seconds,
            "status": trial.status,
            "note": trial.note,
            "is_chosen": trial is result.chosen,
            "complexity": trial.candidate.complexity,
        }
        for trial in result.trials
    ]


def predictions_part(predicted: Predicted | None, table: Table) -> dict[str, Any]:
    """Return the rows that were tested, their truth, the predictions and the scores of each class: of more than
    `MOST_ROWS` an even choice, and how many there were in all (``rows_tested``)."""
    if predicted is None:
        return {}
    n = len(predicted.rows)
    kept = np.arange(n) if n <= MOST_ROWS else np.linspace(0, n - 1, MOST_ROWS).round().astype(int)
    labels, rows, values = table.labels(), predicted.rows[kept], predicted.values[kept]
    part: dict[str, Any] = {"rows": rows.tolist(), "rows_tested": n}
    if predicted.means is not None:
        return part | {"truth": labels[rows].tolist(), "predicted": values.astype(np.float64).tolist()}
    classes = np.unique(labels)
    part |= {
        "classes": classes.tolist(),
        "truth": np.searchsorted(classes, labels[rows]).tolist(),
        "predicted": np.searchsorted(classes, values).tolist(),
    }
    if predicted.scores is not None:
        part["scores"] = [[significant(value) for value in line] for line in predicted.scores[kept].tolist()]
    return part


def search_part(learner: str, found: SearchResult) -> dict[str, Any]:
    best = found.best
    cells = [{**cell.to_dict(), "status": "scored" if cell.is_scored else "not reached"} for cell in found.cells]
    return {"learner": learner, "cells": cells, "best": None if best is None else best.to_dict()}


def plain(value: Any) -> Any:
    """Return JSON values: NumPy's numbers as Python's, and what is not finite as null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value
