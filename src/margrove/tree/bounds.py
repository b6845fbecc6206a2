"""Bounds on the gains of a node's columns, of all of them at once: most cannot be its best test, and need no search."""

from __future__ import annotations

from math import inf

import numpy as np

from margrove.tree.impurity import class_impurity
from margrove.tree.problem import CLASS_CRITERIA, TreeProblem
from margrove.tree.split import Node

ROUNDING_OF_BOUNDS = 1e-6  # of the unit of gains: a test gains more than its bound by less than this
_MOST_SUMS = 1_000_000  # that are in memory at once: of rows, columns and classes


@np.errstate(divide="ignore", invalid="ignore")
def gain_bounds(problem: TreeProblem, node: Node) -> dict[int, tuple[int, float]]:
    """Return the number of tests, and the largest gain if no limit forbade any of them, by column.

    Only of numbers with exact thresholds, none missing in the node, and of as many of them as fit into memory.
    """
    growth, cells, is_of_classes = problem.growth, problem.cells, not problem.is_regression
    is_known = growth.criterion in (*CLASS_CRITERIA, "squared_error") and growth.thresholds == "exact"
    most = _MOST_SUMS // (len(node.rows) * max(1, problem.n_classes))
    numbers = [j for j, column in enumerate(cells.columns) if column.test == "threshold"][:most]
    if not numbers or not is_known or cells.sparse is not None or problem.outputs:
        return {}
    x = np.stack([cells.values[j][node.rows] for j in numbers], dtype=np.float64)  # (columns, rows)
    order = np.argsort(x, axis=1)
    x = np.take_along_axis(x, order, axis=1)
    is_cut = x[:, 1:] > x[:, :-1]
    if is_of_classes:
        own = np.zeros((len(node.rows), problem.n_classes))
        own[np.arange(len(own)), node.target.astype(np.intp)] = node.row_weight
    else:  # the weight, and Σ w (y − mean): of two branches that give W imp − Σ W_b imp_b = Σ (Σ_b w (y − mean))²/W_b
        own = np.stack([node.row_weight, node.row_weight * (node.target - node.value[0])], axis=1)
    sums = np.cumsum(own[order], axis=1)
    first = sums[:, :-1][is_cut]
    second = np.maximum(own.sum(axis=0) - first, 0) if is_of_classes else own.sum(axis=0) - first
    if is_of_classes:
        left = sum(side.sum(axis=1) * class_impurity(growth.criterion, side) for side in (first, second))
        gain = node.impurity - left / node.weight
    else:
        gain = (first[:, 1] ** 2 / first[:, 0] + second[:, 1] ** 2 / second[:, 0]) / node.weight
    gains = np.full(is_cut.shape, -inf)
    gains[is_cut] = np.where(np.isnan(gain), inf, gain)
    largest, n_tests = gains.max(axis=1, initial=-inf), np.count_nonzero(is_cut, axis=1)
    is_whole = ~np.isnan(x[:, -1])  # NaN comes last
    return {j: (int(n_tests[at]), float(largest[at])) for at, j in enumerate(numbers) if is_whole[at]}
