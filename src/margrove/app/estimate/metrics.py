"""The metrics by which models are chosen and judged: ``--metric NAME``.

A score is always larger for a better model: of a loss it is the negative. `Metric.show` prints the natural value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score, log_loss, roc_auc_score

from margrove.errors import ParameterError, did_you_mean

RARE = 0.1  # the share of rows of the rarer of two classes below which accuracy says little
_MEAN = 0.5  # the quantile of which the pinball loss is half the absolute error


@dataclass(frozen=True)
class Judged:
    """Predictions of rows whose target is known."""

    truth: NDArray[Any]  # (n,)
    values: NDArray[Any]  # (n,) predicted
    scores: NDArray[np.float64] | None = None  # (n, K): decision values, or probabilities
    classes: NDArray[Any] | None = None  # (K,)
    rare: int = 1  # the place of the rarer of two classes, which F1 and average precision are about

    def take(self, rows: NDArray[np.intp]) -> Judged:
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, truth=self.truth[rows], values=self.values[rows], scores=scores)


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

    def class_weights(self, classes: NDArray[Any]) -> dict[Any, float] | None:
        """Return what an error on a row of each class costs on average; None for a metric that is not of costs."""
        if self.costs is None:
            return None
        names, labels = classes.astype(str).tolist(), classes.tolist()
        of = {true: [self.costs.get((true, other), 1.0) for other in names if other != true] for true in names}
        return {label: max(0.0, float(np.mean(of[true] or [1.0]))) for label, true in zip(labels, names, strict=True)}

    def constant(self, judged: Judged) -> tuple[float, Any]:
        """Return the best score of a constant prediction, and its class. Its scores are the shares of the classes."""
        assert judged.classes is not None
        shares = (judged.truth[:, None] == judged.classes).mean(axis=0)
        scores = np.broadcast_to(shares, (len(judged.truth), len(shares)))
        n, found = len(judged.truth), []
        for place in np.argsort(-shares, kind="stable"):
            label = judged.classes[place]
            constant = replace(judged, values=np.full(n, label, judged.truth.dtype), scores=scores)
            found.append((self.score(constant), label))
        return max(found, key=lambda pair: pair[0])


def _ovr(of: Callable[..., float], judged: Judged) -> float:
    """Return a score of one class against the rest: of the rarer of two classes, or the mean over all."""
    assert judged.classes is not None
    assert judged.scores is not None
    places = [judged.rare] if len(judged.classes) == 2 else range(len(judged.classes))
    found = [of(judged.truth == judged.classes[place], judged.scores[:, place]) for place in places]
    return float(np.mean(found))


def _auc(is_it: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    return 0.5 if is_it.all() or not is_it.any() else float(roc_auc_score(is_it, scores))


def _average_precision(is_it: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    return float(average_precision_score(is_it, scores)) if is_it.any() else 0.0


def _f1(judged: Judged) -> float:
    assert judged.classes is not None
    if len(judged.classes) == 2:
        is_it, is_predicted = (each == judged.classes[judged.rare] for each in (judged.truth, judged.values))
        return float(f1_score(is_it, is_predicted, zero_division=0.0))
    return float(f1_score(judged.truth, judged.values, average="macro", zero_division=0.0))


def _balanced(judged: Judged) -> float:
    right = judged.truth == judged.values
    _, codes = np.unique(judged.truth, return_inverse=True)
    return float(np.mean(np.bincount(codes, right) / np.bincount(codes)))


def _cost(costs: Mapping[tuple[str, str], float], judged: Judged) -> float:
    truth, values = judged.truth.astype(str), judged.values.astype(str)
    total = float(np.count_nonzero(truth != values))  # an error without a cost of its own costs 1
    for (true, predicted), cost in costs.items():
        total += (cost - (true != predicted)) * np.count_nonzero((truth == true) & (values == predicted))
    return -total / len(truth)


def _pinball(quantile: float, judged: Judged) -> float:
    off = judged.truth - judged.values
    return -float(np.mean(np.maximum(quantile * off, (quantile - 1) * off)))


ACCURACY = Metric("accuracy", "accuracy", lambda judged: np.mean(judged.truth == judged.values), is_share=True)
BALANCED = Metric("balanced_accuracy", "balanced accuracy", _balanced, is_share=True, is_balanced=True)
R2 = Metric(
    "r2", "R²", lambda judged: np.nan, is_of_numbers=True
)  # of `margrove.app.estimate.numbers`: it needs the training mean
OF_CLASSES = {
    metric.name: metric
    for metric in (
        ACCURACY,
        BALANCED,
        Metric("f1", "F1", _f1),
        Metric("roc_auc", "ROC AUC", partial(_ovr, _auc), "scores"),
        Metric("average_precision", "average precision", partial(_ovr, _average_precision), "scores"),
        Metric(
            "log_loss",
            "log loss",
            lambda judged: -log_loss(judged.truth, judged.scores, labels=judged.classes),
            "probabilities",
            is_loss=True,
        ),
    )
}
OF_NUMBERS = {
    metric.name: metric
    for metric in (
        R2,
        Metric(
            "mae",
            "mean absolute error",
            lambda judged: -np.mean(np.abs(judged.truth - judged.values)),
            is_loss=True,
            is_of_numbers=True,
        ),
        Metric(
            "rmse",
            "root mean squared error",
            lambda judged: -np.sqrt(np.mean((judged.truth - judged.values) ** 2)),
            is_loss=True,
            is_of_numbers=True,
        ),
    )
}
FORMS = (*OF_CLASSES, "cost:TRUE>PREDICTED=COST,…", *OF_NUMBERS, "pinball:QUANTILE")


def metric_named(text: str) -> Metric:
    """Return the metric of that name; raise `ParameterError` if there is none."""
    name, _, details = text.partition(":")
    name = name.strip().lower().replace("-", "_").replace(" ", "_")
    if name == "cost":
        costs = _costs(text, details)
        return Metric(text, "cost per row", partial(_cost, costs), is_loss=True, costs=costs)
    if name == "pinball":
        quantile = _quantile(text, details)
        return Metric(
            text, f"pinball loss at {quantile:g}", partial(_pinball, quantile), is_loss=True, is_of_numbers=True
        )
    known = OF_CLASSES | OF_NUMBERS
    if details or name not in known:
        raise ParameterError(f"--metric is {text!r}; {did_you_mean(name, known)}It must be one of {', '.join(FORMS)}.")
    return known[name]


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
        values, scores = np.asarray(model.predict(X)), None
        if metric.needs != "predictions":
            scores = np.asarray(model.decision_function(X), np.float64)
            scores = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
        classes, counts = np.unique(y, return_counts=True)
        return metric.score(Judged(y, values, scores, classes, rarest(counts)))

    return score
