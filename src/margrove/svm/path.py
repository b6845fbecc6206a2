"""The models along C: what the margin, the support vectors and the coefficients do as slack gets dearer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from margrove.data.sample import read_sample, take_columns_of
from margrove.engine import choose
from margrove.run.progress import towards
from margrove.status import Status, worst
from margrove.svm.certificate import certify_svc
from margrove.svm.grid import prices
from margrove.svm.problem import PathProblem

_DEFAULT = 10.0 ** np.linspace(-2, 3, 20)


@dataclass(frozen=True)
class SupportVectorPath:
    """Models along C, ascending.

    Attributes
    ----------
    Cs : array of shape (k,)
    models : tuple of k fitted `SVC`
    status : Status
        ``converged``, or why the path ended early; ``models`` are then those that were reached.
    """

    Cs: NDArray[np.float64]
    models: tuple[Any, ...]
    status: Status

    @property
    def margins(self) -> NDArray[np.float64]:
        """2/‖w‖, shape (k, machines)."""
        return np.array([model.margin_ for model in self.models])

    @property
    def n_support(self) -> NDArray[np.int64]:
        """Support vectors of each model, shape (k,)."""
        return np.array([len(model.support_) for model in self.models])


def fit_path(model: Any, X: ArrayLike, y: ArrayLike, Cs: Any, sample_weight: Any) -> SupportVectorPath:
    """`SVC.path`."""
    model._check_classifier()
    effort = model._check_shared()
    values = _DEFAULT.copy() if Cs is None else prices(Cs)
    reader = clone(model)
    sample = read_sample(reader, X, y, sample_weight, model.class_weight)

    def state(sign: Any, weight: Any, rows: Any) -> Any:
        return model._dual(float(values[0]), sign, weight, rows)

    ground, duals, names = reader._state(sample, state)
    rungs = [[model._dual(float(C), dual.y, sample.weight, dual.point) for dual in duals] for C in values]
    uppers = tuple(tuple(dual.upper for dual in rung) for rung in rungs[1:])
    ground, first = reader._problem(ground, duals)
    with towards(first.tol):
        problem = PathProblem(first, uppers)
        engine = choose(model.engine, problem)
        found = engine.solve(problem, effort)
    models = []
    for C, rung, solutions in zip(values, rungs, found, strict=False):
        fitted = clone(model).set_params(C=float(C), probability=False)
        take_columns_of(fitted, reader)
        started = [replace(dual, alpha=np.zeros(len(dual.y))) for dual in rung]
        solved = fitted._settle(ground, started, names, solutions, engine.name)
        fitted._keep_classifier(sample, ground, solved)
        fitted._keep_certificate(certify_svc, (X, y, sample_weight), ground, solved)
        models.append(fitted)
    reason = worst(model.status_ for model in models)
    return SupportVectorPath(values[: len(models)], tuple(models), reason)
