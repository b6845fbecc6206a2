"""SQLite and DuckDB: the table that was named, the types of its columns, and nothing else of the file is touched."""

from __future__ import annotations

import builtins
import gzip
import io
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from margrove.data import read_chunks, read_table
from margrove.errors import InputError, MissingExtraError

TREES = """
CREATE TABLE trees (id INTEGER, species TEXT, height REAL, felled BOOLEAN);
INSERT INTO trees VALUES (1, 'oak', 14.5, 0), (2, 'n/a', NULL, 1), (3, 'lime', 9, NULL);
"""
TREE_CELLS = {
    "id": [1, 2, 3],
    "species": ["oak", None, "lime"],
    "height": [14.5, None, 9],
    "felled": [False, True, None],
}


@pytest.fixture(params=["SQLite", "DuckDB"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path]:
    """Make a database by a script, and give its path."""

    def make(script: str) -> Path:
        path = tmp_path / f"t.{request.param.lower()}"
        with closing((sqlite3 if request.param == "SQLite" else duckdb).connect(str(path))) as connection:
            (connection.executescript if request.param == "SQLite" else connection.execute)(script)
        return path

    return make


def cells(source: object, **how: object) -> dict[str, list[object]]:
    return {column.name: column.cells() for column in read_table(source, target=False, **how)}


def test_the_only_table_is_read_with_its_types(database: Callable[[str], Path]) -> None:
    path = database(TREES)
    before = path.read_bytes()
    assert cells(path) == TREE_CELLS
    assert cells(f"{path}::trees") == cells(f"{path}::Trees") == TREE_CELLS
    assert path.read_bytes() == before


def test_tables_that_are_not_clear_are_listed(database: Callable[[str], Path]) -> None:
    path = database(TREES + "CREATE VIEW tall AS SELECT id, species FROM trees WHERE height > 10;")
    assert cells(f"{path}::tall") == {"id": [1], "species": ["oak"]}
    with pytest.raises(InputError, match=r"several tables: '\w+', '\w+'\. Name one of them: '.*t\.\w+::\w+'\."):
        read_table(path)
    with pytest.raises(InputError, match=r"there is no table 'tree'\. There are: '\w+', '\w+'\."):
        read_table(f"{path}::tree")
    with pytest.raises(InputError, match="there is no table ''"):
        read_table(f"{path}::")


def test_any_name_is_only_a_name(database: Callable[[str], Path]) -> None:
    name = 'a"; DROP TABLE trees; --'
    quoted = name.replace('"', '""')
    path = database(f'{TREES} CREATE TABLE "{quoted}" ("x""y" REAL); INSERT INTO "{quoted}" VALUES (1), (2);')
    assert cells(f"{path}::{name}") == {'x"y': [1, 2]}
    assert cells(f"{path}::trees") == TREE_CELLS
    with pytest.raises(InputError, match="there is no table"):
        read_table(f"{path}::trees WHERE 1")


def test_empty_and_damaged_databases_are_refused(database: Callable[[str], Path]) -> None:
    path = database("CREATE TABLE t (a REAL);")
    with pytest.raises(InputError, match="the table has no rows"):
        read_table(path)
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(len(data) - 100))
    with pytest.raises(InputError, match=r"(data cannot be read|there is no table in it)"):
        read_table(path)
    path.write_bytes(data[:16] + b"garbage " * 1000)
    with pytest.raises(InputError, match=r"the (SQLite|DuckDB) data cannot be read \(.*write or download it again"):
        read_table(path)
    path.write_text("a,y\n1,u\n")
    with pytest.raises(InputError, match=r"only workbooks and databases have sheets or tables.*Leave out '::t'"):
        read_table(f"{path}::t")


def test_chunks_refuse_databases(database: Callable[[str], Path]) -> None:
    path = database(TREES)
    for source in (path, f"{path}::trees"):
        with pytest.raises(InputError, match=r"cannot be read in chunks.*as a whole with read_table"):
            read_chunks(source)


def test_sqlite_is_read_from_a_stream_and_compressed(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TREES)
    assert cells(io.BytesIO(path.read_bytes())) == TREE_CELLS
    packed = tmp_path / "t.db.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert cells(f"{packed}::trees") == TREE_CELLS


def test_cells_of_sqlite_may_be_of_several_types(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE t (a, b BOOLEAN); INSERT INTO t VALUES (1, 2), ('x', 1), (2.5, 0);")
    assert cells(path) == {"a": ["1", "x", "2.5"], "b": [2, 1, 0]}
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("INSERT INTO t VALUES (x'00ff', 1);")
    with pytest.raises(InputError, match="column 'a': the cells are raw bytes"):
        read_table(path)


def test_generated_columns_of_sqlite_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE t (a, twice AS (2 * a), b); INSERT INTO t VALUES (1, 'x'), (2, 'y');")
    assert cells(path) == {"a": [1, 2], "twice": [2, 4], "b": ["x", "y"]}


def test_rows_in_the_log_of_a_writer_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA journal_mode = WAL; {TREES}")
        assert cells(path) == TREE_CELLS


def test_duckdb_types_schemas_and_views(tmp_path: Path) -> None:
    path, secret = tmp_path / "t.duckdb", tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE SCHEMA shop; CREATE TYPE size AS ENUM ('s', 'm')")
        connection.execute("CREATE TABLE shop.sold (d DATE, price DECIMAL(9, 2), size size, big HUGEINT)")
        connection.execute("INSERT INTO shop.sold VALUES ('1970-01-03', 2.5, 's', 5), (NULL, NULL, 'm', 6)")
        connection.execute("CREATE TABLE lists (a INTEGER[]); INSERT INTO lists VALUES ([1, 2])")
        connection.execute("CREATE TABLE tagged AS SELECT *, map {'k': 1} AS m, 's' AS b, 't' AS y FROM lists")
        connection.execute(f"CREATE VIEW elsewhere AS SELECT * FROM read_csv('{secret}')")
    table = read_table(f"{path}::shop.sold", target=False)
    assert table["d"].values[0] == 2
    assert [table[name].cells()[0] for name in ("price", "size", "big")] == [2.5, "s", 5]
    with pytest.raises(InputError, match="column 'a': the cells are of type list"):
        read_table(f"{path}::lists")
    tagged = read_table(f"{path}::tagged")
    assert tagged.names == ("b",)
    assert tagged.notes[:2] == tuple(f"Column {name!r} holds lists and is left out." for name in ("a", "m"))
    with pytest.raises(InputError, match="the DuckDB data cannot be read"):
        read_table(f"{path}::elsewhere")
    with pytest.raises(InputError, match="a DuckDB database can be read only from a plain file"):
        read_table(io.BytesIO(path.read_bytes()))


def test_a_file_whose_name_has_colons_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a::b.csv"
    path.write_text("a,y\n1,u\n2,v\n")
    assert read_table(path).names == ("a",)
    assert read_chunks(str(path)).n_rows == 2
    (tmp_path / "x::y").mkdir()
    inner = tmp_path / "x::y" / "t.db"
    with closing(sqlite3.connect(inner)) as connection:
        connection.executescript(TREES)
    assert cells(inner) == cells(f"{inner}::trees") == TREE_CELLS


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    duckdb.connect(str(path)).close()
    original = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        if name == "duckdb":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'margrove\[duckdb\]'"):
        read_table(path)
