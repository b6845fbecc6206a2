"""Checks of the arguments of plots: models, rows and labels, names. They run before anything is drawn."""

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
    """Return the beginning of a message: ``ax is 'here'``, ``model is the class SVC``, ``course is of type SVC``."""
    if isinstance(value, type):
        return f"{name} is the class {value.__name__}"
    text = shown(value) if isinstance(value, (str, Real, list, tuple, dict, set, type(None), np.ndarray)) else ""
    return f"{name} is {text}" if text and len(text) <= _MOST_SHOWN else f"{name} is of type {type(value).__name__}"


def shape_of(value: Any) -> tuple[int, ...]:
    """Return ``np.shape``: () for a scalar; lists of different lengths count as rows of no columns."""
    try:
        return tuple(np.shape(value))
    except ValueError:
        return (len(value), 0)


def check_model(name: str, model: object, *, wanted: str = "a fitted model", attribute: str | None = None) -> None:
    """Raise `InputError` unless the model is an estimator, scikit-learn's NotFittedError unless it is fitted."""
    if isinstance(model, type) or not hasattr(model, "fit"):
        cure = f"Create one and fit it: {model.__name__}(...).fit(X, y)." if isinstance(model, type) else ""
        raise InputError(f"{found(name, model)}; {wanted} was expected", cure=cure)
    check_is_fitted(model, attribute)


def check_rows(X: Any, model: object = None) -> None:
    """Raise `InputError` if X cannot be rows or, with a model, an array has not the columns of its fit."""
    if X is None or isinstance(X, (str, bytes, Real, Mapping)):
        cure = "Pass the rows as an array, a data frame or a Table."
        raise InputError(f"{found('X', X)}; rows were expected", cure=cure)
    if getattr(X, "shape", (1,))[0] == 0:
        raise InputError("X has no row: there is nothing to draw")
    if model is None or not (isinstance(X, np.ndarray) or sp.issparse(X)):
        return
    if X.ndim != 2:
        raise InputError(f"X is {X.ndim}-dimensional; a table has rows and columns")
    n = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != n:
        raise InputError(f"{type(model).__name__} was fitted on {n} columns, but X has {X.shape[1]}")


def check_labels(y: object, *, wanted: str = "labels") -> None:
    """Raise `InputError` unless y has the shape (n,) or (n, 1)."""
    shape = shape_of(y)
    if not shape or any(width != 1 for width in shape[1:]):
        problem = f"y has the shape {shape}" if shape else found("y", y)
        raise InputError(f"{problem}; the {wanted} of the rows were expected", cure=f"Pass {wanted} of shape (n,).")


def check_mapping(name: str, value: object, wanted: str) -> dict[str, Any]:
    """Return a mapping as a dict, {} for None; raise `ParameterError` for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ParameterError(f"{found(name, value)}; it must be a mapping, {wanted}.")
    return dict(value)


def as_list(name: str, values: object, wanted: str) -> list[Any]:
    """Return several values as a list; raise `ParameterError` for anything else, a string too."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable) or not shape_of(values):
        raise ParameterError(f"{found(name, values)}; it must be a list of {wanted}.")
    return list(values)


def as_numbers(values: Any) -> NDArray[np.float64] | None:
    """Return an array of numbers, or None if the values cannot be converted."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None
