"""The importance of columns: by permutation, by the model's own weights or gains, by the gain of each column alone.

On training rows a column that identifies them would seem to matter most, as the model has memorised it. So where the
table is that of the training, models with the same settings are fitted and scored on rows that they have not seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.metrics import ACCURACY, R2, Judged, Metric, rarest
from margrove.app.models import features_of
from margrove.app.report.held_out import N_FOLDS, FoldPart, ReportFolds
from margrove.app.report.model_on_table import Subject, codes_of
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.run.progress import Progress, report

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

    @property
    def falls(self) -> str:
        """The loss in words: "accuracy falls", "cost per row rises"."""
        return f"{self.metric.words} {'rises' if self.metric.is_loss else 'falls'}"

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
    metric = _metric_of(subject)
    losses, rows_words = ({}, "") if is_many else _losses(subject, folds, metric)
    gains = {} if is_many else _gains(subject)
    columns = [
        ColumnImportance(name, losses.get(name), own.get(name), *gains.get(name, (None, None, None)))
        for name in (own if is_many else names)
    ]
    for by in ("loss", "own", "gain"):
        values = [getattr(column, by) or 0.0 for column in columns]
        if max(values, default=0.0) > (_NOTHING if by == "loss" else 0.0):
            columns.sort(key=lambda column: -(getattr(column, by) or 0.0))
            return Importances(tuple(columns), by, rows_words, metric)
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


def _metric_of(subject: Subject) -> Metric:
    """Return the metric of the loss: that of the training if it needs predictions of classes alone, else accuracy; of
    numbers R²."""
    metric = subject.history.metric
    if subject.classes is None:
        return R2
    return ACCURACY if metric is None or metric.needs != "predictions" else metric


def _losses(subject: Subject, folds: ReportFolds, metric: Metric) -> tuple[dict[str, float], str]:
    """Shuffle each column a few times; return the loss of the score for each, and the rows that were predicted again,
    in words. Nothing where the truth is not known."""
    scored, table = subject.scored, subject.sample
    if scored is None:
        return {}, ""
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
    spread = float(((truth - truth.mean()) ** 2).sum()) if scored.classes is None else 1.0
    if spread == 0:
        return {}, ""

    judged = Judged(truth, truth, rare=rarest(np.bincount(truth.astype(np.intp))) if scored.classes else 0)

    def score(predicted: list[NDArray[Any]]) -> float:
        found = np.concatenate(predicted)
        if scored.classes is None:
            return 1 - float(((truth - found) ** 2).sum()) / spread
        classes = np.array(scored.classes)
        return metric.score(replace(judged, values=codes_of(found, scored.classes), classes=classes))

    before = score([_predicted(part, part.table) for part in parts])
    generator = np.random.default_rng(0)

    def shuffled(name: str) -> float:
        report(Progress("report", 0))  # each takes its time, so a watcher may end it in between
        return score([_predicted(part, _shuffled(part.table, name, generator)) for part in parts])

    names = [name for name in table.names if name not in subject.dropped]
    losses = {name: before - float(np.mean([shuffled(name) for _ in range(_REPEATS)])) for name in names}
    return losses, f"{len(truth):,} rows{how}"


def _shuffled(table: Table, name: str, generator: np.random.Generator) -> Table:
    """Return the table with the cells of one column in another order."""
    values = generator.permutation(table[name].values)
    columns = [replace(column, values=values) if column.name == name else column for column in table]
    return Table(columns, source=table.source, absent_is_zero=table.absent_is_zero)


def _predicted(part: FoldPart, table: Any) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels that these models have not seen
        return np.asarray(part.model.predict(features_of(part.model, table)))


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
