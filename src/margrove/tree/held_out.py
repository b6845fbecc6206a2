"""Rows that a tree is not grown from: to prune it by, and to choose the penalty of a leaf on other trees."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from margrove.advice import Advice, Setting
from margrove.data.columns import RowIndex
from margrove.engine import Effort, Engine
from margrove.errors import InputError
from margrove.status import Status
from margrove.tree.model import TreeModel
from margrove.tree.path import CostComplexityPath, candidate_alphas, choose_alpha, cost_complexity_path
from margrove.tree.problem import TreeProblem
from margrove.tree.reading import TreeSample

Given = TypeVar("Given", TreeProblem, TreeSample)

FOLDS = 5  # of the cross-validation that chooses α


class Grower:
    """Grows the trees of one fit on one engine within one time limit. ``status`` is the reason why growing ended."""

    def __init__(self, engine: Engine, effort: Effort) -> None:
        self.engine, self.effort, self.status = engine, effort, Status.CONVERGED
        self._left, self._started = effort, time.monotonic()

    def has_time(self) -> bool:
        """Return whether another tree may be grown: the time is not over, and none was stopped early."""
        if self.effort.time_limit is not None:
            left = self.effort.time_limit - (time.monotonic() - self._started)
            if left > 0:
                self._left = replace(self.effort, time_limit=left)
            else:
                self.status = Status.TIME_LIMIT
        return self.status is Status.CONVERGED

    def grow(self, problem: TreeProblem) -> TreeModel:
        """Grow a tree in the time that was left when `has_time` was last called."""
        solution = self.engine.solve(problem, self._left)
        self.status = solution.status
        return solution.model


def held_out_rows(sample: TreeSample, share: float, seed: int) -> NDArray[np.bool_]:
    """Return a mask of rows drawn at random, of each class the same share; the same rows for the same seed."""
    n = sample.cells.n_rows
    is_held_out = drawn_rows(np.zeros(n, dtype=np.intp) if sample.classes is None else sample.target, share, seed)
    if not is_held_out.any() or is_held_out.all():
        raise InputError(
            f"validation_fraction={share} of {n} rows leaves no row to grow from, or none to prune with",
            cure=Advice("Use more rows, another share, or another rule than ", Setting("prune", "reduced_error"), "."),
        )
    return is_held_out


def some_rows(given: Given, rows: RowIndex) -> Given:
    """Return the problem or sample of these rows."""
    weight = None if given.weight is None else given.weight[rows]
    return replace(given, cells=given.cells.take(rows), target=given.target[rows], weight=weight)


def drawn_rows(groups: NDArray[Any], share: float, seed: int) -> NDArray[np.bool_]:
    """Return a mask of rows drawn at random, of each group this share, rounded."""
    rng = np.random.RandomState(seed)
    is_drawn = np.zeros(len(groups), dtype=bool)
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        is_drawn[rng.permutation(rows)[: round(share * len(rows))]] = True
    return is_drawn


def choose_by_folds(problem: TreeProblem, path: CostComplexityPath, seed: int, grower: Grower) -> float:
    """Return the α, of those between the steps of the path, whose trees score best on the fifth of rows left out. Where
    the time ends, the folds before decide; without any α is 0."""
    alphas = candidate_alphas(path.ccp_alphas)
    scores: list[list[float]] = []  # (folds, alphas)
    for train, test in _folds(problem, seed):
        if not grower.has_time():
            break
        grown = grower.grow(some_rows(problem, train))
        if grower.status is not Status.CONVERGED:
            break
        own, held_out = cost_complexity_path(grown), some_rows(problem, test)
        leaf = grower.engine.apply_trees(grown, held_out.cells, grower.effort)
        found: list[float] = []
        for alpha in alphas.tolist():
            if not grower.has_time():
                break
            found.append(_score(held_out, grown, ends_of_rows(grown, own.cut_at(alpha))[leaf]))
        else:
            scores.append(found)  # of all α
    return choose_alpha(alphas, np.transpose(scores)) if scores else 0.0


def _score(held_out: TreeProblem, tree: TreeModel, leaf: NDArray[np.int32]) -> float:
    """Return the accuracy, or of numbers the mean distance or squared distance, negated, of rows in these leaves."""
    if not held_out.is_regression:
        is_right = tree.value.argmax(axis=1)[leaf] == held_out.target
        return float(np.average(is_right, weights=held_out.weight))
    distance = np.abs(tree.value[leaf, 0] - held_out.target)
    power = 1 if held_out.growth.criterion == "absolute_error" else 2
    return -float(np.average(distance**power, weights=held_out.weight))


def _folds(problem: TreeProblem, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    n = problem.cells.n_rows
    if n < FOLDS:
        raise InputError(
            Advice(Setting("ccp_alpha", "cv"), f" needs at least {FOLDS} rows, and there are {n}"),
            cure="Set ccp_alpha to a number.",
        )
    order = np.zeros(n)
    smallest = n if problem.is_regression else int(np.bincount(problem.target).min(initial=n))
    if problem.is_regression or smallest < FOLDS:
        return list(KFold(FOLDS, shuffle=True, random_state=seed).split(order))
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(order, problem.target))


def ends_of_rows(tree: TreeModel, cut: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return for each node where its rows end, if these nodes are leaves: its outermost cut ancestor."""
    nodes = np.arange(tree.n_nodes, dtype=np.int32)
    cut_nodes = np.flatnonzero(cut)
    ends = np.maximum.accumulate(np.concatenate([[0], tree.end[cut_nodes]]))
    outermost = cut_nodes[cut_nodes >= ends[:-1]]  # a subtree is one run of nodes, so these runs are disjoint
    border = np.zeros(tree.n_nodes + 1, dtype=np.int32)
    border[outermost] += 1
    border[tree.end[outermost]] -= 1  # where the next run begins at once, the two cancel: still within a run
    last_cut = np.zeros(tree.n_nodes, dtype=np.int32)
    last_cut[outermost] = outermost
    return np.where(np.cumsum(border[:-1]) > 0, np.maximum.accumulate(last_cut), nodes).astype(np.int32)
