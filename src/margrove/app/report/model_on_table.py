"""The subject of a report: a model, a table, and the predictions for its rows."""

from __future__ import annotations

import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.metrics import ACCURACY, BALANCED, R2, RARE, Metric, metric_named
from margrove.app.history import History, ScoredRows
from margrove.app.models import columns_of, encoder_of, features_of, format_of, last_step_of, target_of, uncalibrated
from margrove.certificate import Certificate, at_the_end
from margrove.data import Column, Table
from margrove.data.alignment import with_trained_parts
from margrove.data.columns import clip
from margrove.data.inspection import LEAST_WORDS, is_identifier, mean_words
from margrove.data.sample import read_points
from margrove.errors import InputError, ParameterError
from margrove.explanation import explanation_of
from margrove.status import Status

MOST_ROWS = 20_000  # of more a sample is predicted: enough for a tenth of a per cent
FEW_ROWS = 20  # with fewer, the interval of an accuracy reaches 20 points to either side
_FIT_INTERRUPTED = (
    "The training was interrupted, and the model was saved as it was then. A complete fit may be better. The score "
    "estimated during training is that of complete fits."
)
_SEARCH_INTERRUPTED = (
    "The training was interrupted, so this is the best model found until then; not all learners or settings were tried."
)
_SEED = 0  # of every draw, so that the same model and table give the same page


