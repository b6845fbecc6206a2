"""LinearSVCCV: linear support vector classification with C chosen by cross-validation."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from margrove.data.sample import Sample, read_sample
from margrove.engine import Effort, Engine, choose
from margrove.errors import check_flag
from margrove.linear.problem import one_vs_rest_signs
from margrove.linear_svm.layout import check_prices, is_joint, prices_of_classes
from margrove.linear_svm.machine import tell_problem
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    LinearPathProblem,
    LinearSvmSolution,
    Loss,
    Penalty,
    Solver,
)
from margrove.linear_svm.search import CellTable, LinearSearch, default_cs
from margrove.linear_svm.svc import LinearSVC
from margrove.run.progress import towards
from margrove.status import Status
from margrove.svm.cross_validation import Judge, check_folds
from margrove.svm.folds import Splits, weight_in_fold
from margrove.svm.grid import prices
from margrove.svm.scorers import Told


class LinearSVCCV(ClassifierMixin, LinearSearch):
    """`LinearSVC` with C chosen by cross-validation, in one computation.

    What ``GridSearchCV(LinearSVC(), {"C": Cs})`` finds, many times faster: all folds and classes are machines on the
    same points, where a row that is held out has the price 0, and each value of C begins where the last one ended. Then
    the best C is fitted on all rows, and certified.

    Parameters
    ----------
    Cs : list of float, optional
        Above 0 and at most 1e100. None is 0.001 … 100, half a decade apart.
    cv : int, splitter or iterable
        As in scikit-learn: an int is that many stratified folds; groups and time series are welcome.
    scoring : str or callable, optional
        As in scikit-learn, anything that needs ``predict`` or ``decision_function``. None is accuracy.
    refit : bool
        Whether the best C is fitted on all rows.
    time_limit : float, optional
        Seconds for the search, and again for the refit that follows. Values of C whose folds are all scored compete.
    penalty, loss, dual, tol, multi_class, fit_intercept, intercept_scaling, class_weight, verbose, random_state, \
max_iter, regularize_intercept, solver, n_jobs, engine
        As in `LinearSVC`. "balanced" balances the rows that a fold trains on.

    Attributes
    ----------
    cv_results_ : dict of arrays
        scikit-learn's columns, and for each C ``max_gap``, the largest relative duality gap, and ``is_converged``. All
        of it is one computation: ``mean_fit_time`` is its time, shared out evenly.
    best_params_, best_score_, best_index_
        Of the best C; of equals the smallest.
    best_estimator_ : LinearSVC
        Fitted on all rows.
    classes_, n_features_in_, n_splits_, scorer_, refit_time_
        As in scikit-learn.
    coef_, intercept_, n_iter_
        Of the refitted model.
    status_, engine_, certificate_
        How the search ended, what ran, and what the refitted model claims.

    Notes
    -----
    Ctrl-C ends the search and keeps the table so far, without a refit.

    Examples
    --------
    >>> from margrove import LinearSVCCV
    >>> from sklearn.datasets import load_iris
    >>> search = LinearSVCCV(Cs=[0.01, 1], max_iter=10000).fit(*load_iris(return_X_y=True))
    >>> search.best_params_, search.certificate_.holds
    ({'C': 1.0}, True)
    """

    _machine = LinearSVC
    classes_: NDArray[Any]

    def __init__(
        self,
        *,
        Cs: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        penalty: Penalty = "l2",
        loss: Loss = "squared_hinge",
        dual: Any = "auto",
        tol: float = 1e-4,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        verbose: Any = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        regularize_intercept: bool = True,
        solver: Solver = "auto",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        engine: str = "auto",
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.regularize_intercept = regularize_intercept
        self.solver = solver
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.engine = engine

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Score every C; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight`` weighs the rows
        in training and, as in scikit-learn, in scoring."""
        template = self._template().set_params(C=1.0)
        template._check()
        check_flag("refit", self.refit)
        self._check_scoring()
        Cs = default_cs() if self.Cs is None else prices(self.Cs)
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        self.classes_ = sample.classes
        self._settle_scorer(template)
        splits = self._splits(X, y, groups, is_classifier=True)
        check_folds(sample, splits)
        own = template._own_weights(sample, sample_weight)
        table = _Table(template, sample, own, splits, Cs)
        self._forget()
        start = time.perf_counter()
        with towards(float(self.tol)):
            self.engine_ = table.fill(
                self.engine, Effort(self.time_limit, self.n_jobs, on_interrupt=self._on_interrupt)
            )
        seconds = time.perf_counter() - start
        told = _Told(multi_class=self.multi_class)
        judge = Judge(told, self, sample, (X, y, sample_weight), splits, is_by_class=not is_joint(self))
        self.status_ = table.status
        self._keep_table(table, judge.scores, seconds)
        self._refit(template, X, y, sample_weight)
        return self

    score = LinearSearch.score  # by ``scoring``; the mixin's is accuracy, whatever was asked

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """By the refitted model."""
        return np.asarray(self._fitted.decision_function(X))


