"""Files that lie about themselves: offsets outside of their buffers, sizes that nothing can have, little that becomes
much. Each is refused in one line; what is merely odd is read."""

from __future__ import annotations

import gzip
import io
import resource
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from margrove.data import as_table, chunks, memory, read_chunks, read_table
from margrove.errors import InputError

NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(struct.pack("<4i", 0, 1, 3, 4)), pa.py_buffer(b"a\xff\xfeb")]
)
ASTRAY = pa.Array.from_buffers(  # the second text ends far after the end of all texts
    pa.string(), 3, [None, pa.py_buffer(struct.pack("<4i", 0, 1, 900_000_000, 4)), pa.py_buffer(b"abcd")]
)


def arrow_file(**columns: object) -> bytes:
    sink = io.BytesIO()
    table = pa.table({name: cells if isinstance(cells, pa.ChunkedArray) else [] for name, cells in columns.items()})
    with pa.ipc.new_file(sink, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return sink.getvalue()


def with_numbers(cells: pa.ChunkedArray) -> dict[str, pa.ChunkedArray]:
    return {"text": cells, "y": pa.chunked_array([pa.array(np.arange(float(len(chunk)))) for chunk in cells.chunks])}


@pytest.mark.parametrize("reader", [read_table, read_chunks])
def test_text_of_an_arrow_file_that_is_not_utf8_is_refused_with_its_row(write, reader):
    path = write(arrow_file(**with_numbers(pa.chunked_array([NOT_UTF8]))), "t.arrow")
    with pytest.raises(InputError, match=r"t\.arrow, column 'text': the cell in row 1 cannot be read \(Invalid UTF8"):
        reader(path)


def test_rows_of_a_damaged_table_are_counted_over_its_chunks():
    good = pa.array(["x", "y", "z"])
    with pytest.raises(InputError, match="pyarrow table, column 'text': the cell in row 4 cannot be read"):
        as_table(pa.table(with_numbers(pa.chunked_array([good, NOT_UTF8]))))


def test_a_level_that_is_not_utf8_is_refused_with_its_first_row():
    cells = pa.DictionaryArray.from_arrays(pa.array([0, 0, 2, 1], pa.int8()), NOT_UTF8, safe=False)
    with pytest.raises(InputError, match="column 'text': the cell in row 3 cannot be read"):
        as_table(pa.table(with_numbers(pa.chunked_array([cells]))))


@pytest.mark.parametrize("given", ["table", "batch", "reader", "pandas"])
def test_offsets_outside_of_their_buffers_are_refused_in_memory(given):
    table = pa.table(with_numbers(pa.chunked_array([ASTRAY])))
    if given == "pandas":
        import pandas

        frame = pandas.DataFrame({"text": pandas.Series(pandas.arrays.ArrowExtensionArray(table["text"]))})
    else:
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        frame = {"table": table, "batch": table.to_batches()[0], "reader": reader}[given]
    with pytest.raises(InputError, match="column 'text': the cell in row 2 cannot be read"):
        as_table(frame)


def test_null_cells_may_hold_any_code():
    """Valid by the format's rules; pyarrow's `unify_dictionaries` follows such codes and crashes."""

    def cells(levels, code):
        codes = [None, pa.py_buffer(np.array([0, code, 1], np.int32))]
        codes[0] = pa.py_buffer(b"\x05")  # the second is null
        return pa.DictionaryArray.from_arrays(pa.Array.from_buffers(pa.int32(), 3, codes), pa.array(levels), safe=False)

    chunked = pa.chunked_array([cells(["x", "y"], 2_000_000_000), cells(["y", "z"], -2_000_000_000)])
    assert as_table(pa.table(with_numbers(chunked)))["text"].cells() == ["x", None, "y", "y", None, "z"]


def test_null_cells_may_hold_any_view():
    whole = pa.array(["short", "a text that is longer than twelve bytes", None], pa.string_view())
    validity, views, *texts = whole.buffers()
    astray = bytearray(views.to_pybytes())
    astray[32:48] = struct.pack("<4i", 1_000_000, 0, 7, 2_000_000_000)
    cells = pa.Array.from_buffers(whole.type, 3, [validity, pa.py_buffer(bytes(astray)), *texts])
    table = as_table(pa.table(with_numbers(pa.chunked_array([cells.slice(1)]))))
    assert table["text"].cells() == ["a text that is longer than twelve bytes", None]


def npy_declaring(header: str) -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\x00" * 64


BAD_ARRAYS = {
    "72 TiB": ("{'descr': '<f8', 'fortran_order': False, 'shape': (9895604649984, 1)}", "allocate 72.0 TiB"),
    "open bracket": ("{'descr': '<f8', 'fortran_order': False, 'shape': (3, (", ""),
    "no dict": ("3", ""),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_a_bad_header_of_a_numpy_array_is_refused(write, case):
    header, words = BAD_ARRAYS[case]
    with pytest.raises(InputError, match=rf"t\.npy: the NumPy data cannot be read \(.*{words}.*\)\. Save it again"):
        read_table(write(npy_declaring(header), "t.npy"))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("X.npy", npy_declaring(header))
    with pytest.raises(InputError, match=rf"t\.npz: the NumPy data cannot be read \(.*{words}.*\)\. Save it again"):
        read_table(write(archive.getvalue(), "t.npz"))


@pytest.fixture
def scarce(monkeypatch):
    """A machine with 1 MB of free memory."""
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "free_memory", lambda: 1_000_000)


def zeros_npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, X=np.zeros((200_000, 3)), y=np.zeros(200_000))
    return file.getvalue()


