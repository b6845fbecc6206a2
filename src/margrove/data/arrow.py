"""Tables from those of pyarrow, which CSV, pandas and polars tables are read through, and from Parquet and Arrow files
(a Feather file is an Arrow file). Imported only when needed: pyarrow takes a while to load."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from numpy.typing import NDArray

from margrove.advice import Advice, Row
from margrove.data.columns import MISSING, Column, Level, boolean_column, category_column, date_column, number_text
from margrove.data.dates import instants
from margrove.data.formats import NumberFormat
from margrove.data.frames import check_finite
from margrove.data.memory import check_memory
from margrove.data.source import Content, Format, damage_refused
from margrove.data.table import Table, duplicate_names
from margrove.errors import InputError, MissingExtraError

PANDAS_INDEX = "__index_level_0__"  # what pandas calls an index that it writes as a column
BATCH = 1 << 16  # rows of a Parquet file read at a time
EPOCH = "1970-01-01"
DAY_IN_SECONDS = 86_400


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
    notes = []
    with damage_refused(source, form.capitalize()):
        arrow = pa.Table.from_batches(batches)
        if PANDAS_INDEX in arrow.column_names:
            arrow = arrow.drop_columns([PANDAS_INDEX])
            notes.append("The index that pandas wrote into the file is left out.")
    table = table_from_arrow(*_without_lists(arrow, notes), source=source)
    check_finite(table)
    return table


def _without_lists(arrow: pa.Table, notes: Sequence[str] = ()) -> tuple[pa.Table, list[str]]:
    """Return the table without columns of lists or maps, if it has others, and the notes with one for each of them."""
    lists = [field.name for field in arrow.schema if kinds.is_nested(field.type) and not kinds.is_struct(field.type)]
    lists = lists if len(lists) < arrow.num_columns else []
    return arrow.drop_columns(lists), [*notes, *(f"Column {name!r} holds lists and is left out." for name in lists)]


def table_from_arrow(arrow: pa.Table, notes: Sequence[str] = (), *, source: str, is_valid: bool = False) -> Table:
    """Return a pyarrow Table as a `Table` without a target. Columns that are all numeric and of one float type become
    one block. ``is_valid``: pyarrow has made the table itself, so that it need not be checked."""
    with damage_refused(source, "Arrow"):
        names = [str(name) for name in arrow.column_names]
    if len(set(names)) < len(names):
        raise duplicate_names(names, file=source)
    is_date = {field.name: kinds.is_date(field.type) or kinds.is_timestamp(field.type) for field in arrow.schema}
    dates = [(field.name, getattr(field.type, "tz", None)) for field in arrow.schema if is_date[field.name]]
    times = [field.name for field in arrow.schema if kinds.is_time(field.type)]
    spans = [field.name for field in arrow.schema if kinds.is_duration(field.type)]
    notes = [
        *notes,
        *(f"Column {name!r} holds dates{'; their times are in UTC' if zone else ''}." for name, zone in dates),
        *(f"Column {name!r} holds times, read as hours." for name in times),
        *(f"Column {name!r} holds durations, read as days." for name in spans),
    ]
    floats = {_float_type(field.type) for field in arrow.schema}
    if names and len(floats) == 1 and None not in floats:
        # One row of `cells` per column: each is contiguous, and the block is the transpose, not a copy.
        cells = np.empty((arrow.num_columns, arrow.num_rows), dtype=floats.pop())
        for name, row, chunks in zip(names, cells, arrow.columns, strict=True):
            if not is_valid:
                _validate(name, chunks, source)
            row[:] = _numbers(chunks)
        return Table(block=cells.T, names=names, source=source, notes=notes)
    columns = []
    for name, chunks in zip(names, arrow.columns, strict=True):
        if not is_valid:
            _validate(name, chunks, source)
        with damage_refused(source, "Arrow", column=name):  # dates outside the calendar, unknown time zones
            columns.append(column_from_arrow(name, chunks, source=source))
    return Table(columns, source=source, notes=notes)


def table_from_cells(names: Sequence[str], columns: Sequence[Sequence[object]], *, source: str, **how: Any) -> Table:
    """Return columns of Python's values as `table_from_typed` does. Cells of several types become text."""
    arrays = []
    for name, cells in zip(names, columns, strict=False):  # without rows, there are no columns
        with damage_refused(source, "text", column=name):  # half of a surrogate pair
            try:
                arrays.append(pa.array(cells))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                for odd in (cell for cell in cells if isinstance(cell, (list, dict, bytes))):
                    raise _unreadable(name, pa.array([odd]).type, source) from None
                arrays.append(pa.array(list(map(_text, cells))))
    return table_from_typed(pa.table(arrays, list(names)[: len(arrays)]), source=source, **how)


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return number_text(cell) if type(cell) is float else json.dumps(cell)


