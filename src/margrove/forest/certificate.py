"""Certificates of forests. Nothing here imports the reference, an engine or the core.

The draws of every tree are repeated from the seed. Three things are then recomputed: the leaves of trees, from the rows
that reach them; the splits of trees, searched again by the certificate of trees among the columns drawn for each node;
and the out-of-bag predictions of rows. Where all of it would take long, a sample is taken, always the same one, and the
claims say of how many trees and rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.certificate import Certificate, Claim
from margrove.forest.model import ForestModel
from margrove.forest.out_of_bag import OutOfBag, error_interval, measure_of, out_of_bag
from margrove.forest.packed import PackedForest
from margrove.forest.problem import ForestProblem
from margrove.run.progress import Progress, report
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
_LEAST_ROWS = 1_000  # whose out-of-bag predictions are recomputed however long it takes


def certify_forest(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Certificate:
    """Certify a fitted forest."""
    problem = model._problem_of(X, y, sample_weight)
    claims = [*_drawn(model, problem)]
    if all(claim.holds for claim in claims):
        claims += _Audit(problem, model.model_, is_pruned=model.ccp_alpha > 0).claims()
        claims += _out_of_bag_claims(model, problem)
    n_rows = problem.root.cells.n_rows
    return Certificate(type(model).__name__, str(model.status_), "recomputed", n_rows, ("forest",), tuple(claims))


def solver_certificate(model: Any) -> Certificate:
    """Return the certificate of a fitted forest with nothing recomputed."""
    claims = [Claim("trees", (float(model.model_.n_trees),))]
    if hasattr(model, "oob_score_"):
        words = "of rows that a tree has not seen"
        claims.append(Claim(f"out-of-bag {measure_of(model)}", (float(model.oob_score_),), words=words))
    return Certificate(type(model).__name__, str(model.status_), "solver", model.n_rows_, ("forest",), tuple(claims))


def _drawn(model: Any, problem: ForestProblem) -> Iterator[Claim]:
    """Claim that the trees are trees over these columns, each fitted on the rows that it draws."""
    n, forest = problem.root.cells.n_rows, model.model_
    words = f"fitted on {model.n_rows_} rows, given {n}" if n != model.n_rows_ else "as many rows as it was fitted on"
    is_same = bool(n == model.n_rows_ and forest.columns == problem.root.cells.columns)
    yield Claim("the rows are those it was fitted on", (float(n),), None, is_same, words)
    if not is_same:
        return
    n_wrong = 0
    for t in range(forest.n_trees):
        try:
            tree = forest.tree(t)
        except (ValueError, IndexError):  # forged arrays lead out of themselves
            n_wrong += 1
            continue
        counts = problem.counts(t)
        n_wrong += not _makes_a_tree(tree, problem.root) or int(tree.n_rows[0]) != int(np.count_nonzero(counts))
    words = "number of trees that are malformed, or whose rows are not those drawn for them"
    yield Claim("rows drawn for each tree", (float(n_wrong),), (0.0,), bool(n_wrong == 0), words)
    copies = vars(model).get("estimators_", ())  # made on first access; they predict nothing
    n_other = sum(_is_another(each, model, t) for t, each in enumerate(copies)) if n_wrong == 0 else 0
    if n_other:
        words = "number of trees in estimators_ that are not those of model_"
        yield Claim("stored copies that differ", (float(n_other),), (0.0,), False, words)


def _is_another(estimator: Any, model: Any, t: int) -> bool:
    """Return whether a tree of ``estimators_`` is not tree t."""
    own, of_all = (getattr(each, "classes_", ()) for each in (estimator, model))
    is_same = len(own) == len(of_all) and all(map(np.array_equal, own, of_all))
    trees = estimator.nodes_, estimator.grown_
    return not is_same or any(n_arrays_that_differ(tree, model.model_.tree(t)) for tree in trees)


def _makes_a_tree(tree: TreeModel, root: TreeProblem) -> bool:
    found = fits(root, tree)
    return bool(found.holds) or found.words.startswith("fitted on")  # it has the rows that it drew


class _Audit(Deviations):
    """The deviations found in the leaves and splits of trees."""

    def __init__(self, problem: ForestProblem, model: ForestModel, *, is_pruned: bool) -> None:
        super().__init__()
        self.problem, self.model, self.is_pruned = problem, model, is_pruned
        self.order = np.random.default_rng(0).permutation(model.n_trees).tolist()

    def claims(self) -> list[Claim]:
        """Return the claims about leaves, then those about splits."""
        n_trees, n_recounted = self.model.n_trees, 0
        room = STEP_LIMIT
        for t in self.order:
            tree = self.model.tree(t)
            room -= self.problem.root.cells.n_rows * max(1, tree.max_depth)
            if n_recounted and room < 0:
                break
            self._recount(t, tree)
            n_recounted += 1
            report(Progress("certificate", n_recounted, n_trees))
        words = f"largest relative difference, {n_recounted} of {n_trees} trees recounted"
        leaves = self.claim("rows, weight and prediction of each leaf", words)
        return [leaves, *self._splits()]

    def _recount(self, t: int, tree: TreeModel) -> None:
        """Check the leaves of a tree on the rows that reach them."""
        name = "rows, weight and prediction of each leaf"
        root, counts = self.problem.root, self.problem.counts(t)
        rows, weight = np.flatnonzero(counts), self.problem.weight(counts)
        places = places_of(self.model, t, root.cells)[rows]
        nodes = self.model.leaf_nodes(t)
        is_leaf = tree.is_leaf[nodes]
        weight = np.ones(len(rows)) if weight is None else weight
        n_rows = np.bincount(places, minlength=len(nodes))
        if not np.array_equal(n_rows[is_leaf], tree.n_rows[nodes[is_leaf]]) or n_rows[~is_leaf].any():
            self.note(name, np.inf)
            return
        found = np.bincount(places, weight, len(nodes))[is_leaf]
        self.note(name, float(np.abs(tree.weight[nodes[is_leaf]] / found - 1).max()))
        if any(column.monotone for column in root.cells.columns):
            return  # what bounds allow is checked with the splits
        group = (np.cumsum(is_leaf) - 1)[places]
        measure = Measure(root.growth.criterion, root.n_classes, 0.0, root.outputs)
        parts = measure.groups(root.target[rows].astype(np.float64), weight, group, len(found))
        own, value = self.model.leaf_values(t)[is_leaf], parts.value
        if root.n_classes:
            value = value / found[:, None]
        size = 1.0 if root.n_classes else float(np.abs(root.target).max()) or 1.0
        self.note(name, float(np.abs(own - value).max()) / size)

    def _splits(self) -> list[Claim]:
        """Search the splits of trees again, as many as there is room for, and sum up the claims about them."""
        found: dict[str, list[Claim]] = {}
        n_columns = len(self.model.columns)
        n_drawn = self.problem.root.growth.max_features or n_columns
        each = n_drawn if n_drawn < n_columns else 3  # of all columns, most are ruled out by a bound
        sizes = {t: self.model.tree(t).n_nodes * each for t in self.order}
        chosen: list[int] = []
        room = SEARCH_LIMIT
        for t in self.order:
            if not chosen or sizes[t] <= room:
                chosen.append(t)
                room -= sizes[t]
        for t in chosen:
            tree, problem = self.model.tree(t), self.problem.tree(t)
            limit = VISIT_LIMIT // len(chosen)
            grown = None if self.is_pruned else tree
            for claim in certify_tree_problem(problem, tree, grown, visit_limit=limit, is_ours=True)[1:]:
                found.setdefault(claim.name, []).append(claim)
        return [_worst(name, claims, self.model.n_trees) for name, claims in found.items() if claims[0].values]


def _worst(name: str, claims: list[Claim], n_trees: int) -> Claim:
    """Return the claim about all these trees: the worst of theirs."""
    worst = max(claims, key=lambda claim: claim.values)
    holds = None if worst.holds is None else all(claim.holds for claim in claims)
    words = f"the worst of {len(claims)} of {n_trees} trees"
    return Claim(name, worst.values, worst.limits, holds, f"{words}: {worst.words}" if worst.words else words)


def _out_of_bag_claims(model: Any, problem: ForestProblem) -> Iterator[Claim]:
    """Recompute the out-of-bag predictions, and the error that follows from them."""
    if problem.n_drawn is None:
        return
    root, forest = problem.root, model.model_
    depth = max(1, *(forest.tree(t).max_depth for t in range(min(5, forest.n_trees))))
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
        yield abs(float(model.oob_score_) - model._score_out_of_bag(found, problem.root.target))


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


def places_of(model: ForestModel, t: int, cells: Cells) -> NDArray[np.int32]:
    """Return the place in `ForestModel.leaf_values` of the leaf that each row reaches in tree t."""
    trees = model.trees
    if not isinstance(trees, PackedForest) or cells.sparse is not None:
        place = np.zeros(model.tree(t).n_nodes, dtype=np.int32)
        place[model.leaf_nodes(t)] = np.arange(len(model.leaf_nodes(t)))
        return place[model.tree(t).apply(cells)]
    nodes = slice(int(trees.start[t]), int(trees.start[t + 1]))
    feature, threshold, right = trees.feature[nodes], trees.threshold[nodes], trees.right[nodes]
    block = np.stack(cells.values, axis=1)  # no cell was missing
    at, going = np.zeros(cells.n_rows, dtype=np.int64), np.arange(cells.n_rows)
    while len(going := going[feature[at[going]] >= 0]):  # all rows go down together, a level at a time
        node = at[going]
        is_left = block[going, feature[node]] <= threshold[node]
        at[going] = np.where(is_left, node + 1, right[node])
    return right[at]
