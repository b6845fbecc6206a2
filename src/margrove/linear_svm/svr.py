"""Linear support vector regression."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.data.partitions import Partitions
from margrove.data.sample import read_chunk, read_values, settle_weights
from margrove.errors import check_choice, check_number
from margrove.estimator import checked, estimator
from margrove.linear_svm.chunks import ChunkedSample, read_chunked_values
from margrove.linear_svm.partitions import read_partitioned_values
from margrove.linear_svm.problem import LinearProblem, Loss
from margrove.linear_svm.streaming import Streaming, learns_pieces
from margrove.svm.problem import check_costs

_LOSSES: tuple[Loss, ...] = ("epsilon_insensitive", "squared_epsilon_insensitive")


@estimator
class LinearSVR(RegressorMixin, Streaming):
    """Linear support vector regression with w explicit: for many rows, or many sparse columns.

    A drop-in replacement for scikit-learn's ``LinearSVR``, with the same parameters and attributes and a certificate.
    Its solver stops on the duality gap.

    Parameters
    ----------
    epsilon : float
        ε, half the width of the tube within which there is no loss, in units of y.
    tol : float
        The relative duality gap at which it has converged; see `LinearSVC`.
    C : float
        The cost of leaving the tube: min ½‖w‖² + C Σ ℓ. C times any weight must be at most 1e100.
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

    _names = ("regression",)

    epsilon: float = checked(check_number, least=0, default=0.0)
    loss: Loss = checked(check_choice, allowed=_LOSSES, default="epsilon_insensitive")

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
        return self._fit_chunks(partial(read_chunked_values, self, chunks, is_first=True), max_passes)

    def _read_partitions(self, parts: Partitions) -> ChunkedSample:
        return read_partitioned_values(self, parts, is_first=True)

    @available_if(learns_pieces)
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn a piece of the rows, and forget them: one step of block minimisation; see `LinearSVC.partial_fit`."""
        self._check()
        X, z = read_chunk(self, X, y, reset=not hasattr(self, "coef_"), y_numeric=True)
        weight = settle_weights(X, z, sample_weight, None)
        costs = check_costs(float(self.C) * (np.ones(len(z)) if weight is None else weight))
        targets = np.asarray(z, dtype=np.float64)[None]
        self._keep_piece(self._solve_piece(X, targets, costs[None]), len(z))
        return self

    def predict(self, X: ArrayLike) -> Any:
        """Return f(x) of each row."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict", X, np.float64)
        return self._machine_values(X).ravel()

    def _check(self) -> None:
        super()._check()
        self._settled_solver(1)

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> tuple[LinearProblem, dict[str, Any]]:
        values = read_values(self, X, y, sample_weight)
        own = np.ones(len(values.z)) if values.weight is None else values.weight
        problem = self._stated(values.X, [values.z], [check_costs(float(self.C) * own)])
        return self._warmed(problem, self._names), {}

    def _set_weights(self, coef: NDArray[np.float64], intercept: list[float]) -> None:
        super()._set_weights(coef[0], intercept)
