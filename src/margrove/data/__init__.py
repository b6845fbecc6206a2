"""A table comes in: from a file or from memory, with its kinds, its missing cells and its target."""

from __future__ import annotations

from margrove.data.chunks import EncodedChunks, TableChunks, read_chunks
from margrove.data.columns import Column
from margrove.data.encoder import TableEncoder
from margrove.data.frames import as_table
from margrove.data.penguins import load_penguins
from margrove.data.readers import read_table
from margrove.data.table import Table

__all__ = [
    "Column",
    "EncodedChunks",
    "Table",
    "TableChunks",
    "TableEncoder",
    "as_table",
    "load_penguins",
    "read_chunks",
    "read_table",
]
