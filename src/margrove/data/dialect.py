"""The dialect of a delimited file: its delimiter, its decimal point, its column names; and the line of a fault.

The dialect is judged on the head of the file. The delimiter is the character that cuts the lines into the same
number of cells, two at least; `header` finds the names.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice

from margrove.advice import Advice, Parameter, Setting
from margrove.data.columns import clip
from margrove.data.header import (
    filled,
    find_header,
    is_formatted,
    is_title,
    names_numbers,
    typical_of,
    width_of,
)
from margrove.data.inference import Kinds
from margrove.data.source import HEAD, Content, bad_byte
from margrove.errors import InputError, ParameterError, check_choice, check_whole

# The delimiters, from the most telling to the least: commas and spaces occur in text.
NAMES = {"\t": "tab", ";": "semicolon", "|": "bar", "~": "tilde", "^": "caret", ",": "comma", " ": "space"}
DEFAULT_MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
CELL_LIMIT = 1 << 20  # bytes; no cell of a table is longer on purpose, but an unclosed quote makes one
EVIDENT = ("Line 1 holds", "The delimiter is")  # notes that tell nothing new on tables like one that was read before
HEAD_ROWS = 200  # rows that are looked at; a column that changes its nature later is rare

_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_DECIMAL_POINT = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")
_RULER = re.compile(rb"(?m)^ *-{2,}(?: +-{2,})+ *(?=\r?$)")
_RULE = re.compile(rb"(?m)^[-=_*+|:,; \t]{3,}(?=\r?$)")
_RULE_CELL = re.compile(rb"[-=]{3,}|:-+:?|-+:")
_LONG_RULE = re.compile(rb"[-=*]{6,}")  # between commas and semicolons; shorter ones may be marks or stars
_SEPARATOR = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)  # Excel obeys such a first line


@dataclass(frozen=True)
class Dialect:
    """The format of a delimited file."""

    delimiter: str
    decimal_point: str
    has_names: bool
    columns: tuple[str, ...]  # their names; of a column without one, column_1, column_2, …
    unnamed: frozenset[str]  # the columns that have no name, in a file that has names
    missing: Collection[str]  # what missing cells look like
    first_line: int  # of the table, counted from 1; blank lines and titles may stand above it
    above: int  # the number of lines before the rows
    body: int  # the offset in bytes at which the rows begin, after these lines
    header: tuple[str, ...]  # the last of these lines as written, if it holds names: it may come again
    typical: int  # the number of filled cells of a usual row
    notes: tuple[str, ...] = ()
    lines: Sequence[int] | None = None  # of the rows in the file, where `tidy` has written the content anew


@dataclass(frozen=True)
class TextOptions:
    """The parameters of `read_table` that say how a text file is written."""

    header: bool | str = "auto"
    delimiter: str = "auto"
    encoding: str = "auto"
    missing: Sequence[str] = DEFAULT_MISSING
    skip: int = 0
    header_row: int | None = None
    kinds: Kinds = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.missing, str):
            raise ParameterError(
                f"missing is {self.missing!r}; it must be a list of strings, such as [{self.missing!r}]."
            )
        check_whole("skip", self.skip, least=0)
        if self.header_row is not None:
            check_whole("header_row", self.header_row, least=self.skip + 1)
            if self.header is False:
                words = " names the line of the header, and the file is said to have none. Leave one out."
                raise ParameterError(Advice(Parameter("header_row"), words))

    def sniffed(self, content: Content, *, is_whole: bool = True) -> tuple[Content, Dialect]:
        """Return a text in UTF-8, its cells separated by single characters, and its dialect. Only a whole file is cut
        where a line of dashes says."""
        head = content.head()
        has_quotes = b'"' in head
        least = 3 if has_quotes else 1  # within quotes a run of dashes is text
        can_cut = is_whole and self.delimiter == "auto" and not has_quotes and b"\t" not in head
        if can_cut and (ruler := _RULER.search(head)):
            content = content.replaced(_cut_by_ruler(content.data, ruler[0].decode()))
        elif any(_is_rule(line, least) for line in _RULE.findall(head)):
            without = _RULE.sub(lambda line: b"" if _is_rule(line[0], least) else line[0], content.data)
            content = content.replaced(without)
        dialect = sniff(content, self)
        if dialect.delimiter == " ":
            content = content.replaced(squeezed(content.data))
            dialect = sniff(content, replace(self, delimiter=" "))
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


def sniff(content: Content, options: TextOptions) -> Dialect:
    """Return the dialect of a text in UTF-8. The extension of its name is a hint: ".tsv" is cut at tabs only."""
    delimiter, header, missing = options.delimiter, options.header, options.missing
    if delimiter != "auto" and (len(delimiter.encode()) != 1 or delimiter in '"\r\n'):
        words = f" is {delimiter!r}; it must be one character, such as ',' or '\\t'."
        raise ParameterError(Advice(Parameter("delimiter"), words))
    check_choice("header", header, (True, False, "auto"))
    header_row = options.header_row
    skipped = options.skip if header_row is None else header_row - 1
    head = _head(content, skipped)
    if separator := _SEPARATOR.match(head):
        skipped, delimiter = max(skipped, 1), separator[1] if delimiter == "auto" else delimiter
    lines = list(io.StringIO(head, newline=""))  # \r\n, \n, \r end a line
    text = "".join(lines[skipped:])
    chosen = _find_delimiter(text, content.extension) if delimiter == "auto" else delimiter
    rows = _rows(text, chosen)
    if not text.strip() or (header_row is not None and rows and (rows[0][0] > 1 or not filled(rows[0][2]))):
        raise content.error("the line is blank, or there is none", line=skipped + 1, cure="Name another line.")
    if not rows:
        problem = f"a cell of the first row is longer than {CELL_LIMIT >> 20} MiB, the limit for one cell"
        raise content.error(problem, line=1, cure="Check that it is a table; if its delimiter is unusual, name it.")
    cells = [row for _, _, row in rows]
    found = find_header(cells, missing, header if header_row is None else True, is_first=header_row is not None)
    has_names, first_line = found.body > found.first, rows[found.first][0] + skipped
    if header == "auto" and header_row is None and found.body - found.first < 2:
        _refuse_unclear(content, cells, found.first, missing)
    _refuse_beside(content, found.names, cells[found.body :])
    columns, renamed = _unique([name or f"column_{j}" for j, name in enumerate(found.names, start=1)])
    last_line = skipped + rows[max(found.body - 1, 0)][1] - 1  # of the names
    above = skipped + rows[found.body][0] - 1 if found.body < len(rows) else last_line
    decimal_point = _decimal_point(cells[found.body :], chosen)
    notes = [f"There are no column names: the columns are called column_1 to column_{len(columns)}."]
    if has_names:
        named = f"Line {first_line} holds" if last_line == first_line else f"Lines {first_line} to {last_line} hold"
        notes = [f"{named} the column names."]
    if len(columns) > 1 and chosen != ",":
        notes.append(f"The delimiter is the {NAMES.get(chosen, repr(chosen))}.")
    if len(columns) == 1:
        notes.append(
            Advice(
                "There is one column only. If there are more, name what separates them: ",
                Setting("delimiter", ...),
                ".",
            )
        )
    if decimal_point == ",":
        notes.append("Numbers are written with a decimal comma.")
    if "".join(lines[: first_line - 1]).strip():
        notes.append(on_lines(range(1, first_line), f"above the {'column names' if has_names else 'rows'}"))
    return Dialect(
        delimiter=chosen,
        decimal_point=decimal_point,
        has_names=has_names,
        columns=columns,
        unnamed=frozenset(column for column, name in zip(columns, found.names, strict=True) if has_names and not name),
        missing=missing,
        first_line=first_line,
        above=above,
        body=sum(len(text.encode()) for text in lines[:above]),
        header=found.written,
        typical=typical_of(cells[found.body :]),
        notes=(*notes, *renamed),
    )


def _refuse_unclear(content: Content, rows: list[list[str]], first: int, missing: Collection[str]) -> None:
    """Refuse a file with another table above the one found, or a table that seems to begin with a title: the names
    below it would be taken for a row."""
    whole = [row for row in rows[:first] if filled(row) == len(row) == width_of(rows[:first])[0] > 1]
    names, typical = rows[first], max(map(filled, rows[first:]))
    if len(whole) > 2 and names_numbers(whole, missing) and (len(whole[0]) > 2 or is_formatted(whole[1][0])):
        problem = "there are several tables in the file, and it is not clear which to read"
    elif is_title(names, typical) and (2 * filled(names) < typical or not names_numbers(rows[first:], missing)):
        if is_formatted("".join(names)):
            return
        problem = f"a line above the rows is mostly empty ({clip(' '.join(names))!r}), and may be a title"
    else:
        return
    raise unclear_header(content, problem)


def unclear_header(content: Content, problem: str, line: int | None = None) -> InputError:
    """Return the error about lines of which it is not clear which holds the names."""
    lines = Advice("; or the number of lines to leave out: ", Setting("skip", ...), ".")
    cure = Advice("Name the line that holds the names: ", Setting("header_row", ...), lines)
    return content.error(problem, line=line, cure=cure)


def _refuse_beside(content: Content, names: Sequence[str], rows: list[list[str]]) -> None:
    """Refuse a file in which another table stands to the right of the first, beyond an empty column: it has names of
    the first, or fewer rows."""
    for j in range(1, len(names) - 2):
        right = [name for name in names[j + 1 :] if name]
        if names[j] or any(row[j : j + 1] > [""] for row in rows) or len(right) < 2:
            continue
        n_filled = [filled(row[j + 1 :]) for row in rows]
        n_right = sum(map(bool, n_filled))
        is_short = n_right < len(rows) and n_filled[:n_right] == [len(right)] * n_right
        if not set(right).isdisjoint(names[:j]) or is_short:
            problem = f"two tables seem to stand side by side, the second from {right[0]!r} on"
            raise content.error(problem, cure="Save each as a file of its own.")


def _unique(names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return names of which none occurs twice, and notes on those that did."""
    unique: dict[str, str] = {}  # with the name in the file
    for name in names:
        numbered = (f"{name} ({number})" for number in count(2))
        free = name if name not in unique else next(new for new in numbered if new not in unique and new not in names)
        unique[free] = name
    notes = [f"Another column {old!r} is called {new!r}." for new, old in unique.items() if new != old]
    return tuple(unique), notes


