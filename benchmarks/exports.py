"""Reading the corpus of exported tables (tests/exports): our `read_table` beside pandas, polars and DuckDB with their
defaults.

A file is read exactly if names, rows, missing cells and all values are those that a careful reader would read; a number
with its unit as text, a date as text and a code as a number are wrong. Of the others no units and no remarks are
expected. A file that a reader refuses, or a format that it does not read, is counted apart: nobody is misled.

    python benchmarks/exports.py
"""

from __future__ import annotations

import sqlite3
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl

from measure import write

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.exports.cases import PARTS, cases, differences, expectation, table_differences

from margrove.data import as_table

TEXT = (".csv", ".tsv", ".txt", ".dat", ".rdb", ".xls")
DATABASES = {".db": sqlite3.connect, ".duckdb": lambda path: duckdb.connect(path, read_only=True)}


def read_with_pandas(path: Path, part: str | None) -> Any:
    if path.suffix in TEXT:
        return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")
    if path.suffix in (".xlsx", ".ods"):
        return pd.read_excel(path, sheet_name=part or 0, engine="calamine")
    if path.suffix == ".jsonl":
        return pd.read_json(path, lines=True)
    return read_database(path, part)


def read_with_polars(path: Path, part: str | None) -> Any:
    if path.suffix in TEXT:
        return pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    if path.suffix == ".jsonl":
        return pl.read_ndjson(path)
    if path.suffix in DATABASES:
        return pl.from_pandas(read_database(path, part))
    raise ValueError("a format that it does not read without another package")


def read_with_duckdb(path: Path, part: str | None) -> Any:
    with closing(duckdb.connect()) as database:
        if path.suffix in TEXT:
            return database.read_csv(str(path)).to_arrow_table()
        if path.suffix == ".jsonl":
            return database.read_json(str(path)).to_arrow_table()
    if path.suffix in DATABASES:
        return read_database(path, part)
    raise ValueError("a format that it does not read without an extension")


def read_database(path: Path, part: str | None) -> Any:
    """Return a table of a database as pandas reads it."""
    with closing(DATABASES[path.suffix](str(path))) as database:
        name = part or tables_of(database)[0]
        cursor = database.execute(f'SELECT * FROM "{name}"')
        return pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])


def tables_of(database: Any) -> list[str]:
    try:
        return [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
    except duckdb.Error:
        return [name for (name,) in database.execute("SELECT table_name FROM information_schema.tables").fetchall()]


def outcome(read: Callable[[Path, str | None], Any], path: Path) -> str:
    """Return whether a file is read exactly, is refused, or is read wrongly."""
    expected = {"columns": [], **expectation(path)}
    given = expected.get("read", {})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = as_table(read(path, given.get("sheet") or given.get("table")))
    except (Exception, pl.exceptions.PanicException):  # any refusal counts, whatever it is called
        return "exact" if expected.get("refuse") else "refused"
    return "wrong" if table_differences(table, expected, has_units=False) else "exact"


def our_outcome(path: Path) -> str:
    found = differences(path)
    return "exact" if not found else "refused" if found[0].startswith("refused") else "wrong"


def main() -> None:
    peers = {"pandas": read_with_pandas, "polars": read_with_polars, "duckdb": read_with_duckdb}
    results = []
    for part in PARTS:
        files = cases(part)
        readers: dict[str, Callable[[Path], str]] = {"margrove": our_outcome}
        for name, read in peers.items():
            readers[name] = lambda path, read=read: outcome(read, path)
        for name, judge in readers.items():
            found = [judge(path) for path in files]
            counts = {kind: found.count(kind) for kind in ("exact", "refused", "wrong")}
            results.append({"case": f"{part}, {name}", "part": part, "reader": name, "files": len(files), **counts})
    write("exports", "at least 95 % read exactly, none wrong without a word", results, "pandas", "polars", "duckdb")


if __name__ == "__main__":
    main()
