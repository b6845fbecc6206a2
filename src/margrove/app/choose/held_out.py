"""The estimate of the choice of ``--model auto``, on rows that took no part in it.

Hold-out: a fifth of the rows is set aside first. The learners are compared on the other rows, the best one is fitted to
them and predicts the rows set aside. Then it is fitted again to all rows.

Nested cross-validation, if there are few rows and the comparison is quick: each fifth in turn is set aside in this way,
so that every row is predicted once. The learner and its parameters come from a comparison on all rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from margrove.app.choose.contest import PARTS, Contest, Result
from margrove.app.choose.trial import Trial
from margrove.app.estimate.intervals import WIDENED, WITHIN, share_interval
from margrove.app.estimate.learning_curve import Point
from margrove.app.estimate.task import Estimate, Predicted, Rows, joined
from margrove.app.options.budget import Budget
from margrove.app.options.table import table_for
from margrove.app.options.training import Training
from margrove.data import Table
from margrove.errors import MargroveError

if TYPE_CHECKING:
    from margrove.app.screen.progress import Countdown

# With more rows, a hold-out of a fifth is enough: the 95 % interval from 1,000 rows is at most ±3 points.
NESTED_ROWS = 5_000
_SPARE = 1.3  # a later round may take this many times as long as the first
_SHARES = (0.1, 0.2, 0.4, 0.7)  # of the rows: the learning curve; the score of the whole is known
_LEAST_ROWS = 20  # of the learning curve: the score after fewer says nothing
_OVERRUN = 0.05  # a fit may exceed the budget by at most this fraction of it


@dataclass(frozen=True)
class Chosen:
    """The result of the contest whose choice is fitted, and the estimate of that choice."""

    result: Result
    estimate: Estimate
    picks: tuple[str, ...] = ()  # the learner that each round chose
    is_interrupted: bool = False

    @property
    def trial(self) -> Trial | None:
        return self.result.chosen

    @property
    def how(self) -> str:
        """A description of how the score was estimated."""
        n = self.estimate.n_tested
        if self.estimate.method == "hold-out":
            rows = f"{n:,} row{'' if n == 1 else 's'}"
            return f"a final hold-out of {rows}, set aside before any learner was tried"
        if self.estimate.method == "nested":
            return (
                f"nested cross-validation: in each of {len(self.picks)} rounds, all learners were tried without a part "
                f"of the rows, and the chosen one was tested on that part; {WIDENED}"
            )
        if self.estimate.method == "cross-validation":
            return "the score that it was chosen by, which is too optimistic: there are too few rows to set any aside"
        return "not estimated"


class NestedChoice:
    """Chooses a learner on a table, and estimates its score by hold-out or nested cross-validation."""

    def __init__(self, training: Training, table: Table, budget: Budget, meter: Countdown) -> None:
        self._training, self._table, self._budget, self._meter = training, table, budget, meter
        self._task, self._labels = training.kind, training.kind.labels(table)
        self._rounds: list[Predicted] = []
        self._picks: list[str] = []
        self._notes: list[str] = []

    def run(self) -> Chosen:
        """Choose a learner and estimate its score. Ctrl-C keeps the best so far, and is raised if there is none."""
        outer = self._task.folds(self._labels, PARTS, self._training.seed)
        inner = [self._labels[self._rest(test)] for test in outer.tests[:1]]
        if not inner or not self._task.folds(inner[0], self._training.folds, self._training.seed).tests:
            return self._without_rows_aside(outer.notes)
        began = time.monotonic()
        first = self._round(outer.tests[0])
        _refuse_failed(first)
        took = time.monotonic() - began
        n_rounds = len(outer.tests)
        is_quick = _SPARE * n_rounds * took < self._budget.left
        is_small = self._table.n_rows <= NESTED_ROWS
        if first.is_interrupted or not first.is_whole or not is_small or not is_quick or not self._rounds:
            return self._chosen(first)
        self._meter.enter("choosing on all rows")
        whole = self._contest(self._table)
        if whole.is_interrupted:
            return self._chosen(first, is_interrupted=True)
        is_interrupted = False
        for number, test in enumerate(outer.tests[1:], start=2):
            self._meter.enter(f"estimating the choice, round {number} of {n_rounds}")
            if self._budget.left < took:
                break
            is_interrupted = self._round(test).is_interrupted
            if is_interrupted or len(self._rounds) < number:
                break
        n_done = len(self._rounds)
        if n_done < n_rounds:
            self._notes.append(f"{n_done} of {n_rounds} rounds were completed")
        return self._chosen(whole, is_interrupted=is_interrupted)

    def _without_rows_aside(self, notes: tuple[str, ...]) -> Chosen:
        result = self._contest(self._table)
        _refuse_failed(result)
        self._notes += notes
        chosen, trial = self._chosen(result), result.chosen
        if trial is None:
            return chosen
        n, n_right = trial.n_rows, round(trial.mean * trial.n_rows)
        ends = None if self._task.is_number else share_interval(n_right, n, len(trial.scores), n)
        estimate = replace(
            chosen.estimate, rounds=trial.scores, value=trial.mean, interval=ends, method="cross-validation"
        )
        return replace(chosen, estimate=estimate)

    def _chosen(self, result: Result, *, is_interrupted: bool = False) -> Chosen:
        is_interrupted = is_interrupted or result.is_interrupted
        if result.best is None and is_interrupted:
            raise KeyboardInterrupt
        scores = self._scores_of(result.chosen) if self._rounds else None
        method = "nested" if len(self._rounds) > 1 else "hold-out"
        estimate = self._estimate(self._rounds, method)
        if estimate.predicted is not None:
            estimate = replace(estimate, predicted=replace(estimate.predicted, scores=scores))
        return Chosen(result, estimate, tuple(self._picks), is_interrupted)

    def _scores_of(self, trial: Trial | None) -> NDArray[np.float64] | None:
        """Return the scores of the rounds. If the rounds chose different learners, whose scores are not comparable,
        return those of the learner that was chosen in the end, fitted to the same rows."""
        scores = joined(self._rounds).scores
        if scores is not None or trial is None or self._task.is_number or self._budget.left <= 0:
            return scores
        try:
            return joined(
                [self._fit_and_predict(trial, self._rest(part.rows), part.rows) for part in self._rounds]
            ).scores
        except KeyboardInterrupt:
            return None
        except MargroveError as error:
            self._notes.append(f"no scores for the rows: {error}")
            return None

    def _rest(self, test: Rows) -> Rows:
        return np.delete(np.arange(self._table.n_rows), test)

    def _contest(self, table: Table) -> Result:
        return Contest(self._training, table, self._budget, self._table.n_rows, self._meter).run()

    def _round(self, test: Rows) -> Result:
        """Set a part of the rows aside, choose a learner on the others, and predict the part with it."""
        rest = self._rest(test)
        result = self._contest(self._table.take(rest))
        trial = result.chosen
        if trial is None or (result.is_interrupted and self._rounds):
            return result  # a later round that was stopped early is not used
        self._meter.begin(f"{trial.title}: testing it on rows set aside")
        try:
            predicted = self._fit_and_predict(trial, rest, test)
        except KeyboardInterrupt:
            self._notes.append("not estimated: interrupted")
            return replace(result, is_interrupted=True)
        except (MargroveError, MemoryError) as error:
            self._notes.append(f"not estimated: {error}")
            return result
        self._rounds.append(predicted)
        self._picks.append(trial.candidate.learner.name)
        return result

    def _fit_and_predict(self, trial: Trial, rows: Rows, test: Rows) -> Predicted:
        """Fit the candidate to some rows and predict others."""
        table = table_for(trial.candidate.learner, self._table)
        # The fit may exceed the budget: the score of a fit that was stopped early says little about a complete one.
        limit = self._budget.left + _OVERRUN * self._budget.seconds
        model = trial.candidate.build(self._training, self._table, trial.params, limit)
        return self._task.fit_and_predict(model, table, self._labels, rows, test)

    def curve(self, chosen: Chosen, meter: Countdown) -> list[Point]:
        """Return the learning curve: the scores of the chosen learner fitted to parts of the rows, as far as time
        allows, and to all of them."""
        trial, tests = chosen.trial, [part.rows for part in self._rounds]
        if trial is None or not tests:
            return []
        points: list[Point] = []
        n_whole = self._table.n_rows - len(tests[0])
        seconds = trial.fit_seconds * (self._table.n_rows / max(1, trial.n_rows)) ** trial.growth * len(tests)
        for share in (share for share in _SHARES if share * n_whole >= _LEAST_ROWS):
            if _SPARE * seconds * share**trial.growth > self._budget.left:
                break
            meter.begin(f"learning curve, {100 * share:.0f} % of the rows")
            try:
                parts = [self._fit_and_predict(trial, self._some(share, test), test) for test in tests]
            except KeyboardInterrupt:
                return points
            except MargroveError:  # so few rows may lack a class
                continue
            points.append(_point(round(share * n_whole), self._estimate(parts, "none")))
        return [*points, _point(n_whole, chosen.estimate)] if points else []

    def _some(self, share: float, test: Rows) -> Rows:
        rest = self._rest(test)
        return rest[self._task.sample(self._labels[rest], max(2, round(share * len(rest))), self._training.seed)]

    def _estimate(self, rounds: list[Predicted], method: str) -> Estimate:
        return self._task.estimate(self._labels, rounds, self._notes, method, is_pooled=True, seed=self._training.seed)


def _point(n_rows: int, estimate: Estimate) -> Point:
    low, high = estimate.interval or (0.0, 0.0)
    return Point(n_rows, estimate.value or 0.0, (high - low) / (2 * WITHIN))


def _refuse_failed(result: Result) -> None:
    """Raise the first failure if every candidate failed: then the table is the cause."""
    failures = [trial.failure for trial in result.trials if trial.failure is not None]
    if result.best is None and not result.is_interrupted and failures:
        raise failures[0]
