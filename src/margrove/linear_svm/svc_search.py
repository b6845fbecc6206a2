"""LinearSVCCV: linear support vector classification with C chosen by cross-validation."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin

from margrove.data.sample import Sample, read_sample
from margrove.engine import Effort, settle_engine, solve
from margrove.errors import ConvergenceWarning, DataWarning, check_flag, level_of_caller
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
from margrove.linear_svm.svc import LinearSVC
from margrove.progress import towards
from margrove.status import Status
from margrove.svm.cross_validation import CrossValidatedSearch, Judge, check_folds
from margrove.svm.folds import Splits, weight_in_fold
from margrove.svm.grid import prices
from margrove.svm.scorers import Told

_CS = 10.0 ** np.arange(-3, 2.5, 0.5)  # 0.001 … 100


class LinearSVCCV(ClassifierMixin, CrossValidatedSearch):
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
        Seconds for the search; the refit comes after. Values of C whose folds are all scored compete.
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
        Cs = _CS.copy() if self.Cs is None else prices(self.Cs)
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        self.classes_ = sample.classes
        self._settle_scorer(template)
        splits = self._splits(X, y, groups, is_classifier=True)
        check_folds(sample, splits)
        own = template._own_weights(sample, sample_weight)
        table = _Table(template, sample, own, splits, Cs)
        self.engine_ = settle_engine(self.engine)
        self._forget()
        start = time.perf_counter()
        with towards(float(self.tol)):
            table.fill(self.engine_, Effort(self.time_limit, self.n_jobs))
        seconds = time.perf_counter() - start
        told = _Told(multi_class=self.multi_class)
        judge = Judge(told, self, sample, (X, y, sample_weight), splits, is_by_class=not is_joint(self))
        self.status_ = table.status
        self._keep_table(table, judge, seconds)
        self._refit(template, X, y, sample_weight)
        return self

    score = CrossValidatedSearch.score  # by ``scoring``; the mixin's is accuracy, whatever was asked

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """By the refitted model."""
        return np.asarray(self._fitted.decision_function(X))

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

    def _keep_table(self, table: _Table, judge: Judge, seconds: float) -> None:
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
            "param_C": np.ma.MaskedArray(table.Cs, mask=np.zeros(k, np.bool_)),
            "params": [{"C": float(C)} for C in table.Cs],
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
        self._warn(is_complete)

    def _warn(self, is_complete: NDArray[np.bool_]) -> None:
        name, early = type(self).__name__, int((is_complete & ~self.cv_results_["is_converged"]).sum())
        if self.status_ in (Status.INTERRUPTED, Status.TIME_LIMIT):
            message = (
                f"{name} ended with status {str(self.status_)!r}: {int(is_complete.sum())} of {len(is_complete)} "
                f"values of C are scored; {self.status_.advice.replace('model', 'table')}."
            )
        elif early:
            message = (
                f"{name}: with {early} of {len(is_complete)} values of C the gap did not come within tol={self.tol:g}; "
                "cv_results_['max_gap'] says how far. Raise max_iter or tol, or leave out the largest of Cs."
            )
        elif not is_complete.any():
            message = f"{name}: every score is NaN, so no C is the best and there is no model; check scoring and cv."
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())

    def _refit(self, template: LinearSVC, X: Any, y: Any, sample_weight: Any) -> None:
        """The best C on all rows; not after Ctrl-C, and not without a best one."""
        if not self.refit or self.status_ is Status.INTERRUPTED or not hasattr(self, "best_params_"):
            return
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the search has told it
            self.best_estimator_ = template.set_params(time_limit=None, **self.best_params_).fit(X, y, sample_weight)
        self.refit_time_ = time.perf_counter() - start


class _Told(Told, LinearSVC):
    """Of its values (rows, machines)."""

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        self._check_rows(X)
        return self._values


class _Table:
    """What the machines of each fold say of the rows it holds out, for each C."""

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
        shape = (len(Cs), len(splits), 1 if is_joint(template) else self._machines)
        self.gap, self.is_converged = np.full(shape, np.nan), np.zeros(shape, np.bool_)
        self._is_reached = np.zeros(shape, np.bool_)
        # (Cs, machines, held out) of each fold
        self.values = [np.full((len(Cs), self._machines, len(test)), np.nan) for _, test in splits]
        self._held_out = [sample.X[test] for _, test in splits]
        self.status = Status.CONVERGED

    @property
    def is_reached(self) -> NDArray[np.bool_]:
        """Which C of which fold is solved, shape (Cs, folds)."""
        return np.asarray(self._is_reached.all(axis=2))

    def fill(self, engine: str, effort: Effort) -> None:
        """Solve all machines."""
        if is_joint(self._template):
            self._fill_jointly(engine, effort)
            return
        signs = one_vs_rest_signs(self._sample.codes, len(self._sample.classes)).astype(np.float64)
        targets = list(signs) * len(self._splits)
        costs = [price for fold in self._prices for price in fold]
        problem = self._template._stated(self._sample.X, targets, costs, penalty=self._template.penalty, epsilon=0.0)
        if self._template.verbose:
            tell_problem("LinearSVCCV", problem, engine)

        def take(rung: int, number: int, solution: LinearSvmSolution) -> None:
            fold, machine = divmod(number, self._machines)
            self.values[fold][rung, machine] = self._held_out[fold] @ solution.w + solution.b
            self._enter(rung, fold, machine, solution)

        solve(LinearPathProblem(problem, self.Cs, take), engine, effort)
        if not self._is_reached.all() and self.status is Status.CONVERGED:
            self.status = Status.INTERRUPTED

    def _fill_jointly(self, engine: str, effort: Effort) -> None:
        """Crammer and Singer's machine of each fold goes up by itself."""
        until = None if effort.time_limit is None else time.monotonic() + effort.time_limit
        for fold, (price,) in enumerate(self._prices):
            beta = None
            for rung, C in enumerate(self.Cs):
                left = None if until is None else max(1e-3, until - time.monotonic())
                problem = self._joint(C * price, beta)
                solution = solve(problem, engine, replace(effort, time_limit=left))
                values = np.asarray(self._held_out[fold] @ solution.w.T + solution.b).T
                self.values[fold][rung] = values[1:] - values[:1] if len(values) == 2 else values
                self._enter(rung, fold, 0, solution)
                if self.status is not Status.CONVERGED:
                    return
                beta = solution.beta * (self.Cs[min(rung + 1, len(self.Cs) - 1)] / C)

    def _joint(self, price: NDArray[np.float64], beta: NDArray[np.float64] | None) -> CrammerSingerProblem:
        problem = self._template._joint_problem(self._sample, np.ones(len(price)))
        return replace(problem, cost=price, beta=beta)

    def _enter(self, rung: int, fold: int, machine: int, solution: Any) -> None:
        if solution.status in (Status.INTERRUPTED, Status.TIME_LIMIT):  # half a model is not scored as a whole one
            self.status = solution.status
            return
        place = rung, fold, machine
        self.gap[place], self.is_converged[place] = solution.gap, solution.status is Status.CONVERGED
        self._is_reached[place] = True
