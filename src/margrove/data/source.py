"""Open a source, decompress it and recognise its format by its bytes."""

from __future__ import annotations

import bz2
import codecs
import difflib
import gzip
import io
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from margrove.advice import Advice, Parameter, Setting
from margrove.data.columns import clip, named
from margrove.data.memory import check_memory
from margrove.errors import InputError, MargroveError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa


Source: TypeAlias = str | os.PathLike[str] | IO[Any]  # "-" is standard input
Format: TypeAlias = (
    Literal["delimited", "arff", "svmlight", "npz", "npy", "parquet", "arrow", "arrow stream"]
    | Literal["workbook", "json", "SQLite", "DuckDB"]
)

LINE_END = ord("\n")
HEAD = 1 << 16  # bytes that are looked at to recognise a format: 64 KiB hold some hundred rows of most tables

PIECE = 1 << 24  # bytes decompressed at a time
RIGHT_ENCODING = Advice(
    "Name the right encoding, such as ", Setting("encoding", "utf-8"), " or ", Setting("encoding", "cp1252"), "."
)
AGAIN = "If it is damaged or cut short, write or download it again."

_COMPRESSIONS: dict[bytes, tuple[str, Callable[..., Any]]] = {  # by a pattern of their first bytes
    rb"\x1f\x8b": ("gzip", gzip.open),
    rb"BZh[1-9]1AY&SY": ("bzip2", bz2.open),
    rb"\xfd7zXZ\x00": ("xz", lzma.open),
}
_MAGIC: dict[bytes, Format] = {  # by a pattern of their first bytes
    rb"PAR1": "parquet",
    rb"ARROW1": "arrow",
    rb"\xff\xff\xff\xff": "arrow stream",
    rb"\x93NUMPY": "npy",
    rb"PK\x03\x04.{26}[^\x00]{0,99}?\.npy": "npz",  # the first file of a ZIP archive
    rb"PK\x03\x04": "workbook",
    rb"PK\x05\x06": "npz",  # an empty archive
    rb"\xd0\xcf\x11\xe0": "workbook",  # .xls
    rb"SQLite format 3": "SQLite",
    rb".{8}DUCK": "DuckDB",
}
HAS_PARTS = {"workbook": "sheet", "SQLite": "table", "DuckDB": "table"}  # what "file::part" names
_FOREIGN = {
    b"FEA1": "in the old Feather format (version 1)",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF87a": "a GIF image",
    b"GIF89a": "a GIF image",
    b"\x7fELF": "a program",
    b"\x89HDF": "an HDF5 file",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"Rar!": "a RAR archive",
    b"RDX2\n": "R's own data format",
    b"RDX3\n": "R's own data format",
}
_JSON = rb"\s*(\{|\[\s*[\[{])"
_MARKUP = rb"\s*<(!doctype|html|\?xml)"
_BYTE_ORDER_MARKS = {  # the longer first: UTF-32's little-endian mark begins with UTF-16's
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# A label, then index:value pairs (the value is not looked at, so that a bad one is an error and not another
# format), then perhaps a remark.
_SVMLIGHT_LINE = re.compile(rb"\s*%s((?:\s+(?:qid|\d+):\S+)*)\s*(?:#.*)?" % _NUMBER)


@dataclass(frozen=True)
class Content:
    """The decompressed content of a file. A plain file on disk is read only when its bytes are needed."""

    name: str  # of the file, for messages
    extension: str = ""  # without that of a compression, lower case: ".csv" of "A.CSV.gz"; a hint only
    path: Path | None = None  # the file itself, where its bytes are the content
    held: bytes | None = None  # the content, where it is in memory
    part: str | None = None  # the sheet or the table that was named
    note: str = ""  # for the user: the encoding, where it is not UTF-8

    @cached_property
    def data(self) -> bytes:
        """All of it, in memory."""
        if self.held is not None:
            return self.held
        assert self.path is not None
        return self.path.read_bytes()

    @cached_property
    def size(self) -> int:
        """Its length in bytes."""
        return self.path.stat().st_size if self.path is not None else len(self.data)

    def head(self, size: int = HEAD) -> bytes:
        """Its first bytes."""
        if self.path is None:
            return self.data[:size]
        with self.path.open("rb") as file:
            return file.read(size)

    def count_lines(self, start: int) -> int:
        """Return the number of lines from byte `start` on, read in pieces that fit a cache: 112 MB in 20 ms."""
        piece = np.empty(1 << 18, dtype=np.uint8)
        lines, last = 0, LINE_END
        with io.BytesIO(self.data) if self.path is None else self.path.open("rb", buffering=0) as file:
            file.seek(start)
            while n := file.readinto(piece):
                lines += int(np.count_nonzero(piece[:n] == LINE_END))
                last = int(piece[n - 1])
        return lines + (last != LINE_END)

    def open(self, start: int) -> pa.NativeFile:
        """A pyarrow stream of it from byte `start` on."""
        import pyarrow as pa

        if self.path is None:
            return pa.BufferReader(pa.py_buffer(self.data).slice(start))
        file = pa.OSFile(str(self.path))
        file.seek(start)
        return file

    def replaced(self, data: bytes, note: str | None = None) -> Content:
        """The same file with other content, held in memory, and perhaps another note."""
        note = self.note if note is None else note
        return Content(self.name, self.extension, held=data, part=self.part, note=note)

    def tail(self, size: int) -> bytes:
        """Its last bytes."""
        if self.path is None:
            return self.data[-size:]
        with self.path.open("rb") as file:
            file.seek(max(0, self.size - size))
            return file.read()

    def error(self, problem: str, **details: Any) -> InputError:
        """Return an `InputError` that names this file; ``details`` are its line, column and cure."""
        return InputError(problem, file=self.name, **details)


def open_content(source: Source) -> Content:
    """Open a path, a path with a sheet or a table (``shop.db::orders``), ``"-"`` (standard input) or a binary file
    object, and decompress it. Raise `InputError` if there is no such file, or it is a directory, unreadable, empty, or
    damaged in its compression."""
    part = None
    if isinstance(source, (str, os.PathLike)):
        source, part = split_part(os.fspath(source))
    if isinstance(source, str) and source != "-":
        content = open_file(Path(source))
    else:
        name, data = _read_stream(source)
        content = Content(name, _extension(name), held=data)
    if part is not None:
        content = replace(content, name=f"{content.name}::{part}", part=part)
    head = content.head()
    compression = compression_of(head)
    if compression is not None:
        content = content.replaced(_decompressed(content, *compression))
        head = content.head()
    if re.search(rb"\S", head) is None and re.search(rb"\S", content.data) is None:
        raise content.error("the file is empty", cure="Was it fully written?")
    return content


def split_part(source: str) -> tuple[str, str | None]:
    """Return a path and the sheet or table that stands after ``::``, None where there is none. A file whose own name
    has ``::`` is taken as it is."""
    path, mark, part = source.rpartition("::")
    is_split = mark and path not in ("", "-") and not os.path.exists(source)
    return (path, part) if is_split else (source, None)


def choose_part(content: Content, form: Format, parts: Sequence[str], likely: Sequence[str] | None = None) -> str:
    """Return the sheet or table that was named, whatever the case of its letters, or the only likely one. Raise
    `InputError` if there is none, or several are likely."""
    what, path = HAS_PARTS[form], content.name.removesuffix(f"::{content.part}")
    likely = parts if likely is None else likely
    if content.part is None:
        if len(likely) == 1:
            return likely[0]
        if not parts:
            raise content.error(f"there is no {what} in it", cure="Was it fully written?")
        where = "Name one of them: " if content.path else "Save it as a file and name one of them: "
        cure = f"{where}{f'{path}::{(likely or parts)[0]}'!r}."
        raise content.error(f"there are several {what}s: {named(parts)}", cure=cure)
    alike = [part for part in parts if part.casefold() == content.part.casefold()]
    if not alike:
        raise content.error(f"there is no {what} {content.part!r}", cure=f"There are: {named(parts)}.")
    return content.part if content.part in alike else alike[0]


def _extension(name: str) -> str:
    endings = [ending.lower() for ending in Path(name).suffixes]
    return next((ending for ending in reversed(endings) if ending not in (".gz", ".bz2", ".xz")), "")


def open_file(path: Path) -> Content:
    """Return a file as it is, compressed or not; raise `InputError` if it cannot be read."""
    name = str(path)
    try:
        with path.open("rb") as file:
            if path.is_file():
                file.read(1)  # an unreadable disk shows here, and not half-way through a parse
                return Content(name, _extension(name), path=path)
            return Content(name, _extension(name), held=file.read())  # a pipe: it can be read only once
    except FileNotFoundError:
        neighbours = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, neighbours, n=1, cutoff=0.75)
        cure = f"Did you mean {str(path.parent / near[0])!r}?" if near else "Check the path."
        raise InputError("there is no such file", file=name, cure=cure) from None
    except IsADirectoryError:
        raise InputError("is a directory; a file was expected", file=name, cure="Name a file in it.") from None
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise InputError(problem, file=name, cure="Check its permissions.") from None


