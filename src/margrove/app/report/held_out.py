"""Cross-validation for a report: an estimate of the score where the model has none, and models for the importance of
columns on rows that they have not seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.words import part_of
from margrove.app.history import ScoredRows
from margrove.app.models import features_of, last_step_of
from margrove.app.report.model_on_table import codes_of, predictions_of
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.explanation import explanation_of
from margrove.run.progress import Progress, report
from margrove.status import Status

N_FOLDS = 5
_MOST_ROWS = 5_000  # that are trained on and tested; of more a sample
_SECONDS = 5.0  # for each fit: beyond it there is no estimate


@dataclass(frozen=True, eq=False)
class FoldPart:
    """A fitted model, and rows to test it on: the table without its target, and the truth."""

    model: Any
    table: Table
    truth: NDArray[Any]  # codes of classes, or numbers


class ReportFolds:
    """Models with the same settings, each fitted without a fifth of the rows when it is first needed."""

    def __init__(self, model: Any, table: Table) -> None:
        self.model, self.n_table_rows = model, table.n_rows
        self.classes = explanation_of(model).classes
        target, rows = table.target, np.empty(0, np.intp)
        if target is not None and (self.classes is not None or target.kind == "numeric"):
            rows = np.flatnonzero(~target.is_missing)
        if len(rows) > _MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False))
        self.rows, self.table = rows, table.take(rows)
        self.truth: NDArray[Any] = np.empty(0)  # codes of classes, or numbers
        order = np.random.default_rng(0).permutation(len(rows))
        if target is not None and len(rows) and self.classes is None:
            self.truth = target.take(rows).values.astype(np.float64)
        elif target is not None and len(rows) and self.classes is not None:
            self.truth = codes_of(target.take(rows).labels(), self.classes)
            order = order[np.argsort(self.truth[order], kind="stable")]  # each class spread evenly over the folds
        self.fold = np.empty(len(rows), np.intp)
        self.fold[order] = np.arange(len(rows)) % N_FOLDS
        self.fitted = cache(self._fitted)

    def _fitted(self, number: int) -> FoldPart | None:
        """Fit a model without this fifth, and return both; None where the fit fails or takes too long."""
        from sklearn.base import clone

        if len(self.rows) < N_FOLDS:
            return None
        report(Progress("report", number))  # a watcher may end it here
        is_test = self.fold == number
        training = self.table.take(~is_test)
        again = clone(self.model)
        _settle(again)
        y = self.truth[~is_test] if self.classes is None else training.labels()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the model itself has given them
                again.fit(features_of(self.model, training.with_target(None)), y)
        except (MargroveError, ValueError):  # the rows may lack a class, or all of a column
            return None
        is_cut = getattr(last_step_of(again), "status_", None) in (Status.TIME_LIMIT, Status.INTERRUPTED)
        if is_cut or explanation_of(again).classes != self.classes:
            return None
        return FoldPart(again, self.table.take(is_test).with_target(None), self.truth[is_test])

    def scored(self) -> ScoredRows | None:
        """Return the prediction for each row by the model that has not seen it; None where a fit failed."""
        if not len(self.rows):
            return None
        predicted = np.zeros(len(self.rows), np.float64 if self.classes is None else np.intp)
        scores = None if self.classes is None else np.full((len(self.rows), len(self.classes)), np.nan)
        for number in range(N_FOLDS):
            part = self.fitted(number)
            if part is None:
                return None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # levels that are only among these rows
                predicted[self.fold == number], values = predictions_of(part.model, features_of(part.model, part.table))
            if scores is not None and values is not None:
                scores[self.fold == number] = values
        kept = None if scores is None or np.isnan(scores).any() else scores
        return ScoredRows(self.classes, self.truth, predicted, kept, self.rows)

    @property
    def words(self) -> str:
        """A description of the method."""
        text = (
            f"Estimated for this report by {N_FOLDS} models with the same settings, each tested on a "
            f"{part_of(N_FOLDS)} of the rows, which it had not seen."
        )
        if len(self.rows) == self.n_table_rows:
            return text
        return f"{text} They used {len(self.rows):,} rows; the model itself learned from more, and may be better."


def _settle(model: Any) -> None:
    """Limit the time of the fit, and fix its seed, so that the same model and table give the same page."""
    learner = last_step_of(model)
    parameters = learner.get_params(deep=False)
    if "time_limit" in parameters:
        learner.set_params(time_limit=_SECONDS)
    if parameters.get("random_state", 0) is None:
        learner.set_params(random_state=0)
