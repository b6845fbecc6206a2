"""Tables from files or from memory, with kinds of columns, missing cells and a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from margrove.learner import loaded

if TYPE_CHECKING:
    from margrove.data.chunks import EncodedChunks as EncodedChunks
    from margrove.data.chunks import TableChunks as TableChunks
    from margrove.data.chunks import read_chunks as read_chunks
    from margrove.data.columns import Column as Column
    from margrove.data.encoder import TableEncoder as TableEncoder
    from margrove.data.frames import as_table as as_table
    from margrove.data.readers import load_penguins as load_penguins
    from margrove.data.readers import read_table as read_table
    from margrove.data.table import Table as Table

_PLACES = {
    "Column": "columns",
    "EncodedChunks": "chunks",
    "Table": "table",
    "TableChunks": "chunks",
    "TableEncoder": "encoder",
    "as_table": "frames",
    "load_penguins": "readers",
    "read_chunks": "chunks",
    "read_table": "readers",
}
__all__ = [*_PLACES]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return loaded(f"margrove.data.{_PLACES[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
