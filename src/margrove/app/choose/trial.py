"""One candidate of ``--model auto`` on the rows of a contest: find its settings, score its folds."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import margrove
from margrove.app.choose.candidates import LEAST_LIMIT, Candidate
from margrove.app.choose.search import C_STEP, GAMMA_STEP, MOST_ROWS, SearchResult, SearchSpace, search, search_space_of
from margrove.app.estimate.metrics import as_scorer, scores_of
from margrove.app.estimate.task import Folds, Predicted, Rows, Task
from margrove.app.models import last_step_of, uncalibrated
from margrove.app.options.budget import Budget
from margrove.app.options.table import table_for
from margrove.app.options.training import Training
from margrove.app.screen.advice import error_in_shell
from margrove.calibrate.probability import as_scores, calibrated, fitted_calibration
from margrove.calibrate.threshold import Metric, tuned_factors
from margrove.data import Table
from margrove.errors import MargroveError, ParameterError
from margrove.status import Status

if TYPE_CHECKING:
    from margrove.app.screen.progress import Meter

# The whole grid of a kernel machine takes 3 s on so many rows of magic04 (two slow cores); of more rows, up to
# `search.MOST_ROWS`, only the neighbours of its best cell are scored.
GRID_ROWS = 2000
SVR_ROWS = 500  # of three parameters there are three times as many cells, and two variables for each row
_LEAST_FOLDS = 2  # that tell something where the time for more is over
ENOUGH_TREES = 100  # that a forest on all rows needs: more gain a few tenths of a per cent
_LEAST_TREES = 20  # of a forest in each fold: with fewer its score would say little about it
_LEAST_GROWTH = 0.5  # what does not depend on the rows takes its time, too
_CELLS_AROUND = 12  # of the best one
_ALONE = 8.0  # what a fold costs by itself, in cells of a search, which share their kernel
NO_SCORE = -math.inf


@dataclass(frozen=True)
class Trial:
    """The scores of a candidate by the task's metric, one of each fold; none where it failed, and why."""

    candidate: Candidate
    params: Mapping[str, Any] = field(default_factory=dict)
    scores: tuple[float, ...] = ()
    n_rows: int = 0  # of the contest
    seconds: float = 0.0  # in all, the search for its settings included
    fit_seconds: float = 0.0  # of one fold: learning and answering
    growth: float = 1.0  # the power of the rows that this grows with
    n_fits: int = 1  # that a model takes: calibrated, it is also fitted without each part of the rows
    status: str = "not tried"
    note: str = ""
    found: SearchResult | None = None  # by a search
    is_too_slow: bool = False  # to be finished within the budget
    failure: Exception | None = None  # what it was refused with

    @property
    def is_scored(self) -> bool:
        return bool(self.scores)

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores)) if self.scores else NO_SCORE

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        n = len(self.scores)
        return float(np.std(self.scores, ddof=1) / math.sqrt(n)) if n > 1 else 0.0

    @property
    def resolution(self) -> float:
        """Half a row: scores that differ by less are equal."""
        return 0.5 / max(1, self.n_rows)

    @property
    def title(self) -> str:
        return self.candidate.titled(self.params)

    def finish_seconds(self, n_rows: int) -> float:
        """Return the time still needed if it is chosen, judging by a fold: two fits of about ``n_rows`` rows, one to be
        judged and one to be kept, and its certificate."""
        if not self.scores or self.n_rows == 0:
            return 0.0
        one = self._fit_seconds(n_rows)
        if self.candidate.is_forest:
            one *= min(1.0, ENOUGH_TREES / self.n_trees)
        return 2 * self.n_fits * one + self.candidate.proof_seconds(one)

    def _fit_seconds(self, n_rows: int) -> float:
        in_fold = self.n_rows * (1 - 1 / max(2, len(self.scores)))
        return float(self.fit_seconds * max(1.0, n_rows / in_fold) ** self.growth)

    @property
    def n_trees(self) -> int:
        """The number of trees of a forest."""
        return int({**self.candidate.params, **self.params}["n_estimators"])

    def within(self, seconds: float, n_rows: int) -> Trial:
        """Return a forest of as many trees as can be judged, fitted to so many rows and certified in this time, at
        least `ENOUGH_TREES`; others, and what fits, as they are."""
        if not self.candidate.is_forest or not self.scores:
            return self
        one = self._fit_seconds(n_rows)
        n = int(self.n_trees * (seconds - self.candidate.proof_seconds(one)) / max(1e-9, 2 * self.n_fits * one))
        if n >= self.n_trees:
            return self
        few = max(min(ENOUGH_TREES, self.n_trees), n)
        note = f"the budget leaves time for {few} of {self.n_trees} trees"
        return replace(self, params={**self.params, "n_estimators": few}, note=note)


