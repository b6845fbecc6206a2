"""Support vector regression: with a tube of given width ε, and with ν, which finds the width."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from margrove.data.sample import read_values
from margrove.errors import check_flag, check_number
from margrove.estimator import checked, estimator, fitted
from margrove.svm.kkt import NU_REGRESSION, REGRESSION
from margrove.svm.machine import SupportVectorMachine, check_nu
from margrove.svm.problem import HARD_MARGIN
from margrove.svm.solving import Solved
from margrove.svm.training import TrainingData, read_rows


@estimator
class SupportVectorRegressor(RegressorMixin, SupportVectorMachine):
    """Base class of the two regressions."""

    C: float = checked(check_number, above=0, beyond=HARD_MARGIN, default=1.0)
    n_iter_: int = fitted()

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the flattest f, and its tube if ν is given. ``sample_weight`` multiplies C of each row; rows with
        weight ≤ 0 are ignored."""
        self._check()
        X, objects = read_rows(self, X)
        values = read_values(self, X, y, sample_weight, ignores_negative=True)
        return self._fit_one(values.X, objects, values.z, values.weight)

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return f(x) of each row."""
        return self._value(X)


@estimator
class SVR(SupportVectorRegressor):
    """Support vector regression: the flattest f that stays within ε of the values, at a cost C for what leaves that
    tube.

    A drop-in replacement for scikit-learn's ``SVR``, with the same parameters and attributes, and a certificate.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
        As in `SVC`.
    C : float
        The cost of leaving the tube: min ½‖w‖² + C Σ (ξ_i + ξ*_i). ``inf`` allows no row to leave it (the hard tube);
        if no f stays within it, an `InfeasibleError` shows why.
    epsilon : float
        ε, half the width of the tube, in units of y.
    shrinking, cache_size, verbose, max_iter, sigma, time_limit, n_jobs, engine, precision, warm_start, checkpoint
        As in `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_
        Rows on the edge of the tube or outside it.
    dual_coef_ : array of shape (1, s)
        α − α* of each support vector.
    intercept_ : array of shape (1,)
    coef_, n_iter_, gamma_, fit_status_, shape_fit_, norm_, status_, engine_, certificate_
        As in `SVC`; ``n_iter_`` is a number.
    kkt_ : array of shape (n,)
        "easy" (inside the tube), "marginal" (on its edge) or "hard" (outside).

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import SVR
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = SVR(kernel="linear", C=100.0, epsilon=0.1).fit(X, X[:, 0])
    >>> model.predict([[1.5]]).round(3)
    array([1.5])
    """

    _form = REGRESSION

    C: float = checked(check_number, above=0, cure="inf allows no slack.", also=(math.inf,), default=1.0)
    epsilon: float = checked(check_number, least=0, default=0.1)
    warm_start: bool = checked(check_flag, default=False)


@estimator
class NuSVR(SupportVectorRegressor):
    """Support vector regression with ν: the width of the tube is found, such that at most ν of the rows lie outside
    it.

    A drop-in replacement for scikit-learn's ``NuSVR``, with the same parameters and attributes, and a certificate.

    Parameters
    ----------
    nu : float
        ν, above 0 and at most 1: at most this share of rows outside the tube, at least this share of support vectors.
    C : float
        The cost of leaving the tube: min ½‖w‖² + C (ν n ε + Σ (ξ_i + ξ*_i)).
    kernel, degree, gamma, coef0, shrinking, tol, cache_size, verbose, max_iter
        As in `SVC`.
    sigma, time_limit, n_jobs, engine, precision, checkpoint
        As in `SVC`.

    Attributes
    ----------
    epsilon_ : float
        Half the width of the tube that was found.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, n_iter_, gamma_, kkt_
        As in `SVR`.
    fit_status_, shape_fit_, norm_, status_, engine_, certificate_
        As in `SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import NuSVR
    >>> X = np.arange(10.0)[:, None]
    >>> model = NuSVR(kernel="linear", C=100.0, nu=0.5, tol=1e-6).fit(X, X[:, 0] + np.tile([-1, 1], 5))
    >>> round(model.epsilon_, 3)
    1.0
    """

    _form = NU_REGRESSION

    nu: float = checked(check_nu, default=0.5)

    def _keep_one(self, data: TrainingData, solved: list[Solved]) -> None:
        super()._keep_one(data, solved)
        self.epsilon_ = -solved[0].machine.rho
