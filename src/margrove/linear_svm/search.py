"""LinearSVCCV and LinearSVRCV: C, and perhaps ε, chosen by cross-validation, with all folds as machines of one path."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.data.rows import Matrix, Rows
from margrove.data.sample import Sample, Values
from margrove.engine import choose
from margrove.engine.registry import partitioning
from margrove.errors import InputError
from margrove.estimator import estimator
from margrove.linear_svm.layout import costs_of_classes, is_joint
from margrove.linear_svm.machine import LinearSvmParameters, print_problem
from margrove.linear_svm.path import check_path_costs, joint_path
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearPathProblem,
    LinearSvmProblem,
    LinearSvmSolution,
    Loss,
    Penalty,
    is_squared,
)
from margrove.linear_svm.svc import LinearSVC, own_weights, signs_of
from margrove.linear_svm.svr import LinearSVR
from margrove.search.estimator import ClassifierSearch, CrossValidatedSearch, Grid, RegressorSearch
from margrove.search.folds import Splits, check_classes_of_folds, weight_in_fold
from margrove.search.scorers import Scores
from margrove.search.table import ScoreTable
from margrove.status import Status
from margrove.svm.problem import penalties

_CS = 10.0 ** np.arange(-3, 2.5, 0.5)  # 0.001 … 100

# The machines of all folds, fold by fold, or Crammer and Singer's of each fold; at C = 1.
Problems: TypeAlias = LinearSvmProblem | Sequence[CrammerSingerProblem]


class _HeldOutValues:
    """Values of the held-out rows in each cell, by the machines of each fold, as they are solved. ``machines`` is how
    many solutions a cell has in a fold, ``outputs`` how many values a row gets."""

    def __init__(self, rows: Rows[Any], splits: Splits, n_cells: int, machines: int, outputs: int) -> None:
        shape = (n_cells, len(splits), machines)
        self.gap = np.full(shape, np.nan)
        self.is_converged, self.is_reached = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        # (cells, outputs, held out) of each fold
        self.values = [np.full((n_cells, outputs, len(test)), np.nan) for _, test in splits]
        self._rows = [rows.take(test) for _, test in splits]
        self.status = Status.CONVERGED

    def take(self, cell: int, number: int, solution: LinearSvmSolution | CrammerSingerSolution) -> None:
        """Take the solution of a machine, numbered through all folds, or why the search ends if it was stopped."""
        if solution.status in (Status.INTERRUPTED, Status.TIME_LIMIT):  # half a model is not scored as a whole one
            self.status = solution.status
            return
        fold, machine = divmod(number, self.gap.shape[-1])
        if isinstance(solution, CrammerSingerSolution):
            values = np.asarray(self._rows[fold] @ solution.w.T + solution.b).T
            self.values[fold][cell] = values[1:] - values[:1] if len(values) == 2 else values
        else:
            self.values[fold][cell, machine] = self._rows[fold] @ solution.w + solution.b
        place = cell, fold, machine
        self.gap[place], self.is_converged[place] = solution.gap, solution.status is Status.CONVERGED
        self.is_reached[place] = True


@estimator
class LinearSearch(LinearSvmParameters, CrossValidatedSearch):
    """The search for C of a linear SVM. Base class."""

    _measures: ClassVar = {"max_gap": "gap"}
    _unconverged = (
        "the gap did not reach tol={tol:g} for {cells}; see cv_results_['max_gap']. Raise max_iter or tol, or remove "
        "the largest Cs."
    )
    _no_best = "no C is the best"

    @property
    def coef_(self) -> Matrix:
        """Of the refitted model."""
        return self._fitted.coef_

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Of the refitted model."""
        intercept: NDArray[np.float64] = self._fitted.intercept_
        return intercept

    def _template(self) -> Any:
        return super()._template().set_params(C=1.0)

    @property
    def _cells(self) -> str:
        return "values of C" if len(self.cv_results_["params"][0]) == 1 else "cells"

    def _fill(self, problem: Problems, table: ScoreTable, scores: Scores) -> Status:
        if self.refit and partitioning(self.engine, None) is not None:
            self._template()._check_spread()
        for each in (problem,) if isinstance(problem, LinearSvmProblem) else problem:
            check_path_costs(each, table.grid["C"])
        *shape, n_folds = table.score.shape
        n_cells = int(np.prod(shape))
        start = time.perf_counter()
        if isinstance(problem, LinearSvmProblem):
            machines = len(problem.machines) // n_folds
            found = _HeldOutValues(problem.rows, scores.splits, n_cells, machines, machines)
            self._solve_paths(problem, table.grid, found)
        else:
            n_classes = problem[0].n_classes
            found = _HeldOutValues(problem[0].rows, scores.splits, n_cells, 1, 1 if n_classes == 2 else n_classes)
            self._solve_jointly(problem, table.grid["C"], found)
        seconds = (time.perf_counter() - start) / (n_cells * n_folds)
        for fold, values in enumerate(found.values):
            cells = np.flatnonzero(found.is_reached[:, fold].all(axis=1))
            columns = {
                "fit_time": seconds,
                "gap": found.gap[cells, fold].max(axis=1),
                "is_converged": found.is_converged[cells, fold].all(axis=1),
            }
            scores.enter(table, (*np.unravel_index(cells, shape), fold), values[cells], columns)
        if found.status is Status.CONVERGED and not found.is_reached.all():  # Ctrl-C came between two solves
            return Status.INTERRUPTED
        return found.status

    def _solve_paths(self, problem: LinearSvmProblem, grid: Any, found: _HeldOutValues) -> None:
        """Solve the machines of all folds along C, for one ε after the other."""
        effort, started, epsilons = self._effort(), time.monotonic(), grid["epsilon"].tolist()
        for place, epsilon in enumerate(epsilons):

            def take(step: int, number: int, solution: LinearSvmSolution, place: int = place) -> None:
                found.take(step * len(epsilons) + place, number, solution)

            asked = replace(problem, epsilon=epsilon)
            path = LinearPathProblem(asked, grid["C"], take)
            engine = choose(self.engine, path, effort)
            self.engine_ = engine.name
            if self.verbose:
                print_problem(type(self).__name__, asked, engine)
            engine.solve(path, effort.left(started))
            if found.status is not Status.CONVERGED:
                return

    def _solve_jointly(
        self, problems: Sequence[CrammerSingerProblem], Cs: NDArray[np.float64], found: _HeldOutValues
    ) -> None:
        """Solve Crammer and Singer's machine of each fold along C."""
        effort, started = self._effort(), time.monotonic()
        engine = choose(self.engine, problems[0], effort)
        self.engine_ = engine.name
        for fold, problem in enumerate(problems):
            for cell, solution in enumerate(joint_path(problem, Cs, engine, effort.left(started))):
                found.take(cell, fold, solution)
            if found.status is not Status.CONVERGED:
                return


