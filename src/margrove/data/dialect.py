"""The dialect of a delimited file: its delimiter, its decimal point, its column names; and the line of a fault.

The dialect is judged on the head of the file. The delimiter is the character that cuts the lines into the same
number of cells, two at least. The first line holds names when it is unlike what stands below it: text above a
column of numbers, or, where all is text, words that never come again in their own columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice

from margrove.advice import Advice, Parameter
from margrove.data.columns import clip
from margrove.data.inference import Kinds
from margrove.data.source import HEAD, Content, bad_byte
from margrove.data.table import duplicate_names
from margrove.errors import InputError, ParameterError, check_choice

# The delimiters, from the most telling to the least: commas and spaces occur in text.
NAMES = {"\t": "tab", ";": "semicolon", "|": "bar", ",": "comma", " ": "space"}
_SPREADSHEET_ERRORS = ("#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#NULL!")
DEFAULT_MISSING = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"),
    *_SPREADSHEET_ERRORS,
)
CELL_LIMIT = 1 << 20  # bytes; no cell of a table is longer on purpose, but an unclosed quote makes one
HEAD_ROWS = 200  # rows that are looked at; a column that changes its nature later is rare

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?inf(inity)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")
_OTHER_TYPED = re.compile(r"true|false|\d{4}-\d\d-\d\d([ T].*)?|\d\d:\d\d(:\d\d)?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """The format of a delimited file."""

    delimiter: str
    decimal_point: str
    has_names: bool  # in the first line
    columns: tuple[str, ...]  # their names; of a column without one, column_1, column_2, …
    unnamed: frozenset[str]  # the columns that have no name, in a file that has names
    missing: Collection[str]  # what missing cells look like
    first_line: int  # of the first record, counted from 1; blank lines may stand above it
    body: int  # the offset in bytes at which the rows begin, after the names


@dataclass(frozen=True)
class TextOptions:
    """The parameters of `read_table` that say how a text file is written."""

    header: bool | str = "auto"
    delimiter: str = "auto"
    encoding: str = "auto"
    missing: Sequence[str] = DEFAULT_MISSING
    kinds: Kinds = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.missing, str):
            raise ParameterError(
                f"missing is {self.missing!r}; it must be a list of strings, such as [{self.missing!r}]."
            )

    def sniffed(self, content: Content) -> tuple[Content, Dialect]:
        """Return a text in UTF-8, its cells separated by single characters, and its dialect."""
        dialect = sniff(content, delimiter=self.delimiter, header=self.header, missing=self.missing)
        if dialect.delimiter == " ":
            content = content.replaced(squeezed(content.data))
            dialect = sniff(content, delimiter=" ", header=self.header, missing=self.missing)
        if len(set(dialect.columns)) < len(dialect.columns):
            raise duplicate_names(dialect.columns, file=content.name, line=dialect.first_line)
        return content, dialect


def records(text: io.TextIOBase, delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield the records that are not blank, each with its first line, counted from 1, and the line after it. Python's
    own parser is an order slower than pyarrow's, but it knows the lines."""
    reader = csv.reader(text, delimiter=delimiter)
    line = 1
    for cells in reader:
        if cells:
            yield line, reader.line_num + 1, cells
        line = reader.line_num + 1


