"""The regularisation path: models along C."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.data.sample import take_columns_of
from margrove.engine import choose
from margrove.estimator import with_parameters
from margrove.status import Status, worst
from margrove.svm.problem import PathProblem, penalties
from margrove.svm.solving import dual_problem, settle_solutions
from margrove.svm.training import bounds

if TYPE_CHECKING:
    from margrove.svm.svc import SVC

_DEFAULT = 10.0 ** np.linspace(-2, 3, 20)


@dataclass(frozen=True)
class RegularisationPath:
    """Models along C, ascending.

    Attributes
    ----------
    Cs : array of shape (k,)
    models : tuple of k fitted models
    status : Status
        ``converged``, or why the path ended early; ``models`` are then those that were reached.
    """

    Cs: NDArray[np.float64]
    models: tuple[Any, ...]
    status: Status


@dataclass(frozen=True)
class SupportVectorPath(RegularisationPath):
    """Each `SVC` along C; see `RegularisationPath`."""

    @property
    def margins(self) -> NDArray[np.float64]:
        """2/‖w‖, shape (k, machines)."""
        return np.array([model.margin_ for model in self.models])

    @property
    def n_support(self) -> NDArray[np.int64]:
        """Support vectors of each model, shape (k,)."""
        return np.array([len(model.support_) for model in self.models])


def fit_path(
    model: SVC, X: ArrayLike, y: ArrayLike, Cs: ArrayLike | None, sample_weight: ArrayLike | None
) -> SupportVectorPath:
    """Fit the models of `SVC.path`."""
    model._check()
    values = _DEFAULT.copy() if Cs is None else penalties(Cs)
    reader = with_parameters(model, C=float(values[0]))
    sample = reader._read(X, y, sample_weight)
    machines = reader._machines(sample)
    uppers = [tuple(bounds(float(C), sample.weight, dual.point) for dual in machines.duals) for C in values]
    machines, first = dual_problem(reader, machines)
    problem = PathProblem(first, tuple(uppers[1:]))
    effort = model._effort()
    engine = choose(model.engine, problem, effort)
    found = engine.solve(problem, effort)
    models = []
    for C, upper, solutions in zip(values, uppers, found, strict=False):
        fitted = with_parameters(model, C=float(C), probability=False, checkpoint=None)
        take_columns_of(fitted, reader)
        duals = [replace(dual, upper=bound) for dual, bound in zip(machines.duals, upper, strict=True)]
        stated = replace(machines, duals=duals)
        solved = settle_solutions(fitted, stated, solutions, engine)
        fitted._keep(sample, machines.data, solved)
        fitted._keep_certificate(stated, solved)
        models.append(fitted)
    reason = worst(model.status_ for model in models)
    return SupportVectorPath(values[: len(models)], tuple(models), reason)
