"""The metrics by which models are chosen and judged: ``--metric NAME``.

A score is always larger for a better model: of a loss it is the negative. `Metric.show` prints the natural value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from margrove.calibrate.threshold import FORMULAS, f1_of_classes
from margrove.errors import ParameterError, did_you_mean
from margrove.multiclass.problem import last_step

RARE = 0.1  # the share of rows of the rarer of two classes below which accuracy says little
_MEAN = 0.5  # the quantile of which the pinball loss is half the absolute error

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judged:
    """Predictions of rows whose target is known."""

    truth: NDArray[Any]  # (n,) places of classes, or numbers
    values: NDArray[Any]  # (n,) predicted, the same
    scores: Floats | None = None  # (n, K): decision values, or probabilities
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))  # (K,)
    rare: int = 1  # the place of the rarer of two classes, which F1 and average precision are about
    means: Any = 0.0  # of numbers: that of the training targets, of each row

    @classmethod
    def of(cls, labels: NDArray[Any], truth: Any, values: Any, scores: Floats | None = None) -> Judged:
        """Return predictions of some rows of a table with these labels."""
        classes, counts = np.unique(labels, return_counts=True)
        return cls(np.searchsorted(classes, truth), np.searchsorted(classes, values), scores, classes, rarest(counts))

    @property
    def table(self) -> Floats:
        """The confusion matrix, (1, K, K)."""
        k = len(self.classes)
        return np.bincount(self.truth * k + self.values, minlength=k * k).reshape(1, k, k).astype(np.float64)

    def take(self, rows: NDArray[np.intp]) -> Judged:
        scores, means = None if self.scores is None else self.scores[rows], self.means
        means = means[rows] if isinstance(means, np.ndarray) else means
        return replace(self, truth=self.truth[rows], values=self.values[rows], scores=scores, means=means)


def rarest(counts: NDArray[np.int64]) -> int:
    """Return the place of the class with the fewest rows, the last of equals."""
    return len(counts) - 1 - int(np.argmin(counts[::-1]))


@dataclass(frozen=True)
class Metric:
    """A score of predictions."""

    name: str  # as typed after ``--metric``
    words: str
    of: Callable[[Judged], float]
    needs: Literal["predictions", "scores", "probabilities"] = "predictions"
    is_share: bool = False  # printed in per cent
    is_loss: bool = False
    is_of_numbers: bool = False
    costs: Mapping[tuple[str, str], float] | None = None  # of predicting one class for a row of another
    is_balanced: bool = False  # all classes count the same, however few rows they have

    @property
    def title(self) -> str:
        return self.words if self.words[:1].isupper() else self.words[:1].upper() + self.words[1:]

    def natural(self, score: float) -> float:
        """Return the value that people know: of a loss the loss."""
        return -score if self.is_loss else score

    def show(self, score: float, decimals: int = 1) -> str:
        """Return the natural value as text."""
        if self.is_share:
            return f"{100 * score:.{decimals}f} %"
        value = self.natural(score)
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"

    def score(self, judged: Judged) -> float:
        """Return the score; raise `ParameterError` if the predictions have no scores, or no probabilities."""
        if self.needs != "predictions":
            found = judged.scores
            is_probable = found is not None and found.min() >= 0 and np.allclose(found.sum(axis=1), 1.0, atol=1e-6)
            if found is None or (self.needs == "probabilities" and not is_probable):
                raise ParameterError(f"the learner has no {self.needs}, and {self.words} needs them.")
        return float(self.of(judged))

    def can_score(self, judged: Judged, *, is_required: bool = False) -> bool:
        """Return whether there are the scores, and the classes, that the metric needs; raise if it is required."""
        try:
            self.score(judged)
        except ParameterError:
            if is_required:
                raise
            return False
        return True

    def class_weights(self, classes: NDArray[Any]) -> dict[Any, float] | None:
        """Return what an error on a row of each class costs on average; None for a metric that is not of costs."""
        if self.costs is None:
            return None
        means = cost_matrix(self.costs, classes).sum(axis=1) / max(1, len(classes) - 1)
        return dict(zip(classes.tolist(), np.maximum(means, 0.0).tolist(), strict=True))

    def constant(self, judged: Judged) -> tuple[float, Any]:
        """Return the best score of a constant prediction, and its class. Its scores are the shares of the classes."""
        n, k = len(judged.truth), len(judged.classes)
        shares = np.bincount(judged.truth, minlength=k) / n
        constant = replace(judged, scores=np.broadcast_to(shares, (n, k)))
        found = [
            (self.score(replace(constant, values=np.full(n, place))), judged.classes[place])
            for place in np.argsort(-shares, kind="stable")
        ]
        return max(found, key=lambda pair: pair[0])


def cost_matrix(costs: Mapping[tuple[str, str], float], classes: NDArray[Any]) -> Floats:
    """Return the cost of each error, [true, predicted]: 1 unless it has a cost of its own; raise `ParameterError` if
    there is no such class."""
    matrix, names = 1.0 - np.eye(len(classes)), classes.astype(str).tolist()
    for pair, cost in costs.items():
        for name in pair:
            if name not in names:
                known = ", ".join(map(repr, names[:20]))
                raise ParameterError(f"--metric cost: there is no class {name!r}. The classes are {known}.")
        matrix[names.index(pair[0]), names.index(pair[1])] = cost
    return matrix


def auc_of(ranks: Floats, is_it: NDArray[np.bool_]) -> Floats:
    """Return the ROC AUC of each class against the rest, (K,), from the ranks of its scores and its rows, (n, K); NaN
    of a class with all rows, or with none."""
    n, n_rest = is_it.sum(axis=0), (~is_it).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(((ranks * is_it).sum(axis=0) - n * (n + 1) / 2) / (n * n_rest))


def _each(of: Callable[[Floats, NDArray[np.bool_]], Floats], otherwise: float, judged: Judged) -> float:
    """Return a score of one class against the rest: of the rarer of two classes, or the mean over all; a class with
    all rows, or with none, has the score ``otherwise``."""
    assert judged.scores is not None
    places = [judged.rare] if len(judged.classes) == 2 else np.arange(len(judged.classes))
    found = of(judged.scores[:, places], judged.truth[:, None] == places)
    return float(np.where(np.isnan(found), otherwise, found).mean())


def _average_precision(scores: Floats, is_it: NDArray[np.bool_]) -> Floats:
    """Return Σ (Rᵢ − Rᵢ₋₁) Pᵢ for each class, over recall and precision at each score; NaN of a class without rows."""
    found = []
    for f, own in zip(scores.T, is_it.T, strict=True):
        order = np.argsort(-f, kind="stable")
        hits, is_last = np.cumsum(own[order]), np.append(np.diff(f[order]) != 0, True)  # of equal scores the last
        precision = hits[is_last] / (1 + np.flatnonzero(is_last))
        found.append(np.diff(hits[is_last], prepend=0) @ precision / hits[-1] if own.any() else np.nan)
    return np.array(found)


def _f1(judged: Judged) -> float:
    found = f1_of_classes(judged.table)[0]
    is_there = np.isin(np.arange(len(found)), [judged.truth, judged.values])
    return float(found[judged.rare] if len(found) == 2 else found[is_there].mean())


def _log_loss(judged: Judged) -> float:
    assert judged.scores is not None
    own = judged.scores[np.arange(len(judged.truth)), judged.truth]
    return float(np.log(np.clip(own, np.finfo(np.float64).eps, 1.0)).mean())


def _r2(judged: Judged) -> float:
    """Return 1 − Σ(y − ŷ)²/Σ(y − m)², NaN where all y are m."""
    spread = float(((judged.truth - judged.means) ** 2).sum())
    return 1 - float(((judged.truth - judged.values) ** 2).sum()) / spread if spread > 0 else np.nan


def _pinball(quantile: float, judged: Judged) -> float:
    off = judged.truth - judged.values
    return -float(np.mean(np.maximum(quantile * off, (quantile - 1) * off)))


_share, _loss = partial(Metric, is_share=True), partial(Metric, is_loss=True, is_of_numbers=True)
ACCURACY = _share("accuracy", "accuracy", lambda judged: np.mean(judged.truth == judged.values))
BALANCED = _share(
    "balanced_accuracy", "balanced accuracy", lambda j: FORMULAS["balanced_accuracy"](j.table)[0], is_balanced=True
)
R2 = Metric("r2", "R²", _r2, is_of_numbers=True)
OF_CLASSES = (
    ACCURACY,
    BALANCED,
    Metric("f1", "F1", _f1),
    Metric("roc_auc", "ROC AUC", partial(_each, lambda f, is_it: auc_of(rankdata(f, axis=0), is_it), 0.5), "scores"),
    Metric("average_precision", "average precision", partial(_each, _average_precision, 0.0), "scores"),
    Metric("log_loss", "log loss", _log_loss, "probabilities", is_loss=True),
)
OF_NUMBERS = (
    R2,
    _loss("mae", "mean absolute error", lambda j: -np.mean(np.abs(j.truth - j.values))),
    _loss("rmse", "root mean squared error", lambda j: -np.sqrt(np.mean((j.truth - j.values) ** 2))),
)
_KNOWN = {metric.name: metric for metric in (*OF_CLASSES, *OF_NUMBERS)}
_COSTS, _QUANTILE = "cost:TRUE>PREDICTED=COST,…", "pinball:QUANTILE"
FORMS = (*(metric.name for metric in OF_CLASSES), _COSTS, *(metric.name for metric in OF_NUMBERS), _QUANTILE)


def metric_named(text: str) -> Metric:
    """Return the metric of that name; raise `ParameterError` if there is none."""
    name, _, details = text.partition(":")
    name = name.strip().lower().replace("-", "_").replace(" ", "_")
    if name == "cost":
        costs = _costs(text, details)
        return Metric(
            text,
            "cost per row",
            lambda judged: -float((judged.table * cost_matrix(costs, judged.classes)).sum()) / len(judged.truth),
            is_loss=True,
            costs=costs,
        )
    if name == "pinball":
        quantile = _quantile(text, details)
        return _loss(text, f"pinball loss at {quantile:g}", partial(_pinball, quantile))
    if details or name not in _KNOWN:
        raise ParameterError(
            f"--metric is {text!r}; it must be one of {', '.join(FORMS)}. {did_you_mean(name, _KNOWN)}".rstrip()
        )
    return _KNOWN[name]


def _costs(text: str, details: str) -> dict[tuple[str, str], float]:
    costs: dict[tuple[str, str], float] = {}
    for part in details.split(","):
        match = re.fullmatch(r"\s*(.+?)\s*>\s*(.+?)\s*=\s*(-?[\d.]+(?:e-?\d+)?)\s*", part)
        if match is None:
            raise ParameterError(
                f"--metric is {text!r}; a cost matrix is written as cost:TRUE>PREDICTED=COST,…, such as "
                "cost:Yes>No=10,No>Yes=1. Errors that are not named cost 1."
            )
        costs[match[1], match[2]] = float(match[3])
    return costs


def _quantile(text: str, details: str) -> float:
    try:
        quantile = float(details or _MEAN)
    except ValueError:
        quantile = 0.0
    if not 0 < quantile < 1:
        raise ParameterError(f"--metric is {text!r}; the quantile of pinball must be between 0 and 1: pinball:0.9.")
    return quantile


def as_scorer(metric: Metric) -> Any:
    """Return a scorer for a search; None for the search's own score, which is accuracy or R²."""
    if metric in (ACCURACY, R2):
        return None

    def score(model: Any, X: Any, y: NDArray[Any]) -> float:
        values = np.asarray(model.predict(X))
        if metric.is_of_numbers:
            return metric.score(Judged(y, values))
        judged = Judged.of(np.concatenate([model.classes_, y]), y, values)  # one more of each changes no order
        scores = None if metric.needs == "predictions" else scores_of(model, X, judged.classes)
        return metric.score(replace(judged, scores=scores))

    return score


def scores_of(model: Any, X: Any, classes: NDArray[Any], *, is_calibrated: bool = True) -> Floats | None:
    """Return a column of scores for each class: probabilities where the model has them, or decision values (first, if
    probabilities are not ``is_calibrated``), else None; for a class that the model has not met, the least there is."""
    methods = ("predict_proba", "decision_function")[:: 1 if is_calibrated else -1]
    method = next((name for name in methods if hasattr(model, name)), None)
    if method is None:
        return None
    values = np.asarray(getattr(model, method)(X), np.float64)
    values = np.column_stack([-values, values]) if values.ndim == 1 else values
    scores = np.full((len(values), len(classes)), values.min(initial=0.0))
    scores[:, np.searchsorted(classes, last_step(model).classes_)] = values
    return scores
