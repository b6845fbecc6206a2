"""The rounds of AdaBoost, one at a time, for any learner: plain NumPy. The formulas are those of `problem.py`, and of
`r2.py` for numbers.

A learner is anything that can be fitted to rows with weights and predicts a class for each of them. Where it is not one
of Margrove's trees its rows are not cells: the problem has a target and weights, and no columns.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.boost import r2
from margrove.boost.model import Rounds
from margrove.boost.problem import (
    LEAST_WEIGHT,
    BoostProblem,
    cast,
    factors,
    is_no_better_than_chance,
    is_overflow,
    judged,
    normaliser,
    vote,
)
from margrove.run.progress import Progress, report
from margrove.status import Status

Floats = NDArray[np.float64]
Learner = TypeVar("Learner")


# A learner, the class that it predicts for each row, and for each row held out; -1 where it is none of the classes.
Learned = tuple[Learner, NDArray[np.integer], NDArray[np.integer] | None]


class Boosting(Generic[Learner]):
    """AdaBoost under way: ``learn`` fits the learner of round t (from 0) to the rows with weights that sum to one."""

    def __init__(self, problem: BoostProblem, learn: Callable[[NDArray[np.float64], int], Learned[Learner]]) -> None:
        self.problem, self.learn = problem, learn
        n = len(problem.learner.target)
        given = np.ones(n) if problem.learner.weight is None else problem.learner.weight
        self.first_weight = self.weight = given / given.sum()
        self.votes = np.zeros((n, problem.n_classes))
        self.loss = 1.0
        self.learners: list[Learner] = []
        self._seen: list[tuple[float, float, float]] = []  # error, vote and training error of each round
        self._validation_error: list[float] = []
        if problem.held_out is not None:
            m = len(problem.held_out.target)
            self.votes_held_out = np.zeros((m, problem.n_classes))
            weight = np.full(m, 1 / m) if problem.held_out.weight is None else problem.held_out.weight
            self.weight_held_out = weight / weight.sum()

    def step(self) -> Status | None:
        """Do one round. Return the status if it was the last."""
        problem = self.problem
        n_classes, target = problem.n_classes, problem.learner.target
        learner, label, label_held_out = self.learn(self.weight, len(self.learners))
        is_wrong = label != target
        error = float(self.weight[is_wrong].sum())
        if is_no_better_than_chance(error, n_classes):
            return Status.NO_BETTER_THAN_CHANCE
        a = vote(error, n_classes, problem.learning_rate)
        z = normaliser(error, a, n_classes)
        self.loss *= z
        if not is_overflow(a, problem.learning_rate):
            right, wrong = factors(a, n_classes)
            weight = self.weight * np.where(is_wrong, wrong, right) / z
            weight = np.maximum(weight, LEAST_WEIGHT)
            self.weight = weight / weight.sum()  # which is 1 but for rounding
        self.learners.append(learner)
        cast(self.votes, label, a)
        self._seen.append((error, a, float(self.first_weight[judged(self.votes) != target].sum())))
        if problem.held_out is not None and label_held_out is not None:
            cast(self.votes_held_out, label_held_out, a)
            is_missed = judged(self.votes_held_out) != problem.held_out.target
            self._validation_error.append(float(self.weight_held_out[is_missed].sum()))
        n_done = len(self.learners)
        if error <= 0:
            return Status.PERFECT_LEARNER
        if is_overflow(a, problem.learning_rate):
            return Status.NONFINITE
        if n_classes == 2 and self.loss <= problem.stop_at_bound:
            return Status.BOUND_REACHED
        if n_done >= problem.n_rounds:
            return Status.CONVERGED
        is_enough = problem.held_out is not None and n_done - self.rounds.best_round >= problem.held_out.patience
        return Status.EARLY_STOPPED if is_enough else None

    def after(self, learned: Learned[Learner]) -> tuple[Boosting[Learner], Status | None]:
        """Return the boosting after one round with this learner, and the status if it was the last. This one does not
        change."""
        after = copy(self)
        after.votes, after.learners, after._seen = self.votes.copy(), [*self.learners], [*self._seen]
        after._validation_error = [*self._validation_error]
        if self.problem.held_out is not None:
            after.votes_held_out = self.votes_held_out.copy()
        after.learn = lambda weight, t: learned
        status = after.step()
        after.learn = self.learn
        return after, status

    @property
    def rounds(self) -> Rounds:
        """The rounds so far."""
        error, votes, training_error = np.array(self._seen).reshape(-1, 3).T
        held_out = None if self.problem.held_out is None else np.array(self._validation_error)
        return Rounds(error, votes, training_error, held_out, self.problem.n_classes)


class BoostingR2(Generic[Learner]):
    """AdaBoost.R2 under way: ``learn`` fits a learner to rows drawn by weight, and predicts all rows."""

    def __init__(
        self,
        target: Floats,
        weight: Floats,
        learn: Callable[[Floats], tuple[Learner, Floats]],
        n_rounds: int,
        learning_rate: float,
        loss: r2.Loss,
    ) -> None:
        self.target, self.learn = target, learn
        self.n_rounds, self.learning_rate, self.loss = n_rounds, learning_rate, loss
        self.first = self.weight = weight
        self.learners: list[Learner] = []
        self.errors: list[float] = []
        self.votes: list[float] = []

    def advance(self, seconds: float) -> Status | None:
        """Do one round, however long it takes. Return the status if it was the last."""
        weight = r2.lifted(self.weight, self.first)
        learned, predicted = self.learn(weight)
        loss = r2.losses(predicted, self.target, weight, self.loss)
        error = r2.average(loss, weight)
        if error >= r2.CHANCE and self.learners:
            return Status.NO_BETTER_THAN_CHANCE
        self.learners.append(learned)
        self.errors.append(max(0.0, error))
        self.votes.append(r2.vote(error, self.learning_rate))
        n_done = len(self.learners)
        report(Progress("boost", n_done, self.n_rounds, error, "average loss"))
        if error <= 0:
            return Status.PERFECT_LEARNER
        if error >= r2.CHANCE:
            return Status.NO_BETTER_THAN_CHANCE
        changed = r2.next_weights(weight, loss, error, self.learning_rate)
        if changed is None:
            return Status.NONFINITE
        self.weight = changed
        return Status.CONVERGED if n_done >= self.n_rounds else None