def _read_stream(source: Source) -> tuple[str, bytes]:
    if source == "-":
        return "standard input", sys.stdin.buffer.read()
    if not hasattr(source, "read"):
        raise ParameterError(
            f"source is of type {type(source).__name__}; it must be a path, '-' or a binary file object. "
            "Use as_table for tables in memory."
        )
    data = source.read()
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "stream", data.encode() if isinstance(data, str) else bytes(data)


def compression_of(head: bytes) -> tuple[str, Callable[..., Any]] | None:
    """Return the name and the opener of the compression that these first bytes announce."""
    return next((found for magic, found in _COMPRESSIONS.items() if re.match(magic, head)), None)


def _decompressed(content: Content, method: str, opener: Callable[..., Any]) -> bytes:
    """Return the decompressed content. A small file may expand to any size, so the free memory is checked after each
    piece."""
    whole = io.BytesIO()
    with damage_refused(content.name, method), opener(content.path or io.BytesIO(content.data), "rb") as file:
        while piece := file.read(PIECE):
            whole.write(piece)
            check_memory(whole.tell(), content.name)  # parsing needs at least as much again
    return whole.getvalue()


@contextmanager
def damage_refused(file: str, form: str, cure: str = AGAIN, column: str | None = None) -> Iterator[None]:
    """Turn what a parser raises into an `InputError`. Parsers raise many kinds of exception on damaged bytes."""
    try:
        yield
    except (MargroveError, FileNotFoundError):  # `TableChunks` reports a file that is gone
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # that of libraries in Rust
            raise
        reason = clip(str(error).rstrip("."), 100) or type(error).__name__
        raise InputError(f"the {form} data cannot be read ({reason})", file=file, column=column, cure=cure) from error


