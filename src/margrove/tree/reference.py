"""A tree grown as in textbooks, by the rules of `problem.py`: plain NumPy, one node after the other.

The specification that the native engine must agree with. Of the leaves that can still be split, that of the largest
w(S) · gain is split next (the oldest, of equals). Without `max_leaf_nodes` the order changes nothing; with it, a split
that would make too many leaves is left out and the next one tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import nan

import numpy as np

from margrove.tree.association import NO_LEVELS
from margrove.tree.draws import child_key
from margrove.tree.model import LEAF, TreeModel
from margrove.tree.problem import TreeProblem
from margrove.tree.split import FREE, Node, Split, SplitSearch


@dataclass
class _Grown:
    """A node of the tree; a leaf until it has children."""

    node: Node
    depth: int
    split: Split | None  # the best, if the node may be split
    children: list[_Grown] = field(default_factory=list)


def grow(problem: TreeProblem) -> TreeModel:
    """Grow the tree of a problem.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> from margrove.tree.reference import grow
    >>> x, y = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 0, 1])
    >>> columns = TreeColumn("x"), TreeColumn("y")
    >>> xor = TreeProblem(Cells(columns, 4, (x, y)), np.array([0, 1, 1, 0], dtype=np.int32), n_classes=2)
    >>> tree = grow(xor)
    >>> tree.gain[0], tree.n_leaves, tree.impurity[tree.is_leaf].max()
    (np.float64(0.0), 4, np.float64(0.0))
    """
    search, growth = SplitSearch(problem), problem.growth

    def seedling(node: Node, depth: int) -> _Grown:
        split = None if search.is_final(node, depth) else search.best_split(node)
        return _Grown(node, depth, split if split is not None and search.is_worthwhile(node, split) else None)

    root = seedling(search.node(np.arange(problem.cells.n_rows), FREE), depth=0)
    waiting: list[tuple[float, int, _Grown]] = []  # a heap: the largest w(S) · gain first, then the oldest
    n_made = n_leaves = 1
    _wait(waiting, root, n_made)
    while waiting:
        grown = heappop(waiting)[2]
        split = grown.split
        assert split is not None
        n_more = len(split.bounds) - 1
        if growth.max_leaf_nodes is not None and n_leaves + n_more > growth.max_leaf_nodes:
            continue
        n_leaves += n_more
        for b, bounds in enumerate(split.bounds):
            node = search.node(grown.node.rows[split.branch == b], bounds, child_key(grown.node.key, b))
            child = seedling(node, grown.depth + 1)
            grown.children.append(child)
            n_made += 1
            _wait(waiting, child, n_made)
    return _as_arrays(search, root)


def _wait(waiting: list[tuple[float, int, _Grown]], grown: _Grown, number: int) -> None:
    if grown.split is not None:
        heappush(waiting, (-grown.node.weight * grown.split.charged_gain, number, grown))


def _as_arrays(search: SplitSearch, root: _Grown) -> TreeModel:
    """The nodes depth first, each with its parts of the arrays that `model.py` describes."""
    nodes: list[_Grown] = []
    stack = [root]
    while stack:
        grown = stack.pop()
        nodes.append(grown)
        stack += grown.children[::-1]
    number = {id(grown): i for i, grown in enumerate(nodes)}
    splits = [grown.split if grown.children else None for grown in nodes]
    levels = [np.empty(0, np.int32) if split is None else split.level_branch for split in splits]
    tables = [NO_LEVELS if split is None else split.levels for split in splits]
    n_children = [len(grown.children) for grown in nodes]
    return TreeModel(
        columns=search.problem.cells.columns,
        feature=np.array([LEAF if split is None else split.column for split in splits], dtype=np.int32),
        threshold=np.array([nan if split is None else split.threshold for split in splits]),
        child_start=np.concatenate([[0], np.cumsum(n_children)]).astype(np.int32),
        child=np.array([number[id(child)] for grown in nodes for child in grown.children], dtype=np.int32),
        level_start=np.concatenate([[0], np.cumsum([len(level) for level in levels])]).astype(np.int64),
        level_branch=np.concatenate(levels).astype(np.int32),
        missing_branch=np.array([-1 if split is None else split.missing_branch for split in splits], dtype=np.int32),
        default_branch=np.array([-1 if split is None else split.default_branch for split in splits], dtype=np.int32),
        n_rows=np.array([len(grown.node.rows) for grown in nodes], dtype=np.int64),
        weight=np.array([grown.node.weight for grown in nodes]),
        impurity=np.array([grown.node.impurity for grown in nodes]),
        gain=np.array([nan if split is None else split.gain for split in splits]),
        n_tests=np.array([0.0 if split is None else split.n_tests for split in splits]),
        n_candidates=np.array([0.0 if split is None else split.n_candidates for split in splits]),
        n_levels=np.array([table.n_levels for table in tables]),
        association=np.array([table.association for table in tables]),
        inverse_weight=np.array([table.inverse_weight for table in tables]),
        value=np.stack([search.held_value(grown.node) for grown in nodes]),
    )
