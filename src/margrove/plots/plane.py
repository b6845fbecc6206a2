"""The plane of a picture: two numeric columns, a slice through a table of more, or two principal components.

A grid of new points must reach the model in the form its training rows had (an array, a frame of the same
library, a `Table`), since models and encoders match columns by name.

In a *slice* two columns vary, and every other one is held at a cell: by default at its *typical* cell, the median of a
numeric column, the most frequent level of any other. The picture is a slice through the model, not a summary of it; its
title names the cells that are held.

For *principal components* the rows are those that reach the classifier at the end of a pipeline: its margins are
distances there. A point x of the plane with the coordinates t is x = mean + t₁ v₁ + t₂ v₂; the picture is the slice of
the model through the mean of the rows, and the rows are projected onto it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from margrove.data.columns import Column, Level, is_missing
from margrove.data.formats import DateFormat, Format
from margrove.data.frames import array_names, as_table, is_frame
from margrove.data.rows import Matrix
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, check_number
from margrove.plots.arguments import as_numbers, found, shape_of
from margrove.plots.evaluation import Predictor, last_step, last_step_of
from margrove.tree.words import level_text, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAD = 0.08  # of the range of the points, left free on every side
_ONE_SCALE = 2.5  # ranges that differ by at most this factor are drawn to one scale: right angles look right
_MOST_DATES = 4  # along an axis of the usual width
_MOST_NAMED = 3  # columns that are held, or along which a component runs most: as many are named
_LINE = 50  # letters of a title that stand above axes of the usual width
_LITTLE = 0.1  # of a component's largest share in a column: less is not named


@dataclass(frozen=True)
class Plane:
    """Two columns of a table."""

    points: NDArray[np.float64]  # (n, 2); NaN where a cell is missing
    names: tuple[str, str]
    rows: Any  # the same two columns in the form they came in
    like_rows: Callable[[NDArray[np.float64]], Any]  # new points in that form
    words: str = ""  # for the title: where other columns are held
    width: int = 2  # numbers of a new point in that form
    is_encoded: bool = False  # new points are rows for the last step of a pipeline, not for the first
    formats: tuple[Format | None, Format | None] = (None, None)  # of the numbers along the axes

    @property
    def is_complete(self) -> NDArray[np.bool_]:
        """A mask over the rows: both cells are present."""
        return np.asarray(np.isfinite(self.points).all(axis=1))

    @property
    def limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The limits of each axis, with some room around the points."""
        low, high = np.nanmin(self.points, axis=0), np.nanmax(self.points, axis=0)
        room = _PAD * np.where(high > low, high - low, 1.0)
        (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
        return (left, right), (bottom, top)

    @property
    def height_to_width(self) -> float:
        """The ratio of the ranges shown, in the units of the columns."""
        (left, right), (bottom, top) = self.limits
        return (top - bottom) / (right - left)

    @property
    def has_one_scale(self) -> bool:
        """True if both axes can be drawn to the same scale."""
        return 1 / _ONE_SCALE <= self.height_to_width <= _ONE_SCALE

    def write_dates(self, ax: Axes) -> None:
        """Write dates along the axes that have them."""
        from matplotlib.ticker import MaxNLocator

        for axis, form in zip((ax.xaxis, ax.yaxis), self.formats, strict=True):
            if isinstance(form, DateFormat):
                axis.set_major_locator(MaxNLocator(_MOST_DATES))
                axis.set_major_formatter(_date_ticks(form))


def _date_ticks(form: DateFormat) -> Callable[[float, float], str]:
    return lambda value, _: form.show(float(value))


def plane_of(model: Predictor, X: Any, features: Sequence[str | int] | str | None, at: Mapping[str, Any]) -> Plane:
    """Return the plane of two columns, of two out of more, or of two principal components."""
    if getattr(last_step_of(model), "kernel", None) == "precomputed":
        raise InputError("a model with kernel='precomputed' has no points to draw", cure="Fit it with a named kernel.")
    if isinstance(features, str) and features == "pca":
        if at:
            raise ParameterError("at fixes columns, but features='pca' has none to fix; leave one of the two out.")
        return component_plane(model, X)
    if getattr(model, "n_features_in_", 2) != 2:
        return slice_plane(model, X, features, at)
    if at:
        raise ParameterError("at fixes columns, but the model was fitted on only two; leave it out.")
    plane = read_plane(X, features, model)
    fitted_on = [str(name) for name in getattr(model, "feature_names_in_", plane.names)]
    if sorted(fitted_on) != sorted(plane.names) and not set(plane.names) <= set(array_names(2)):
        words = f"the model was fitted on {' and '.join(fitted_on)}, but {' and '.join(plane.names)} were chosen"
        raise InputError(words, cure=f"Set features={fitted_on}.")
    return plane


def read_plane(X: Any, features: Sequence[str | int] | None, model: object = None) -> Plane:
    """Return the plane of the two columns named by ``features``, or of the only two of X, its rows for this model."""
    if isinstance(X, Table):
        plane = _from_table(X, features, model)
    elif is_frame(X) and has_text_names(X):
        plane = _from_frame(X, features)
    else:
        plane = _from_array(X, features)
    if not plane.is_complete.any():
        raise InputError(f"no row has both {plane.names[0]!r} and {plane.names[1]!r}: there is nothing to draw")
    return plane


def _from_table(table: Table, features: Sequence[str | int] | None, model: object) -> Plane:
    names = chosen_two(table.names, features)
    for name in names:
        if table[name].kind != "numeric":
            raise _not_numeric(name, f"a {table[name].kind} column")
    points = np.column_stack([table[name].values for name in names]).astype(np.float64)
    formats = table[names[0]].format, table[names[1]].format
    if not hasattr(model, "steps"):  # only a pipeline has an encoder that takes a table
        return Plane(points, names, points, lambda grid: grid, formats=formats)
    return Plane(points, names, table.select(names), lambda grid: Table(block=grid, names=names), formats=formats)


def _from_frame(X: Any, features: Sequence[str | int] | None) -> Plane:
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True)
    names = chosen_two(frame.columns, features)
    chosen = frame.select(names)
    for name, dtype in chosen.schema.items():
        if not dtype.is_numeric():
            raise _not_numeric(name, f"a column of {dtype}")
    library = nw.get_native_namespace(frame)

    def like_rows(grid: NDArray[np.float64]) -> Any:
        columns = dict(zip(names, grid.T, strict=True))
        return nw.from_dict(columns, native_namespace=library).to_native()

    return Plane(chosen.to_numpy().astype(np.float64), names, chosen.to_native(), like_rows)


