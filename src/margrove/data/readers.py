"""`read_table`: recognise the format of a file by its content, and read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from margrove.data.arff_file import read_arff
from margrove.data.dialect import DEFAULT_MISSING, TextOptions
from margrove.data.inference import infer_columns, trained_kinds
from margrove.data.npz import read_npy, read_npz
from margrove.data.source import Source, open_content, recognise
from margrove.data.svmlight import check_label, read_svmlight
from margrove.data.table import Table
from margrove.data.target import Target, choose_target, refuse_unlabelled

if TYPE_CHECKING:
    from margrove.data.delimited import Rows


def read_table(
    source: Any,
    *,
    target: Target = None,
    header: bool | str = "auto",
    delimiter: str = "auto",
    encoding: str = "auto",
    missing: Sequence[str] = DEFAULT_MISSING,
    drop_unlabelled: bool = False,
    skip: int = 0,
    header_row: int | None = None,
    kinds: Mapping[str, str] | None = None,
    like: Any = None,
) -> Table:
    """Read a table from a file.

    The format is recognised by the content, not by the name: CSV, TSV and other delimited text, Excel and OpenDocument
    workbooks, Parquet, Arrow and Feather, JSON lines or an array of objects, SQLite, DuckDB, ARFF, LIBSVM, NumPy's .npz
    and .npy; each but DuckDB may be compressed with gzip, bzip2 or xz.

    Parameters
    ----------
    source : str, path or binary file object
        ``"-"`` is standard input. Of a workbook or database with several sheets or tables, one is named after ``::``,
        as in ``"shop.db::orders"``.
    target : str, int, None or False
        The column to be predicted: its name, or its position, counted from 0 (from the end where negative).
        None is the last column, or the label of a format that has one; `Table.notes` say which it is. False:
        there is no target, every column is a feature.
    header : {"auto", True, False}
        Whether the first line of a delimited file holds the column names.
    delimiter : str
        One character; "auto" chooses among comma, tab, semicolon, bar and space.
    encoding : str
        Of a text file, as Python calls it. "auto" is UTF-8, or what a byte-order mark says; delimited text that is
        neither is read in the encoding that makes words of its bytes, and `Table.notes` say which.
    missing : sequence of str
        What a missing cell of a delimited file looks like.
    drop_unlabelled : bool
        Leave out rows whose target is missing. Otherwise they are an error.
    skip : int
        The lines to leave out at the top of a delimited file. Titles above the column names are found without it.
    header_row : int, optional
        The line of a delimited file that holds the column names, counted from 1. What stands above is left out.
    kinds : mapping of str to str, optional
        What columns of text hold, where it is not to be inferred: "category", "number", "date" ("dmy", "mdy" or "ymd"
        also say the order of day, month and year) or "ignore", by their names.
    like : model, optional
        A fitted model: columns of its names are read as those that it was trained on were written. Without ``target``,
        every column is a feature then.

    Examples
    --------
    >>> import io
    >>> from margrove.data import read_table
    >>> table = read_table(io.BytesIO(b"size,colour,ripe\\n1.5,red,yes\\n0.5,?,no\\n"))
    >>> [(column.name, column.kind, column.n_missing) for column in table]
    [('size', 'numeric', 0), ('colour', 'category', 1)]
    >>> table.labels()
    array(['yes', 'no'], dtype='<U3')
    >>> table.notes[-1]
    "The target is 'ripe' (it is the last column)."
    """
    known = {} if like is None else trained_kinds(like)
    target = False if like is not None and target is None else target
    options = TextOptions(header, delimiter, encoding, missing, skip, header_row, {**known, **(kinds or {})})
    table, line_of, _ = _read(source, target, options)
    if target is False:
        table = table.with_target(None)
    elif table.target is None:
        table = choose_target(table, target)
    return refuse_unlabelled(table, drop_unlabelled=drop_unlabelled, line_of=line_of)


def line_of_row(source: Source, row: int) -> int | None:
    """Return the line of a file in which a row stands, counted from 1; None where rows have no lines."""
    line_of = _read(source, False, TextOptions())[1]
    return None if line_of is None else line_of(row)


def read_with_cells(source: Source, columns: Sequence[str] | None, **how: Any) -> tuple[Table, dict[str, list[Any]]]:
    """Read a table without a target, as `read_table` does, and the cells of some columns (None: of all) to be written
    again: of delimited text as they stand there. ``how`` are the fields of `TextOptions`."""
    table, _, rows = _read(source, False, TextOptions(**how))
    table = table.with_target(None)
    names = table.names if columns is None else [table[name].name for name in columns]  # raises, naming those there are
    if rows is None or not names:
        return table, {name: table[name].cells() for name in names}
    return table, rows.cells(names)


def _read(
    source: Source, target: Target, options: TextOptions
) -> tuple[Table, Callable[[int], int] | None, Rows | None]:
    """Return the table, with a target only where the format defines it; a function from row to line, if known; and the
    rows as written, of delimited text."""
    content = open_content(source)
    form = recognise(content, is_encoded=options.encoding != "auto")
    if form == "workbook":
        from margrove.data.workbook import sheet_as_text

        content, form = sheet_as_text(content), "delimited"
        options = replace(options, delimiter=",", encoding="utf-8")
    if form == "delimited" or (form == "svmlight" and options.delimiter != "auto"):
        from margrove.data.delimited import read_delimited

        table, rows = read_delimited(content, options)
        return table, rows.line, rows
    if form == "json":
        from margrove.data.json_file import read_json

        table, line_of = read_json(content, options)
        return infer_columns(table, options.kinds, line_of=line_of), line_of, None
    if form in ("SQLite", "DuckDB"):
        from margrove.data.databases import read_duckdb, read_sqlite

        table = (read_sqlite if form == "SQLite" else read_duckdb)(content, options.missing)
        return infer_columns(table, options.kinds), None, None
    if form == "svmlight":
        check_label(target, content)
        return read_svmlight(content), None, None
    if form == "arff":
        return read_arff(content, encoding=options.encoding), None, None
    if form == "npz":
        return read_npz(content, target), None, None
    if form == "npy":
        return read_npy(content), None, None
    from margrove.data.arrow import read_columnar

    return read_columnar(content, form), None, None


def load_penguins() -> Table:
    """Return the Palmer penguins: 344 rows, seven features of all kinds with missing cells, three species.

    Collected by Kristen Gorman and the Palmer Station, Antarctica LTER; released by Horst, Hill and Gorman in the R
    package palmerpenguins (2020) under CC0.

    Examples
    --------
    >>> from margrove.data import load_penguins
    >>> penguins = load_penguins()
    >>> [(column.name, column.kind) for column in penguins][:2]
    [('island', 'category'), ('bill_length_mm', 'numeric')]
    >>> sum(column.n_missing for column in penguins)
    19
    """
    table = read_table(Path(__file__).with_name("penguins.csv"), target="species")
    return table.renamed(table.names, source="Palmer penguins")
