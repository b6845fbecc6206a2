"""AdaBoost over a table that lies on the workers column by column: each round grows a tree there, by `SpreadTree`.

The columns are regrouped and sorted once for all rounds. The weights of the rows and their votes lie on one worker,
which changes them after each round by `Boosting`, as the reference does: every sum is over the rows in their order, so
that the model has the same bits for any partitioning and any number of workers. A round sends the new weights, and the
target, to the workers that hold columns, and their numbers to this process.

Lost weights are made again from the rounds so far: their trees send the rows down again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from margrove.boost.model import BoostModel, BoostSolution, R2Solution, Rounds
from margrove.boost.problem import LEAST_WEIGHT, BoostProblem, SpreadBoostProblem, SpreadR2Problem
from margrove.boost.r2 import drawn_rows, first_weights, next_seed
from margrove.boost.rounds import Boosting, BoostingR2
from margrove.data.dask_partitions import Tasks, last_of
from margrove.engine.dask.tree import SpreadTree
from margrove.engine.native.tree import apply
from margrove.engine.registry import Engine, register
from margrove.errors import InputError
from margrove.run.effort import Effort
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, SpreadTreeProblem

_State = tuple[Boosting[None], Status | None]  # the rows' weights and votes, and why the rounds ended


class SpreadBoosting:
    """The rounds of a problem under way."""

    def __init__(self, problem: SpreadBoostProblem) -> None:
        self.problem, self.tasks = problem.boost, problem.rows.tasks
        groups = [self.tasks.submit(key.name, _kept, key) for key in problem.rows.groups]
        for key in problem.rows.groups:
            key.release()
        self.rows = replace(problem.rows, groups=groups)
        self.state = self.tasks.submit("the weights", _begun, self.rows.sample, self.problem)
        self.trees: list[TreeModel] = []
        self.loss = 1.0
        self.status: Status | None = None

    def work(self) -> Iterator[None]:
        """Do the rounds; yield while the workers are at work."""
        while self.status is None:
            tree = self._tree()
            yield from tree.work()
            model = tree.model()
            label = np.argmax(model.value, axis=1).astype(np.int32)
            after = self.tasks.submit("the weights", _after, self.state, tree.leaves, label)
            found: Any = None
            for found in self.tasks.results([self.tasks.submit("the weights", _outcome, after)]):
                if found is None:
                    yield
            self.status, self.loss = found[0]
            if self.status is not Status.NO_BETTER_THAN_CHANCE:
                self.state = after
                self.trees.append(model)
            yield

    def _tree(self) -> SpreadTree:
        learner = self.problem.learner
        sample = self.tasks.submit("the weights", _weighted, self.rows.sample, self.state)
        columns, n_rows = learner.cells.columns, learner.cells.n_rows
        return SpreadTree(
            SpreadTreeProblem(
                replace(self.rows, sample=sample), columns, n_rows, 1.0, True, learner.n_classes, learner.growth
            )
        )

    def solution(self, status: Status) -> BoostSolution:
        """Return the rounds that are complete."""
        found = self.tasks.results([self.tasks.submit("the weights", _rounds, self.state)])
        rounds: Rounds = last_of(found)[0]
        grove = Grove.of(self.problem.learner.cells.columns, self.trees)
        return BoostSolution(BoostModel(grove, rounds.vote, self.problem.n_classes), rounds, status)


@register("dask", SpreadBoostProblem)
def _(engine: Engine, problem: SpreadBoostProblem, effort: Effort) -> BoostSolution:
    rounds = SpreadBoosting(problem)
    work = rounds.work()

    def advance(seconds: float) -> Status | None:
        for _ in work:
            return None
        return rounds.status

    def look_around() -> None:
        report(Progress("boost", len(rounds.trees), problem.boost.n_rounds, rounds.loss, "exponential loss"))

    return rounds.solution(run_in_slices(advance, effort, look_around))


@register("dask", SpreadR2Problem)
def _(engine: Engine, problem: SpreadR2Problem, effort: Effort) -> R2Solution:
    """Rounds of AdaBoost.R2: this process draws the rows of each tree, and holds the target and the weights."""
    rows, learner = problem.rows, problem.learner
    tasks: Tasks = rows.tasks
    target, given = last_of(tasks.results([tasks.submit("the target", _target, rows.sample)]))[0]
    generator, n = np.random.RandomState(problem.seed), len(target)
    of_trees = replace(effort, time_limit=None, on_interrupt="raise")  # an interrupted tree is discarded

    def grow(weight: NDArray[np.float64]) -> tuple[TreeModel, NDArray[np.float64]]:
        next_seed(generator)  # of the tree, which does not use it
        times = np.bincount(drawn_rows(weight, generator), minlength=n)
        key = tasks.submit("the drawn rows", _times, times.astype(np.min_scalar_type(int(times.max()))))
        groups = [tasks.submit(group.name, _drawn, group, key) for group in rows.groups]
        drawn = replace(rows, groups=groups, sample=tasks.submit("the target", _drawn_target, rows.sample, key))
        n_drawn = int(np.count_nonzero(times))
        asked = SpreadTreeProblem(drawn, learner.cells.columns, n_drawn, float(n), True, 0, learner.growth)
        tree = engine.solve(asked, of_trees).model
        used = np.unique(tree.feature[tree.feature >= 0])
        columns = [tasks.submit(group.name, _columns_used, group, first, used) for group, first in rows.numbered()]
        predicted = tasks.submit("the predictions", _predicted, columns, tree, n)
        return tree, last_of(tasks.results([predicted]))[0]

    first = first_weights(target, given)
    boosting = BoostingR2(target, first, grow, problem.n_rounds, problem.learning_rate, problem.loss)
    status = run_in_slices(boosting.advance, effort)
    return R2Solution(boosting.learners, boosting.errors, boosting.votes, status)


# On the workers


def _target(sample: Any) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    if sample.rows is not None:
        raise InputError("rows have weight 0", cure="Leave them out.")
    return sample.target, sample.weight


def _times(times: NDArray[Any]) -> NDArray[Any]:
    return times


def _drawn(cells: Cells, times: NDArray[Any]) -> Cells:
    return cells.take(np.flatnonzero(times))


def _drawn_target(sample: Any, times: NDArray[Any]) -> Any:
    rows = np.flatnonzero(times)
    weight = times[rows].astype(np.float64)
    return replace(sample, cells=Cells((), len(rows)), target=sample.target[rows], weight=weight)


def _columns_used(cells: Cells, first: int, used: NDArray[np.intp]) -> dict[int, NDArray[Any]]:
    """Return those of some columns that are among these cells, which are numbered from ``first``."""
    return {j: cells.column(j - first) for j in used.tolist() if 0 <= j - first < len(cells.columns)}


def _predicted(used: list[dict[int, NDArray[Any]]], tree: TreeModel, n_rows: int) -> NDArray[np.float64]:
    """Return what a tree predicts for all rows, from the columns that it tests."""
    values = {j: column for group in used for j, column in group.items()}
    place = {j: place for place, j in enumerate(values)} | {-1: -1}
    columns = tuple(tree.columns[j] for j in values)
    feature = np.array([place[j] for j in tree.feature.tolist()], dtype=np.int32)
    cells = Cells(columns, n_rows, tuple(values.values()))
    return np.asarray(tree.value[apply(replace(tree, columns=columns, feature=feature), cells, 1), 0])


class _Kept(dict[Any, Any]):
    """Results of the native engine that it keeps with cells, their order above all; they stay in their process."""

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def _kept(cells: Cells) -> Cells:
    return replace(cells, kept=_Kept())


def _begun(sample: Any, problem: BoostProblem) -> _State:
    n = len(sample.target)
    weight = np.ones(n) if sample.weight is None else sample.weight
    weight = np.maximum(weight / weight.sum(), LEAST_WEIGHT)
    learner = replace(problem.learner, target=sample.target, weight=weight)
    return Boosting(replace(problem, learner=learner), _no_learner), None


def _no_learner(weight: NDArray[np.float64], t: int) -> Any:
    raise AssertionError("each round is given its learner")


def _weighted(sample: Any, state: _State) -> Any:
    return replace(sample, weight=state[0].weight)


def _after(state: _State, leaf: NDArray[np.int32], label: NDArray[np.int32]) -> _State:
    """Return the state after a round whose tree sends each row to this leaf, and gives its nodes these classes."""
    return state[0].after((None, label[leaf], None))


def _outcome(state: _State) -> tuple[Status | None, float]:
    return state[1], state[0].loss


def _rounds(state: _State) -> Rounds:
    return state[0].rounds
