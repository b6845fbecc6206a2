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

from margrove.boost.model import BoostModel, BoostSolution, Rounds
from margrove.boost.problem import LEAST_WEIGHT, BoostProblem, SpreadBoostProblem
from margrove.boost.rounds import Boosting
from margrove.data.dask_partitions import last_of
from margrove.engine.dask.tree import SpreadTree
from margrove.engine.registry import Engine, register
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


# On the workers


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
