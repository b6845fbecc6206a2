"""Every bad table: one line that names the file, exit code 2, nothing written."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


_GOOD = b"x,y\n1,a\n2,b\n"
BAD_TABLES = {
    "empty file": (b"", "empty"),
    "no rows": (b"x,y\n", "no row"),
    "one class": (b"x,y\n1,a\n2,a\n", "one class"),
    "target missing": (b"x,y\n1,a\n2,\n", "line 3, column 'y'"),
    "ragged rows": (b"x,y\n1,a\n2,b,c\n3,a\n", "line 3"),
    "unknown encoding": (b"x,y\n1,gr\xf7n\n2,rot\n", "line 2"),
    "infinite value": (b"x,y\n1,a\ninf,b\n", "inf"),
    "a title and no names": (b"All of it,,\nx,u,y\nv,x,b\nx,v,a\n", "--header-row"),
    "a 10 MB cell": (b"x,y\n" + b"q" * 10_000_000 + b",a\n2,b\n", "MiB"),
    "a binary file": (b"\x7fELF" + bytes(range(256)) * 20, "bad.csv"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), "bad.csv"),
    "damaged gzip": (gzip.compress(_GOOD * 50)[:-12], "bad.csv"),
    "a quantity for a target": (b"x,y\n1,0.5\n2,0.25\n", "quantity"),
    "one column": (b"y\na\nb\n", "only column"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_one_line_and_nothing_is_written(run: Run, folder: Path, case: str) -> None:
    content, said = BAD_TABLES[case]
    (folder / "bad.csv").write_bytes(content)
    learner = ["--model", "svm"] if case == "a quantity for a target" else []
    result = run("train", "bad.csv", "--target", "y", *learner)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("margrove: error: bad.csv")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert len(result.stderr) < 500
    assert [path.name for path in folder.iterdir()] == ["bad.csv"]


def test_a_file_that_is_not_there_and_a_folder(run: Run, folder: Path) -> None:
    for name in ("nothing.csv", "."):
        result = run("train", name)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"margrove: error: {name}")
    assert list(folder.iterdir()) == []


def test_bad_input_from_the_pipe_is_named(run: Run) -> None:
    result = run("train", "-", stdin=b"x,y\n1,a\n2,a\n")
    assert result.exit_code == 2
    assert "standard input" in result.stderr


def test_the_encoding_can_be_named(run: Run, folder: Path) -> None:
    (folder / "old.csv").write_bytes("x,y\n1,gr\u00fcn\n2,rot\n3,gr\u00fcn\n4,rot\n".encode("latin-1"))
    result = run("train", "old.csv", "--encoding", "latin-1", "--folds", "2")
    assert result.exit_code == 0
    assert "gr\u00fcn" in result.stdout


def test_the_line_of_the_names_can_be_named(run: Run, folder: Path) -> None:
    rows = "".join(f"{i % 7},{'ab'[i % 7 > 3]}\n" for i in range(40))
    (folder / "t.csv").write_text(f"Report, 2024\nRegion, North\nx,y\n{rows}")
    for options in (["--skip", "2"], ["--header-row", "3"]):
        result = run("train", "t.csv", "--model", "tree", "--folds", "2", *options)
        assert result.exit_code == 0, result.stderr
        assert "2 lines above the column names are left out: 1 to 2." in result.stdout
        assert f"certify t.margrove t.csv {' '.join(options)}" in " ".join(result.stdout.split())
        assert run("predict", "t.margrove", "t.csv", *options).stdout.startswith("y\n")
        assert run("certify", "t.margrove", "t.csv", *options).exit_code == 0


def test_debugging_shows_the_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARGROVE_DEBUG", "1")
    result = run("train", "nothing.csv")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("margrove: error: ")


def test_running_out_of_memory_is_one_line(run: Run, flowers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("margrove.app.train.fit_model", exhausted)
    result = run("train", flowers, "--folds", "0", "--model", "svm")
    assert result.exit_code == 2
    assert result.stderr.startswith("margrove: error: out of memory. ")