def on_lines(lines: Sequence[int], what: str, outcome: str = "left out") -> str:
    """Return a note: ``4 lines above the column names are left out: 1 to 3, 7.`` Of many lines, the first."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and runs[-1][-1] == line - 1:
            runs[-1][1:] = [line]
        else:
            runs.append([line])
    listed = ", ".join([" to ".join(map(str, run)) for run in runs[:4]] + ["…"] * (len(runs) > 4))
    number = "1 line {} is" if len(lines) == 1 else f"{len(lines):,} lines {{}} are"
    return f"{number.format(what)} {outcome}: {listed}."


def _head(content: Content, skipped: int) -> str:
    """Return the first rows of the file as text, cut at the end of a line, two of them at least below those skipped."""
    size = HEAD
    head = content.head(size)
    while size < content.size and max(head.count(b"\n"), head.count(b"\r")) < 2 + skipped:
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


def _cut_by_ruler(data: bytes, ruler: str) -> bytes:
    """Return a text whose columns are as wide as the dashes of a line below the names, cut by tabs where all lines from
    the names on have a blank between the columns."""
    lines = [line.rstrip("\r") for line in data.decode(errors="surrogateescape").split("\n")]
    first = max(lines.index(ruler) - 1, 0)
    lines = ["" if line == ruler else line for line in lines]
    starts = [run.start() for run in re.finditer("-+", ruler)]
    while first > 0 and len(lines[first - 1].split()) > 1:
        first -= 1
    for i in range(first, len(lines)):
        line = lines[i]
        if line.strip() and all(line[start - 1 : start] in ("", " ") for start in starts[1:]):
            cells = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)]
            lines[i] = "\t".join(cells)
    return "\n".join(lines).encode(errors="surrogateescape")


def _is_rule(line: bytes, least: int) -> bool:
    """Return whether a line rules a table: "---- ----", "+---+---+", "|:--|--:|", or one run of dashes; it must have
    ``least`` cells."""
    cells = re.findall(rb"[^ \t|+,;]+", line)
    wanted = _LONG_RULE if re.search(rb"[,;*]", line) else _RULE_CELL
    are_ruled = len(cells) > 1 and all(map(wanted.fullmatch, cells))
    return len(cells) >= least and (are_ruled or re.search(rb"[-=_]{5}", line) is not None)


def _find_delimiter(head: str, hint: str) -> str:
    """Return the delimiter that cuts most lines into the same number of cells; the comma where none cuts at all."""
    if hint in (".tsv", ".tab") and "\t" in head:
        return "\t"
    best, best_share = ",", 0.0
    for delimiter in NAMES:
        text = squeezed(head.encode()).decode() if delimiter == " " else head
        rows = [cells for _, _, cells in _rows(text, delimiter)]
        width, times = width_of(rows)
        times += bool(rows) and len(rows[0]) == width - 1 and width > 2  # R's names have one cell fewer
        share = times / max(len(rows), 1)
        # Sentences have spaces too, but not the same number of words, some of them numbers.
        is_telling = width > 1 and (delimiter != " " or (share == 1.0 and any(map(is_formatted, rows[-1]))))
        if is_telling and share > best_share:
            best, best_share = delimiter, share
    return best


def _decimal_point(rows: list[list[str]], delimiter: str) -> str:
    """Return a comma where the delimiter leaves room for it and no number is written with a point. That of 1,250 may
    separate thousands, and is left to `inference`."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for row in rows for cell in row]
    has_comma = any(_DECIMAL_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in cells)
    has_point = any(_DECIMAL_POINT.fullmatch(cell) for cell in cells)
    return "," if has_comma and not has_point else "."


