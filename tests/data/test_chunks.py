"""Chunks of a file are the table of the whole file, cut."""

from __future__ import annotations

import errno
import gzip
import io
import pickle
import tracemalloc
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import margrove.data.chunks as chunks_module
from margrove.data import TableEncoder, delimited, read_chunks, read_table
from margrove.data.readers import __file__ as readers_module
from margrove.errors import DataWarning, InputError, ParameterError

PENGUINS = Path(readers_module).with_name("penguins.csv")


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    """So that small files are cut at all."""
    monkeypatch.setattr(chunks_module, "LEAST_BLOCK", 300)


def cells(table) -> list[list]:
    """Each column's cells, target last, as plain values; None where missing."""
    columns = [*table, table.target] if table.target is not None else list(table)
    return [
        [
            None if is_missing else column.levels[value] if column.kind == "category" else float(value)
            for value, is_missing in zip(column.values, column.is_missing, strict=True)
        ]
        for column in columns
    ]


def assert_same(path, *, rows=7, **how):
    whole, chunks = read_table(path, **how), read_chunks(path, rows=rows, **how)
    for _ in range(2):  # each walk reads anew
        parts = list(chunks)
        assert len(parts) > 1
        assert max(part.n_rows for part in parts) <= rows
        assert {part.names for part in parts} == {whole.names}
        assert {tuple(column.kind for column in part) for part in parts} == {tuple(column.kind for column in whole)}
        joined = [[*chain.from_iterable(pieces)] for pieces in zip(*map(cells, parts), strict=True)]
        assert joined == cells(whole)
    assert chunks.n_rows == whole.n_rows


def written(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


ROWS = range(200)
TEXTS = {
    "numbers": "a,b,c\n" + "".join(f"{i},{i / 7},{i % 3}\n" for i in ROWS),
    "a word late in a column": "a,b\n" + "".join(f"{i},{i}\n" for i in ROWS) + "x,1.5\n",
    "whole numbers, then broken ones": "a,b\n" + "".join(f"{i if i < 150 else i / 2},{i % 2}\n" for i in ROWS),
    "truth values, then words": "a,b\n" + "".join(f"{'true' if i < 150 else 'maybe'},{i % 2}\n" for i in ROWS),
    "missing for long": "a,b\n" + "".join(f"{'' if i < 150 else i},{i % 2}\n" for i in ROWS),
    "dates, then times of day": "a,b\n" + "".join(f"2024-01-01{' 10:00:00' if i > 150 else ''},{i}\n" for i in ROWS),
    "line ends in quotes": "a,b\n" + "".join(f'"x\n{i % 3}, ""y""",{i}\n' for i in ROWS),
    "line ends in several cells": "a,b,c\n" + "".join(f'{i},"x\n{i % 3}","y\n{"z" * 20}"\n' for i in ROWS),
    "carriage returns in quoted cells": "a,b,c\r" + "".join(f'{i},"x\r{i % 3}","y\r\nz"\r' for i in ROWS),
    "a quote amid a cell": "a,b\n" + "".join(f'{i}" pipe,{i % 2}\n' for i in ROWS),
    "semicolons and decimal commas": "a;b\n" + "".join(f"{i},5;{i % 2}\n" for i in ROWS),
    "runs of spaces": "a   b\n" + "".join(f"{i}   {i % 2}\n" for i in ROWS),
    "row numbers without a name": ",a,b\n" + "".join(f"{i},{i / 3},{i % 2}\n" for i in ROWS),
    "no names": "".join(f"{i},{i % 2}\n" for i in ROWS),
    "carriage returns": "a,b\r\n" + "".join(f"{i},{i % 2}\r\n" for i in ROWS),
    "no line end at the end": "a,b\n" + "".join(f"{i},{i % 2}\n" for i in ROWS).rstrip(),
    "LIBSVM": "".join(f"{i % 2} {1 + i % 7}:{i} {10 + i % 5}:2.5\n" for i in ROWS),
    "LIBSVM with an index 0 late": "".join(f"{i % 2} {'0:1 ' if i > 150 else ''}{2 + i % 7}:{i}\n" for i in ROWS),
}


@pytest.mark.parametrize("name", TEXTS)
def test_chunks_are_the_table_cut(name, tmp_path):
    assert_same(written(tmp_path, TEXTS[name]))


def test_penguins_in_chunks_are_the_penguins():
    assert_same(PENGUINS, rows=40)


@pytest.mark.parametrize("how", [{"target": "a"}, {"target": 0}, {"target": False}])
def test_the_target_is_chosen_as_in_the_whole_table(how, tmp_path):
    assert_same(written(tmp_path, TEXTS["numbers"]), **how)


def test_compressed_text_and_other_encodings_are_read(tmp_path):
    text = "größe,art\n" + "".join(f"{i},{'süß' if i % 2 else 'herb'}\n" for i in ROWS)
    assert_same(written(tmp_path, gzip.compress(text.encode()), "t.csv.gz"))
    assert_same(written(tmp_path, text.encode("utf-16"), "t.csv"))
    assert_same(written(tmp_path, text.encode("latin-1"), "t.csv"), encoding="latin-1")


def test_parquet_and_arrow_are_read(tmp_path):
    arrow = pa.table({"a": np.arange(200.0), "b": [f"x{i % 3}" for i in ROWS], "c": [i % 2 == 0 for i in ROWS]})
    pyarrow.parquet.write_table(arrow, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(arrow, tmp_path / "t.feather", chunksize=50)
    for name in ("t.parquet", "t.feather"):
        assert_same(tmp_path / name)


def test_rows_without_a_target_are_left_out_or_reported_with_their_line(tmp_path):
    path = written(tmp_path, "a,b\n" + "".join(f"{i},{'' if i % 3 else i}\n" for i in ROWS))
    assert_same(path, drop_unlabelled=True)
    late = written(tmp_path, "a,b\n" + "1,2\n" * 200 + "3,\n")
    with pytest.raises(InputError, match="line 202, column 'b'"):
        list(read_chunks(late, rows=10))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n" + "1,2\n" * 200 + "1,2,3\n", "line 202: 3 cells where the first line has 2"),
        ("a,b\n" + "1,2\n" * 200 + "inf,3\n", "line 202, column 'a': the number is infinite"),
        ("1 1:2\n" * 200 + "1 2:x\n", "line 201: the value in '2:x' is not a number"),
        ("a,b\n", "no rows"),
        ("", "empty"),
    ],
)
def test_errors_name_the_line(text, words, tmp_path):
    with pytest.raises(InputError, match=words):
        list(read_chunks(written(tmp_path, text), rows=10))


