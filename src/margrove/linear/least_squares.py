"""Least squares as a classifier, to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margrove.data.sample import Sample, one_vs_rest_signs
from margrove.errors import check_flag
from margrove.estimator import checked, estimator
from margrove.linear.certificate import certify_least_squares
from margrove.linear.classifier import ClosedForm
from margrove.linear.problem import LeastSquaresProblem


@estimator
class LeastSquaresClassifier(ClosedForm):
    """Least squares on labels of ±1, for comparison: min Σ s_i (w·x_i + b − y_i)²; the shortest w of all solutions.

    Parameters
    ----------
    fit_intercept : bool
        If False, the boundary passes through the origin.
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

    _certify = certify_least_squares
    _failure = "the normal equations are not solved to 1e-10"

    fit_intercept: bool = checked(check_flag, default=True)
    class_weight: Mapping[Any, float] | str | None = None

    def _problem(self, sample: Sample) -> LeastSquaresProblem:
        sign = one_vs_rest_signs(sample.codes, len(sample.classes))
        return LeastSquaresProblem(sample.X, sign, sample.weight, bool(self.fit_intercept))
