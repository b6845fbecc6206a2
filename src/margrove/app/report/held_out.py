"""Models of the same settings that have not seen all rows: for an honest estimate where the model brings none, and for
the importance of its columns on rows that are new.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.words import part_of
from margrove.app.history import Judged
from margrove.app.models import features_of, learner_of
from margrove.app.report.model_on_table import classes_of, codes_of, judgement_of
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.status import Status

N_FOLDS = 5
_MOST_ROWS = 5_000  # that are learned from and tested; of more a sample
_SECONDS = 5.0  # for each fit: beyond it there is no estimate


@dataclass(frozen=True, eq=False)
class Part:
    """A fitted model, and rows that it is asked about: the table without its target, and the answers."""

    model: Any
    table: Table
    truth: NDArray[Any]  # codes of classes, or numbers
    places: NDArray[np.intp]  # where the rows stand among those of all parts


class Folds:
    """A model's settings fitted again without a fifth of the rows, for each fifth; each when it is first asked for."""

    def __init__(self, model: Any, table: Table) -> None:
        self.model, self.n_table_rows = model, table.n_rows
        self.classes = classes_of(model)
        has_answers = table.target is not None and (self.classes is not None or table.target.kind == "numeric")
        rows = np.flatnonzero(~table.target.is_missing) if has_answers and table.target else np.empty(0, np.intp)
        if len(rows) > _MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False))
        self.rows, self.table = rows, table.take(rows)
        self.fitted = cache(self._fitted)

    @property
    def truth(self) -> NDArray[Any]:
        """The answers: codes of classes, or numbers."""
        target = self.table.target
        assert target is not None
        return target.values.astype(np.float64) if self.classes is None else codes_of(target.labels(), self.classes)

    def _fitted(self, number: int) -> Part | None:
        """The model that has not seen this fifth, with it; None where the fit takes too long or cannot be."""
        from sklearn.base import clone

        if len(self.rows) < N_FOLDS:
            return None
        truth = self.truth
        is_test = _fold_of_rows(len(self.rows), None if self.classes is None else truth) == number
        learned_from = self.table.take(~is_test)
        again = clone(self.model)
        _settle(again)
        answers = truth[~is_test] if self.classes is None else learned_from.labels()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the model itself has told them
                again.fit(features_of(self.model, learned_from.with_target(None)), answers)
        except (MargroveError, ValueError):  # the rows may lack a class, or all of a column
            return None
        if (
            getattr(learner_of(again), "status_", None) in (Status.TIME_LIMIT, Status.INTERRUPTED)
            or classes_of(again) != self.classes
        ):
            return None
        return Part(again, self.table.take(is_test).with_target(None), truth[is_test], np.flatnonzero(is_test))

    def judged(self) -> Judged | None:
        """Every row as the model says that has not seen it; None where one could not be fitted."""
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
                said, values = judgement_of(part.model, features_of(part.model, part.table))
            predicted[part.places] = said
            if scores is not None and values is not None:
                scores[part.places] = values
        kept = None if scores is None or np.isnan(scores).any() else scores
        return Judged(self.classes, self.truth, predicted, kept, self.rows)

    @property
    def words(self) -> str:
        """How it was done."""
        text = (
            f"Found for this page: {N_FOLDS} models of the same settings, each tested on a {part_of(N_FOLDS)} of the "
            "rows that it had not seen."
        )
        if len(self.rows) == self.n_table_rows:
            return text
        return f"{text} They saw {len(self.rows):,} rows; the model itself learned from more, and may be better."


def _settle(model: Any) -> None:
    """So that no fit goes on for long, and the same model and table give the same page."""
    learner = learner_of(model)
    parameters = learner.get_params(deep=False)
    if "time_limit" in parameters:
        learner.set_params(time_limit=_SECONDS)
    if parameters.get("random_state", 0) is None:
        learner.set_params(random_state=0)


def _fold_of_rows(n: int, codes: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """The fold of each row, drawn; each class is spread evenly over the folds."""
    order = np.random.default_rng(0).permutation(n)
    if codes is not None:
        order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(n, np.intp)
    fold[order] = np.arange(n) % N_FOLDS
    return fold
