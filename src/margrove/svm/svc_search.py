"""SVCCV: support vector classification with C and γ chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import _safe_indexing

from margrove.checkpoint import CheckpointLike
from margrove.data.sample import Sample, read_sample
from margrove.errors import InputError, shown
from margrove.svm.folds import Splits, folds_of, ladders_of, search_order
from margrove.svm.grid import prices
from margrove.svm.layout import check_code, code_matrix
from margrove.svm.scorers import Told, asked
from margrove.svm.search import SupportVectorSearch, default_cs
from margrove.svm.svc import SVC

_NO_ROWS: list[Any] = []  # who is asked about, where only one asks


class SVCCV(ClassifierMixin, SupportVectorSearch):
    """`SVC` with C and γ chosen by cross-validation, in one computation (THEORY M2).

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
        Seconds for the search; the refit comes after. Cells whose folds are all scored compete.
    checkpoint : str, path or `Checkpoint`, optional
        A file where ``fit`` keeps the table every 30 seconds, or as often as a `Checkpoint` says. A later ``fit`` of
        the same data, folds, grid and scoring computes what is missing: a fold under one γ is done or begun anew. The
        refit keeps its own, of the same name with ``.refit`` at its end. Both are removed when all is done. Folds that
        are drawn at random need a seed to be the same.
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
    Cells are solved to ``tol`` and not checked again; the refitted model is. Kernel values are float32 where C times
    them leaves enough digits and γ leaves most rows a neighbour, and float64 elsewhere or with ``precision="double"``.
    Ctrl-C ends the search and keeps the table so far, without a refit.

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

    def __init__(
        self,
        *,
        Cs: Any = None,
        gammas: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        drop_early: bool = False,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: str | float = "auto",
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        multiclass: Any = "ovo",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        engine: str = "auto",
        precision: str = "auto",
        checkpoint: CheckpointLike | None = None,
    ) -> None:
        super().__init__(
            Cs=Cs,
            gammas=gammas,
            cv=cv,
            scoring=scoring,
            refit=refit,
            drop_early=drop_early,
            kernel=kernel,
            degree=degree,
            coef0=coef0,
            tol=tol,
            cache_size=cache_size,
            verbose=verbose,
            max_iter=max_iter,
            time_limit=time_limit,
            n_jobs=n_jobs,
            engine=engine,
            precision=precision,
            checkpoint=checkpoint,
        )
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.multiclass = multiclass

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Score every cell of the grid; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight``
        weighs the rows in training and, as in scikit-learn, in scoring."""
        template = self._template()
        template._check_classifier()
        self._check(template)
        Cs = default_cs() if self.Cs is None else prices(self.Cs)
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        self.classes_ = sample.classes
        self._settle_scorer(template)
        gammas = self._gammas(sample.X)
        code = code_matrix(self.multiclass, len(sample.classes))
        check_code(code, sample.classes)
        splits = self._splits(X, y, groups, is_classifier=True)
        _check_folds(sample, splits)
        order, splits = search_order(sample, splits)
        folds = folds_of(sample, self.class_weight, sample_weight, splits, order)
        ladders = ladders_of(code, sample.codes[order])
        judge = _Judge(self, sample, X, y, sample_weight, splits)
        grid = {"C": Cs, "epsilon": np.zeros(1), "gamma": gammas}
        searched = ("C",) if self._is_without_gamma else ("C", "gamma")
        self._fill(template, sample.X, order, ladders, folds, grid, judge.scores, searched, sample_weight)
        self._refit(template, X, y, sample_weight)
        self._finish_checkpoint()
        return self

    score = SupportVectorSearch.score  # by ``scoring``; the mixin's is accuracy, whatever was asked

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """By the refitted model."""
        return np.asarray(self._fitted.decision_function(X))


class _Told(Told, SVC):
    """Of its values (rows, machines)."""

    def machine_decision(self, X: ArrayLike) -> Any:
        self._check_rows(X)
        return self._values


class _Judge:
    """Scores of the machines' values on the rows held out."""

    def __init__(
        self,
        search: SVCCV,
        sample: Sample,
        X: Any,
        y: Any,
        sample_weight: Any,
        splits: Splits,
    ) -> None:
        self._told = _Told(
            multiclass=search.multiclass,
            decision_function_shape=search.decision_function_shape,
            break_ties=search.break_ties,
        )
        self._scorer = None if search.scoring is None else search.scorer_
        n_classes = len(sample.classes)
        self._told._rows = _NO_ROWS
        self._told.classes_ = np.arange(n_classes) if self._scorer is None else sample.classes
        self._X, self._y, self._codes, self._splits = X, y, sample.codes, splits
        self._weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        # A class that a fold has no rows of cannot be meant there.
        self._absent = [
            np.flatnonzero(np.bincount(sample.codes[train], minlength=n_classes) == 0) for train, _ in splits
        ]
        self._is_by_class = isinstance(search.multiclass, str) and search.multiclass == "ovr" and n_classes > 2

    def scores(self, fold: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        test = self._splits[fold][1]
        found = np.empty(len(values))
        if self._scorer is not None:
            X, y = _safe_indexing(self._X, test), _safe_indexing(self._y, test)
            self._told._rows = X
        for c, machines in enumerate(values):
            self._told._values = machines.T
            if self._is_by_class and len(self._absent[fold]):
                machines[self._absent[fold]] = -np.inf
            if self._scorer is None:
                found[c] = np.average(self._told.predict(_NO_ROWS) == self._codes[test], weights=self._weight_of(test))
            else:
                found[c] = asked(self._scorer, self._told, X, y, self._weight_of(test))
        return found

    def _weight_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return None if self._weight is None else self._weight[rows]


def _check_folds(sample: Sample, splits: Splits) -> None:
    for number, (train, _) in enumerate(splits):
        weight = None if sample.weight is None else sample.weight[train]
        mass = np.bincount(sample.codes[train], weights=weight, minlength=len(sample.classes))
        if (mass > 0).sum() < 2:
            raise InputError(
                f"fold {number} trains on one class only, {shown(sample.classes[int(np.argmax(mass))])}",
                cure="Use stratified folds (an int for cv), or fewer of them.",
            )
