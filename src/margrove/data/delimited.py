"""CSV, TSV and their kin, parsed by pyarrow; `dialect` then finds the line of a fault. Imported only when needed."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as kinds

from margrove.advice import Advice, Setting
from margrove.data.arrow import column_from_arrow, table_from_arrow
from margrove.data.codepage import guess_encoding
from margrove.data.columns import Column, clip
from margrove.data.dialect import CELL_LIMIT, Dialect, TextOptions, line_of_row, open_quote, trace
from margrove.data.frames import check_finite
from margrove.data.header import filled
from margrove.data.inference import infer_columns
from margrove.data.memory import CELL, check_memory
from margrove.data.source import Content, NotUTF8Error, as_utf8, bad_byte
from margrove.data.table import Table
from margrove.data.tidy import tidied
from margrove.data.usual import TOTAL
from margrove.errors import InputError

BLOCK = 1 << 20  # bytes parsed at a time; with 2 MiB and more the 112 MB benchmark takes a fifth longer
_LARGE_BLOCK = 1 << 26  # bytes: longer than any row
_PIECES, _PIECE = 64, 1 << 12  # pieces of a long file that are searched for codes, and their bytes
SHORT = 1 << 16  # bytes; in a file up to this each row is looked at
_NONE = re.compile(rb"(?m)(?:^|[,;|\t\"])None(?:[,;|\t\"\r]|$)")
REPORT = 1 << 22  # bytes; in a longer file no sums stand between the rows
_TAIL = 1 << 12  # bytes at the end of a file that are looked at for what is no row
DICTIONARY_LIMIT = 1000  # distinct texts per block; beyond, plain strings are quicker and encoded afterwards


class Rows:
    """The rows of a delimited file as they are written."""

    def __init__(self, content: Content, dialect: Dialect) -> None:
        self.content, self.dialect = content, dialect

    def line(self, row: int) -> int:
        """Return the line of the file on which a row, counted from 0, begins."""
        return line_of_row(self.content, self.dialect, row)

    def cells(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Return the cells of these columns as they are written: 0012 stays 0012."""
        arrow = self._as_text(names, strings_can_be_null=False)
        return {name: arrow.column(name).to_pylist() for name in names}

    def columns(self, names: Sequence[str]) -> dict[str, Column]:
        """Return these columns as text, without the missing cells."""
        arrow = self._as_text(names)
        return {name: column_from_arrow(name, arrow.column(name)) for name in names}

    def _as_text(self, names: Sequence[str], **convert: Any) -> pa.Table:
        block = min(_LARGE_BLOCK, self.content.size + 1)
        texts = {"include_columns": names, "column_types": dict.fromkeys(names, pa.string())}
        body = self.content.open(self.dialect.body)
        return _read_csv(body, self.dialect, block, newlines_in_values=True, **texts, **convert)

    @cached_property
    def has_points(self) -> bool:
        """Whether cells of a short file may have points between thousands: 12.500."""
        data = self.content.data if self.content.size <= REPORT else b""
        signs = np.frombuffer(data, np.uint8)
        is_digit = signs - ord("0") < 10
        if not ((signs[:-3] == ord(".")) & is_digit[1:-2] & is_digit[2:-1] & is_digit[3:]).any():
            return False
        return re.search(rb"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,])", data) is not None

    def has_leading_zeros(self) -> bool:
        """Return whether a cell begins with a zero and a digit, or with 12E4; of a long file, pieces all over it are
        searched."""
        code = re.compile(rb'[\r\n"' + re.escape(self.dialect.delimiter.encode()) + rb"] *(?:0\d|\d\d+[eE]\d)")
        start, size = max(0, self.dialect.body - 1), self.content.size
        if start == 0 and code.match(b"\n" + self.content.head(_PIECE)):  # the first cell of all
            return True
        if size <= REPORT:
            data = self.content.data
            return _may_have_codes(data, self.dialect.delimiter) and code.search(data, start) is not None
        file = self.content.open(0)
        for begin in np.linspace(start, size - _PIECE, _PIECES).astype(int).tolist():
            file.seek(begin)
            if code.search(file.read(_PIECE)):
                return True
        return False


