"""Margins (THEORY L4): how far on the right side each point lies.

functional margin  m = y f(x)           not a distance: it grows when w does
margin             z = y f(x) / ‖w‖     a distance
of a classifier    the smallest over a set of points
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.certificate import at_the_end
from margrove.data.sample import read_points
from margrove.errors import InputError, listed, shown
from margrove.linear.problem import one_vs_rest_signs
from margrove.svm.kernels import Kernel, Matrix
from margrove.svm.layout import code_of, coefficients_of, dense

_BLOCK_CELLS = 1 << 22  # kernel values held at once


@dataclass(frozen=True)
class Margins:
    """Margins of points; one column per machine where there are several, NaN where a row has no part in one."""

    functional: NDArray[np.float64]  # (n,) or (n, machines)
    geometric: NDArray[np.float64]  # the same shape: distances

    @property
    def smallest(self) -> Any:
        """The margin of the classifier on these points: the smallest distance, per machine."""
        smallest = np.fmin.reduce(self.geometric, axis=0)  # NaN stands where a row has no part
        return float(smallest) if smallest.ndim == 0 else smallest


def margins(model: Any, X: Any, y: Any) -> Margins:
    """Functional and geometric margins of a fitted linear or kernel classifier, Margrove's or scikit-learn's.

    Parameters
    ----------
    model : a fitted classifier with ``coef_`` or ``dual_coef_`` and ``support_vectors_``, or a pipeline ending in one
    X : array of shape (n, d)
    y : labels of shape (n,)

    Returns
    -------
    Margins

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
            "a voted perceptron has no margins: it decides by many vectors, not by one", cure="Use variant='averaged'."
        )
    if not hasattr(model, "classes_") and hasattr(model, "dual_coef_"):
        raise InputError(f"{type(model).__name__} has no margins: it is no classifier")
    if not hasattr(model, "coef_") and not hasattr(model, "dual_coef_"):
        found = f"{type(model).__name__} has no margins: it has neither coef_ nor dual_coef_"
        raise InputError(found, cure="Fit it first, or give a linear or kernel classifier.")
    codes = codes_of(y, model.classes_)
    if hasattr(model, "n_support_"):
        sign, decisions = code_of(model)[codes].astype(np.float64), machine_values(model, X)
    else:
        sign = one_vs_rest_signs(codes, len(model.classes_)).T.astype(np.float64)  # (n, machines)
        decision = np.asarray(model.decision_function(X), dtype=np.float64)
        decisions = decision[:, None] if decision.ndim == 1 else decision
    if decisions.shape != sign.shape:
        raise InputError(
            f"the model gives {decisions.shape[1]} decision values for {len(model.classes_)} classes",
            cure="Margins need one machine for two classes, or one per class (one-vs-rest).",
        )
    functional = np.where(sign != 0, sign * decisions, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # ‖w‖ = 0 has no boundary to be away from
        geometric = functional / weight_norms(model)
    if functional.shape[1] == 1:
        functional, geometric = functional[:, 0], geometric[:, 0]
    return Margins(functional, geometric)


def machine_values(model: Any, X: Any) -> NDArray[np.float64]:
    """f(x) of every machine of a support vector classifier, Margrove's or scikit-learn's, shape (n, machines)."""
    if hasattr(model, "machine_decision"):
        return np.asarray(model.machine_decision(X), dtype=np.float64)
    points, kernel, beta = read_points(model, X), kernel_of(model), coefficients_of(model)
    if kernel.name != "precomputed" and model.support_vectors_.shape[0] < len(model.support_):
        raise InputError("a scikit-learn model with a callable kernel keeps no support vectors, so it has no margins")
    values = np.empty((points.shape[0], len(beta)))
    step = max(1, _BLOCK_CELLS // max(1, beta.shape[1]))
    for start in range(0, points.shape[0], step):
        rows: Any = slice(start, start + step)
        is_given = kernel.name == "precomputed"
        K = points[rows][:, model.support_] if is_given else kernel.matrix(points[rows], model.support_vectors_)
        values[rows] = K @ beta.T
    return np.asarray(values + model.intercept_)


def codes_of(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Labels as positions in ``classes``; a label that is not there is an error."""
    labels = np.asarray(y).ravel()
    try:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    except TypeError as error:  # text and numbers have no order
        found = f"labels such as {shown(labels[0])} are of another kind than the model's classes ({listed(classes)})"
        raise InputError(found) from error
    strangers = classes[codes] != labels
    if np.any(strangers):
        first = labels[np.argmax(strangers)]
        raise InputError(f"label {shown(first)} is none of the model's classes ({listed(classes)})")
    return codes


def weight_norms(model: Any) -> NDArray[np.float64]:
    """‖w‖ of each machine: from w itself, as the model keeps it, or as √(βᵀKβ) from the dual coefficients β."""
    if hasattr(model, "norm_"):
        return np.asarray(model.norm_, np.float64)
    if not hasattr(model, "kernel"):  # a LinearSVC may keep dual coefficients beside w, of no kernel
        return np.asarray(np.linalg.norm(np.atleast_2d(np.asarray(model.coef_, np.float64)), axis=1))
    beta = coefficients_of(model) if hasattr(model, "n_support_") else dense(model.dual_coef_)
    return kernel_norms(kernel_of(model), model.support_vectors_, beta)


def kernel_of(model: Any) -> Kernel:
    """The kernel of a fitted kernel model, settled."""
    if callable(model.kernel):
        return Kernel("callable", function=model.kernel)
    gamma = getattr(model, "gamma_", None)
    return Kernel(
        model.kernel, float(model._gamma if gamma is None else gamma), float(model.coef0), float(model.degree)
    )


def kernel_norms(
    kernel: Kernel, support: Matrix, dual: NDArray[np.float64], gram: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """√(βᵀKβ) for each row β of ``dual``, the kernel in blocks of rows. ``gram`` is K for kernel "precomputed"."""
    unit = float(np.abs(dual).max(initial=0)) or 1.0  # the square of a tiny or huge β does not underflow or overflow
    dual = dual / unit
    squared = np.zeros(len(dual))
    n = dual.shape[1]
    step = max(1, _BLOCK_CELLS // max(1, n))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        block = gram[rows] if gram is not None else kernel.matrix(support[rows], support)
        squared += np.einsum("mi,ij,mj->m", dual[:, rows], block, dual, optimize=True)
    return np.asarray(unit * np.sqrt(np.maximum(squared, 0)))
