"""Forests in the core: plain tables by the forest grower, others tree by tree."""

from __future__ import annotations

import time
from dataclasses import replace

from margrove.engine.native.core import NAME
from margrove.engine.registry import Engine, register
from margrove.forest.model import ForestSolution, joined
from margrove.forest.problem import ForestProblem
from margrove.run.effort import Effort
from margrove.run.progress import as_one_of
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel


@register(NAME, ForestProblem)
def _(engine: Engine, problem: ForestProblem, effort: Effort) -> ForestSolution:
    return _tree_by_tree(engine, problem, effort)


def _tree_by_tree(engine: Engine, problem: ForestProblem, effort: Effort) -> ForestSolution:
    trees: list[TreeModel] = []
    status, started = Status.CONVERGED, time.monotonic()
    for i in range(problem.n_trees):
        with as_one_of("forest", i, problem.n_trees):
            solution = engine.solve(problem.tree(problem.first + i), replace(effort.left(started), look_around=None))
        if solution.status is not Status.CONVERGED:  # an unfinished tree is left out
            status = solution.status
            break
        trees.append(solution.model)
    return ForestSolution(joined([Grove.of(problem.root.cells.columns, trees)], problem.root), status)