@dataclass(frozen=True)
class TrialData:
    """The rows and folds on which candidates are scored."""

    training: Training
    table: Table
    labels: NDArray[Any]
    folds: Folds
    is_sample: bool = False  # the best will meet again on more rows: it is measured how time grows with them

    @classmethod
    def of(cls, training: Training, table: Table, *, is_sample: bool = False) -> TrialData:
        labels = training.kind.labels(table)
        return cls(training, table, labels, training.kind.folds(labels, training.folds, training.seed), is_sample)

    @property
    def task(self) -> Task:
        return self.training.kind

    def rounds(self, candidate: Candidate) -> Iterator[tuple[Table, NDArray[Any], Table, Rows]]:
        """Yield of each fold the rows to learn from, their targets, and the rows to test with their places."""
        table, labels = table_for(candidate.learner, self.table), self.labels
        for test in self.folds.tests:
            train = np.delete(np.arange(len(labels)), test)
            yield table.take(train), labels[train], table.take(test), test

    def predicted(self, model: Any, test: Table, rows: Rows, learned: NDArray[Any]) -> Predicted:
        """Return the predictions of the rows of a fold."""
        part = self.task.predicted(model, test, rows, self.labels, learned, has_scores=self.task.needs_scores)
        if not self.training.is_calibrated:
            return part
        return replace(part, scores=scores_of(model, test, np.unique(self.labels), is_calibrated=False))

    def scores(self, parts: Sequence[Predicted]) -> tuple[float, ...]:
        """Return the score of each fold."""
        if self.training.is_calibrated:
            parts = [
                self._calibrated(part, [other for other in parts if other is not part] or [part]) for part in parts
            ]
        return tuple(self.task.score(self.labels, part) for part in parts)

    def _calibrated(self, part: Predicted, others: Sequence[Predicted]) -> Predicted:
        """Return the predictions of a fold with probabilities calibrated, and of two classes a threshold tuned, on the
        other folds: a fitted model will have them calibrated and tuned on held-out rows."""
        classes, tuned_for = np.unique(self.labels), self.training.tuned_for
        codes = np.searchsorted(classes, np.concatenate([self.labels[other.rows] for other in others]))
        k, weight = len(classes), np.ones(len(codes))
        f = as_scores(np.concatenate([other.scores for other in others]), k)
        a, b = fitted_calibration(f, codes, k, weight)
        p = calibrated(as_scores(part.scores, k), a, b)
        if k > 2 or tuned_for is None:
            return replace(part, scores=p)
        factors, _ = tuned_factors(Metric(tuned_for, classes), codes, weight, calibrated(f, a, b))
        return replace(part, scores=p, values=classes[(p * factors).argmax(axis=1)])


