"""The perceptron in the dual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.data.sample import Sample, read_sample
from margrove.errors import check_number
from margrove.estimator import checked, estimator, fitted
from margrove.linear.certificate import certify_kernel_perceptron
from margrove.linear.classifier import MistakeDriven
from margrove.linear.problem import KernelPerceptronProblem, KernelPerceptronSolution
from margrove.svm.decision import check_points, matched, weighted_sums
from margrove.svm.kernels import Matrix, kernel_of
from margrove.svm.training import settle_kernel


@estimator
class KernelPerceptron(MistakeDriven):
    """The perceptron in the dual: counts of mistakes α and a kernel in place of x·z, so that the boundary
    can be curved.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection", "precomputed"} or callable
        See `margrove.svm.kernels`. For "precomputed" X is the Gram matrix; a callable gets two arrays of rows and
        returns the matrix of kernel values.
    gamma : {"scale", "auto", "median"} or float
        γ; "median" is 1 / (2 · median squared distance).
    sigma : float, optional
        For "rbf": γ = 1/(2σ²). Excludes ``gamma``.
    degree, coef0 : float
        p and r of (γ x·z + r)^p.
    cache_size : float
        MiB for kernel rows. While all rows fit, none is computed twice.
    eta0, fit_intercept, max_iter, shuffle, class_weight, time_limit, random_state, n_jobs, engine
        As in `Perceptron`.

    Attributes
    ----------
    support_ : array of shape (s,)
        Rows on which a mistake was ever made.
    support_vectors_ : array or CSR matrix of shape (s, d)
    dual_coef_ : array of shape (machines, s)
        β = η α y: f(x) = Σ β_i K(x_i, x) + b.
    intercept_ : array of shape (machines,)
        b = Σ β_i, from the homogeneous coordinate.
    n_mistakes_ : array of shape (machines,)
    gamma_ : float
    norm_ : array of shape (machines,)
        ‖w‖ in the feature space.
    status_, engine_, certificate_, n_iter_
        As in `Perceptron`.

    Examples
    --------
    XOR, which no line separates:

    >>> import numpy as np
    >>> from margrove import KernelPerceptron
    >>> X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
    >>> KernelPerceptron(kernel="rbf", gamma=1.0, random_state=0).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    kernel: str | Callable[[Any, Any], Any] = "rbf"
    gamma: str | float = "scale"
    sigma: float | None = None
    degree: float = 3
    coef0: float = 0.0
    cache_size: float = checked(check_number, above=0, cure="It is in MiB.", default=1024)

    _certify = certify_kernel_perceptron

    support_: NDArray[np.int64] = fitted()
    support_vectors_: Matrix = fitted()
    dual_coef_: NDArray[np.float64] = fitted()
    gamma_: float = fitted()
    norm_: NDArray[np.float64] = fitted()

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Count mistakes until a whole pass makes none. Rows of weight 0 are left out."""
        self._check()
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        problem = self._problem(sample)
        self._keep(sample, problem, self._solve(problem))
        self._warn_unless_converged("the rows are not separated")
        width = 1 if self.kernel == "precomputed" else self.n_features_in_
        numbers = {"mistakes made": self.n_mistakes_, "‖w‖": self.norm_}
        self._keep_certificate(sample, self.n_rows_ * len(self.support_) * width, numbers)
        return self

    def _decision(self, points: Matrix) -> NDArray[np.float64]:
        kernel = kernel_of(self)
        if kernel.name == "precomputed":
            return np.asarray(points[:, self.support_] @ self.dual_coef_.T + self.intercept_)
        check_points(kernel, points)
        points, support = matched(points, self.support_vectors_)
        return weighted_sums(self, kernel, points, support, self.dual_coef_) + self.intercept_

    def _problem(self, sample: Sample) -> KernelPerceptronProblem:
        kernel = settle_kernel(
            self.kernel, sample.X, gamma=self.gamma, sigma=self.sigma, degree=self.degree, coef0=self.coef0
        )
        cache_bytes = int(min(self.cache_size * (1 << 20), 2.0**62))
        return KernelPerceptronProblem(sample.X, kernel=kernel, **self._walk(sample), cache_bytes=cache_bytes)

    def _keep(self, sample: Sample, problem: KernelPerceptronProblem, solution: KernelPerceptronSolution) -> None:
        self.classes_, self.status_, self.n_iter_ = sample.classes, solution.status, solution.n_iter
        weight = 1.0 if sample.weight is None else sample.weight
        dual = problem.eta * solution.alpha * weight * problem.sign  # (machines, n)
        self.support_ = np.flatnonzero(solution.alpha.any(axis=0))
        is_given = problem.kernel.name == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if is_given else problem.X[self.support_]
        self.dual_coef_ = np.ascontiguousarray(dual[:, self.support_])
        self.intercept_ = dual.sum(axis=1) if problem.fit_intercept else np.zeros(len(dual))
        self.gamma_ = problem.kernel.gamma
        self.n_mistakes_ = solution.mistakes
        self.n_rows_ = sample.X.shape[0]
        # ‖w‖² = Σ β_i w·φ(x_i), and the solver holds f(x_i) = w·φ(x_i) + b.
        without_offset = solution.decision - self.intercept_[:, None]
        unit = float(np.abs(dual).max(initial=0)) or 1.0  # squares of a tiny or huge β do not underflow or overflow
        self.norm_ = unit * np.sqrt(np.maximum(np.einsum("mn,mn->m", dual / unit, without_offset / unit), 0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.positive_only = self.kernel in ("chi2", "intersection")
        return tags
