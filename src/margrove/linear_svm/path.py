"""The regularisation path: models along C, from strong to weak regularisation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.engine import Effort, Engine, choose
from margrove.estimator import with_parameters
from margrove.linear_svm.layout import weights_of
from margrove.linear_svm.problem import CrammerSingerProblem, CrammerSingerSolution, LinearPathProblem, LinearProblem
from margrove.status import Status, worst
from margrove.svm.path import RegularisationPath
from margrove.svm.problem import check_costs

if TYPE_CHECKING:
    from margrove.linear_svm.machine import LinearSupportVectorMachine

DEFAULT_CS = 10.0 ** np.linspace(-3, 2, 20)
_ENDS_ALL = (Status.INTERRUPTED, Status.TIME_LIMIT)


@dataclass(frozen=True, repr=False)
class LinearPath(RegularisationPath):
    """Each `LinearSVC` or `LinearSVR` along C; see `margrove.svm.path.RegularisationPath`."""

    def __repr__(self) -> str:
        if not self.models:
            return f"LinearPath(no models, {self.status})"
        count, kind = len(self.models), type(self.models[0]).__name__
        along = f"C = {self.Cs[0]:g}" if count == 1 else f"C = {self.Cs[0]:g} … {self.Cs[-1]:g}"
        return f"LinearPath({count} {kind}, {along}, {self.status})"

    @property
    def coefs(self) -> NDArray[np.float64]:
        """w of each model and machine, shape (k, machines, d)."""
        return np.array([weights_of(model) for model in self.models])

    @property
    def margins(self) -> NDArray[np.float64]:
        """2/‖w‖, shape (k, machines)."""
        with np.errstate(divide="ignore"):
            return np.asarray(2 / np.linalg.norm(self.coefs, axis=2))

    @property
    def n_columns(self) -> NDArray[np.int64]:
        """Columns with a weight in any machine, shape (k,): with penalty l1 they come in one by one."""
        return np.asarray((self.coefs != 0).any(axis=1).sum(axis=1))

    @property
    def gaps(self) -> NDArray[np.float64]:
        """The relative duality gap, shape (k, machines)."""
        return np.array([model.gap_ for model in self.models])


def fit_path(
    reader: LinearSupportVectorMachine, problem: LinearProblem, Cs: NDArray[np.float64], effort: Effort
) -> LinearPath:
    """Fit models like ``reader``, which has read the data, along C. ``problem`` is at C = 1."""
    check_path_costs(problem, Cs)
    if isinstance(problem, CrammerSingerProblem):
        engine = choose(reader.engine, problem, effort)
        found: tuple[Any, ...] = tuple(joint_path(problem, Cs, engine, effort))
    else:
        path = LinearPathProblem(problem, Cs)
        engine = choose(reader.engine, path, effort)
        found = engine.solve(path, effort)
    models = []
    for C, solution in zip(Cs, found, strict=False):
        model = with_parameters(reader, C=float(C))
        model.__dict__.update({name: value for name, value in vars(reader).items() if name.endswith("_")})
        model.engine_ = engine.name
        model._keep(solution)
        if isinstance(problem, CrammerSingerProblem):
            model._keep_certificate(replace(problem, cost=C * problem.cost))
        else:
            machines = tuple(replace(each, cost=C * each.cost) for each in problem.machines)
            model._keep_certificate(replace(problem, machines=machines))
        models.append(model)
    return LinearPath(Cs[: len(models)], tuple(models), worst(each.status_ for each in models))


def check_path_costs(problem: LinearProblem, Cs: NDArray[np.float64]) -> None:
    """Raise `ParameterError` if the largest C times a cost of the problem is too large to compute with."""
    machines = (problem,) if isinstance(problem, CrammerSingerProblem) else problem.machines
    for machine in machines:
        check_costs(Cs[-1] * machine.cost)


def joint_path(
    problem: CrammerSingerProblem, Cs: NDArray[np.float64], engine: Engine, effort: Effort
) -> Iterator[CrammerSingerSolution]:
    """Solve Crammer and Singer's machine for each C. β of one C, times what C has grown by, begins the next."""
    started, beta = time.monotonic(), problem.beta
    for C, following in zip(Cs, (*Cs[1:], Cs[-1]), strict=True):
        solution = engine.solve(replace(problem, cost=C * problem.cost, beta=beta), effort.left(started))
        yield solution
        if solution.status in _ENDS_ALL:
            return
        beta = solution.beta * (following / C)
