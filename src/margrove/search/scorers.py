"""Scores of cells from their values on held-out rows.

Without ``scoring`` the score is computed from the values; otherwise a scorer of scikit-learn is called with an
estimator that knows these values and nothing else.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer, r2_score
from sklearn.utils import _safe_indexing

from margrove.data.sample import Sample
from margrove.errors import ParameterError, shown
from margrove.search.folds import Splits, check_held_out

_MADE_BY_SKLEARN = type(get_scorer("accuracy"))  # what get_scorer and make_scorer return


def check_one_scorer(scoring: Any) -> None:
    """Raise `ParameterError` for several scorers at once."""
    if isinstance(scoring, Mapping | list | tuple | set):
        raise ParameterError(
            f"scoring is {shown(scoring)}; give one: a name, a callable, or None for the learner's own."
        )


def settle_scorer(model: Any, scoring: Any) -> Any:
    """Return the scorer that ``scoring`` stands for."""
    try:
        return check_scoring(model, scoring=scoring)
    except ValueError as error:
        known = "a name of sklearn.metrics.get_scorer_names(), a callable(estimator, X, y), or None"
        hint = " sklearn.metrics.make_scorer makes one of a metric." if callable(scoring) else ""
        raise ParameterError(f"scoring is {shown(scoring)}; it must be {known}.{hint}") from error


def score_of(scorer: Any, model: Any, X: Any, y: Any, weight: NDArray[np.float64] | None) -> float:
    """Return what a scorer says of a model. Those of scikit-learn are given the weights."""
    how = {"sample_weight": weight} if weight is not None and isinstance(scorer, _MADE_BY_SKLEARN) else {}
    try:
        score = scorer(model, X, y, **how)
    except AttributeError as error:
        raise ParameterError(
            f"scoring is {scorer!r}, and it asks a cell of the search for more than predict and decision_function "
            f"({error}). Use another one, or GridSearchCV."
        ) from error
    score = score[()] if isinstance(score, np.ndarray) and score.ndim == 0 else score
    if not isinstance(score, Real):
        raise ParameterError(f"scoring is {scorer!r}, and it answers {shown(score)}; it must answer with one number.")
    return float(score)


def name_of(scoring: Any) -> str:
    """Return a name that tells a scorer from others, in this process and the next."""
    if scoring is None or isinstance(scoring, str | _MADE_BY_SKLEARN):
        return str(scoring)
    named = scoring if hasattr(scoring, "__qualname__") else type(scoring)
    if "<" in named.__qualname__:  # <lambda>, <locals>: many may have this name
        raise ParameterError(
            f"scoring is {named.__qualname__}, which a checkpoint cannot tell from others of that name. "
            "Define it by name at the top of a module."
        )
    return f"{named.__module__}.{named.__qualname__}"


class HeldOutCell(BaseEstimator):
    """The values of a cell on the rows held out, shape (rows, machines). Other rows cannot be asked about."""

    def __init__(self, rows: Any, values: NDArray[np.float64]) -> None:
        self.rows, self.values = rows, values

    def _values_of(self, X: Any) -> NDArray[np.float64]:
        if X is not self.rows and not _is_same_table(X, self.rows):
            raise AttributeError("it can be asked about the rows that are held out, all of them and no others")
        return self.values


class HeldOutRegressor(RegressorMixin, HeldOutCell):
    """A regression on the rows held out."""

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        return self._values_of(X).ravel()


class HeldOutClassifier(ClassifierMixin, HeldOutCell):
    """A classifier on the rows held out. ``decider`` predicts the code of a class from the values of the machines."""

    def __init__(self, rows: Any, values: NDArray[np.float64], classes: NDArray[Any], decider: Any) -> None:
        super().__init__(rows, values)
        self.classes, self.decider = classes, decider
        self.classes_ = classes

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.classes_[self.decider.predict(self._values_of(X))])

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.decider.decision_function(self._values_of(X)))


def _is_same_table(X: Any, Z: Any) -> bool:
    if sp.issparse(X) or sp.issparse(Z):
        return bool(sp.issparse(X) and sp.issparse(Z) and X.shape == Z.shape and (X != Z).nnz == 0)
    return bool(np.array_equal(np.asarray(X), np.asarray(Z)))


class Scores(ABC):
    """The scores of cells by a scorer, or by the learner's own score for None. ``given`` is X, y and the weights of
    rows, as `fit` takes them."""

    def __init__(self, scorer: Any, given: tuple[Any, Any, Any], splits: Splits) -> None:
        self._scorer, self._splits = scorer, splits
        self._X, self._y, weight = given
        self._weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        check_held_out(self._weight, splits)

    def of(self, fold: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of some cells in a fold; ``values`` is (cells, machines, held out)."""
        test = self._splits[fold][1]
        weight = None if self._weight is None else self._weight[test]
        if self._scorer is not None:
            X, y = self._rows(test)
        found = np.full(len(values), np.nan)
        for number in self._scorable(fold, values):
            cell = values[number].T
            if self._scorer is None:
                found[number] = self._own_score(cell, test, weight)
            else:
                found[number] = score_of(self._scorer, self._estimator(X, cell), X, y, weight)
        return found

    def check(self, scoring: Any) -> None:
        """Raise `ParameterError` for a scorer of scikit-learn that asks for a method that a cell does not have."""
        if not isinstance(self._scorer, _MADE_BY_SKLEARN):
            return
        X, y = self._rows(self._splits[0][1][:1])
        cell = self._estimator(X, np.empty((1, 0)))
        try:
            with warnings.catch_warnings(), suppress(ValueError, TypeError):  # the cell has no values to give
                warnings.simplefilter("ignore")
                self._scorer(cell, X, y)
        except AttributeError as error:
            asked = str(error).rpartition(": ")[2].rstrip(".").replace(", ", " or ")
            has = " and ".join(name for name in ("predict", "decision_function") if hasattr(cell, name))
            raise ParameterError(
                f"scoring is {shown(scoring)}, and it asks for {asked}; a cell of the search has {has}. Use another "
                "one, or GridSearchCV."
            ) from error

    def _rows(self, rows: NDArray[np.int64]) -> tuple[Any, Any]:
        return _safe_indexing(self._X, rows), _safe_indexing(self._y, rows)

    @abstractmethod
    def _scorable(self, fold: int, values: NDArray[np.float64]) -> Iterable[int]:
        """Return the cells that have a score; the values may be changed."""

    @abstractmethod
    def _own_score(self, cell: NDArray[np.float64], test: NDArray[np.int64], weight: Any) -> float:
        """Return the learner's own score."""

    @abstractmethod
    def _estimator(self, X: Any, cell: NDArray[np.float64]) -> HeldOutCell:
        """Return a cell as scorers ask it."""


