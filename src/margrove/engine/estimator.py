"""The base class of estimators that solve a problem on an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sklearn.base import BaseEstimator

from margrove.engine.registry import Engine, check_engine, choose
from margrove.estimator import Interruptible, check_parameters, checked, estimator, fitted, fixed
from margrove.problem import Problem
from margrove.run.effort import Effort, check_threads
from margrove.status import Status

if TYPE_CHECKING:
    from margrove.predictor import Predictor

S = TypeVar("S")


@estimator
class RunsOnEngine(Interruptible, BaseEstimator):
    """Parameters of the engine and the limits of a fit. Base class."""

    time_limit: float | None = fixed(None)
    n_jobs: int | None = checked(check_threads, default=None)
    engine: str | Engine = "auto"
    status_: Status = fitted()
    engine_: str = fitted()

    def predictor(self) -> Predictor:
        """Return the predictions of the fitted model alone, as a light `margrove.Predictor`."""
        from margrove.predictor import predictor_of

        return predictor_of(self)

    def _check(self) -> None:
        """Raise an error if a parameter is wrong. Subclasses add the rules for several parameters."""
        check_parameters(self)
        check_engine(self.engine)

    def _effort(self) -> Effort:
        """Return how much a solve may cost."""
        return Effort(self.time_limit, self.n_jobs, on_interrupt=self._on_interrupt)

    def _solve(self, problem: Problem[S]) -> S:
        """Solve the problem on the engine that is given or chosen; keep the engine's name as ``engine_``."""
        effort = self._effort()
        engine = choose(self.engine, problem, effort)
        solution = engine.solve(problem, effort)
        self.engine_ = engine.name
        return solution
