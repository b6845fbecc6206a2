"""The table of a search: the score of each cell in each fold, and scikit-learn's ``cv_results_``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

_CLEARLY = 3.0  # standard errors by which a cell must trail the best one to be given up
_TIMES = ("fit_time", "score_time")


class ScoreTable:
    """Cells by folds. The numbers of a cell are NaN until it is entered. ``grid`` has the values of each axis, slowest
    axis first. ``measures`` are what the solver says of a cell in a fold, by its column in ``cv_results_``: "mean_…"
    averages the folds, "max_…" takes the largest."""

    def __init__(self, grid: Mapping[str, NDArray[np.float64]], n_folds: int, measures: Mapping[str, str]) -> None:
        self.grid, self._measures = dict(grid), measures
        shape = (*(len(values) for values in grid.values()), n_folds)
        self.columns: dict[str, NDArray[Any]] = {
            name: np.full(shape, np.nan) for name in ("score", *_TIMES, *measures.values())
        }
        self.columns["is_converged"] = np.zeros(shape, np.bool_)

    @property
    def score(self) -> NDArray[np.float64]:
        """Shape (*axes, folds)."""
        return self.columns["score"]

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Cells whose folds are all scored."""
        return np.asarray(~np.isnan(self.score).any(axis=-1))

    def enter(self, place: tuple[Any, ...], columns: Mapping[str, Any]) -> None:
        """Enter the numbers of some cells in a fold: ``place`` is (an index of each axis, the fold)."""
        for name, values in columns.items():
            self.columns[name][place] = values

    @property
    def is_entered(self) -> NDArray[np.bool_]:
        """Cells and folds that have been entered; their score may be NaN."""
        return np.asarray(~np.isnan(self.columns["fit_time"]))

    def still_in(self, before: int | None = None) -> NDArray[np.bool_]:
        """Cells that are not clearly beaten in the folds ``before`` one (None: in all): in some fold as good as the
        best cell, or on average within three standard errors of the difference. All before the second fold."""
        scored = np.asarray(~np.isnan(self.score).reshape(-1, self.score.shape[-1]).any(axis=0))
        if before is not None:
            scored[before:] = False
        if scored.sum() < 2:
            return np.asarray(~np.isnan(self.score[..., scored]).any(axis=-1) | (scored.sum() == 0))
        scores = self.score[..., scored]
        best = scores.reshape(-1, scores.shape[-1])[int(np.nanargmax(scores.mean(axis=-1)))]
        behind = best - scores
        error = behind.std(axis=-1, ddof=1) / np.sqrt(behind.shape[-1])
        return np.asarray(~((behind > 0).all(axis=-1) & (behind.mean(axis=-1) > _CLEARLY * error)))

    def results(self, searched: tuple[str, ...]) -> dict[str, Any]:
        """Return ``cv_results_``: scikit-learn's columns, and what the solver says of each cell."""
        cells = product(*(values.tolist() for values in self.grid.values()))
        every = [dict(zip(self.grid, cell, strict=True)) for cell in cells]
        params = [{name: cell[name] for name in searched} for cell in every]
        flat = {name: values.reshape(len(params), -1) for name, values in self.columns.items()}
        found: dict[str, Any] = {}
        for name in _TIMES:
            found[f"mean_{name}"], found[f"std_{name}"] = flat[name].mean(axis=1), flat[name].std(axis=1)
        for name in searched:
            column = [each[name] for each in params]
            found[f"param_{name}"] = np.ma.MaskedArray(column, mask=np.zeros(len(column), np.bool_))
        found["params"] = params
        for fold, scores in enumerate(flat["score"].T):
            found[f"split{fold}_test_score"] = scores
        found["mean_test_score"], found["std_test_score"] = flat["score"].mean(axis=1), flat["score"].std(axis=1)
        worst_last = np.nan_to_num(found["mean_test_score"], nan=-np.inf)
        found["rank_test_score"] = rankdata(-worst_last, method="min").astype(np.int32)
        for name, measure in self._measures.items():
            found[name] = flat[measure].mean(axis=1) if name.startswith("mean_") else flat[measure].max(axis=1)
        found["is_converged"] = flat["is_converged"].all(axis=1)
        return found
