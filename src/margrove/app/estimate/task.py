"""The two tasks, predicting classes and predicting numbers, and the estimate of either on rows that a model has not
seen.

A `Task` holds all that differs: how rows are split and sampled, the score, its interval, the baseline and the words.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.intervals import Interval
from margrove.app.estimate.metrics import ACCURACY, Metric
from margrove.app.models import last_step_of
from margrove.data import Table
from margrove.data.formats import Format
from margrove.errors import InfeasibleError, ParameterError
from margrove.explanation import explanation_of
from margrove.status import Status
from margrove.tree.words import amount_text

if TYPE_CHECKING:
    from margrove.app.screen.progress import Meter

Rows = NDArray[np.int64]
Labels = NDArray[Any]


class InterruptedFitError(KeyboardInterrupt):
    """Ctrl-C in a fit: the solver keeps what it has, but the predictions of half a model estimate nothing."""


@dataclass(frozen=True)
class Predicted:
    """Predictions of rows that the model had not seen."""

    rows: NDArray[np.int64]  # of the table
    values: NDArray[Any]
    learner: str
    scores: NDArray[np.float64] | None = None  # (rows, classes): decision values, or probabilities
    means: NDArray[np.float64] | None = None  # of numbers: the mean of the training targets, for each row
    medians: NDArray[np.float64] | None = None  # and their median


@dataclass(frozen=True)
class Folds:
    """The rows that each round of a cross-validation tests; the same for every learner that is compared."""

    tests: tuple[Rows, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Deviation:
    """The distance of estimates from the truth.

    ``r2`` is 1 − Σ(y − ŷ)²/Σ(y − m)², m the mean of the training rows: 1 is perfect, 0 no better than that. None where
    all y are m."""

    r2: float | None
    mean_absolute_error: float
    standard_error: float = 0.0  # of the mean absolute error
    of_median: float = 0.0  # the mean absolute error of the median of the training rows
    form: Format | None = None  # of the target, whose unit the errors have

    @property
    def words(self) -> str:
        r2 = "" if self.r2 is None else f"R² {self.r2:.3f}, "
        return f"{r2}mean absolute error {self.error_text}"

    @property
    def error_text(self) -> str:
        return amount_text(self.mean_absolute_error, self.form)

    @property
    def baseline_text(self) -> str:
        return amount_text(self.of_median, self.form)


@dataclass(frozen=True)
class Estimate:
    """The score of a model on rows that it has not seen; without rounds there is none, and the notes say why.

    ``method`` is "cross-validation" where nothing is searched, "nested" where each round searches again, "hold-out"
    where there is one round, and "none".
    """

    task: Task
    rounds: tuple[float, ...] = ()  # the score, or the mean absolute error, of each
    value: float | None = None  # the score by the task's metric, or R²
    interval: Interval | None = None  # 95 %, of the value; see `margrove.app.estimate.intervals`
    baseline: float = 0.0  # the value of a model that has learned nothing
    baseline_class: Any = None
    deviation: Deviation | None = None  # of numbers
    score: float | None = None  # of numbers: by the task's metric
    accuracy: float | None = None  # of classes, also where another metric counts
    never: tuple[str, ...] = ()  # classes of which there were rows, and none was predicted
    relation: str = ""  # the result of a permutation test, of a model that is no better than the baseline
    notes: tuple[str, ...] = ()
    method: str = "cross-validation"
    predicted: Predicted | None = None  # all rows that were tested

    @property
    def n_tested(self) -> int:
        return 0 if self.predicted is None else len(self.predicted.rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method if self.rounds else "none",
            "folds": len(self.rounds),
            **self.task.details(self),
            **self.ends,
            "notes": list(self.notes),
        }

    @property
    def ends(self) -> dict[str, float | None]:
        ends = [None, None] if self.interval is None else sorted(map(self.task.natural, self.interval))
        return {"low": ends[0], "high": ends[1]}


class Task:
    """All that differs between classes and numbers; the attributes without a value are those of either."""

    form: Format | None = None  # of a target of numbers

    name: str  # as typed after ``--task``
    is_number: bool
    value_name: str  # of an estimate's value, in words
    usual: Task  # the same by its usual metric
    splitter: Any  # scikit-learn's
    too_few: str  # why there is nothing to search by
    sampled: str  # how a sample is drawn
    not_below: str  # of the scores that chose a cell: what they are not
    heading: str  # above an estimate
    prefix: str  # before an estimate in one line
    columns: tuple[str, ...]  # of an estimate in a table of learners
    size_column: str
    without_estimate: str  # of learners, before the reason
    useless: str  # of learners of which even the best is of no use
    searched: str  # of learners that ``train`` would search

    most_folds: Callable[[Labels], int]  # that can be scored
    fold_count: Callable[[Labels, int], tuple[int, tuple[str, ...]]]  # of those wanted, and notes; 0: the reason
    draw: Callable[[Labels, int, np.random.Generator], Rows]  # about so many rows
    score: Callable[[Labels, Predicted], float]  # by the metric, larger for a better model; of all targets
    resolution: Callable[[int], float]  # of so many rows: scores that differ by less are the same
    is_perfect: Callable[[float, int], bool]  # a score of so many rows
    beside: Callable[[Any, Table, Labels, Labels, bool], dict[str, Any]]  # predictions, what is kept
    scored: Callable[[Labels, Sequence[Predicted], int, int], dict[str, Any]]  # what an estimate holds, of all rounds
    details: Callable[[Estimate], dict[str, Any]]  # as plain JSON values
    words: Callable[..., str]  # with its interval in one line; a dash without a value
    cells: Callable[[Estimate, int], tuple[str, ...]]  # as a table of learners has it
    rank: Callable[[Estimate], tuple[float, ...]]  # the key by which estimates are ordered, the best last
    context: Callable[[Estimate], list[str]]  # what the value means, and what a baseline would score
    baseline_words: Callable[[Estimate], str]  # the second half of a sentence about the best of several
    uselessness: Callable[..., str]  # which baseline it does not beat, and what to do

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    @property
    def measure(self) -> str:
        """The metric in words."""
        return self.metric.words

    @property
    def needs_scores(self) -> bool:
        return self.metric.needs != "predictions"

    @property
    def for_search(self) -> Task:
        """The task as a search scores it: its cells have no probabilities."""
        return self if self.metric.needs != "probabilities" else self.usual

    def labels(self, table: Table) -> Labels:
        return table.labels()

    def split(self, labels: Labels, n_folds: int, seed: int) -> list[tuple[Rows, Rows]]:
        """Return the rows of each fold to train on and to test, drawn at random."""
        folds = self.splitter(n_folds, shuffle=True, random_state=seed)
        return list(folds.split(np.zeros(len(labels)), labels))

    def sample(self, labels: Labels, most: int, seed: int) -> Rows:
        """Return all rows, in order; of more than ``most`` about that many, drawn at random."""
        n = len(labels)
        return np.arange(n) if n <= most else np.sort(self.draw(labels, most, np.random.default_rng(seed)))

    def named(self, score: float, decimals: int = 1) -> str:
        """Return a score as it is printed, with its name unless it is accuracy."""
        return f"{'' if self.metric is ACCURACY else self.measure} {self.number(score, decimals)}".lstrip()

    def number(self, score: float, decimals: int = 1) -> str:
        """Return a score without its name; with so many decimals, if it is a share."""
        return self.metric.show(score, decimals)

    def spread(self, error: float, decimals: int = 1) -> str:
        """Return the standard error of a score."""
        return self.number(self.metric.natural(error), decimals)

    def value_text(self, value: float) -> str:
        """Return the value of an estimate, which need not be the score: of numbers it is R²."""
        return self.number(value)

    def natural(self, value: float) -> float:
        """Return the value of an estimate as people know it: of a loss not its negative."""
        return self.metric.natural(value)

    def predicted(
        self, model: Any, asked: Any, rows: Rows, labels: Labels, learned: Labels, *, has_scores: bool
    ) -> Predicted:
        """Return the predictions of some rows by a fitted model, and what is kept beside them."""
        values = np.asarray(model.predict(asked))
        beside = self.beside(model, asked, labels, learned, has_scores)
        return Predicted(rows, values, type(last_step_of(model)).__name__, **beside)

    def folds(self, labels: Labels, wanted: int, seed: int) -> Folds:
        """Split the rows for a cross-validation; the notes say where there are fewer folds, or none."""
        check_folds(wanted)
        if wanted == 0:
            return Folds((), ("not estimated, as requested (--folds 0)",))
        n_folds, notes = self.fold_count(labels, wanted)
        if n_folds < 2:
            return Folds((), notes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, of small classes: the notes name them
            return Folds(tuple(test for _, test in self.split(labels, n_folds, seed)), notes)

    def fit_and_predict(
        self, model: Any, table: Any, labels: Labels, train: Rows, test: Rows, *, has_scores: bool = True
    ) -> Predicted:
        """Fit a model to some rows and predict others, without warnings; raise `InterruptedFitError` on Ctrl-C."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
            model.fit(taken(table, train), labels[train])
            if explanation_of(model).status == Status.INTERRUPTED:
                raise InterruptedFitError
            has_scores = has_scores or self.needs_scores
            return self.predicted(model, taken(table, test), test, labels, labels[train], has_scores=has_scores)

    def estimate(
        self,
        labels: Labels,
        parts: Sequence[Predicted],
        notes: Sequence[str] = (),
        method: str = "cross-validation",
        *,
        is_pooled: bool = False,
        seed: int = 0,
    ) -> Estimate:
        """Score the predictions of the rounds; ``is_pooled``: of all rows together, not the mean of the rounds."""
        predicted = joined(parts) if parts else None
        is_pooled = is_pooled and predicted is not None and (predicted.scores is not None or not self.needs_scores)
        scored = self.scored(labels, [predicted] if predicted and is_pooled else parts, len(parts), seed)
        return Estimate(self, notes=tuple(notes), method=method if parts else "none", predicted=predicted, **scored)

    def cross_validate(
        self,
        make_model: Callable[[], Any],
        table: Any,
        labels: Labels,
        folds: Folds,
        meter: Meter,
        title: str,
        *,
        has_scores: bool = False,
    ) -> Estimate:
        """Train on all folds but one and test on that one, for each fold."""
        parts: list[Predicted] = []
        for number, test in enumerate(folds.tests, start=1):
            meter.begin(f"{title}, fold {number} of {len(folds.tests)}")
            train = np.delete(np.arange(len(labels)), test)
            try:
                parts.append(self.fit_and_predict(make_model(), table, labels, train, test, has_scores=has_scores))
            except InfeasibleError:  # the fit on all rows says why, and names rows of the table
                notes = (*folds.notes, f"not estimated: without fold {number} the problem has no solution")
                return self.estimate(labels, [], notes)
            meter.advance()
        return self.estimate(labels, parts, folds.notes)


def check_folds(wanted: int) -> None:
    """Raise `ParameterError` if ``wanted`` is negative or 1."""
    if wanted < 0 or wanted == 1:
        raise ParameterError(f"--folds is {wanted}; it must be at least 2, or 0 for no cross-validation.")


def joined(parts: Sequence[Predicted]) -> Predicted:
    """Join several rounds, sorted by row. Scores are kept where all rounds have them, of one learner: others differ."""
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows, kind="stable")
    learners = sorted({part.learner for part in parts})

    def column(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if any(values is None for values in columns) else np.concatenate(columns)[order]

    scores = column("scores") if len(learners) == 1 else None
    return Predicted(rows[order], column("values"), ", ".join(learners), scores, column("means"), column("medians"))


def taken(table: Any, rows: NDArray[np.int64]) -> Any:
    return table.take(rows) if isinstance(table, Table) else table[rows]
