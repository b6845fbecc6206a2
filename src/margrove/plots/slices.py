"""A plane through a table of many columns: two of them vary, every other one is held at a cell.

By default a column is held at its *typical* cell: the median of a numeric column, the most frequent level of any other.
The picture is a slice through the model, not a summary of it; its title names the cells that are held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import Column, Level
from margrove.data.frames import as_table, is_frame
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, check_number
from margrove.plots.plane import Plane, chosen_two, has_text_names, read_plane
from margrove.tree.words import level_text, rounded

_MOST_NAMED = 3  # columns held that a title names
_LINE = 50  # letters of a title that stand above axes of the usual width


def slice_plane(model: Any, X: Any, features: Sequence[str | int] | None, at: Mapping[str, Any]) -> Plane:
    """Return the plane of two columns of a model that has more; the others are held."""
    table = _columns_of(model, as_table(X))
    if features is None:
        cure = "Say which two vary, features=(a, b), and the others are held; or features='pca'."
        raise InputError(f"the model was fitted on {table.n_columns} columns; a plane has two", cure=cure)
    names = chosen_two(table.names, features)
    for name in at:
        if name not in table.names or name in names:
            others = [other for other in table.names if other not in names]
            raise ParameterError(f"at names {name!r}; the columns that can be held are {', '.join(others[:10])}.")
        if table[name].kind == "numeric" and not is_missing(at[name]):
            held_number(name, at[name])
    held = dict(at) | {name: typical_cell(table[name]) for name in table.names if name not in (*names, *at)}
    points = read_plane(table, names).points
    rows, like_rows = _forms(model, X, table, names, held)
    words = {name: "missing" if is_missing(cell) else _in_print(cell) for name, cell in held.items()}
    return Plane(points, names, rows, like_rows, words=held_in_words(words), width=table.n_columns)


def typical_cell(cells: Column) -> Level | None:
    """Return the median, or the most frequent level (the first of equals); None if every cell is missing."""
    present = cells.take(~cells.is_missing)
    if not len(present):
        return None
    if cells.kind == "numeric":
        return float(np.median(present.values))
    labels, counts = np.unique(np.asarray(present.labels()), return_counts=True)
    return labels[counts.argmax()].item()  # type: ignore[no-any-return]


def held_number(name: str, cell: Level) -> float:
    """Return the number at which a column is held; raise `ParameterError` if it is none."""
    check_number(f"at[{name!r}]", cell, cure="The column has numbers; None means a missing cell.")
    return float(cell)


def held_in_words(held: Mapping[str, str]) -> str:
    """Return where the other columns are held, for a title; "" if there are none."""
    words = [f"{name} = {cell}" for name, cell in held.items()]
    if len(words) > _MOST_NAMED:
        words[_MOST_NAMED:] = [f"{len(words) - _MOST_NAMED} more held"]
    lines: list[str] = []
    for each in words:
        if not lines:
            lines = [f"at {each}"]
        elif len(lines[-1]) + len(each) > _LINE:
            lines[-1:] = [f"{lines[-1]},", each]
        else:
            lines[-1] += f", {each}"
    return "".join(f"\n{line}" for line in lines)


def _columns_of(model: Any, table: Table) -> Table:
    """Return the columns that the model was fitted on, by name if both sides have names."""
    wanted = int(model.n_features_in_)
    fitted_on = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if fitted_on and set(fitted_on) <= set(table.names):
        return table.select(fitted_on)
    if table.n_columns != wanted:
        cure = f"Give it all columns: {', '.join(fitted_on[:10])}." if fitted_on else "Give it the columns of its fit."
        raise InputError(f"the model was fitted on {wanted} columns, and X has {table.n_columns}", cure=cure)
    return table


def _forms(
    model: object, X: Any, table: Table, names: tuple[str, str], held: dict[str, Any]
) -> tuple[Any, Callable[[NDArray[np.float64]], Any]]:
    """Return the rows as the model takes them, and a function that makes such rows from points of the plane."""
    if isinstance(X, Table) and (hasattr(model, "steps") or hasattr(model, "feature_names_in_")):
        return table, lambda grid: Table(
            [_column(table[name], grid, names, held) for name in table.names], source="points of a plane"
        )
    if is_frame(X) and has_text_names(X):
        return _frame_forms(X, table, names, held)
    for cells in table:
        if cells.kind != "numeric":
            raise InputError(f"the model was fitted on an array, and {cells.name!r} is no column of numbers")
    typical = [np.nan if held.get(name) is None else held[name] for name in table.names]
    places = [table.position(name) for name in names]

    def like_rows(grid: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.tile(np.asarray(typical, dtype=np.float64), (len(grid), 1))
        rows[:, places] = grid
        return rows

    return (np.column_stack([cells.values for cells in table]) if isinstance(X, Table) else X), like_rows


def _column(cells: Column, grid: NDArray[np.float64], names: tuple[str, str], held: dict[str, Any]) -> Column:
    """Return one column of rows in the plane, of the kind that the model was fitted on."""
    if cells.name in names:
        return Column(cells.name, "numeric", grid[:, names.index(cells.name)])
    cell = held[cells.name]
    if cells.kind == "numeric":
        return Column(cells.name, "numeric", np.full(len(grid), np.nan if cell is None else float(cell)))
    row = _row_with(cells, cell)
    return cells.take(np.full(len(grid), row, np.intp))


def _row_with(cells: Column, cell: Level | None) -> int:
    """Return a row that has this cell: taken from there, it has the kind and type that the model was fitted on."""
    if is_missing(cell):
        is_it = cells.is_missing
    else:
        is_it = np.zeros(len(cells), np.bool_)
        there = ~cells.is_missing
        is_it[there] = np.asarray(cells.take(there).labels()) == cell
    if not is_it.any():
        raise ParameterError(f"at holds {cells.name!r} at {cell!r}, which is in no row of X.")
    return int(is_it.argmax())


def _frame_forms(
    X: Any, table: Table, names: tuple[str, str], held: dict[str, Any]
) -> tuple[Any, Callable[[NDArray[np.float64]], Any]]:
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True).select(list(table.names))
    library = nw.get_native_namespace(frame)

    def like_rows(grid: NDArray[np.float64]) -> Any:
        parts = []
        for name in table.names:
            cells = table[name]
            if cells.kind == "numeric":
                values = _column(cells, grid, names, held).values
                parts.append(nw.from_dict({name: values}, native_namespace=library))
            else:
                part = frame.select(name)[[_row_with(cells, held[name])] * len(grid)]
                parts.append(nw.maybe_reset_index(part))
        return nw.concat(parts, how="horizontal").to_native()

    return frame.to_native(), like_rows


def is_missing(cell: object) -> bool:
    return cell is None or bool(cell != cell)  # only NaN is not itself


def _in_print(cell: Level) -> str:
    return rounded(float(cell)) if isinstance(cell, (int, float)) and not isinstance(cell, bool) else level_text(cell)
