"""The models along C: what margins and weights do as losses get dearer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from margrove.data.sample import take_columns_of
from margrove.engine import Effort, Engine, choose
from margrove.linear_svm.layout import check_prices, weights_of
from margrove.linear_svm.problem import CrammerSingerProblem, LinearPathProblem, LinearSvmProblem
from margrove.run.progress import towards
from margrove.status import Status, worst
from margrove.svm.grid import prices

_DEFAULT = 10.0 ** np.linspace(-3, 2, 20)


@dataclass(frozen=True, repr=False)
class LinearPath:
    """Models along C, ascending.

    Attributes
    ----------
    Cs : array of shape (k,)
    models : tuple of k fitted `LinearSVC` or `LinearSVR`
    status : Status
        ``converged``, or why the path ended early; ``models`` are then those that were reached.
    """

    Cs: NDArray[np.float64]
    models: tuple[Any, ...]
    status: Status

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


def values_of_c(Cs: Any) -> NDArray[np.float64]:
    """As given, ascending, each once; None is 0.001 … 100 in 20 steps."""
    return _DEFAULT.copy() if Cs is None else prices(Cs)


def fit_path(
    model: Any,
    Cs: NDArray[np.float64],
    problem: LinearSvmProblem | CrammerSingerProblem,
    keep: Callable[[Any, Any], None],
    certify: Callable[[Any], None],
    effort: Effort,
) -> LinearPath:
    """The path of ``model``, which has read the data; ``problem`` is at C = 1. ``keep`` gives a clone of it what the
    engine answered, ``certify`` its certificate."""
    if isinstance(problem, CrammerSingerProblem):
        check_prices(Cs[-1] * problem.cost)
    else:
        for machine in problem.machines:
            check_prices(Cs[-1] * machine.cost)
    with towards(problem.tol):
        engine = choose(model.engine, problem)
        found = solve_path(problem, Cs, engine, effort)
    models = []
    for C, answer in zip(Cs, found, strict=False):
        fitted = clone(model).set_params(C=float(C))
        take_columns_of(fitted, model)
        fitted.engine_ = engine.name
        keep(fitted, answer)
        certify(fitted)
        models.append(fitted)
    return LinearPath(Cs[: len(models)], tuple(models), worst(each.status_ for each in models))


def solve_path(
    problem: LinearSvmProblem | CrammerSingerProblem, Cs: NDArray[np.float64], engine: Engine, effort: Effort
) -> Sequence[Any]:
    """What the engine answers for each C. Crammer and Singer's machine goes up by itself: β of one C, times what C has
    grown by, begins the next."""
    if isinstance(problem, LinearSvmProblem):
        return engine.solve(LinearPathProblem(problem, Cs), effort)
    found: list[Any] = []
    until = None if effort.time_limit is None else time.monotonic() + effort.time_limit
    for rung, C in enumerate(Cs):
        left = None if until is None else max(1e-3, until - time.monotonic())
        beta = found[-1].beta * (C / Cs[rung - 1]) if found else None
        rung_problem = replace(problem, cost=C * problem.cost, beta=beta)
        found.append(engine.solve(rung_problem, replace(effort, time_limit=left)))
        if found[-1].status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            break
    return found
