"""LinearSVCCV: linear support vector classification with C chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from margrove.data.sample import Sample, read_sample
from margrove.estimator import estimator, fitted
from margrove.linear_svm.layout import is_joint, prices_of_classes
from margrove.linear_svm.problem import Loss, Penalty
from margrove.linear_svm.search import LinearSearch, Problems, default_cs
from margrove.linear_svm.svc import LinearSVC, own_weights, signs_of
from margrove.svm.cross_validation import Judge, check_folds
from margrove.svm.folds import Splits, weight_in_fold
from margrove.svm.grid import prices
from margrove.svm.scorers import Told


@estimator
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

    penalty: Penalty = "l2"
    loss: Loss = "squared_hinge"
    multi_class: str = "ovr"
    intercept_scaling: float = 1
    class_weight: Mapping[Any, float] | str | None = None

    classes_: NDArray[Any] = fitted()

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Score every C; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight`` weighs the rows
        in training and, as in scikit-learn, in scoring."""
        template: LinearSVC = self._checked_template()
        Cs = default_cs() if self.Cs is None else prices(self.Cs)
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        self.classes_ = sample.classes
        splits = self._settled_splits(template, X, y, groups, is_classifier=True)
        check_folds(sample, splits)
        problems = self._problems(template, sample, own_weights(sample, sample_weight), splits)
        told = _Told(multi_class=self.multi_class)
        judge = Judge(told, self, sample, (X, y, sample_weight), splits, is_by_class=not is_joint(self))
        self._search(problems, Cs, None, splits, judge)
        self._refit(template, X, y, sample_weight)
        return self

    score = LinearSearch.score  # by ``scoring``; the mixin's is accuracy, whatever was asked

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """By the refitted model."""
        return np.asarray(self._fitted.decision_function(X))

    def _problems(self, template: LinearSVC, sample: Sample, own: NDArray[np.float64], splits: Splits) -> Problems:
        """Return the machines of all folds at C = 1; Crammer and Singer's as a problem for each fold."""
        shares = (weight_in_fold(own[train], train, len(own)) for train, _ in splits)
        costs = [prices_of_classes(template, sample.classes, sample.codes, share) for share in shares]
        if is_joint(self):
            return [template._joint_problem(sample, cost) for (cost,) in costs]
        return template._stated(
            sample.X, list(signs_of(sample)) * len(costs), [cost for fold in costs for cost in fold]
        )


class _Told(Told, LinearSVC):
    """Of its values (rows, machines)."""

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        self._check_rows(X)
        return self._values
