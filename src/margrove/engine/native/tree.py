"""Trees in the core."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import xlogy

from margrove.advice import Advice, Setting
from margrove.data.memory import free_memory
from margrove.engine.native.core import NAME, core, given_or_nothing, points_of, threads_for
from margrove.engine.registry import Engine, register
from margrove.errors import EngineError
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import SLICE, run_in_slices
from margrove.select.problem import ColumnProblem, ColumnTests
from margrove.status import Status
from margrove.tree.groups import Measure
from margrove.tree.impurity import absolute_error, class_impurity, gaussian_entropy_of_variance, median
from margrove.tree.model import TreeModel, TreeSolution
from margrove.tree.predictor import trees_for_core as trees_for_core
from margrove.tree.problem import TESTS, VARIANCE_FLOOR, Cells, Growth, TreeProblem, check_asked


@register(NAME, TreeProblem)
def _(engine: Engine, problem: TreeProblem, effort: Effort) -> TreeSolution:
    arrays, status = grown(problem, effort)
    return TreeSolution(finished(problem, arrays, effort.n_jobs), status)


def grown(problem: TreeProblem, effort: Effort) -> tuple[dict[str, NDArray[Any]], Status]:
    """Grow a tree; return its arrays as the core gives them, for `finished`."""
    growth, cells, is_regression = problem.growth, problem.cells, problem.is_regression
    check_asked(problem)
    if cells.sparse is not None and growth.criterion == "absolute_error":  # whose lists leave no row out
        needed = 8 * cells.n_rows * len(cells.columns)
        if needed > free_memory():
            words = f" needs X as a dense array of {needed / 1e9:.1f} GB, which is not free. Use 'squared_error'."
            raise EngineError(Advice(Setting("criterion", "absolute_error"), words))
        cells = Cells(cells.columns, cells.n_rows, tuple(cells.sparse.toarray().T))
    target = np.ascontiguousarray(problem.target).ravel()
    grower = core.TreeGrower(
        columns_for_core(cells),
        n=cells.n_rows,
        label=np.empty(0, np.int32) if is_regression else target.astype(np.int32, copy=False),
        n_classes=problem.n_classes,
        number=given_or_nothing(target if is_regression else None),
        weight=given_or_nothing(problem.weight),
        outputs=problem.outputs,
        growth=growth_for_core(growth),
        sorted=sorted_for_core(problem, effort),
        threads=threads_for(effort.n_jobs),
    )

    def advance(seconds: float) -> Status | None:
        is_done = grower.run(seconds)
        report(Progress("tree", done=grower.rows_settled(), total=cells.n_rows))
        return Status.CONVERGED if is_done else None

    status = run_in_slices(advance, effort)
    return grower.take(), status


@register(NAME, ColumnProblem)
def _(engine: Engine, problem: ColumnProblem, effort: Effort) -> ColumnTests:
    root, growth = problem.root, problem.root.growth
    check_asked(root)
    found = core.best_column_tests(
        columns_for_core(root.cells),
        n=root.cells.n_rows,
        label=np.ascontiguousarray(root.target, np.int32),
        n_classes=root.n_classes,
        weight=given_or_nothing(root.weight),
        criterion=core.Criterion[growth.criterion],
        thresholds=_thresholds(growth),
        n_bins=_bins(growth),
        threads=threads_for(effort.n_jobs),
    )
    return ColumnTests(*found)


def growth_for_core(growth: Growth) -> core.Growth:
    """Return the core's settings for growing."""
    settings = {
        "criterion": core.Criterion[growth.criterion],
        "split_score": core.SplitScore[growth.split_score],
        "thresholds": _thresholds(growth),
        "variance_floor": VARIANCE_FLOOR,
        "n_bins": _bins(growth),
        "seed": 0 if growth.max_features is not None and growth.seed is None else growth.seed,
    }
    return core.Growth(**vars(growth) | settings)


def sorted_for_core(problem: TreeProblem, effort: Effort) -> core.SortedColumns | None:
    """Return the sorted columns if they are shared with other fits: see `Cells.kept`."""
    cells, growth = problem.cells, problem.growth
    if cells.kept is None or growth.thresholds == "histogram":  # bins are made by other means
        return None
    may_leave_out = growth.criterion != "absolute_error"
    key = ("sorted columns", may_leave_out)
    columns: core.SortedColumns | None = cells.kept.get(key)
    if columns is None:
        columns = core.SortedColumns(
            columns_for_core(cells),
            n=cells.n_rows,
            n_bins=0,
            may_leave_out=may_leave_out,
            threads=threads_for(effort.n_jobs),
        )
        while not columns.run(SLICE):  # Ctrl-C comes between
            pass
        cells.kept[key] = columns
    return columns


