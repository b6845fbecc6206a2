"""Margins: distances of points from the boundary, above 0 on the right side.

functional margin  m = y f(x)           not a distance: it grows when w does
margin             z = y f(x) / ‖w‖     a distance
of a classifier    the smallest over a set of points
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.certificate import at_the_end
from margrove.data.sample import codes_of, one_vs_rest_signs, read_points
from margrove.errors import InputError
from margrove.svm.kernels import kernel_norms, kernel_of, sums_by_blocks
from margrove.svm.layout import code_of, coefficients_of, dense


@dataclass(frozen=True)
class Margins:
    """Margins of points; one column per machine where there are several, NaN where a machine ignores a row."""

    functional: NDArray[np.float64]  # (n,) or (n, machines)
    geometric: NDArray[np.float64]  # the same shape: distances

    @property
    def smallest(self) -> Any:
        """Margin of the classifier on these points: the smallest distance, per machine."""
        smallest = np.fmin.reduce(self.geometric, axis=0)  # NaN where a machine ignores the row
        return float(smallest) if smallest.ndim == 0 else smallest


def margins(model: Any, X: Any, y: Any) -> Margins:
    """Return functional and geometric margins of a fitted linear or kernel classifier, Margrove's or scikit-learn's.

    Parameters
    ----------
    model : a fitted classifier with ``coef_`` or ``dual_coef_`` and ``support_vectors_``, or a pipeline ending in one
    X : array of shape (n, d)
    y : labels of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import BasicLinearClassifier, margins
    >>> X, y = np.array([[-2.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), np.array([0, 0, 1, 1])
    >>> margins(BasicLinearClassifier().fit(X, y), X, y).smallest
    1.0
    """
    model, X = at_the_end(model, X)
    if getattr(model, "variant", None) == "voted":
        raise InputError(
            "a voted perceptron has no margins: it decides with many weight vectors, not with one",
            cure=Advice("Use ", Setting("variant", "averaged"), "."),
        )
    if not hasattr(model, "classes_") and hasattr(model, "dual_coef_"):
        raise InputError(f"{type(model).__name__} has no margins: it is not a classifier")
    if not hasattr(model, "coef_") and not hasattr(model, "dual_coef_"):
        found = f"{type(model).__name__} has no margins: it has neither coef_ nor dual_coef_"
        raise InputError(found, cure="Fit it first, or pass a linear or kernel classifier.")
    codes = codes_of(y, model.classes_)
    if hasattr(model, "n_support_"):
        sign, decisions = code_of(model)[codes].astype(np.float64), machine_values(model, X)
    else:
        sign = one_vs_rest_signs(codes, len(model.classes_)).T.astype(np.float64)  # (n, machines)
        decision = np.asarray(model.decision_function(X), dtype=np.float64)
        decisions = decision[:, None] if decision.ndim == 1 else decision
    if decisions.shape != sign.shape:
        raise InputError(
            f"the model returns {decisions.shape[1]} decision values for {len(model.classes_)} classes",
            cure="Margins need one machine for two classes, or one per class (one-vs-rest).",
        )
    functional = np.where(sign != 0, sign * decisions, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # ‖w‖ = 0 has no boundary to be away from
        geometric = functional / weight_norms(model)
    if functional.shape[1] == 1:
        functional, geometric = functional[:, 0], geometric[:, 0]
    return Margins(functional, geometric)


def machine_values(model: Any, X: Any) -> NDArray[np.float64]:
    """Return f(x) of every machine of a classifier, Margrove's or scikit-learn's, shape (n, machines)."""
    if hasattr(model, "machine_decision"):
        return np.asarray(model.machine_decision(X), dtype=np.float64)
    points, kernel, beta = read_points(model, X), kernel_of(model), coefficients_of(model)
    if kernel.name != "precomputed" and model.support_vectors_.shape[0] < len(model.support_):
        raise InputError("a scikit-learn model with a callable kernel keeps no support vectors, so it has no margins")
    if kernel.name == "precomputed":
        return np.asarray(points[:, model.support_] @ beta.T + model.intercept_)
    return np.asarray(sums_by_blocks(kernel, points, model.support_vectors_, beta) + model.intercept_)


def weight_norms(model: Any) -> NDArray[np.float64]:
    """Return ‖w‖ of each machine: from w itself, as the model keeps it, or as √(βᵀKβ) from the dual coefficients β."""
    if hasattr(model, "norm_"):
        return np.asarray(model.norm_, np.float64)
    if not hasattr(model, "kernel"):  # a LinearSVC may keep dual coefficients beside w, of no kernel
        return np.asarray(np.linalg.norm(np.atleast_2d(np.asarray(model.coef_, np.float64)), axis=1))
    beta = coefficients_of(model) if hasattr(model, "n_support_") else dense(model.dual_coef_)
    return kernel_norms(kernel_of(model), model.support_vectors_, beta)
