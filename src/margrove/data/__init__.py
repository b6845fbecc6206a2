"""Tables from files or from memory, with kinds of columns, missing cells and a target."""

from __future__ import annotations

from margrove.data.chunks import EncodedChunks, TableChunks, read_chunks
from margrove.data.columns import Column
from margrove.data.encoder import TableEncoder
from margrove.data.frames import as_table
from margrove.data.readers import load_penguins, read_table
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