def table_from_typed(
    arrow: pa.Table, *, source: str, missing: Sequence[str], line_of: Callable[[int], int] | None = None
) -> Table:
    """Return rows of JSON or of a database as a table without a target. An object in a cell becomes columns
    ``outer.inner``, and a column of lists is left out. In a column of text, the words for a missing cell are such
    cells, and a column of true and false has booleans, as in delimited text. Raise `InputError` if there are no rows or
    a number is infinite."""
    if arrow.num_rows == 0 or arrow.num_columns == 0:
        raise InputError("the table has no rows", file=source, cure="Was it fully written?")
    while any(map(kinds.is_struct, arrow.schema.types)):
        arrow = arrow.flatten()
    arrow, notes = _without_lists(arrow)
    for place, field in enumerate(arrow.schema):
        if kinds.is_string(field.type):
            texts = pc.utf8_trim_whitespace(arrow.column(place))
            texts = pc.if_else(pc.is_in(texts, pa.array(missing)), None, texts)
            truth = pc.equal(pc.utf8_lower(texts), "true")
            is_truth = pc.all(pc.or_(truth, pc.equal(pc.utf8_lower(texts), "false")), min_count=1).as_py()
            arrow = arrow.set_column(place, field.name, truth if is_truth else texts)
    table = table_from_arrow(arrow, notes, source=source)
    check_finite(table, line_of)
    return table


def _validate(name: str, chunks: pa.ChunkedArray, source: str) -> None:
    """Raise `InputError` unless the column is valid. pyarrow does not check offsets and codes when it reads a file, and
    would read outside the buffers."""
    start = 0
    for chunk in chunks.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowException as error:
            row = _row_of(str(error), chunk)
            cells = ("the cells",) if row is None else ("the cell in row ", Row(start + row))
            problem = Advice(*cells, f" cannot be read ({error})")
            cure = "Write the table again, with text in UTF-8."
            raise InputError(problem, file=source, column=name, cure=cure) from None
        start += len(chunk)


def _row_of(fault: str, chunk: pa.Array) -> int | None:
    """Return the row of the chunk that pyarrow's message names, or None."""
    place = re.search(r"(?:index|position|slot) (\d+)", fault)
    if place is None or not fault.startswith("Dictionary array"):
        return None if place is None else int(place[1])
    row = pc.index(chunk.indices, pa.scalar(int(place[1]), chunk.indices.type)).as_py()  # the place is a level's
    return None if row < 0 else int(row)


def column_from_arrow(name: str, chunks: pa.ChunkedArray, *, source: str | None = None) -> Column:
    """Return a pyarrow ChunkedArray as a `Column`."""
    kind = chunks.type
    float_type = _float_type(kind)
    if float_type is not None:
        # Several chunks become one array, which is new memory; that of one chunk is pyarrow's.
        has_own = chunks.num_chunks > 1
        return Column(name, "numeric", np.array(_numbers(chunks), dtype=float_type, copy=None if has_own else True))
    if kinds.is_boolean(kind):
        missing = pc.is_null(chunks).to_numpy() if chunks.null_count else None
        return boolean_column(name, pc.fill_null(chunks, False).to_numpy(), missing)
    if chunks.null_count and (kinds.is_dictionary(kind) or kinds.is_string_view(kind)):
        chunks = pa.chunked_array([_cleared(chunk) for chunk in chunks.chunks])
    if kinds.is_dictionary(kind):
        if kinds.is_nested(kind.value_type) or _is_binary(kind.value_type):
            raise _unreadable(name, kind.value_type, source)
        return _category(name, chunks.unify_dictionaries())
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        # String views have no dictionary encoding in pyarrow.
        texts = chunks.cast(pa.large_string()) if kinds.is_string_view(kind) else chunks
        return _category(name, texts.dictionary_encode())  # its chunks share one dictionary
    if kinds.is_date(kind) or kinds.is_timestamp(kind):
        return date_column(name, _days(chunks))
    if kinds.is_time(kind):
        return Column(name, "numeric", 24 * _days(chunks), format=NumberFormat(unit="h"))
    if kinds.is_duration(kind):
        return Column(name, "numeric", _days(chunks))
    raise _unreadable(name, kind, source)


def _cleared(chunk: pa.Array) -> pa.Array:
    """Return a dictionary array, or one of string views, with zeros in its null cells. The format allows any value in a
    null cell; pyarrow would follow it outside the buffers."""
    is_null = chunk.is_null().to_numpy(zero_copy_only=False)
    if kinds.is_dictionary(chunk.type):
        codes = pa.array(pc.fill_null(chunk.indices, 0).to_numpy(), mask=is_null)
        return pa.DictionaryArray.from_arrays(codes, chunk.dictionary)
    validity, views, *texts = chunk.buffers()
    cells = np.frombuffer(views, np.int64).reshape(-1, 2).copy()  # a view has 16 bytes
    cells[chunk.offset : chunk.offset + len(chunk)][is_null] = 0
    return pa.Array.from_buffers(chunk.type, len(chunk), [validity, pa.py_buffer(cells), *texts], offset=chunk.offset)


