"""The subject of a report: a model, a table, and the predictions for its rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.history import History, Judged
from margrove.app.models import encoder_of, features_of, learner_of, target_of
from margrove.certificate import Certificate, at_the_end
from margrove.data import Column, Table
from margrove.data.columns import clip
from margrove.data.sample import read_points
from margrove.errors import InputError
from margrove.explanation import Explanation, explanation_of
from margrove.status import Status

MOST_ROWS = 20_000  # of more a sample is predicted: enough for a tenth of a per cent
FEW_ROWS = 20  # fewer leave a share of right answers open by 20 points to either side
_SEED = 0  # of every draw, so that the same model and table give the same page


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model, and a table of rows that it predicts."""

    model: Any
    table: Table  # all rows, the columns that the model takes, the target apart
    unused: list[str]  # columns of the table that the model does not take
    rows: NDArray[np.intp]  # the rows of the report, all or a sample
    sample: Table  # the table of them, without the target
    judged: Judged | None  # the sampled rows whose truth is known; None where there are none
    predicted: NDArray[Any]  # of all sampled rows: codes of classes, or numbers
    scores: NDArray[np.float64] | None
    n_strange: int  # rows whose class the model does not know
    n_unanswered: int  # rows whose truth is missing
    warnings: list[str]  # of the predictions: levels that training did not have
    is_training: bool  # whether the table has, or may have, the rows that the model was trained on
    is_training_known: bool  # False: they are as many, and nothing else is known
    history: History

    @property
    def learner(self) -> Any:
        """The last step of the model."""
        return learner_of(self.model)

    @cached_property
    def explanation(self) -> Explanation:
        """The explanation of the learner."""
        return explanation_of(self.model)

    @property
    def classes(self) -> list[str] | None:
        """The names of the classes; None for numbers, and for a model of one class."""
        return self.explanation.classes

    @property
    def certificate(self) -> Certificate | None:
        """The certificate that the model keeps."""
        found: Certificate | None = getattr(self.learner, "certificate_", None)
        return found

    @property
    def measure(self) -> str:
        """The name of the score."""
        return "R²" if self.classes is None else "accuracy"

    @property
    def target(self) -> str:
        """The name of the target."""
        if self.table.target is not None:
            return self.table.target.name
        return target_of(self.model) or "the target"

    @property
    def source(self) -> str:
        """The source of the rows; the name alone of a file."""
        return Path(self.table.source).name or self.table.source

    @property
    def n_training_rows(self) -> int | None:
        """The number of training rows."""
        return _n_training_rows(self.learner)

    @property
    def dropped(self) -> dict[str, str]:
        """The columns that the encoder leaves out, and the reason: "identifier" or "constant"."""
        encoder = encoder_of(self.model)
        return {} if encoder is None else {str(c["name"]): str(c["why"]) for c in encoder.dropped_}

    @property
    def n_columns(self) -> int:
        """The number of columns that the model uses."""
        return self.table.n_columns - len(self.dropped)

    @property
    def interruption(self) -> str | None:
        """A warning that the training was interrupted; None if it was not."""
        if self.explanation.status == Status.INTERRUPTED:
            return (
                "The training was interrupted: the model is kept as far as it came. Trained to the end it may be "
                "better, and a score found in training is of models that were."
            )
        if self.history.is_interrupted:
            return (
                "The training was interrupted: the best that was found until then was taken. Not everything that was "
                "planned was tried."
            )
        return None

    @property
    def are_few(self) -> bool:
        """True if the rows are too few to estimate a score, or typical values."""
        return self.table.n_rows < FEW_ROWS

    @property
    def is_whole(self) -> bool:
        """True if all rows of the table were predicted."""
        return len(self.rows) == self.table.n_rows

    @property
    def judged_places(self) -> NDArray[np.intp]:
        """The places in the sample of the rows whose truth is known."""
        if self.judged is None or self.judged.rows is None:
            return np.empty(0, np.intp)
        return np.asarray(np.searchsorted(self.rows, self.judged.rows))

    def encoded(self, places: Any = slice(None)) -> Any:
        """Return rows of the sample as the learner takes them."""
        rows = self._encoded
        return rows.take(places) if isinstance(rows, Table) else rows[places]

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
        encoder = encoder_of(self.model)
        if encoder is None:
            return list(self.sample.names)
        return [
            f"{clip(str(o.level), 30)!r} in {o.column}" if o.is_word and o.level is not None else o.column
            for o in encoder.output_origins()
        ]

    def has_at(self, places: NDArray[np.intp], vectors: Any) -> bool:
        """Return True if the rows of the table at these places are encoded as these vectors."""
        found = self.encode(self.table.take(places).with_target(None))
        return not len(places) or not abs(found - vectors).max() > 0


