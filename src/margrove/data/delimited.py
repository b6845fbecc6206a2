"""CSV, TSV and their kin, parsed by pyarrow; a fault is then traced to its line by `fault`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from margrove.advice import Advice, Setting
from margrove.data.arrow import table_from_arrow
from margrove.data.columns import Column, clip
from margrove.data.dialect import CELL_LIMIT, NAMES, Dialect, sniff, squeezed
from margrove.data.fault import LineIndex, open_quote, trace
from margrove.data.frames import check_finite
from margrove.data.memory import CELL, check_memory
from margrove.data.source import Content, as_utf8, bad_byte, has_text
from margrove.data.table import Table, duplicate_names
from margrove.errors import InputError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")

BLOCK = 1 << 20  # bytes parsed at a time; with 2 MiB and more the 112 MB benchmark takes a fifth longer
_LARGE_BLOCK = 1 << 26  # bytes: longer than any row
DICTIONARY_LIMIT = 1000  # distinct texts per block; beyond, plain strings are quicker and encoded afterwards


def read_delimited(
    content: Content, *, header: bool | str, delimiter: str, encoding: str, missing: tuple[str, ...]
) -> tuple[Table, LineIndex]:
    """Read a delimited text file: the table without a target, and the line of each of its rows. Raise `InputError` if
    rows are ragged, a cell is too long, a quote is not closed, the encoding is wrong, names repeat, a number is
    infinite, or there are no rows."""
    content, dialect = _sniffed(content, header, delimiter, encoding, missing)
    lines = LineIndex(content, dialect)
    names = column_names(dialect, content.name)
    arrow = _parse(content, dialect, names, missing)
    if arrow.num_rows == 0:
        raise no_rows(content.name, dialect)
    _check_texts(arrow, content, dialect, lines)
    table = table_from_arrow(arrow, source=content.name, notes=_notes(dialect))
    check_finite(table, lines.of_row)
    return _without_unnamed(table, dialect), lines


def check_missing(missing: Sequence[str]) -> None:
    """Raise `ParameterError` if one word was given instead of a list of them."""
    if isinstance(missing, str):
        raise ParameterError(f"missing is {missing!r}; it must be a list of words, such as [{missing!r}].")


def written_cells(
    content: Content,
    names: Sequence[str],
    *,
    header: bool | str,
    delimiter: str,
    encoding: str,
    missing: tuple[str, ...],
) -> dict[str, list[str]]:
    """The cells of these columns of a sound delimited file as they are written: 0012 is no number here, nor is a
    date."""
    import pyarrow as pa
    import pyarrow.csv

    content, dialect = _sniffed(content, header, delimiter, encoding, missing)
    arrow = pyarrow.csv.read_csv(
        content.open(dialect.body),
        read_options=pyarrow.csv.ReadOptions(
            column_names=column_names(dialect, content.name), block_size=min(_LARGE_BLOCK, content.size + 1)
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=list(names), column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )
    return {name: arrow.column(name).to_pylist() for name in names}


def _sniffed(
    content: Content, header: bool | str, delimiter: str, encoding: str, missing: tuple[str, ...]
) -> tuple[Content, Dialect]:
    """The text in UTF-8, with one blank where several part the cells, and how it is to be parsed."""
    content = as_utf8(content, encoding)
    dialect = sniff(content, delimiter=delimiter, header=header, missing=missing)
    if dialect.delimiter != " ":
        return content, dialect
    content = content.replaced(squeezed(content.data))
    return content, sniff(content, delimiter=" ", header=header, missing=missing)


def column_names(dialect: Dialect, file: str) -> list[str]:
    """The names of the columns; one without a name is called by its place."""
    if not dialect.has_names:
        return [f"column_{place}" for place in range(1, dialect.n_columns + 1)]
    names = [name or f"column_{place}" for place, name in enumerate(dialect.names, start=1)]
    if len(set(names)) < len(names):
        raise duplicate_names(names, file=file, line=dialect.first_line)
    return names


def _parse(content: Content, dialect: Dialect, names: list[str], missing: tuple[str, ...]) -> pa.Table:
    """The rows as a pyarrow Table, or an `InputError` that names the line of the fault."""
    import pyarrow as pa

    n_lines = content.count_lines(dialect.body)
    # Every cell takes a byte of the text at least, also where line breaks in cells make lines look like rows.
    check_memory(CELL * min(n_lines * dialect.n_columns, content.size), content.name)
    longest = max((len(line) for line in content.head().splitlines()), default=0)
    block = max(BLOCK, 4 * longest)
    try:
        arrow = _read_csv(content.open(dialect.body), dialect, names, missing, block)
        # Cells with line breaks are rare, and to parse with them allowed takes a third longer. Parsed without
        # it, rows around a break at the end of a block may be lost without a word; but as every row ends a
        # line, none is lost if there are as many rows as lines. Otherwise there are breaks, or blank lines.
        if arrow.num_rows == n_lines or b'"' not in content.data:
            return arrow
    except pa.ArrowInvalid:
        pass  # with line breaks allowed it may be sound; if not, the fault shows again
    try:
        return _read_csv(content.open(dialect.body), dialect, names, missing, block, newlines_in_values=True)
    except pa.ArrowInvalid as error:
        reason = str(error)
    if not has_text(content.data[dialect.body :]):
        raise no_rows(content.name, dialect)
    fault = bad_byte(content) or trace(content, dialect)
    if fault is not None:
        raise fault
    if "straddl" not in reason:
        raise InputError(f"the file cannot be parsed ({clip(reason, 100)})", file=content.name)
    # Nothing is wrong but the length of the rows.
    return _read_csv(content.open(dialect.body), dialect, names, missing, content.size, newlines_in_values=True)


def parse_block(
    content: Content, dialect: Dialect, names: list[str], missing: tuple[str, ...], types: dict[str, pa.DataType] | None
) -> pa.Table:
    """Whole rows from the midst of a file as a pyarrow Table; ``types`` are those of its columns, None to guess them.
    Errors count the lines from the first of these rows, as 1."""
    import pyarrow as pa

    size = content.size + 1
    body = replace(dialect, names=(), body=0)
    try:
        arrow = _read_csv(content.open(0), body, names, missing, size, newlines_in_values=True, types=types)
    except pa.ArrowInvalid as error:
        fault = bad_byte(content) or trace(content, body)
        if fault is not None:
            raise fault from None
        raise InputError(f"the rows cannot be parsed ({clip(str(error), 100)})", file=content.name) from None
    if arrow.num_rows:
        _check_texts(arrow, content, body, LineIndex(content, body))
    return arrow


def no_rows(file: str, dialect: Dialect) -> InputError:
    """Return the error about a file that ends after its first line."""
    return InputError(
        "the file has column names but no rows",
        file=file,
        line=dialect.first_line,
        cure=Advice("If the first line is a row and not names, say ", Setting("header", False), "."),
    )


def _read_csv(
    body: pa.NativeFile,
    dialect: Dialect,
    names: list[str],
    missing: tuple[str, ...],
    block: int,
    *,
    newlines_in_values: bool = False,
    types: dict[str, pa.DataType] | None = None,
) -> pa.Table:
    import pyarrow.csv

    return pyarrow.csv.read_csv(
        body,
        read_options=pyarrow.csv.ReadOptions(column_names=names, block_size=block),
        parse_options=pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=newlines_in_values),
        convert_options=pyarrow.csv.ConvertOptions(
            # "1, ?, 3": pyarrow trims numbers but not the words for a missing one.
            null_values=[*missing, *(f" {marker}" for marker in missing)],
            strings_can_be_null=True,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
            decimal_point=dialect.decimal_point,
            column_types=types,
            auto_dict_encode=True,
            auto_dict_max_cardinality=DICTIONARY_LIMIT,
        ),
    )


def _check_texts(arrow: pa.Table, content: Content, dialect: Dialect, lines: LineIndex) -> None:
    """Refuse text that is not UTF-8, is too long, or was swallowed by a quote that is never closed."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    for name, chunks in zip(arrow.column_names, arrow.columns, strict=True):
        kind = chunks.type.value_type if kinds.is_dictionary(chunks.type) else chunks.type
        if kinds.is_binary(kind):
            # pyarrow falls back to bytes where a cell is not UTF-8.
            fault = bad_byte(content)
            assert fault is not None, f"pyarrow read column {name!r} as bytes, but the text is UTF-8"
            raise fault
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
        raise open_quote(content.name, lines.of_row(arrow.num_rows - 1), arrow.column_names[-1])


