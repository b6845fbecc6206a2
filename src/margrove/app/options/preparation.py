"""The way from a table to numbers: its columns of free text (``--text COL``, ``--text-features``), and scaling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from margrove.app.options.menu import Choice, choices
from margrove.data import Table, TableEncoder
from margrove.data.inspection import is_identifier
from margrove.data.text import TEXT_FEATURES, check_text_columns
from margrove.errors import InputError, ParameterError, check_choice


@dataclass(frozen=True)
class Preparation:
    """The options of the encoder; `ParameterError` if a column is named twice, or there is no such choice."""

    text: tuple[str, ...] = ()  # columns of free text
    features: str = TEXT_FEATURES[0]  # what becomes of their words
    is_scaled: bool = True  # numbers are standardised

    def __post_init__(self) -> None:
        for name in self.text:
            if self.text.count(name) > 1:
                raise ParameterError(f"--text {name} is given twice.")
        check_choice("--text-features", self.features, TEXT_FEATURES)
        if not self.text and self.features != TEXT_FEATURES[0]:
            raise ParameterError(f"--text-features {self.features} goes with --text, which names the column.")

    def encoder(self) -> TableEncoder:
        """Return the unfitted encoder."""
        return TableEncoder(text=list(self.text) or None, text_features=self.features, standardise=self.is_scaled)

    def in_front_of(self, learner: Choice, estimator: Any) -> Any:
        """Return the model: an encoder, then the estimator, unless the learner takes tables as they are."""
        from sklearn.pipeline import Pipeline

        return estimator if learner.takes_tables else Pipeline([("encode", self.encoder()), ("learn", estimator)])

    def for_table(self, learner: Choice, table: Table) -> Preparation:
        """Return the same for this table: a learner that keeps sparse numbers gets them as they are."""
        return replace(self, is_scaled=False) if learner.keeps_sparse and table.sparse is not None else self

    def check_learner(self, learner: Choice) -> None:
        """Refuse text where there is no encoder in front of the learner."""
        if self.text and learner.takes_tables:
            able = ", ".join(name for name, other in choices().items() if not other.takes_tables)
            raise ParameterError(
                f"--text makes a number of each word, and {learner.name} asks of columns as they are. What takes text: "
                f"--model {able}."
            )

    def check_table(self, table: Table, without: tuple[str, ...] = ()) -> None:
        """Refuse, before anything is learned, columns that are not there or hold no text."""
        for name in self.text:
            if name in without:
                raise InputError(
                    "is named by --text and by --without", file=table.source, column=name, cure="Leave out one of them."
                )
        check_text_columns(table, self.text)

    def less_text(self, table: Table) -> Table:
        """Return the table without its columns of text, for a learner that cannot take them."""
        if not self.text:
            return table
        names = [name for name in table.names if name not in self.text]
        if not names:
            raise InputError("all columns are text", file=table.source, cure="Choose a learner that takes text.")
        return table.select(names)


AS_USUAL = Preparation()


def table_for(learner: Choice, table: Table) -> Table:
    """Return the table for a learner: without an encoder, which would do that, columns that name the rows go."""
    if not learner.takes_tables or table.sparse is not None or table.block is not None:
        return table
    names = [column.name for column in table if not is_identifier(column)]
    if not names:
        problem = "no column is left to learn from: each names the rows"
        raise InputError(problem, file=table.source, cure="Add columns that say something of several rows.")
    return table.select(names) if len(names) < table.n_columns else table
