"""Damaged table files are read or refused with an InputError: no crash, no hang, no other exception.

Child processes do the reading, each many files. A child writes the number of the file it is about to read, so that a
crash is attributed to its file; the next child goes on after it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

SEED = 20261116
STARTING = 120  # seconds, for the imports of a child
SECONDS = 20  # for one file; a sound one takes some milliseconds
MEMORY = 8 << 30  # bytes of address space for a child

CSV = "size,colour,when,ripe\n" + "".join(
    f"{0.37 * i:.3f},{['red', 'grün', '', 'blue'][i % 4]},2026-01-{1 + i % 28:02d},{['yes', 'no'][i % 2]}\n"
    for i in range(60)
)
ARFF = (
    "@relation t\n@attribute a numeric\n@attribute c {u, v, 'w x'}\n@attribute s string\n@attribute y {p, q}\n@data\n"
)
LEVELS = ["u", "v", "?", "'w x'"]
ARFF += "".join(f"{i / 7:.3f},{LEVELS[i % 4]},'text {i}',{'pq'[i % 2]}\n" for i in range(40))
SPARSE_ARFF = "@relation t\n@attribute a numeric\n@attribute b numeric\n@attribute y numeric\n@data\n"
SPARSE_ARFF += "".join(f"{{0 {i}, 2 {i % 2}}}\n" for i in range(40))
SVMLIGHT = "".join(f"{(-1) ** i:+d} 1:{i / 3:.4f} {2 + i % 5}:1 9:0.5 # row {i}\n" for i in range(60))


def originals() -> dict[str, bytes]:
    """One sound file of each format and compression, by its name."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    n = 50
    texts = [["red", "grün", None, "a longer text of a cell"][i % 4] for i in range(n)]
    arrow = pa.table(
        {
            "number": pa.array([None if i % 7 == 0 else i / 3 for i in range(n)], pa.float64()),
            "whole": pa.array(range(n), pa.int32()),
            "text": pa.array(texts, pa.string()),
            "large": pa.array(texts, pa.large_string()),
            "view": pa.array(texts, pa.string_view()),
            "level": pa.array(texts, pa.string()).dictionary_encode(),
            "flag": pa.array([i % 3 == 0 for i in range(n)]),
            "day": pa.array(range(n), pa.date32()),
            "exact": pa.array(range(n), pa.int64()).cast(pa.decimal128(24, 2)),
            "y": pa.array([["yes", "no"][i % 2] for i in range(n)]),
        }
    )
    plain = arrow.drop_columns(["view"])  # Parquet and Feather have no views

    def ipc(new: object, options: pa.ipc.IpcWriteOptions | None = None, table: pa.Table = arrow) -> bytes:
        sink = io.BytesIO()
        with new(sink, table.schema, options=options) as writer:  # type: ignore[operator]
            writer.write_table(table, max_chunksize=20)
        return sink.getvalue()

    def saved(write: object, *arguments: object, **named: object) -> bytes:
        sink = io.BytesIO()
        if write in (np.savez, np.savez_compressed, np.save):
            write(sink, *arguments, **named)  # type: ignore[operator]
        else:
            write(*arguments, sink, **named)  # type: ignore[operator]
        return sink.getvalue()

    X = np.arange(60.0).reshape(20, 3)
    y = np.arange(20) % 2
    csr = {
        "X_data": np.ones(20),
        "X_indices": np.arange(20) % 3,
        "X_indptr": np.arange(21),
        "X_shape": np.array([20, 3]),
    }
    parquet = pyarrow.parquet.write_table
    return {
        "t.arrow": ipc(pa.ipc.new_file),
        "lz4.arrow": ipc(pa.ipc.new_file, pa.ipc.IpcWriteOptions(compression="lz4")),
        "t.arrows": ipc(pa.ipc.new_stream),
        "zstd.arrows": ipc(pa.ipc.new_stream, pa.ipc.IpcWriteOptions(compression="zstd")),
        "t.feather": saved(pyarrow.feather.write_feather, plain),
        "t.parquet": saved(parquet, plain),
        "plain.parquet": saved(parquet, plain, compression="none", use_dictionary=False),
        "v2.parquet": saved(parquet, plain, compression="zstd", data_page_version="2.0"),
        "t.npz": saved(np.savez, X=X, y=y),
        "compressed.npz": saved(np.savez_compressed, X_train=X, y_train=y, classes=np.array(["u", "v"])),
        "sparse.npz": saved(np.savez, **csr, y=y, feature_names=np.array(["a", "b", "c"])),
        "t.npy": saved(np.save, X),
        "t.csv": CSV.encode(),
        "t.csv.gz": gzip.compress(CSV.encode(), mtime=0),
        "t.csv.bz2": bz2.compress(CSV.encode()),
        "t.csv.xz": lzma.compress(CSV.encode()),
        "t.arff": ARFF.encode(),
        "sparse.arff": SPARSE_ARFF.encode(),
        "t.svm": SVMLIGHT.encode(),
    }


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with 1 to 8 bytes changed, in half of the files to bytes that occur in it, so that text stays text;
    in some a whole number is overwritten or a part cut out too."""
    broken = bytearray(content)
    allowed = content if rng.integers(0, 2) else bytes(range(256))
    for place in rng.integers(0, len(broken), size=rng.integers(1, rng.choice([2, 4, 9]))):
        broken[place] = allowed[rng.integers(0, len(allowed))]
    kind = rng.integers(0, 8)
    start = int(rng.integers(0, len(broken)))
    if kind == 0:
        extreme = [b"\xff" * 8, b"\x00" * 8, b"\xff\xff\xff\x7f", b"\x00" * 7 + b"\x80"][rng.integers(0, 4)]
        broken[start : start + len(extreme)] = extreme
    elif kind == 1:
        del broken[start : start + int(rng.integers(1, 64))]
    elif kind == 2:
        del broken[start:]
    return bytes(broken)


def case(number: int, files: dict[str, bytes]) -> tuple[str, bytes]:
    """The name and content of the file of this number: the formats take turns."""
    name = list(files)[number % len(files)]
    return name, damaged(files[name], np.random.default_rng([SEED, number]))


def read(path: Path) -> str:
    """Read the file in every way there is: "read", "refused", or what was raised that should not be."""
    from margrove.data import read_chunks, read_table
    from margrove.errors import MargroveError

    found = []
    for reader in (read_table, lambda path: list(read_chunks(path, rows=20))):
        try:
            made = reader(path)
            for table in made if isinstance(made, list) else [made]:
                for column in table:
                    column.cells()
                table.labels()
            found.append("read")
        except MargroveError as error:
            found.append("refused" if str(path) in str(error) else f"a message that does not name the file: {error}")
    return " ".join(found)


def attack(first: int, last: int, folder: Path) -> None:
    """What a child does: read the files of these numbers, and write one line of JSON about each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    files = originals()
    with (folder / "log").open("a") as log:
        for number in range(first, last):
            name, content = case(number, files)
            path = folder / name
            path.write_bytes(content)
            print(json.dumps([number, name, "begun"]), file=log, flush=True)
            signal.alarm(SECONDS)  # unhandled: it ends the process even inside a library
            try:
                outcome = read(path)
            except BaseException as error:
                outcome = f"{type(error).__name__}: {error}"
            signal.alarm(0)
            print(json.dumps([number, name, outcome]), file=log, flush=True)


def outcomes(n: int, folder: Path) -> list[tuple[int, str, str]]:
    """The number, name and outcome of each of ``n`` files."""
    log = folder / "log"
    found: dict[int, tuple[int, str, str]] = {}
    while len(found) < n:
        command = [sys.executable, __file__, str(len(found)), str(n), str(folder)]
        child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=STARTING + n * SECONDS)
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        before = len(found)
        found = {number: (number, name, outcome) for number, name, outcome in lines}
        if child.returncode:
            assert len(found) > before, child.stderr
            number, name, _ = found[max(found)]
            found[number] = (number, name, f"the process ended with {child.returncode}: {child.stderr[-300:]}")
            with log.open("a") as file:
                print(json.dumps(found[number]), file=file)
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("n", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_damaged_files_are_read_or_refused(n: int, tmp_path: Path) -> None:
    found = outcomes(n, tmp_path)
    faults = [each for each in found if set(each[2].split()) - {"read", "refused"}]
    assert not faults, f"{len(faults)} of {n}: {faults[:10]}"
    assert sum("refused" in outcome for _, _, outcome in found) > n / 4


if __name__ == "__main__":
    attack(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
