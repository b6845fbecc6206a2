"""Parquet and Arrow files, read by pyarrow; a Feather file is an Arrow file."""

from __future__ import annotations

from typing import Any

from margrove.data.arrow import table_from_arrow
from margrove.data.columns import clip
from margrove.data.frames import check_finite
from margrove.data.source import Content, Format
from margrove.data.table import Table
from margrove.errors import InputError

PANDAS_INDEX = "__index_level_0__"  # what pandas calls an index that it writes as a column


def read_columnar(content: Content, form: Format) -> Table:
    """Read a Parquet, Feather or Arrow file: the table without a target.

    Raises
    ------
    InputError
        If the file is damaged, has no rows, or a column cannot be read.
    """
    import pyarrow as pa

    try:
        arrow = _read(content, form)
    except (pa.ArrowException, OSError) as error:
        # pa.ArrowException covers what is malformed, OSError what ends too early.
        reason = clip(str(error).rstrip("."), 100)
        name = form.capitalize()
        problem = f"the {name} file is damaged or cut short ({reason})"
        raise InputError(problem, file=content.name, cure="Write or download it again.") from None
    if arrow.num_rows == 0:
        raise InputError("the file has columns but no rows", file=content.name, cure="Was it fully written?")
    notes = []
    if PANDAS_INDEX in arrow.column_names:
        arrow = arrow.drop_columns([PANDAS_INDEX])
        notes.append("The index that pandas wrote into the file is left out.")
    table = table_from_arrow(arrow, source=content.name, notes=notes)
    check_finite(table)
    return table


def _read(content: Content, form: Format) -> Any:
    import pyarrow as pa

    buffer = content.open(0)
    if form == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(buffer)
    if form == "arrow":
        return pa.ipc.open_file(buffer).read_all()
    return pa.ipc.open_stream(buffer).read_all()
