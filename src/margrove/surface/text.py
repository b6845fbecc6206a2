"""Columns of free text on the command line: ``--text COL`` and ``--text-features``."""

from __future__ import annotations

from dataclasses import dataclass

from margrove.data import Table, TableEncoder
from margrove.data.text import TEXT_FEATURES, check_text_columns
from margrove.errors import InputError, ParameterError
from margrove.surface.learners import LEARNERS, Learner


@dataclass(frozen=True)
class TextOptions:
    """What the options say about columns of free text.

    Raises
    ------
    ParameterError
        If a column is named twice, or there is no such way to make numbers of words.
    """

    columns: tuple[str, ...] = ()
    features: str = TEXT_FEATURES[0]

    def __post_init__(self) -> None:
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise ParameterError(f"--text {name} is given twice.")
        if self.features not in TEXT_FEATURES:
            raise ParameterError(f"--text-features is {self.features!r}; it must be one of {', '.join(TEXT_FEATURES)}.")
        if not self.columns and self.features != TEXT_FEATURES[0]:
            raise ParameterError(f"--text-features {self.features} goes with --text, which names the column.")

    def encoder(self) -> TableEncoder:
        """What makes numbers of a table, unfitted."""
        return TableEncoder(text=list(self.columns) or None, text_features=self.features)

    def check_learner(self, learner: Learner) -> None:
        """Refuse a learner that takes tables as they are: there is no encoder in front of it.

        Raises
        ------
        ParameterError
            Naming those that take text.
        """
        if self.columns and learner.takes_tables:
            able = ", ".join(name for name, other in LEARNERS.items() if not other.takes_tables)
            raise ParameterError(
                f"--text makes a number of each word, and {learner.name} asks of columns as they are. What takes text: "
                f"--model {able}."
            )

    def check_table(self, table: Table, without: tuple[str, ...] = ()) -> None:
        """Refuse, before anything is learned, columns that are not there or hold no text.

        Raises
        ------
        InputError
            Naming the column.
        """
        for name in self.columns:
            if name in without:
                raise InputError(
                    "is named by --text and by --without", file=table.source, column=name, cure="Leave out one of them."
                )
        check_text_columns(table, self.columns)

    def less_text(self, table: Table) -> Table:
        """The table without its columns of text, for a learner that cannot take them.

        Raises
        ------
        InputError
            If no other column is there.
        """
        if not self.columns:
            return table
        names = [name for name in table.names if name not in self.columns]
        if not names:
            raise InputError("all columns are text", file=table.source, cure="Choose a learner that takes text.")
        return table.select(names)


NO_TEXT = TextOptions()
