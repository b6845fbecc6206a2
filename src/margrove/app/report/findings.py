"""What was found out about a model, for the sections of a report: how good it is, and which columns matter."""

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
    """How good the model is, on which rows, and how that was found.

    ``origin`` is "table" where the rows of the table are new to the model, "record" and "folds" where rows were held
    out in training or for this report, and "training" where there is nothing better than the rows it learned from.
    """

    origin: Literal["table", "record", "folds", "training"]
    quality: Quality
    words: str
    judged: Judged | None  # the rows themselves, where they are known
    on_training: Quality | None = None  # for comparison: the same on the rows it was trained on
    n_tested: int | None = None  # the rows that the quality is of, where that is known; ``judged`` may be some of them

    @property
    def is_honest(self) -> bool:
        """Whether the rows were new to the model that was tested."""
        return self.origin != "training"

    @property
    def is_partial(self) -> bool:
        """Whether the answers are kept of some of the tested rows only."""
        return self.judged is not None and self.n_tested is not None and self.n_tested > len(self.judged.truth)

    @property
    def rows_words(self) -> str:
        """How many rows are known one by one, and of how many."""
        n = 0 if self.judged is None else len(self.judged.truth)
        if self.is_partial:
            return f"{n:,} of the {self.n_tested:,} held-out rows, evenly chosen"
        return counted(n, "row")


@dataclass(frozen=True)
class Losses:
    """What accuracy or R² loses when the cells of each column are shuffled."""

    of_column: dict[str, float]
    n_rows: int  # that were judged again
    is_new: bool  # whether the models had not seen them


@dataclass(frozen=True)
class ColumnImportance:
    """The importance of one column, by each measure; None where that does not apply."""

    name: str
    loss: float | None = None  # of accuracy or R² when its cells are shuffled
    own: float | None = None  # its share in the model: of a tree's gains, or of a linear model's weights
    gain: float | None = None  # bits that it alone tells of the class
    gain_ratio: float | None = None
    p_value: float | None = None  # of that gain


@dataclass(frozen=True)
class Importances:
    """The importance of all columns, the largest first, and what ``share`` of each is a share of."""

    columns: tuple[ColumnImportance, ...]
    by: Literal["loss", "own", "gain"]  # what the order and the shares are by
    shuffled: Losses | None = None  # how the losses were found

    def share(self, column: ColumnImportance) -> float:
        """Its importance beside the largest."""
        values = [getattr(other, self.by) or 0.0 for other in self.columns]
        return max(0.0, (getattr(column, self.by) or 0.0) / max(values))

    @property
    def rows_words(self) -> str:
        """On which rows columns were shuffled."""
        if self.shuffled is None:
            return ""
        new = "that the models asked had not seen" if self.shuffled.is_new else "that the model has learned from"
        return f"{self.shuffled.n_rows:,} rows {new}"

    @property
    def words(self) -> str:
        """What the shares mean."""
        return _MEANINGS[self.by]


@dataclass(frozen=True, eq=False)
class Findings:
    """A model on a table, how good it is, and the importance of its columns, as far as they could be found."""

    subject: Subject
    evidence: Evidence | None = None
    importances: Importances | None = None

    @property
    def columns(self) -> list[str]:
        """The columns, the most important first where that is known."""
        known = self.importances
        return list(self.subject.table.names) if known is None else [column.name for column in known.columns]
