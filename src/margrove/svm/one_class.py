"""The one-class support vector machine: novelty detection."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin

from margrove.data.sample import read_points, settle_weights
from margrove.estimator import checked, estimator, fitted
from margrove.svm.kkt import ONE_CLASS
from margrove.svm.machine import SupportVectorMachine, check_nu
from margrove.svm.solving import Solved
from margrove.svm.training import TrainingData, read_rows


@estimator
class OneClassSVM(OutlierMixin, SupportVectorMachine):
    """One-class support vector machine: the plane that separates all but a share ν of the rows from the origin of the
    feature space.

    A drop-in replacement for scikit-learn's ``OneClassSVM``, with the same parameters and attributes and a certificate.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
        As in `SVC`.
    nu : float
        ν, above 0 and at most 1: at most this share of rows is outside, at least this share are support vectors.
    shrinking, cache_size, verbose, max_iter, sigma, time_limit, n_jobs, engine, precision, checkpoint
        As in `SVC`.

    Attributes
    ----------
    support_, support_vectors_, n_support_
        Rows on the boundary or outside.
    dual_coef_ : array of shape (1, s)
        α, with Σα = ν n.
    intercept_, offset_ : arrays of shape (1,)
        −ρ and ρ: f(x) = Σ α_i K(x_i, x) − ρ.
    coef_, n_iter_, gamma_, fit_status_, shape_fit_, norm_, status_, engine_, certificate_
        As in `SVC`; ``n_iter_`` is a number.
    kkt_ : array of shape (n,)
        "easy" (inside), "marginal" (on the boundary) or "hard" (outside).

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import OneClassSVM
    >>> X = np.array([[-0.2], [-0.1], [0.0], [0.1], [0.2], [5.0]])
    >>> OneClassSVM(nu=0.5, gamma=1.0).fit(X).predict([[0.05], [5.0]])
    array([ 1, -1])
    """

    _form = ONE_CLASS

    nu: float = checked(check_nu, default=0.5)

    offset_: NDArray[np.float64] = fitted()
    n_iter_: int = fitted()

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the boundary; ``y`` is ignored. ``sample_weight`` is the bound of each row; rows with weight ≤ 0 are
        ignored."""
        self._check()
        X, objects = read_rows(self, X)
        points = read_points(self, X, reset=True)
        weight = settle_weights(points, None, sample_weight, None, ignores_negative=True)
        return self._fit_one(points, objects, np.zeros(points.shape[0]), weight)

    def _keep_one(self, data: TrainingData, solved: list[Solved]) -> None:
        super()._keep_one(data, solved)
        self.offset_ = -self.intercept_

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return Σ α_i K(x_i, x) − ρ of each row: above 0 inside, below 0 outside."""
        return self._value(X)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return Σ α_i K(x_i, x) of each row."""
        return np.asarray(self.decision_function(X) + self.offset_)

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return +1 for a row inside, −1 for one outside."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)