def test_sources_that_cannot_be_read_twice_or_in_chunks_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="read several times"):
        read_chunks("-")
    with pytest.raises(InputError, match="no such file"):
        read_chunks(tmp_path / "absent.csv")
    with pytest.raises(ParameterError, match="rows is 0"):
        read_chunks(PENGUINS, rows=0)
    np.save(tmp_path / "t.npy", np.zeros((3, 3)))
    with pytest.raises(InputError, match="cannot be read in chunks"):
        read_chunks(tmp_path / "t.npy")
    with pytest.raises(InputError, match="target 'size' is not a column"):
        read_chunks(PENGUINS, target="size")


def test_an_encoder_learned_from_chunks_is_that_of_the_whole():
    table, chunks = read_table(PENGUINS, target="species"), read_chunks(PENGUINS, rows=30, target="species")
    encoded = chunks.encoded()
    whole = TableEncoder(impute="mean").fit(table)
    assert list(encoded.encoder.get_feature_names_out()) == list(whole.get_feature_names_out())
    X = np.vstack([x for x, _ in encoded])
    np.testing.assert_allclose(X, whole.transform(table), rtol=1e-10, atol=1e-12)
    assert np.concatenate([y for _, y in encoded]).tolist() == table.labels().tolist()
    ours = chunks.encoded(whole)
    np.testing.assert_array_equal(np.vstack([x for x, _ in ours]), whole.transform(table))


def test_an_encoder_learned_from_chunks_drops_uninformative_columns(tmp_path):
    path = written(tmp_path, "id,same,x,y\n" + "".join(f"k{i},1,{i / 3},{i % 2}\n" for i in ROWS))
    with pytest.warns(DataWarning, match="'id', 'same'"):
        encoder = read_chunks(path, rows=20).encoded().encoder
    assert list(encoder.get_feature_names_out()) == ["x"]


@pytest.fixture
def reviews(tmp_path):
    rng = np.random.default_rng(0)
    words = ["lovely", "stale", "broken", "tasty", "tea", "pot", "lid", "box", "shop", "was", "and", "the"]
    lines = ["body,stars,happy"]
    for row in range(120):
        body = " ".join(rng.choice(words, 6))
        lines.append(f"{body} {row},{rng.integers(1, 6)},{'yes' if 'lovely' in body else 'no'}")
    return written(tmp_path, "\n".join(lines) + "\n", "reviews.csv")