def _may_have_codes(data: bytes, delimiter: str) -> bool:
    """Return whether a zero before a digit begins a cell, or an E stands between digits. Takes a tenth of the time of a
    regular expression."""
    signs = np.frombuffer(data, np.uint8)
    is_digit, before, here = signs - ord("0") < 10, signs[:-2], signs[1:-1]
    begins = np.zeros(256, dtype=bool)
    begins[list(b'\r\n" ' + delimiter.encode())] = True
    may_be_padded = begins[before] & (here == ord("0"))
    may_have_power = is_digit[:-2] & (here | 0x20 == ord("e"))
    return bool(((may_be_padded | may_have_power) & is_digit[2:]).any())


def read_delimited(content: Content, options: TextOptions) -> tuple[Table, Rows]:
    """Read a delimited text file: the table without a target, and its rows as written. Raise `InputError` if rows are
    ragged, a cell is too long, a quote is not closed, the encoding is wrong, a number is infinite, or there are no
    rows."""
    try:
        return _read_text(as_utf8(content, options.encoding), options)
    except NotUTF8Error:
        encoding = guess_encoding(content.data) if options.encoding == "auto" else None
        if encoding is None:
            raise
    words = f"The text is not UTF-8; it was read as {encoding}. If letters look wrong, set "
    note = Advice(words, Setting("encoding", ...), ".")
    return _read_text(content.replaced(content.data.decode(encoding).encode(), note), options)


def _read_text(content: Content, options: TextOptions) -> tuple[Table, Rows]:
    arrow, content, dialect = _parse(*options.sniffed(content))
    if arrow.num_rows == 0:
        raise no_rows(content, dialect)
    _check_texts(arrow, content, dialect)
    notes = [*filter(None, [content.note]), *dialect.notes]
    if content.size <= REPORT and "None" in dialect.missing and b"None" in content.data and _NONE.search(content.data):
        notes.append("Cells 'None' are read as missing.")
    table = table_from_arrow(arrow, source=content.name, notes=notes, is_valid=True)
    rows = Rows(content, dialect)
    check_finite(table, rows.line)
    table = infer_columns(_without_unnamed(table, dialect), options.kinds, rows, rows.line)
    return table, rows


def _parse(content: Content, dialect: Dialect) -> tuple[pa.Table, Content, Dialect]:
    """Return the rows as a pyarrow Table, and the text they stand in, which is tidied if need be. Raise an `InputError`
    that names the line of a fault."""
    n_lines = content.count_lines(dialect.body)
    # Every cell takes a byte of the text at least, also where line breaks in cells make lines look like rows.
    check_memory(CELL * min(n_lines * len(dialect.columns), content.size), content.name)
    longest = max((len(line) for line in content.head().splitlines()), default=0)
    block = max(BLOCK, 4 * longest)
    arrow, reason = _parse_fast(content, dialect, block, n_lines)
    if arrow is not None and (arrow.num_columns == 1 or not _may_be_untidy(arrow, content, dialect, n_lines)):
        return arrow, content, dialect
    if not content.data[dialect.body :].strip():
        raise no_rows(content, dialect)
    fault = bad_byte(content)
    if fault is not None:
        raise fault
    tidy = tidied(content, dialect)
    if tidy is not None:
        content, dialect = tidy
        if not content.data:
            raise no_rows(content, dialect)
    elif arrow is not None:
        return arrow, content, dialect
    elif "straddl" not in reason:
        raise content.error(f"the file cannot be parsed ({clip(reason, 100)})")
    # One block: rows may be longer than the usual one.
    return _read_csv(content.open(dialect.body), dialect, content.size + 1, newlines_in_values=True), content, dialect


