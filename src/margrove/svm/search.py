"""SVCCV and SVRCV: C, γ and ε chosen by cross-validation, as one computation with one kernel matrix per γ."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.data.sample import Sample, Values
from margrove.engine import choose
from margrove.errors import ParameterError, check_flag, shown
from margrove.estimator import checked, estimator
from margrove.run.checkpoint import CheckpointLike, Record, fingerprint, settle_checkpoint
from margrove.run.progress import overheard, part_of
from margrove.search.estimator import ClassifierSearch, CrossValidatedSearch, Grid, RegressorSearch
from margrove.search.folds import Splits, check_classes_of_folds, weight_in_fold
from margrove.search.grid import ascending, listed_values
from margrove.search.live_line import LiveLine
from margrove.search.scorers import Scores, name_of
from margrove.search.table import ScoreTable
from margrove.status import Status
from margrove.svm.checkpointing import keeper, kernel_key
from margrove.svm.folds import folds_of, machines_of, posed_search, search_order
from margrove.svm.kernels import KernelFunction, Matrix
from margrove.svm.layout import check_code, code_matrix
from margrove.svm.problem import check_costs, penalties, regression
from margrove.svm.search_problem import DualVariables, Fold, SearchProblem, SearchUnit, UnitSolution
from margrove.svm.svc import SVC
from margrove.svm.svr import SVR
from margrove.svm.training import settle_kernel, training_data

_CS = 10.0 ** np.arange(-1, 3, 0.5)  # 0.1 … 316
_GAMMAS = 4.0 ** np.arange(-3, 3)  # times what suits the data
_EPSILONS = np.array([0.01, 0.1, 0.3])  # times the deviation of y
# Parameters that decide a cell's score and are not in its duals.
_OF_A_SCORE = ("tol", "max_iter", "precision", "multiclass", "decision_function_shape", "break_ties")
_HAS_NO_GAMMA = ("linear", "intersection", "precomputed")


@estimator
class SupportVectorSearch(CrossValidatedSearch):
    """A search with kernels. Base class."""

    _measures: ClassVar = {"mean_n_support": "support", "max_violation": "violation"}
    _unconverged = "{cells} stopped before the violation was within tol={tol:g}; see cv_results_['is_converged']."
    _machines: ClassVar[Callable[..., Any]]  # (data, weights, folds) -> order of rows, machines, folds, splits

    gammas: ArrayLike | None = None
    drop_early: bool = checked(check_flag, default=False)
    kernel: str | KernelFunction = "rbf"
    degree: float = 3
    coef0: float = 0.0
    tol: float = 1e-3
    cache_size: str | float = "auto"
    max_iter: int = -1
    precision: str = "auto"
    checkpoint: CheckpointLike | None = None

    @property
    def _is_without_gamma(self) -> bool:
        return not isinstance(self.kernel, str) or self.kernel in _HAS_NO_GAMMA

    def _gammas(self, X: Matrix) -> NDArray[np.float64]:
        """Return the values of γ, ascending."""
        if self._is_without_gamma:
            if self.gammas is not None:
                raise ParameterError(f"gammas is {shown(self.gammas)}; kernel={self.kernel!r} has no gamma.")
            return np.ones(1)
        if self.gammas is None:
            base = "median" if self.kernel == "rbf" else 1.0 if self.kernel == "chi2" else "scale"
            return np.asarray(self._settled(X, base).gamma * _GAMMAS, dtype=np.float64)
        settled = [self._settled(X, gamma).gamma for gamma in listed_values("gammas", self.gammas)]
        return ascending("gammas", settled, above=0)

    def _settled(self, X: Matrix, gamma: Any) -> Any:
        return settle_kernel(self.kernel, X, gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _problem(self, template: Any, data: Any, weight: Any, splits: Splits, grid: Grid) -> tuple[Any, Splits]:
        X = data.X
        order, machines, folds, splits = self._machines(data, weight, splits)  # these count the rows in ``order``
        check_costs(grid["C"].max() * np.array([fold.weight.max() for fold in folds]))
        training = training_data(template, X)
        problem = posed_search(self, training, order, machines, folds)
        if training.solver_kernel.name != "precomputed":
            kernels = tuple(self._settled(X, float(gamma)) for gamma in grid["gamma"])
            problem = replace(problem, kernels=kernels)
        return problem, splits

    def _fill(self, problem: SearchProblem, table: ScoreTable, scores: Scores) -> Status:
        record = self._record(table, problem, scores)
        started = time.monotonic()
        status = Status.CONVERGED
        line = LiveLine(type(self).__name__, table) if self.verbose else None
        done, n_folds = 0, len(problem.folds)
        for numbers in [(number,) for number in range(n_folds)] if self.drop_early else [range(n_folds)]:
            part, places = self._part(table, problem, numbers)

            def take(number: int, solution: UnitSolution, places: list[Any] = places) -> None:
                found = {
                    "fit_time": solution.seconds.sum(axis=1),
                    "support": solution.support.sum(axis=1),
                    "violation": solution.violation.max(axis=1),
                    "is_converged": solution.is_converged.all(axis=1),
                }
                scores.enter(table, places[number], solution.values, found)

            part = replace(part, take=take)
            effort = self._effort().left(started)
            if record is not None:
                effort = replace(effort, look_around=keeper(record, lambda _: record.write(table.columns)))
            engine = choose(self.engine, part, effort)
            self.engine_ = engine.name
            later = part.n_cells * (n_folds - 1 - numbers[-1])  # at most: cells are given up on the way
            if part.units:
                with overheard(line.watch) if line else nullcontext(), part_of(done, later):
                    status = engine.solve(part, effort)
            done += part.n_cells
            if status is not Status.CONVERGED:
                break
        if line is not None:
            line.end(status)
        if record is not None and (self.refit or status is not Status.CONVERGED):
            record.write(table.columns)
        return status

    def _part(self, table: ScoreTable, problem: SearchProblem, folds: Any) -> tuple[SearchProblem, list[Any]]:
        """Return the units of some folds that have not been entered, without cells that are given up; and their places
        in the table."""
        Cs, epsilons = table.grid["C"], table.grid["epsilon"]
        wanted, is_entered = table.still_in(before=folds[0]), table.is_entered
        places, units = [], []
        for g, fold, e in product(range(len(problem.kernels)), folds, range(len(epsilons))):
            kept = np.flatnonzero(wanted[:, e, g])
            if len(kept) and not is_entered[kept, e, g, fold].all():
                places.append((kept, e, g, fold))
                units.append(SearchUnit(g, fold, Cs[kept], float(epsilons[e])))
        return replace(problem, units=tuple(units)), places

    def _record(self, table: ScoreTable, problem: SearchProblem, scores: Scores) -> Record | None:
        """Return the file of the search; the table goes on from it. The fingerprint holds all that cells depend on."""
        checkpoint = settle_checkpoint(self.checkpoint)
        if checkpoint is None:
            return None
        record = Record(
            checkpoint,
            fingerprint(
                "search",
                problem.X,
                [kernel_key(kernel) for kernel in problem.kernels],
                [(machine.y, machine.p, machine.point) for machine in problem.machines],
                [(fold.weight, fold.held_out) for fold in problem.folds],
                table.grid,
                [getattr(self, name, None) for name in ("classes_", *_OF_A_SCORE)],
                name_of(self.scoring),
                scores.weight,
            ),
        )
        for name, column in (record.read() or {}).items():
            table.columns[name][...] = column
        return record

    @property
    def _limits(self) -> dict[str, Any]:
        checkpoint = settle_checkpoint(self.checkpoint)
        return {**super()._limits, "checkpoint": None if checkpoint is None else checkpoint.beside(".refit")}

    def _refit(self, *given: Any) -> None:
        super()._refit(*given)
        if self.checkpoint is not None and self.status_ is Status.CONVERGED:
            settle_checkpoint(self.checkpoint).remove()


class _SVCOfValues(SVC):
    """An `SVC` that predicts from the values of its machines, shape (n, machines)."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def machine_decision(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(X)


