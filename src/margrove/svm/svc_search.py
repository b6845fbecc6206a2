"""SVCCV: support vector classification with C and γ chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from margrove.data.sample import read_sample
from margrove.estimator import estimator, fitted
from margrove.svm.cross_validation import Judge, check_folds
from margrove.svm.folds import folds_of, ladders_of, search_order
from margrove.svm.grid import prices
from margrove.svm.layout import check_code, code_matrix
from margrove.svm.scorers import Told
from margrove.svm.search import SupportVectorSearch, default_cs
from margrove.svm.svc import SVC


@estimator
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
        Seconds for the search, and again for the refit that follows. Cells whose folds are all scored compete.
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

    class_weight: Mapping[Any, float] | str | None = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    multiclass: str | ArrayLike = "ovo"

    classes_: NDArray[Any] = fitted()

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Score every cell of the grid; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight``
        weighs the rows in training and, as in scikit-learn, in scoring."""
        template = self._template()
        self._check_search(template)
        Cs = default_cs() if self.Cs is None else prices(self.Cs)
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        self.classes_ = sample.classes
        self._settle_scorer(template)
        gammas = self._gammas(sample.X)
        code = code_matrix(self.multiclass, len(sample.classes))
        check_code(code, sample.classes)
        splits = self._splits(X, y, groups, is_classifier=True)
        check_folds(sample, splits)
        order, splits = search_order(sample, splits)
        folds = folds_of(sample, self.class_weight, sample_weight, splits, order)
        ladders = ladders_of(code, sample.codes[order])
        told = _Told(
            multiclass=self.multiclass,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
        )
        is_by_class = isinstance(self.multiclass, str) and self.multiclass == "ovr"
        judge = Judge(told, self, sample, (X, y, sample_weight), splits, is_by_class=is_by_class)
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