class _LinearSVCOfValues(LinearSVC):
    """A `LinearSVC` that predicts from the values of its machines, shape (n, machines)."""

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(X)


@estimator
class LinearSVCCV(LinearSearch, ClassifierSearch):
    """`LinearSVC` with C chosen by cross-validation, in one computation.

    What ``GridSearchCV(LinearSVC(), {"C": Cs})`` finds, many times faster: all folds and classes are machines on the
    same points, where a row that is held out has the cost 0, and each value of C begins where the last one ended. Then
    the best C is fitted on all rows, and certified.

    Parameters
    ----------
    Cs : list of float, optional
        Above 0 and at most 1e100. None is 0.001 … 100, half a decade apart.
    cv, scoring, refit, time_limit
        As in `SVCCV`.
    penalty, loss, dual, tol, multi_class, fit_intercept, intercept_scaling, class_weight, verbose, random_state, \
max_iter, regularize_intercept, solver, n_jobs, engine
        As in `LinearSVC`. "balanced" balances the rows that a fold trains on.

    Attributes
    ----------
    cv_results_ : dict of arrays
        scikit-learn's columns, and for each C ``max_gap``, the largest relative duality gap, and ``is_converged``. All
        of it is one computation: ``mean_fit_time`` is its time, shared out evenly.
    best_params_, best_score_, best_index_, best_estimator_, classes_, n_features_in_, n_splits_, scorer_, \
refit_time_, status_, engine_, certificate_
        As in `SVCCV`.
    coef_, intercept_, n_iter_
        Of the refitted model.

    Examples
    --------
    >>> from margrove import LinearSVCCV
    >>> from sklearn.datasets import load_iris
    >>> search = LinearSVCCV(Cs=[0.01, 1], max_iter=10000).fit(*load_iris(return_X_y=True))
    >>> search.best_params_, search.certificate_.holds
    ({'C': 1.0}, True)
    """

    _machine = LinearSVC
    _decider = _LinearSVCOfValues

    penalty: Penalty = "l2"
    loss: Loss = "squared_hinge"
    multi_class: str = "ovr"
    intercept_scaling: float = 1

    @property
    def _is_by_class(self) -> bool:
        return not is_joint(self)

    def _grid(self, data: Sample) -> tuple[Grid, tuple[str, ...]]:
        return {"C": _CS if self.Cs is None else penalties(self.Cs), "epsilon": np.zeros(1)}, ("C",)

    def _problem(self, template: Any, data: Sample, weight: Any, splits: Splits, grid: Grid) -> tuple[Any, Splits]:
        check_classes_of_folds(data, splits)
        own = own_weights(data, weight)
        shares = (weight_in_fold(own[train], train, len(own)) for train, _ in splits)
        costs = [costs_of_classes(template, data.classes, data.codes, share) for share in shares]
        if is_joint(self):
            return [template._joint_problem(data, cost) for (cost,) in costs], splits
        signs = list(signs_of(data)) * len(costs)
        return template._stated(data.X, signs, [cost for fold in costs for cost in fold]), splits