def tried(
    data: TrialData,
    candidate: Candidate,
    seconds: float,
    meter: Meter,
    before: Trial | None = None,
    rival: Trial | None = None,
) -> Trial:
    """Find the candidate's settings and score its folds within about so many seconds. ``before`` is its trial on fewer
    rows: its settings are taken, its vote may grow, unless it cannot catch up with ``rival``. Ctrl-C is passed on: the
    scores would be of half a model."""
    started = time.monotonic()
    budget, data = Budget(seconds), replace(data, training=data.training.of(candidate.learner))
    trial = Trial(candidate, n_rows=data.table.n_rows, n_fits=data.training.n_fits)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
            if candidate.rounds:
                trial = _grown(data, trial, budget, meter, before, rival)
            elif candidate.is_forest:
                trial = _planted(data, trial, budget, meter)
            else:
                found, params = None, {} if before is None else dict(before.params)
                if candidate.is_searched and before is None:
                    found, params = _searched(data, candidate, budget, meter)
                trial = replace(trial, params=params, found=found if before is None else before.found)
                trial = _validated(data, trial, budget, meter)
    except (MargroveError, MemoryError) as error:  # the others may still do
        status, note = "failed", error_in_shell(error) or type(error).__name__
        if isinstance(error, ParameterError) and budget.left <= 0:
            status, note = str(Status.TIME_LIMIT), "no fit was completed within its share of the budget"
        trial = replace(trial, status=status, note=note, failure=error)
    return replace(trial, seconds=time.monotonic() - started)


def _status_of(model: Any) -> Status:
    """Return why the fit ended; raise `KeyboardInterrupt` after Ctrl-C."""
    status: Status = last_step_of(model).status_
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return status


def _validated(data: TrialData, trial: Trial, budget: Budget, meter: Meter) -> Trial:
    """Score every fold, with the settings that the trial has."""
    parts: list[Predicted] = []
    statuses: list[Status] = []
    began, n, growth = time.monotonic(), len(data.folds.tests), trial.candidate.growth
    for train, learned, test, rows in data.rounds(trial.candidate):
        meter.begin(f"{trial.title}, fold {len(parts) + 1} of {n}")
        if parts and budget.left <= 0:
            break
        model = trial.candidate.build(data.training, data.table, trial.params, budget.left, is_trial=True)
        started = time.monotonic()
        model.fit(train, learned)
        status = _status_of(model)
        if status is Status.TIME_LIMIT and budget.left <= 0:
            break
        statuses.append(status)
        if not parts and data.is_sample:
            growth = _growth(data, trial, train, learned, time.monotonic() - started)
            began += time.monotonic() - started
        parts.append(data.predicted(model, test, rows, learned))
    if len(parts) < min(n, _LEAST_FOLDS):
        return _out_of_time(trial)
    took = time.monotonic() - began
    scores = data.scores(parts)
    status = next((status for status in statuses if status is not Status.CONVERGED), Status.CONVERGED)
    scored = replace(trial, scores=scores, fit_seconds=took / len(scores), growth=growth, status=str(status))
    if len(scores) < n:
        note = f"{len(scores)} of {n} folds were scored within its share of the budget"
        return replace(scored, status=str(Status.TIME_LIMIT), note=note)
    return scored


def _planted(data: TrialData, trial: Trial, budget: Budget, meter: Meter) -> Trial:
    """Score a forest of `ENOUGH_TREES` on every fold, each in its share of the time: one that is stopped has fewer."""
    parts: list[Predicted] = []
    n_trees, n, spent = 0, len(data.folds.tests), 0.0
    for train, learned, test, rows in data.rounds(trial.candidate):
        meter.begin(f"{trial.title}, fold {len(parts) + 1} of {n}")
        share, began = budget.left / (n - len(parts)), time.monotonic()
        if share <= 0:
            return _out_of_time(trial)
        params = {"n_estimators": min(ENOUGH_TREES, trial.n_trees)}
        model = trial.candidate.build(data.training, data.table, params, share, is_trial=True)
        model.fit(train, learned)
        _status_of(model)
        grown = uncalibrated(last_step_of(model)).model_.n_trees
        if grown < min(_LEAST_TREES, trial.n_trees):
            return _out_of_time(trial)
        parts.append(data.predicted(model, test, rows, learned))
        n_trees, spent = n_trees + grown, spent + time.monotonic() - began
    seconds, growth = spent / n_trees * trial.n_trees, trial.candidate.growth
    status = str(Status.CONVERGED)
    return replace(trial, scores=data.scores(parts), fit_seconds=seconds, growth=growth, status=status)


def _out_of_time(trial: Trial) -> Trial:
    note = "not all folds were completed within its share of the budget"
    return replace(trial, scores=(), status=str(Status.TIME_LIMIT), note=note)


