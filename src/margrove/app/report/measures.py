"""Measures of predictions: scores with intervals, confusions, curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.classes import classes_by
from margrove.app.estimate.intervals import wilson
from margrove.app.estimate.metrics import ACCURACY, Metric
from margrove.app.estimate.numbers import NUMBERS
from margrove.app.estimate.task import Predicted
from margrove.app.history import ScoredRows

_MOST_POINTS = 120  # of a curve: more cannot be seen
_BINS = 10  # of a calibration
_LEAST_IN_BIN = 5  # rows: of fewer a share means nothing

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Quality:
    """The score of a model, beside that of a constant prediction."""

    measure: str  # "R²", or the words of a metric of classes
    value: float
    low: float | None
    high: float | None
    baseline: float | None
    baseline_class: str | None = None
    typical_error: float | None = None  # of a regressor: the mean absolute error
    baseline_error: float | None = None  # of a regressor: that of always predicting the median
    other: Mapping[str, float] = field(default_factory=dict)  # of a regressor: by the metric it was chosen by

    @property
    def interval_words(self) -> str:
        """The 95 % confidence interval."""
        if self.low is None or self.high is None:
            return ""
        if not self.is_share:
            digits = 2 if self.measure == "R²" else 3
            return f"{self.low:.{digits}f} to {self.high:.{digits}f}"
        return f"{100 * self.low:.1f} to {100 * self.high:.1f} %"

    @property
    def is_share(self) -> bool:
        """The value is shown in per cent."""
        return self.measure.endswith("accuracy")


def quality_of(scored: ScoredRows, n_rounds: int = 1, metric: Metric | None = None) -> Quality | None:
    """Return the score of classes, by default accuracy, or R², with its interval; None if all targets are the same
    number. ``n_rounds`` is the number of models that predicted, each for rows that the others were trained on."""
    truth, n, judged = scored.truth, len(scored.truth), scored.judged
    if scored.classes is None:
        beside = {"means": np.full(n, truth.mean()), "medians": np.full(n, np.median(truth))}
        numbers = NUMBERS.scored(truth, [Predicted(np.arange(n), scored.predicted, "", None, **beside)], n_rounds, 0)
        if numbers["value"] is None:
            return None
        (low, high), off = numbers["interval"] or (None, None), numbers["deviation"]
        is_other = metric is not None and metric.name not in ("r2", "mae")
        other = {metric.words: metric.natural(metric.score(judged))} if metric is not None and is_other else {}
        return Quality("R²", numbers["value"], low, high, 0.0, None, off.mean_absolute_error, off.of_median, other)
    if metric is None or not metric.can_score(judged):
        metric = ACCURACY
    found = classes_by(metric.name).judged([judged], judged, n_rounds)
    low, high = sorted(map(metric.natural, found["interval"])) if found["interval"] else (None, None)
    value, baseline = metric.natural(found["value"]), metric.natural(found["baseline"])
    return Quality(metric.words, value, low, high, baseline, found["baseline_class"])


def confusion(scored: ScoredRows) -> NDArray[np.int64]:
    """Count rows by true class (down) and predicted class (across)."""
    k = len(scored.classes or ())
    return np.bincount(scored.truth * k + scored.predicted, minlength=k * k).reshape(k, k)


@dataclass(frozen=True)
class ClassQuality:
    """Rows, recall and precision of one class."""

    name: str
    n_rows: int
    recall: float | None
    precision: float | None


def class_qualities(scored: ScoredRows) -> list[ClassQuality]:
    """Return rows, recall and precision of each class."""
    assert scored.classes is not None
    counts = confusion(scored)
    found = []
    for code, name in enumerate(scored.classes):
        n_rows, n_predicted, n_right = int(counts[code].sum()), int(counts[:, code].sum()), int(counts[code, code])
        recall = n_right / n_rows if n_rows else None
        found.append(ClassQuality(name, n_rows, recall, n_right / n_predicted if n_predicted else None))
    return found


@dataclass(frozen=True, eq=False)
class Ranking:
    """The ROC and precision-recall curves of one class, and the areas below them."""

    name: str
    share: float  # of the rows that are of the class
    roc: Curve  # false positive rate, true positive rate
    auc: float
    pr: Curve  # recall, precision
    average_precision: float


def rankings(scored: ScoredRows) -> list[Ranking]:
    """Return the curves of each class that some rows are of and others not; of two classes, of the second only."""
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    if scored.classes is None or scored.scores is None:
        return []
    found = []
    for code in range(1 if len(scored.classes) == 2 else 0, len(scored.classes)):
        is_it, score = scored.truth == code, scored.scores[:, code]
        if is_it.all() or not is_it.any():
            continue
        false_alarms, hits, _ = roc_curve(is_it, score)
        precision, recall, _ = precision_recall_curve(is_it, score)
        roc, pr = thinned(false_alarms, hits), thinned(recall[::-1], precision[::-1])
        auc, mean_precision = float(roc_auc_score(is_it, score)), float(average_precision_score(is_it, score))
        found.append(Ranking(scored.classes[code], float(is_it.mean()), roc, auc, pr, mean_precision))
    return found


def thinned(x: NDArray[Any], y: NDArray[Any], most: int = _MOST_POINTS) -> Curve:
    """Return some of many points, evenly along the curve, with the first and the last."""
    if len(x) > most:
        length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
        places = np.unique(np.searchsorted(length, np.linspace(0, length[-1], most)).clip(0, len(x) - 1))
        places = np.unique(np.concatenate([[0], places, [len(x) - 1]]))
        x, y = x[places], y[places]
    return np.asarray(x, np.float64), np.asarray(y, np.float64)


@dataclass(frozen=True)
class Bin:
    """Rows with about the same probability of the predicted class; the names of the fields are keys of the report."""

    predicted: float  # the mean probability
    observed: float  # the share of rows that are predicted correctly
    low: float
    high: float
    n_rows: int


def calibration(scored: ScoredRows) -> list[Bin]:
    """Return the calibration: rows by the probability of the predicted class."""
    if not scored.has_probabilities or scored.scores is None:
        return []
    sure = scored.scores[np.arange(len(scored.predicted)), scored.predicted]
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    found = []
    for number in range(_BINS):
        inside = bins == number
        n, n_right = int(inside.sum()), int(scored.is_right[inside].sum())
        if n >= _LEAST_IN_BIN:
            found.append(Bin(float(sure[inside].mean()), n_right / n, *wilson(n_right, n), n))
    return found
