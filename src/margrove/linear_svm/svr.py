"""Linear support vector regression."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils.metaestimators import available_if

from margrove.data.sample import Values, read_chunk, read_values, settle_weights
from margrove.engine import Effort
from margrove.errors import check_number
from margrove.linear_svm.certificate import certify_linear_svr
from margrove.linear_svm.chunks import read_chunked_values
from margrove.linear_svm.layout import check_prices
from margrove.linear_svm.machine import needs_pulls
from margrove.linear_svm.path import LinearPath, fit_path, values_of_c
from margrove.linear_svm.problem import LinearSvmProblem, LinearSvmSolution, Loss, Solver
from margrove.linear_svm.streaming import Streaming, learns_pieces

_LOSSES: tuple[Loss, ...] = ("epsilon_insensitive", "squared_epsilon_insensitive")
_NAME = ("regression",)


class LinearSVR(RegressorMixin, Streaming):
    """Linear support vector regression with w explicit (THEORY M10): for many rows, or many sparse columns.

    A drop-in for scikit-learn's ``LinearSVR``: the same parameters and attributes, ends on a duality gap, and has a
    certificate.

    Parameters
    ----------
    epsilon : float
        ε, half the width of the tube within which there is no loss, in units of y.
    tol : float
        The relative duality gap at which it has converged; see `LinearSVC`.
    C : float
        The price of leaving the tube: min ½‖w‖² + C Σ ℓ. 1e100 at most, times its weights too.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        ``max(0, |y − f(x)| − ε)``, the loss of `SVR`, or its square.
    fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter
        As in `LinearSVC`.
    regularize_intercept, solver, warm_start, time_limit, n_jobs, engine
        As in `LinearSVC`.

    Attributes
    ----------
    coef_ : array of shape (d,)
    intercept_ : array of shape (1,)
    n_iter_, n_features_in_
        As in scikit-learn.
    gap_, primal_, dual_ : arrays of shape (1,)
        As in `LinearSVC`.
    dual_coef_ : array of shape (1, n)
        α − α* of each row, for the loss that is not squared.
    solver_, status_, engine_, certificate_
        As in `LinearSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import LinearSVR
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LinearSVR(C=100.0, tol=1e-6).fit(X, X[:, 0])
    >>> model.predict([[1.5]]).round(3)
    array([1.5])
    >>> model.certificate_.holds
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: Loss = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: Any = "auto",
        verbose: Any = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        regularize_intercept: bool = True,
        solver: Solver = "auto",
        warm_start: bool = False,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        engine: str = "auto",
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.regularize_intercept = regularize_intercept
        self.solver = solver
        self.warm_start = warm_start
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.engine = engine

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find w and b. ``sample_weight`` multiplies C of each row."""
        effort = self._check()
        problem = self._problem(read_values(self, X, y, sample_weight))
        if self.warm_start and hasattr(self, "coef_"):
            problem = self._warmed(problem, [0])
        self._keep_answer(self._solved(problem, effort))
        self._keep_certificate(certify_linear_svr, (X, y, sample_weight), problem.X, _NAME)
        return self

    def path(
        self, X: ArrayLike, y: ArrayLike, Cs: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> LinearPath:
        """The models along C, each with its certificate; see `LinearSVC.path`."""
        effort, Cs = self._check(), values_of_c(Cs)
        reader = clone(self).set_params(C=1.0)
        problem = reader._problem(read_values(reader, X, y, sample_weight))

        def certify(fitted: LinearSVR) -> None:
            fitted._keep_certificate(certify_linear_svr, (X, y, sample_weight), problem.X, _NAME)

        return fit_path(reader, Cs, problem, LinearSVR._keep_answer, certify, effort)

    def fit_stream(self, chunks: Any, *, max_passes: int = 100) -> Self:
        """Find w and b of rows that come in chunks, and need not fit into memory; see `LinearSVC.fit_stream`.

        Examples
        --------
        >>> import numpy as np
        >>> from margrove import LinearSVR
        >>> chunks = [([[0.0], [1.0]], [0.0, 1.0]), ([[2.0], [3.0]], [2.0, 3.0])]
        >>> LinearSVR(C=100.0, tol=1e-6).fit_stream(chunks).predict([[1.5]]).round(3)
        array([1.5])
        """
        effort, began = self._check(), time.monotonic()
        self._check_streamed(max_passes)
        sample = read_chunked_values(self, chunks, self.loss, float(self.epsilon), is_first=True)
        solutions = self._solve_stream(sample, float(self.epsilon), max_passes, effort, began)
        self._keep_stream(solutions, sample.rows.n, sample.machines)
        self.coef_ = self.coef_[0]
        return self

    @available_if(learns_pieces)
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn a piece of the rows, and forget them: one step of block minimisation; see `LinearSVC.partial_fit`."""
        effort = self._check()
        X, z = read_chunk(self, X, y, reset=not hasattr(self, "coef_"), y_numeric=True)
        weight = settle_weights(X, z, sample_weight, None)
        prices = check_prices(float(self.C) * (np.ones(len(z)) if weight is None else weight))
        targets = np.asarray(z, dtype=np.float64)[None]
        self._learn_piece(X, targets, prices[None], float(self.epsilon), _NAME, effort)
        self.coef_ = self.coef_[0]
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """f(x) of each row."""
        return self._machine_values(X).ravel()

    def _check(self) -> Effort:
        effort = self._check_shared(_LOSSES)
        check_number("epsilon", self.epsilon, least=0)
        self._settled_solver("l2", 1)
        return effort

    def _problem(self, values: Values) -> LinearSvmProblem:
        own = np.ones(len(values.z)) if values.weight is None else values.weight
        prices = check_prices(float(self.C) * own)
        return self._stated(values.X, [values.z], [prices], penalty="l2", epsilon=float(self.epsilon))

    def _keep_answer(self, answer: tuple[LinearSvmSolution, ...]) -> None:
        (solution,) = answer
        self.coef_, self.intercept_ = solution.w, np.array([solution.b])
        self._forget_rows()
        if needs_pulls(self, answer):
            self.dual_coef_ = solution.beta[None]
        self._keep_solutions(answer, _NAME)