def _parse_fast(content: Content, dialect: Dialect, block: int, n_lines: int) -> tuple[pa.Table | None, str]:
    """Return the rows as a pyarrow Table, or None and the reason if there is a fault."""
    try:
        arrow = _read_csv(content.open(dialect.body), dialect, block)
        # Cells with line breaks are rare, and to parse with them allowed takes a third longer. Parsed without
        # it, rows around a break at the end of a block may be lost silently; but as every row ends a
        # line, none is lost if there are as many rows as lines. Otherwise there are breaks, or blank lines.
        if arrow.num_rows == n_lines or b'"' not in content.data:
            return arrow, ""
    except pa.ArrowInvalid:
        pass  # with line breaks allowed it may be sound; if not, the fault shows again
    try:
        return _read_csv(content.open(dialect.body), dialect, block, newlines_in_values=True), ""
    except pa.ArrowInvalid as error:
        return None, str(error)


def _may_be_untidy(arrow: pa.Table, content: Content, dialect: Dialect, n_lines: int) -> bool:
    """Return whether lines may be no rows: in a file of more than `SHORT` bytes, by few signs."""
    if content.size <= SHORT or is_untidy(arrow, content, dialect) or is_tail_untidy(content, dialect):
        return True
    # Below a blank line between the rows another table may begin.
    has_blank = arrow.num_rows < n_lines and content.size <= REPORT
    return has_blank and re.search(rb"\n\r?\n", content.data.strip()) is not None


def is_untidy(arrow: pa.Table, content: Content, dialect: Dialect) -> bool:
    """Return whether a row may be blank, the column names again or, in a short file, a sum: `tidied` looks at each."""
    if arrow.num_columns < 2 or arrow.num_rows == 0:
        return False
    columns = sorted(arrow.columns, key=lambda column: column.null_count)
    if columns[0].null_count:
        blank = pc.is_null(columns[0])
        for column in columns[1:]:
            blank = pc.and_(blank, pc.is_null(column))
            if not pc.any(blank).as_py():
                break
        else:
            return True
    names = list(zip(dialect.header, arrow.columns, strict=False))
    if dialect.has_names and all(_is_among(column, name) for name, column in names if name.strip()):
        return True
    for column in arrow.columns if content.size <= REPORT else ():  # the first cell of a row says that it is a sum
        parts = column.chunks if kinds.is_dictionary(column.type) else ()
        if any(pc.any(pc.match_substring_regex(part.dictionary, TOTAL)).as_py() for part in parts):
            return True
        if column.null_count == 0:
            break
    return False


def _is_among(column: pa.ChunkedArray, text: str) -> bool:
    is_coded = kinds.is_dictionary(column.type)
    if not kinds.is_string(column.type.value_type if is_coded else column.type):
        return False
    return any(pc.index(part.dictionary if is_coded else part, text).as_py() >= 0 for part in column.chunks)


def is_tail_untidy(content: Content, dialect: Dialect) -> bool:
    """Return whether the last line is mostly empty, or called a total or nothing: it may be no row."""
    lines = content.tail(_TAIL).decode(errors="replace").rstrip().splitlines()
    cells = next(csv.reader(lines[-1:], delimiter=dialect.delimiter), [])
    label = next((cell for cell in cells if cell.strip()), "")
    is_called = re.search(TOTAL, label) is not None or (content.size <= REPORT and label not in cells[:1])
    return len(dialect.columns) > 1 and (2 * filled(cells) <= dialect.typical or is_called)


def parse_block(content: Content, dialect: Dialect, types: dict[str, pa.DataType] | None) -> pa.Table:
    """Return whole rows from the middle of a file as a pyarrow Table; ``types`` are those of its columns, None to guess
    them. Errors count the lines from the first of these rows, as 1."""
    try:
        arrow = _read_csv(content.open(0), dialect, content.size + 1, newlines_in_values=True, column_types=types)
    except pa.ArrowInvalid as error:
        fault = bad_byte(content) or trace(content, dialect)
        raise (fault or content.error(f"the rows cannot be parsed ({clip(str(error), 100)})")) from None
    if arrow.num_rows:
        _check_texts(arrow, content, dialect)
    return arrow