class ScoresOfNumbers(Scores):
    """Scores of regressions: R², or what the scorer says. ``z`` are the targets."""

    def __init__(self, z: NDArray[np.float64], *given: Any) -> None:
        super().__init__(*given)
        self._z = z

    def _scorable(self, fold: int, values: NDArray[np.float64]) -> Iterable[int]:
        return np.flatnonzero(np.isfinite(values).all(axis=(1, 2)))  # the others have overflowed

    def _own_score(self, cell: NDArray[np.float64], test: NDArray[np.int64], weight: Any) -> float:
        return float(r2_score(self._z[test], cell[:, 0], sample_weight=weight))

    def _estimator(self, X: Any, cell: NDArray[np.float64]) -> HeldOutCell:
        return HeldOutRegressor(X, cell)


class ScoresOfClasses(Scores):
    """Scores of classifiers: accuracy, or what the scorer says.

    ``decider`` predicts codes of classes from the values of the machines; ``is_by_class`` says whether each machine
    stands for a class.
    """

    def __init__(self, sample: Sample, decider: Any, *given: Any, is_by_class: bool) -> None:
        super().__init__(*given)
        self._sample, self._decider = sample, decider
        n_classes = len(sample.classes)
        counts = [np.bincount(sample.codes[train], minlength=n_classes) for train, _ in self._splits]
        # A class that a fold does not train on is not predicted there.
        self._absent: list[Any] = [
            np.flatnonzero(count == 0) if is_by_class and n_classes > 2 else [] for count in counts
        ]

    def _scorable(self, fold: int, values: NDArray[np.float64]) -> Iterable[int]:
        values[:, self._absent[fold]] = -np.inf
        return range(len(values))

    def _own_score(self, cell: NDArray[np.float64], test: NDArray[np.int64], weight: Any) -> float:
        return float(np.average(self._decider.predict(cell) == self._sample.codes[test], weights=weight))

    def _estimator(self, X: Any, cell: NDArray[np.float64]) -> HeldOutCell:
        return HeldOutClassifier(X, cell, self._sample.classes, self._decider)
