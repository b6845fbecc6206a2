"""Factors of the classes, tuned on held-out rows for a metric of predictions: the class of the largest p_k c_k is
predicted.

Of two classes that is a threshold: the second is predicted where its probability is above c_0/(c_0 + c_1). The metric
changes only where the threshold passes the probability of a row, so all intervals between neighbouring rows are tried.
The threshold is the middle, in log-odds, of the widest of the best intervals.

Of more classes log c_k is chosen in the same way for one class after the other, until none improves the metric: from
c = 1 and from c_k = 1 / (the share of class k), and the better result is kept.

Where the metric does not gain more than √(K − 1) standard errors of the gain (of 100 bootstrap samples), c = 1 is kept:
K − 1 numbers that are chosen for the best gain find about so much in noise.

A metric is computed from confusion matrices, T[true, predicted]: the usual ones here, for all intervals at once, any
other by calls that take milliseconds. For these, and where all matrices would not fit into `_MOST_CELLS`, intervals at
equal distances are tried first and then those around the best one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from margrove.errors import ParameterError, shown

_MOST_CELLS = 1 << 18  # of the matrices of one pass
_MOST_CALLS = 50  # of a metric that is called for each matrix, in one pass
_ROUNDS = 5  # over the classes
_SAMPLES = 100
_EQUAL = 1e-12  # values of a metric that differ by less are equal
_LEAST = 1e-300  # of a probability, so that its logarithm is finite

Codes: TypeAlias = NDArray[np.intp]
Floats: TypeAlias = NDArray[np.float64]


def _share(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, 0 where there is nothing."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _hits(tables: Floats) -> Floats:
    return np.diagonal(tables, axis1=1, axis2=2)


def _recalls(tables: Floats) -> Floats:
    return _share(_hits(tables), tables.sum(axis=2))


def f1_of_classes(tables: Floats) -> Floats:
    """Return the F1 of each class, (m, K)."""
    return _share(2 * _hits(tables), tables.sum(axis=1) + tables.sum(axis=2))


FORMULAS: dict[str, Callable[[Floats], Floats]] = {  # matrices (m, K, K) → values (m,)
    "accuracy": lambda t: _hits(t).sum(axis=1) / t.sum(axis=(1, 2)),
    "balanced_accuracy": lambda t: _recalls(t).sum(axis=1) / (t.sum(axis=2) > 0).sum(axis=1),
    "f1": lambda t: f1_of_classes(t)[:, 1],
    "f1_macro": lambda t: f1_of_classes(t).mean(axis=1),
    "f1_weighted": lambda t: (f1_of_classes(t) * t.sum(axis=2)).sum(axis=1) / t.sum(axis=(1, 2)),
}


class _Given(ClassifierMixin, BaseEstimator):
    """A classifier of 0 … K − 1 whose rows are its predictions, for scikit-learn's scorers."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes, self.classes_ = n_classes, np.arange(n_classes)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the rows."""
        return X.ravel()


