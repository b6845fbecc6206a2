"""What a picture is given, looked at before anything is drawn: models, rows and labels, axes, names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from margrove.errors import InputError, ParameterError, shown

_MOST_SHOWN = 40  # letters of a value in a message


def found(name: str, value: object) -> str:
    """The beginning of a message: ``ax is 'here'``, ``model is the class SVC``, ``course is of type SVC``."""
    if isinstance(value, type):
        return f"{name} is the class {value.__name__}"
    said = shown(value) if isinstance(value, (str, Real, list, tuple, dict, set, type(None), np.ndarray)) else ""
    return f"{name} is {said}" if said and len(said) <= _MOST_SHOWN else f"{name} is of type {type(value).__name__}"


def shape_of(value: Any) -> tuple[int, ...]:
    """As numpy has it: () of what is no list. Lists of different lengths are so many rows of none."""
    try:
        return tuple(np.shape(value))
    except ValueError:
        return (len(value), 0)


def check_model(name: str, model: object, *, wanted: str = "a fitted model", attribute: str | None = None) -> None:
    """Raise `InputError` unless this is an estimator, and scikit-learn's NotFittedError unless it is fitted."""
    if isinstance(model, type) or not hasattr(model, "fit"):
        cure = f"Make one, and fit it: {model.__name__}(...).fit(X, y)." if isinstance(model, type) else ""
        raise InputError(f"{found(name, model)}; {wanted} was wanted", cure=cure)
    check_is_fitted(model, attribute)


def check_rows(X: object) -> None:
    """Raise `InputError` where rows are plainly none."""
    if X is None or isinstance(X, (str, bytes, Real, Mapping)):
        cure = "Give the rows as an array, a data frame or a Table."
        raise InputError(f"{found('X', X)}; rows were wanted", cure=cure)
    if getattr(X, "shape", (1,))[0] == 0:
        raise InputError("X has no row: there is nothing to draw")


def check_columns(model: object, X: Any) -> None:
    """Raise `InputError` where an array has not the columns that the model was fitted on."""
    if not isinstance(X, np.ndarray) and not sp.issparse(X):
        return
    if X.ndim != 2:
        raise InputError(f"X is {X.ndim}-dimensional; a table has rows and columns")
    n = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != n:
        raise InputError(f"{type(model).__name__} was fitted on {n} columns, and X has {X.shape[1]}")


def check_labels(y: object, *, wanted: str = "labels") -> None:
    """Raise `InputError` unless y may be one label for each row."""
    shape = shape_of(y)
    if not shape or any(width != 1 for width in shape[1:]):
        said = f"y has the shape {shape}" if shape else found("y", y)
        raise InputError(f"{said}; the {wanted} of the rows were wanted", cure=f"Give {wanted} of shape (n,).")


def check_axes(name: str, ax: object) -> None:
    """Raise `ParameterError` unless ax is None or can be drawn on."""
    if ax is None or _is_axes(ax):
        return
    cure = f"{name}=None makes a figure; plt.subplots() gives axes."
    raise ParameterError(f"{found(name, ax)}; matplotlib Axes were wanted. {cure}")


def check_panels(name: str, axes: object, panels: str) -> NDArray[Any] | None:
    """The axes in a row, or None where a figure is to be made; `ParameterError` if one of them is none."""
    if axes is None:
        return None
    places = np.asarray(axes, dtype=object).ravel()
    for ax in places:
        if not _is_axes(ax):
            cure = f"{name}=None makes a figure."
            holder = found(name, axes) if not shape_of(axes) else f"{name} holds {shown(ax)}"
            raise ParameterError(f"{holder}; matplotlib Axes were wanted, one for each of {panels}. {cure}")
    return places


def _is_axes(ax: object) -> bool:
    from matplotlib.axes import Axes

    return isinstance(ax, Axes)


def check_mapping(name: str, value: object, wanted: str) -> dict[str, Any]:
    """A mapping as a dict, or `ParameterError`."""
    if not isinstance(value, Mapping):
        raise ParameterError(f"{found(name, value)}; it must be a mapping, {wanted}.")
    return dict(value)


def as_list(name: str, values: object, wanted: str) -> list[Any]:
    """Several values as a list, or `ParameterError`: a word is not a list of letters."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable) or not shape_of(values):
        raise ParameterError(f"{found(name, values)}; it must be a list of {wanted}.")
    return list(values)
