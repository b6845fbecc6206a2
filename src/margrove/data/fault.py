"""Where in a delimited file a fault is: pyarrow parses fast but does not know lines, so they are found here.

Only ever run on the way to an error message, so clarity goes before speed: Python's csv module reads about
30 MB in a second.
"""

from __future__ import annotations

import csv
import io
from itertools import islice

from margrove.data.columns import clip
from margrove.data.dialect import CELL_LIMIT, Dialect, cell_limit, records
from margrove.data.source import Content
from margrove.errors import InputError


class LineIndex:
    """The line of the file on which each row of the table begins."""

    def __init__(self, content: Content, dialect: Dialect) -> None:
        self._content, self._dialect = content, dialect

    def of_row(self, row: int) -> int:
        """The line, counted from 1, of a row, counted from 0."""
        with cell_limit():
            found = records(_text(self._content), self._dialect.delimiter)
            line, _, _ = next(islice(found, row + self._dialect.has_names, None))
        return line


def trace(content: Content, dialect: Dialect) -> InputError | None:
    """The first fault of a delimited file as an error: a ragged row, an endless cell, a quote left open.

    None where Python's parser finds none.
    """
    with cell_limit():
        reader = csv.reader(_text(content), delimiter=dialect.delimiter)
        line = 1  # on which the record at hand begins
        try:
            for cells in reader:
                if cells and len(cells) != dialect.n_columns:
                    has_break = any("\n" in cell for cell in cells)
                    is_last = not any(reader)
                    if has_break and is_last and not content.data.rstrip().endswith(b'"'):
                        return open_quote(content.name, line)
                    return _ragged(dialect, content.name, line, cells)
                line = reader.line_num + 1
        except csv.Error:
            # The limit on the length of a cell: the only error of a reader that is not strict.
            if reader.line_num > line:
                return open_quote(content.name, line)
            return _endless_cell(content, dialect, line)
    return None


def open_quote(file: str, line: int, column: str | None = None) -> InputError:
    """The error about a quote that makes one cell of all that follows."""
    return InputError(
        "a quote is opened and not closed, so that the lines after it are one cell",
        file=file,
        line=line,
        column=column,
        cure="Close the quote, or double it where it belongs to the text.",
    )


def _ragged(dialect: Dialect, file: str, line: int, cells: list[str]) -> InputError:
    wanted, found = dialect.n_columns, len(cells)
    cure = "Mend the row."
    if found > wanted:
        cure = "Mend the row: put quotes around a cell that contains the delimiter."
    return InputError(
        f"{found} {'cell' if found == 1 else 'cells'} where the first line has {wanted} "
        f"({clip(dialect.delimiter.join(cells))!r})",
        file=file,
        line=line,
        cure=cure,
    )


def _endless_cell(content: Content, dialect: Dialect, line: int) -> InputError:
    cells = next(islice(_text(content), line - 1, None)).split(dialect.delimiter)
    sizes = [len(cell.encode()) for cell in cells]
    column = sizes.index(max(sizes))
    name = dialect.names[column] if column < len(dialect.names) else f"column_{column + 1}"
    return InputError(
        f"a cell of {sizes[column] / (1 << 20):.1f} MiB ({clip(cells[column], 20)!r}); "
        f"at most {CELL_LIMIT >> 20} MiB is read",
        file=content.name,
        line=line,
        column=name,
        cure="Shorten the cell, or leave the column out.",
    )


def _text(content: Content) -> io.StringIO:
    """The file as text with its line ends kept."""
    return io.StringIO(content.data.decode("utf-8", errors="replace"), newline="")