def _thresholds(growth: Growth) -> core.Thresholds:
    """Return how thresholds are found: all are tried, or those of a model of the classes, or random ones."""
    return core.Thresholds["every" if growth.thresholds in ("exact", "histogram") else growth.thresholds]


def _bins(growth: Growth) -> int:
    """Return the number of bins for numbers; 0: none, all thresholds are tried."""
    return growth.n_bins if growth.thresholds == "histogram" else 0


def columns_for_core(cells: Cells) -> list[core.Column | core.NumberColumns | core.SparseColumns]:
    """Return the columns as the core takes them: all at once if each is tested by plain thresholds."""
    sparse = cells.sparse
    if all(column.test == "threshold" and not column.monotone for column in cells.columns):
        if cells.block is not None:
            return [core.NumberColumns(cells.block)]
        if sparse is not None:
            start, rows = sparse.indptr.astype(np.int64, copy=False), sparse.indices.astype(np.int32, copy=False)
            return [core.SparseColumns(cells=np.ascontiguousarray(sparse.data), rows=rows, start=start)]
    nothing = given_or_nothing(None)
    found: list[core.Column | core.NumberColumns | core.SparseColumns] = []
    tests = {test: core.Test[test] for test in TESTS}
    for j, column in enumerate(cells.columns):
        rows = None
        if sparse is not None:
            run = slice(sparse.indptr[j], sparse.indptr[j + 1])
            values, rows = sparse.data[run], sparse.indices[run].astype(np.int32, copy=False)
        else:
            values = cells.values[j]
        found.append(
            core.Column(
                test=tests[column.test],
                monotone=column.monotone,
                cells=values,
                n_codes=column.n_codes,
                cuts=given_or_nothing(column.cuts) if column.cuts else nothing,
                rows=rows,
            )
        )
    return found


def rows_for_core(cells: Cells) -> core.Points | None:
    """Return the cells as rows of numbers if a tree needs nothing else; else None."""
    if cells.sparse is not None:
        return points_of(sp.csr_matrix(cells.sparse))
    if cells.block is not None and all(column.test == "threshold" for column in cells.columns):
        return points_of(cells.block)
    return None


def apply(model: TreeModel, cells: Cells, n_jobs: int | None = None) -> NDArray[np.int32]:
    """Return the leaf of each row, by the core."""
    threads, rows = threads_for(n_jobs), rows_for_core(cells)
    if rows is not None:
        return core.apply_tree_to_rows(trees_for_core(model), rows, threads=threads)
    return core.apply_tree_to_columns(trees_for_core(model), columns_for_core(cells), n=cells.n_rows, threads=threads)


def finished(problem: TreeProblem, arrays: dict[str, NDArray[Any]], n_jobs: int | None) -> TreeModel:
    """Return the tree with value and impurity of each node, from the rows of its leaves if they are not counts."""
    m, n_classes = len(arrays["feature"]), problem.n_classes
    least, most, leaf = arrays.pop("least"), arrays.pop("most"), arrays.pop("leaf", None)
    model = TreeModel(columns=problem.cells.columns, impurity=np.zeros(m), **arrays)
    if problem.is_regression or problem.weight is not None or problem.outputs:
        leaf = apply(model, problem.cells, n_jobs) if leaf is None else leaf
        weight = np.ones(problem.cells.n_rows) if problem.weight is None else problem.weight
        if problem.outputs:
            return _of_several(problem, model, leaf, weight, arrays)
        if problem.is_regression:
            arrays |= _of_numbers(problem, model, leaf, weight)
        else:
            table = np.bincount(leaf.astype(np.int64) * n_classes + problem.target, weight, m * n_classes)
            total = _summed_up(model, table.astype(np.float64).reshape(m, n_classes))
            arrays["value"], arrays["weight"] = total, total.sum(axis=1)
    if not problem.is_regression:
        arrays["impurity"] = class_impurity(problem.growth.criterion, arrays["value"])
    if any(column.monotone for column in problem.cells.columns):
        arrays["value"] = _held(arrays["value"], arrays["weight"], least, most)
    return TreeModel(columns=problem.cells.columns, **arrays)


