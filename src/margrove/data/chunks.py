"""Read a file larger than memory a chunk of rows at a time, in as many passes as needed.

`read_chunks` reads by the rules of `read_table`. What these decide from the whole file, such as the kinds of the
columns, is decided in a first pass, so that every chunk has the same columns of the same kinds.
"""

from __future__ import annotations

import codecs
import mmap
import os
import re
import shutil
import tempfile
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from margrove.data.codepage import WINDOW, guess_encoding
from margrove.data.dialect import DEFAULT_MISSING, TextOptions, line_of_row, squeezed
from margrove.data.formats import NumberFormat
from margrove.data.frames import check_finite
from margrove.data.inference import Kinds, infer_columns
from margrove.data.rows import Matrix
from margrove.data.source import (
    RIGHT_ENCODING,
    Content,
    Format,
    bad_byte_at,
    byte_order_mark,
    compression_of,
    damage_refused,
    is_utf8,
    open_file,
    recognise,
    split_part,
)
from margrove.data.svmlight import check_label, first_index, parse_svmlight, svmlight_table
from margrove.data.table import Table
from margrove.data.target import Target, choose_target, refuse_unlabelled
from margrove.errors import DataWarning, InputError, ParameterError, check_whole, level_of_caller
from margrove.run.progress import Progress, report

if TYPE_CHECKING:
    import pyarrow as pa

    from margrove.data.encoder import TableEncoder

HEAD = WINDOW  # bytes that are looked at to recognise the format, the encoding and the dialect
LEAST_BLOCK, MOST_BLOCK = 1 << 16, 1 << 26  # bytes of text read at a time
MOST_RECORD = 1 << 28  # bytes; a row that does not end within this is refused
FREE_SHARE = 0.5  # of the free disk that parsed rows may take
_LINE_END = rb"\r\n|\n|\r(?!\Z)"  # a carriage return at the end of a block may be half of one
_QUOTED = rb'(?:^|(?<=[%s\r\n]))"[^"]*(?:""[^"]*)*(?:"|\Z)'


