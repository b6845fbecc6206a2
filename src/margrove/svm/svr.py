"""Support vector regression: with a tube of given width ε, and with ν, which finds the width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from margrove.certificate import Certificate
from margrove.data.sample import read_values
from margrove.errors import check_flag, check_number
from margrove.run.checkpoint import CheckpointLike
from margrove.svm.certificate import certify_nu_svr, certify_svr
from margrove.svm.fitted import Ground, Solved
from margrove.svm.kkt import NU_REGRESSION, REGRESSION
from margrove.svm.machine import SupportVectorMachine, bounds, check_nu, rows_that_count
from margrove.svm.problem import Dual, nu_regression, regression


class SupportVectorRegressor(RegressorMixin, SupportVectorMachine):
    """What the two regressions share. Not a learner by itself."""

    C: float
    n_iter_: int

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """f(x) of each row."""
        points = self._read_points(X)
        return np.asarray(self._sums(points)[:, 0] + self.intercept_[0])

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        state: Callable[[NDArray[np.float64], NDArray[np.float64]], Dual],
        certify: Callable[[Any, Any, Any, Any], Certificate],
    ) -> Solved:
        """``state`` makes the dual of the values and the bounds of the rows that take part."""
        check_number("C", self.C, above=0)
        effort = self._check_shared()
        values = read_values(self, X, y, sample_weight)
        ground = self._ground(values.X)
        rows = rows_that_count(values.weight, len(values.z))
        dual = state(values.z[rows], bounds(self.C, values.weight, rows))
        dual = replace(dual, point=rows[dual.point])
        if getattr(self, "warm_start", False) and self.__sklearn_is_fitted__():
            dual = self._started(dual, self.dual_coef_[0], 0, len(values.z))
        solved = self._solve(ground, [dual], ["regression"], effort)
        self._keep_regression(ground, solved)
        self._remember_weights()
        self._keep_certificate(certify, (X, y, sample_weight), ground, solved)
        self._finish_checkpoint()
        return solved[0]

    def _keep_regression(self, ground: Ground, solved: list[Solved]) -> None:
        only = solved[0]
        beta = np.zeros(ground.X.shape[0])  # α − α*
        np.add.at(beta, only.machine.dual.point, only.beta)
        support = np.flatnonzero(beta)
        self._keep(ground, solved, support)
        self.dual_coef_ = beta[support][None, :]
        self.n_support_ = np.array([len(support)], np.int32)
        self.n_iter_ = only.solution.n_iter


class SVR(SupportVectorRegressor):
    """Support vector regression (THEORY M10): the flattest f that stays within ε of the values, at a price C for what
    leaves that tube.

    A drop-in for scikit-learn's ``SVR``: the same parameters and attributes, and a certificate.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
        As in `SVC`.
    C : float
        The price of leaving the tube: min ½‖w‖² + C Σ (ξ_i + ξ*_i).
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

    def __init__(
        self,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: str | float = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        sigma: float | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        engine: str = "auto",
        precision: str = "auto",
        warm_start: bool = False,
        checkpoint: CheckpointLike | None = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            sigma=sigma,
            tol=tol,
            shrinking=shrinking,
            cache_size=cache_size,
            verbose=verbose,
            max_iter=max_iter,
            time_limit=time_limit,
            n_jobs=n_jobs,
            engine=engine,
            precision=precision,
            checkpoint=checkpoint,
        )
        self.C = C
        self.epsilon = epsilon
        self.warm_start = warm_start

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the flattest f. ``sample_weight`` multiplies C of each row; rows of weight 0 take no part."""
        check_number("epsilon", self.epsilon, least=0)
        check_flag("warm_start", self.warm_start)

        def state(z: NDArray[np.float64], upper: NDArray[np.float64]) -> Dual:
            return regression(z, upper, float(self.epsilon))

        self._fit(X, y, sample_weight, state, certify_svr)
        return self


class NuSVR(SupportVectorRegressor):
    """Support vector regression with ν (THEORY M10): the width of the tube is found, such that at most ν of the rows
    lie outside it.

    A drop-in for scikit-learn's ``NuSVR``: the same parameters and attributes, and a certificate.

    Parameters
    ----------
    nu : float
        ν, above 0 and at most 1: at most this share of rows outside the tube, at least this share of support vectors.
    C : float
        The price of leaving the tube: min ½‖w‖² + C (ν n ε + Σ (ξ_i + ξ*_i)).
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

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: str | float = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        sigma: float | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        engine: str = "auto",
        precision: str = "auto",
        checkpoint: CheckpointLike | None = None,
    ) -> None:
        super().__init__(
            kernel=kernel,
            degree=degree,
            gamma=gamma,
            coef0=coef0,
            sigma=sigma,
            tol=tol,
            shrinking=shrinking,
            cache_size=cache_size,
            verbose=verbose,
            max_iter=max_iter,
            time_limit=time_limit,
            n_jobs=n_jobs,
            engine=engine,
            precision=precision,
            checkpoint=checkpoint,
        )
        self.nu = nu
        self.C = C

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find f and its tube. ``sample_weight`` multiplies C of each row; rows of weight 0 take no part."""
        check_nu(self.nu)

        def state(z: NDArray[np.float64], upper: NDArray[np.float64]) -> Dual:
            return nu_regression(z, upper, float(self.nu))

        solved = self._fit(X, y, sample_weight, state, certify_nu_svr)
        self.epsilon_ = -solved.machine.rho
        return self
