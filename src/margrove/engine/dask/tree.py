"""Exact trees over a table that lies on the workers column by column.

Nodes of many rows are split from the top: every group of columns offers its best test of each open node, found by the
native engine; this process takes the best of all groups, the first of equals, as the native engine does between
columns; the group that holds the column sends the rows to their branches. A node of few rows is grown to the end on one
worker, which fetches its rows of all columns. Nothing is approximated, and every search is the native engine's on the
same rows, so the tree is that of one machine: see `_few_rows` for the last digit of some gains.

On the workers lie the columns, the target, and the node of every row. This process holds the tree.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.dask_partitions import Key, Tasks, last_of
from margrove.engine.native.tree import apply, finished, grown
from margrove.engine.registry import Engine, register
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.impurity import class_impurity
from margrove.tree.model import TreeModel, TreeSolution
from margrove.tree.problem import EQUAL_GAIN, Cells, Growth, SpreadTreeProblem, TreeProblem
from margrove.tree.split import SplitSearch

# Where the upper part ends. By the table alone: the last digit of some gains depends on it (see `_few_rows`).
FEW_ROWS = 100_000  # a node of fewer is always grown to the end by one worker
FEW_SHARE = 1.6  # of all rows, five eighths: each level sorts its rows again, so most trees have one that is shared
FEW_CELLS = 1 << 24  # whose growing takes about 0.8 GB

Arrays = dict[str, NDArray[Any]]
Waiting = Generator[None, None, list[Any]]
_ALONE = Effort(n_jobs=1)  # Dask runs as many tasks at a time as a worker has threads
_PER_NODE = (
    *("feature", "threshold", "missing_branch", "default_branch", "n_rows", "weight", "least", "most", "gain"),
    *("n_tests", "n_candidates", "n_levels", "association", "inverse_weight", "value"),
)


@dataclass
class _Node:
    """A node of the upper part of the tree."""

    number: int
    depth: int
    n_rows: int
    arrays: Arrays | None  # of a tree that begins here: a leaf, or one split, or all below
    is_grown: bool = False  # ``arrays`` has all below
    children: list[_Node] = field(default_factory=list)


@dataclass(frozen=True)
class _Offer:
    """The best test of a group of columns at a node."""

    arrays: Arrays  # of the tree with this one split, or of a leaf if there is none
    gain: float  # −∞ if there is none
    tolerance: float  # gains that differ by less are equal
    n_candidates: float


class SpreadTree:
    """One tree while it grows."""

    def __init__(self, problem: SpreadTreeProblem) -> None:
        self.problem, self.rows = problem, problem.rows
        self.tasks: Tasks = self.rows.tasks
        self.few = _few_rows(problem.n_rows, len(problem.columns))
        self.root = _Node(0, 0, problem.n_rows, None)
        self.nodes = [self.root]
        self.settled = 0
        self.place = self.tasks.submit("the rows", _all_in_root, self.rows.sample)
        self.lower: dict[int, Key] = {}  # the subtrees that single workers grow
        self.leaves: Key | None = None  # of all rows, where the model needed them

    def work(self) -> Iterator[None]:
        """Grow the tree; yield while the workers are at work."""
        level = [self.root]
        deepest = self.problem.growth.max_depth
        while level:
            if level[0].depth and level[0].depth == deepest:  # leaves, as the splits above have left them
                self.settled += sum(node.n_rows for node in level)
                break
            for node in level:
                if node.n_rows <= self.few:
                    self._leave_to_one_worker(node)
            level = [node for node in level if node.n_rows > self.few]
            if level:
                level = yield from self._split(level)
        bare = {number: self.tasks.submit(key.name, _without_rows, key) for number, key in self.lower.items()}
        for number, key in bare.items():
            node = self.nodes[number]
            (node.arrays,) = yield from self._waited([key])
            node.is_grown = True
            self.settled += node.n_rows

    def _waited(self, keys: Sequence[Key]) -> Waiting:
        for found in self.tasks.results(keys):
            if found is not None:
                return found
            yield
        raise AssertionError("the results come last")

    def _split(self, nodes: Sequence[_Node]) -> Waiting:
        """Find the test of each node and send its rows to their branches; return the children."""
        depth = nodes[0].depth
        growth = replace(self.problem.growth, max_depth=1, min_gain=-np.inf, min_impurity_decrease=-np.inf)
        asked = self.rows.sample, self.place, [node.number for node in nodes], self.problem.n_classes, growth
        found = yield from self._waited(
            [self.tasks.submit(key.name, _best_tests, key, first, *asked) for key, first in self.rows.numbered()]
        )
        by_group: dict[int, dict[int, Arrays]] = {}
        children: list[_Node] = []
        for node in nodes:
            offers = [group[node.number] for group in found]
            chosen = self._chosen(offers)
            node.arrays = offers[chosen].arrays
            if offers[chosen].gain == -np.inf or not self._is_worthwhile(offers[chosen]):
                node.arrays = _leaf_of(node.arrays)
                self.settled += node.n_rows
                continue
            node.arrays["n_candidates"][0] = sum(offer.n_candidates for offer in offers)
            by_group.setdefault(chosen, {})[node.number] = node.arrays
            for b, n_rows in enumerate(node.arrays["n_rows"][1:].tolist(), start=1):
                child = _Node(len(self.nodes), depth + 1, n_rows, _leaf_of(node.arrays, b))
                self.nodes.append(child)
                node.children.append(child)
            children += node.children
        if children:
            first_child = {node.number: node.children[0].number for node in nodes if node.children}
            groups = self.rows.numbered()
            branches = [
                self.tasks.submit(groups[group][0].name, _branches, *groups[group], self.place, splits)
                for group, splits in by_group.items()
            ]
            self.place = self.tasks.submit("the rows", _moved, self.place, branches, first_child)
        return children

    def _chosen(self, offers: Sequence[_Offer]) -> int:
        """Return the group with the largest gain, the first of equals."""
        best = 0
        for group, offer in enumerate(offers):
            if offer.gain > offers[best].gain + offer.tolerance:
                best = group
        return best

    def _is_worthwhile(self, offer: _Offer) -> bool:
        growth, gain = self.problem.growth, offer.gain + offer.tolerance
        share = float(offer.arrays["weight"][0]) / self.problem.weight
        return gain >= growth.min_gain and share * gain >= growth.min_impurity_decrease

    def _leave_to_one_worker(self, node: _Node) -> None:
        growth, submit = self.problem.growth, self.tasks.submit
        depth = None if growth.max_depth is None else growth.max_depth - node.depth
        name = f"the subtree of {node.n_rows} rows"
        pieces = [submit(key.name, _rows_of, key, self.place, node.number) for key in self.rows.groups]
        target = submit(name, _target_of, self.rows.sample, self.place, node.number)
        asked = self.problem.n_classes, replace(growth, max_depth=depth), self.problem.weight
        self.lower[node.number] = submit(name, _subtree, pieces, target, *asked)

    def model(self) -> TreeModel:
        """Return the tree as it is: a node that has no test yet is a leaf."""
        problem, submit = self.problem, self.tasks.submit
        if self.root.arrays is None:  # interrupted early
            growth = replace(problem.growth, min_samples_split=problem.n_rows + 1)
            key, first = self.rows.numbered()[0]
            asked = self.rows.sample, self.place, [0], problem.n_classes, growth
            leaf = submit("the root", _best_tests, key, first, *asked)
            self.root.arrays = last_of(self.tasks.results([leaf]))[0][0].arrays
        arrays, places = _assembled(self.root)
        bare = TreeProblem(
            Cells(problem.columns, problem.n_rows), np.empty(0), problem.n_classes, growth=problem.growth
        )
        if problem.n_classes and not problem.is_weighted:
            return finished(bare, arrays, 1)
        grown_below = [number for number in self.lower if self.nodes[number].is_grown]
        below = [self.lower[number] for number in grown_below]
        self.leaves = submit("the leaves", _leaves, self.place, grown_below, below, places)
        tree = submit("the tree", _finished, self.rows.sample, self.leaves, arrays, bare)
        model: TreeModel = last_of(self.tasks.results([tree]))[0]
        return model


@register("dask", SpreadTreeProblem)
def _(engine: Engine, problem: SpreadTreeProblem, effort: Effort) -> TreeSolution:
    tree = SpreadTree(problem)
    work = tree.work()

    def advance(seconds: float) -> Status | None:
        for _ in work:
            return None
        return Status.CONVERGED

    def look_around() -> None:
        report(Progress("tree", done=tree.settled, total=problem.n_rows))

    status = run_in_slices(advance, effort, look_around)
    return TreeSolution(tree.model(), status)


# The arrays of trees, in this process


def _few_rows(n_rows: int, n_columns: int) -> int:
    """Return how many rows a node may have that one worker grows to the end.

    The core finds a gain by entropy or Poisson deviance, and what a subset test of a regression keeps for its p-value,
    from sums whose order depends on where a tree begins: their last digits may differ from those of one machine.
    """
    return max(min(int(n_rows / FEW_SHARE), FEW_CELLS // max(1, n_columns)), FEW_ROWS)


def _leaf_of(arrays: Arrays, node: int = 0) -> Arrays:
    """Return one node of a tree as a tree of one leaf."""
    leaf = {name: arrays[name][node : node + 1].copy() for name in _PER_NODE}
    for name, value in (("feature", -1), ("missing_branch", -1), ("default_branch", -1)):
        leaf[name][0] = value
    for name, blank in (("threshold", np.nan), ("gain", np.nan), ("association", np.nan), ("n_tests", 0.0)):
        leaf[name][0] = blank
    for name in ("n_candidates", "n_levels", "inverse_weight"):
        leaf[name][0] = 0.0
    nothing = {"child_start": np.zeros(2, np.int32), "child": np.empty(0, np.int32)}
    return leaf | nothing | {"level_start": np.zeros(2, np.int64), "level_branch": np.empty(0, np.int32)}


def _assembled(root: _Node) -> tuple[Arrays, dict[int, int]]:
    """Return the arrays of the whole tree, depth first, and the place of each node of the upper part in them."""
    parts: list[Arrays] = []
    places: dict[int, int] = {}
    waiting, n_nodes = [root], 0
    while waiting:
        node = waiting.pop()
        places[node.number] = n_nodes
        arrays = node.arrays
        assert arrays is not None
        count = len(arrays["feature"])
        if node.children:
            count = 1
            waiting += node.children[::-1]
        parts.append({name: arrays[name][:count] for name in _PER_NODE})
        parts[-1]["fan_out"] = np.diff(arrays["child_start"])[:count]
        parts[-1]["n_codes"] = np.diff(arrays["level_start"])[:count]
        parts[-1]["level_branch"] = arrays["level_branch"][: int(parts[-1]["n_codes"].sum())]
        n_nodes += count
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    fan_out = whole.pop("fan_out")
    whole["child_start"] = np.concatenate([[0], np.cumsum(fan_out)]).astype(np.int32)
    whole["level_start"] = np.concatenate([[0], np.cumsum(whole.pop("n_codes"))]).astype(np.int64)
    child = np.empty(n_nodes - 1, np.int32)
    below: list[int] = []  # nodes without a parent yet, the nearest last
    for node_number in range(n_nodes - 1, -1, -1):
        start, n_children = int(whole["child_start"][node_number]), int(fan_out[node_number])
        for b in range(n_children):
            child[start + b] = below.pop()
        below.append(node_number)
    whole["child"] = child
    return whole, places


# On the workers. ``place`` is the node of every row; it has two bytes where that is enough.


def _all_in_root(sample: Any) -> NDArray[Any]:
    return np.zeros(sample.cells.n_rows, np.uint16)


def _rows_at(place: NDArray[Any], number: int) -> NDArray[np.intp] | None:
    """Return the rows of a node, ascending; None for all."""
    return None if number == 0 else np.flatnonzero(place == number)


def _problem_at(
    cells: Cells, first: int, sample: Any, rows: NDArray[np.intp] | None, n_classes: int, growth: Growth
) -> TreeProblem:
    if rows is None:
        return TreeProblem(cells, sample.target, n_classes, sample.weight, growth)
    weight = None if sample.weight is None else sample.weight[rows]
    return TreeProblem(cells.take(rows), sample.target[rows], n_classes, weight, growth)


def _best_tests(
    cells: Cells, first: int, sample: Any, place: NDArray[Any], numbers: Sequence[int], n_classes: int, growth: Growth
) -> dict[int, _Offer]:
    """Return the best test that some columns, numbered from ``first``, offer at each of these nodes."""
    found = {}
    for number in numbers:
        problem = _problem_at(cells, first, sample, _rows_at(place, number), n_classes, growth)
        arrays = _small(grown(problem, _ALONE)[0], first)
        has_test = bool(arrays["feature"][0] >= 0)
        n_candidates = float(arrays["n_candidates"][0])
        limits = growth.min_samples_leaf > 1 or growth.min_weight_leaf > 0
        if not has_test and limits and growth.min_samples_split <= problem.cells.n_rows:
            # Tests that leave too few rows in a branch count as candidates too.
            free = replace(growth, min_samples_leaf=1, min_weight_leaf=0.0)
            n_candidates = float(grown(replace(problem, growth=free), _ALONE)[0]["n_candidates"][0])
        tolerance = 0.0
        if has_test and n_classes and problem.weight is None:
            tolerance = EQUAL_GAIN * abs(float(class_impurity(growth.criterion, arrays["value"][:1])[0]))
        elif has_test:
            search = SplitSearch(replace(problem, cells=Cells((), problem.cells.n_rows)))
            tolerance = EQUAL_GAIN * search.node(np.arange(problem.cells.n_rows)).gain_unit
        gain = float(arrays["gain"][0]) if has_test else -np.inf
        found[number] = _Offer(arrays, gain, tolerance, n_candidates)
    return found


def _small(arrays: Arrays, first: int) -> Arrays:
    """Return the arrays of a tree without those of its rows, its columns numbered from ``first``."""
    arrays = {name: values for name, values in arrays.items() if name != "leaf"}
    arrays["feature"] = np.where(arrays["feature"] >= 0, arrays["feature"] + first, -1).astype(np.int32)
    return arrays


def _branches(cells: Cells, first: int, place: NDArray[Any], splits: dict[int, Arrays]) -> dict[int, NDArray[Any]]:
    """Return the branch of each row of these nodes, whose tests are on these columns."""
    found = {}
    for number, arrays in splits.items():
        rows = _rows_at(place, number)
        part = cells if rows is None else cells.take(rows)
        local = arrays | {"feature": np.where(arrays["feature"] >= 0, arrays["feature"] - first, -1).astype(np.int32)}
        leaf = apply(_model(local, cells), part, 1)
        found[number] = (leaf - 1).astype(np.uint16)  # the children follow the root
    return found


def _model(arrays: Arrays, cells: Cells) -> TreeModel:
    """Return a tree by which rows find their leaves, without impurities."""
    kept = {name: values for name, values in arrays.items() if name not in ("least", "most", "leaf")}
    return TreeModel(columns=cells.columns, impurity=np.zeros(len(arrays["feature"])), **kept)


def _moved(place: NDArray[Any], branches: list[dict[int, NDArray[Any]]], first_child: dict[int, int]) -> NDArray[Any]:
    """Return the node of every row after these splits."""
    most = max(first_child.values()) + max(int(each.max()) for found in branches for each in found.values())
    moved = place.astype(np.uint16 if most < 1 << 16 else np.int32)
    for found in branches:
        for number, branch in found.items():
            rows = _rows_at(place, number)
            moved[slice(None) if rows is None else rows] = first_child[number] + branch.astype(moved.dtype)
    return moved


def _rows_of(cells: Cells, place: NDArray[Any], number: int) -> Cells:
    rows = _rows_at(place, number)
    return cells if rows is None else cells.take(rows)


def _target_of(sample: Any, place: NDArray[Any], number: int) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    rows = _rows_at(place, number)
    if rows is None:
        return sample.target, sample.weight
    return sample.target[rows], None if sample.weight is None else sample.weight[rows]


def _subtree(
    pieces: list[Cells],
    target: tuple[NDArray[Any], NDArray[np.float64] | None],
    n_classes: int,
    growth: Growth,
    weight: float,
) -> Arrays:
    """Return the tree of some rows; ``weight`` is that of all rows of the table."""
    columns = tuple(column for piece in pieces for column in piece.columns)
    values = tuple(piece.column(j) for piece in pieces for j in range(len(piece.columns)))
    cells = Cells(columns, pieces[0].n_rows, values)
    own = float(cells.n_rows if target[1] is None else target[1].sum())
    growth = replace(growth, min_impurity_decrease=growth.min_impurity_decrease * (weight / own))
    if growth.max_depth == 0:
        growth = replace(growth, max_depth=None, min_samples_split=cells.n_rows + 1)
    arrays = grown(TreeProblem(cells, target[0], n_classes, target[1], growth), _ALONE)[0]
    if n_classes and target[1] is None:
        arrays.pop("leaf", None)
    elif "leaf" not in arrays:
        arrays["leaf"] = apply(_model(arrays, cells), cells, 1)
    return arrays


def _without_rows(arrays: Arrays) -> Arrays:
    return {name: values for name, values in arrays.items() if name != "leaf"}


def _leaves(
    place: NDArray[Any], numbers: Sequence[int], below: list[Arrays], places: dict[int, int]
) -> NDArray[np.int32]:
    """Return the leaf of every row in the whole tree."""
    first = np.zeros(max(places) + 1, np.int32)
    first[list(places)] = list(places.values())
    leaf: NDArray[np.int32] = first[place]
    for number, arrays in zip(numbers, below, strict=True):
        rows = _rows_at(place, number)
        leaf[slice(None) if rows is None else rows] += arrays["leaf"]
    return leaf


def _finished(sample: Any, leaf: NDArray[np.int32], arrays: Arrays, bare: TreeProblem) -> TreeModel:
    return finished(replace(bare, target=sample.target, weight=sample.weight), arrays | {"leaf": leaf}, 1)