class Subject:
    """A fitted model, and a table of rows that it predicts. The target of the table may be set, be one of its columns,
    or be absent."""

    def __init__(self, model: Any, table: Table, metric: str | None = None) -> None:
        self.model, self.learner, self.explanation = model, uncalibrated(last_step_of(model)), explanation_of(model)
        self.classes = self.explanation.classes  # None for numbers, and for a model of one class
        self.certificate: Certificate | None = getattr(last_step_of(model), "certificate_", None)
        self.history = History(getattr(model, "training_record_", None))
        self.measure = "R²" if self.classes is None else "accuracy"
        if self.history.metric is not None:
            self.measure = f"{'−' if self.history.metric.is_loss else ''}{self.history.metric.words}"
        self.n_training_rows: int | None = getattr(self.learner, "n_rows_", None)
        if self.n_training_rows is None and self.certificate is not None:
            self.n_training_rows = self.certificate.n_rows
        self.encoder = encoder_of(model)
        left_out = [] if self.encoder is None else self.encoder.dropped_
        self.dropped = {str(c["name"]): str(c["why"]) for c in left_out}
        self.dropped |= {c.name: _why_left_out(c, self.dropped[c.name]) for c in table if c.name in self.dropped}

        # The table: all rows, the columns that the model takes, the target apart.
        name = target_of(model)
        if table.target is None and name is not None and name in table:
            table = table.without(name).with_target(table[name])
        self.target = name or "the target" if table.target is None else table.target.name
        self.form = format_of(model) if table.target is None else table.target.format  # of a target of numbers
        table = with_trained_parts(table, columns_of(model) or ())
        needed = [str(column) for column in getattr(model, "feature_names_in_", ())]
        unused = [column for column in table if column.name not in set(needed)] if needed else []
        self.unused = {c.name: _why_left_out(c, "identifier" if is_identifier(c) else "") for c in unused}
        self.table = table.select([column for column in needed if column in table]) if self.unused else table
        self.source = Path(table.source).name or table.source
        self.n_columns = self.table.n_columns - len(self.dropped)
        n = table.n_rows
        self.are_few = n < FEW_ROWS  # too few to estimate a score, or typical values

        # The rows of the report, all or a sample, with codes of classes or numbers as predictions.
        self.rows = np.arange(n)
        if n > MOST_ROWS:
            self.rows = np.sort(np.random.default_rng(_SEED).choice(n, MOST_ROWS, replace=False))
        self.is_whole = len(self.rows) == n
        self.sample = (self.table if self.is_whole else self.table.take(self.rows)).with_target(None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.predicted, self.scores = predictions_of(model, features_of(model, self.sample))
        self.warnings = list(dict.fromkeys(str(warning.message) for warning in caught))  # of levels not in training

        # The table has, or may have, the training rows; the latter if they are as many, and nothing else is known.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same again
            is_training = self.history.has_rows_of(table)
            is_training = self._has_training_rows() if is_training is None else is_training
        self.is_training, self.is_training_known = is_training is not False, is_training is not None

        # The sampled rows whose truth is known; None where there are none.
        truth, is_known, self.n_unknown_class = self._truth()
        self.n_unlabelled = 0 if table.target is None else int((~is_known).sum()) - self.n_unknown_class
        self.scored: ScoredRows | None = None
        if is_known.any():
            some = None if self.scores is None else self.scores[is_known]
            self.scored = ScoredRows(self.classes, truth[is_known], self.predicted[is_known], some, self.rows[is_known])
        self.metric = self._metric(metric)

    def _metric(self, given: str | None) -> Metric:
        """Return what the model is judged by: the metric asked for, or that of the training; or by default balanced
        accuracy if the rarer of two classes has few rows, accuracy, or R²."""
        is_number = self.classes is None
        metric = self.history.metric if given is None else metric_named(given)
        if metric is None or metric.is_of_numbers is not is_number:
            if given is not None and self.explanation.task != "novelty":
                kind = "classes" if is_number else "numbers"
                raise ParameterError(f"--metric is {given!r}, which is of {kind}, and the model predicts no {kind}.")
            counts = np.zeros(0) if is_number or self.scored is None else np.bincount(self.scored.truth, minlength=2)
            is_rare = len(counts) == 2 and 0 < counts.min() < RARE * counts.sum()
            return R2 if is_number else BALANCED if is_rare else ACCURACY
        if self.scored is None or metric.can_score(self.scored.judged, is_required=given is not None):
            return metric
        return ACCURACY

    def _has_training_rows(self) -> bool | None:
        """Compare the table with what the model keeps of its training rows: their number, the columns of an encoder, or
        the rows of a tree's leaves. None if it keeps the number alone."""
        if self.n_training_rows != self.table.n_rows:
            return False
        rows = self.table.with_target(None)
        if self.encoder is None:
            return self.explanation.is_trained_on(features_of(self.model, rows))
        try:
            again = type(self.encoder)(**self.encoder.get_params(deep=False)).fit(rows)
        except InputError:  # nothing can be learned from these rows, so nothing was
            return False
        return bool(again.columns_ == self.encoder.columns_)

    def _truth(self) -> tuple[NDArray[Any], NDArray[np.bool_], int]:
        """Return the true codes or numbers of the rows, where they are known, and how many rows have a class that is
        not among the model's."""
        target, task = self.table.target, self.explanation.task
        if target is None or task == "novelty" or (task == "numbers" and target.kind != "numeric"):
            return np.empty(len(self.rows)), np.zeros(len(self.rows), bool), 0
        cells = target.take(self.rows)
        has_cell = ~cells.is_missing
        if self.classes is None:
            return cells.values.astype(np.float64), has_cell, 0
        codes = np.full(len(self.rows), -1, np.intp)
        if has_cell.any():
            codes[has_cell] = codes_of(cells.take(has_cell).labels(), self.classes)
        is_known = codes >= 0
        return codes, is_known, int((has_cell & ~is_known).sum())

    @property
    def interruption(self) -> str | None:
        """A warning that the training was interrupted; None if it was not."""
        if self.explanation.status == Status.INTERRUPTED:
            return _FIT_INTERRUPTED
        return _SEARCH_INTERRUPTED if self.history.is_interrupted else None

    @property
    def scored_places(self) -> NDArray[np.intp]:
        """The places in the sample of the rows whose truth is known."""
        if self.scored is None or self.scored.rows is None:
            return np.empty(0, np.intp)
        return np.asarray(np.searchsorted(self.rows, self.scored.rows))

    def encoded(self, places: Any = slice(None)) -> Any:
        """Return rows of the sample as the learner takes them."""
        return self._encoded.take(places) if isinstance(self._encoded, Table) else self._encoded[places]

    @cached_property
    def _encoded(self) -> Any:
        rows = self.encode(self.sample)
        return rows if isinstance(rows, Table) else read_points(self.learner, rows)

    def encode(self, table: Table) -> Any:
        """Return any rows as the learner takes them."""
        return at_the_end(self.model, features_of(self.model, table))[1]

    @property
    def input_names(self) -> list[str]:
        """The column of the table, or the word of a text, that each encoded column comes from."""
        if self.encoder is None:
            return list(self.sample.names)
        return [
            f"{clip(str(o.level), 30)!r} in {o.column}" if o.is_word and o.level is not None else o.column
            for o in self.encoder.output_origins()
        ]

    def has_at(self, places: NDArray[np.intp], vectors: Any) -> bool:
        """Return True if the rows of the table at these places are encoded as these vectors."""
        found = self.encode(self.table.take(places).with_target(None))
        return not len(places) or not abs(found - vectors).max() > 0


def _why_left_out(column: Column, why: str) -> str:
    """Return why a column is left out: "constant", "identifier" or "free text"; empty of one that is only not used."""
    return "free text" if why == "identifier" and mean_words(column) >= LEAST_WORDS else why


def predictions_of(model: Any, features: Any) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Return the predictions, as codes of classes or numbers, and the score of each class where there are any."""
    learner, rows = at_the_end(model, features)
    predicted, explanation = np.asarray(learner.predict(rows)), explanation_of(learner)
    if explanation.classes is None:
        return predicted.astype(np.float64), None
    return codes_of(predicted, explanation.classes), explanation.class_scores(rows)


def codes_of(labels: NDArray[Any], classes: list[str]) -> NDArray[np.intp]:
    """Return the place of each label among the classes, -1 for an unknown one. Labels are compared as text: the zeros
    and ones of a file may be numbers here and yes/no there."""
    place = {name: code for code, name in enumerate(classes)}
    values, inverse = np.unique(labels.astype(str), return_inverse=True)
    return np.array([place.get(str(value), -1) for value in values], np.intp)[inverse.ravel()]