@estimator
class SVCCV(SupportVectorSearch, ClassifierSearch):
    """`SVC` with C and γ chosen by cross-validation, in one computation.

    What ``GridSearchCV(SVC(), {"C": Cs, "gamma": gammas})`` finds, many times faster: the kernel matrix of each γ is
    computed once for all folds, classes and values of C; each value of C begins where the last one ended; rows held out
    are judged from the same matrix. Then the best cell is fitted on all rows, and certified.

    Parameters
    ----------
    Cs : list of float, optional
        Above 0 and at most 1e100: the hard margin is not in a grid. None is 0.1 … 316, half a decade apart.
    gammas : list of float or of "scale", "auto", "median", optional
        None is the median heuristic times 1/64 … 16. One kernel serves all folds: γ is settled on all rows.
    cv : int, splitter or iterable
        As in scikit-learn: an int is that many stratified folds; groups and time series are welcome.
    scoring : str or callable, optional
        As in scikit-learn, anything that needs ``predict`` or ``decision_function``. None is accuracy.
    refit : bool
        Whether the best cell is fitted on all rows.
    drop_early : bool
        Whether cells that are clearly beaten are given up after some folds: they trail the best cell in each, and on
        average by three standard errors of the difference. Their ``mean_test_score`` is NaN.
    time_limit : float, optional
        Seconds for the search, and again for the refit that follows. Cells whose folds are all scored compete.
    checkpoint : str, path or `Checkpoint`, optional
        A file where ``fit`` keeps the table every 30 seconds, or at the interval of a `Checkpoint`. A later ``fit`` of
        the same data, folds, grid and scoring computes what is missing. The refit keeps its own, with ``.refit`` at the
        end of its name. Both are removed when all is done. Folds that are drawn at random need a seed.
    verbose : bool
        One live line, or a plain one every few seconds where there is no terminal: share done, best score so far, time
        gone and left. Then what `SVC` prints of the refit.
    kernel, degree, coef0, tol, cache_size, class_weight, max_iter, decision_function_shape, break_ties, \
multiclass, n_jobs, engine, precision
        As in `SVC`. ``cache_size`` must hold n² kernel values for each thread; where it does not, they are computed
        as they are needed, which is slower.

    Attributes
    ----------
    cv_results_ : dict of arrays
        scikit-learn's columns, and for each cell ``mean_n_support``, ``max_violation`` and ``is_converged``.
        ``mean_fit_time`` is the time of the solves alone.
    best_params_, best_score_, best_index_
        Of the best cell; of equals the one of the smallest C, then of the smallest γ.
    best_estimator_ : SVC
        Fitted on all rows.
    classes_, n_features_in_, n_splits_, scorer_, refit_time_
        As in scikit-learn.
    status_, engine_, certificate_
        How the search ended, what ran, and what the refitted model claims.

    Notes
    -----
    Cells are solved to ``tol`` and not checked again; the refitted model is. Ctrl-C ends the search and keeps the table
    so far, without a refit.

    Examples
    --------
    >>> from margrove import SVCCV
    >>> from sklearn.datasets import load_iris
    >>> search = SVCCV(Cs=[0.1, 1, 10], gammas=[0.1, 1]).fit(*load_iris(return_X_y=True))
    >>> search.best_params_, round(search.best_score_, 3)
    ({'C': 1.0, 'gamma': 0.1}, 0.98)
    >>> search.certificate_.holds
    True
    """

    _machine = SVC
    _decider = _SVCOfValues

    decision_function_shape: str = "ovr"
    break_ties: bool = False
    multiclass: str | ArrayLike = "ovo"

    @property
    def _is_by_class(self) -> bool:
        return isinstance(self.multiclass, str) and self.multiclass == "ovr"

    def _grid(self, data: Sample) -> tuple[Grid, tuple[str, ...]]:
        Cs = _CS if self.Cs is None else penalties(self.Cs)
        grid = {"C": Cs, "epsilon": np.zeros(1), "gamma": self._gammas(data.X)}
        return grid, ("C",) if self._is_without_gamma else ("C", "gamma")

    def _machines(self, data: Sample, weight: Any, splits: Splits) -> tuple[Any, ...]:
        code = code_matrix(self.multiclass, len(data.classes))
        check_code(code, data.classes)
        check_classes_of_folds(data, splits)
        order, splits = search_order(data, splits)
        folds = folds_of(data, self.class_weight, weight, splits, order)
        return order, machines_of(code, data.codes[order]), folds, splits