def _growth(data: TrialData, trial: Trial, table: Table, learned: NDArray[Any], seconds: float) -> float:
    """Return the power of the rows that a fit's time grows with, at most the candidate's, by a fit of a quarter of
    these rows, which took so many seconds."""
    started = time.monotonic()
    model = trial.candidate.build(data.training, data.table, trial.params, seconds, is_trial=True)
    model.fit(table.take(np.arange(0, len(learned), 4)), learned[::4])
    _status_of(model)
    quarter = max(1e-9, time.monotonic() - started)
    return min(trial.candidate.growth, max(_LEAST_GROWTH, math.log(max(1e-9, seconds) / quarter, 4)))


def _grown(
    data: TrialData, trial: Trial, budget: Budget, meter: Meter, before: Trial | None, rival: Trial | None
) -> Trial:
    """Score a vote that doubles while the doubling before it helped, time is left and the best so far is within reach;
    keep the best size, the smallest of equals."""
    candidate = trial.candidate
    rounds = list(data.rounds(candidate))
    models = [candidate.build(data.training, data.table, {}, is_trial=True) for _ in rounds]
    can_go_on = "warm_start" in models[0].get_params()
    first = min(candidate.rounds[-1], 100 if can_go_on else candidate.rounds[0])
    if before is not None:  # what it took on fewer rows it takes again
        first = max(first, before.params["n_estimators"])
    curve: dict[int, tuple[float, ...]] = {}
    took: dict[int, float] = {}
    spent = 0.0
    for size in (size for size in candidate.rounds if size >= first):
        began = time.monotonic()
        scored: dict[int, list[Predicted]] = {}
        for number, (model, (train, learned, test, rows)) in enumerate(zip(models, rounds, strict=True), start=1):
            meter.begin(f"{candidate.titled({'n_estimators': size})}, fold {number} of {len(rounds)}")
            if budget.left <= 0:
                return _kept(trial, curve, took, Status.TIME_LIMIT)
            limit = min(budget.left, data.training.time_limit or math.inf)
            settings = {"n_estimators": size, "time_limit": max(LEAST_LIMIT, limit)}
            model.set_params(**settings, **({"warm_start": True} if can_go_on else {}))
            model.fit(train, learned)
            if _status_of(model) is Status.TIME_LIMIT:
                return _kept(trial, curve, took, Status.TIME_LIMIT)
            wanted = {s for s in candidate.rounds if s <= size and s not in curve}
            for at, part in _stages(data, model, test, rows, learned, wanted):
                scored.setdefault(at, []).append(part)
        spent += time.monotonic() - began
        for at, parts in sorted(scored.items()):
            curve[at] = data.scores(parts)
            took[at] = spent * at / size / len(rounds)
        if all(last_step_of(model).n_estimators_ < size for model in models):
            break  # each has ended of itself
        if _best_size(curve) <= size // 4 or budget.left < 2 * (time.monotonic() - began):
            break
        if rival is not None and not _is_within_reach(curve, rival.mean):
            break
    return _kept(trial, curve, took, Status.CONVERGED)


def _is_within_reach(curve: Mapping[int, tuple[float, ...]], goal: float) -> bool:
    """Return whether two more doublings, each of which gains as much as the last one, would come near."""
    sizes = sorted(curve)
    if len(sizes) < 2:
        return True
    last, before = curve[sizes[-1]], curve[sizes[-2]]
    gain = max(0.0, float(np.mean(last) - np.mean(before)))
    error = float(np.std(last, ddof=1) / math.sqrt(len(last))) if len(last) > 1 else 0.0
    return float(np.mean(last)) + 2 * gain + 2 * error >= goal


def _stages(
    data: TrialData, model: Any, test: Table, rows: Rows, learned: NDArray[Any], wanted: set[int]
) -> Iterator[tuple[int, Predicted]]:
    """Yield the predictions of the vote at these sizes; beyond its last round they stay the same."""
    n_voters = model.n_estimators_
    last = data.predicted(model, test, rows, learned)
    if any(size < n_voters for size in wanted):
        scores = repeat(None) if last.scores is None else model.staged_decision_function(test)
        for size, (values, own) in enumerate(zip(model.staged_predict(test), scores, strict=False), start=1):
            if size in wanted - {n_voters}:
                own = np.column_stack([-own, own]) if np.ndim(own) == 1 else own
                yield size, replace(last, values=values, scores=own)
    yield from ((size, last) for size in wanted if size >= n_voters)