class TableChunks(ABC):
    """The rows of a file (``source``) as tables of at most ``rows`` rows, ``n_rows`` in all; each iteration reads the
    file anew. Made by `read_chunks`."""

    n_rows: int
    _column: str | None = None  # the target

    def __init__(self, content: Content, rows: int, target: Target, drop_unlabelled: bool) -> None:
        self.source, self.rows = content.name, rows
        self._content, self._target, self._drop_unlabelled = content, target, drop_unlabelled
        self._stamp = _stamp(self.source)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source!r}: {self.n_rows:,} rows, {self.rows:,} at a time)"

    def __iter__(self) -> Iterator[Table]:
        """Yield the chunks, from the first row on. Raise `InputError` if the file has changed since it was opened."""
        if _stamp(self.source) not in (self._stamp, None):  # one that is gone may have been kept
            raise InputError("has changed since it was opened", file=self.source, cure="Call read_chunks again.")
        try:
            for table in self._tables():
                parts = max(1, -(-table.n_rows // self.rows))
                for rows in np.array_split(np.arange(table.n_rows), parts):
                    yield table if parts == 1 else table.take(slice(int(rows[0]), int(rows[-1]) + 1))
        except FileNotFoundError as error:
            raise InputError("was deleted after it was opened", file=self.source, cure="Restore the file.") from error

    @abstractmethod
    def _tables(self) -> Iterator[Table]:
        """Yield tables of about so many rows, with their targets."""

    def _labelled(self, table: Table, line_of: Callable[[int], int] | None = None) -> Iterator[Table]:
        """Yield the table with its target; nothing where no row has one and such rows are left out."""
        if self._target is False:
            table = table.with_target(None)
        elif table.target is None:
            table = choose_target(table, self._target)
        if self._drop_unlabelled and table.target is not None:
            self._column = table.target.name
            table = table.take(~table.target.is_missing)
        if table.n_rows:
            yield refuse_unlabelled(table, drop_unlabelled=False, line_of=line_of, is_part=True)

    def encoded(self, encoder: TableEncoder | None = None, *, text: str | Sequence[str] | None = None) -> EncodedChunks:
        """Return the same rows as numbers, in pairs (X, y). Its ``encoder`` belongs in front of the model.

        Parameters
        ----------
        encoder : TableEncoder, optional
            A fitted one. None learns one in a pass over all rows, with ``impute="mean"``, which needs not all at once.
        text : str or list of str, optional
            Columns of free text, where an encoder is learned: their words are hashed, for the same reason.
        """
        from margrove.data.chunk_encoder import learn_encoder

        if encoder is not None and text is not None:
            raise ParameterError("encoder and text are both given; an encoder has its own text. Leave one out.")
        return EncodedChunks(self, learn_encoder(self, text) if encoder is None else encoder)


class EncodedChunks:
    """Encoded chunks, pairs (X, y); each iteration reads the file anew. Made by `TableChunks.encoded`."""

    def __init__(self, chunks: TableChunks, encoder: TableEncoder) -> None:
        self.chunks, self.encoder = chunks, encoder

    def __repr__(self) -> str:
        columns = len(self.encoder.get_feature_names_out())
        return f"EncodedChunks({self.chunks.source!r}: {self.chunks.n_rows:,} rows of {columns:,} numbers)"

    def __iter__(self) -> Iterator[tuple[Matrix, NDArray[Any]]]:
        """Yield the chunks, from the first row on."""
        for table in self.chunks:
            yield self.encoder.transform(table.with_target(None)), table.labels()


def _stamp(path: str) -> tuple[int, int] | None:
    """Return the size and the time of the last change of a file, None if there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def read_chunks(
    source: str | os.PathLike[str],
    *,
    rows: int = 50_000,
    target: Target = None,
    header: bool | str = "auto",
    delimiter: str = "auto",
    encoding: str = "auto",
    missing: Sequence[str] = DEFAULT_MISSING,
    drop_unlabelled: bool = False,
    skip: int = 0,
    header_row: int | None = None,
    kinds: Mapping[str, str] | None = None,
) -> TableChunks:
    """Read a file a chunk of rows at a time, as often as needed, for files larger than memory.

    Delimited text, LIBSVM (both may be compressed), Parquet, Arrow and Feather are read, by the rules of `read_table`;
    other formats are refused.
    A first pass over text decides the kinds of the columns for all chunks and finds faults. Parsed rows of delimited
    text are kept in a temporary file, so that later passes need not parse it again. The file is in the folder
    TMPDIR, else in ``/var/tmp``, takes half of the free disk at most, and is gone with the chunks or the process.

    Parameters
    ----------
    source : str or path
    rows : int
        The most rows of a chunk.
    target, header, delimiter, encoding, missing, drop_unlabelled, skip, header_row, kinds
        As in `read_table`. Lines that it would leave out between or below the rows are an error here, and what columns
        hold is inferred from the first rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from margrove.data import read_chunks
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "fruit.csv"
    >>> _ = path.write_text("size,weight,ripe\\n1.5,20,yes\\n0.5,10,no\\n2.5,30,yes\\n")
    >>> chunks = read_chunks(path, rows=2)
    >>> [table.shape for table in chunks], [table.labels().tolist() for table in chunks]
    ([(2, 2), (1, 2)], [['yes', 'no'], ['yes']])
    """
    check_whole("rows", rows, least=1)
    options = TextOptions(header, delimiter, encoding, missing, skip, header_row, kinds or {})
    if not isinstance(source, (str, os.PathLike)) or os.fspath(source) == "-":
        raise ParameterError(f"source is {source!r}; it must be the path of a file, which is read several times.")
    path, part = split_part(os.fspath(source))
    file = _TextFile(path, encoding)
    form = recognise(replace(file.head, part=part), is_encoded=encoding != "auto")
    common: dict[str, Any] = {"rows": rows, "target": target, "drop_unlabelled": drop_unlabelled}
    chunks: TableChunks
    if form == "delimited" or (form == "svmlight" and delimiter != "auto"):
        chunks = DelimitedChunks(file, options, **common)
    elif form == "svmlight":
        check_label(target, file.head)
        chunks = SvmlightChunks(file, **common)
    else:
        chunks = ColumnarChunks(file, form, **common)
    if next(iter(chunks), None) is None:  # a fault of the target is reported now
        problem = "every target cell is missing"
        raise InputError(problem, file=chunks.source, column=chunks._column, cure="Choose another target.")
    return chunks


class _TextFile:
    """A file that is read in blocks of whole lines, decompressed and in UTF-8."""

    def __init__(self, path: str, encoding: str) -> None:
        self.raw = open_file(Path(path))
        self.path = path
        found: tuple[str, Any] = compression_of(self.raw.head(16)) or ("text", open)
        self._method, self._open = found
        self.is_compressed = self._open is not open
        with damage_refused(path, self._method), self._open(path, "rb") as file:
            first = file.read(HEAD)
        if not first.strip():
            raise InputError("the file is empty", file=path, cure="Was it fully written?")
        self.encoding = (byte_order_mark(first) or _guessed(first)) if encoding == "auto" else encoding
        if first[:6] != b"\x93NUMPY":
            with self._opened() as file:
                first = file.read(HEAD).removeprefix(codecs.BOM_UTF8)
        self.head = Content(path, self.raw.extension, held=first)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Open the file for reading its text, decompressed and encoded in UTF-8."""
        with damage_refused(self.path, self._method), self._open(self.path, "rb") as file:
            try:
                yield file if is_utf8(self.encoding) else codecs.EncodedFile(file, "utf-8", self.encoding)
            except UnicodeDecodeError as error:
                problem = f"the text is not {self.encoding}: {error.reason}"
                raise InputError(problem, file=self.path, cure=RIGHT_ENCODING) from None

    def blocks(self, size: int, skipped: int, delimiter: str | None) -> Iterator[tuple[int, Content]]:
        """Yield blocks of whole records of about ``size`` bytes, each with the number of lines before it, from line
        ``skipped`` on. ``delimiter`` is that of cells whose quotes may hold line ends; None: none may."""
        with self._opened() as file:
            rest, line = file.read(size).removeprefix(codecs.BOM_UTF8), 0
            data = rest
            while data:
                if len(rest) > MOST_RECORD:
                    problem = f"no row ends within {len(rest) >> 20} MiB"
                    raise InputError(problem, file=self.path, line=line + 1, cure="Check for an unclosed quote.")
                while skipped > line and (end := re.search(_LINE_END, rest)):
                    rest, line = rest[end.end() :], line + 1
                # Where no record ends in the block, it is longer than the block: read on.
                cut = _last_record(rest, delimiter) if skipped <= line else 0
                if cut:
                    yield line, Content(self.path, held=rest[:cut])
                    line += _lines_in(rest[:cut])
                data = file.read(size)
                rest = rest[cut:] + data
            if rest.strip() and skipped <= line:
                yield line, Content(self.path, held=rest)


def _guessed(head: bytes) -> str:
    is_text = b"\x00" not in head
    return (guess_encoding(head) if is_text and bad_byte_at(head) is not None else None) or "utf-8"


def _lines_in(data: bytes) -> int:
    return data.count(b"\n") or data.count(b"\r")


def _last_record(data: bytes, delimiter: str | None) -> int:
    """Return the offset after the last whole record: after a line end that is in no quotes."""
    if delimiter is None or b'"' not in data:
        return data[:-1].rfind(b"\r") + 1 if b"\n" not in data else data.rfind(b"\n") + 1
    end = after = 0  # behind the last line end, and behind the last quoted cell
    for match in re.finditer(_QUOTED % re.escape(delimiter.encode()), data):
        start = match.start()
        end = max(end, data.rfind(b"\n", after, start) + 1, data.rfind(b"\r", after, start) + 1)
        after = match.end()
    # A carriage return at the end may be half of a line end.
    return max(end, data.rfind(b"\n", after) + 1, data.rfind(b"\r", after, len(data) - 1) + 1)


def _block_size(head: bytes, rows: int) -> int:
    """Return the bytes that hold about so many rows, judged by the first lines."""
    lines = max(1, _lines_in(head))
    return int(min(max(rows * len(head) / lines, LEAST_BLOCK), MOST_BLOCK))


@contextmanager
def _lines_counted_from(line: int) -> Iterator[None]:
    """Shift the line of an `InputError` about a block that begins after ``line`` lines."""
    try:
        yield
    except InputError as error:
        found = None if error.line is None else error.line + line
        raise InputError(error.problem, file=error.file, line=found, column=error.column, cure=error.cure) from None


class DelimitedChunks(TableChunks):
    """CSV and its kin."""

    def __init__(self, file: _TextFile, options: TextOptions, **common: Any) -> None:
        super().__init__(file.head, **common)
        self._content, self._dialect = options.sniffed(file.head, is_whole=False)
        self._body = replace(self._dialect, body=0, above=0)  # that of a block of rows
        self._file = file
        self._kinds = options.kinds
        self._size = _block_size(file.head.data, self.rows)
        self._skipped = _lines_in(self._content.data[: self._dialect.body])
        self._parsed_rows: _ParsedRows | None = None  # all of them, once a pass has reached the end
        self._can_keep = True
        self._settle()

    def _settle(self) -> None:
        """Make the first pass: find the kinds of the columns, the unnamed ones that carry nothing, and faults. Its rows
        are kept if all blocks have the same kinds; if not, the next pass parses them again, as their final kinds."""
        import pyarrow as pa

        from margrove.data.arrow import table_from_arrow
        from margrove.data.delimited import SHORT, carries_nothing, is_tail_untidy, is_untidy, no_rows

        self._types: dict[str, Any] | None = None
        found: dict[str, Any] = {}
        names = self._dialect.columns
        useless = set(self._dialect.unnamed)
        parsed, schema, n = _ParsedRows(), None, 0
        first = b""  # rows, as many as the head of a file has
        for line, block, arrow in self._parsed():
            first += block.data if len(first) < HEAD else b""
            if is_untidy(arrow, self._content, self._dialect):
                self._refuse_untidy(line, block)
            schema = arrow.schema if n == 0 else schema if arrow.schema == schema else None
            if schema is not None and self._can_keep:
                self._can_keep = parsed.add(arrow)
            for field in arrow.schema:
                found[field.name] = _wider(found.get(field.name, pa.null()), field.type)
            if useless:
                table = table_from_arrow(arrow.select(sorted(useless)), source=self.source)
                useless = {
                    column.name
                    for column in table
                    if carries_nothing(column, is_first=column.name == names[0], before=n)
                }
            n += arrow.num_rows
            report(Progress("scanning the file", n))
        if n == 0:
            raise no_rows(self._content, self._dialect)
        if self._content.size <= SHORT or is_tail_untidy(block, self._dialect):
            self._refuse_untidy(line, block)
        self._kinds = self._inferred(found, first)
        self._types = found
        if schema is not None and self._can_keep and found == dict(zip(schema.names, schema.types, strict=True)):
            self._parsed_rows = parsed
        self._kept = [name for name in names if name not in useless] or list(names)
        self.n_rows = sum(table.n_rows for table in self._tables()) if self._drop_unlabelled else n

    def _inferred(self, types: dict[str, Any], data: bytes) -> Kinds:
        """Return how columns are written, as inferred from the first rows: the format of numbers and dates that are
        text, and the spelling of words. Columns of codes become text in ``types``."""
        import pyarrow as pa

        from margrove.data.arrow import table_from_arrow
        from margrove.data.delimited import Rows, parse_block

        rows = Rows(self._content.replaced(data), self._body)
        raw = table_from_arrow(parse_block(rows.content, self._body, None), source=self.source)
        given = {name: kind for name, kind in self._kinds.items() if kind != "ignore"}
        table = infer_columns(raw, given, rows)
        kinds: dict[str, Any] = {name: kind for name, kind in self._kinds.items() if kind == "ignore"}
        for before, column in zip(raw, table, strict=True):
            if before.kind != "category" and column.kind == "category":
                types[column.name] = pa.string()
            if column.kind == "category":
                kinds[column.name] = column.levels
            elif before.kind == "category":
                kinds[column.name] = column.format or NumberFormat()
            elif column.format != before.format:  # 20240131
                types[column.name], kinds[column.name] = pa.string(), column.format
        return kinds

    def _refuse_untidy(self, line: int, block: Content) -> None:
        """Raise `InputError` if lines of the block are no rows; the sums in a short file need all of it."""
        from margrove.data.tidy import DOUBTFUL, KEPT, tidied

        is_part = self._content.size >= HEAD
        dialect = replace(self._body, above=line) if is_part else self._dialect
        found = tidied(block if is_part else self._content, dialect, is_part=is_part)
        said = () if found is None else found[1].notes[len(dialect.notes) :]
        if left_out := [note for note in said if KEPT not in note and DOUBTFUL not in note]:
            problem = "some lines are no rows of the table, or not whole"
            cure = f"Correct them, or use read_table, which says: {left_out[0]}"
            raise self._content.error(problem, cure=cure)

    def _parsed(self) -> Iterator[tuple[int, Content, Any]]:
        from margrove.data.delimited import parse_block

        for line, block in self._file.blocks(self._size, self._skipped, self._dialect.delimiter):
            if self._dialect.delimiter == " ":
                block = block.replaced(squeezed(block.data))
            with _lines_counted_from(line):
                arrow = parse_block(block, self._body, self._types)
            if arrow.num_rows:
                yield line, block, arrow

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parsed_rows": None}  # a copy parses the text itself

    def _tables(self) -> Iterator[Table]:
        if self._parsed_rows is not None:
            for number, arrow in enumerate(self._parsed_rows.read()):
                try:
                    tables = list(self._checked(arrow))
                except InputError:  # the same rows from the text name the line
                    tables = self._checked_text(*next(islice(self._parsed(), number, None)))
                yield from tables
            return
        parsed = _ParsedRows()
        for line, block, arrow in self._parsed():
            tables = self._checked_text(line, block, arrow)
            self._can_keep = self._can_keep and parsed.add(arrow)
            yield from tables
        if self._can_keep:
            self._parsed_rows = parsed

    def _checked_text(self, line: int, block: Content, arrow: pa.Table) -> list[Table]:
        with _lines_counted_from(line):
            return list(self._checked(arrow, partial(line_of_row, block, self._body)))

    def _checked(self, arrow: pa.Table, line_of: Callable[[int], int] | None = None) -> Iterator[Table]:
        from margrove.data.arrow import table_from_arrow

        table = table_from_arrow(arrow, source=self.source)
        check_finite(table, line_of)
        table = table.select(self._kept)
        kinds = {name: kind for name, kind in self._kinds.items() if kind == "ignore" or _is_text(table, name)}
        yield from self._labelled(infer_columns(table, kinds) if kinds else table, line_of)


def _is_text(table: Table, name: str) -> bool:
    return name in table and table[name].kind == "category"


class _ParsedRows:
    """The rows of a text as an Arrow stream in a temporary file, which is mapped into memory to be read: without it a
    streamed LinearSVC takes 2.7 times as long. The file has no name where the system allows it."""

    _file: Any = None

    def add(self, arrow: pa.Table) -> bool:
        """Write a block of rows; return whether there is room for it: half of the free disk."""
        import pyarrow as pa

        try:
            if self._file is None:
                # /tmp may be in memory, /var/tmp is not; TMPDIR decides.
                is_given = os.environ.get("TMPDIR") or not os.access("/var/tmp", os.W_OK)
                folder = tempfile.gettempdir() if is_given else "/var/tmp"
                self._most = FREE_SHARE * shutil.disk_usage(folder).free
                self._file = tempfile.TemporaryFile(prefix="margrove-rows-", dir=folder)  # noqa: SIM115, open like self
                self._drop = weakref.finalize(self, _close, self._file)
                self._stream = pa.ipc.new_stream(self._file, arrow.schema)
            is_room = bool(self._file.tell() + arrow.nbytes <= self._most)
            if is_room:
                self._stream.write_table(arrow)
                self._file.flush()
        except OSError as error:
            why = f"The disk has no room to store the parsed rows ({error})"
            message = f"{why}: every pass over the file parses its text again."
            warnings.warn(message, DataWarning, stacklevel=level_of_caller())
            is_room = False
        if not is_room and self._file is not None:
            self._drop()
        return is_room

    def read(self) -> Iterator[pa.Table]:
        """Yield the blocks."""
        import pyarrow as pa

        with pa.ipc.open_stream(pa.py_buffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ))) as stream:
            for batch in stream:
                yield pa.Table.from_batches([batch])


