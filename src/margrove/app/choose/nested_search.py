"""What a searched model is worth: a search in each round of a cross-validation, or one with rows held out.

Nested, where the budget allows: each round sets its part of the rows aside, searches among the others, fits the best
cell to them and is tested on its part, which nothing has seen, not even the encoder. The model's own C and γ come from
a search on all rows.

Else a hold-out: the first round alone. Its C and γ become the model's, and the model then learns from all rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.choose.search import Found, Question, search
from margrove.app.estimate.classes import Estimate, Folds, baseline_of, interval_of
from margrove.app.estimate.numbers import NumberEstimate, NumberRound, estimate_of
from margrove.app.estimate.predictions import Answers, answered, joined
from margrove.app.options.budget import Budget, budget_words
from margrove.app.screen.progress import Meter
from margrove.data import Table
from margrove.status import Status

_SPARE = 1.5  # a round may take so many times as long as the first did


@dataclass(frozen=True)
class Tuned:
    """The search whose best cell is fitted, what that is worth, and the C and γ that each round found."""

    found: Found
    estimate: Estimate | NumberEstimate
    rounds: tuple[dict[str, float], ...] = ()
    is_interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {**self.found.to_dict(), "rounds": list(self.rounds), "is_interrupted": self.is_interrupted}


class Tuning:
    """The rounds of one table.

    Parameters
    ----------
    question : Question
    build : callable
        An unfitted model with these parameters besides those that were typed.
    table : Table
    folds : Folds
    seed : int
    seconds : float
        For all searches together.
    meter : Meter
    """

    def __init__(
        self,
        question: Question,
        build: Callable[[Mapping[str, Any]], Any],
        table: Table,
        folds: Folds,
        *,
        seed: int,
        seconds: float,
        meter: Meter,
    ) -> None:
        self._question, self._build, self._table, self._folds = question, build, table, folds
        self._labels = table.labels()
        self._seed, self._meter = seed, meter
        self._budget = Budget(seconds)
        self._statuses: list[Status] = []
        self._notes = list(folds.notes)
        self._params: list[dict[str, float]] = []
        self._worth: list[Any] = []  # of each round: its accuracy
        self._answers: list[Answers] = []

    def run(self) -> Tuned:
        """Search, and estimate; Ctrl-C keeps what there is."""
        if not self._folds.tests:
            found = self._search(self._table, "search", self._budget.left)
            return self._tuned(found, "none")
        started = time.monotonic()
        first = self._round(0, self._budget.left)
        took = time.monotonic() - started
        n_rounds = len(self._folds.tests)
        needed = _SPARE * n_rounds * took
        if self._was_interrupted() or not self._worth:
            return self._tuned(first, "hold-out")
        if first.status is not Status.CONVERGED or needed > self._budget.left:
            if first.status is Status.CONVERGED:
                allowance = budget_words(needed + took)
                self._notes.append(
                    f"a nested estimate, with a search in each of {n_rounds} rounds: --budget {allowance}"
                )
            return self._tuned(first, "hold-out")
        found = self._search(self._table, "search on all rows", self._budget.left / n_rounds)
        for number in range(1, n_rounds):
            if self._was_interrupted():
                break
            self._round(number, self._budget.left / (n_rounds - number))
        n_done = len(self._worth)
        if n_done < n_rounds:
            self._notes.append(f"interrupted: {n_done} of {n_rounds} rounds")
        # Of two searches the whole one; with a hold-out it is also the one whose worth was asked.
        is_whole = found.best is not None and n_done > 1
        return self._tuned(found if is_whole else first, "nested" if n_done > 1 else "hold-out")

    def _tuned(self, found: Found, method: str) -> Tuned:
        if self._folds.tests and not self._worth and self._was_interrupted():
            self._notes.append("not estimated: interrupted")
        n_bare = sum(not params for params in self._params)
        if n_bare:
            names = " and ".join(self._question.names)
            self._notes.append(f"{n_bare} of the rounds had nothing to choose by and took {names} as by default")
        estimate = self._estimate(method if self._worth else "none")
        return Tuned(found, estimate, tuple(self._params), self._was_interrupted())

    def _judged(self, model: Any, rest: NDArray[np.int64], test: NDArray[np.int64]) -> Any:
        """What a model, fitted to the rows ``rest``, is worth on the rows ``test``."""
        asked = self._table.take(test)
        said = model.predict(asked)
        self._answers.append(answered(model, asked, test, said, self._labels))
        return float(np.mean(said == self._labels[test]))

    def _estimate(self, method: str) -> Estimate | NumberEstimate:
        n_tested = len(self._folds.tests[0]) if method == "hold-out" else 0
        kept = joined(self._answers) if self._answers else None
        interval = interval_of(self._worth, self._folds, len(self._labels))
        baseline = baseline_of(self._labels)
        return Estimate(tuple(self._worth), *baseline, tuple(self._notes), method, n_tested, kept, interval)

    def _search(self, table: Table, title: str, seconds: float) -> Found:
        found = search(
            self._question,
            table,
            seed=self._seed,
            seconds=seconds,
            meter=self._meter,
            title=f"{title}, {' and '.join(self._question.names)}",
        )
        self._heed(found.status)
        self._meter.advance()
        return found

    def _round(self, number: int, seconds: float) -> Found:
        """One part of the rows is set aside, and asked about after a search among the others."""
        test = self._folds.tests[number]
        rest = np.setdiff1d(np.arange(len(self._labels)), test, assume_unique=True)
        learned_from = self._table.take(rest)
        found = self._search(learned_from, f"round {number + 1} of {len(self._folds.tests)}", seconds)
        if self._was_interrupted() and number > 0:
            return found  # its search was broken off, unlike those of the other rounds: it would not speak for them
        model = self._build(found.params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
            model.fit(learned_from, self._labels[rest])
            if self._heed(model[-1].status_):
                return found
            self._worth.append(self._judged(model, rest, test))
        self._params.append(found.params)
        return found

    def _heed(self, status: Status) -> bool:
        """Ctrl-C ends the searching and estimating, not the command: the fit comes next."""
        self._statuses.append(status)
        return status is Status.INTERRUPTED

    def _was_interrupted(self) -> bool:
        return Status.INTERRUPTED in self._statuses


class NumberTuning(Tuning):
    """The rounds of a table whose target is a number."""

    def _judged(self, model: Any, rest: NDArray[np.int64], test: NDArray[np.int64]) -> NumberRound:
        return NumberRound.of(model, self._table, rest, test)

    def _estimate(self, method: str) -> NumberEstimate:
        return estimate_of(self._worth, tuple(self._notes), method, n_rows=len(self._labels))
