"""The importance of columns: by permutation, by the model's own weights or gains, by the gain of each column alone.

On training rows a column that identifies them would seem to matter most, as the model has memorised it. So where the
table is that of the training, models with the same settings are fitted and scored on rows that they have not seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.metrics import R2, Metric
from margrove.app.history import ScoredRows
from margrove.app.models import features_of
from margrove.app.report.held_out import N_FOLDS, FoldPart, ReportFolds
from margrove.app.report.model_on_table import Subject, codes_of, predictions_of
from margrove.data import Table
from margrove.data.formats import Format
from margrove.errors import MargroveError
from margrove.run.progress import Progress, report
from margrove.tree.words import amount_text

_MOST_COLUMNS = 200  # with more, none is shuffled or scored
_NOTHING = 5e-4  # of a score: less is no loss
_ROWS = 1_000  # that are predicted again; to a tenth of a per cent
_LEAST_ROWS = 200
_PREDICTIONS = 150_000  # of all columns and repetitions together
_KERNEL_VALUES = 200_000_000  # the same of a kernel machine, which compares each row with its support vectors
_REPEATS = 3
MEANINGS = {
    "loss": "Permutation importance: the score without a column is that of rows among which its values are shuffled. "
    "Columns with the same information can replace each other; then each seems to matter little.",
    "own": "How much the model's decisions depend on each column.",
    "gain": "How much each column alone tells about the target (information gain).",
}


@dataclass(frozen=True)
class ColumnImportance:
    """The importance of one column, by each measure; None where that does not apply."""

    name: str
    loss: float | None = None  # of the score when its cells are shuffled
    own: float | None = None  # its share in the model: of a tree's gains, or of a linear model's weights
    gain: float | None = None  # information gain on the class by this column alone, in bits
    gain_ratio: float | None = None
    p_value: float | None = None  # of that gain


@dataclass(frozen=True)
class Importances:
    """The importance of all columns, the largest first."""

    columns: tuple[ColumnImportance, ...]
    by: Literal["loss", "own", "gain"]  # the measure of the order and the shares
    rows_words: str = ""  # the rows on which columns were shuffled
    metric: Metric = R2  # of the loss
    form: Format | None = None  # of a target of numbers

    @property
    def falls(self) -> str:
        """The loss in words: "accuracy falls", "cost per row rises"."""
        return f"{self.metric.words} {'rises' if self.metric.is_loss else 'falls'}"

    def loss_text(self, loss: float) -> str:
        """Return a loss: in points of a share, in the unit of the target, or as a number."""
        if self.metric.is_share:
            text = f"{100 * loss:.1f} points"
        elif self.metric.is_loss and self.metric.is_of_numbers:
            text = amount_text(loss, self.form)
        else:
            text = f"{loss:.3f}"
        return text if any(digit in text for digit in "123456789") else text.removeprefix("-")

    def share(self, column: ColumnImportance) -> float:
        """Return the importance of a column relative to the largest."""
        values = [getattr(other, self.by) or 0.0 for other in self.columns]
        return max(0.0, (getattr(column, self.by) or 0.0) / max(values))


def importances_of(subject: Subject, folds: ReportFolds) -> Importances | None:
    """Return the importance of every column by every measure that applies; None where all are 0, or where the rows are
    too few to tell."""
    if subject.are_few and not subject.is_training:
        return None
    names = [name for name in subject.sample.names if name not in subject.dropped]
    is_many = len(names) > _MOST_COLUMNS or subject.sample.sparse is not None
    own = subject.explanation.importances(subject.input_names, lambda: _deviations(subject.encoded()))
    losses, rows_words, least = ({}, "", 0.0) if is_many else _losses(subject, folds)
    gains = {} if is_many else _gains(subject)
    columns = [
        ColumnImportance(name, losses.get(name), own.get(name), *gains.get(name, (None, None, None)))
        for name in (own if is_many else names)
    ]
    for by in ("loss", "own", "gain"):
        values = [getattr(column, by) or 0.0 for column in columns]
        if max(values, default=0.0) > (least if by == "loss" else 0.0):
            columns.sort(key=lambda column: -(getattr(column, by) or 0.0))
            return Importances(tuple(columns), by, rows_words, subject.metric, subject.form)
    return None


def _deviations(encoded: Any) -> NDArray[np.float64]:
    """Return the standard deviation of each encoded column, sparse or not."""
    mean = np.asarray(encoded.mean(axis=0), np.float64).ravel()
    squares = encoded.multiply(encoded) if hasattr(encoded, "multiply") else np.square(encoded)
    return np.sqrt(np.maximum(np.asarray(squares.mean(axis=0), np.float64).ravel() - mean**2, 0.0))


def _gains(subject: Subject) -> dict[str, tuple[float, float, float]]:
    """Return information gain, gain ratio and p-value of each column alone; nothing for a regressor."""
    from margrove.select.scores import gain_ratio, information_gain

    scored = subject.scored
    if scored is None or scored.classes is None or len(np.unique(scored.truth)) < 2:
        return {}
    table = subject.sample.take(subject.scored_places)
    try:
        gains, p_values = information_gain(table, scored.truth)
        ratios, _ = gain_ratio(table, scored.truth)
    except MargroveError:  # columns that no tree could read: free text of as many levels as rows
        return {}
    numbers = zip(gains.tolist(), ratios.tolist(), p_values.tolist(), strict=True)
    return dict(zip(table.names, numbers, strict=True))


def _losses(subject: Subject, folds: ReportFolds) -> tuple[dict[str, float], str, float]:
    """Shuffle each column a few times; return the loss of the score for each, the rows that were predicted again, in
    words, and the least loss that counts. Nothing where the truth is not known."""
    scored, table, metric = subject.scored, subject.sample, subject.metric
    if scored is None:
        return {}, "", 0.0
    n_predictions = min(_PREDICTIONS, _KERNEL_VALUES // max(1, len(getattr(subject.learner, "support_", ()))))
    most = min(_ROWS, max(_LEAST_ROWS, n_predictions // (_REPEATS * table.n_columns)))
    parts = _new_parts(folds, most) if subject.is_training else []
    how = "; the model that predicted a row was trained without that row"
    if not parts:
        how = " that the model was trained on" if subject.is_training else " of this table"
        places = np.random.default_rng(0).permutation(len(scored.truth))[:most]
        rows = table.take(subject.scored_places[places])
        parts = [FoldPart(subject.model, rows, scored.truth[places])]
    truth = np.concatenate([part.truth for part in parts])
    if scored.classes is None and np.ptp(truth) == 0:
        return {}, "", 0.0

    def score(changed: Callable[[FoldPart], Table]) -> float:
        found = [
            _predicted(part, changed(part), scored.classes, has_scores=metric.needs != "predictions") for part in parts
        ]
        values, scores = (np.concatenate(each) for each in zip(*found, strict=True))
        return metric.score(ScoredRows(scored.classes, truth, values, scores).judged)

    before = score(lambda part: part.table)
    generator = np.random.default_rng(0)

    def shuffled(name: str) -> float:
        report(Progress("report", 0))  # each takes its time, so a watcher may end it in between
        return score(lambda part: _shuffled(part.table, name, generator))

    names = [name for name in table.names if name not in subject.dropped]
    losses = {name: before - float(np.mean([shuffled(name) for _ in range(_REPEATS)])) for name in names}
    return losses, f"{len(truth):,} rows{how}", _NOTHING * (abs(before) if metric.is_loss else 1.0)


def _shuffled(table: Table, name: str, generator: np.random.Generator) -> Table:
    """Return the table with the cells of one column in another order."""
    values = generator.permutation(table[name].values)
    columns = [replace(column, values=values) if column.name == name else column for column in table]
    return Table(columns, source=table.source, absent_is_zero=table.absent_is_zero)


def _predicted(part: FoldPart, table: Table, classes: list[str] | None, *, has_scores: bool) -> tuple[Any, Any]:
    """Return the predictions, and the score of each class; no scores where they are not needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels that these models have not seen
        features = features_of(part.model, table)
        if has_scores:
            return predictions_of(part.model, features)
        values = np.asarray(part.model.predict(features))
    return (values if classes is None else codes_of(values, classes)), np.zeros((len(values), 0))


def _new_parts(folds: ReportFolds, most: int) -> list[FoldPart]:
    """Return models with rows that are new to them, as many rows as wanted; none where a fit failed."""
    parts: list[FoldPart] = []
    for number in range(N_FOLDS):
        part = folds.fitted(number)
        if part is None:
            return []
        n = min(most, len(part.truth))
        parts.append(FoldPart(part.model, part.table.take(np.arange(n)), part.truth[:n]))
        most -= n
        if most == 0:
            break
    return parts
