"""Tables and views of SQLite and DuckDB databases, which are opened for reading only."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from margrove.data.arrow import table_from_cells, table_from_typed
from margrove.data.memory import CELL, check_memory
from margrove.data.source import Content, choose_part, damage_refused
from margrove.data.table import Table
from margrove.errors import MissingExtraError


def read_sqlite(content: Content, missing: Sequence[str]) -> Table:
    """Read the table or view that was named, or the only one there is, without a target. Columns have the types of
    their cells; one that is declared BOOLEAN and has only 0 and 1 is boolean. Raise `InputError` if the database is
    damaged, the table is not clear, does not fit in memory or has no rows."""
    # Not "immutable": rows that another program wrote last may still be in its log beside the file.
    place = ":memory:" if content.path is None else f"{content.path.absolute().as_uri()}?mode=ro"
    with damage_refused(content.name, "SQLite"), closing(sqlite3.connect(place, uri=True)) as database:
        if content.path is None:
            database.deserialize(content.data)
        database.execute("PRAGMA trusted_schema = OFF")  # a view of a stranger calls no function with side effects
        listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT GLOB 'sqlite_*'"
        table = choose_part(content, "SQLite", [name for (name,) in database.execute(listed)])
        (n_rows,) = database.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()
        found = database.execute(f"SELECT * FROM {_quoted(table)}")
        names = [name for name, *_ in found.description]
        check_memory(4 * CELL * n_rows * len(names), content.name)  # cells are Python objects for a while
        columns = [list(cells) for cells in zip(*found, strict=True)]
        types = dict(database.execute("SELECT name, upper(type) FROM pragma_table_info(?)", (table,)).fetchall())
    for position, (name, cells) in enumerate(zip(names, columns, strict=False)):  # no rows: no columns
        if types.get(name, "").startswith("BOOL") and set(cells) <= {0, 1, None}:
            columns[position] = [None if cell is None else bool(cell) for cell in cells]
    return table_from_cells(names, columns, source=content.name, missing=missing)


def read_duckdb(content: Content, missing: Sequence[str]) -> Table:
    """Read a table or view of DuckDB, as `read_sqlite` does. One of another schema is called ``schema.table``."""
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
        found = database.sql("FROM " + ".".join(map(_quoted, tables[choose_part(content, "DuckDB", list(tables))])))
        n_rows, n_columns = found.shape
        check_memory(CELL * n_rows * n_columns, content.name)
        return table_from_typed(found.to_arrow_table(), source=content.name, missing=missing)


def _quoted(name: str) -> str:
    """Return a name as SQL writes one with any characters."""
    return '"' + name.replace('"', '""') + '"'
