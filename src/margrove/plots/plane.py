"""The plane of a picture: two numeric columns of the table that a model takes.

A grid of new points must reach the model in the form its training rows had (an array, a frame of the same
library, a `Table`), since models and encoders match columns by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.frames import array_names, is_frame
from margrove.data.table import Table
from margrove.errors import InputError
from margrove.plots.arguments import found, shape_of

_PAD = 0.08  # of the range of the points, left free on every side
_ONE_SCALE = 2.5  # ranges that differ by at most this factor are drawn to one scale: right angles look right


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


def plane_for(model: object, X: Any, features: Sequence[str | int] | None) -> Plane:
    """Return the plane, its rows as this model takes them: only a pipeline has an encoder that takes a `Table`."""
    plane = read_plane(X, features)
    if isinstance(X, Table) and not hasattr(model, "steps"):
        return Plane(plane.points, plane.names, plane.points, lambda grid: grid)
    return plane


def read_plane(X: Any, features: Sequence[str | int] | None) -> Plane:
    """Return the plane of the two columns named by ``features``, or of the only two of X."""
    if isinstance(X, Table):
        plane = _from_table(X, features)
    elif is_frame(X) and has_text_names(X):
        plane = _from_frame(X, features)
    else:
        plane = _from_array(X, features)
    if not plane.is_complete.any():
        raise InputError(f"no row has both {plane.names[0]!r} and {plane.names[1]!r}: there is nothing to draw")
    return plane


def check_names(model: object, names: Sequence[str]) -> None:
    """Raise `InputError` if the model was fitted on two other columns."""
    fitted_on = [str(name) for name in getattr(model, "feature_names_in_", names)]
    if sorted(fitted_on) != sorted(names) and not set(names) <= set(array_names(2)):
        words = f"the model was fitted on {' and '.join(fitted_on)}, and {' and '.join(names)} were chosen"
        raise InputError(words, cure=f"Say features={fitted_on}.")


def _from_table(table: Table, features: Sequence[str | int] | None) -> Plane:
    names = chosen_two(table.names, features)
    for name in names:
        if table[name].kind != "numeric":
            raise _not_numeric(name, f"a {table[name].kind} column")
    points = np.column_stack([table[name].values for name in names]).astype(np.float64)
    return Plane(points, names, table.select(names), lambda grid: Table(block=grid, names=names))


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
        raise InputError(f"X holds text: {error}", cure="Choose two numeric columns.") from None
    return Plane(points, names, rows, lambda grid: grid)


def chosen_two(names: Sequence[str], features: Sequence[str | int] | None) -> tuple[str, str]:
    """Return two column names, from names or positions."""
    if features is None:
        if len(names) != 2:
            what = "one column" if len(names) == 1 else f"{len(names)} columns"
            cure = "Say which two: features=(a, b)."
            raise InputError(f"X has {what}; a plane has two", cure=cure)
        features = names
    if isinstance(features, (str, Mapping)) or shape_of(features)[:1] != (2,):
        raise InputError(f"{found('features', features)}; two column names or positions were wanted")
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
