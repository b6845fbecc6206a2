"""A grown tree as plain arrays, one entry per node, the root first, each subtree in one run (depth first, branches in
order). Nothing here learns.

==================  ===================  ==============================================================================
``feature``         (m,) int32           the column tested, -1 at a leaf
``threshold``       (m,) float64         θ of a test x ≤ θ (branch 0 if it holds, else 1); NaN where there is none
``child_start``     (m + 1,) int32       node i's children are ``child[child_start[i] : child_start[i + 1]]``, by branch
``child``           (m - 1,) int32       the children of all nodes, one after the other
``level_start``     (m + 1,) int64       node i's levels are ``level_branch[level_start[i] : level_start[i + 1]]``
``level_branch``    int32                the branch of each code of a category or interval; -1: it did not occur there
``missing_branch``  (m,) int32           where a missing cell goes; -1 at a leaf
``default_branch``  (m,) int32           where a code goes that did not occur in the node: the heaviest branch
``n_rows``          (m,) int64           training rows in the node
``weight``          (m,) float64         their weight
``impurity``        (m,) float64         of the criterion
``gain``            (m,) float64         of the node's test, not charged for its complexity; NaN at a leaf
``n_tests``         (m,) float64         number of tests that the node's column offered there; 0 at a leaf
``n_candidates``    (m,) float64         number of tests of all columns there, for the correction of p-values: a column
                                         tested by subsets counts as one; 0 at a leaf
``value``           (m, K) float64       weight of each class; for regression (m, 1), the mean (or median)
``n_levels``        (m,) float64         of a subset test: the levels that occur there, missing cells being one; else 0
``association``     (m,) float64         of a subset test: φ² or η² of all levels (`association.py`); else NaN
``inverse_weight``  (m,) float64         of a subset test: Σ 1/w over all levels; else 0
==================  ===================  ==============================================================================

``n_tests`` and ``n_candidates`` are NaN in all inner nodes of a tree that was grown elsewhere (`adopted.py`). The last
three are None in a tree of an old file, which did not keep them; there a column tested by subsets counts as 2^(L−1) − 1
candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.status import Status
from margrove.tree.problem import Cells, TreeColumn

LEAF = -1
PER_NODE = (  # the arrays with one entry per node, but those that a file may lack
    *("feature", "threshold", "missing_branch", "default_branch", "n_rows", "weight", "impurity", "gain"),
    *("n_tests", "n_candidates", "value"),
)
OF_LEVELS = ("n_levels", "association", "inverse_weight")
_AT_LEAF = dict.fromkeys(("feature", "missing_branch", "default_branch"), -1) | {
    **dict.fromkeys(("threshold", "gain", "association"), np.nan),
    **dict.fromkeys(("n_tests", "n_candidates", "n_levels", "inverse_weight"), 0.0),
}


@dataclass(frozen=True, eq=False, repr=False)
class TreeArrays:
    """The arrays of a tree, or of several: see the head of this module."""

    columns: tuple[TreeColumn, ...]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    child_start: NDArray[np.int32]
    child: NDArray[np.int32]
    level_start: NDArray[np.int64]
    level_branch: NDArray[np.int32]
    missing_branch: NDArray[np.int32]
    default_branch: NDArray[np.int32]
    n_rows: NDArray[np.int64]
    weight: NDArray[np.float64]
    impurity: NDArray[np.float64]
    gain: NDArray[np.float64]
    n_tests: NDArray[np.float64]
    n_candidates: NDArray[np.float64]
    value: NDArray[np.float64]
    n_levels: NDArray[np.float64] | None = None
    association: NDArray[np.float64] | None = None
    inverse_weight: NDArray[np.float64] | None = None


class TreeModel(TreeArrays):
    """A tree."""

    def __repr__(self) -> str:
        return f"<TreeModel: {self.n_nodes} nodes, {self.n_leaves} leaves, depth {self.max_depth}>"

    @property
    def n_nodes(self) -> int:
        """The number of inner nodes and leaves."""
        return len(self.feature)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """A mask of the leaves."""
        return np.asarray(self.feature == LEAF)

    @property
    def tells_tests(self) -> bool:
        """True where the number of tests that each node chose from is known."""
        inner = ~self.is_leaf
        return not (inner.any() and np.isnan(self.n_tests[inner]).all() and np.isnan(self.n_candidates[inner]).all())

    @cached_property
    def is_weighted(self) -> bool:
        """Whether rows weigh differently, so that shares by weight are no shares of rows."""
        even = self.n_rows * (self.weight[0] / self.n_rows[0])
        return not np.allclose(self.weight, even, rtol=1e-9, atol=0)

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int(np.count_nonzero(self.is_leaf))

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """The parent of each node, -1 for the root."""
        parent = np.full(self.n_nodes, -1, dtype=np.int32)
        parent[self.child] = np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.child_start))
        return parent

    @cached_property
    def branch(self) -> NDArray[np.int32]:
        """The branch of its parent that each node is, -1 for the root."""
        branch = np.full(self.n_nodes, -1, dtype=np.int32)
        branch[self.child] = np.arange(len(self.child)) - np.repeat(self.child_start[:-1], np.diff(self.child_start))
        return branch

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """The depth of each node, 0 for the root."""
        depth = np.zeros(self.n_nodes, dtype=np.int32)
        above = self.parent.copy()
        while (is_below := above >= 0).any():
            depth += is_below
            above[is_below] = self.parent[above[is_below]]
        return depth

    @cached_property
    def end(self) -> NDArray[np.int32]:
        """One past the last node of each subtree: node i's subtree is ``range(i, end[i])``."""
        # The subtree of a node ends where that of its last child does.
        end = np.arange(1, self.n_nodes + 1, dtype=np.int32)
        last = self.child[self.child_start[1:] - 1] if len(self.child) else np.empty(0, np.int32)
        for level in range(self.max_depth - 1, -1, -1):
            inner = np.flatnonzero((self.depth == level) & ~self.is_leaf)
            end[inner] = end[last[inner]]
        return end

    @property
    def max_depth(self) -> int:
        """The depth of the deepest leaf."""
        return int(self.depth.max())

    def importances(self) -> NDArray[np.float64]:
        """Return the gain of each column's splits, weighted by their rows, as a share of the total."""
        inner = ~self.is_leaf
        gain = self.weight[inner] * np.maximum(self.gain[inner], 0)
        total = np.bincount(self.feature[inner], gain, len(self.columns))
        return np.asarray(total / total.sum() if total.sum() > 0 else total, dtype=np.float64)

    def children(self, node: int) -> NDArray[np.int32]:
        """Return the children of a node, by branch; empty at a leaf."""
        return self.child[self.child_start[node] : self.child_start[node + 1]]

    def levels(self, node: int) -> NDArray[np.int32]:
        """Return the branch of each code of the node's column; empty at a threshold test and at a leaf."""
        return self.level_branch[self.level_start[node] : self.level_start[node + 1]]

    def branches(self, node: int, cells: Cells, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the branch that each of these rows takes at a node."""
        j = int(self.feature[node])
        if self.columns[j].test == "threshold":
            values = cells.column(j) if len(rows) == cells.n_rows else cells.column(j)[rows]
            branch = np.where(values <= self.threshold[node], 0, 1).astype(np.int32)
            return np.where(np.isnan(values), self.missing_branch[node], branch)
        codes = cells.codes(j)[rows]
        levels = self.levels(node)
        is_known = (codes >= 0) & (codes < len(levels))
        branch = np.full(len(rows), -1, dtype=np.int32)
        branch[is_known] = levels[codes[is_known]]
        branch[branch < 0] = self.default_branch[node]
        branch[codes == -1] = self.missing_branch[node]
        return branch

    def rows_of_nodes(self, cells: Cells) -> list[NDArray[np.intp]]:
        """Return the rows that reach each node, in ascending order."""
        rows: list[NDArray[np.intp]] = [np.empty(0, np.intp)] * self.n_nodes
        rows[0] = np.arange(cells.n_rows)
        for node in np.flatnonzero(~self.is_leaf):
            branch = self.branches(int(node), cells, rows[node])
            for b, child in enumerate(self.children(int(node))):
                rows[child] = rows[node][branch == b]
        return rows

    def apply(self, cells: Cells) -> NDArray[np.int32]:
        """Return the leaf of each row."""
        leaf = np.zeros(cells.n_rows, dtype=np.int32)
        for node, rows in enumerate(self.rows_of_nodes(cells)):
            leaf[rows] = node  # children come after their parent, so the deepest is last
        return leaf

    def kept(self, at: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which nodes `cut` leaves."""
        kept = np.ones(self.n_nodes, dtype=bool)
        for node in np.flatnonzero(at & ~self.is_leaf):
            kept[node + 1 : self.end[node]] = False
        return kept

    def cut(self, at: NDArray[np.bool_]) -> TreeModel:
        """Return the tree in which these nodes are leaves: the subtrees below them are removed."""
        kept = self.kept(at)
        number = np.cumsum(kept) - 1
        is_inner = kept & ~self.is_leaf & ~at
        fan_out = np.where(is_inner, np.diff(self.child_start), 0)[kept]
        n_levels = np.where(is_inner, np.diff(self.level_start), 0)[kept]
        parts: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        for name in (*PER_NODE, *OF_LEVELS):
            if parts[name] is not None:
                parts[name] = parts[name][kept]
                if name in _AT_LEAF:
                    parts[name][~is_inner[kept]] = _AT_LEAF[name]
        parts["child_start"] = np.concatenate([[0], np.cumsum(fan_out)]).astype(np.int32)
        parts["level_start"] = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
        parts["child"] = number[self.child[np.repeat(is_inner, np.diff(self.child_start))]].astype(np.int32)
        parts["level_branch"] = self.level_branch[np.repeat(is_inner, np.diff(self.level_start))]
        return TreeModel(**parts)


def blank_levels(n_nodes: int) -> dict[str, NDArray[np.float64]]:
    """Return the last three arrays of nodes without a subset test."""
    return {name: np.full(n_nodes, _AT_LEAF[name]) for name in OF_LEVELS}


def fault_of(tree: TreeModel, *, is_regression: bool) -> str | None:
    """Return why the arrays are not those of a tree as the head of this module describes it, or None."""
    return next((fault for is_so, fault in _conditions(tree, is_regression=is_regression) if not is_so), None)


_Conditions = Iterator[tuple[bool | np.bool_, str]]  # each with the fault where it does not hold


def _conditions(tree: TreeModel, *, is_regression: bool) -> _Conditions:
    """Yield the conditions one by one: each may rely on those before it."""
    yield from _shapes(tree)
    # Nodes are stored depth first, branches in order: so each but the root is the child of one node before it.
    start, child, waiting = tree.child_start.tolist(), tree.child.tolist(), [0]
    for node in range(tree.n_nodes):
        yield bool(waiting) and waiting.pop() == node, f"node {node} is not where its parent expects it"
        waiting += child[start[node] : start[node + 1]][::-1]
    fan_out, is_leaf = np.diff(tree.child_start), tree.is_leaf
    yield (is_leaf == (fan_out == 0)).all(), "a leaf has children, or an inner node has none"
    yield (fan_out[~is_leaf] >= 2).all(), "an inner node has a single child"
    yield from _tests(tree, fan_out)
    for name in ("missing_branch", "default_branch"):
        branch = getattr(tree, name)
        is_there = np.where(is_leaf, branch == -1, (branch >= 0) & (branch < fan_out))
        yield is_there.all(), f"{name} refers to a branch that does not exist"
    most = np.repeat(fan_out, np.diff(tree.level_start))
    yield (tree.level_branch < most).all(), "level_branch refers to a branch that does not exist"
    yield (np.isnan(tree.gain) == is_leaf).all(), "gains are not where the splits are"
    yield not np.isinf(tree.gain).any(), "a gain is infinite"
    for name in ("n_tests", "n_candidates"):
        counts = getattr(tree, name)
        are_counts = not tree.tells_tests or bool((counts >= 0).all())
        yield are_counts and bool((counts[is_leaf] == 0).all()), f"{name} is not a count of tests"
    yield (tree.weight > 0).all(), "the weight of a node is not positive"
    yield from _levels(tree)
    if not is_regression:
        with np.errstate(over="ignore"):
            total = tree.value.sum(axis=1)
        is_count = (tree.value >= 0).all() and (total > 0).all() and np.isfinite(total).all()
        yield is_count, "the value of a node is not a weight for each class"


def _shapes(tree: TreeModel) -> _Conditions:
    m = tree.n_nodes
    yield m > 0 and len(tree.child) == m - 1, f"there are {m} nodes and {len(tree.child)} children"
    of_nodes = [getattr(tree, name) for name in (*PER_NODE, *OF_LEVELS)]
    yield all(array is None or len(array) == m for array in of_nodes), "not all arrays have an entry for each node"
    for start, of_each in ((tree.child_start, tree.child), (tree.level_start, tree.level_branch)):
        is_partition = (
            len(start) == m + 1 and (start[0], start[-1]) == (0, len(of_each)) and (np.diff(start) >= 0).all()
        )
        yield is_partition, "the children or levels of the nodes are not stored one after the other"
    yield ((tree.feature >= LEAF) & (tree.feature < len(tree.columns))).all(), "a tested column does not exist"


def _tests(tree: TreeModel, fan_out: NDArray[Any]) -> _Conditions:
    """A test has a threshold where its column has one, and a branch for each code where it has codes."""
    is_cut = np.array([column.test == "threshold" for column in tree.columns])
    n_codes = np.array([0 if column.test == "threshold" else column.n_codes for column in tree.columns])
    inner = ~tree.is_leaf
    has_threshold, wanted = np.zeros(tree.n_nodes, dtype=bool), np.zeros(tree.n_nodes, dtype=np.int64)
    has_threshold[inner], wanted[inner] = is_cut[tree.feature[inner]], n_codes[tree.feature[inner]]
    yield (np.isnan(tree.threshold) == ~has_threshold).all(), "thresholds are not where threshold tests are"
    yield (tree.threshold[has_threshold] > -np.inf).all(), "a threshold is -infinity"
    yield (fan_out[has_threshold] == 2).all(), "a threshold test does not have two branches"
    yield (np.diff(tree.level_start) == wanted).all(), "a test has more or fewer codes than its column"


def _levels(tree: TreeModel) -> _Conditions:
    """The statistics of levels are given for subset tests, and for these only."""
    kept = tree.n_levels, tree.association, tree.inverse_weight
    if tree.n_levels is None or tree.association is None or tree.inverse_weight is None:
        yield all(array is None for array in kept), "some statistics of levels are missing"
        return
    is_subset = np.array([column.test == "subset" for column in tree.columns])
    has_levels = ~tree.is_leaf & is_subset[tree.feature]
    is_counted = (tree.n_levels >= 2) & (tree.inverse_weight > 0)
    is_blank = (tree.n_levels == 0) & (tree.inverse_weight == 0) & np.isnan(tree.association)
    yield np.where(has_levels, is_counted, is_blank).all(), "statistics of levels are not where subset tests are"


@dataclass(frozen=True, eq=False)
class TreeSolution:
    """The tree that an engine has grown, and why it stopped: where it was interrupted, open nodes are leaves."""

    model: TreeModel
    status: Status = Status.CONVERGED
