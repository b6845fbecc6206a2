"""The estimate of a searched model: a search in each round of a cross-validation, or one with rows held out.

Nested, where the budget allows: each round sets its part of the rows aside, searches among the others, fits the best
cell to them and is tested on its part, which nothing has seen, not even the encoder. The model's own C and γ come from
a search on all rows.

Else a hold-out: the first round alone. Its C and γ become the model's, and the model then learns from all rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.app.choose.search import SearchResult, SearchSpace, search
from margrove.app.estimate.task import Estimate, Folds, InterruptedFitError, Predicted
from margrove.app.options.budget import Budget, budget_words
from margrove.data import Table
from margrove.status import Status

if TYPE_CHECKING:
    from margrove.app.screen.progress import Meter

_SPARE = 1.5  # a round may take so many times as long as the first did


@dataclass(frozen=True)
class Tuned:
    """The search whose best cell is fitted, the estimate of that, and the C and γ that each round found."""

    found: SearchResult
    estimate: Estimate
    rounds: tuple[dict[str, float], ...] = ()
    is_interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {**self.found.to_dict(), "rounds": list(self.rounds), "is_interrupted": self.is_interrupted}


@dataclass
class NestedSearch:
    """The rounds of one table."""

    space: SearchSpace
    build: Callable[[Mapping[str, Any]], Any]  # an unfitted model with parameters besides those that were typed
    table: Table
    folds: Folds
    seed: int
    budget: Budget  # for all searches together
    meter: Meter

    def __post_init__(self) -> None:
        self._labels = self.space.task.labels(self.table)
        self._is_stopped = False
        self._notes = list(self.folds.notes)
        self._params: list[dict[str, float]] = []
        self._rounds: list[Predicted] = []

    def run(self) -> Tuned:
        """Search, and estimate; Ctrl-C keeps the rounds so far."""
        if not self.folds.tests:
            return self._tuned(self._search(self.table, "search", self.budget.left))
        started = time.monotonic()
        first = self._round(0, self.budget.left)
        took = time.monotonic() - started
        n_rounds = len(self.folds.tests)
        needed = _SPARE * n_rounds * took
        if self._was_interrupted() or not self._rounds or first.status is not Status.CONVERGED:
            return self._tuned(first)
        if needed > self.budget.left:
            allowance = budget_words(needed + took)
            self._notes.append(
                f"for a nested estimate, with a search in each of {n_rounds} rounds: --budget {allowance}"
            )
            return self._tuned(first)
        found = self._search(self.table, "search on all rows", self.budget.left / n_rounds)
        for number in range(1, n_rounds):
            if self._was_interrupted():
                break
            self._round(number, self.budget.left / (n_rounds - number))
        n_done = len(self._rounds)
        if n_done < n_rounds:
            self._notes.append(f"interrupted after {n_done} of {n_rounds} rounds")
        # Of two searches the whole one; with a hold-out it is also the one that was estimated.
        return self._tuned(found if found.best is not None and n_done > 1 else first)

    def _tuned(self, found: SearchResult) -> Tuned:
        if self.folds.tests and not self._rounds and self._was_interrupted():
            self._notes.append("not estimated: interrupted")
        n_bare = sum(not params for params in self._params)
        if n_bare:
            names = " and ".join(self.space.names)
            self._notes.append(f"{n_bare} of the rounds could not score any cell and used the default {names}")
        method = "nested" if len(self._rounds) > 1 else "hold-out"
        estimate = self.space.task.estimate(self._labels, self._rounds, self._notes, method)
        return Tuned(found, estimate, tuple(self._params), self._was_interrupted())

    def _search(self, table: Table, title: str, seconds: float) -> SearchResult:
        title = f"{title}, {' and '.join(self.space.names)}"
        found = search(self.space, table, seed=self.seed, seconds=seconds, meter=self.meter, title=title)
        self._is_stopped |= found.status is Status.INTERRUPTED
        self.meter.advance()
        return found

    def _round(self, number: int, seconds: float) -> SearchResult:
        """Set one part of the rows aside, search among the others, and predict that part."""
        test = self.folds.tests[number]
        rest = np.delete(np.arange(len(self._labels)), test)
        found = self._search(self.table.take(rest), f"round {number + 1} of {len(self.folds.tests)}", seconds)
        if self._was_interrupted() and number > 0:
            return found  # its search was stopped early, unlike those of the other rounds, which it is averaged with
        try:
            model = self.build(found.params)
            self._rounds.append(self.space.task.fit_and_predict(model, self.table, self._labels, rest, test))
        except InterruptedFitError:  # ends the searching and estimating, not the command: the fit comes next
            self._is_stopped = True
            return found
        self._params.append(found.params)
        return found

    def _was_interrupted(self) -> bool:
        return self._is_stopped
