"""Forests tree by tree: every worker that grows some of the trees fetches the whole table.

The draws of a tree follow from its number, so that the forest does not depend on who grows which.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from margrove.data.dask_partitions import Key, last_of
from margrove.engine.native import Native
from margrove.engine.registry import Engine, register
from margrove.forest.model import ForestSolution, joined
from margrove.forest.problem import ForestProblem, SpreadForestProblem
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.problem import Cells, TreeProblem

MOST_TASKS = 64  # groups of trees


@register("dask", SpreadForestProblem)
def _(engine: Engine, problem: SpreadForestProblem, effort: Effort) -> ForestSolution:
    rows, forest = problem.rows, problem.forest
    table = rows.tasks.submit("the table", _table, rows.groups, rows.sample, forest.root)
    step = -(-forest.n_trees // MOST_TASKS)
    keys: list[Key] = []
    for first in range(0, forest.n_trees, step):
        some = replace(forest, first=first, n_trees=min(step, forest.n_trees - first))
        name = f"trees {first} to {first + some.n_trees - 1}"
        keys.append(rows.tasks.submit(name, _grown, table, some))
    work = rows.tasks.results(keys)

    def advance(seconds: float) -> Status | None:
        return None if next(work) is None else Status.CONVERGED

    def look_around() -> None:
        report(Progress("forest", step * sum(key.is_there for key in keys), forest.n_trees))

    status = run_in_slices(advance, effort, look_around)
    n_done = next((place for place, key in enumerate(keys) if not key.is_there), len(keys))
    if status is Status.CONVERGED:
        n_done = len(keys)
    parts: list[Any] = last_of(rows.tasks.results(keys[:n_done])) if n_done else []
    return ForestSolution(joined(parts, forest.root), status)


# On the workers


def _table(groups: list[Cells], sample: Any, bare: TreeProblem) -> TreeProblem:
    """Return the problem of a tree of all rows."""
    cells = groups[0]
    if len(groups) > 1:
        values = tuple(group.column(j) for group in groups for j in range(len(group.columns)))
        cells = Cells(tuple(column for group in groups for column in group.columns), cells.n_rows, values)
    return replace(bare, cells=cells, target=sample.target, weight=sample.weight)


def _grown(root: TreeProblem, some: ForestProblem) -> Any:
    """Return some of the trees."""
    return Native().solve(replace(some, root=root), Effort(n_jobs=1)).model.trees