def _kept(trial: Trial, curve: dict[int, tuple[float, ...]], took: dict[int, float], status: Status) -> Trial:
    if not curve:
        return _out_of_time(trial)
    best = _best_size(curve)
    note = f"the budget stopped its growth at {max(curve)} rounds" if status is Status.TIME_LIMIT else ""
    scored = replace(trial, params={"n_estimators": best}, scores=curve[best], fit_seconds=took[best], note=note)
    return replace(scored, status=str(Status.CONVERGED))


def _best_size(curve: Mapping[int, tuple[float, ...]]) -> int:
    """Return the size of the best mean score, the smallest of equals; in their last bits equal means may differ."""
    return max(curve, key=lambda size: (round(float(np.mean(curve[size])), 9), -size))


def _searched(
    data: TrialData, candidate: Candidate, budget: Budget, meter: Meter
) -> tuple[SearchResult | None, dict[str, float]]:
    """Search C, and γ: on few rows the whole grid, then on more rows the neighbours of its best cell."""
    estimator = replace(data.training, time_limit=None).estimator(candidate.learner, candidate.params)
    space = search_space_of(candidate.learner, candidate.params, estimator, data.task)
    if space is None:
        return None, _searched_svr(data, candidate, budget, meter)
    preparation = data.training.preparation.for_table(candidate.learner, data.table)
    space = replace(space, preparation=preparation, limit=None if space.is_linear else GRID_ROWS)

    def found_in(space: SearchSpace, seconds: float) -> SearchResult:
        title = f"{candidate.title}, searching {' and '.join(space.names)}"
        found = search(space, data.table, seed=data.training.seed, seconds=seconds, meter=meter, title=title)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return found

    first = found_in(space, budget.left / 2)
    best = first.best
    if best is None or space.is_linear or first.n_rows == first.of_rows or first.status is not Status.CONVERGED:
        return first, first.params
    a_cell = first.seconds / len(first.cells)
    around = _CELLS_AROUND * a_cell * (min(MOST_ROWS, first.of_rows) / first.n_rows) ** candidate.growth
    folds = _ALONE * a_cell * (first.of_rows / first.n_rows) ** candidate.growth
    if around + folds > budget.left:  # the folds are what it is judged by
        return first, first.params
    assert best.gamma is not None
    closer = replace(
        space,
        Cs=tuple(best.C * C_STEP**k for k in (-1, 0, 1, 2)),  # more rows bear a larger C
        gammas=tuple(best.gamma * GAMMA_STEP**k for k in (-1, 0, 1)),
        limit=None,
    )
    second = found_in(closer, budget.left - folds)
    return first, second.params or first.params


def _searched_svr(data: TrialData, candidate: Candidate, budget: Budget, meter: Meter) -> dict[str, float]:
    """Search C, γ and ε of support vector regression."""
    meter.begin(f"{candidate.title}, searching C, gamma and epsilon")
    rows = data.task.sample(data.labels, SVR_ROWS, data.training.seed)
    y = data.labels[rows]
    # The gaps may be wide: the folds that follow compare it with other learners, not with its neighbours.
    spread = float(y.std()) or 1.0
    machine = margrove.SVRCV(
        Cs=(spread * np.array([0.3, 3.0, 30.0, 300.0])).tolist(),
        epsilons=[0.03 * spread, 0.3 * spread],
        cv=min(5, len(rows)),
        refit=False,
        time_limit=max(LEAST_LIMIT, budget.left / 2),
        scoring=as_scorer(data.task.metric),
    )
    X = data.training.preparation.encoder().fit(data.table).transform(data.table.take(rows))
    machine.fit(X, y)
    if machine.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if np.isnan(machine.cv_results_["mean_test_score"]).all():
        return {"C": spread, "epsilon": 0.1 * spread}
    return {name: float(value) for name, value in machine.best_params_.items()}
