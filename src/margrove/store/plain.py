"""Python values as JSON values and back, nothing lost.

JSON has no infinity, no NaN, no tuple, no array, and its keys are strings only. Those are written as an object with one
key that starts with a dollar sign; everything else is written as it is:

=====================  ==================================
inf, -inf, nan         ``{"$float": "inf"}``
(1, 2)                 ``{"$tuple": [1, 2]}``
{0: 1.0, "a": 2.0}     ``{"$dict": [[0, 1.0], ["a", 2.0]]}``
array([[1, -1]])       ``{"$array": ["<i8", [[1, -1]]]}``
=====================  ==================================
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store.fault import FaultError, shown

_DTYPE = re.compile(r"[<>|]([iu][1248]|f[248])")


def to_json(value: Any, what: str) -> Any:
    """Return a parameter's value as JSON values; ``what`` names it in the error for a value of another kind."""
    if isinstance(value, np.generic):
        value = value.item()
    # The exact types: a subclass (an enum, say) would come back as something else.
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if type(value) is list:
        return [to_json(item, what) for item in value]
    if type(value) is tuple:
        return {"$tuple": [to_json(item, what) for item in value]}
    if type(value) is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: to_json(item, what) for key, item in value.items()}
        return {"$dict": [[to_json(key, what), to_json(item, what)] for key, item in value.items()]}
    if type(value) is np.ndarray and _DTYPE.fullmatch(value.dtype.str):
        return {"$array": [value.dtype.str, to_json(value.tolist(), what)]}
    raise FaultError(
        f"{what} is {shown(value)}, which a file without code cannot hold",
        "Use None, numbers, text, or lists, dicts and arrays of these.",
    )


def from_json(record: Any) -> Any:
    """Return the value that `to_json` wrote."""
    if isinstance(record, list):
        return [from_json(item) for item in record]
    if not isinstance(record, dict):
        return record
    marks = [key for key in record if key.startswith("$")]
    if not marks:
        return {key: from_json(item) for key, item in record.items()}
    mark, body = marks[0], record[marks[0]]
    if len(record) == 1:
        if mark == "$float" and body in ("inf", "-inf", "nan"):
            return float(body)
        if mark == "$tuple" and isinstance(body, list):
            return tuple(from_json(item) for item in body)
        if mark == "$dict" and isinstance(body, list):
            return _dict_of(body)
        if mark == "$array" and isinstance(body, list) and len(body) == 2:
            return _array_of(body[0], from_json(body[1]))
    raise FaultError(f"{shown(record)} is no value that a model file may hold")


def _dict_of(pairs: list[Any]) -> dict[Any, Any]:
    values = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise FaultError(f"{shown(pair)} is no key with its value")
        key = from_json(pair[0])
        if not isinstance(key, str | int | float | bool | tuple | None):
            raise FaultError(f"{shown(key)} cannot be a key")
        try:
            values[key] = from_json(pair[1])
        except TypeError as error:  # a tuple that holds a list
            raise FaultError(f"{shown(key)} cannot be a key") from error
    return values


def _array_of(dtype: Any, values: Any) -> NDArray[Any]:
    if isinstance(dtype, str) and _DTYPE.fullmatch(dtype):
        try:
            array = np.array(values, dtype=dtype)
            is_whole = repr(array.tolist()) == repr(values)  # nothing rounded, cut off or made a number
        except (TypeError, ValueError, OverflowError):
            is_whole = False
        if is_whole:
            return array
    raise FaultError(f"{shown(values)} is no array of dtype {shown(dtype)}")