def _close(file: Any) -> None:
    """Close a temporary file. What a full disk left in its buffer is not needed."""
    with suppress(OSError):
        file.close()


def _wider(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return the type that pyarrow would have inferred for cells of both types."""
    import pyarrow as pa
    import pyarrow.types as kinds

    kinds_of_both = [pa.timestamp("s") if kinds.is_date(kind) else kind for kind in (first, second)]
    schemas = [pa.schema([("column", kind)]) for kind in kinds_of_both]
    try:
        wider = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        wider = pa.string()
    return pa.dictionary(pa.int32(), pa.string()) if kinds.is_string(wider) else wider


class SvmlightChunks(TableChunks):
    """LIBSVM files."""

    def __init__(self, file: _TextFile, **common: Any) -> None:
        super().__init__(file.head, **common)
        self._file, self._size = file, _block_size(file.head.data, self.rows)
        self._width, self._first, self.n_rows = 0, 1, 0
        for _, _, matrix, _ in self._parsed(None):
            self._width = max(self._width, matrix.shape[1])
            self._first = min(self._first, first_index(matrix))
            self.n_rows += matrix.shape[0]
            report(Progress("scanning the file", self.n_rows))
        if self.n_rows == 0:
            raise self._content.error("the file has no rows", cure="Each line is a label and its features.")

    def _parsed(self, width: int | None) -> Iterator[tuple[int, Content, csr_matrix, NDArray[np.float64]]]:
        for line, block in self._file.blocks(self._size, 0, None):
            with _lines_counted_from(line):
                matrix, y = parse_svmlight(block, width)
            if matrix.shape[0]:
                yield line, block, matrix, y

    def _tables(self) -> Iterator[Table]:
        for line, block, matrix, y in self._parsed(self._width):
            with _lines_counted_from(line):
                table = svmlight_table(block, matrix, y, first=self._first)
            yield from self._labelled(table)


class ColumnarChunks(TableChunks):
    """Parquet, Arrow and Feather files, whose columns have their kinds already."""

    def __init__(self, file: _TextFile, form: Format, **common: Any) -> None:
        if form not in ("parquet", "arrow", "arrow stream") or file.is_compressed:
            where = " if compressed" if file.is_compressed else ""
            raise InputError(
                f"files of the format {form!r} cannot be read in chunks{where}",
                file=file.head.name,
                cure="Save it as CSV, LIBSVM or Parquet, or read it as a whole with read_table.",
            )
        super().__init__(file.raw, **common)
        self._form = form
        if form == "parquet" and not self._drop_unlabelled:
            import pyarrow.parquet

            with damage_refused(self.source, "Parquet"):
                self.n_rows = int(pyarrow.parquet.ParquetFile(self._content.open(0)).metadata.num_rows)
        else:
            self.n_rows = sum(table.n_rows for table in self._tables())
        if self.n_rows == 0:
            raise self._content.error("the file has columns but no rows", cure="Was it fully written?")

    def _tables(self) -> Iterator[Table]:
        from margrove.data.arrow import columnar_batches, table_from_batches

        for batch in columnar_batches(self._content, self._form, self.rows):
            if batch.num_rows:
                yield from self._labelled(table_from_batches([batch], self.source, self._form))