def parquet_of_zeros() -> bytes:
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"a": pa.array(np.zeros(200_000, np.int8)), "y": np.zeros(200_000)}), file)
    return file.getvalue()


def feather_of_zeros() -> bytes:
    import pyarrow.feather

    file = io.BytesIO()
    pyarrow.feather.write_feather(pa.table({"a": np.zeros(400_000), "y": np.zeros(400_000)}), file)
    return file.getvalue()


ARFF = b"@relation t\n@attribute a numeric\n@attribute y numeric\n@data\n"
LARGE = {
    "t.csv": b"a,y\n" + b"0,1\n" * 200_000,
    "t.csv.gz": gzip.compress(b"a,y\n" + b"0,1\n" * 2_000_000),
    "t.npz": zeros_npz(),
    "t.parquet": parquet_of_zeros(),
    "t.feather": feather_of_zeros(),
    "t.arff": ARFF + b"0,1\n" * 20_000,
    "t.svm": b"1 1:0 2:1\n" * 50_000,
    "names.svm": b"1 1:0\n0 100000:1\n",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_file_that_does_not_fit_in_the_free_memory_is_refused(write, scarce, name):
    with pytest.raises(InputError, match=rf"{name}: reading it takes about .* GB of memory, but 0\.0 GB are free"):
        read_table(write(LARGE[name], name))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather"])
def test_reading_by_chunks_is_not_limited_by_memory(write, scarce, name):
    rows = read_chunks(write(LARGE[name], name))
    assert sum(table.n_rows for table in rows) == rows.n_rows >= 200_000


def test_a_row_without_an_end_is_refused_by_chunks(write, monkeypatch):
    monkeypatch.setattr(chunks, "MOST_RECORD", 1 << 20)
    path = write(gzip.compress(b"a,y\n1,2\n" + b"3," * (1 << 23)), "t.csv.gz")
    with pytest.raises(InputError, match=r"t\.csv\.gz, line \d+: no row ends within \d+ MiB"):
        read_chunks(path)


_CHILD = """
import resource, sys
from margrove.data import read_table
from margrove.errors import InputError
read_table(sys.argv[2])
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (most, most))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_table(sys.argv[3])
except InputError as error:
    print(error, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, sep="|")
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS") or sys.platform != "linux", reason="needs Linux")
def test_a_small_file_that_becomes_large_is_refused_before_memory_runs_out(write):
    small = write(b"a,y\n1,2\n", "small.csv")
    bomb = write(gzip.compress(b"a,y\n") + gzip.compress(b"0,1\n" * 2_500_000) * 100, "bomb.csv.gz")  # 1 GB of text
    assert bomb.stat().st_size < 2_000_000
    words = [sys.executable, "-c", _CHILD, str(3 << 30), str(small), str(bomb)]
    child = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    message, kilobytes = child.stdout.split("|")
    assert "bomb.csv.gz: reading it takes about" in message
    assert int(kilobytes) < 2_000_000
