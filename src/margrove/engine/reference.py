"""The reference engine: hands each problem to its family's ``reference.py``."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from margrove.boost import reference as boost
from margrove.boost.model import BoostSolution
from margrove.boost.problem import BoostProblem
from margrove.engine import Effort
from margrove.engine.units import solve_by_units
from margrove.errors import EngineError
from margrove.linear import reference as linear
from margrove.linear.problem import (
    CentroidProblem,
    KernelPerceptronProblem,
    KernelPerceptronSolution,
    LeastSquaresProblem,
    LinearSolution,
    PerceptronProblem,
    PerceptronSolution,
)
from margrove.linear_svm import reference as linear_svm
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    CrammerSingerSolution,
    LinearPathProblem,
    LinearSvmProblem,
    LinearSvmSolution,
)
from margrove.select import reference as select
from margrove.select.problem import ColumnProblem, ColumnTests
from margrove.status import Status
from margrove.svm import reference as svm
from margrove.svm.grid import SearchProblem
from margrove.svm.problem import DualProblem, DualSolution, LeaveOneOutProblem, LeftOut, PathProblem
from margrove.tree import reference as tree
from margrove.tree.model import TreeSolution
from margrove.tree.problem import TreeProblem


@singledispatch
def solve(problem: Any, effort: Effort) -> Any:
    """Solve ``problem`` in plain NumPy."""
    raise EngineError(f"engine='reference' cannot solve a {type(problem).__name__}. Use engine='native'.")


def _refuse_time_limit(effort: Effort) -> None:
    if effort.look_around is not None:
        raise EngineError("engine='reference' does not look around. Leave checkpoint out, or use engine='native'.")
    if effort.time_limit is not None:
        raise EngineError("engine='reference' keeps no clock. Leave time_limit out, or use engine='native'.")


@solve.register
def _(problem: CentroidProblem, effort: Effort) -> LinearSolution:
    return linear.basic_linear(problem)


@solve.register
def _(problem: LeastSquaresProblem, effort: Effort) -> LinearSolution:
    return linear.least_squares(problem)


@solve.register
def _(problem: PerceptronProblem, effort: Effort) -> PerceptronSolution:
    _refuse_time_limit(effort)
    return linear.perceptron(problem)


@solve.register
def _(problem: LinearSvmProblem, effort: Effort) -> tuple[LinearSvmSolution, ...]:
    _refuse_time_limit(effort)
    return linear_svm.linear_svm(problem)


@solve.register
def _(problem: LinearPathProblem, effort: Effort) -> tuple[tuple[LinearSvmSolution, ...], ...]:
    _refuse_time_limit(effort)
    return linear_svm.linear_path(problem)


@solve.register
def _(problem: CrammerSingerProblem, effort: Effort) -> CrammerSingerSolution:
    _refuse_time_limit(effort)
    return linear_svm.crammer_singer(problem)


@solve.register
def _(problem: DualProblem, effort: Effort) -> tuple[DualSolution, ...]:
    _refuse_time_limit(effort)
    return svm.smo(problem)


@solve.register
def _(problem: PathProblem, effort: Effort) -> tuple[tuple[DualSolution, ...], ...]:
    _refuse_time_limit(effort)
    return svm.smo_path(problem)


@solve.register
def _(problem: LeaveOneOutProblem, effort: Effort) -> tuple[LeftOut, ...]:
    _refuse_time_limit(effort)
    return svm.leave_one_out(problem)


@solve.register
def _(problem: SearchProblem, effort: Effort) -> Status:
    _refuse_time_limit(effort)
    return solve_by_units(problem, svm.smo, lambda kernel, X, support, beta: kernel.matrix(X, support) @ beta)


@solve.register
def _(problem: KernelPerceptronProblem, effort: Effort) -> KernelPerceptronSolution:
    _refuse_time_limit(effort)
    return linear.kernel_perceptron(problem)


@solve.register
def _(problem: TreeProblem, effort: Effort) -> TreeSolution:
    _refuse_time_limit(effort)
    return TreeSolution(tree.grow(problem))


@solve.register
def _(problem: BoostProblem, effort: Effort) -> BoostSolution:
    _refuse_time_limit(effort)
    return boost.boost(problem)


@solve.register
def _(problem: ColumnProblem, effort: Effort) -> ColumnTests:
    return select.best_tests(problem)