def _float_type(kind: pa.DataType) -> type[np.float32 | np.float64] | None:
    """Return the NumPy float type of a numeric pyarrow type, None for every other type."""
    if kinds.is_float32(kind) or kinds.is_float16(kind):
        return np.float32
    is_number = kinds.is_integer(kind) or kinds.is_float64(kind) or kinds.is_decimal(kind) or kinds.is_null(kind)
    return np.float64 if is_number else None


def _numbers(chunks: pa.ChunkedArray) -> NDArray[Any]:
    """Return a numeric column, nulls as NaN."""
    if kinds.is_null(chunks.type) or kinds.is_decimal(chunks.type):
        chunks = chunks.cast(pa.float64())
    numbers: NDArray[Any] = chunks.to_numpy()
    return numbers


def _days(chunks: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return dates, times and durations as days: since 1970-01-01, since midnight, or in all."""
    unit = getattr(chunks.type, "unit", "ms")
    if kinds.is_date(chunks.type):
        chunks, unit = chunks.cast(pa.timestamp("ms")), "ms"
    elif kinds.is_time32(chunks.type):
        chunks = chunks.cast(pa.int32())
    per_day = DAY_IN_SECONDS * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return _numbers(chunks.cast(pa.int64())) / per_day


def _category(name: str, unified: pa.ChunkedArray) -> Column:
    """Return a ChunkedArray whose chunks share a dictionary as a category, or as booleans."""
    combined = unified.combine_chunks()
    levels, indices = combined.dictionary, combined.indices
    if indices.null_count:  # polars' are unsigned, and have no -1
        indices = pc.fill_null(indices.cast(pa.int64()), MISSING)
    codes = indices.to_numpy()
    if kinds.is_boolean(levels.type):
        truth = np.array([*levels.to_pylist(), False], dtype=bool)
        return boolean_column(name, truth[codes], codes == MISSING)
    if not (kinds.is_string(levels.type) or kinds.is_large_string(levels.type)):
        return category_column(name, codes, [_readable(level) for level in levels.to_pylist()])
    # `category_column`, in pyarrow: a column of a million distinct texts is sorted in a moment.
    trimmed = pc.utf8_trim_whitespace(levels).dictionary_encode()
    order = pc.sort_indices(trimmed.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    recode = np.append(rank[trimmed.indices.to_numpy()], np.int32(MISSING))  # its last entry is that of the code -1
    return Column(name, "category", recode[codes], tuple(trimmed.dictionary.take(pa.array(order)).to_pylist()))


def _readable(level: object) -> Level:
    """Return a dictionary's value as a level: numbers as they are, dates and the rest as text."""
    return level if isinstance(level, (str, int, float)) else str(level)


def as_frame(table: Table, library: str) -> Any:
    """Return a table as a data frame of "pandas" or "polars", the target as its last column."""
    try:
        package = import_module(library)
    except ImportError as error:
        raise MissingExtraError(f"{library} is not installed: pip install {library}") from error
    check_memory(8 * table.n_rows * table.n_columns, table.source)
    columns = [*table, *([] if table.target is None else [table.target])]
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise duplicate_names(names, file=table.source)
    arrow = pa.table([_to_arrow(column, table.source) for column in columns], names=names)
    if library == "polars":
        return package.from_arrow(arrow)
    return arrow.to_pandas(types_mapper={pa.bool_(): package.BooleanDtype()}.get)


def _to_arrow(column: Column, source: str) -> pa.Array:
    """Return a column with nulls for its missing cells."""
    is_missing = column.is_missing
    if column.kind == "category":
        codes = pa.array(column.values, mask=is_missing)
        return pa.DictionaryArray.from_arrays(
            codes, pa.array(column.levels, pa.string() if not column.levels else None)
        )
    if not column.is_date:
        return pa.array(column.values.astype(bool) if column.kind == "boolean" else column.values, mask=is_missing)
    moments = instants(column.values)
    if (is_beyond := np.isnat(moments) & ~is_missing).any():
        row = int(np.argmax(is_beyond))
        problem = Advice(
            f"{column.values[row]:g} days since {EPOCH}, in row ", Row(row), ", are no date of a data frame"
        )
        raise InputError(problem, file=source, column=column.name, cure="Correct the cell.")
    return pa.array(moments, mask=is_missing)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind))


def _unreadable(name: str, kind: pa.DataType, source: str | None) -> InputError:
    problem = f"the cells are of type {kind}; numbers, text, booleans or dates were expected"
    cure = "Split them into several columns, or leave the column out."
    if _is_binary(kind):
        problem, cure = "the cells are raw bytes", "Decode them to text, or leave the column out."
    return InputError(problem, file=source, column=name, cure=cure)
