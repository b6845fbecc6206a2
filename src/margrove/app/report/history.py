"""The training record of a model as a report reads it: what is of the wrong kind is left out.

A model file may come from a stranger, so nothing is taken on trust: every number is a finite number, every text is
text (and later escaped), every list of modest length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.training_rows import has_rows
from margrove.data import Table

MOST_ENTRIES = 5_000  # of any list
_MOST_LETTERS = 2_000  # of any text


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
class HeldOut:
    """Rows that the tested model had not seen, and what it said of them."""

    classes: list[str] | None  # None: numbers
    truth: NDArray[Any]  # codes of classes, or numbers
    predicted: NDArray[Any]
    scores: NDArray[np.float64] | None  # (n, K)
    rows: NDArray[np.intp] | None  # their numbers in the table


@dataclass(frozen=True, eq=False)
class Estimate:
    """How good the model is, as it was found in training."""

    method: str
    words: str
    measure: str
    value: float
    low: float | None
    high: float | None
    baseline: float | None
    baseline_class: str | None
    mean_absolute_error: float | None  # of numbers
    n_tested: int | None  # the rows that the value is of; ``held_out`` may be some of them
    held_out: HeldOut | None


@dataclass(frozen=True)
class Cell:
    """A point of a search."""

    C: float
    gamma: float | None
    score: float
    status: str


@dataclass(frozen=True)
class Step:
    """What a solver reported on its way."""

    seconds: float
    value: float
    name: str


@dataclass(frozen=True)
class Learnt:
    """A point of a learning curve."""

    rows: int
    score: float
    error: float | None


class History:
    """A training record, perhaps empty."""

    def __init__(self, record: Any) -> None:
        self._record: Mapping[str, Any] = record if isinstance(record, Mapping) else {}

    @property
    def source(self) -> str | None:
        """The file that was learned from."""
        return _text(self._record.get("source"))

    @property
    def seconds(self) -> float | None:
        """How long the whole training took."""
        return _number(self._record.get("seconds"))

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody stopped the training before it was done."""
        return self._record.get("is_interrupted") is True

    def has_rows_of(self, table: Table) -> bool | None:
        """Whether a table has the rows that were learned from, by the digests of the columns that both have; None where
        the record has none of them."""
        mark = _mapping(self._record.get("fingerprint"))
        columns = {name: digest for name, digest in _mapping(mark.get("columns")).items() if name in table}
        return has_rows({**mark, "columns": columns}, table, table.target) if columns else None

    @property
    def subsample(self) -> str | None:
        """What was said where only some rows were searched."""
        return _text(_mapping(self._record.get("subsample")).get("words"))

    @property
    def choice(self) -> str | None:
        """Why this learner was chosen."""
        return _text(_mapping(self._record.get("choice")).get("words"))

    @property
    def certifying(self) -> str | None:
        """What there is to say of how the certificate was checked: that it took longer than the budget, or was left
        out."""
        return _text(_mapping(self._record.get("certifying")).get("words"))

    @property
    def warnings(self) -> list[str]:
        """What was warned of."""
        return [text for text in map(_text, _list(self._record.get("warnings"))) if text]

    @property
    def leaderboard(self) -> list[Contender]:
        """All learners that were tried, the best first."""
        found = []
        for line in map(_mapping, _list(self._record.get("leaderboard"))):
            title = _text(line.get("title")) or _text(line.get("learner"))
            if title:
                contender = Contender(
                    title=title,
                    learner=_text(line.get("learner")) or "",
                    score=_number(line.get("score")),
                    error=_number(line.get("error")),
                    seconds=_number(line.get("seconds")),
                    status=_text(line.get("status")) or "",
                    note=_text(line.get("note")) or "",
                    is_chosen=line.get("is_chosen") is True,
                    rows=_count(line.get("rows")),
                )
                found.append(contender)
        return found

    @property
    def estimate(self) -> Estimate | None:
        """What was found on rows not seen; None where nothing was."""
        found = _mapping(self._record.get("estimate"))
        value, method = _number(found.get("value")), _text(found.get("method")) or ""
        is_share = found.get("measure") != "R²"
        if value is None or method == "none" or (is_share and not 0 <= value <= 1):
            return None
        return Estimate(
            method=method,
            words=_text(found.get("words")) or "",
            measure=_text(found.get("measure")) or "accuracy",
            value=value,
            low=_number(found.get("low")),
            high=_number(found.get("high")),
            baseline=_number(found.get("baseline")),
            baseline_class=None if found.get("baseline_class") is None else _shown(found["baseline_class"]),
            mean_absolute_error=_number(found.get("mean_absolute_error")),
            n_tested=_count(found.get("rows_tested")),
            held_out=_held_out(found),
        )

    @property
    def search(self) -> list[Cell]:
        """The points of a search that have a score."""
        cells = []
        for line in map(_mapping, _list(_mapping(self._record.get("search")).get("cells"))):
            C, score = _number(line.get("C")), _number(line.get("score"))
            if C is not None and C > 0 and score is not None:
                cells.append(Cell(C, _number(line.get("gamma")), score, _text(line.get("status")) or ""))
        return cells

    @property
    def learning_curve(self) -> list[Learnt]:
        """Scores by the number of rows learned from."""
        found = []
        for line in map(_mapping, _list(self._record.get("learning_curve"))):
            rows, score = _number(line.get("rows")), _number(line.get("score"))
            if rows is not None and score is not None:
                found.append(Learnt(int(rows), score, _number(line.get("error"))))
        return sorted(found, key=lambda point: point.rows)

    @property
    def course(self) -> list[Step]:
        """What the solver of the last fit reported, in the order of time."""
        found = []
        for line in map(_mapping, _list(self._record.get("course"))):
            seconds, value = _number(line.get("seconds")), _number(line.get("value"))
            if seconds is not None and value is not None:
                found.append(Step(seconds, value, _text(line.get("name")) or "objective"))
        return sorted(found, key=lambda step: step.seconds)