def recognise(content: Content, *, is_encoded: bool = False) -> Format:
    """Return the format of a file, judged by its first bytes and, where these are ambiguous, by the extension. Raise
    `InputError` for any other, and where a part is named of one that has none. With ``is_encoded``, a named encoding,
    NUL bytes do not make the file binary."""
    form = _form(content, is_encoded)
    if content.part is not None and form not in HAS_PARTS:
        cure = f"Leave out {f'::{content.part}'!r}."
        raise content.error("only workbooks and databases have sheets or tables to choose from", cure=cure)
    return form


def _form(content: Content, is_encoded: bool) -> Format:
    head = content.head()
    has_nul = b"\x00" in head
    for magic, known in _MAGIC.items():
        if has_nul and re.match(magic, head, re.DOTALL):  # a CSV file may have a first column called PAR1
            return known
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise binary_file(content, what)
    mark = byte_order_mark(head)
    if not is_encoded and mark is None and has_nul:
        raise binary_file(content, "binary")
    text = head if mark is None else head.decode(mark, errors="ignore").encode()
    if re.match(_JSON, text):
        return "json"
    if re.match(_MARKUP, text, re.IGNORECASE):
        raise binary_file(content, "a web page or XML")
    lines = [line for line in text.splitlines() if line.strip()]
    meaningful = next((line for line in lines if not line.lstrip().startswith(b"%")), b"")
    if meaningful.lstrip().lower().startswith(b"@relation"):
        return "arff"
    return "svmlight" if _looks_svmlight(lines, content) else "delimited"


