"""LinearSVRCV: linear support vector regression with C, and perhaps ε, chosen by cross-validation."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from margrove.data.sample import Values, read_values
from margrove.errors import InputError
from margrove.estimator import estimator
from margrove.linear_svm.problem import LinearSvmProblem, Loss, is_squared
from margrove.linear_svm.search import LinearSearch, default_cs
from margrove.linear_svm.svr import LinearSVR
from margrove.svm.cross_validation import JudgeOfNumbers
from margrove.svm.folds import Splits, weight_in_fold
from margrove.svm.grid import ascending, listed_values, prices
from margrove.svm.scorers import Told


@estimator
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

    epsilons: ArrayLike | None = None
    epsilon: float = 0.0
    loss: Loss = "epsilon_insensitive"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Score every cell; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight`` weighs the
        rows in training and, as in scikit-learn, in scoring."""
        template: LinearSVR = self._checked_template()
        Cs = None if self.Cs is None else prices(self.Cs)
        given = self.epsilons
        epsilons = None if given is None else ascending("epsilons", listed_values("epsilons", given), least=0)
        values = read_values(self, X, y, sample_weight)
        splits = self._settled_splits(template, X, y, groups, is_classifier=False)
        if Cs is None:
            Cs = default_cs() * (1.0 if is_squared(self.loss) else float(values.z.std()) or 1.0)
        problem = self._problem(template, values, splits)
        judge = JudgeOfNumbers(_Told(), self, values, (X, y), splits)
        self._search(problem, Cs, epsilons, splits, judge)
        self._refit(template, X, y, sample_weight)
        return self

    score = LinearSearch.score  # by ``scoring``; the mixin's is R², whatever was asked

    def _problem(self, template: LinearSVR, values: Values, splits: Splits) -> LinearSvmProblem:
        """Return the machines of all folds at C = 1."""
        own = np.ones(len(values.z)) if values.weight is None else values.weight
        for number, (train, _) in enumerate(splits):
            if not own[train].any():
                raise InputError(
                    f"the rows that fold {number} trains on all have the weight 0", cure="Use other folds, or weights."
                )
        costs = [weight_in_fold(own[train], train, len(own)) for train, _ in splits]
        return template._stated(values.X, [values.z] * len(costs), costs)


class _Told(Told, LinearSVR):
    """Of its values (rows, 1)."""

    def _machine_values(self, X: ArrayLike) -> NDArray[np.float64]:
        self._check_rows(X)
        return self._values