def test_words_of_a_stream_are_hashed_as_those_of_the_whole(reviews):
    encoded = read_chunks(reviews, rows=50).encoded(text="body")
    whole = read_table(reviews)
    peer = TableEncoder(impute="mean", text="body", text_features="hashing").fit(whole)
    X = sp.vstack([X for X, _ in encoded])
    assert abs(X - peer.transform(whole)).max() < 1e-12
    assert encoded.encoder.get_params() == peer.set_params(text=["body"]).get_params()
    assert repr(encoded) == f"EncodedChunks({str(reviews)!r}: 120 rows of 131,073 numbers)"


def test_text_that_is_left_out_is_reported_with_the_remedy(reviews):
    with pytest.warns(DataWarning, match=r"'body' looks like free text, and is left out; .*encoded\(text='body'\)"):
        encoded = read_chunks(reviews, rows=50).encoded()
    assert [column["name"] for column in encoded.encoder.columns_] == ["stars"]


def test_text_of_a_stream_is_checked(reviews):
    chunks = read_chunks(reviews, rows=50)
    for text, words in (("stars", "holds numbers, not text"), ("bod", "no column 'bod'"), ("happy", "is the target")):
        with pytest.raises(InputError, match=words):
            chunks.encoded(text=text)
    with pytest.raises(ParameterError, match="encoder and text are both given"):
        chunks.encoded(TableEncoder(), text="body")


def test_memory_is_that_of_a_chunk(tmp_path):
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write("a,b,c,d,y\n")
        file.writelines(f"{i},{i / 3:.6f},{i / 7:.6f},{i % 11},{i % 2}\n" for i in range(60_000))
    chunks = read_chunks(path, rows=500)
    tracemalloc.start()
    for _ in chunks:
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


@pytest.fixture
def parses(monkeypatch):
    """How many blocks of text were parsed so far, as a list."""
    counted, parse = [], delimited.parse_block

    def counting(*given):
        counted.append(1)
        return parse(*given)

    monkeypatch.setattr(delimited, "parse_block", counting)
    return counted


NUMBERS = "a,b,y\n" + "".join(f"{row / 8},{row % 5},{'no' if row % 3 else 'yes'}\n" for row in range(300))
# Whole numbers that turn out to be fractions, cells that are all missing at first, text late in a column of numbers
LATE = "a,b,c,y\n" + "".join(
    f"{row if row < 200 else row / 8},{'' if row < 200 else 'late'},{f'0{row}' if row < 250 else 'x'},{row % 2}\n"
    for row in range(300)
)


def test_text_is_parsed_once_for_any_number_of_passes(tmp_path, parses):
    path = written(tmp_path, NUMBERS)
    whole, chunks = cells(read_table(path)), read_chunks(path, rows=20)
    assert sum(table.n_rows for table in chunks) == 300
    n_blocks = len(parses)
    assert n_blocks > 2
    path.unlink()
    for _ in range(3):
        assert [[*chain.from_iterable(parts)] for parts in zip(*map(cells, chunks), strict=True)] == whole
    assert len(parses) == n_blocks


def test_kinds_that_change_late_cost_no_cell(tmp_path, parses):
    path = written(tmp_path, LATE)
    assert_same(path, rows=20)
    chunks = read_chunks(path, rows=20)
    for _ in chunks:
        pass
    n_blocks = len(parses)
    table = next(iter(chunks))
    assert len(parses) == n_blocks
    assert table["c"].levels[0] == "00"  # as it was written


@pytest.mark.parametrize("free", [0, 10_000])
def test_without_disk_space_every_pass_parses_the_text(free, tmp_path, parses, monkeypatch):
    path = written(tmp_path, NUMBERS)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    chunks = read_chunks(path, rows=20)
    whole, before = cells(read_table(path)), len(parses)
    for _ in range(2):
        assert [[*chain.from_iterable(parts)] for parts in zip(*map(cells, chunks), strict=True)] == whole
        assert len(parses) > before
        before = len(parses)


def test_a_full_disk_causes_a_warning_only(tmp_path, monkeypatch):
    path = written(tmp_path, NUMBERS)

    class Full(io.FileIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    errors = []  # of finalizers
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **how: io.BufferedRandom(Full(tmp_path / "full", "w+")))
    monkeypatch.setattr("sys.unraisablehook", errors.append)
    with pytest.warns(DataWarning, match="no room to store the parsed rows.*parses its text again"):
        chunks = read_chunks(path, rows=20)
    assert sum(table.n_rows for table in chunks) == 300
    assert errors == []