@estimator
class SVRCV(SupportVectorSearch, RegressorSearch):
    """`SVR` with C, γ and ε chosen by cross-validation, in one computation; see `SVCCV`.

    Parameters
    ----------
    Cs : list of float, optional
        None is 0.1 … 316 times the standard deviation of y, half a decade apart.
    epsilons : list of float, optional
        None is 0.01, 0.1 and 0.3 times the standard deviation of y.
    gammas, cv, scoring, refit, drop_early, time_limit, checkpoint, verbose
        As in `SVCCV`; ``cv=5`` is five stretches of the rows as they come, ``scoring=None`` is R².
    kernel, degree, coef0, tol, cache_size, max_iter, n_jobs, engine, precision
        As in `SVR`.

    Attributes
    ----------
    cv_results_, best_params_, best_score_, best_index_, best_estimator_, n_splits_, scorer_, refit_time_, status_, \
engine_, certificate_
        As in `SVCCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import SVRCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> search = SVRCV(Cs=[1, 10, 100], gammas=[0.1, 1], epsilons=[0.01, 0.1], cv=3).fit(X[::-1], np.sin(X[:, 0]))
    >>> sorted(search.best_params_)
    ['C', 'epsilon', 'gamma']
    """

    _machine = SVR

    def _grid(self, data: Values) -> tuple[Grid, tuple[str, ...]]:
        spread = float(data.z.std()) or 1.0
        grid = {
            "C": spread * _CS if self.Cs is None else penalties(self.Cs),
            "epsilon": self._epsilons(spread * _EPSILONS),
            "gamma": self._gammas(data.X),
        }
        return grid, ("C", "epsilon") if self._is_without_gamma else ("C", "epsilon", "gamma")

    def _machines(self, data: Values, weight: Any, splits: Splits) -> tuple[Any, ...]:
        n = len(data.z)
        own = np.ones(n) if data.weight is None else data.weight
        folds = tuple(Fold(weight_in_fold(own[train], train, n), test) for train, test in splits)
        dual = regression(data.z, own, 0.0)
        return np.arange(n), (DualVariables(dual.y, dual.p, dual.point),), folds, splits
