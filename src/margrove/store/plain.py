"""Python values, and the labels of a classifier (``classes_``), as JSON values and back, nothing lost.

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
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store.fault import FaultError, shown

_DTYPE = re.compile(r"[<>|]([iu][1248]|f[248])")
_LABEL_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[0-9]{1,9})|\|O")
# A file of a few bytes may claim '<U999999999', and NumPy would take 4 GB for each label.
_MOST_BYTES = 1 << 28
_PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str, "O": str}


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
        f"{what} is {shown(value)}, which cannot be saved in a file without code",
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
    raise FaultError(f"{shown(record)} is not a value that a model file may contain")


def _dict_of(pairs: list[Any]) -> dict[Any, Any]:
    values = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise FaultError(f"{shown(pair)} is not a pair of key and value")
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
    raise FaultError(f"{shown(values)} is not an array of dtype {shown(dtype)}")


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Return the labels as JSON: ``{"dtype": "<U3", "values": ["no", "yes"]}``."""
    dtype, values = labels.dtype.str, labels.tolist()
    if labels.dtype == object:  # NumPy's own text may be among the objects
        values = [str(value) if isinstance(value, str) else value for value in values]
    if not _LABEL_DTYPE.fullmatch(dtype) or not _are_of_one_kind(values, labels.dtype):
        cure = "Use text, integers, floats or Booleans as labels, y.astype(str) for instance."
        raise FaultError(f"labels such as {shown(values[0])} (dtype {labels.dtype}) cannot be saved", cure)
    return {"dtype": dtype, "values": to_json(values, "a label")}


def labels_from_json(record: Any) -> NDArray[Any]:
    """Return the labels that `labels_to_json` wrote; sorted and distinct, as a classifier needs them."""
    if not isinstance(record, dict) or record.keys() != {"dtype", "values"}:
        raise FaultError(f"the labels are {shown(record)}; a dtype and values were expected")
    name, values = record["dtype"], from_json(record["values"])
    if not isinstance(name, str) or not _LABEL_DTYPE.fullmatch(name):
        raise FaultError(f"the labels' dtype is {shown(name)}, which labels cannot have")
    width = int(name[2:] or 1) * (4 if name[1] == "U" else 1)  # bytes of one label
    if width > _MOST_BYTES:  # before NumPy is asked, which may refuse in its own words
        raise FaultError(f"labels of dtype {name} would take {width:,} bytes each")
    dtype = np.dtype(name)
    if not isinstance(values, list) or not values or not _are_of_one_kind(values, dtype):
        raise FaultError(f"the labels are {shown(values)}, which are not values of dtype {name}")
    if dtype.itemsize * len(values) > _MOST_BYTES:
        raise FaultError(f"labels of dtype {name} would take {dtype.itemsize * len(values):,} bytes")
    try:
        labels = np.array(values, dtype=dtype)
    except OverflowError as error:
        raise FaultError(f"the labels {shown(values)} do not fit into dtype {name}") from error
    if labels.tolist() != values:  # a text longer than its dtype, a float with more digits than its dtype
        raise FaultError(f"the labels {shown(values)} do not fit into dtype {name}")
    if any(not low < high for low, high in pairwise(values)):
        raise FaultError(f"the labels {shown(values)} are not sorted and distinct")
    return labels


def _are_of_one_kind(values: list[Any], dtype: np.dtype[Any]) -> bool:
    return all(type(value) is _PYTHON_TYPES[dtype.kind] for value in values)
