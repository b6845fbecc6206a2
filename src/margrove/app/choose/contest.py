"""``--model auto``: candidates are scored on the same folds, and the time goes to the most promising.

Every candidate is scored on all rows, or on a sample of very many; the best of them are then scored again on all rows,
in the order of their scores, as far as the time allows. The one with the best score is taken; or (``--prefer simple``)
the simplest whose score is within one standard error of the best.

The scores choose, and so are too good: `margrove.app.choose.held_out` estimates the choice on rows that no contest has
seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from margrove.app.choose.candidates import CANDIDATES, Candidate
from margrove.app.choose.trial import NO_SCORE, Trial, TrialData, tried
from margrove.app.estimate.task import Rows, Task
from margrove.app.options.budget import Budget
from margrove.app.options.training import Training
from margrove.data import Table
from margrove.data.columns import some
from margrove.errors import MargroveError

if TYPE_CHECKING:
    from margrove.app.screen.progress import Countdown

PARTS = 5  # a fifth of the rows is set aside to estimate the choice
# All candidates meet on at most so many rows first; those of a wide table are fewer, so that they are as quickly read.
FIRST_ROWS = 6_000
FIRST_CELLS = 1_000_000
LEAST_FIRST_ROWS = 1_000
# More rows than these a contest does not see: scores hardly move any more, and five folds are in memory at once.
MOST_ROWS = 50_000
_MORE = 1.5  # so many times the rows of a sample need no second trial
_FIRST_SHARE = 0.6  # of the time, for the first meeting
_SHARE = 0.6  # of the time left for trying that one candidate may take
_SPARE = 1.3  # a prediction of time may be off by so much
_MOST_FINISH = 0.7  # of the time left that may be kept for judging, fitting and certifying the best
_TOO_SLOW = "too slow to be fitted and certified on all rows within the budget"
_QUICK, _QUICK_SECONDS = ("linear", "tree"), 2.0  # candidates, and their time limit
_LEAST_OF_CLASS = 20  # rows of a class that must be predicted now and then
_HOPELESS = 0.02  # so far behind the best, and two standard errors, more rows would not help


@dataclass(frozen=True)
class Result:
    """The trials of a contest, by their scores, the best first, and the one that is taken."""

    task: Task
    trials: tuple[Trial, ...]
    prefer: str
    n_rows: int  # of the table
    n_first: int  # rows that all candidates met on
    is_whole: bool  # nothing was left to try
    is_interrupted: bool = False
    n_folds: int = 0  # that each was to be scored on; fewer were, where the time was over

    @property
    def best(self) -> Trial | None:
        """The best score, of equals the simplest, of those that can be finished in time if there are any; None where
        nothing was scored."""
        return next((trial for trial in ranked(self.trials) if trial.is_scored), None)

    @property
    def rivals(self) -> tuple[Trial, ...]:
        """The trials within one standard error of the best, itself among them."""
        best = self.best
        if best is None:
            return ()
        floor = best.mean - max(best.error, best.resolution)
        able = [t for t in self.trials if t.is_scored and t.is_too_slow == best.is_too_slow]  # others do not compare
        return tuple(trial for trial in able if trial.mean >= floor)

    @property
    def chosen(self) -> Trial | None:
        """The best, or the simplest of its rivals."""
        if self.prefer == "best":
            return self.best
        return min(self.rivals, key=lambda trial: (trial.candidate.complexity, -trial.mean), default=None)


def fairly_judged(training: Training, table: Table) -> Training:
    """Return the training by balanced accuracy if no metric was given, and learners that are quick to fit never predict
    a class: the choice by accuracy would hardly notice it."""
    labels = table.labels()
    classes, counts = np.unique(labels, return_counts=True)
    if training.metric is not None or training.kind.is_number:
        return training
    rows = training.kind.sample(labels, FIRST_ROWS, training.seed)
    data = TrialData.of(training, table.take(rows))
    never = set(classes[counts >= _LEAST_OF_CLASS].tolist()) if data.folds.tests else set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
        for candidate in CANDIDATES[training.kind.name]:
            if candidate.name not in _QUICK or not never:
                continue
            try:
                train, learned, test, _ = next(data.rounds(candidate))
                model = candidate.build(training, data.table, {}, _QUICK_SECONDS, is_trial=True).fit(train, learned)
            except MargroveError:  # its trial says why
                return training
            never -= set(np.asarray(model.predict(test)).tolist())
    if not never:
        return training
    names = some([repr(name) for name in sorted(map(str, never))], 3)
    return training.by_balanced(labels, f"By accuracy {names} would never be predicted")


def first_rows(n_rows: int, n_columns: int) -> int:
    """Return the number of rows that all candidates are scored on first: all, unless a sample is much less work."""
    most = min(FIRST_ROWS, max(LEAST_FIRST_ROWS, FIRST_CELLS // max(1, n_columns)))
    return most if min(n_rows, MOST_ROWS) > _MORE * most else n_rows


def meets_on_sample(n_rows: int, n_columns: int) -> bool:
    """Return whether all candidates are scored on a sample first, after a part of so many rows is set aside."""
    n_tried = n_rows - n_rows // PARTS
    return first_rows(n_tried, n_columns) < n_tried


def ranked(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Sort the best first, of equal scores the simplest; then those that take too long, then those without a score.

    A score on a sample stands beside those on all rows: with more rows it would hardly be less."""

    def place(trial: Trial) -> tuple[bool, bool, float, int]:
        step = trial.resolution
        score = -round(trial.mean / step) * step if trial.is_scored else 0.0
        return (not trial.is_scored, trial.is_too_slow, score, trial.candidate.complexity)

    return tuple(sorted(trials, key=place))


