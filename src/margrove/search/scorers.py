"""Scores of cells from their values on held-out rows.

Without ``scoring`` the score is computed from the values; otherwise a scorer of scikit-learn is called with an
estimator that knows these values and nothing else.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer, r2_score
from sklearn.utils import _safe_indexing

from margrove.errors import ParameterError, shown
from margrove.search.folds import Splits, check_held_out
from margrove.search.table import ScoreTable

_MADE_BY_SKLEARN = type(get_scorer("accuracy"))  # what get_scorer and make_scorer return


def settle_scorer(model: Any, scoring: Any) -> Any:
    """Return the scorer that ``scoring`` stands for."""
    if isinstance(scoring, Mapping | list | tuple | set):
        raise ParameterError(
            f"scoring is {shown(scoring)}; it must be one scorer: a name, a callable, or None for the learner's own."
        )
    try:
        return check_scoring(model, scoring=scoring)
    except ValueError as error:
        known = "a name of sklearn.metrics.get_scorer_names(), a callable(estimator, X, y), or None"
        hint = " sklearn.metrics.make_scorer turns a metric into one." if callable(scoring) else ""
        raise ParameterError(f"scoring is {shown(scoring)}; it must be {known}.{hint}") from error


def score_of(scorer: Any, model: Any, X: Any, y: Any, weight: NDArray[np.float64] | None) -> float:
    """Return the score of a model. scikit-learn's scorers are given the weights."""
    how = {"sample_weight": weight} if weight is not None and isinstance(scorer, _MADE_BY_SKLEARN) else {}
    try:
        score = scorer(model, X, y, **how)
    except AttributeError as error:
        raise ParameterError(
            f"scoring is {scorer!r}, which needs more than the predict and decision_function of a search cell "
            f"({error}). Use another one, or GridSearchCV."
        ) from error
    score = score[()] if isinstance(score, np.ndarray) and score.ndim == 0 else score
    if not isinstance(score, Real):
        raise ParameterError(f"scoring is {scorer!r}, which returned {shown(score)}; it must return one number.")
    return float(score)


def name_of(scoring: Any) -> str:
    """Return a name that identifies a scorer, in this process and the next."""
    if scoring is None or isinstance(scoring, str | _MADE_BY_SKLEARN):
        return str(scoring)
    named = scoring if hasattr(scoring, "__qualname__") else type(scoring)
    if "<" in named.__qualname__:  # <lambda>, <locals>: many may have this name
        raise ParameterError(
            f"scoring is {named.__qualname__}, which a checkpoint cannot distinguish from others of that name. "
            "Define it by name at the top of a module."
        )
    return f"{named.__module__}.{named.__qualname__}"


class HeldOutCell(BaseEstimator):
    """The values of a cell on the rows held out, shape (rows, machines). Other rows have no values."""

    def __init__(self, rows: Any, values: NDArray[np.float64]) -> None:
        self.rows, self.values = rows, values

    def _values_of(self, X: Any) -> NDArray[np.float64]:
        if X is not self.rows and not _is_same_table(X, self.rows):
            raise AttributeError("a cell predicts exactly the rows that are held out")
        return self.values


class HeldOutRegressor(RegressorMixin, HeldOutCell):
    """A regression on the rows held out; its own score is R²."""

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        return self._values_of(X).ravel()

    @property
    def has_score(self) -> bool:
        return bool(np.isfinite(self.values).all())  # otherwise it has overflowed

    def own_score(self, z: NDArray[np.float64], weight: Any) -> float:
        return float(r2_score(z, self.values[:, 0], sample_weight=weight))


class HeldOutClassifier(ClassifierMixin, HeldOutCell):
    """A classifier on the rows held out; its own score is accuracy. ``decider`` predicts the code of a class from the
    values of the machines."""

    has_score = True

    def __init__(self, rows: Any, values: NDArray[np.float64], classes: NDArray[Any], decider: Any) -> None:
        super().__init__(rows, values)
        self.classes = self.classes_ = classes
        self.decider = decider

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        return np.asarray(self.classes_[self.decider.predict(self._values_of(X))])

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.decider.decision_function(self._values_of(X)))

    def own_score(self, codes: NDArray[np.int32], weight: Any) -> float:
        return float(np.average(self.decider.predict(self.values) == codes, weights=weight))


def _is_same_table(X: Any, Z: Any) -> bool:
    if sp.issparse(X) or sp.issparse(Z):
        return bool(sp.issparse(X) and sp.issparse(Z) and X.shape == Z.shape and (X != Z).nnz == 0)
    return bool(np.array_equal(np.asarray(X), np.asarray(Z)))


class Scores:
    """The scores of cells.

    ``given`` is X, y and the weights of rows as the search was given them; ``target`` what a cell's own score, that of
    ``scoring=None``, compares with: codes of classes, or numbers; ``cell(rows, values)`` makes an estimator of a cell;
    ``absent`` are for each fold the machines of classes that it does not train on: they are not predicted there.
    """

    def __init__(
        self, scoring: Any, scorer: Any, given: Any, splits: Splits, target: NDArray[Any], cell: Any, absent: list[Any]
    ) -> None:
        self._scorer: Any = None if scoring is None else scorer
        self.splits = splits
        self._X, self._y, weight = given
        self.weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        self._target, self._cell, self._absent = target, cell, absent
        check_held_out(self.weight, splits)
        if isinstance(self._scorer, _MADE_BY_SKLEARN):
            self._check_methods(scoring)

    def enter(self, table: ScoreTable, place: Any, values: NDArray[np.float64], columns: Mapping[str, Any]) -> None:
        """Score some cells of a fold from their ``values``, shape (cells, machines, held out), and enter the scores and
        what the solver says into the table. ``place`` is as in `ScoreTable.enter`."""
        start = time.perf_counter()
        scores = self._of(place[-1], values)
        seconds = (time.perf_counter() - start) / max(1, len(scores))
        table.enter(place, {"score": scores, "score_time": seconds, **columns})

    def _of(self, fold: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        test = self.splits[fold][1]
        weight = None if self.weight is None else self.weight[test]
        X, y = (None, self._target[test]) if self._scorer is None else self._rows(test)
        values[:, self._absent[fold]] = -np.inf
        found = np.full(len(values), np.nan)
        for number, machines in enumerate(values):
            cell = self._cell(X, machines.T)
            if cell.has_score and self._scorer is None:
                found[number] = cell.own_score(y, weight)
            elif cell.has_score:
                found[number] = score_of(self._scorer, cell, X, y, weight)
        return found

    def _rows(self, rows: NDArray[np.int64]) -> tuple[Any, Any]:
        return _safe_indexing(self._X, rows), _safe_indexing(self._y, rows)

    def _check_methods(self, scoring: Any) -> None:
        """Raise `ParameterError` for a scorer that asks for a method that a cell does not have."""
        X, y = self._rows(self.splits[0][1][:1])
        cell = self._cell(X, np.empty((1, 0)))
        try:
            with warnings.catch_warnings(), suppress(ValueError, TypeError):  # the cell has no values to give
                warnings.simplefilter("ignore")
                self._scorer(cell, X, y)
        except AttributeError as error:
            asked = str(error).rpartition(": ")[2].rstrip(".").replace(", ", " or ")
            has = " and ".join(name for name in ("predict", "decision_function") if hasattr(cell, name))
            raise ParameterError(
                f"scoring is {shown(scoring)}, which needs {asked}; a cell of the search has {has}. Use another "
                "one, or GridSearchCV."
            ) from error
