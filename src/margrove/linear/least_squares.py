"""Least squares as a classifier, to compare with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from margrove.data.sample import read_sample
from margrove.engine import Effort, check_engine, choose
from margrove.errors import check_flag
from margrove.linear.certificate import certify_least_squares, is_recomputation_cheap
from margrove.linear.classifier import LinearClassifier
from margrove.linear.problem import LeastSquaresProblem, one_vs_rest_signs


class LeastSquaresClassifier(LinearClassifier):
    """Least squares on labels of ±1, for comparison (THEORY L5): min Σ s_i (w·x_i + b − y_i)².

    Parameters
    ----------
    fit_intercept : bool
        Whether the boundary may leave the origin.
    class_weight : dict or "balanced", optional
        Weights of classes.
    n_jobs, engine
        As in `BasicLinearClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import LeastSquaresClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> model = LeastSquaresClassifier().fit(X, y)
    >>> model.coef_.round(6), model.intercept_.round(6)
    (array([[0.8]]), array([-1.2]))
    """

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        class_weight: Any = None,
        n_jobs: int | None = None,
        engine: str = "auto",
    ) -> None:
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.engine = engine

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Solve the least-squares problem; the shortest w where many do equally well."""
        check_flag("fit_intercept", self.fit_intercept)
        check_engine(self.engine)
        effort = Effort(n_jobs=self.n_jobs)
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        sign = one_vs_rest_signs(sample.codes, len(sample.classes))
        problem = LeastSquaresProblem(sample.X, sign, sample.weight, bool(self.fit_intercept))
        engine = choose(self.engine, problem)
        self._keep_linear(sample, engine.solve(problem, effort), engine.name)
        self._warn_unless_converged("the normal equations are not solved to 1e-10")
        self._keep_certificate(
            certify_least_squares,
            (X, y, sample_weight),
            sample,
            is_cheap=is_recomputation_cheap(sample.X.shape[0] * sample.X.shape[1], passes=1),
            numbers=lambda: {"‖w‖": np.linalg.norm(self.coef_, axis=1)},
        )
        return self
