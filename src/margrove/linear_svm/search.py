"""What the searches for C of linear SVMs share: their cells, what is kept of them, the best one and its refit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from margrove.errors import ConvergenceWarning, DataWarning, level_of_caller
from margrove.run.effort import on_interrupt
from margrove.status import Status, worst
from margrove.svm.cross_validation import CrossValidatedSearch
from margrove.svm.folds import Splits

_CS = 10.0 ** np.arange(-3, 2.5, 0.5)  # 0.001 … 100

Scores = Callable[[int, NDArray[np.float64]], NDArray[np.float64]]  # of a fold, for each cell


def default_cs() -> NDArray[np.float64]:
    """0.001 … 100, half a decade apart."""
    return _CS.copy()


class CellTable:
    """What the machines of each fold say of the rows it holds out, for each cell.

    ``params`` are the cells; ``machines`` is how many solutions a cell has in a fold, ``speakers`` how many values a
    row that is held out gets.
    """

    def __init__(
        self, X: Any, splits: Splits, params: Sequence[dict[str, float]], machines: int, speakers: int
    ) -> None:
        self.params = list(params)
        shape = (len(params), len(splits), machines)
        self.gap, self.is_converged = np.full(shape, np.nan), np.zeros(shape, np.bool_)
        self._is_reached = np.zeros(shape, np.bool_)
        # (cells, speakers, held out) of each fold
        self.values = [np.full((len(params), speakers, len(test)), np.nan) for _, test in splits]
        self.held_out = [X[test] for _, test in splits]
        self.status = Status.CONVERGED

    @property
    def is_reached(self) -> NDArray[np.bool_]:
        """Which cell of which fold is solved, shape (cells, folds)."""
        return np.asarray(self._is_reached.all(axis=2))

    def enter(self, cell: int, fold: int, machine: int, solution: Any) -> None:
        """Take note of one solution, and of why the search ends if it was broken off."""
        if solution.status in (Status.INTERRUPTED, Status.TIME_LIMIT):  # half a model is not scored as a whole one
            self.status = solution.status
            return
        place = cell, fold, machine
        self.gap[place], self.is_converged[place] = solution.gap, solution.status is Status.CONVERGED
        self._is_reached[place] = True

    def close(self) -> None:
        """Cells that nobody came to, though no solve was broken off: Ctrl-C was between two of them."""
        if not self._is_reached.all() and self.status is Status.CONVERGED:
            self.status = Status.INTERRUPTED


class LinearSearch(CrossValidatedSearch):
    """What the searches for C of linear SVMs have. Not a learner by itself."""

    tol: float
    refit: bool

    @property
    def coef_(self) -> Any:
        """Of the refitted model."""
        return self._fitted.coef_

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Of the refitted model."""
        intercept: NDArray[np.float64] = self._fitted.intercept_
        return intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _keep_table(self, table: CellTable, scores_of: Scores, seconds: float) -> None:
        """``cv_results_`` and the best cell; ``seconds`` is what the whole table took."""
        k, folds = table.gap.shape[:2]
        scores, score_time = np.full((k, folds), np.nan), np.zeros((k, folds))
        for fold in range(folds):
            reached = np.flatnonzero(table.is_reached[:, fold])
            start = time.perf_counter()
            scores[reached, fold] = scores_of(fold, table.values[fold][reached])
            score_time[reached, fold] = (time.perf_counter() - start) / max(1, len(reached))
        mean = scores.mean(axis=1)
        self.cv_results_ = {
            "mean_fit_time": np.full(k, seconds / (k * folds)),
            "std_fit_time": np.zeros(k),
            "mean_score_time": score_time.mean(axis=1),
            "std_score_time": score_time.std(axis=1),
            **{
                f"param_{name}": np.ma.MaskedArray([cell[name] for cell in table.params], mask=np.zeros(k, np.bool_))
                for name in table.params[0]
            },
            "params": table.params,
            **{f"split{fold}_test_score": scores[:, fold] for fold in range(folds)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": rankdata(-np.nan_to_num(mean, nan=-np.inf), method="min").astype(np.int32),
            "max_gap": table.gap.max(axis=(1, 2)),
            "is_converged": table.is_converged.all(axis=(1, 2)),
        }
        self.n_splits_ = folds
        is_complete = ~np.isnan(mean)
        self._keep_best(is_complete)
        self._warn(is_complete, "values of C" if len(table.params[0]) == 1 else "cells")

    def _warn(self, is_complete: NDArray[np.bool_], cells: str) -> None:
        name, early = type(self).__name__, int((is_complete & ~self.cv_results_["is_converged"]).sum())
        if self.status_ in (Status.INTERRUPTED, Status.TIME_LIMIT):
            message = (
                f"{name} ended with status {str(self.status_)!r}: {int(is_complete.sum())} of {len(is_complete)} "
                f"{cells} are scored; {self.status_.advice.replace('model', 'table')}."
            )
        elif early:
            message = (
                f"{name}: with {early} of {len(is_complete)} {cells} the gap did not come within tol={self.tol:g}; "
                "cv_results_['max_gap'] says how far. Raise max_iter or tol, or leave out the largest of Cs."
            )
        elif not is_complete.any():
            message = f"{name}: every score is NaN, so no C is the best and there is no model; check scoring and cv."
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())

    def _refit(self, template: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """The best cell on all rows; not after Ctrl-C, and not without a best one."""
        if not self.refit or self.status_ is Status.INTERRUPTED or not hasattr(self, "best_params_"):
            return
        start = time.perf_counter()
        with on_interrupt(self._on_interrupt), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the search has told it
            template.set_params(time_limit=self.time_limit, **self.best_params_)
            self.best_estimator_ = template.fit(X, y, sample_weight).set_params(time_limit=None)
        self.status_ = worst((self.status_, self.best_estimator_.status_))
        self.refit_time_ = time.perf_counter() - start