def sniff(content: Content, *, delimiter: str, header: bool | str, missing: Collection[str]) -> Dialect:
    """Return the dialect of a text in UTF-8. The extension of its name is a hint: ".tsv" is cut at tabs only."""
    if delimiter != "auto" and (len(delimiter.encode()) != 1 or delimiter in '"\r\n'):
        words = f" is {delimiter!r}; it must be one character, such as ',' or '\\t'."
        raise ParameterError(Advice(Parameter("delimiter"), words))
    check_choice("header", header, (True, False, "auto"))
    head = _head(content)
    chosen = _find_delimiter(head, content.extension) if delimiter == "auto" else delimiter
    rows = _rows(head, chosen)
    if not rows:
        problem = f"a cell of the first row is longer than {CELL_LIMIT >> 20} MiB, the limit for one cell"
        raise content.error(problem, line=1, cure="Check that it is a table; if its delimiter is unusual, name it.")
    line, next_line, first = rows[0]
    cells = [row for _, _, row in rows]
    if header is not False and len(cells) > 1 and all(len(row) == len(first) + 1 for row in cells[1:]):
        # R writes the names of the columns, but none above the names of the rows.
        cells[0] = ["", *first]
        has_names = True
    else:
        has_names = _has_names(cells, missing) if header == "auto" else bool(header)
    names = [name.strip() if has_names else "" for name in cells[0]]
    columns = tuple(name or f"column_{place}" for place, name in enumerate(names, start=1))
    above = islice(io.StringIO(head, newline=""), (next_line if has_names else line) - 1)  # \r\n, \n, \r end a line
    return Dialect(
        delimiter=chosen,
        decimal_point=_decimal_point(cells[1:], chosen),
        has_names=has_names,
        columns=columns,
        unnamed=frozenset(column for column, name in zip(columns, names, strict=True) if has_names and not name),
        missing=missing,
        first_line=line,
        body=sum(len(text.encode()) for text in above),
    )


def _head(content: Content) -> str:
    """Return the first rows of the file as text, cut at the end of a line."""
    size = HEAD
    head = content.head(size)
    while size < content.size and head.count(b"\n") + head.count(b"\r") < 2:
        # Wide tables have long lines; but no table has lines as long as this.
        if size > 64 * CELL_LIMIT:
            problem = f"the first two lines are longer than {size >> 20} MiB"
            raise content.error(problem, line=1, cure="Check that it is a table.")
        size *= 4
        head = content.head(size)
    if size < content.size:
        head = head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
    try:
        return head.decode()
    except UnicodeDecodeError:
        fault = bad_byte(content)
        assert fault is not None
        raise fault from None


def _rows(head: str, delimiter: str) -> list[tuple[int, int, list[str]]]:
    """Return the first records, up to one with a cell that is too long."""
    rows: list[tuple[int, int, list[str]]] = []
    # The wrong delimiter makes one cell of a whole line; with the right one, `trace` locates the fault.
    with cell_limit(), suppress(csv.Error):
        rows.extend(islice(records(io.StringIO(head, newline=""), delimiter), HEAD_ROWS + 1))
    return rows