def _held_out(found: Mapping[str, Any]) -> HeldOut | None:
    truth, predicted = _array(found.get("truth")), _array(found.get("predicted"))
    if truth is None or predicted is None or truth.ndim != 1 or truth.shape != predicted.shape or not len(truth):
        return None
    classes = [_shown(label) for label in _list(found.get("classes"))]
    scores, rows = _array(found.get("scores")), _array(found.get("rows"))
    if not classes:
        return HeldOut(None, truth, predicted, None, _whole(rows, len(truth)))
    codes, said = _whole(truth, len(truth)), _whole(predicted, len(truth))
    if codes is None or said is None or max(codes.max(), said.max()) >= len(classes):
        return None
    if scores is not None and scores.shape == (len(truth), 1) and len(classes) == 2:
        scores = np.column_stack([-scores[:, 0], scores[:, 0]])
    if scores is not None and scores.ndim == 1 and len(scores) == len(truth) and len(classes) == 2:
        scores = np.column_stack([-scores, scores])
    if scores is not None and scores.shape != (len(truth), len(classes)):
        scores = None
    return HeldOut(classes, codes, said, scores, _whole(rows, len(truth)))


def _whole(numbers: NDArray[np.float64] | None, n: int) -> NDArray[np.intp] | None:
    """Whole numbers from 0 on, n of them; None if they are something else."""
    if numbers is None or numbers.shape != (n,) or (numbers < 0).any() or (numbers != np.floor(numbers)).any():
        return None
    return None if numbers.max(initial=0) > np.iinfo(np.int32).max else numbers.astype(np.intp)


def _array(given: Any) -> NDArray[np.float64] | None:
    """An array of finite numbers; None if there is anything else among them."""
    if not isinstance(given, list) or not given or len(given) > 2 * MOST_ENTRIES:
        return None
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None  # texts, lines of different lengths, endless numbers: the part is left out
    return numbers if np.isfinite(numbers).all() else None


def _number(given: Any) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < 1e300
    return float(given) if is_number and math.isfinite(given) else None


def _count(given: Any) -> int | None:
    """A whole number above 0."""
    number = _number(given)
    return int(number) if number is not None and number >= 1 and number.is_integer() else None


def _text(given: Any) -> str | None:
    return _encodable(given) if isinstance(given, str) else None


def _shown(label: Any) -> str:
    return _encodable(str(label))


def _encodable(text: str) -> str:
    """Of a bearable length, and without the halves of characters that no file can hold."""
    return text[:_MOST_LETTERS].encode("utf-8", "replace").decode()


def _list(given: Any) -> list[Any]:
    return given[:MOST_ENTRIES] if isinstance(given, list) else []


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}