def _from_array(X: Any, features: Sequence[str | int] | None) -> Plane:
    if sp.issparse(X):
        X = X.tocsc()
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise InputError(f"X is {X.ndim}-dimensional; a table has rows and columns")
    known = array_names(X.shape[1])
    names = chosen_two(known, features)
    rows = X[:, [known.index(name) for name in names]]
    rows = rows.toarray() if sp.issparse(rows) else rows  # two columns: small
    try:
        points = rows.astype(np.float64)
    except ValueError as error:
        raise InputError(f"X contains text: {error}", cure="Choose two numeric columns.") from None
    return Plane(points, names, rows, lambda grid: grid)


def chosen_two(names: Sequence[str], features: Sequence[str | int] | None) -> tuple[str, str]:
    """Return two column names, from names or positions."""
    if features is None:
        if len(names) != 2:
            what = "one column" if len(names) == 1 else f"{len(names)} columns"
            cure = "Choose two: features=(a, b)."
            raise InputError(f"X has {what}; a plane has two", cure=cure)
        features = names
    if isinstance(features, (str, Mapping)) or shape_of(features)[:1] != (2,):
        raise InputError(f"{found('features', features)}; two column names or positions were expected")
    for feature in features:
        if feature not in (names if isinstance(feature, str) else range(len(names))):
            raise InputError(f"X has no column {feature!r}", cure=f"Its columns are {', '.join(names[:10])}.")
    first, second = (feature if isinstance(feature, str) else names[feature] for feature in features)
    if first == second:
        raise InputError(f"features names {first!r} twice; a plane has two columns")
    return first, second