@contextmanager
def cell_limit() -> Iterator[None]:
    """Set csv's limit on the length of a cell, and restore it: it belongs to the whole process."""
    limit = csv.field_size_limit(CELL_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def squeezed(data: bytes) -> bytes:
    """Return text whose cells are separated by runs of spaces, as Fortran and R print them, with single spaces."""
    if b'"' in data or not re.search(rb"  |(?m:^ | \r?$)", data):
        return data
    return re.sub(rb"(?m)^ +| +(?=\r?$)", b"", re.sub(rb" +", b" ", data))


def _find_delimiter(head: str, hint: str) -> str:
    """Return the delimiter that cuts most lines into the same number of cells; the comma where none cuts at all."""
    if hint in (".tsv", ".tab") and "\t" in head:
        return "\t"
    best, best_share = ",", 0.0
    for delimiter in NAMES:
        text = squeezed(head.encode()).decode() if delimiter == " " else head
        rows = [cells for _, _, cells in _rows(text, delimiter)]
        found = [len(cells) for cells in rows]
        width, times = max(Counter(found).items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        times += found[:1] == [width - 1] and width > 2  # R's names have one cell fewer: see `sniff`
        share = times / max(len(found), 1)
        # Sentences have spaces too, but not the same number of words, some of them numbers.
        is_telling = width > 1 and (delimiter != " " or (share == 1.0 and any(map(_is_typed, rows[-1]))))
        if is_telling and share > best_share:
            best, best_share = delimiter, share
    return best


def _decimal_point(rows: list[list[str]], delimiter: str) -> str:
    """Return a comma where the delimiter leaves room for it and no number is written with a point."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    has_comma = any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    has_point = any(_DECIMAL_POINT.fullmatch(cell) for cell in cells)
    return "," if has_comma and not has_point else "."


def _has_names(rows: list[list[str]], missing: Collection[str]) -> bool:
    first, below = [cell.strip() for cell in rows[0]], rows[1:]
    is_typed = [_is_typed(cell) for cell in first]
    if not below:
        return not any(is_typed)
    again = False
    for j, cell in enumerate(first):
        column = [row[j].strip() for row in below if j < len(row)]
        column = [other for other in column if other not in missing]
        again |= cell in column and cell not in missing
        if column and not is_typed[j] and cell not in missing and all(map(_is_typed, column)):
            return True  # a word above numbers
    return not any(is_typed) and not again


def _is_typed(cell: str) -> bool:
    """Return whether a cell is a number, a truth value, a date or a time, rather than words."""
    text = cell.strip()
    return bool(_NUMBER.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text) or _OTHER_TYPED.fullmatch(text))


# --- the place of a fault: pyarrow parses fast but does not know lines, and Python's csv reads about 30 MB/s ---


def line_of_row(content: Content, dialect: Dialect, row: int) -> int:
    """Return the line, counted from 1, on which a row, counted from 0, begins."""
    with cell_limit():
        found = records(_text(content), dialect.delimiter)
        line, _, _ = next(islice(found, row + dialect.has_names, None))
    return line


def trace(content: Content, dialect: Dialect) -> InputError | None:
    """Return the first fault of a file as an error, or None: a ragged row, a cell too long, an open quote."""
    with cell_limit():
        reader = csv.reader(_text(content), delimiter=dialect.delimiter)
        line = 1  # on which the record at hand begins
        try:
            for cells in reader:
                if cells and len(cells) != len(dialect.columns):
                    has_break = "\n" in cells[-1]  # an open quote makes one cell of all that follows
                    is_last = not any(reader)
                    if has_break and is_last and not content.data.rstrip().endswith(b'"'):
                        return open_quote(content, line)
                    return _ragged(content, dialect, line, cells)
                line = reader.line_num + 1
        except csv.Error:
            # The limit on the length of a cell: the only error of a reader that is not strict.
            is_open = reader.line_num > line
            return open_quote(content, line) if is_open else _long_cell(content, dialect, line)
    return None


def open_quote(content: Content, line: int, column: str | None = None) -> InputError:
    """Return the error about a quote that makes one cell of everything that follows."""
    return content.error(
        "a quote is never closed, so the lines after it form one cell",
        line=line,
        column=column,
        cure="Close the quote, or double it if it is part of the text.",
    )


def _ragged(content: Content, dialect: Dialect, line: int, cells: list[str]) -> InputError:
    wanted, found = len(dialect.columns), len(cells)
    quotes = ": put quotes around a cell that contains the delimiter" if found > wanted else ""
    row = clip(dialect.delimiter.join(cells))
    problem = f"{found} {'cell' if found == 1 else 'cells'} where the first line has {wanted} ({row!r})"
    return content.error(problem, line=line, cure=f"Fix the row{quotes}.")


def _long_cell(content: Content, dialect: Dialect, line: int) -> InputError:
    cells = next(islice(_text(content), line - 1, None)).split(dialect.delimiter)
    sizes = [len(cell.encode()) for cell in cells]
    place = sizes.index(max(sizes))
    size = f"{sizes[place] / (1 << 20):.1f} MiB"
    return content.error(
        f"a cell of {size} ({clip(cells[place], 20)!r}); the limit is {CELL_LIMIT >> 20} MiB",
        line=line,
        column=dialect.columns[place] if place < len(dialect.columns) else f"column_{place + 1}",
        cure="Shorten the cell, or leave the column out.",
    )


def _text(content: Content) -> io.StringIO:
    """Return the file as text with its line ends kept."""
    return io.StringIO(content.data.decode("utf-8", errors="replace"), newline="")
