"""Boosted trees in the core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.boost.model import BoostModel, BoostSolution, Rounds
from margrove.boost.problem import LARGEST_RATE, BoostProblem, HeldOut, judged
from margrove.boost.reference import boost
from margrove.engine.native.core import NAME, core, threads_for
from margrove.engine.native.tree import (
    apply,
    columns_for_core,
    growth_for_core,
    rows_for_core,
    sorted_for_core,
    trees_for_core,
)
from margrove.engine.registry import Engine, register
from margrove.errors import EngineError
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.impurity import class_impurity
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, check_asked

_ENDS = {
    core.BoostEnd.all_rounds: Status.CONVERGED,
    core.BoostEnd.perfect: Status.PERFECT_LEARNER,
    core.BoostEnd.chance: Status.NO_BETTER_THAN_CHANCE,
    core.BoostEnd.bound: Status.BOUND_REACHED,
}


@register(NAME, BoostProblem)
def _(engine: Engine, problem: BoostProblem, effort: Effort) -> BoostSolution:
    learner = problem.learner
    check_asked(learner)
    if learner.is_regression:
        raise EngineError(Advice(Setting("engine", "native"), " boosts only classifiers."))
    if any(column.monotone for column in learner.cells.columns):
        words = " does not support monotonic_cst in boosting. Use monotonic_cst=None."
        raise EngineError(Advice(Setting("engine", "native"), words))
    if problem.n_classes == 1 or problem.learning_rate > LARGEST_RATE:  # the core's booster has no checks for these
        of_tree = replace(effort, time_limit=None, on_interrupt="raise")  # the time limit is of all rounds together
        return boost(
            problem,
            lambda tree: engine.solve(tree, of_tree).model,
            lambda step: run_in_slices(lambda seconds: step(), effort),
        )
    n = learner.cells.n_rows
    weight = np.full(n, 1 / n) if learner.weight is None else learner.weight / learner.weight.sum()
    booster = core.Booster(
        columns_for_core(learner.cells),
        n=n,
        label=np.ascontiguousarray(learner.target, np.int32),
        n_classes=problem.n_classes,
        weight=np.ascontiguousarray(weight, np.float64),
        growth=growth_for_core(learner.growth),
        sorted=sorted_for_core(learner, effort),
        n_rounds=problem.n_rounds,
        learning_rate=problem.learning_rate,
        stop_at_bound=problem.stop_at_bound,
        threads=threads_for(effort.n_jobs),
    )
    watcher = None if problem.held_out is None else _Watcher(problem.held_out, problem.n_classes, effort.n_jobs)
    # A warm start repeats the rounds of the earlier model, so that weights and held-out votes are those after them.
    before, is_over = _repeat(problem, booster, watcher, effort.n_jobs)
    taken = [booster.take()]

    # With held-out rows each slice ends after one round at most, which is taken and judged before the next begins.
    def advance(seconds: float) -> Status | None:
        if is_over:
            return Status.EARLY_STOPPED
        is_done = booster.run(seconds, booster.rounds_done() + 1 if watcher else problem.n_rounds)
        report(Progress("boost", done=booster.rounds_done(), total=problem.n_rounds))
        if watcher and booster.rounds_done() > len(watcher.errors):
            taken.append(booster.take())
            if watcher.is_enough(_grove(taken[-1], problem).tree(0), float(taken[-1]["vote"][0])) and not is_done:
                return Status.EARLY_STOPPED
        return _ENDS.get(booster.end()) if is_done else None

    status = run_in_slices(advance, effort)
    taken.append(booster.take())
    rounds = {name: np.concatenate([part[name] for part in taken]) for name in ("error", "vote", "training_error")}
    history = Rounds(
        **rounds,
        validation_error=None if watcher is None else np.array(watcher.errors),
        n_classes=problem.n_classes,
    )
    grove = Grove.joined([before, *(_grove(part, problem) for part in taken if len(part["start"]) > 1)])
    return BoostSolution(BoostModel(grove, rounds["vote"], problem.n_classes), history, status)


def _repeat(
    problem: BoostProblem, booster: core.Booster, watcher: _Watcher | None, n_jobs: int | None
) -> tuple[Grove, bool]:
    """Do the rounds again that were done before: their trees, and whether they are enough."""
    cells = problem.learner.cells
    if problem.before is None:
        return Grove.of(cells.columns, []), False
    grove = problem.before.grove
    for t in range(grove.n_trees):
        tree = grove.tree(t)
        given = np.argmax(tree.value, axis=1)[apply(tree, cells, n_jobs)]
        booster.repeat_round(np.ascontiguousarray(given, np.int32))
        is_enough = watcher is not None and watcher.is_enough(tree, float(problem.before.vote[t]))
        if is_enough and booster.end() is core.BoostEnd.none and booster.rounds_done() < problem.n_rounds:
            return grove.first(t + 1), True
    return grove, False


def votes(model: BoostModel, cells: Cells, n_jobs: int | None = None) -> NDArray[np.float64]:
    """Return the sum of votes for each class, (n, K), by the core."""
    grove, rows = model.grove, rows_for_core(cells)
    trees = trees_for_core(grove, len(model.vote))
    given: dict[str, Any] = {
        "start": grove.start,
        "label": grove.label,
        "vote": model.vote,
        "n_classes": model.n_classes,
        "threads": threads_for(n_jobs),
    }
    if rows is not None:
        return core.votes_of_rows(trees, rows, **given)
    return core.votes_of_columns(trees, columns_for_core(cells), n=cells.n_rows, **given)


class _Watcher:
    """The error on rows held out, round by round."""

    def __init__(self, held_out: HeldOut, n_classes: int, n_jobs: int | None) -> None:
        self._held_out, self._n_jobs = held_out, n_jobs
        n = held_out.cells.n_rows
        self._votes = np.zeros((n, n_classes))
        self._weight = np.ones(n) if held_out.weight is None else held_out.weight
        self.errors: list[float] = []

    def is_enough(self, tree: TreeModel, vote: float) -> bool:
        """Add a round's tree; return whether there has been no better round for too long."""
        cells = self._held_out.cells
        given = np.argmax(tree.value, axis=1)[apply(tree, cells, self._n_jobs)]
        self._votes[np.arange(cells.n_rows), given] += vote
        wrong = judged(self._votes) != self._held_out.target
        self.errors.append(float(self._weight[wrong].sum() / self._weight.sum()))
        return len(self.errors) - 1 - int(np.argmin(self.errors)) >= self._held_out.patience


def _grove(arrays: dict[str, NDArray[Any]], problem: BoostProblem) -> Grove:
    """Return the trees of some rounds, with the impurity of each node."""
    others = ("error", "vote", "training_error", "least", "most")
    parts = {name: values for name, values in arrays.items() if name not in others}
    impurity = class_impurity(problem.learner.growth.criterion, parts["value"])
    return Grove(columns=problem.learner.cells.columns, impurity=impurity, **parts)
