"""The findings that the sections of a report are written from: the score of a model, and the importance of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from margrove.app.history import Judged
from margrove.app.report.measures import Quality
from margrove.app.report.model_on_table import Subject
from margrove.explanation import counted

_MEANINGS = {
    "loss": "How much worse the answers get when the cells of a column are shuffled among the rows, so that it "
    "tells nothing any more. Columns that tell the same can stand in for each other, and then each seems to "
    "matter little.",
    "own": "How much of what the model decides by rests on each column.",
    "gain": "How much each column by itself tells of the answer.",
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """The score of a model, the rows that it is of, and the method.

    ``origin`` is "table" where the rows of the table are new to the model, "record" and "folds" where rows were held
    out in training or for this report, and "training" where there are only the training rows.
    """

    origin: Literal["table", "record", "folds", "training"]
    quality: Quality
    words: str
    judged: Judged | None  # the rows, or some of them, where they are known
    on_training: Quality | None = None  # for comparison: the score on the training rows
    n_tested: int | None = None  # the number of rows of the score, where it is known

    @property
    def is_honest(self) -> bool:
        """True if the rows were new to the model that was tested."""
        return self.origin != "training"

    @property
    def is_partial(self) -> bool:
        """True if the predictions are kept for some of the tested rows only."""
        return self.judged is not None and self.n_tested is not None and self.n_tested > len(self.judged.truth)

    @property
    def rows_words(self) -> str:
        """The number of rows whose predictions are kept, and of the tested ones."""
        n = 0 if self.judged is None else len(self.judged.truth)
        if self.is_partial:
            return f"{n:,} of the {self.n_tested:,} held-out rows, evenly chosen"
        return counted(n, "row")


@dataclass(frozen=True)
class Losses:
    """The loss of accuracy or R² when the cells of each column are shuffled."""

    of_column: dict[str, float]
    n_rows: int  # that were predicted again
    is_new: bool  # the models had not seen them


@dataclass(frozen=True)
class ColumnImportance:
    """The importance of one column, by each measure; None where that does not apply."""

    name: str
    loss: float | None = None  # of accuracy or R² when its cells are shuffled
    own: float | None = None  # its share in the model: of a tree's gains, or of a linear model's weights
    gain: float | None = None  # information gain on the class by this column alone, in bits
    gain_ratio: float | None = None
    p_value: float | None = None  # of that gain


@dataclass(frozen=True)
class Importances:
    """The importance of all columns, the largest first."""

    columns: tuple[ColumnImportance, ...]
    by: Literal["loss", "own", "gain"]  # the measure of the order and the shares
    shuffled: Losses | None = None

    def share(self, column: ColumnImportance) -> float:
        """Return the importance of a column relative to the largest."""
        values = [getattr(other, self.by) or 0.0 for other in self.columns]
        return max(0.0, (getattr(column, self.by) or 0.0) / max(values))

    @property
    def rows_words(self) -> str:
        """The rows on which columns were shuffled."""
        if self.shuffled is None:
            return ""
        new = "that the models asked had not seen" if self.shuffled.is_new else "that the model has learned from"
        return f"{self.shuffled.n_rows:,} rows {new}"

    @property
    def words(self) -> str:
        """The meaning of the shares."""
        return _MEANINGS[self.by]


@dataclass(frozen=True, eq=False)
class Findings:
    """A model on a table, its score, and the importance of its columns, as far as they are known."""

    subject: Subject
    evidence: Evidence | None = None
    importances: Importances | None = None

    @property
    def columns(self) -> list[str]:
        """The columns, the most important first where that is known."""
        known = self.importances
        return list(self.subject.table.names) if known is None else [column.name for column in known.columns]
