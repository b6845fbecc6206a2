"""Factors of the classes, tuned on held-out rows for a metric of predictions: the class of the largest p_k c_k is
predicted.

Of two classes that is a threshold: the second is predicted where its probability is above c_0/(c_0 + c_1). The metric
changes only where the threshold passes the probability of a row, so all intervals between neighbouring rows are tried
(beyond `_MOST_CUTS` of them first so many at equal distances, then all between the neighbours of the best one). The
threshold is the middle, in log-odds, of the widest of the best intervals.

Of more classes log c_k is chosen in the same way for one class after the other, until none improves the metric: from
c = 1 and from c_k = 1 / (the share of class k), and the better result is kept.

Where the metric does not gain more than one standard error of the gain (of 100 bootstrap samples), c = 1 is kept.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from margrove.errors import ParameterError, shown

_MOST_CUTS = 1000  # of two classes; of more, of all classes together: a metric takes about a millisecond
_ROUNDS = 5  # over the classes
_SAMPLES = 100
_EQUAL = 1e-12  # values of a metric that differ by less are equal
_LEAST = 1e-300  # of a probability, so that its logarithm is finite

Codes: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]


class _Told(ClassifierMixin, BaseEstimator):
    """A classifier of 0 … K − 1 whose rows are its predictions, for scikit-learn's scorers."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes, self.classes_ = n_classes, np.arange(n_classes)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the rows."""
        return X.ravel()


@dataclass(frozen=True)
class Metric:
    """A metric of predictions of given rows, larger is better.

    ``tuned_for`` is the name of a scorer of scikit-learn's, which gets the classes as 0 … K − 1: "f1" is that of the
    second of two. Or a function ``(y_true, y_pred) -> float`` of labels. Both depend on the numbers of rows of each
    true and predicted class alone, so a confusion matrix is all that they are given.
    """

    tuned_for: Any
    codes: Codes  # the true class of each row
    classes: NDArray[Any]
    weight: Floats

    def __call__(self, predicted: Codes, times: NDArray[np.int64] | int = 1) -> float:
        """Return the metric of these predictions, with each row that many times."""
        k, metric = len(self.classes), self.tuned_for
        table = np.bincount(self.codes * k + predicted, weights=self.weight * times, minlength=k * k)
        cells = np.flatnonzero(table)
        true, told, weight = cells // k, cells % k, table[cells]
        if isinstance(metric, str):
            return float(get_scorer(metric)(_Told(k), told[:, None], true, sample_weight=weight))
        true, told = self.classes[true], self.classes[told]
        if _takes_weights(metric):
            return float(metric(true, told, sample_weight=weight))
        return float(metric(true.repeat(weight.astype(int)), told.repeat(weight.astype(int))))

    def check(self) -> None:
        """Raise `ParameterError` if the metric cannot judge predictions of these classes."""
        is_weighted = (self.weight != self.weight.round()).any()
        if is_weighted and not isinstance(self.tuned_for, str) and not _takes_weights(self.tuned_for):
            raise ParameterError("tuned_for is a function without sample_weight, but sample_weight is given.")
        try:
            value = self(self.codes)
        except (AttributeError, TypeError, ValueError) as error:
            words = "it cannot judge predictions of these classes"
            raise ParameterError(f"tuned_for is {shown(self.tuned_for)}; {words}: {error}") from error
        if not np.isfinite(value):
            raise ParameterError(f"tuned_for is {shown(self.tuned_for)}, which returned {value}.")


def _takes_weights(metric: Any) -> bool:
    try:
        return "sample_weight" in signature(metric).parameters
    except ValueError:  # a builtin
        return False


def tuned_factors(metric: Metric, p: Floats) -> tuple[Floats, Floats]:
    """Return the factors, with mean 1, and the metric on these rows without and with them. ``p`` is (n, K)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such as of a class that is never predicted
        return _tuned(metric, np.log(np.maximum(p, _LEAST)))


def _tuned(metric: Metric, log_p: Floats) -> tuple[Floats, Floats]:
    k = log_p.shape[1]
    share = np.bincount(metric.codes, weights=metric.weight, minlength=k) / metric.weight.sum()
    plain = log_p.argmax(axis=1)
    before, best, chosen = metric(plain), -np.inf, np.zeros(k)
    for start in (np.zeros(k), -np.log(share))[: k - 1]:  # of two classes every start leads to the same
        c, value = _ascended(metric, log_p, start)
        if value > best + _EQUAL:
            best, chosen = value, c
    tuned = (log_p + chosen).argmax(axis=1)
    draws = np.random.default_rng(0)
    samples = (draws.poisson(1.0, len(plain)) for _ in range(_SAMPLES))
    gains = [metric(tuned, times) - metric(plain, times) for times in samples if times.any()]
    if not best - before > max(float(np.std(gains)), _EQUAL):
        return np.ones(k), np.array([before, before])
    factors = np.exp(chosen - chosen.max())
    return factors / factors.mean(), np.array([before, best])


def _ascended(metric: Metric, log_p: Floats, c: Floats) -> tuple[Floats, float]:
    """Return log c that no single class improves, and the metric."""
    k, best = len(c), -np.inf
    for _ in range(_ROUNDS):
        before = best
        for label in range(k) if k > 2 else (1,):
            rivals = log_p + c
            rivals[:, label] = -np.inf
            found, value = _best_cut(metric, rivals.max(axis=1) - log_p[:, label], label, rivals.argmax(axis=1))
            if value > best + _EQUAL:
                c, best = np.where(np.arange(k) == label, found, c), value
        if k == 2 or best <= before + _EQUAL:
            break
    return c, best


def _best_cut(metric: Metric, switch: Floats, label: int, rival: Codes) -> tuple[float, float]:
    """Return the log c_k of a class with the best metric, and the metric. A row is predicted as the class if log c_k is
    above its ``switch``, otherwise as its rival."""
    values = np.unique(switch)
    edges = np.concatenate([[values[0] - 1], values, [values[-1] + 1]])  # interval i is from edge i to edge i + 1
    first, last, most = 0, len(values), max(2, _MOST_CUTS // max(1, len(metric.classes) - 1))
    while True:
        tried = np.unique(np.linspace(first, last, most).round().astype(int))
        found = np.array([metric(np.where(switch <= edges[i], label, rival)) for i in tried])
        if len(tried) == last - first + 1:
            break
        place = int(found.argmax())
        first, last = tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]
    is_best = np.concatenate([[False], found >= found.max() - _EQUAL, [False]])
    starts, ends = first + np.flatnonzero(np.diff(is_best.astype(int))).reshape(-1, 2).T
    widest = np.argmax(edges[ends] - edges[starts])
    return float(edges[starts[widest]] + edges[ends[widest]]) / 2, float(found.max())