def test_rows_without_room_are_given_back_at_once(tmp_path, monkeypatch):
    files, make = [], chunks_module.tempfile.TemporaryFile
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **how: files.append(make(**how)) or files[-1])
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10_000))
    seen = []
    monkeypatch.setattr(chunks_module, "report", lambda progress: seen.append(files[0].closed))
    read_chunks(written(tmp_path, NUMBERS), rows=20)
    assert seen[0] is False  # the first blocks have room
    assert seen[-1] is True  # before the pass is over


def test_the_cache_is_unnamed_and_removed_with_the_chunks(tmp_path, monkeypatch):
    path, room = written(tmp_path, NUMBERS), tmp_path / "room"
    room.mkdir()
    monkeypatch.setenv("TMPDIR", str(room))
    monkeypatch.setattr("tempfile.tempdir", None)
    chunks = read_chunks(path, rows=20)
    assert sum(table.n_rows for table in chunks) == 300
    assert chunks._parsed_rows is not None
    assert list(room.iterdir()) == []
    walk = iter(chunks)
    table = next(walk)
    del chunks, walk
    assert table["a"].values[1] == 0.125  # what was read outlives them


def test_chunks_can_be_copied(tmp_path):
    chunks = read_chunks(written(tmp_path, NUMBERS), rows=20)
    other = pickle.loads(pickle.dumps(chunks))
    assert list(map(cells, other)) == list(map(cells, chunks))


def test_errors_name_the_line_in_later_passes_too(tmp_path):
    path = written(tmp_path, NUMBERS + "inf,1,no\n")
    chunks = read_chunks(path, rows=20)
    for _ in range(2):
        with pytest.raises(InputError, match="line 302"):
            list(chunks)


def test_sparse_chunks_have_all_columns(tmp_path):
    path = written(tmp_path, TEXTS["LIBSVM"])
    parts = [table.sparse for table in read_chunks(path, rows=9)]
    assert (sp.vstack(parts) != read_table(path).sparse).nnz == 0


@pytest.mark.parametrize(
    ("is_read", "change"), [(False, "has changed since"), (True, "has changed since"), (False, "was deleted after")]
)
def test_a_file_that_changes_between_passes_is_refused(tmp_path, is_read, change):
    path = tmp_path / "rows.csv"
    is_gone = change == "was deleted after"
    path.write_text("1 1:2\n0 1:3\n" * 50 if is_gone else "x,y\n" + "1,a\n2,b\n" * 50)  # of a CSV file rows are kept
    chunks = read_chunks(path, rows=20, target=None if is_gone else "y")
    if is_read:
        assert sum(table.n_rows for table in chunks) == 100
    if is_gone:
        path.unlink()
    else:
        path.write_text("x,y\n" + "1,a\n2,b\n" * 60)
    with pytest.raises(InputError, match=f"{change} it was opened"):
        list(chunks)


@pytest.mark.parametrize("bad", ["2,inf\n", "2,\n"])
def test_a_fault_in_kept_rows_names_its_line(tmp_path, bad):
    path = written(tmp_path, "x,y\n" + "1,3\n" * 40_000 + bad)
    with pytest.raises(InputError, match="line 40002"):
        list(read_chunks(path, rows=20_000, target="y"))


def test_missing_targets_are_not_counted_by_the_block(tmp_path):
    path = written(tmp_path, "a,y\n" + "".join(f"{i},{'' if i == 150 else i % 2}\n" for i in ROWS))
    with pytest.raises(InputError, match=r"line 152, column 'y': a target cell is missing\. Fill them in"):
        list(read_chunks(path, rows=20))
    table = pa.table({"a": range(200), "y": [None if i == 150 else i % 2 for i in ROWS]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=20)
    with pytest.raises(InputError, match=r"t\.parquet, column 'y': a target cell is missing\. Fill"):  # of no row
        list(read_chunks(tmp_path / "t.parquet", rows=20))


def test_a_target_without_any_label_is_named(tmp_path):
    path = written(tmp_path, "a,y\n" + "".join(f"{i},\n" for i in ROWS))
    with pytest.raises(InputError, match=r"column 'y': every target cell is missing"):
        read_chunks(path, rows=20, drop_unlabelled=True)
