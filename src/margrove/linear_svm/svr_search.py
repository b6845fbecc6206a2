"""LinearSVRCV: linear support vector regression with C, and perhaps ε, chosen by cross-validation."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from margrove.data.sample import Values, read_values
from margrove.engine import Effort, Engine, choose
from margrove.errors import InputError, check_flag
from margrove.linear_svm.layout import check_prices
from margrove.linear_svm.machine import tell_problem
from margrove.linear_svm.problem import LinearPathProblem, LinearSvmSolution, Loss, Solver, is_squared
from margrove.linear_svm.search import CellTable, LinearSearch, default_cs
from margrove.linear_svm.svr import LinearSVR
from margrove.run.progress import towards
from margrove.status import Status
from margrove.svm.cross_validation import JudgeOfNumbers
from margrove.svm.folds import Splits, weight_in_fold
from margrove.svm.grid import ascending, listed_values, prices
from margrove.svm.scorers import Told

_LEAST_SECONDS = 1e-3  # of a path whose time is over


class LinearSVRCV(RegressorMixin, LinearSearch):
    """`LinearSVR` with C, and if you like ε, chosen by cross-validation, in one computation; see `LinearSVCCV`.

    What ``GridSearchCV(LinearSVR(), {"C": Cs})`` finds, many times faster: all folds are machines on the same points,
    where a row that is held out has the price 0, and each value of C begins where the last one ended. Then the best C
    is fitted on all rows, and certified.

    Parameters
    ----------
    Cs : list of float, optional
        Above 0 and at most 1e100. None is 0.001 … 100, half a decade apart; with the loss that is not squared these
        times the standard deviation of y, so that the unit of y does not matter.
    epsilons : list of float, optional
        Values of ε to search as well; None searches none and takes ``epsilon``.
    cv : int, splitter or iterable
        As in scikit-learn: an int is that many stretches of the rows as they come; groups and time series are welcome.
    scoring : str or callable, optional
        As in scikit-learn, anything that needs ``predict``. None is R².
    refit : bool
        Whether the best cell is fitted on all rows.
    time_limit : float, optional
        Seconds for the search; the refit comes after. Cells whose folds are all scored compete.
    epsilon, tol, loss, fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter, \
regularize_intercept, solver, n_jobs, engine
        As in `LinearSVR`.

    Attributes
    ----------
    cv_results_ : dict of arrays
        scikit-learn's columns, and for each cell ``max_gap``, the largest relative duality gap, and ``is_converged``.
        All of it is one computation: ``mean_fit_time`` is its time, shared out evenly.
    best_params_, best_score_, best_index_
        Of the best cell; of equals that of the smallest C, then of the smallest ε.
    best_estimator_ : LinearSVR
        Fitted on all rows.
    n_features_in_, n_splits_, scorer_, refit_time_
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
    >>> import numpy as np
    >>> from margrove import LinearSVRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> search = LinearSVRCV(Cs=[0.001, 1], cv=4).fit(X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=80))
    >>> search.best_params_, round(search.best_score_, 2), search.certificate_.holds
    ({'C': 1.0}, 1.0, True)
    """

    _machine = LinearSVR

    def __init__(
        self,
        *,
        Cs: Any = None,
        epsilons: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        loss: Loss = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
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
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.epsilon = epsilon
        self.tol = tol
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.regularize_intercept = regularize_intercept
        self.solver = solver
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.engine = engine

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Score every cell; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight`` weighs the
        rows in training and, as in scikit-learn, in scoring."""
        template = self._template().set_params(C=1.0)
        template._check()
        check_flag("refit", self.refit)
        self._check_scoring()
        Cs = None if self.Cs is None else prices(self.Cs)
        given = self.epsilons
        epsilons = None if given is None else ascending("epsilons", listed_values("epsilons", given), least=0)
        values = read_values(self, X, y, sample_weight)
        self._settle_scorer(template)
        splits = self._splits(X, y, groups, is_classifier=False)
        if Cs is None:
            Cs = default_cs() * (1.0 if is_squared(self.loss) else float(values.z.std()) or 1.0)
        table = _Table(template, values, splits, Cs, epsilons)
        self._forget()
        start = time.perf_counter()
        with towards(float(self.tol)):
            self.engine_ = table.fill(
                self.engine, Effort(self.time_limit, self.n_jobs, on_interrupt=self._on_interrupt)
            )
        seconds = time.perf_counter() - start
        self.status_ = table.status
        self._keep_table(table, JudgeOfNumbers(_Told(), self, values, (X, y), splits).scores, seconds)
        self._refit(template, X, y, sample_weight)
        return self

    score = LinearSearch.score  # by ``scoring``; the mixin's is R², whatever was asked


class _Told(Told, LinearSVR):
    """Of its values (rows, 1)."""

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        self._check_rows(X)
        return self._values


class _Table(CellTable):
    """A machine for each fold, along C for each ε. ``epsilons`` None is that of the template, which is not searched."""

    def __init__(
        self,
        template: LinearSVR,
        values: Values,
        splits: Splits,
        Cs: NDArray[np.float64],
        epsilons: NDArray[np.float64] | None,
    ) -> None:
        self._template, self._data, self._Cs = template, values, Cs
        self._epsilons = np.array([float(template.epsilon)]) if epsilons is None else epsilons
        own = np.ones(len(values.z)) if values.weight is None else values.weight
        self._prices = []  # of each fold, at C = 1
        for number, (train, _) in enumerate(splits):
            if not own[train].any():
                raise InputError(
                    f"the rows that fold {number} trains on all have the weight 0", cure="Use other folds, or weights."
                )
            self._prices.append(weight_in_fold(own[train], train, len(values.z)))
            check_prices(Cs[-1] * self._prices[-1])
        cells: list[dict[str, float]] = [{"C": float(C)} for C in Cs]
        if epsilons is not None:
            cells = [{**cell, "epsilon": float(epsilon)} for cell in cells for epsilon in epsilons]
        super().__init__(values.X, splits, cells, 1, 1)

    def fill(self, given: str | Engine, effort: Effort) -> str:
        """Solve all machines; return the name of the engine."""
        until = None if effort.time_limit is None else time.monotonic() + effort.time_limit
        targets = [self._data.z] * len(self._prices)
        for place, epsilon in enumerate(self._epsilons.tolist()):
            problem = self._template._stated(self._data.X, targets, self._prices, penalty="l2", epsilon=epsilon)
            engine = choose(given, problem)
            if self._template.verbose:
                tell_problem("LinearSVRCV", problem, engine)

            def take(rung: int, fold: int, solution: LinearSvmSolution, place: int = place) -> None:
                cell = rung * len(self._epsilons) + place
                self.values[fold][cell, 0] = self.held_out[fold] @ solution.w + solution.b
                self.enter(cell, fold, 0, solution)

            left = None if until is None else max(_LEAST_SECONDS, until - time.monotonic())
            engine.solve(LinearPathProblem(problem, self._Cs, take), replace(effort, time_limit=left))
            if self.status is not Status.CONVERGED:
                break
        self.close()
        return engine.name
