"""What the choice of ``--model auto`` is worth, asked of rows that took no part in it.

A hold-out: a fifth of the rows is set aside before anything else; the contest, the choice and a fit see the others, and
the fit is asked about those set aside. Then the choice learns from all rows.

Nested, where rows are few and a contest is quick: each fifth in turn is set aside so, and the model's own settings come
from a contest on all rows. Every row is then asked about once.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.choose.contest import Asked, Contest, Result
from margrove.app.choose.trial import Trial
from margrove.app.estimate.classes import baseline_of
from margrove.app.estimate.intervals import WIDENED, WITHIN, r2_interval, share_interval
from margrove.app.estimate.numbers import deviation_of
from margrove.app.estimate.predictions import Answers, answered, joined
from margrove.app.models import learner_of
from margrove.app.options.budget import Budget
from margrove.app.options.preparation import table_for
from margrove.app.screen.progress import Countdown
from margrove.data import Table
from margrove.errors import MargroveError
from margrove.status import Status

PARTS = 5  # a fifth is set aside
# A fifth of more rows is enough to judge by: the interval of 1,000 of them is at most ±3 points.
NESTED_ROWS = 5_000
_SPARE = 1.3  # a later round may take so many times as long as the first
_SHARES = (0.1, 0.2, 0.4, 0.7)  # of the rows: the learning curve; the whole is known
_OVERRUN = 0.5  # of the budget, at most, if what was predicted to be done in time is not


@dataclass(frozen=True)
class Worth:
    """An estimate with its interval, and the answers it was made of."""

    method: str  # "hold-out", "nested", "cross-validation" or "none"
    is_number: bool = False
    value: float | None = None  # accuracy, or R²
    low: float | None = None
    high: float | None = None
    mean_absolute_error: float | None = None
    baseline: float = 0.0
    baseline_class: Any = None
    answers: Answers | None = None
    picks: tuple[str, ...] = ()  # the learner that each round took
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What was done to get the number, so that nobody takes it for another."""
        n = 0 if self.answers is None else len(self.answers.rows)
        if self.method == "hold-out":
            rows = f"{n:,} row{'' if n == 1 else 's'}"
            return f"a final hold-out: {rows} set aside before anything was tried; what is judged here never saw them"
        if self.method == "nested":
            return (
                f"nested: in {len(self.picks)} rounds all learners were tried anew, each time without a part of the "
                f"rows, and the one taken was asked about that part; {WIDENED}"
            )
        if self.method == "cross-validation":
            return "the score that chose it, which flatters it: there are too few rows to set any aside"
        return "not estimated"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, without the answers."""
        return {
            "method": self.method,
            "words": self.words,
            "measure": "R²" if self.is_number else "accuracy",
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "mean_absolute_error": self.mean_absolute_error,
            "baseline": self.baseline,
            "baseline_class": self.baseline_class,
            "rows_tested": 0 if self.answers is None else len(self.answers.rows),
            "picks": list(self.picks),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Point:
    """Of the learning curve: the score after learning from so many rows, and its standard error."""

    rows: int
    score: float
    error: float


@dataclass(frozen=True)
class Chosen:
    """What is to be fitted, how it was chosen, what that is worth."""

    result: Result
    worth: Worth
    tests: tuple[NDArray[np.int64], ...] = field(default=(), repr=False)  # rows set aside, of each round that was done
    is_interrupted: bool = False

    @property
    def trial(self) -> Trial | None:
        """The candidate that was taken."""
        return self.result.chosen


class Search:
    """Contests on a table and parts of it.

    Parameters
    ----------
    asked : Asked
    table : Table
    budget : Budget
    meter : Countdown
    """

    def __init__(self, asked: Asked, table: Table, budget: Budget, meter: Countdown) -> None:
        self._asked, self._table, self._budget, self._meter = asked, table, budget, meter
        labels = table.labels()
        self._labels = np.asarray(labels, np.float64) if asked.is_estimated else labels
        self._answers: list[Answers] = []
        self._picks: list[str] = []
        self._notes: list[str] = []

    def run(self) -> Chosen:
        """Choose, and judge; Ctrl-C keeps the best so far.

        Raises
        ------
        KeyboardInterrupt
            If nothing was scored yet.
        """
        outer = replace(self._asked, folds=PARTS).folds_of(self._table)
        rests = [self._rest(test) for test in outer.tests[:1]]
        if not rests or not self._asked.folds_of(self._table.take(rests[0])).tests:
            return self._without_rows_aside(outer.notes)
        began = time.monotonic()
        first = self._round(outer.tests[0])
        _refuse_failed(first)
        took = time.monotonic() - began
        n_rounds = len(outer.tests)
        is_quick = _SPARE * n_rounds * took < self._budget.left
        is_small = self._table.n_rows <= NESTED_ROWS
        if first.is_interrupted or not first.is_whole or not is_small or not is_quick or not self._answers:
            return self._chosen(first, "hold-out", outer.tests[:1])
        self._meter.enter("again, with all rows")
        whole = self._contest(self._table)
        if whole.is_interrupted:
            return self._chosen(first, "hold-out", outer.tests[:1], is_interrupted=True)
        is_interrupted = False
        for number, test in enumerate(outer.tests[1:], start=2):
            self._meter.enter(f"to judge the choice, round {number} of {n_rounds}")
            if self._budget.left < took:
                break
            is_interrupted = self._round(test).is_interrupted
            if is_interrupted or len(self._answers) < number:
                break
        n_done = len(self._answers)
        if n_done < n_rounds:
            self._notes.append(f"{n_done} of {n_rounds} rounds were done")
        method = "nested" if n_done > 1 else "hold-out"
        return self._chosen(whole, method, outer.tests[:n_done], is_interrupted=is_interrupted)

    def _without_rows_aside(self, notes: tuple[str, ...]) -> Chosen:
        result = self._contest(self._table)
        if result.is_interrupted and result.best is None:
            raise KeyboardInterrupt
        _refuse_failed(result)
        trial = result.chosen
        if trial is None:
            return Chosen(result, Worth("none", self._asked.is_estimated, notes=notes, **self._baseline()))
        worth = Worth("cross-validation", self._asked.is_estimated, trial.mean, notes=notes, **self._baseline())
        if not self._asked.is_estimated:
            n = trial.n_rows
            low, high = share_interval(round(trial.mean * n), n, len(trial.scores), n)
            worth = replace(worth, low=low, high=high)
        return Chosen(result, worth, is_interrupted=result.is_interrupted)

    def _chosen(
        self, result: Result, method: str, tests: Sequence[NDArray[np.int64]], *, is_interrupted: bool = False
    ) -> Chosen:
        if result.best is None and (result.is_interrupted or is_interrupted):
            raise KeyboardInterrupt
        if not self._answers:
            worth = Worth("none", self._asked.is_estimated, notes=tuple(self._notes), **self._baseline())
            return Chosen(result, worth, is_interrupted=result.is_interrupted or is_interrupted)
        answers = joined(self._answers)
        if answers.scores is None and not self._asked.is_estimated:
            answers = replace(answers, scores=self._scores_of(result.chosen, tests))
        worth = self._judged(answers, len(tests))
        worth = replace(worth, method=method, picks=tuple(self._picks), notes=tuple(self._notes))
        return Chosen(result, worth, tuple(tests), result.is_interrupted or is_interrupted)

    def _scores_of(self, trial: Trial | None, tests: Sequence[NDArray[np.int64]]) -> NDArray[np.float64] | None:
        """Of rounds that took different learners, whose scores do not compare: those of the one that is chosen in the
        end, fitted to the same rows as theirs."""
        if trial is None:
            return None
        try:
            return joined([self.ask(trial, self._rest(test), test) for test in tests]).scores
        except KeyboardInterrupt:
            return None
        except MargroveError as error:
            self._notes.append(f"no scores of the rows: {error}")
            return None

    def _baseline(self) -> dict[str, Any]:
        if self._asked.is_estimated:
            return {}
        baseline, label = baseline_of(self._labels)
        return {"baseline": baseline, "baseline_class": label}

    def _judged(self, answers: Answers, n_rounds: int) -> Worth:
        truth = self._labels[answers.rows]
        if not self._asked.is_estimated:
            n, n_right = len(truth), int(np.sum(truth == answers.answers))
            low, high = share_interval(n_right, n, n_rounds, self._table.n_rows)
            return Worth("", False, n_right / n, low, high, answers=answers, **self._baseline())
        assert answers.means is not None
        whole = deviation_of(truth, answers.answers, answers.means)
        ends = r2_interval(
            truth,
            answers.answers,
            answers.means,
            n_rounds=n_rounds,
            n_rows=self._table.n_rows,
            seed=self._asked.seed,
        )
        worth = Worth("", True, whole.r2, None, None, whole.mean_absolute_error, answers=answers)
        return worth if ends is None else replace(worth, low=ends[0], high=ends[1])

    def _rest(self, test: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(self._table.n_rows), test, assume_unique=True)

    def _contest(self, table: Table) -> Result:
        return Contest(self._asked, table, self._budget, self._table.n_rows, self._meter).run()

    def _round(self, test: NDArray[np.int64]) -> Result:
        """A part of the rows is set aside; what wins on the others is asked about it."""
        rest = self._rest(test)
        result = self._contest(self._table.take(rest))
        trial = result.chosen
        if trial is None or (result.is_interrupted and self._answers):
            return result  # of a later round that was broken off: it would not speak for the others
        self._meter.begin(f"{trial.title}: judging it on rows set aside")
        try:
            answers = self.ask(trial, rest, test)
        except KeyboardInterrupt:
            self._notes.append("not estimated: interrupted")
            return replace(result, is_interrupted=True)
        except (MargroveError, MemoryError) as error:
            self._notes.append(f"not estimated: {error}")
            return result
        self._answers.append(answers)
        self._picks.append(trial.candidate.learner.name)
        return result

    def ask(self, trial: Trial, rows: NDArray[np.int64], test: NDArray[np.int64]) -> Answers:
        """Fit the candidate to some rows and ask it about others."""
        table = table_for(trial.candidate.learner, self._table)
        learned = self._labels[rows]
        # Over the budget by half of it at most: a fit that is broken off says little of one that is not.
        limit = self._budget.left + _OVERRUN * self._budget.seconds
        model = self._asked.field(self._table).build(trial.candidate, trial.params, limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
            model.fit(table.take(rows), learned)
            if learner_of(model).status_ is Status.INTERRUPTED:
                raise KeyboardInterrupt
            asked = table.take(test)
            answers = model.predict(asked)
            if self._asked.is_estimated:
                name = type(learner_of(model)).__name__
                return Answers(test, answers, None, name, np.full(len(test), learned.mean()))
            return answered(model, asked, test, answers, self._labels)

    def curve(self, chosen: Chosen, meter: Countdown) -> list[Point]:
        """The score after learning from a part of the rows, up to all but those set aside; as far as the time goes."""
        self._meter = meter
        trial, worth = chosen.trial, chosen.worth
        if trial is None or worth.value is None or not chosen.tests:
            return []
        points: list[Point] = []
        tests = chosen.tests
        whole = trial.fit_seconds * (self._table.n_rows / max(1, trial.n_rows)) ** trial.growth
        for share in _SHARES:
            if _SPARE * whole * share**trial.growth * len(tests) > self._budget.left:
                break
            parts = []
            for number, test in enumerate(tests):
                self._meter.begin(f"learning curve, {100 * share:.0f} % of the rows, {number + 1} of {len(tests)}")
                rest = self._rest(test)
                some = rest[self._asked.sample(self._labels[rest], max(2, round(share * len(rest))))]
                try:
                    parts.append(self.ask(trial, some, test))
                except KeyboardInterrupt:
                    return points
                except MargroveError:  # so few rows may lack a class
                    break
            if len(parts) == len(tests):
                n_rows = round(share * (self._table.n_rows - len(tests[0])))
                points.append(self._point(n_rows, self._judged(joined(parts), len(parts))))
        if points:
            points.append(self._point(self._table.n_rows - len(tests[0]), worth))
        return points

    @staticmethod
    def _point(n_rows: int, worth: Worth) -> Point:
        value = 0.0 if worth.value is None else worth.value
        width = 0.0 if worth.low is None or worth.high is None else worth.high - worth.low
        return Point(n_rows, value, width / (2 * WITHIN))


def _refuse_failed(result: Result) -> None:
    """Where every candidate was refused, the table is at fault, and what the first was refused with says why."""
    failures = [trial.failure for trial in result.trials if trial.failure is not None]
    if result.best is None and not result.is_interrupted and failures:
        raise failures[0]