def no_rows(content: Content, dialect: Dialect) -> InputError:
    """Return the error about a file that ends after its first line."""
    cure = Advice("If the first line is a row of data and not column names, set ", Setting("header", False), ".")
    return content.error("the file has column names but no rows", line=dialect.first_line, cure=cure)


def _read_csv(
    body: pa.NativeFile, dialect: Dialect, block: int, *, newlines_in_values: bool = False, **convert: Any
) -> pa.Table:
    options: dict[str, Any] = {
        # "1, ?, 3": pyarrow trims numbers but not the words for a missing one.
        "null_values": [*dialect.missing, *(f" {marker}" for marker in dialect.missing)],
        "strings_can_be_null": True,
        "true_values": ["true", "True", "TRUE"],
        "false_values": ["false", "False", "FALSE"],
        "decimal_point": dialect.decimal_point,
        "auto_dict_encode": True,
        "auto_dict_max_cardinality": DICTIONARY_LIMIT,
    }
    return pyarrow.csv.read_csv(
        body,
        read_options=pyarrow.csv.ReadOptions(column_names=dialect.columns, block_size=block),
        parse_options=pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=newlines_in_values),
        convert_options=pyarrow.csv.ConvertOptions(**(options | convert)),
    )


def _check_texts(arrow: pa.Table, content: Content, dialect: Dialect) -> None:
    """Refuse text that is not UTF-8, is too long, or was swallowed by a quote that is never closed."""
    for name, chunks in zip(arrow.column_names, arrow.columns, strict=True):
        kind = chunks.type.value_type if kinds.is_dictionary(chunks.type) else chunks.type
        if kinds.is_binary(kind):
            # pyarrow falls back to bytes where a cell is not UTF-8.
            wrong = bad_byte(content)
            assert wrong is not None, f"pyarrow read column {name!r} as bytes, but the text is UTF-8"
            raise wrong
        if not kinds.is_string(kind):
            continue
        for chunk in chunks.chunks:
            texts = chunk.dictionary if kinds.is_dictionary(chunks.type) else chunk
            longest = pc.max(pc.binary_length(texts)).as_py()
            if longest is not None and longest > CELL_LIMIT:
                fault = trace(content, dialect)
                assert fault is not None, f"a cell of {longest} bytes in column {name!r} was not found again"
                raise fault
    last = arrow.column(arrow.num_columns - 1)[-1].as_py()
    if isinstance(last, str) and "\n" in last and not content.data.rstrip().endswith(b'"'):
        # Only an open quote takes line breaks up to the very end.
        raise open_quote(content, line_of_row(content, dialect, arrow.num_rows - 1), arrow.column_names[-1])


def _without_unnamed(table: Table, dialect: Dialect) -> Table:
    """Leave out unnamed columns that carry nothing: row numbers in front, or empty cells only."""
    kept = [
        column.name
        for place, column in enumerate(table)
        if column.name not in dialect.unnamed or not carries_nothing(column, is_first=place == 0)
    ]
    if len(kept) in (0, table.n_columns):
        return table
    note = "An unnamed column that is empty or only numbers the rows is left out."
    return table.select(kept).with_target(None, note)


def carries_nothing(column: Column, *, is_first: bool, before: int = 0) -> bool:
    """Return whether an unnamed column is empty or only numbers the rows, of which ``before`` stand above these."""
    if column.n_missing == len(column):
        return True
    if not is_first or column.kind != "numeric":
        return False
    start = column.values[0] - before
    return bool(start in (0, 1) and np.array_equal(column.values, start + before + np.arange(len(column))))
