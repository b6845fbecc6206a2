"""The one-class support vector machine: where most of the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin

from margrove.data.sample import read_points, settle_weights
from margrove.run.checkpoint import CheckpointLike
from margrove.svm.certificate import certify_one_class
from margrove.svm.kkt import ONE_CLASS
from margrove.svm.machine import SupportVectorMachine, bounds, check_nu, rows_that_count
from margrove.svm.problem import one_class


class OneClassSVM(OutlierMixin, SupportVectorMachine):
    """The one-class support vector machine (THEORY M10): the plane that parts the rows from the origin of the feature
    space, all but a share ν of them.

    A drop-in for scikit-learn's ``OneClassSVM``: the same parameters and attributes, and a certificate.

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

    offset_: NDArray[np.float64]
    n_iter_: int

    def __init__(
        self,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        nu: float = 0.5,
        shrinking: bool = True,
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

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the boundary; ``y`` is ignored. ``sample_weight`` is the bound of each row; 0 leaves it out."""
        check_nu(self.nu)
        effort = self._check_shared()
        points = read_points(self, X, reset=True)
        weight = settle_weights(points, None, sample_weight, None)
        ground = self._ground(points)
        rows = rows_that_count(weight, points.shape[0])
        dual = replace(one_class(bounds(1.0, weight, rows), float(self.nu)), point=rows)
        solved = self._solve(ground, [dual], ["one class"], effort)
        carriers = np.flatnonzero(solved[0].beta)
        self._keep(ground, solved, rows[carriers])
        self.dual_coef_ = solved[0].beta[carriers][None, :]
        self.n_support_ = np.array([len(carriers)], np.int32)
        self.n_iter_ = solved[0].solution.n_iter
        self.offset_ = -self.intercept_
        self._keep_certificate(certify_one_class, (X, None, sample_weight), ground, solved)
        self._finish_checkpoint()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Σ α_i K(x_i, x) − ρ of each row: above 0 inside, below 0 outside."""
        points = self._read_points(X)
        return np.asarray(self._sums(points)[:, 0] + self.intercept_[0])

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Σ α_i K(x_i, x) of each row."""
        return np.asarray(self.decision_function(X) + self.offset_)

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """+1 for a row inside, −1 for one outside."""
        return np.where(self.decision_function(X) > 0, 1, -1).astype(np.intp)
