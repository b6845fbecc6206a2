"""The native engine: problems become calls of the C++ core, in slices of time. One module per family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margrove.boost.model import BoostModel
from margrove.engine.native import (  # noqa: F401  (each registers its solvers)
    boost,
    forest,
    linear,
    linear_l1,
    linear_svm,
    search,
    svm,
)
from margrove.engine.native import tree as trees
from margrove.engine.native.core import NAME, kernel_sums
from margrove.engine.registry import Capability, Engine
from margrove.forest.model import ForestModel
from margrove.problem import Problem
from margrove.run.effort import Effort
from margrove.svm.kernels import Kernel, Matrix
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells


@dataclass(frozen=True)
class Native(Engine):
    """The C++ core of Margrove, on the threads of this machine."""

    name = NAME
    can = frozenset({Capability.TIME_LIMIT, Capability.CHECKPOINT})

    def seconds(self, problem: Problem[object]) -> float:
        return 1.0  # the unit in which other engines estimate

    def plan(self, problem: Problem[object]) -> str:
        return linear_svm.plan(problem)

    def kernel_sums(
        self, kernel: Kernel, points: Matrix, support: Matrix, beta: NDArray[np.float64], effort: Effort
    ) -> NDArray[np.float64]:
        if not kernel.is_native:
            return super().kernel_sums(kernel, points, support, beta, effort)
        return kernel_sums(kernel, points, support, beta, effort.n_jobs)

    def apply_trees(self, tree: TreeModel, cells: Cells, effort: Effort) -> NDArray[np.int32]:
        return trees.apply(tree, cells, effort.n_jobs)

    def leaves(self, model: ForestModel, cells: Cells, effort: Effort) -> NDArray[np.int32]:
        found = forest.leaves(model, cells, effort.n_jobs)
        return super().leaves(model, cells, effort) if found is None else found

    def mean_of_trees(self, model: ForestModel, cells: Cells, effort: Effort) -> NDArray[np.float64]:
        found = forest.mean_of_trees(model, cells, effort.n_jobs)
        return super().mean_of_trees(model, cells, effort) if found is None else found

    def sum_votes(self, model: BoostModel, cells: Cells, effort: Effort) -> NDArray[np.float64]:
        return boost.votes(model, cells, effort.n_jobs)