@estimator
class LinearSVRCV(LinearSearch, RegressorSearch):
    """`LinearSVR` with C, and if you like ε, chosen by cross-validation, in one computation; see `LinearSVCCV`.

    Parameters
    ----------
    Cs : list of float, optional
        Above 0 and at most 1e100. None is 0.001 … 100, half a decade apart; with the loss that is not squared these
        times the standard deviation of y, so that the unit of y does not matter.
    epsilons : list of float, optional
        Values of ε to search as well; None searches none and takes ``epsilon``.
    cv, scoring, refit, time_limit
        As in `SVRCV`.
    epsilon, tol, loss, fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter, \
regularize_intercept, solver, n_jobs, engine
        As in `LinearSVR`.

    Attributes
    ----------
    cv_results_, best_params_, best_score_, best_index_, best_estimator_, n_features_in_, n_splits_, scorer_, \
refit_time_, status_, engine_, certificate_, coef_, intercept_, n_iter_
        As in `LinearSVCCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import LinearSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> search = LinearSVRCV(Cs=[0.001, 1], cv=4).fit(X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=80))
    >>> search.best_params_, round(search.best_score_, 2), search.certificate_.holds
    ({'C': 1.0}, 1.0, True)
    """

    _machine = LinearSVR

    epsilon: float = 0.0
    loss: Loss = "epsilon_insensitive"

    def _grid(self, data: Values) -> tuple[Grid, tuple[str, ...]]:
        spread = 1.0 if is_squared(self.loss) else float(data.z.std()) or 1.0
        Cs = spread * _CS if self.Cs is None else penalties(self.Cs)
        grid = {"C": Cs, "epsilon": self._epsilons(np.array([float(self.epsilon)]))}
        return grid, ("C",) if self.epsilons is None else ("C", "epsilon")

    def _problem(self, template: Any, data: Values, weight: Any, splits: Splits, grid: Grid) -> tuple[Any, Splits]:
        own = np.ones(len(data.z)) if data.weight is None else data.weight
        for number, (train, _) in enumerate(splits):
            if not own[train].any():
                raise InputError(
                    f"all training rows of fold {number} have weight 0", cure="Use other folds, or other weights."
                )
        costs = [weight_in_fold(own[train], train, len(own)) for train, _ in splits]
        return template._stated(data.X, [data.z] * len(costs), costs), splits
