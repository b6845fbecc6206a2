"""The rounds of AdaBoost, one at a time, for any learner: plain NumPy. The formulas are those of `problem.py`.

A learner is anything that can be fitted to rows with weights and predicts a class for each of them. Where it is not one
of Margrove's trees its rows are not cells: the problem has a target and weights, and no columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.boost.model import Rounds
from margrove.boost.problem import (
    LEAST_WEIGHT,
    BoostProblem,
    factors,
    is_no_better_than_chance,
    judged,
    normaliser,
    vote,
)
from margrove.status import Status

Learner = TypeVar("Learner")


@dataclass(frozen=True)
class Learned(Generic[Learner]):
    """A learner, and the class it predicts for each row; -1 where it is none of the classes."""

    learner: Learner
    label: NDArray[np.integer]  # (n,)
    label_held_out: NDArray[np.integer] | None = None


class Boosting(Generic[Learner]):
    """AdaBoost under way: ``learn`` fits the learner of round t (from 0) to the rows with weights that sum to one."""

    def __init__(
        self,
        problem: BoostProblem,
        learn: Callable[[NDArray[np.float64], int], Learned[Learner]],
    ) -> None:
        self.problem, self.learn = problem, learn
        n, n_classes = len(problem.learner.target), problem.n_classes
        given = np.ones(n) if problem.learner.weight is None else problem.learner.weight
        self.first_weight = self.weight = given / given.sum()
        self.votes = np.zeros((n, n_classes))
        self.loss = 1.0
        self.learners: list[Learner] = []
        self._error: list[float] = []
        self._vote: list[float] = []
        self._training_error: list[float] = []
        self._validation_error: list[float] = []
        if problem.held_out is not None:
            held_out = problem.held_out
            m = len(held_out.target)
            self.votes_held_out = np.zeros((m, n_classes))
            self.weight_held_out = np.full(m, 1 / m) if held_out.weight is None else held_out.weight
            self.weight_held_out = self.weight_held_out / self.weight_held_out.sum()

    def step(self) -> Status | None:
        """Do one round. Return the status if it was the last."""
        t, n_classes, target = len(self.learners), self.problem.n_classes, self.problem.learner.target
        learned = self.learn(self.weight, t)
        is_wrong = learned.label != target
        error = float(self.weight[is_wrong].sum())
        if is_no_better_than_chance(error, n_classes):
            return Status.NO_BETTER_THAN_CHANCE
        a = vote(error, n_classes, self.problem.learning_rate)
        right, wrong = factors(a, n_classes)
        z = normaliser(error, a, n_classes)
        weight = self.weight * np.where(is_wrong, wrong, right) / z
        weight = np.maximum(weight, LEAST_WEIGHT)
        self.weight = weight / weight.sum()  # which is 1 but for rounding
        self.loss *= z
        self.learners.append(learned.learner)
        self._error.append(error)
        self._vote.append(a)
        _cast(self.votes, learned.label, a)
        self._training_error.append(float(self.first_weight[judged(self.votes) != target].sum()))
        if self.problem.held_out is not None and learned.label_held_out is not None:
            _cast(self.votes_held_out, learned.label_held_out, a)
            is_missed = judged(self.votes_held_out) != self.problem.held_out.target
            self._validation_error.append(float(self.weight_held_out[is_missed].sum()))
        return self._end(error)

    def _end(self, error: float) -> Status | None:
        """Return the status if this round is the last."""
        problem, n_done = self.problem, len(self.learners)
        if error <= 0:
            return Status.PERFECT_LEARNER
        if problem.n_classes == 2 and self.loss <= problem.stop_at_bound:
            return Status.BOUND_REACHED
        if n_done >= problem.n_rounds:
            return Status.CONVERGED
        is_enough = problem.held_out is not None and n_done - self.rounds.best_round >= problem.held_out.patience
        return Status.EARLY_STOPPED if is_enough else None

    @property
    def rounds(self) -> Rounds:
        """The rounds so far."""
        return Rounds(
            np.array(self._error),
            np.array(self._vote),
            np.array(self._training_error),
            None if self.problem.held_out is None else np.array(self._validation_error),
            self.problem.n_classes,
        )


def _cast(votes: NDArray[np.float64], label: NDArray[np.integer], vote: float) -> None:
    """Add one learner's votes."""
    rows = np.flatnonzero(label >= 0)
    votes[rows, label[rows]] += vote
