"""One door for files: `read_table` recognises the format by the content and hands it to its reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from margrove.data.arff_file import read_arff
from margrove.data.columnar import read_columnar
from margrove.data.delimited import DEFAULT_MISSING, check_missing, read_delimited, written_cells
from margrove.data.npz import read_npy, read_npz
from margrove.data.source import Content, Source, open_content, recognise
from margrove.data.svmlight import check_label, read_svmlight
from margrove.data.table import Table
from margrove.data.target import Target, choose_target, refuse_unlabelled


def read_table(
    source: Any,
    *,
    target: Target = None,
    header: bool | str = "auto",
    delimiter: str = "auto",
    encoding: str = "auto",
    missing: Sequence[str] = DEFAULT_MISSING,
    drop_unlabelled: bool = False,
) -> Table:
    """Read a table from a file.

    The format is told from the content, not from the name: CSV, TSV and other delimited text, Parquet, Arrow
    and Feather, ARFF, LIBSVM, NumPy's .npz and .npy; each may be compressed with gzip, bzip2 or xz.

    Parameters
    ----------
    source : str, path or binary file object
        ``"-"`` is standard input.
    target : str, int, None or False
        The column to be predicted: its name, or its position, counted from 0 (from the end where negative).
        None is the last column, or the label of a format that has one; `Table.notes` say which it is. False:
        there is no target, every column is a feature.
    header : {"auto", True, False}
        Whether the first line of a delimited file holds the column names.
    delimiter : str
        One character; "auto" chooses among comma, tab, semicolon, bar and space.
    encoding : str
        Of a text file, as Python calls it. "auto" is UTF-8, or what a byte-order mark says.
    missing : sequence of str
        What a missing cell of a delimited file looks like.
    drop_unlabelled : bool
        Leave out rows whose target is missing. Otherwise they are an error.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        If there is no such file, or it is not a sound table. The message names file, line, column and cure.

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
    check_missing(missing)
    content = open_content(source)
    table, line_of = _read(content, target, header, delimiter, encoding, tuple(missing))
    if table.target is not None:
        if target is False:
            table = table.with_target(None)
        return refuse_unlabelled(table, drop_unlabelled=drop_unlabelled, line_of=line_of)
    return choose_target(table, target, drop_unlabelled=drop_unlabelled, line_of=line_of)


def read_with_cells(
    source: Source,
    columns: Sequence[str] | None,
    *,
    header: bool | str = "auto",
    delimiter: str = "auto",
    encoding: str = "auto",
    missing: Sequence[str] = DEFAULT_MISSING,
) -> tuple[Table, dict[str, list[Any]]]:
    """A table without a target, as `read_table` reads it, and the cells of some of its columns (None: of all) to be
    written again: of delimited text as they stand there.

    Examples
    --------
    >>> import io
    >>> from margrove.data.readers import read_with_cells
    >>> table, cells = read_with_cells(io.BytesIO(b"id,size\\n0012,1.50\\n0013,?\\n"), ["id", "size"])
    >>> table["id"].values, cells
    (array([12., 13.]), {'id': ['0012', '0013'], 'size': ['1.50', '?']})
    """
    content = open_content(source)
    table, line_of = _read(content, False, header, delimiter, encoding, tuple(missing))
    table = table.with_target(None)
    names = table.names if columns is None else [table[name].name for name in columns]  # raises, naming those there are
    if line_of is None or not names:
        return table, {name: table[name].cells() for name in names}
    options: dict[str, Any] = {"header": header, "delimiter": delimiter, "encoding": encoding}
    return table, written_cells(content, names, missing=tuple(missing), **options)


def _read(
    content: Content,
    target: Target,
    header: bool | str,
    delimiter: str,
    encoding: str,
    missing: tuple[str, ...],
) -> tuple[Table, Callable[[int], int] | None]:
    """The table, with a target only where the format says which it is; and the line of a row, where known."""
    form = recognise(content, is_encoded=encoding != "auto")
    if form == "delimited" or (form == "svmlight" and delimiter != "auto"):
        table, lines = read_delimited(content, header=header, delimiter=delimiter, encoding=encoding, missing=missing)
        return table, lines.of_row
    if form == "svmlight":
        check_label(target, content.name)
        return read_svmlight(content), None
    if form == "arff":
        return read_arff(content, encoding=encoding), None
    if form == "npz":
        return read_npz(content, target), None
    if form == "npy":
        return read_npy(content), None
    return read_columnar(content, form), None
