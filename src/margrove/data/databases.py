"""Tables and views of SQLite and DuckDB databases, which are opened for reading only."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from margrove.data.arrow import array_of_cells, table_from_typed
from margrove.data.frames import check_finite
from margrove.data.memory import CELL, check_memory
from margrove.data.source import Content, choose_part, damage_refused
from margrove.data.table import Table
from margrove.errors import MissingExtraError


def read_database(content: Content, form: Literal["SQLite", "DuckDB"], missing: Sequence[str]) -> Table:
    """Read the table or view that was named, or the only one there is, without a target. Raise `InputError` if the
    database is damaged, the table is not clear, does not fit in memory or has no rows."""
    arrow = _from_sqlite(content) if form == "SQLite" else _from_duckdb(content)
    table = table_from_typed(arrow, source=content.name, missing=missing)
    check_finite(table)
    return table


def _from_sqlite(content: Content) -> pa.Table:
    """Return the rows as columns of the types that their cells have; a column declared BOOLEAN holds truth values."""
    import sqlite3

    # Not "immutable": rows that another program wrote last may still be in its log beside the file.
    place = ":memory:" if content.path is None else f"{content.path.absolute().as_uri()}?mode=ro"
    with damage_refused(content.name, "SQLite"), closing(sqlite3.connect(place, uri=True)) as database:
        if content.path is None:
            database.deserialize(content.data)
        database.execute("PRAGMA trusted_schema = OFF")  # a view of a stranger calls no function with side effects
        listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*'"
        table = choose_part(content, "SQLite", [name for (name,) in database.execute(listed)])
        quoted = _quoted(table)
        types = database.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
        (n_rows,) = database.execute(f"SELECT count(*) FROM {quoted}").fetchone()
        check_memory(4 * CELL * n_rows * len(types), content.name)  # cells are Python objects for a while
        rows = database.execute(f"SELECT * FROM {quoted}").fetchall()
    columns = {}
    for (name, declared), cells in zip(types, zip(*rows, strict=True), strict=False):
        column = array_of_cells(name, cells, content.name)
        is_truth = declared.upper().startswith("BOOL") and kinds.is_integer(column.type)
        columns[name] = column.cast(pa.bool_()) if is_truth and pc.all(pc.is_in(column, _BITS)).as_py() else column
    return pa.table(columns)


_BITS = pa.array([0, 1, None], pa.int64())


def _from_duckdb(content: Content) -> pa.Table:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("DuckDB files need the package duckdb: pip install 'margrove[duckdb]'") from error
    if content.path is None:
        raise content.error("a DuckDB database can be read only from a plain file", cure="Save it as one and name it.")
    shut = {"enable_external_access": "false"}  # a view of a stranger reads no other file
    with (
        damage_refused(content.name, "DuckDB"),
        duckdb.connect(str(content.path), read_only=True, config=shut) as database,
    ):
        listed = database.execute("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
        tables = {table if schema == "main" else f"{schema}.{table}": (schema, table) for schema, table in listed}
        schema, table = tables[choose_part(content, "DuckDB", list(tables))]
        quoted = f"{_quoted(schema)}.{_quoted(table)}"
        n_rows, n_columns = database.sql(f"FROM {quoted}").shape
        check_memory(CELL * n_rows * n_columns, content.name)
        return database.sql(f"SELECT * FROM {quoted}").to_arrow_table()


def _quoted(name: str) -> str:
    """Return a name as SQL writes one with any characters."""
    return '"' + name.replace('"', '""') + '"'
