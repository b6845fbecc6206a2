"""An honest estimate for a model that brings none: models of the same settings, tested on rows they have not seen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data import Table
from margrove.errors import MargroveError
from margrove.status import Status
from margrove.surface.display import part_of
from margrove.surface.models import features_of, learner_of
from margrove.surface.report.subject import Judged, classes_of, codes_of, judgement_of

_MOST_ROWS = 5_000  # that are learned from and tested; of more a sample
_FOLDS = 5
_SECONDS = 5.0  # for each fit: beyond it there is no estimate


@dataclass(frozen=True, eq=False)
class Tested:
    """Rows judged by models that have not seen them, and how that was done."""

    judged: Judged
    words: str


def tested(model: Any, table: Table) -> Tested | None:
    """Cross-validate the settings of a fitted model; None where a fit takes too long or a fold cannot be learned."""
    from sklearn.base import clone

    if table.target is None:
        return None
    rows = np.flatnonzero(~table.target.is_missing)
    if len(rows) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, _MOST_ROWS, replace=False))
    some, classes = table.take(rows), classes_of(model)
    assert some.target is not None
    truth: NDArray[Any] = some.target.values.astype(np.float64) if classes is None else some.labels()
    codes = None if classes is None else codes_of(truth, classes)
    fold = _fold_of_rows(len(rows), codes)
    predicted = np.zeros(len(rows), np.float64 if classes is None else np.intp)
    scores = None if classes is None else np.full((len(rows), len(classes)), np.nan)
    for number in range(_FOLDS):
        is_test = fold == number
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the model itself has told them
                again = clone(model)
                _settle(again)
                again.fit(features_of(model, some.take(~is_test)), truth[~is_test])
                said, values = judgement_of(again, features_of(model, some.take(is_test).with_target(None)))
        except (MargroveError, ValueError):  # a fold may lack a class, or all of a column: then there is no estimate
            return None
        if learner_of(again).status_ in (Status.TIME_LIMIT, Status.INTERRUPTED):
            return None
        if classes_of(again) != classes:
            return None
        predicted[is_test] = said
        if scores is not None and values is not None:
            scores[is_test] = values
    kept = None if scores is None or np.isnan(scores).any() else scores
    judged = Judged(classes, truth if codes is None else codes, predicted, kept, rows)
    part = part_of(_FOLDS)
    words = (
        f"Found for this page: {_FOLDS} models of the same settings, each tested on a {part} of the rows that it had "
        "not seen."
    )
    if len(rows) < table.n_rows:
        words += f" They saw a sample of {len(rows):,} rows; the model itself learned from more, and may be better."
    return Tested(judged, words)


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
    fold[order] = np.arange(n) % _FOLDS
    return fold
