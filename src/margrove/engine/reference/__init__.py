"""The reference engine: hands each problem to its family's ``reference.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from margrove.boost import reference as boost
from margrove.boost.problem import BoostProblem
from margrove.engine.registry import Engine, register
from margrove.forest.problem import ForestProblem
from margrove.forest.reference import grow_forest
from margrove.linear import reference as linear
from margrove.linear.problem import (
    CentroidProblem,
    KernelPerceptronProblem,
    LeastSquaresProblem,
    PerceptronProblem,
)
from margrove.linear_svm import reference as linear_svm
from margrove.linear_svm.problem import (
    CrammerSingerProblem,
    LinearPathProblem,
    LinearSvmProblem,
)
from margrove.problem import Problem
from margrove.run.effort import Effort
from margrove.select import reference as select
from margrove.select.problem import ColumnProblem
from margrove.svm import reference as svm
from margrove.svm.problem import DualProblem, LeaveOneOutProblem
from margrove.tree import reference as tree
from margrove.tree.model import TreeSolution
from margrove.tree.problem import TreeProblem

NAME = "reference"
P = TypeVar("P", bound=Problem[Any])


@dataclass(frozen=True)
class Reference(Engine):
    """Plain NumPy: no time limit, no checkpoint, no threads."""

    name = NAME


def _add(kind: type[P], solve: Callable[[P], Any]) -> None:
    def solver(engine: Engine, problem: P, effort: Effort) -> Any:
        return solve(problem)

    register(NAME, kind)(solver)


_add(CentroidProblem, linear.basic_linear)
_add(LeastSquaresProblem, linear.least_squares)
_add(PerceptronProblem, linear.perceptron)
_add(KernelPerceptronProblem, linear.kernel_perceptron)
_add(LinearSvmProblem, linear_svm.linear_svm)
_add(LinearPathProblem, linear_svm.linear_path)
_add(CrammerSingerProblem, linear_svm.crammer_singer)
_add(DualProblem, svm.smo)
_add(LeaveOneOutProblem, svm.leave_one_out)
_add(TreeProblem, lambda problem: TreeSolution(tree.grow(problem)))
_add(BoostProblem, boost.boost)
_add(ForestProblem, grow_forest)
_add(ColumnProblem, select.best_tests)
