"""The training record of a model as it is read from a file: values of the wrong type are left out.

A model file may come from an untrusted source, so everything is checked: every number is finite, every text is text
(and later escaped), every list of modest length.

A record also holds digests of the training rows: the score on those is no promise for others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.learning_curve import Point
from margrove.app.estimate.metrics import Judged, Metric, metric_named, rarest
from margrove.data import Column, Table
from margrove.errors import ParameterError
from margrove.run.checkpoint import fingerprint

T = TypeVar("T")
MOST_ENTRIES = 5_000  # of any list
_MOST_LETTERS = 2_000  # of any text
_MOST_COLUMNS = 8  # of a fingerprint: the target alone may be the same in two tables whose rows are sorted by it


@dataclass(frozen=True)
class Contender:
    """One line of the leaderboard."""

    title: str
    learner: str
    score: float | None
    error: float | None
    seconds: float | None
    status: str
    note: str
    is_chosen: bool
    rows: int | None = None  # that it was scored on


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows whose target is known, and the predictions of a model for them."""

    classes: list[str] | None  # None: numbers
    truth: NDArray[Any]  # (n,) codes of classes, or numbers
    predicted: NDArray[Any]  # (n,)
    scores: NDArray[np.float64] | None = None  # (n, K), larger for a more likely class
    rows: NDArray[np.intp] | None = None  # (n,) their places in the table

    @property
    def has_probabilities(self) -> bool:
        """The scores are shares that sum to 1."""
        if self.scores is None or not len(self.scores):
            return False
        is_share = self.scores.min() >= 0 and self.scores.max() <= 1
        return bool(is_share and np.allclose(self.scores.sum(axis=1), 1.0, atol=1e-6))

    @property
    def judged(self) -> Judged:
        """The same, for a metric."""
        if self.classes is None:
            return Judged(self.truth, self.predicted, means=self.truth.mean())
        rare = rarest(np.bincount(self.truth, minlength=len(self.classes)))
        return Judged(self.truth, self.predicted, self.scores, np.array(self.classes), rare)

    @property
    def never(self) -> tuple[str, ...]:
        """The classes that some rows are of, and that are never predicted."""
        classes = range(len(self.classes or ()))
        return tuple(self.classes[k] for k in classes if k in self.truth and k not in self.predicted)  # type: ignore[index]

    @property
    def is_right(self) -> NDArray[np.bool_]:
        return np.asarray(self.truth == self.predicted)


@dataclass(frozen=True, eq=False)
class RecordedEstimate:
    """The score of the model on rows it had not seen, as it was found in training."""

    method: str
    words: str
    measure: str
    value: float
    metric: str  # of the leaderboard, as typed after ``--metric``
    low: float | None
    high: float | None
    baseline: float | None
    mean_absolute_error: float | None  # of numbers
    baseline_class: str | None = None
    n_tested: int | None = None  # the rows that the value is of; ``held_out`` may be some of them
    held_out: ScoredRows | None = None  # rows that the tested model had not seen


@dataclass(frozen=True)
class Cell:
    """A point of a search."""

    C: float
    gamma: float | None
    score: float
    status: str


@dataclass(frozen=True)
class Step:
    """One report of a solver."""

    seconds: float
    value: float
    name: str


class History:
    """A training record, perhaps empty: all learners that were tried, the best first, the points of a search and of a
    learning curve, and the reports of the solver of the last fit."""

    def __init__(self, given: Any) -> None:
        record = _mapping(given)
        self._fingerprint = _mapping(record.get("fingerprint"))
        self.source = _text(record.get("source"))  # the file that was learned from
        self.seconds = _number(record.get("seconds"))
        self.is_interrupted = record.get("is_interrupted") is True
        left_out = _list(_mapping(record.get("table")).get("left_out"))
        self.left_out = {text for text in map(_text, left_out) if text}  # columns that were no use
        self.subsample = _text(_mapping(record.get("subsample")).get("words"))  # of which rows were searched
        self.choice = _text(_mapping(record.get("choice")).get("words"))  # why this learner was chosen
        self.certifying = _text(_mapping(record.get("certifying")).get("words"))  # how the certificate was checked
        typical = _mapping(record.get("typical"))  # the typical cell of each training column, None if it is missing
        kept = {
            _text(name): _text(cell) if isinstance(cell, str) else _number(cell)
            for name, cell in [*typical.items()][:MOST_ENTRIES]
        }
        self.typical = {name: cell for name, cell in kept.items() if name}
        self.warnings = [text for text in map(_text, _list(record.get("warnings"))) if text]
        lines = [replace(c, title=c.title or c.learner) for c in _lines(Contender, record.get("leaderboard"))]
        self.leaderboard = [line for line in lines if line.title]
        self.estimate = _estimate(_mapping(record.get("estimate")))
        self.metric = _metric(None if self.estimate is None else self.estimate.metric)  # None: accuracy or R²
        cells = _lines(Cell, _mapping(record.get("search")).get("cells"), "C", "score")
        self.search = [cell for cell in cells if cell.C > 0]
        curve = _lines(Point, record.get("learning_curve"), "rows", "score")
        self.learning_curve = sorted(curve, key=lambda point: point.rows)
        course = _lines(Step, record.get("course"), "seconds", "value")
        named = [replace(step, name=step.name or "objective") for step in course]
        self.course = sorted(named, key=lambda step: step.seconds)

    def has_rows_of(self, table: Table) -> bool | None:
        """Return whether a table has the training rows, by the columns that both have; None where there are none."""
        mark = self._fingerprint
        columns = {name: digest for name, digest in _mapping(mark.get("columns")).items() if name in table}
        return has_rows({**mark, "columns": columns}, table, table.target) if columns else None


