"""Certificates of forests. Nothing here imports the reference, an engine or the core.

The draws of every tree are repeated from the seed. Three things are then recomputed: the leaves of trees, from the rows
that reach them; the splits of trees, searched again by the certificate of trees among the columns drawn for each node;
and the out-of-bag predictions of rows. Where all of it would take long, a sample is taken, always the same one, and the
claims say of how many trees and rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.certificate import Certificate, Claim
from margrove.data.lazy import is_files, kind_of_collection
from margrove.data.regrouped import on_one_worker
from margrove.forest.model import ForestModel
from margrove.forest.out_of_bag import OutOfBag, error_interval, measure_of, out_of_bag
from margrove.forest.packed import PackedForest
from margrove.forest.problem import ForestProblem
from margrove.run.progress import Progress, report
from margrove.status import Status
from margrove.tree.certificate import (
    ROUNDING,
    VISIT_LIMIT,
    Deviations,
    certify_tree_problem,
    fits,
    n_arrays_that_differ,
)
from margrove.tree.groups import Measure
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeProblem

STEP_LIMIT = 60_000_000  # steps of rows down trees; a second or so
SEARCH_LIMIT = 8_000  # searches of a column in a node; a few seconds
_MEASURED = 5  # trees whose depth is that of all
_LEAVES = "rows, weight and prediction of each leaf"
_LEAST_ROWS = 1_000  # whose out-of-bag predictions are recomputed however long it takes


def certify_forest(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Certificate:
    """Certify a fitted forest. A table in partitions is fetched by one worker."""
    if kind_of_collection(X) is not None or is_files(X):
        found: Certificate = on_one_worker(partial(certify_forest, model), X, y, sample_weight)
        return found
    problem = model._problem_of(X, y, sample_weight)
    claims = [_rows_are_same(model, problem)]
    if claims[0].holds:
        audit = _Audit(problem, model)
        claims += audit.claims()
        if not audit.n_wrong:
            claims += _out_of_bag_claims(model, problem, audit.depth)
    n_rows = problem.root.cells.n_rows
    return Certificate(type(model).__name__, str(model.status_), "recomputed", n_rows, ("forest",), tuple(claims))


def solver_certificate(model: Any) -> Certificate:
    """Return the certificate of a fitted forest with nothing recomputed."""
    claims = [Claim("trees", (float(model.model_.n_trees),))]
    if hasattr(model, "oob_score_"):
        words = "of rows that a tree has not seen"
        claims.append(Claim(f"out-of-bag {measure_of(model)}", (float(model.oob_score_),), words=words))
    return Certificate(type(model).__name__, str(model.status_), "solver", model.n_rows_, ("forest",), tuple(claims))


def _rows_are_same(model: Any, problem: ForestProblem) -> Claim:
    n = problem.root.cells.n_rows
    words = f"fitted on {model.n_rows_} rows, given {n}" if n != model.n_rows_ else "as many rows as it was fitted on"
    is_same = bool(n == model.n_rows_ and model.model_.columns == problem.root.cells.columns)
    return Claim("the rows are those it was fitted on", (float(n),), None, is_same, words)


def _is_another(estimator: Any, model: Any, tree: TreeModel) -> bool:
    """Return whether a tree of ``estimators_`` is not this one."""
    own, of_all = (getattr(each, "classes_", ()) for each in (estimator, model))
    is_same = len(own) == len(of_all) and all(map(np.array_equal, own, of_all))
    return not is_same or any(n_arrays_that_differ(each, tree) for each in (estimator.nodes_, estimator.grown_))


def _makes_a_tree(tree: TreeModel, root: TreeProblem) -> bool:
    found = fits(root, tree)
    return bool(found.holds) or found.words.startswith("fitted on")  # it has the rows that it drew


class _Audit(Deviations):
    """What is found in the rows, leaves and splits of the trees, each of which is unpacked once."""

    def __init__(self, problem: ForestProblem, model: Any) -> None:
        super().__init__()
        self.problem, self.model, self.is_pruned = problem, model.model_, model.ccp_alpha > 0
        self.n_recounted, n_trees = 0, self.model.n_trees
        self.n_wrong = abs(model.n_estimators - n_trees) if model.status_ is Status.CONVERGED else 0
        self.depth = 1  # of the first trees
        self.splits: dict[str, list[Claim]] = {}
        copies = vars(model).get("estimators_", ())  # made on first access; they predict nothing
        self.n_other = abs(len(copies) - n_trees) if copies else 0
        order = np.random.default_rng(0).permutation(n_trees).tolist()
        searched, room = self._searched(order), STEP_LIMIT
        for n_done, t in enumerate(order, 1):
            try:
                tree = self.model.tree(t)
            except (ValueError, IndexError):  # forged arrays lead out of themselves
                self.n_wrong += 1
                continue
            counts = problem.counts(t)
            self.n_wrong += not _makes_a_tree(tree, problem.root) or int(tree.n_rows[0]) != int(
                np.count_nonzero(counts)
            )
            if self.n_wrong:  # nothing else will be claimed
                continue
            self.n_other += t < len(copies) and _is_another(copies[t], model, tree)
            if t < _MEASURED:
                self.depth = max(self.depth, tree.max_depth)
            room -= problem.root.cells.n_rows * max(1, tree.max_depth)
            if not self.n_recounted or room >= 0:
                self._recount(t, tree, counts)
                self.n_recounted += 1
            if t in searched:
                self._search(t, tree, VISIT_LIMIT // len(searched))
            report(Progress("certificate", n_done, len(order)))

    def claims(self) -> Iterator[Claim]:
        """Yield the claims about rows, leaves and splits."""
        words = "number of trees that are not there, are malformed, or whose rows are not those drawn for them"
        yield Claim("rows drawn for each tree", (float(self.n_wrong),), (0.0,), self.n_wrong == 0, words)
        if self.n_wrong:
            return
        if self.n_other:
            words = "number of trees in estimators_ that are not those of model_"
            yield Claim("stored copies that differ", (float(self.n_other),), (0.0,), False, words)
        words = f"largest relative difference, {self.n_recounted} of {self.model.n_trees} trees recounted"
        yield self.claim(_LEAVES, words)
        for name, claims in self.splits.items():
            if all(claim.values for claim in claims):  # trees of one leaf claim numbers that others do not know
                yield _worst(name, claims, self.model.n_trees)

    def _recount(self, t: int, tree: TreeModel, counts: NDArray[np.intp]) -> None:
        """Check the leaves of a tree on the rows that reach them."""
        root = self.problem.root
        rows, weight = np.flatnonzero(counts), self.problem.weight(counts)
        places = places_of(self.model, t, root.cells, tree)[rows]
        nodes = self.model.leaf_nodes(t)
        is_leaf = tree.is_leaf[nodes]
        weight = np.ones(len(rows)) if weight is None else weight
        n_rows = np.bincount(places, minlength=len(nodes))
        if not np.array_equal(n_rows[is_leaf], tree.n_rows[nodes[is_leaf]]) or n_rows[~is_leaf].any():
            self.note(_LEAVES, np.inf)
            return
        found = np.bincount(places, weight, len(nodes))[is_leaf]
        self.note(_LEAVES, float(np.abs(tree.weight[nodes[is_leaf]] / found - 1).max()))
        if any(column.monotone for column in root.cells.columns):
            return  # what bounds allow is checked with the splits
        group = (np.cumsum(is_leaf) - 1)[places]
        measure = Measure(root.growth.criterion, root.n_classes, 0.0, root.outputs)
        parts = measure.groups(root.target[rows].astype(np.float64), weight, group, len(found))
        own, value = self.model.leaf_values(t)[is_leaf], parts.value
        if root.n_classes:
            value = value / found[:, None]
        size = 1.0 if root.n_classes else float(np.abs(root.target).max()) or 1.0
        self.note(_LEAVES, float(np.abs(own - value).max()) / size)

    def _searched(self, order: list[int]) -> list[int]:
        """Return the trees whose splits are searched again: as many as there is room for."""
        n_columns = len(self.model.columns)
        n_drawn = self.problem.root.growth.max_features or n_columns
        each = n_drawn if n_drawn < n_columns else 3  # of all columns, most are ruled out by a bound
        sizes, searched, room = (np.diff(self.model.trees.start) * each).tolist(), order[:1], SEARCH_LIMIT
        room -= sum(sizes[t] for t in searched)
        for t in order[1:]:
            if sizes[t] <= room:
                searched.append(t)
                room -= sizes[t]
        return searched

    def _search(self, t: int, tree: TreeModel, visit_limit: int) -> None:
        """Search the splits of a tree again."""
        grown = None if self.is_pruned else tree
        found = certify_tree_problem(self.problem.tree(t), tree, grown, visit_limit=visit_limit, is_ours=True)
        for claim in found[1:]:
            self.splits.setdefault(claim.name, []).append(claim)


def _worst(name: str, claims: list[Claim], n_trees: int) -> Claim:
    """Return the claim about all these trees: the worst of theirs."""
    worst = max(claims, key=lambda claim: claim.values)
    holds = None if worst.holds is None else all(claim.holds for claim in claims)
    words = f"the worst of {len(claims)} of {n_trees} trees"
    return Claim(name, worst.values, worst.limits, holds, f"{words}: {worst.words}" if worst.words else words)


def _out_of_bag_claims(model: Any, problem: ForestProblem, depth: int) -> Iterator[Claim]:
    """Recompute the out-of-bag predictions, and the error that follows from them."""
    if problem.n_drawn is None:
        return
    root, forest = problem.root, model.model_
    n_rows = root.cells.n_rows
    room = max(_LEAST_ROWS, STEP_LIMIT // (forest.n_trees * depth))
    rows = np.arange(n_rows)
    if room < n_rows:
        rows = np.sort(np.random.default_rng(0).permutation(n_rows)[:room])
    cells = root.cells if len(rows) == n_rows else root.cells.take(rows)
    found = out_of_bag(problem, forest, lambda block: _places_of_all(forest, cells, block), rows)
    of_all = f"of {len(rows)} of {n_rows} rows"
    size = 1.0 if root.n_classes else float(np.abs(root.target).max()) or 1.0
    off = list(_stored_otherwise(model, problem, found, rows, size))
    if off:
        words = f"largest difference of what is stored, {of_all}"
        yield Claim("out-of-bag predictions and score", (max(off),), (ROUNDING,), max(off) <= ROUNDING, words)
    yield from _error(model, problem, found, rows, of_all)


def _stored_otherwise(
    model: Any, problem: ForestProblem, found: OutOfBag, rows: NDArray[np.intp], size: float
) -> Iterator[float]:
    """Yield the differences of the predictions that the fit kept, and of its score if all rows are recomputed."""
    given = model._stored_out_of_bag()
    if given is not None and problem.rows is not None:  # no tree has seen the others, whose weight is zero
        given = given[problem.rows]
    if given is not None:
        is_same = np.array_equal(np.isnan(given[rows]), np.isnan(found.value))
        yield float(np.nanmax(np.abs(given[rows] - found.value), initial=0.0)) / size if is_same else inf
    if hasattr(model, "oob_score_") and len(rows) == problem.root.cells.n_rows:
        scores = np.array([model.oob_score_, model._score_out_of_bag(found, problem.root.target)])
        is_lost = np.isnan(scores)  # where every tree has drawn every row
        yield abs(float(scores[0] - scores[1])) if not is_lost.any() else 0.0 if is_lost.all() else inf


def _error(model: Any, problem: ForestProblem, found: OutOfBag, rows: NDArray[np.intp], of_all: str) -> Iterator[Claim]:
    known = found.is_known
    if problem.root.outputs or not known.any():
        return
    target = problem.root.target[rows]
    if problem.root.n_classes:
        n_known = int(np.count_nonzero(known))
        n_wrong = int(np.count_nonzero(found.value[known].argmax(axis=1) != target[known]))
        low, high = error_interval(n_wrong, n_known)
        words = f"{of_all}; exact 95 % interval {low:.4f} … {high:.4f}"
        yield Claim("out-of-bag error", (n_wrong / n_known,), words=words)
    else:
        yield Claim(f"out-of-bag {measure_of(model)}", (model._score_out_of_bag(found, target),), words=of_all)


def _places_of_all(model: ForestModel, cells: Cells, block: slice) -> NDArray[np.int32]:
    taken = cells.take(np.arange(block.start, block.stop))
    return np.stack([places_of(model, t, taken) for t in range(model.n_trees)], axis=1)


def places_of(model: ForestModel, t: int, cells: Cells, tree: TreeModel | None = None) -> NDArray[np.int32]:
    """Return the place in `ForestModel.leaf_values` of the leaf that each row reaches in tree t."""
    trees = model.trees
    if not isinstance(trees, PackedForest) or cells.sparse is not None:
        tree, leaves = model.tree(t) if tree is None else tree, model.leaf_nodes(t)
        place = np.zeros(tree.n_nodes, dtype=np.int32)
        place[leaves] = np.arange(len(leaves))
        return place[tree.apply(cells)]
    nodes = slice(int(trees.start[t]), int(trees.start[t + 1]))
    feature, threshold, right = trees.feature[nodes], trees.threshold[nodes], trees.right[nodes]
    block = np.stack(cells.values, axis=1)  # no cell was missing
    at, going = np.zeros(cells.n_rows, dtype=np.int64), np.arange(cells.n_rows)
    while len(going := going[feature[at[going]] >= 0]):  # all rows go down together, a level at a time
        node = at[going]
        is_left = block[going, feature[node]] <= threshold[node]
        at[going] = np.where(is_left, node + 1, right[node])
    return right[at]
