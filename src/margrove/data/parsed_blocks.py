"""Parsed rows in a temporary file, which later passes over a text file read instead of the text.

Each block is an Arrow stream of its own in one temporary file, which has no name where the system allows it and is gone
with the process, however that ends. It is mapped into memory, so only what is being read takes any.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from margrove.errors import DataWarning, level_of_caller

if TYPE_CHECKING:
    import pyarrow as pa

FREE_SHARE = 0.5  # of the free disk that may be used at most
_OUT_OF_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ParsedBlocks:
    """Blocks of rows in a temporary file, which is given up if it takes more than ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self._ends = [0]
        self._types: list[dict[str, pa.DataType]] = []  # of the columns of each block
        self.is_given_up = most_bytes == 0
        self._file: Any = None
        if self.is_given_up:
            return
        try:
            folder = roomy_folder()
            self._most = min(most_bytes, int(FREE_SHARE * shutil.disk_usage(folder).free))
            self._file = tempfile.TemporaryFile(prefix="margrove-rows-", dir=folder)  # noqa: SIM115, open like self
            weakref.finalize(self, self._file.close)
        except OSError as error:
            self._give_up(f"There is no folder for temporary files ({error})")

    def add(self, arrow: pa.Table) -> None:
        """Write one more block, a pyarrow Table; nothing more once it has been given up."""
        import pyarrow as pa

        if self.is_given_up:
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, arrow.schema) as stream:
            stream.write_table(arrow)
        buffer = sink.getvalue()
        if self._ends[-1] + buffer.size > self._most:
            self._give_up()
            return
        try:
            self._file.write(buffer)
            self._file.flush()
        except OSError as error:
            if error.errno not in _OUT_OF_ROOM:
                raise
            self._give_up(f"The disk has no room to keep rows that were parsed ({error})")
            return
        self._ends.append(self._ends[-1] + buffer.size)
        self._types.append({field.name: field.type for field in arrow.schema})

    def _give_up(self, why: str = "") -> None:
        """Keep nothing, and warn if there is a reason."""
        self.is_given_up = True
        if self._file is not None:
            self._file.close()
        self._ends, self._types = [0], []
        if why:
            message = f"{why}: every walk over the file parses its text again."
            warnings.warn(message, DataWarning, stacklevel=level_of_caller())

    def can_become(self, types: Mapping[str, pa.DataType]) -> bool:
        """Return whether every block can be cast to these types as if its text had been parsed with them."""
        return not self.is_given_up and all(
            _is_like(block[name], kind) for block in self._types for name, kind in types.items()
        )

    def read(self, types: Mapping[str, pa.DataType]) -> Iterator[pa.Table]:
        """Yield the blocks as pyarrow Tables of these types."""
        import pyarrow as pa

        mapped = pa.py_buffer(mmap.mmap(self._file.fileno(), self._ends[-1], access=mmap.ACCESS_READ))
        schema = pa.schema(types.items())
        for start, end in zip(self._ends, self._ends[1:], strict=False):
            with pa.ipc.open_stream(pa.BufferReader(mapped.slice(start, end - start))) as stream:
                arrow = stream.read_all()
            columns = [_as_type(arrow.column(field.name), field.type) for field in schema]
            yield pa.Table.from_arrays(columns, schema=schema)


def roomy_folder() -> str:
    """Return a folder for large temporary files. ``/tmp`` may be in memory, ``/var/tmp`` is not; TMPDIR decides."""
    if os.environ.get("TMPDIR") or not os.access("/var/tmp", os.W_OK):
        return tempfile.gettempdir()
    return "/var/tmp"


def _is_like(found: pa.DataType, wanted: pa.DataType) -> bool:
    import pyarrow.types as kinds

    if found == wanted or kinds.is_null(found):
        return True
    if kinds.is_dictionary(wanted):
        return bool(kinds.is_string(found) or kinds.is_dictionary(found))
    return bool(kinds.is_integer(found) and kinds.is_floating(wanted))


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.types as kinds

    if column.type == kind:
        return column
    if kinds.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), kind)])
    if kinds.is_dictionary(kind):
        return column.dictionary_encode()
    return column.cast(kind, safe=False)  # a whole number beyond 2^53 becomes the nearest, as it is parsed