def _not_numeric(name: str, what: str) -> InputError:
    return InputError(f"{name!r} is {what}; an axis needs numbers", cure="Choose two numeric columns.")


def has_text_names(X: Any) -> bool:
    """Return whether all columns of a frame have text names; otherwise it is taken as an array, as in scikit-learn."""
    return all(isinstance(name, str) for name in getattr(X, "column_names", X.columns))


def slice_plane(model: Any, X: Any, features: Sequence[str | int] | None, at: Mapping[str, Any]) -> Plane:
    """Return the plane of two columns of a model that has more; the others are held."""
    table = _columns_of(model, as_table(X))
    if features is None:
        cure = "Choose the two that vary, features=(a, b), while the others are fixed; or set features='pca'."
        raise InputError(f"the model was fitted on {table.n_columns} columns; a plane has two", cure=cure)
    names = chosen_two(table.names, features)
    for name in at:
        if name not in table.names or name in names:
            others = [other for other in table.names if other not in names]
            raise ParameterError(f"at names {name!r}; the columns that can be fixed are {', '.join(others[:10])}.")
        if table[name].kind == "numeric" and not is_missing(at[name]):
            held_number(name, at[name])
    held = dict(at) | {name: typical_cell(table[name]) for name in table.names if name not in (*names, *at)}
    read = read_plane(table, names)
    rows, like_rows = _forms(model, X, table, names, held)
    words = held_in_words({name: _in_print(cell, table[name].format) for name, cell in held.items()})
    return replace(read, rows=rows, like_rows=like_rows, words=words, width=table.n_columns)


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
    check_number(f"at[{name!r}]", cell, cure="The column is numeric; None means a missing cell.")
    return float(cell)


def held_in_words(held: Mapping[str, str]) -> str:
    """Return where the other columns are held, for a title; "" if there are none."""
    words = [f"{name} = {cell}" for name, cell in held.items()]
    if len(words) > _MOST_NAMED:
        words[_MOST_NAMED:] = [f"{len(words) - _MOST_NAMED} more fixed"]
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
        cure = f"Pass all columns: {', '.join(fitted_on[:10])}." if fitted_on else "Pass the columns it was fitted on."
        raise InputError(f"the model was fitted on {wanted} columns, but X has {table.n_columns}", cure=cure)
    return table


def _forms(
    model: object, X: Any, table: Table, names: tuple[str, str], held: dict[str, Any]
) -> tuple[Any, Callable[[NDArray[np.float64]], Any]]:
    """Return the rows as the model takes them, and a function that makes such rows from points of the plane."""
    is_text_frame = is_frame(X) and has_text_names(X)
    takes_tables = hasattr(model, "steps") or hasattr(model, "feature_names_in_")
    others = [cells for cells in table if cells.kind != "numeric"]

    def numbers(name: str, grid: NDArray[np.float64]) -> NDArray[np.float64]:
        if name in names:
            return grid[:, names.index(name)]
        return np.full(len(grid), np.nan if is_missing(held[name]) else float(held[name]))

    if not is_text_frame and not (isinstance(X, Table) and takes_tables):
        if others:
            raise InputError(f"the model was fitted on an array, but the column {others[0].name!r} is not numeric")
        rows = np.column_stack([cells.values for cells in table]) if isinstance(X, Table) else X
        return rows, lambda grid: np.column_stack([numbers(name, grid) for name in table.names])
    # A cell that is no number is taken from a row that has it: it has the kind and type that the model was fitted on.
    source = {cells.name: _row_with(cells, held[cells.name]) for cells in others}
    if isinstance(X, Table):

        def like_table(grid: NDArray[np.float64]) -> Table:
            columns = [
                cells.take(np.full(len(grid), source[cells.name], np.intp))
                if cells.name in source
                else Column(cells.name, "numeric", numbers(cells.name, grid))
                for cells in table
            ]
            return Table(columns, source="points of a plane")

        return table, like_table
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True).select(list(table.names))
    library = nw.get_native_namespace(frame)

    def like_frame(grid: NDArray[np.float64]) -> Any:
        parts = [
            nw.maybe_reset_index(frame.select(name)[[source[name]] * len(grid)])
            if name in source
            else nw.from_dict({name: numbers(name, grid)}, native_namespace=library)
            for name in table.names
        ]
        return nw.concat(parts, how="horizontal").to_native()

    return frame.to_native(), like_frame


