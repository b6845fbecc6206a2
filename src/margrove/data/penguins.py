"""The Palmer penguins, embedded, so that there is always a real table at hand.

344 penguins of three species on three islands. Collected by Kristen Gorman and the Palmer Station, Antarctica
LTER; released by Horst, Hill and Gorman in the R package palmerpenguins (2020) under CC0.
"""

from __future__ import annotations

from pathlib import Path

from margrove.data.readers import read_table
from margrove.data.table import Table


def load_penguins() -> Table:
    """The Palmer penguins: 344 rows, seven features of all kinds with missing cells, three species.

    Returns
    -------
    Table

    Examples
    --------
    >>> from margrove.data import load_penguins
    >>> penguins = load_penguins()
    >>> [(column.name, column.kind) for column in penguins][:2]
    [('island', 'category'), ('bill_length_mm', 'numeric')]
    >>> sum(column.n_missing for column in penguins)
    19
    """
    table = read_table(Path(__file__).with_name("penguins.csv"), target="species")
    return table.renamed(table.names, source="Palmer penguins")
