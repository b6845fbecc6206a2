"""The table of a search: one score per cell and fold, as they come in, and scikit-learn's ``cv_results_`` of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from margrove.svm.grid import UnitSolution

AXES = ("C", "epsilon", "gamma")  # slowest first, as scikit-learn orders the cells of a grid
_CLEARLY = 3.0  # standard errors by which a cell must trail the best one to be given up
_COLUMNS = ("score", "fit_time", "score_time", "support", "violation")


class ScoreTable:
    """Cells (C, epsilon, gamma) by folds. A cell's numbers are NaN until it is scored.

    Parameters
    ----------
    grid : mapping
        The values of each of `AXES`, ascending; one value where an axis is not searched.
    n_folds : int
    """

    def __init__(self, grid: Mapping[str, NDArray[np.float64]], n_folds: int) -> None:
        self.grid = {name: grid[name] for name in AXES}
        shape = (*(len(values) for values in self.grid.values()), n_folds)
        self.columns = {name: np.full(shape, np.nan) for name in _COLUMNS}
        self.is_converged = np.zeros(shape, np.bool_)

    @property
    def score(self) -> NDArray[np.float64]:
        """Shape (C, epsilon, gamma, folds)."""
        return self.columns["score"]

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """Cells whose folds are all scored."""
        return np.asarray(~np.isnan(self.score).any(axis=-1))

    def enter(
        self,
        place: tuple[NDArray[np.int64], int, int, int],
        scores: NDArray[np.float64],
        seconds: float,
        solution: UnitSolution,
    ) -> None:
        """A unit's cells: ``place`` is (the Cs, epsilon, gamma, fold), ``seconds`` what scoring them took."""
        self.columns["score"][place] = scores
        self.columns["score_time"][place] = seconds / len(scores)
        self.columns["fit_time"][place] = solution.seconds.sum(axis=1)
        self.columns["support"][place] = solution.support.sum(axis=1)
        self.columns["violation"][place] = solution.violation.max(axis=1)
        self.is_converged[place] = solution.is_converged.all(axis=1)

    def has(self, place: tuple[NDArray[np.int64], int, int, int]) -> bool:
        """Whether all cells of a unit have been entered."""
        return not np.isnan(self.columns["support"][place]).any()  # a score may be NaN by itself

    @property
    def n_entered(self) -> int:
        """Cells and folds that have been entered."""
        return int(np.count_nonzero(~np.isnan(self.columns["support"])))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that has been entered, for `take_up`."""
        return {**self.columns, "is_converged": self.is_converged}

    def take_up(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` gave."""
        for name in _COLUMNS:
            self.columns[name][...] = arrays[name]
        self.is_converged[...] = arrays["is_converged"]

    def still_in(self, before: int | None = None) -> NDArray[np.bool_]:
        """Cells that are not clearly beaten in the folds ``before`` one (None: in all): in some fold as good as the
        best cell, or on average within three standard errors of the difference. All before the second fold."""
        scored = np.asarray(~np.isnan(self.score).any(axis=(0, 1, 2)))
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
        """``cv_results_``: scikit-learn's columns, and what the solver says of each cell."""
        cells = list(product(*(values.tolist() for values in self.grid.values())))
        params = [{name: value for name, value in zip(AXES, cell, strict=True) if name in searched} for cell in cells]
        flat = {name: values.reshape(len(cells), -1) for name, values in self.columns.items()}
        found: dict[str, Any] = {}
        for name in ("fit_time", "score_time"):
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
        found["mean_n_support"] = flat["support"].mean(axis=1)
        found["max_violation"] = flat["violation"].max(axis=1)
        found["is_converged"] = self.is_converged.reshape(len(cells), -1).all(axis=1)
        return found