def _row_with(cells: Column, cell: Level | None) -> int:
    known, wanted = cells.cells(), None if is_missing(cell) else cell
    if wanted not in known:
        raise ParameterError(f"at fixes {cells.name!r} at {cell!r}, which no row of X contains.")
    return known.index(wanted)


def _in_print(cell: Level | None, form: Format | None) -> str:
    if is_missing(cell):
        return "missing"
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return number_text(float(cell), form)
    return level_text(cell)


def component_plane(model: Predictor, X: Any) -> Plane:
    """Return the plane; new points of it are rows for the model's last step."""
    encoded = _encoded_numbers(last_step(model, X)[1])
    if min(encoded.shape) < 2:
        raise InputError(f"the rows are {encoded.shape[0]} × {encoded.shape[1]}; principal components need two of each")
    pca = PCA(n_components=2, random_state=0).fit(encoded)
    names = _encoded_names(model, X, encoded.shape[1])
    first, second = (
        f"component {k + 1}, {100 * share:.0f} % of the variance:\n{_runs_along(pca.components_[k], names)}"
        for k, share in enumerate(pca.explained_variance_ratio_)
    )
    points = np.asarray(pca.transform(encoded), dtype=np.float64)
    words, d = "\nslice through the mean, points projected onto it", encoded.shape[1]
    return Plane(points, (first, second), X, pca.inverse_transform, words, width=d, is_encoded=True)


def _encoded_numbers(rows: Any) -> Matrix:
    """Return rows as a matrix of finite numbers."""
    if sp.issparse(rows):
        return rows.tocsr().astype(np.float64)
    encoded = as_numbers(rows)
    if encoded is None or encoded.ndim != 2:
        cure = "Put an encoder in front of the model, or choose two columns: features=(a, b)."
        raise InputError("principal components need numbers, but the model takes other cells", cure=cure)
    if not np.isfinite(encoded).all():
        cure = "Choose two columns: features=(a, b)."
        raise InputError("a cell is missing, but principal components need all of them", cure=cure)
    return encoded


def _encoded_names(model: Any, X: Any, d: int) -> list[str]:
    """Return the names of the columns that the last step sees."""
    if hasattr(model, "steps") and len(model) > 1:
        if hasattr(model[:-1], "get_feature_names_out"):
            return [str(name) for name in model[:-1].get_feature_names_out()]
        return [f"x{j}" for j in range(d)]
    return [str(name) for name in as_table(X).names]


def _runs_along(direction: NDArray[np.float64], names: list[str]) -> str:
    """Return the columns that change most along a component, with a minus if they fall."""
    share = np.abs(direction)
    order = [int(j) for j in np.argsort(-share, kind="stable") if share[j] > _LITTLE * share.max()]
    signed = [f"{'' if direction[j] > 0 else '−'}{names[j]}" for j in order]
    return ", ".join([*signed[:_MOST_NAMED], *["…"] * (len(signed) > _MOST_NAMED)])