def _of_several(
    problem: TreeProblem,
    model: TreeModel,
    leaf: NDArray[np.int32],
    weight: NDArray[np.float64],
    arrays: dict[str, NDArray[Any]],
) -> TreeModel:
    """Return the tree of several targets, whose impurity is the mean of theirs."""
    measure = Measure(problem.growth.criterion, problem.n_classes, outputs=problem.outputs)
    rows = _rows_by_node(model, leaf)
    parts = [measure.groups(problem.target[own], weight[own], np.zeros(len(own), np.intp), 1) for own in rows]
    arrays |= {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "impurity", "weight")
    }
    return TreeModel(columns=problem.cells.columns, **arrays)


def _held(
    value: NDArray[np.float64], weight: NDArray[np.float64], least: NDArray[np.float64], most: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the values within what monotone columns above allow: the mean, or the share of class 1."""
    if value.shape[1] == 1:
        return np.clip(value, least[:, None], most[:, None])
    ones = np.clip(value[:, 1] / weight, least, most) * weight
    is_moved = ones != value[:, 1]
    return np.where(is_moved[:, None], np.column_stack([weight - ones, ones]), value)


def _of_numbers(
    problem: TreeProblem, model: TreeModel, leaf: NDArray[np.int32], weight: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Mean (or median), weight and impurity of each node; also the gain, without cancellation."""
    if problem.growth.criterion == "absolute_error":
        return _of_medians(problem.target, model, leaf, weight)
    if problem.growth.criterion == "poisson":
        return _of_counts(problem.target, model, leaf, weight)
    value, total, square, apart = core.sum_up_numbers(
        trees_for_core(model),
        leaf=leaf,
        number=problem.target,
        weight=given_or_nothing(problem.weight),
        shift=problem.target.mean(),
    )
    impurity, gain = square / total, np.where(model.feature >= 0, apart / total, np.nan)
    if problem.growth.criterion == "gaussian_entropy":
        impurity = gaussian_entropy_of_variance(impurity, VARIANCE_FLOOR * impurity[0])
        below = np.zeros(len(total))
        np.add.at(below, model.parent[1:], (total * impurity)[1:])
        gain = np.where(model.feature >= 0, impurity - below / total, np.nan)
    return {"value": value[:, None], "impurity": impurity, "weight": total, "gain": gain}


def _summed_up(model: TreeModel, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add the sums of leaves to those of all nodes above them, from the bottom up: no difference of large sums."""
    for level in range(model.max_depth, 0, -1):
        nodes = np.flatnonzero(model.depth == level)
        np.add.at(sums, model.parent[nodes], sums[nodes])
    return sums


def _of_counts(
    y: NDArray[np.float64], model: TreeModel, leaf: NDArray[np.int32], weight: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Return the same under poisson: Σ w y ln y − s ln(s/w) of each node, from the sums of its leaves."""
    sums = [np.bincount(leaf, each, model.n_nodes) for each in (weight, weight * y, weight * xlogy(y, y))]
    total, s, own = _summed_up(model, np.stack(sums, axis=1)).T
    impurity = np.maximum(own - xlogy(s, s / total), 0) / total
    return {"value": (s / total)[:, None], "impurity": impurity, "weight": total}


def _of_medians(
    target: NDArray[np.float64], model: TreeModel, leaf: NDArray[np.int32], weight: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Return the same by the median."""
    rows = _rows_by_node(model, leaf)
    return {
        "value": np.array([[median(target[own], weight[own])] for own in rows]),
        "impurity": np.array([absolute_error(target[own], weight[own]) for own in rows]),
        "weight": np.array([weight[own].sum() for own in rows]),
    }


def _rows_by_node(model: TreeModel, leaf: NDArray[np.int32]) -> list[NDArray[np.intp]]:
    """Return the rows of each node: sorted by leaf, those of a subtree are one run."""
    order = np.argsort(leaf, kind="stable")
    first, last = (np.searchsorted(leaf[order], at) for at in (np.arange(model.n_nodes), model.end))
    return [order[begin:end] for begin, end in zip(first, last, strict=True)]
