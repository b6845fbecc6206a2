"""`SoftmaxClassifier`: the usual last layer of a network, beside the SVM and the tree.

    P(W, b) = ½‖W‖² + C Σ s_i ℓ_i,   ℓ_i = log Σ_k exp z_ik − z_{i,y_i},   z_i = W x_i + b

(with two classes one w, and ℓ_i = log(1 + exp(−y_i f_i))). scikit-learn solves it; the duality gap certifies the
solution: see `margrove.transfer.certificate`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgWarning
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

from margrove.data.sample import Sample, read_sample
from margrove.errors import check_number, check_whole
from margrove.estimator import check_parameters, checked, estimator
from margrove.linear.classifier import LinearClassifier
from margrove.linear.problem import LinearSolution
from margrove.status import Status
from margrove.svm.problem import MOST_BOUND
from margrove.transfer.certificate import RELATIVE_GAP, certify_softmax

_SLOPES = (1e-4, 1e-6, 1e-9)  # tolerances of scikit-learn on the largest gradient, tried until the gap is closed
_FEW_WEIGHTS = 1000  # up to here Newton's method, which needs their square in memory and ends nearer to the optimum


@estimator
class SoftmaxClassifier(LinearClassifier):
    """Multinomial logistic regression with a quadratic penalty: scikit-learn's solver, with a certificate.

    Parameters
    ----------
    C : float
        The cost of the loss, as in a support vector machine. 1e100 at most.
    tol : float
        The largest duality gap allowed, relative to the objective.
    max_iter : int
        Steps of the solver: Newton's for few weights, L-BFGS for many.
    class_weight : dict or "balanced", optional

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import SoftmaxClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
    >>> model = SoftmaxClassifier(C=10).fit(X, y)
    >>> model.predict_proba([[1.5]]).round(3)
    array([[0.5, 0.5]])
    >>> model.certificate_.holds
    True
    """

    C: float = checked(check_number, above=0, most=MOST_BOUND, default=1.0)
    tol: float = checked(check_number, above=0, default=RELATIVE_GAP)
    max_iter: int = checked(check_whole, least=1, default=1000)
    class_weight: Any = None

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Solve the problem and certify the solution."""
        check_parameters(self)
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        self.engine_ = "scikit-learn"
        for solution in self._solutions(sample):
            self._keep_linear(sample, solution)
            self.certificate_ = certify_softmax(self, sample)
            if self.certificate_.holds:
                return self
        self.status_ = Status.MAX_ITER if self.n_iter_ >= self.max_iter else Status.STALLED
        self.certificate_ = certify_softmax(self, sample)
        self._warn_unless_converged(f"the relative duality gap is above {self.tol:g}")
        return self

    def _solutions(self, sample: Sample) -> Iterator[LinearSolution]:
        """Yield solutions of rising precision, each warm-started from the last, with ``max_iter`` steps in all."""
        from sklearn.linear_model import LogisticRegression

        n_weights = sample.X.shape[1] * len(sample.classes)
        method = "newton-cholesky" if n_weights <= _FEW_WEIGHTS else "lbfgs"
        solver, n_iter = LogisticRegression(C=self.C, solver=method, warm_start=True), 0
        for slope in _SLOPES:
            with warnings.catch_warnings():
                for warning in (SklearnConvergenceWarning, LinAlgWarning, RuntimeWarning):  # the gap decides
                    warnings.simplefilter("ignore", warning)
                solver.set_params(tol=slope, max_iter=self.max_iter - n_iter)
                solver.fit(sample.X, sample.codes, sample.weight)
            n_iter += int(np.max(solver.n_iter_))
            coef, intercept = (np.array(each, np.float64) for each in (solver.coef_, solver.intercept_))
            yield LinearSolution(coef, intercept, n_iter=n_iter)
            if n_iter >= self.max_iter:
                return

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, (n, classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))
