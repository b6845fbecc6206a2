"""Forests in the core: plain tables by the forest grower, others tree by tree."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from margrove.engine.native.core import NAME, core, given_or_nothing, points_of, threads_for
from margrove.engine.native.tree import growth_for_core
from margrove.engine.registry import Engine, register
from margrove.forest.model import ForestModel, ForestSolution, joined
from margrove.forest.packed import PackedForest
from margrove.forest.predictor import trees_in_core
from margrove.forest.problem import ForestProblem
from margrove.run.effort import Effort
from margrove.run.progress import Progress, as_one_of, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeProblem, check_asked


@register(NAME, ForestProblem)
def _(engine: Engine, problem: ForestProblem, effort: Effort) -> ForestSolution:
    check_asked(problem.root)
    return _together(problem, effort) if _are_plain(problem) else _tree_by_tree(engine, problem, effort)


def _are_plain(problem: ForestProblem) -> bool:
    """Return whether the core grows such trees from one table of ranks."""
    root, growth = problem.root, problem.root.growth
    is_plain = PackedForest.holds(root) and root.cells.sparse is None and not problem.is_balanced
    is_free = growth.max_leaf_nodes is None and growth.criterion != "error"
    return is_plain and is_free and (root.weight is None or problem.min_weight_share == 0)


def _block(cells: Cells) -> NDArray[Any]:
    """Return dense columns of numbers as one table."""
    return np.stack(cells.values, axis=1) if cells.block is None else cells.block


def _together(problem: ForestProblem, effort: Effort) -> ForestSolution:
    root = problem.root
    block = _block(root.cells)
    n_rows, is_regression = len(block), root.is_regression
    total = n_rows if problem.n_drawn is None else problem.n_drawn
    growth = replace(root.growth, seed=0, min_weight_leaf=problem.min_weight_share * total)
    grower = core.ForestGrower(
        core.NumberColumns(block),
        n=n_rows,
        label=np.empty(0, np.int32) if is_regression else np.ascontiguousarray(root.target, np.int32),
        n_classes=root.n_classes,
        number=given_or_nothing(root.target if is_regression else None),
        weight=given_or_nothing(root.weight),
        growth=growth_for_core(growth),
        n_trees=problem.n_trees,
        first=problem.first,
        seed=problem.seed,
        n_drawn=problem.n_drawn or 0,
        threads=threads_for(effort.n_jobs),
    )

    def advance(seconds: float) -> Status | None:
        is_done = grower.run(seconds)
        report(Progress("forest", grower.trees_done(), problem.n_trees))
        return Status.CONVERGED if is_done else None

    status = run_in_slices(advance, effort)
    return ForestSolution(joined([_packed(root, grower.take())], root), status)


def _packed(root: TreeProblem, arrays: dict[str, NDArray[Any]]) -> PackedForest:
    """Return the trees that the core has grown."""
    del arrays["decrease"]
    value = arrays.pop("mean")[:, None] if root.is_regression else arrays.pop("shares")
    place = arrays.pop("shape_index", None)
    return PackedForest(root.cells.columns, root.growth.criterion, value=value, place=place, **arrays)


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


def leaves(model: ForestModel, cells: Cells, n_jobs: int | None) -> NDArray[np.int32] | None:
    """Return the leaf of each row in each tree as `Engine.leaves` does; None unless the trees are plain."""
    if not isinstance(model.trees, PackedForest):
        return None
    trees, points = _with_points(model.trees, cells)
    return core.forest_leaves(trees, points, threads=threads_for(n_jobs))


def mean_of_trees(model: ForestModel, cells: Cells, n_jobs: int | None) -> NDArray[np.float64] | None:
    """Return the mean of what the trees predict; None unless they are plain."""
    if not isinstance(model.trees, PackedForest):
        return None
    forest = model.trees
    trees, points = _with_points(forest, cells)
    value = np.ascontiguousarray(forest.value)
    sums = core.forest_sums(trees, points, value=value, place=forest.place, threads=threads_for(n_jobs))
    return np.divide(sums, model.n_trees, out=sums)


def _with_points(forest: PackedForest, cells: Cells) -> tuple[core.ForestTrees, core.Points]:
    """Return the forest and the rows as the core takes them."""
    X = csr_matrix(cells.sparse) if cells.sparse is not None else _block(cells)
    has_missing = bool(np.isnan(X.data if cells.sparse is not None else X).any())
    return trees_in_core(forest, has_missing), points_of(X)
