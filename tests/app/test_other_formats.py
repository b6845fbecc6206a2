"""Tables of workbooks, JSON and databases in the shell: ``FILE::NAME`` is a sheet or a table wherever a file is."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import openpyxl
import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def files(folder: Path, flowers_text: str) -> list[str]:
    """The flowers as a sheet, as JSON and as a table of a database."""
    header, *rows = csv.reader(io.StringIO(flowers_text))
    rows = [[float(petal), colour, int(height), kind] for petal, colour, height, kind in rows]
    book = openpyxl.Workbook()
    for row in [header, *rows]:
        book.active.append(row)
    book.copy_worksheet(book.active).title = "beds v1.2"
    book.save(folder / "garden.xlsx")
    lines = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
    (folder / "garden.jsonl").write_text("\n".join(lines))
    with closing(sqlite3.connect(folder / "garden.db")) as database, database:
        database.execute("CREATE TABLE flowers (petal REAL, colour TEXT, height INTEGER, kind TEXT)")
        database.executemany("INSERT INTO flowers VALUES (?, ?, ?, ?)", rows)
        database.execute("CREATE VIEW tall AS SELECT * FROM flowers WHERE height > 20")
    return ["garden.xlsx::beds v1.2", "garden.jsonl", "garden.db::flowers"]


def test_all_formats_train_predict_and_certify(run: Run, files: list[str], folder: Path) -> None:
    for file in files:
        trained = run("train", file, "--model", "tree", "--folds", "2")
        assert trained.exit_code == 0, trained.stderr
        assert f"Read {file}" in trained.stdout
        assert (folder / "garden.margrove").exists()
        predicted = run("predict", "garden.margrove", file, "--keep", "petal")
        petal = "1" if "xlsx" in file else "1.0"  # a sheet does not tell 1 from 1.0
        assert predicted.stdout.splitlines()[:2] == ["petal,kind", f"{petal},daisy"]
        assert run("certify", "garden.margrove", file).exit_code == 0
        (folder / "garden.margrove").unlink()


def test_hints_keep_the_name_of_the_table(run: Run, files: list[str]) -> None:
    told = " ".join(run("train", files[0], "--model", "tree", "--folds", "2").stdout.split())
    assert "predict garden.margrove 'NEW.xlsx::beds v1.2'" in told


def test_a_database_that_is_read_is_not_overwritten(run: Run, files: list[str], folder: Path) -> None:
    run("train", files[2], "--model", "tree", "--folds", "2")
    before = (folder / "garden.db").read_bytes()
    result = run("predict", "garden.margrove", files[2], "-o", "garden.db")
    assert result.exit_code == 2
    assert "is also an input" in result.stderr
    assert (folder / "garden.db").read_bytes() == before


def test_tables_to_choose_from_are_listed(run: Run, files: list[str]) -> None:
    result = run("train", "garden.db")
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert "garden.db: there are several tables: 'flowers', 'tall'. Name one of them: 'garden.db::flowers'." in told