@dataclass(frozen=True)
class Metric:
    """A metric of predictions, larger is better: the name of a scorer of scikit-learn's, for which the classes are
    0 … K − 1, so that "f1" is that of the second of two; or a function ``(y_true, y_pred) -> float`` of labels, which
    may take ``sample_weight``."""

    tuned_for: Any
    classes: NDArray[Any]

    @property
    def usual(self) -> Callable[[Floats], Floats] | None:
        """The formula, if it is one of the usual metrics."""
        name, _, label = self.tuned_for.partition(":") if isinstance(self.tuned_for, str) else ("", "", "")
        if label and label in self.classes.astype(str):
            place = self.classes.astype(str).tolist().index(label)
            return lambda t: f1_of_classes(t)[:, place]
        return FORMULAS.get(name) if not label and (name != "f1" or len(self.classes) == 2) else None

    @property
    def takes_weights(self) -> bool:
        """True unless it is a function without ``sample_weight``."""
        try:
            return isinstance(self.tuned_for, str) or "sample_weight" in signature(self.tuned_for).parameters
        except ValueError:  # a builtin
            return False

    def __call__(self, tables: Floats) -> Floats:
        """Return the metric of confusion matrices, (m, K, K)."""
        formula = self.usual
        return np.array([self._called(table) for table in tables]) if formula is None else formula(tables)

    def _called(self, table: Floats) -> float:
        true, predicted = np.nonzero(table)
        weight, metric = table[true, predicted], self.tuned_for
        if isinstance(metric, str):
            if metric.startswith("f1:"):
                raise ValueError(f"there is no class {metric[3:]!r}")
            return float(get_scorer(metric)(_Given(len(table)), predicted[:, None], true, sample_weight=weight))
        if self.takes_weights:
            return float(metric(self.classes[true], self.classes[predicted], sample_weight=weight))
        counts = weight.round().astype(int)
        return float(metric(self.classes[true.repeat(counts)], self.classes[predicted.repeat(counts)]))

    def check(self, codes: Codes, weight: Floats) -> None:
        """Raise `ParameterError` if it cannot judge predictions for rows of these classes."""
        if not self.takes_weights and (weight != weight.round()).any():
            raise ParameterError("tuned_for is a function without sample_weight, but sample_weight is given.")
        try:
            value = float(self(np.diag(np.bincount(codes, weights=weight)).astype(np.float64)[None])[0])
        except (AttributeError, TypeError, ValueError) as error:
            why = "it needs more than predictions" if isinstance(error, AttributeError) else error
            words = "it cannot judge predictions of these classes"
            raise ParameterError(f"tuned_for is {shown(self.tuned_for)}; {words}: {why}") from error
        if not np.isfinite(value):
            raise ParameterError(f"tuned_for is {shown(self.tuned_for)}, which returned {value}.")


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows and the metric of predictions for them."""

    metric: Metric
    codes: Codes  # (n,)
    weight: Floats  # (n,)
    log_p: Floats  # (n, K)

    def table(self, predicted: Codes, times: NDArray[np.int64] | int = 1) -> Floats:
        """Return the confusion matrix, with each row that many times, (1, K, K)."""
        k = self.log_p.shape[1]
        cells = np.bincount(self.codes * k + predicted, weights=self.weight * times, minlength=k * k)
        return cells.astype(np.float64).reshape(1, k, k)

    def ascended(self, c: Floats) -> tuple[Floats, float]:
        """Return log c that no single class improves, and the metric."""
        k, best = len(c), -np.inf
        for _ in range(_ROUNDS):
            before = best
            for label in range(k) if k > 2 else (1,):
                rivals = self.log_p + c
                rivals[:, label] = -np.inf
                switch = rivals.max(axis=1) - self.log_p[:, label]
                found, value = self._best_cut(switch, label, rivals.argmax(axis=1))
                if value > best + _EQUAL:
                    c, best = np.where(np.arange(k) == label, found, c), value
            if k == 2 or best <= before + _EQUAL:
                break
        return c, best

    def _best_cut(self, switch: Floats, label: int, rival: Codes) -> tuple[float, float]:
        """Return the log c of a class with the best metric, and the metric. A row is predicted as the class if log c is
        above its ``switch``, otherwise as its rival."""
        values, rank = np.unique(switch, return_inverse=True)
        edges = np.concatenate([[values[0] - 1], values, [values[-1] + 1]])  # interval i is from edge i to edge i + 1
        first, last, n_cells = 0, len(values), self.log_p.shape[1] ** 2
        most = max(3, _MOST_CALLS if self.metric.usual is None else _MOST_CELLS // n_cells)
        while True:
            tried = np.unique(np.linspace(first, last, min(most, last - first + 1)).round().astype(int))
            found = self.metric(self._tables(tried, rank, label, rival))
            if len(tried) == last - first + 1:
                break
            place = int(found.argmax())
            first, last = tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]
        is_best = np.concatenate([[0], found >= found.max() - _EQUAL, [0]]).astype(int)
        starts, ends = first + np.flatnonzero(np.diff(is_best)).reshape(-1, 2).T
        widest = np.argmax(edges[ends] - edges[starts])
        return float(edges[starts[widest]] + edges[ends[widest]]) / 2, float(found.max())

    def _tables(self, tried: Codes, rank: Codes, label: int, rival: Codes) -> Floats:
        """Return the confusion matrix in each interval that is tried: in interval i the rows of rank < i are predicted
        as the class."""
        k = self.log_p.shape[1]
        first = np.searchsorted(tried, rank + 1)  # the first of the intervals where a row is predicted as the class
        moves = np.zeros((len(tried) + 1, k * k))
        np.add.at(moves, (first, self.codes * k + rival), -self.weight)
        np.add.at(moves, (first, self.codes * k + label), self.weight)
        tables = self.table(rival) + moves[:-1].cumsum(axis=0).reshape(-1, k, k)
        return np.where(tables > _EQUAL * self.weight.sum(), tables, 0.0)  # without rounding errors


def tuned_factors(metric: Metric, codes: Codes, weight: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Return the factors, with mean 1, and the metric on these rows without and with them. ``p`` is (n, K).

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.calibrate.threshold import Metric, tuned_factors
    >>> second = np.tile([0.05, 0.1, 0.2, 0.3], 50)
    >>> p, truth = np.column_stack([1 - second, second]), (second > 0.15).astype(int)
    >>> factors, scores = tuned_factors(Metric("f1", np.array(["no", "yes"])), truth, np.ones(200), p)
    >>> (factors[0] / factors.sum()).round(3), scores  # the threshold is between 0.1 and 0.2
    (np.float64(0.143), array([0., 1.]))
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such as of a class that is never predicted
        rows, k = HeldOut(metric, codes, weight, np.log(np.maximum(p, _LEAST))), p.shape[1]
        share = np.bincount(codes, weights=weight, minlength=k) / weight.sum()
        starts = (np.zeros(k), -np.log(np.maximum(share, _LEAST)))[
            : k - 1
        ]  # of two classes every start leads to the same
        c, best = max((rows.ascended(start) for start in starts), key=lambda found: found[1])
        plain, tuned, draws = rows.log_p.argmax(axis=1), (rows.log_p + c).argmax(axis=1), np.random.default_rng(0)
        before = float(metric(rows.table(plain))[0])
        gains = []
        for _ in range(_SAMPLES):
            times = draws.poisson(1.0, len(codes))
            if times.any():
                gains.append(metric(rows.table(tuned, times)) - metric(rows.table(plain, times)))
    if not best - before > max(float(np.std(gains)) * math.sqrt(k - 1), _EQUAL):
        return np.ones(k), np.array([before, before])
    factors = np.exp(c - c.max())
    return factors / factors.mean(), np.array([before, best])
