"""Machines and costs from classes and weights: estimators pose them, and certificates pose them again.

Two classes make one machine, more make one each, as in `margrove.linear.problem`. The cost of row i is C times its own
weight times that of a class, as LIBLINEAR has it: two classes, and Crammer and Singer's machine, take the weight of the
row's class; one of several machines takes the weight of its class for its own rows and 1 for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.data.sample import class_weights
from margrove.linear_svm.problem import LinearMachine, LinearSvmProblem
from margrove.svm.problem import check_costs


def scale_of_intercept(model: Any) -> float:
    """s of a model: 0 without an intercept, ∞ for a free one."""
    if not model.fit_intercept:
        return 0.0
    return float(model.intercept_scaling) if getattr(model, "regularize_intercept", True) else float("inf")


def weights_of(model: Any) -> NDArray[np.float64]:
    """w of each machine, shape (machines, d), sparsified or not."""
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    return np.atleast_2d(np.asarray(coef, dtype=np.float64))


def stated_problem(
    model: Any, X: Matrix, targets: Iterable[NDArray[np.float64]], costs: Iterable[NDArray[np.float64]]
) -> LinearSvmProblem:
    """Return machines with these targets and costs as one problem, with the loss and penalty of the model."""
    return LinearSvmProblem(
        X,
        tuple(LinearMachine(target, cost) for target, cost in zip(targets, costs, strict=True)),
        loss=model.loss,
        penalty=getattr(model, "penalty", "l2"),
        intercept=scale_of_intercept(model),
        epsilon=float(getattr(model, "epsilon", 0.0)),
        tol=float(model.tol),
        max_iter=int(model.max_iter),
    )


def is_joint(model: Any) -> bool:
    """Return whether one machine separates all classes (Crammer and Singer)."""
    return bool(model.multi_class == "crammer_singer")


def costs_of_classes(
    model: Any, classes: NDArray[Any], codes: NDArray[np.integer[Any]], own: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """Return C_i of each machine, shape (n,), perhaps one array for all; ``own`` are the rows' own weights."""
    return costs_by_class(model, class_weights(model.class_weight, classes, codes, own), codes, own)


def costs_by_class(
    model: Any, by_class: NDArray[np.float64], codes: NDArray[np.integer[Any]], own: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """As `costs_of_classes`, for weights of classes, shape (K,), that are known already."""
    n_classes = len(by_class)
    costs = float(model.C) * own
    is_one = n_classes == 2 or is_joint(model)
    if model.class_weight is None:
        return [check_costs(costs)] * (1 if is_one else n_classes)
    if is_one:
        return [check_costs(costs * by_class[codes])]
    return [check_costs(np.where(codes == k, by_class[k], 1.0) * costs) for k in range(n_classes)]
