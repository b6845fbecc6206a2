"""What a fitted model learned, as plain data and in an analyst's words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data import Table
from margrove.surface.models import encoder_of, learner_of

SHOWN_PER_CLASS = 5  # columns; the weights fall off quickly and nobody reads more
LEAST_SHOWN = 0.05  # of the strongest weight: below, a column hardly matters


@dataclass(frozen=True)
class Evidence:
    """One column that speaks for a class: which, in words, and how strongly (1 is the strongest of that class)."""

    column: str
    words: str
    weight: float


@dataclass(frozen=True)
class Lesson:
    """What one machine learned: the class it speaks for, and on what grounds."""

    about: str
    against: str
    evidence: tuple[Evidence, ...] = ()
    n_rows_for: int | None = None  # of a kernel machine: rows that carry the decision
    n_rows_against: int | None = None
    n_voters: int | None = None  # of a voted perceptron: weight vectors that vote


@dataclass(frozen=True)
class Learned:
    """What a model learned: ``kind`` is "weights", "rows" or "votes"."""

    kind: str
    lessons: tuple[Lesson, ...]
    size: int  # weights per machine, rows, or weight vectors
    n_training_rows: int | None = None
    unit: str = ""  # of weights: a change of what they are the weight of

    @property
    def size_words(self) -> str:
        """How large the model is, in a word or two."""
        noun = {"weights": "column", "rows": "row", "votes": "weight vector"}[self.kind]
        return f"{self.size:,} {noun}{'' if self.size == 1 else 's'}"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, without the parts that do not apply."""
        record = asdict(self)
        for lesson in record["lessons"]:
            for name in [name for name, value in lesson.items() if value is None]:
                del lesson[name]
        record["lessons"] = list(record["lessons"])
        return record


def learned(model: Any, table: Table | None = None) -> Learned:
    """Read what a fitted model, or a pipeline that ends in one, has learned.

    With the table it was fitted on, a column's weight is that of one standard deviation over its rows, so that a rare
    category counts for little. The model file does not know how often a category occurs; without the table a category's
    weight is that of yes against no.
    """
    learner = learner_of(model)
    sides = _sides(learner.classes_)
    if hasattr(learner, "prototypes_"):
        voters = np.diff(learner.starts_)
        lessons = [Lesson(*side, n_voters=int(n)) for side, n in zip(sides, voters, strict=True)]
        return Learned("votes", tuple(lessons), int(voters.sum()))
    if hasattr(learner, "dual_coef_"):
        lessons = [
            Lesson(*side, n_rows_for=int((beta > 0).sum()), n_rows_against=int((beta < 0).sum()))
            for side, beta in zip(sides, learner.dual_coef_, strict=True)
        ]
        return Learned("rows", tuple(lessons), len(learner.support_), getattr(learner, "n_rows_", None))
    names = _columns(model, learner.coef_.shape[1])
    unit, weights = ", per standard deviation of a number, yes against no of a category", learner.coef_
    encoder = encoder_of(model)
    if encoder is not None and table is not None:
        unit, weights = " of one standard deviation", learner.coef_ * _deviations(encoder.transform(table))
    lessons = [Lesson(*side, evidence=_evidence(w, names)) for side, w in zip(sides, weights, strict=True)]
    return Learned("weights", tuple(lessons), len(names), unit=unit)


def _deviations(encoded: Any) -> NDArray[np.float64]:
    """The standard deviation of each encoded column, sparse or not."""
    n = encoded.shape[0]
    ones = np.ones(n)
    mean = np.asarray(encoded.T @ ones, np.float64) / n
    squares = encoded.multiply(encoded) if hasattr(encoded, "multiply") else np.square(encoded)
    deviations: NDArray[np.float64] = np.sqrt(np.maximum(np.asarray(squares.T @ ones, np.float64) / n - mean**2, 0.0))
    return deviations


def _sides(classes: NDArray[Any]) -> list[tuple[str, str]]:
    """The class each machine speaks for, and what it speaks against."""
    if len(classes) == 2:
        return [(str(classes[1]), str(classes[0]))]
    return [(str(label), "the rest") for label in classes]


@dataclass(frozen=True)
class _Encoded:
    """A column of the encoded table: of a number, or of one level of a category."""

    column: str
    level: str | None

    def words(self, weight: float) -> str:
        if self.level is None:
            return f"{'high' if weight > 0 else 'low'} {self.column}"
        return f"{self.column} {'is' if weight > 0 else 'is not'} {self.level}"


def _columns(model: Any, width: int) -> list[_Encoded]:
    encoder = encoder_of(model)
    if encoder is not None:
        return [
            _Encoded(origin.column, "missing" if origin.is_missing else _text(origin.level))
            for origin in encoder.output_origins()
        ]
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(width)])
    return [_Encoded(str(name), None) for name in names]


def _text(level: Any) -> str | None:
    return None if level is None else str(level)


def _evidence(w: NDArray[np.float64], names: list[_Encoded]) -> tuple[Evidence, ...]:
    """The strongest weights. Only their ratios mean anything: a perceptron's w may have any length."""
    strongest = float(np.abs(w).max(initial=0.0))
    if strongest == 0 or not np.isfinite(strongest):
        return ()
    shares = w / strongest
    order = np.argsort(-np.abs(shares), kind="stable")[:SHOWN_PER_CLASS]
    return tuple(
        Evidence(names[j].column, names[j].words(shares[j]), float(shares[j]))
        for j in order
        if abs(shares[j]) >= LEAST_SHOWN
    )