def _looks_svmlight(lines: list[bytes], content: Content) -> bool:
    rows = [line for line in lines if not line.lstrip().startswith(b"#")]
    if content.size > HEAD and len(rows) > 1:
        rows.pop()  # perhaps cut in the middle
    matches = [_SVMLIGHT_LINE.fullmatch(row) for row in rows]
    has_pairs = any(match is not None and match[1] for match in matches)
    if content.extension in (".svm", ".libsvm", ".svmlight", ".svmlin", ".t"):
        return has_pairs
    # The first row settles it: a fault further down must be reported as a fault of an SVMlight file.
    return has_pairs and matches[0] is not None and bool(matches[0][1])


def binary_file(content: Content, kind: str) -> InputError:
    """Return the error about a file that is not a table."""
    cure = "Save the table as CSV, Parquet, Arrow, Excel, JSON lines, ARFF, LIBSVM or .npz."
    if kind == "binary":
        kind = "a binary file, not text"
        setting = Setting("encoding", "utf-16-le")
        cure = Advice(cure, " If it is text in UTF-16 without a byte-order mark, set ", setting, ".")
    return content.error(f"the file is {kind}; no table can be read from it", cure=cure)


def byte_order_mark(data: bytes) -> str | None:
    """Return the encoding that a byte-order mark at the start announces, or, without one, UTF-16 where only every other
    byte is NUL, and most of these are; None otherwise."""
    marked = next((name for mark, name in _BYTE_ORDER_MARKS.items() if data.startswith(mark)), None)
    if marked is None and b"\x00" in data[:2]:
        halves = data[: HEAD // 2 * 2 : 2].count(0), data[1:HEAD:2].count(0)
        if min(halves) == 0 and 4 * max(halves) > min(len(data), HEAD):
            return "utf-16-be" if halves[0] else "utf-16-le"
    return marked


def is_utf8(encoding: str) -> bool:
    """Return whether this is a name of UTF-8."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8")


def as_utf8(content: Content, encoding: str) -> Content:
    """Return the file as text in UTF-8 without a byte-order mark. Raise `InputError` if it is not in that encoding;
    UTF-8 is not checked here: the parser finds a bad byte at no extra cost, and `bad_byte` then locates it."""
    mark = byte_order_mark(content.head())
    declared = (mark or "utf-8") if encoding == "auto" else encoding
    if is_utf8(declared) or declared.lower().replace("_", "-") == "utf-8-sig":
        return content.replaced(content.data.removeprefix(b"\xef\xbb\xbf")) if mark == "utf-8-sig" else content
    try:
        text = content.data.decode(declared).lstrip("\ufeff")
        return content.replaced(text.encode(), f"The text is in {declared.upper()}." if encoding == "auto" else "")
    except LookupError:
        words = f" is {encoding!r}, which Python does not support. Try 'cp1252'."
        raise ParameterError(Advice(Parameter("encoding"), words)) from None
    except UnicodeDecodeError as error:
        line = content.data.count(b"\n", 0, error.start) + 1
        problem = f"the text is not {declared}: {error.reason} at byte {error.start}"
        raise content.error(problem, line=line, cure=RIGHT_ENCODING) from None


def bad_byte_at(data: bytes) -> int | None:
    """Return the place of the first byte that is not UTF-8; None if all are, or the last character is only cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError as error:
        return error.start
    return None


class NotUTF8Error(InputError):
    """The error about the first byte that is not UTF-8; the text may be in another encoding."""


def bad_byte(content: Content) -> NotUTF8Error | None:
    """Return the error about the first byte that is not UTF-8, or None."""
    data = content.data
    try:
        data.decode()
    except UnicodeDecodeError as error:
        around = data[max(error.start - 12, 0) : error.start + 8].decode("latin-1")
        return NotUTF8Error(
            f"the text is not UTF-8 (byte 0x{data[error.start]:02x}, near {' '.join(around.split())!r})",
            file=content.name,
            line=data.count(b"\n", 0, error.start) + 1,
            cure=Advice("Name its encoding, such as ", Setting("encoding", "cp1252"), "."),
        )
    return None