class _Told(Told, LinearSVC):
    """Of its values (rows, machines)."""

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        self._check_rows(X)
        return self._values


class _Table(CellTable):
    """The machines of classes along C."""

    def __init__(
        self,
        template: LinearSVC,
        sample: Sample,
        own: NDArray[np.float64],
        splits: Splits,
        Cs: NDArray[np.float64],
    ) -> None:
        self.Cs, self._template, self._sample, self._splits = Cs, template, sample, splits
        n, n_classes = len(sample.codes), len(sample.classes)
        self._prices = []  # of each fold and machine, at C = 1
        for train, _ in splits:
            share = weight_in_fold(own[train], train, n)
            self._prices.append(prices_of_classes(template, sample.classes, sample.codes, share))
            for price in self._prices[-1]:
                check_prices(Cs[-1] * price)
        self._machines = 1 if n_classes == 2 else n_classes
        solved = 1 if is_joint(template) else self._machines
        super().__init__(sample.X, splits, [{"C": float(C)} for C in Cs], solved, self._machines)

    def fill(self, given: str | Engine, effort: Effort) -> str:
        """Solve all machines; return the name of the engine."""
        if is_joint(self._template):
            return self._fill_jointly(given, effort)
        signs = one_vs_rest_signs(self._sample.codes, len(self._sample.classes)).astype(np.float64)
        targets = list(signs) * len(self._splits)
        costs = [price for fold in self._prices for price in fold]
        problem = self._template._stated(self._sample.X, targets, costs, penalty=self._template.penalty, epsilon=0.0)
        engine = choose(given, problem)
        if self._template.verbose:
            tell_problem("LinearSVCCV", problem, engine)

        def take(rung: int, number: int, solution: LinearSvmSolution) -> None:
            fold, machine = divmod(number, self._machines)
            self.values[fold][rung, machine] = self.held_out[fold] @ solution.w + solution.b
            self.enter(rung, fold, machine, solution)

        engine.solve(LinearPathProblem(problem, self.Cs, take), effort)
        self.close()
        return engine.name

    def _fill_jointly(self, given: str | Engine, effort: Effort) -> str:
        """Crammer and Singer's machine of each fold goes up by itself."""
        until = None if effort.time_limit is None else time.monotonic() + effort.time_limit
        engine = choose(given, self._joint(self.Cs[0] * self._prices[0][0], None))
        for fold, (price,) in enumerate(self._prices):
            beta = None
            for rung, C in enumerate(self.Cs):
                left = None if until is None else max(1e-3, until - time.monotonic())
                problem = self._joint(C * price, beta)
                solution = engine.solve(problem, replace(effort, time_limit=left))
                values = np.asarray(self.held_out[fold] @ solution.w.T + solution.b).T
                self.values[fold][rung] = values[1:] - values[:1] if len(values) == 2 else values
                self.enter(rung, fold, 0, solution)
                if self.status is not Status.CONVERGED:
                    return engine.name
                beta = solution.beta * (self.Cs[min(rung + 1, len(self.Cs) - 1)] / C)
        return engine.name

    def _joint(self, price: NDArray[np.float64], beta: NDArray[np.float64] | None) -> CrammerSingerProblem:
        problem = self._template._joint_problem(self._sample, np.ones(len(price)))
        return replace(problem, cost=price, beta=beta)