class Contest:
    """The candidates on the rows of one table, within the budget of the whole run: the time that the best so far still
    needs to be estimated, fitted and certified on ``n_final`` rows is kept."""

    def __init__(self, training: Training, table: Table, budget: Budget, n_final: int, meter: Countdown) -> None:
        self._training, self._table, self._budget, self._n_final = training, table, budget, n_final
        self._meter = meter
        self._least_reserve = self._reserve = 0.1 * budget.left
        self._trials: dict[str, Trial] = {}
        self._is_whole = True

    def run(self) -> Result:
        """Try as many candidates as the time allows; Ctrl-C keeps the trials so far."""
        task, labels, seed = self._training.kind, self._table.labels(), self._training.seed
        last = task.sample(labels, MOST_ROWS, seed)
        most = first_rows(len(labels), self._table.n_columns)
        first = task.sample(labels, most, seed) if most < len(labels) else last
        is_interrupted, n_folds = False, 0
        try:
            is_sample = len(last) > len(first)
            data = self._data(first, is_sample=is_sample)
            n_folds = len(data.folds.tests)
            if n_folds:
                self._try_all(data, _FIRST_SHARE if is_sample else 1.0)
                if is_sample:
                    self._try_again(last)
        except KeyboardInterrupt:
            is_interrupted = True
        left = self._budget.left
        for name, trial in self._trials.items():
            self._trials[name] = trial.within(left / _SPARE, self._n_final)
        for trial in [trial for trial in self._trials.values() if trial.is_scored]:
            if trial.finish_seconds(self._n_final) > left:
                self._trials[trial.candidate.name] = replace(trial, is_too_slow=True, note=_TOO_SLOW)
        return Result(
            task,
            tuple(sorted(self._trials.values(), key=lambda trial: (-trial.mean, trial.candidate.complexity))),
            self._training.prefer,
            n_rows=len(labels),
            n_first=len(first),
            is_whole=self._is_whole and not is_interrupted,
            is_interrupted=is_interrupted,
            n_folds=n_folds,
        )

    def _data(self, rows: Rows, *, is_sample: bool = False) -> TrialData:
        table = self._table if len(rows) == self._table.n_rows else self._table.take(rows)
        return TrialData.of(self._training, table, is_sample=is_sample)

    def _try_all(self, data: TrialData, part: float) -> None:
        """Try each in turn, within a part of the time."""
        stage = Budget(part * self._spendable())
        for candidate in CANDIDATES[self._training.kind.name]:
            why_not = self._why_not(candidate)
            if why_not:
                self._trials[candidate.name] = Trial(candidate, note=why_not)
                continue
            share = _SHARE * min(stage.left, self._spendable())
            if share <= 0:
                self._is_whole = False
                self._trials[candidate.name] = Trial(candidate, note="the budget was used up")
                continue
            self._keep(tried(data, candidate, share, self._meter, rival=self._best()))

    def _try_again(self, rows: Rows) -> None:
        """Try again on more rows, in the order of the scores on fewer, all but those that are far behind."""
        before = [trial for trial in ranked(list(self._trials.values())) if trial.is_scored]
        able = [trial for trial in before if self._finish(trial) <= self._budget.left] or before
        near = [trial for trial in before if trial.mean + 2 * trial.error + _HOPELESS >= able[0].mean]
        for trial in (trial for trial in before if trial not in near):
            self._note(trial, "its score on the sample was too low")
        if len(near) == 1 and not near[0].candidate.rounds:
            return  # who wins is clear; a vote may still grow
        data = self._data(rows)
        for trial in near:
            times = (data.table.n_rows / trial.n_rows) ** trial.growth
            needed = _SPARE * times * trial.fit_seconds * len(data.folds.tests)
            least = 0.0 if trial.candidate.is_forest else needed  # its trees are as many as there is time for
            if least + max(self._finish(trial), self._reserve) > self._budget.left:
                self._is_whole = False
                self._note(trial, "no time was left to try more rows")
                continue
            best = self._best(data.table.n_rows)
            left = self._budget.left - max(self._finish(trial), self._reserve)
            again = tried(data, trial.candidate, left, self._meter, trial, best)
            if again.is_scored:
                self._keep(replace(again, seconds=trial.seconds + again.seconds))
            else:
                self._is_whole = False
                self._note(trial, again.note)

    def _keep(self, trial: Trial) -> None:
        self._trials[trial.candidate.name] = trial
        self._is_whole = self._is_whole and trial.status != "time_limit"
        best = self._best()
        if best is not None:
            self._meter.best(f"{best.title}, {self._training.kind.named(best.mean)}")
        # What cannot be finished anyway is not what time is kept for.
        able = [t for t in ranked(list(self._trials.values())) if self._finish(t) <= _MOST_FINISH * self._budget.left]
        self._reserve = max(self._least_reserve, self._finish(able[0]) if able else 0.0)

    def _note(self, trial: Trial, note: str) -> None:
        self._trials[trial.candidate.name] = replace(trial, note=note)

    def _best(self, n_rows: int | None = None) -> Trial | None:
        trials = [t for t in self._trials.values() if t.is_scored and (n_rows is None or t.n_rows == n_rows)]
        return next(iter(ranked(trials)), None)

    def _finish(self, trial: Trial) -> float:
        return _SPARE * trial.finish_seconds(self._n_final)

    def _spendable(self) -> float:
        return self._budget.left - self._reserve

    def _why_not(self, candidate: Candidate) -> str:
        """Return why a candidate need not, or cannot, be tried; empty if it should be."""
        best = self._best()
        if best is not None and self._training.kind.is_perfect(best.mean, best.n_rows):
            return "a simpler learner makes no errors"
        if self._training.preparation.text and candidate.learner.takes_tables:
            return "it does not take text columns"
        if candidate.most_rows is not None and self._table.n_rows > candidate.most_rows:
            return f"it is tried with at most {candidate.most_rows:,} rows"
        if candidate.after:
            last = self._trials[candidate.after]
            if not last.is_scored:
                return last.note
            names = list(self._trials)
            earlier = [self._trials[name] for name in names[: names.index(candidate.after)]]
            smaller = [t.mean for t in earlier if t.is_scored and t.candidate.rounds]
            trees = [t for t in earlier if t.candidate.learner.takes_tables and not t.candidate.is_forest]
            single = [t.mean for t in trees if not t.candidate.rounds]
            if smaller and last.mean <= max(smaller) and last.mean >= max(single, default=NO_SCORE):
                return "smaller trees scored as well"
        return ""