def _notes(dialect: Dialect) -> list[str]:
    said = [
        f"Line {dialect.first_line} holds the column names."
        if dialect.has_names
        else f"There are no column names: the columns are called column_1 to column_{dialect.n_columns}."
    ]
    if dialect.n_columns > 1 and dialect.delimiter != ",":
        said.append(f"The delimiter is the {NAMES.get(dialect.delimiter, repr(dialect.delimiter))}.")
    if dialect.decimal_point == ",":
        said.append("Numbers are written with a decimal comma.")
    return said


def _without_unnamed(table: Table, dialect: Dialect) -> Table:
    """Leave out columns without a name that carry nothing: row numbers in front, or empty cells only."""
    unnamed = [place for place, name in enumerate(dialect.names) if not name]
    useless = [place for place in unnamed if carries_nothing(table[table.names[place]], is_first=place == 0)]
    if not useless or len(useless) == table.n_columns:
        return table
    kept = table.select([name for place, name in enumerate(table.names) if place not in useless])
    said = "A column without a name that only numbers the rows, or is empty, is left out."
    return kept.with_target(None, said)


def carries_nothing(column: Column, *, is_first: bool, before: int = 0) -> bool:
    """Whether a column without a name only numbers the rows, of which ``before`` stand above these, or is empty."""
    if column.n_missing == len(column):
        return True
    if not is_first or column.kind != "numeric":
        return False
    start = column.values[0] - before
    return bool(start in (0, 1) and np.array_equal(column.values, start + before + np.arange(len(column))))
