"""The searches for C of linear SVMs: their cells, the scores that are kept, the best one and its refit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from margrove.advice import Advice
from margrove.data.rows import Matrix, Rows
from margrove.engine import choose
from margrove.errors import ConvergenceWarning, DataWarning, check_flag, level_of_caller
from margrove.estimator import estimator
from margrove.linear_svm.machine import LinearSvmParameters, tell_problem
from margrove.linear_svm.path import check_costs, joint_path
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearPathProblem,
    LinearSvmProblem,
    LinearSvmSolution,
)
from margrove.run.effort import on_interrupt
from margrove.run.progress import towards
from margrove.status import Status, worst
from margrove.svm.cross_validation import CrossValidatedSearch, Judge, JudgeOfNumbers
from margrove.svm.folds import Splits

_CS = 10.0 ** np.arange(-3, 2.5, 0.5)  # 0.001 … 100

# The machines of all folds, fold by fold, or Crammer and Singer's of each fold.
Problems: TypeAlias = LinearSvmProblem | Sequence[CrammerSingerProblem]


def default_cs() -> NDArray[np.float64]:
    """0.001 … 100, half a decade apart."""
    return _CS.copy()


class CellTable:
    """Values of the held-out rows by the machines of each fold, for each cell: C ascending, and ε within a C.

    ``machines`` is how many solutions a cell has in a fold, ``outputs`` how many values a held-out row gets.
    """

    def __init__(
        self,
        rows: Rows[Any],
        splits: Splits,
        params: list[dict[str, float]],
        machines: int,
        outputs: int | None = None,
    ) -> None:
        self.params, self.machines = params, machines
        shape = (len(params), len(splits), machines)
        self.gap, self.is_converged = np.full(shape, np.nan), np.zeros(shape, np.bool_)
        self._is_reached = np.zeros(shape, np.bool_)
        # (cells, outputs, held out) of each fold
        self.values = [np.full((len(params), outputs or machines, len(test)), np.nan) for _, test in splits]
        self.held_out = [rows.take(test) for _, test in splits]
        self.status = Status.CONVERGED

    @property
    def is_reached(self) -> NDArray[np.bool_]:
        """Which cell of which fold is solved, shape (cells, folds)."""
        return np.asarray(self._is_reached.all(axis=2))

    def enter(self, cell: int, fold: int, machine: int, solution: LinearSvmSolution | CrammerSingerSolution) -> None:
        """Enter one solution, or why the search ends if it was stopped early."""
        if solution.status in (Status.INTERRUPTED, Status.TIME_LIMIT):  # half a model is not scored as a whole one
            self.status = solution.status
            return
        if isinstance(solution, CrammerSingerSolution):
            values = np.asarray(self.held_out[fold] @ solution.w.T + solution.b).T
            self.values[fold][cell] = values[1:] - values[:1] if len(values) == 2 else values
        else:
            self.values[fold][cell, machine] = self.held_out[fold] @ solution.w + solution.b
        place = cell, fold, machine
        self.gap[place], self.is_converged[place] = solution.gap, solution.status is Status.CONVERGED
        self._is_reached[place] = True

    def close(self) -> None:
        """Mark the search as interrupted if cells are missing though no solve was stopped: Ctrl-C came between two."""
        if not self._is_reached.all() and self.status is Status.CONVERGED:
            self.status = Status.INTERRUPTED


@estimator
class LinearSearch(LinearSvmParameters, CrossValidatedSearch):
    """The search for C of a linear SVM. Base class."""

    @property
    def coef_(self) -> Matrix:
        """Of the refitted model."""
        return self._fitted.coef_

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Of the refitted model."""
        intercept: NDArray[np.float64] = self._fitted.intercept_
        return intercept

    def _checked_template(self) -> Any:
        """Return the machine that is searched for, at C = 1; raise an error if a parameter is wrong."""
        template = self._template().set_params(C=1.0)
        template._check()
        check_flag("refit", self.refit)
        self._check_scoring()
        return template

    def _settled_splits(self, template: Any, X: Any, y: Any, groups: Any, *, is_classifier: bool) -> Splits:
        self._settle_scorer(template)
        return self._splits(X, y, groups, is_classifier=is_classifier)

    def _search(
        self,
        problems: Problems,
        Cs: NDArray[np.float64],
        epsilons: NDArray[np.float64] | None,
        splits: Splits,
        judge: Judge | JudgeOfNumbers,
    ) -> None:
        """Solve and score every cell. ``problems`` are at C = 1; None for ``epsilons`` searches none."""
        params = [{"C": float(C)} for C in Cs]
        if epsilons is not None:
            params = [{**cell, "epsilon": float(epsilon)} for cell in params for epsilon in epsilons]
        for problem in (problems,) if isinstance(problems, LinearSvmProblem) else problems:
            check_costs(problem, Cs)
        self._forget()
        start = time.perf_counter()
        with towards(float(self.tol)):
            if isinstance(problems, LinearSvmProblem):
                table = CellTable(problems.rows, splits, params, len(problems.machines) // len(splits))
                self._fill(table, problems, Cs, [problems.epsilon] if epsilons is None else epsilons.tolist())
            else:
                n_classes = problems[0].n_classes
                table = CellTable(problems[0].rows, splits, params, 1, 1 if n_classes == 2 else n_classes)
                self._fill_jointly(table, problems, Cs)
        table.close()
        self.status_ = table.status
        self._keep_table(table, judge, time.perf_counter() - start)

    def _fill(
        self, table: CellTable, problem: LinearSvmProblem, Cs: NDArray[np.float64], epsilons: list[float]
    ) -> None:
        """Solve the machines of all folds along C, for one ε after the other."""
        effort, started = self._effort(), time.monotonic()
        for place, epsilon in enumerate(epsilons):
            asked = replace(problem, epsilon=epsilon)

            def take(step: int, number: int, solution: LinearSvmSolution, place: int = place) -> None:
                table.enter(step * len(epsilons) + place, *divmod(number, table.machines), solution)

            path = LinearPathProblem(asked, Cs, take)
            engine = choose(self.engine, path, effort)
            self.engine_ = engine.name
            if self.verbose:
                tell_problem(type(self).__name__, asked, engine)
            engine.solve(path, effort.left(started))
            if table.status is not Status.CONVERGED:
                return

    def _fill_jointly(
        self, table: CellTable, problems: Sequence[CrammerSingerProblem], Cs: NDArray[np.float64]
    ) -> None:
        """Solve Crammer and Singer's machine of each fold along C."""
        effort, started = self._effort(), time.monotonic()
        engine = choose(self.engine, problems[0], effort)
        self.engine_ = engine.name
        for fold, problem in enumerate(problems):
            for cell, solution in enumerate(joint_path(problem, Cs, engine, effort.left(started))):
                table.enter(cell, fold, 0, solution)
            if table.status is not Status.CONVERGED:
                return

    def _keep_table(self, table: CellTable, judge: Judge | JudgeOfNumbers, seconds: float) -> None:
        """Keep ``cv_results_`` and the best cell; ``seconds`` is what the whole table took."""
        k, folds = table.gap.shape[:2]
        scores, score_time = np.full((k, folds), np.nan), np.zeros((k, folds))
        for fold in range(folds):
            reached = np.flatnonzero(table.is_reached[:, fold])
            start = time.perf_counter()
            scores[reached, fold] = judge.scores(fold, table.values[fold][reached])
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
            message = Advice(
                f"{name} ended with status {str(self.status_)!r}: {int(is_complete.sum())} of {len(is_complete)} "
                f"{cells} are scored; ",
                self.status_.advice_on("table"),
                ".",
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