# --- the place of a fault: pyarrow parses fast but does not know lines, and Python's csv reads about 30 MB/s ---


def line_of_row(content: Content, dialect: Dialect, row: int) -> int:
    """Return the line, counted from 1, on which a row, counted from 0, begins."""
    if dialect.lines is not None:
        return dialect.lines[row]
    with cell_limit():
        line, _, _ = next(islice(records(_text(content, dialect), dialect.delimiter), row, None))
    return dialect.above + line


def trace(content: Content, dialect: Dialect) -> InputError | None:
    """Return the first fault of a file as an error, or None: a ragged row, a cell too long, an open quote."""
    try:
        for line, cells in checked_records(content, dialect):
            if len(cells) != len(dialect.columns):
                return ragged(content, dialect, line, cells)
    except InputError as error:
        return error
    return None


def checked_records(content: Content, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows with their lines. Raise `InputError` if a cell is too long or a quote is never closed."""
    with cell_limit():
        reader = csv.reader(_text(content, dialect), delimiter=dialect.delimiter)
        line = dialect.above + 1  # on which the record at hand begins
        last: tuple[int, list[str]] | None = None
        try:
            for cells in reader:
                if last is not None:
                    yield last
                last = (line, cells) if cells else None
                line = dialect.above + reader.line_num + 1
        except csv.Error:
            # The limit on the length of a cell: the only error of a reader that is not strict.
            is_open = dialect.above + reader.line_num > line
            raise (open_quote if is_open else partial(_long_cell, dialect=dialect))(content, line=line) from None
        if last is not None:
            # An open quote makes one cell of all that follows.
            if "\n" in last[1][-1] and not content.data.rstrip().endswith(b'"'):
                raise open_quote(content, last[0], None if len(last[1]) < len(dialect.columns) else dialect.columns[-1])
            yield last


def open_quote(content: Content, line: int, column: str | None = None) -> InputError:
    """Return the error about a quote that makes one cell of everything that follows."""
    return content.error(
        "a quote is never closed, so the lines after it form one cell",
        line=line,
        column=column,
        cure="Close the quote, or double it if it is part of the text.",
    )


def ragged(content: Content, dialect: Dialect, line: int, cells: list[str]) -> InputError:
    """Return the error about a row with too many or too few cells."""
    wanted, found = len(dialect.columns), len(cells)
    quotes = ": put quotes around a cell that contains the delimiter" if found > wanted else ""
    cure = f"Fix the row{quotes}."
    if line <= dialect.above + 2:
        title = " If titles stand above the column names, name the line of the names: "
        cure = Advice(cure, title, Setting("header_row", ...), ".")
    row = clip(dialect.delimiter.join(cells))
    first = "the first line" if dialect.first_line == 1 else f"line {dialect.first_line}"
    problem = f"{found} {'cell' if found == 1 else 'cells'} where {first} has {wanted} ({row!r})"
    return content.error(problem, line=line, cure=cure)


def _long_cell(content: Content, line: int, dialect: Dialect) -> InputError:
    cells = next(islice(_text(content, dialect), line - dialect.above - 1, None)).split(dialect.delimiter)
    sizes = [len(cell.encode()) for cell in cells]
    place = sizes.index(max(sizes))
    size = f"{sizes[place] / (1 << 20):.1f} MiB"
    return content.error(
        f"a cell of {size} ({clip(cells[place], 20)!r}); the limit is {CELL_LIMIT >> 20} MiB",
        line=line,
        column=dialect.columns[place] if place < len(dialect.columns) else f"column_{place + 1}",
        cure="Shorten the cell, or leave the column out.",
    )


def _text(content: Content, dialect: Dialect) -> io.StringIO:
    """Return the rows as text with its line ends kept."""
    return io.StringIO(content.data[dialect.body :].decode("utf-8", errors="replace"), newline="")
