"""Locate faults in a delimited file by line: pyarrow parses fast but does not know lines.

Only run on the way to an error message: Python's csv module reads about 30 MB in a second.
"""

from __future__ import annotations

import csv
import io
from itertools import islice

from margrove.data.columns import clip
from margrove.data.dialect import CELL_LIMIT, Dialect, cell_limit, records
from margrove.data.source import Content
from margrove.errors import InputError


def line_of_row(content: Content, dialect: Dialect, row: int) -> int:
    """Return the line, counted from 1, on which a row, counted from 0, begins."""
    with cell_limit():
        found = records(_text(content), dialect.delimiter)
        line, _, _ = next(islice(found, row + dialect.has_names, None))
    return line


def trace(content: Content, dialect: Dialect) -> InputError | None:
    """Return the first fault of a delimited file as an error: a ragged row, a cell too long, an open quote.

    None where Python's parser finds none.
    """
    with cell_limit():
        reader = csv.reader(_text(content), delimiter=dialect.delimiter)
        line = 1  # on which the record at hand begins
        try:
            for cells in reader:
                if cells and len(cells) != len(dialect.columns):
                    has_break = any("\n" in cell for cell in cells)
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
        "a quote is opened and not closed, so that the lines after it are one cell",
        line=line,
        column=column,
        cure="Close the quote, or double it where it belongs to the text.",
    )


def _ragged(content: Content, dialect: Dialect, line: int, cells: list[str]) -> InputError:
    wanted, found = len(dialect.columns), len(cells)
    quotes = ": put quotes around a cell that contains the delimiter" if found > wanted else ""
    row = clip(dialect.delimiter.join(cells))
    problem = f"{found} {'cell' if found == 1 else 'cells'} where the first line has {wanted} ({row!r})"
    return content.error(problem, line=line, cure=f"Mend the row{quotes}.")


def _long_cell(content: Content, dialect: Dialect, line: int) -> InputError:
    cells = next(islice(_text(content), line - 1, None)).split(dialect.delimiter)
    sizes = [len(cell.encode()) for cell in cells]
    place = sizes.index(max(sizes))
    size = f"{sizes[place] / (1 << 20):.1f} MiB"
    return content.error(
        f"a cell of {size} ({clip(cells[place], 20)!r}); at most {CELL_LIMIT >> 20} MiB is read",
        line=line,
        column=dialect.columns[place] if place < len(dialect.columns) else f"column_{place + 1}",
        cure="Shorten the cell, or leave the column out.",
    )


def _text(content: Content) -> io.StringIO:
    """Return the file as text with its line ends kept."""
    return io.StringIO(content.data.decode("utf-8", errors="replace"), newline="")