def _estimate(found: Mapping[str, Any]) -> RecordedEstimate | None:
    """Return the estimate on rows not seen; None where there is none."""
    estimate, named = _read(RecordedEstimate, found), found.get("baseline_class")
    is_share = found.get("measure") in (None, "accuracy", "balanced accuracy")
    if estimate.value is None or estimate.method == "none" or (is_share and not 0 <= estimate.value <= 1):
        return None
    return replace(
        estimate,
        measure=estimate.measure or "accuracy",
        baseline_class=None if named is None else _encodable(str(named)),
        n_tested=_count(found.get("rows_tested")),
        held_out=_held_out(found),
    )


def _metric(name: str | None) -> Metric | None:
    """Return the metric of this name; None of one that this version does not know."""
    try:
        return None if name is None else metric_named(name)
    except ParameterError:
        return None


def _held_out(found: Mapping[str, Any]) -> ScoredRows | None:
    truth, predicted = _array(found.get("truth")), _array(found.get("predicted"))
    if truth is None or predicted is None or truth.ndim != 1 or truth.shape != predicted.shape or not len(truth):
        return None
    classes = [_encodable(str(label)) for label in _list(found.get("classes"))]
    n, scores = len(truth), _array(found.get("scores"))
    rows = _whole(_array(found.get("rows")), n)
    if not classes:
        return ScoredRows(None, truth, predicted, None, rows)
    codes, named = _whole(truth, n), _whole(predicted, n)
    if codes is None or named is None or max(codes.max(), named.max()) >= len(classes):
        return None
    if scores is not None and scores.shape in ((n,), (n, 1)) and len(classes) == 2:
        scores = np.column_stack([-scores.ravel(), scores.ravel()])
    has_scores = scores is not None and scores.shape == (n, len(classes))
    return ScoredRows(classes, codes, named, scores if has_scores else None, rows)


def _whole(numbers: NDArray[np.float64] | None, n: int) -> NDArray[np.intp] | None:
    """Return n whole numbers from 0 on; None if they are something else."""
    if numbers is None or numbers.shape != (n,) or (numbers < 0).any() or (numbers != np.floor(numbers)).any():
        return None
    return None if numbers.max(initial=0) > np.iinfo(np.int32).max else numbers.astype(np.intp)


def _array(given: Any) -> NDArray[np.float64] | None:
    """Return an array of finite numbers; None if there is anything else among them."""
    if not isinstance(given, list) or not given or len(given) > 2 * MOST_ENTRIES:
        return None
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None  # texts, lines of different lengths, endless numbers: the part is left out
    return numbers if np.isfinite(numbers).all() else None


def _lines(kind: type[T], given: Any, *needed: str) -> list[T]:
    """Return the entries of a list that have the needed fields."""
    found = [_read(kind, _mapping(line)) for line in _list(given)]
    return [line for line in found if all(getattr(line, name) is not None for name in needed)]


def _read(kind: type[T], line: Mapping[str, Any]) -> T:
    """Return a dataclass of the values that have the type of their field; the others are "", False, None or
    defaults."""
    types = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: _READERS[type](line.get(name)) for name, type in types.items() if type in _READERS})


def _number(given: Any) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < 1e300
    return float(given) if is_number and math.isfinite(given) else None


def _rounded(given: Any) -> int | None:
    number = _number(given)
    return None if number is None else int(number)


def _count(given: Any) -> int | None:
    number = _number(given)
    return int(number) if number is not None and number >= 1 and number.is_integer() else None


def _text(given: Any) -> str | None:
    return _encodable(given) if isinstance(given, str) else None


def _encodable(text: str) -> str:
    """Cut to a bearable length, without the halves of characters that no file can hold."""
    return text[:_MOST_LETTERS].encode("utf-8", "replace").decode()


_READERS: dict[str, Any] = {
    "str": lambda given: _text(given) or "",
    "float": _number,
    "float | None": _number,
    "int": _rounded,
    "int | None": _count,
    "bool": lambda given: given is True,
}


def _list(given: Any) -> list[Any]:
    return given[:MOST_ENTRIES] if isinstance(given, list) else []


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def rows_fingerprint(table: Table, target: Column) -> dict[str, Any]:
    """Return digests of the target and of the first columns, of the rows that have a target, as plain JSON values.
    Parts of dates are left out, since a file does not have them."""
    known = ~target.is_missing
    first = [column for name in table.names[:_MOST_COLUMNS] if not (column := table[name]).date_part]
    return {
        "target": fingerprint(target.take(known).labels()),
        "columns": {column.name: _digest(column, known) for column in first},
    }


def has_rows(mark: Any, table: Table, target: Column | None) -> bool:
    """Return whether the table has the rows of a fingerprint, which may come from an untrusted file, in the same order;
    without a target by the other columns alone."""
    columns = _mapping(_mapping(mark).get("columns"))
    if not columns or not all(name in table for name in columns):
        return False
    known = np.ones(table.n_rows, np.bool_) if target is None else ~target.is_missing
    if target is not None and mark.get("target") != fingerprint(target.take(known).labels()):
        return False
    return all(_digest(table[name], known) == digest for name, digest in columns.items())


def _digest(column: Column, rows: NDArray[np.bool_]) -> str:
    return fingerprint(column.kind, column.values[rows], [str(level) for level in column.levels])