def subject_of(model: Any, table: Table) -> Subject:
    """Predict the rows of a table. Its target may be set, be one of the columns, or be absent."""
    name = target_of(model)
    if table.target is None and name is not None and name in table:
        table = table.without(name).with_target(table[name])
    history, given = History(getattr(model, "training_record_", None)), table
    asked = [str(column) for column in getattr(model, "feature_names_in_", ())]
    unused = [column for column in table.names if column not in set(asked)] if asked else []
    if unused:
        table = table.select([column for column in asked if column in table])
    n = table.n_rows
    rows = np.arange(n)
    if n > MOST_ROWS:
        rows = np.sort(np.random.default_rng(_SEED).choice(n, MOST_ROWS, replace=False))
    sample = (table if len(rows) == n else table.take(rows)).with_target(None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predicted, scores = judgement_of(model, features_of(model, sample))
    warned = list(dict.fromkeys(str(warning.message) for warning in caught))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same again
        is_training = history.has_rows_of(given)
        if is_training is None:
            is_training = _is_training(model, table)
    truth, is_known, n_strange = _truth(model, table.target, rows)
    judged = None
    if is_known.any():
        some = None if scores is None else scores[is_known]
        judged = Judged(classes_of(model), truth[is_known], predicted[is_known], some, rows[is_known])
    return Subject(
        model=model,
        table=table,
        unused=unused,
        rows=rows,
        sample=sample,
        judged=judged,
        predicted=predicted,
        scores=scores,
        n_strange=n_strange,
        n_unanswered=0 if table.target is None else int((~is_known).sum()) - n_strange,
        warnings=warned,
        is_training=is_training is not False,
        is_training_known=is_training is not None,
        history=history,
    )


def classes_of(model: Any) -> list[str] | None:
    """Return the names of the classes; None where there are none."""
    return explanation_of(model).classes


def judgement_of(model: Any, features: Any) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
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


def _truth(model: Any, target: Column | None, rows: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.bool_], int]:
    """Return the true codes or numbers of these rows, where they are known, and how many rows have a class that is not
    among the model's."""
    task, classes = explanation_of(model).task, classes_of(model)
    if target is None or task == "novelty" or (task == "numbers" and target.kind != "numeric"):
        return np.empty(len(rows)), np.zeros(len(rows), bool), 0
    cells = target.take(rows)
    has_cell = ~cells.is_missing
    if classes is None:
        return cells.values.astype(np.float64), has_cell, 0
    codes = np.full(len(rows), -1, np.intp)
    if has_cell.any():
        codes[has_cell] = codes_of(cells.take(has_cell).labels(), classes)
    is_known = codes >= 0
    return codes, is_known, int((has_cell & ~is_known).sum())


def _is_training(model: Any, table: Table) -> bool | None:
    """Compare a table with what the model keeps of its training rows: their number, the columns of an encoder, or the
    rows of a tree's leaves. None if it keeps the number alone."""
    if _n_training_rows(learner_of(model)) != table.n_rows:
        return False
    encoder = encoder_of(model)
    if encoder is not None:
        try:
            again = type(encoder)(**encoder.get_params(deep=False)).fit(table.with_target(None))
        except InputError:  # nothing can be learned from these rows, so nothing was
            return False
        return bool(again.columns_ == encoder.columns_)
    return explanation_of(model).is_trained_on(features_of(model, table.with_target(None)))


def _n_training_rows(learner: Any) -> int | None:
    n, certificate = getattr(learner, "n_rows_", None), getattr(learner, "certificate_", None)
    return int(n) if n is not None else None if certificate is None else int(certificate.n_rows)
