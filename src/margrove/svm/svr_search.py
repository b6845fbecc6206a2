"""SVRCV: support vector regression with C, γ and ε chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from margrove.data.sample import read_values
from margrove.estimator import estimator
from margrove.svm.cross_validation import JudgeOfNumbers
from margrove.svm.folds import weight_in_fold
from margrove.svm.grid import Fold, Ladder, ascending, listed_values, prices
from margrove.svm.problem import regression
from margrove.svm.scorers import Told
from margrove.svm.search import SupportVectorSearch, default_cs
from margrove.svm.svr import SVR

_EPSILONS = np.array([0.01, 0.1, 0.3])  # times the deviation of y


@estimator
class SVRCV(RegressorMixin, SupportVectorSearch):
    """`SVR` with C, γ and ε chosen by cross-validation, in one computation; see `SVCCV`.

    Parameters
    ----------
    Cs : list of float, optional
        None is 0.1 … 316 times the standard deviation of y, half a decade apart.
    gammas : list of float or of "scale", "auto", "median", optional
        None is the median heuristic times 1/64 … 16. One kernel serves all folds: γ is settled on all rows.
    epsilons : list of float, optional
        None is 0.01, 0.1 and 0.3 times the standard deviation of y.
    cv, scoring, refit, drop_early, time_limit, checkpoint
        As in `SVCCV`; ``cv=5`` is five stretches of the rows as they come, ``scoring=None`` is R².
    verbose : bool
        One live line, or a plain one every few seconds where there is no terminal: share done, best score so far, time
        gone and left. Then what `SVR` prints of the refit.
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

    epsilons: ArrayLike | None = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Score every cell of the grid; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight``
        weighs the rows in training and, as in scikit-learn, in scoring."""
        template = self._template()
        self._check_search(template)
        Cs = None if self.Cs is None else prices(self.Cs)
        given = self.epsilons
        epsilons = None if given is None else ascending("epsilons", listed_values("epsilons", given), least=0)
        values = read_values(self, X, y, sample_weight)
        self._settle_scorer(template)
        spread = float(values.z.std()) or 1.0
        n = len(values.z)
        splits = self._splits(X, y, groups, is_classifier=False)
        own = np.ones(n) if values.weight is None else values.weight
        folds = tuple(Fold(weight_in_fold(own[train], train, n), test) for train, test in splits)
        dual = regression(values.z, own, 0.0)
        grid = {
            "C": spread * default_cs() if Cs is None else Cs,
            "epsilon": spread * _EPSILONS if epsilons is None else epsilons,
            "gamma": self._gammas(values.X),
        }
        scores = JudgeOfNumbers(_Told(), self, values, (X, y), splits).scores
        searched = ("C", "epsilon") if self._is_without_gamma else ("C", "epsilon", "gamma")
        ladder = Ladder(dual.y, dual.p, dual.point)
        self._fill(template, values.X, np.arange(n), (ladder,), folds, grid, scores, searched, sample_weight)
        self._refit(template, X, y, sample_weight)
        self._finish_checkpoint()
        return self

    score = SupportVectorSearch.score  # by ``scoring``; the mixin's is R², whatever was asked


class _Told(Told, SVR):
    """Of its values (rows, 1)."""

    def predict(self, X: ArrayLike) -> Any:
        self._check_rows(X)
        return self._values.ravel()
