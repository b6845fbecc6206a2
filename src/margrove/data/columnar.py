"""Parquet and Arrow files, read by pyarrow; a Feather file is an Arrow file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from margrove.data.arrow import table_from_arrow
from margrove.data.frames import check_finite
from margrove.data.memory import check_memory
from margrove.data.source import Content, Format, damage_refused
from margrove.data.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

PANDAS_INDEX = "__index_level_0__"  # what pandas calls an index that it writes as a column
BATCH = 1 << 16  # rows of a Parquet file read at a time


def read_columnar(content: Content, form: Format) -> Table:
    """Read a Parquet, Feather or Arrow file: the table without a target. Raise `InputError` if the file is damaged, has
    no rows, does not fit in memory, or a column cannot be read."""
    batches, n_rows, n_bytes = [], 0, 0
    for batch in columnar_batches(content, form):
        batches.append(batch)
        n_rows += batch.num_rows
        n_bytes += batch.get_total_buffer_size()
        # The table needs as much again, at least 8 bytes per cell.
        check_memory(max(n_bytes, 8 * n_rows * batch.num_columns), content.name)
    if n_rows == 0:
        raise content.error("the file has columns but no rows", cure="Was it fully written?")
    return table_from_batches(batches, content.name, form)


def columnar_batches(content: Content, form: Format, rows: int = BATCH) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a file, not yet validated; those of a Parquet file have at most so many rows."""
    import pyarrow as pa

    with damage_refused(content.name, form.capitalize()):
        buffer = content.open(0)
        if form == "parquet":
            import pyarrow.parquet

            yield from pyarrow.parquet.ParquetFile(buffer).iter_batches(batch_size=rows)
        elif form == "arrow":
            reader = pa.ipc.open_file(buffer)
            yield from (reader.get_batch(place) for place in range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(buffer)


def table_from_batches(batches: list[pa.RecordBatch], source: str, form: Format) -> Table:
    """Return record batches of a file as a table without a target, and without the index that pandas wrote."""
    import pyarrow as pa

    notes = []
    with damage_refused(source, form.capitalize()):
        arrow = pa.Table.from_batches(batches)
        if PANDAS_INDEX in arrow.column_names:
            arrow = arrow.drop_columns([PANDAS_INDEX])
            notes.append("The index that pandas wrote into the file is left out.")
    table = table_from_arrow(arrow, source=source, notes=notes)
    check_finite(table)
    return table
