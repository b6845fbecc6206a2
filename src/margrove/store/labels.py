"""The labels of a classifier (``classes_``) as JSON and back: the same values in the same NumPy dtype."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, to_json

_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[0-9]{1,9})|\|O")
# A file of a few bytes may claim '<U999999999', and NumPy would take 4 GB for each label.
_MOST_BYTES = 1 << 28
_PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str, "O": str}


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Return the labels as JSON: ``{"dtype": "<U3", "values": ["no", "yes"]}``."""
    dtype, values = labels.dtype.str, labels.tolist()
    if labels.dtype == object:  # NumPy's own text may be among the objects
        values = [str(value) if isinstance(value, str) else value for value in values]
    if not _DTYPE.fullmatch(dtype) or not _are_of_one_kind(values, labels.dtype):
        cure = "Use text, integers, floats or Booleans as labels, y.astype(str) for instance."
        raise FaultError(f"labels such as {shown(values[0])} (dtype {labels.dtype}) cannot be saved", cure)
    return {"dtype": dtype, "values": to_json(values, "a label")}


def labels_from_json(record: Any) -> NDArray[Any]:
    """Return the labels that `labels_to_json` wrote; sorted and distinct, as a classifier needs them."""
    if not isinstance(record, dict) or record.keys() != {"dtype", "values"}:
        raise FaultError(f"the labels are {shown(record)}; a dtype and values were expected")
    name, values = record["dtype"], from_json(record["values"])
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise FaultError(f"the labels' dtype is {shown(name)}, which labels cannot have")
    width = int(name[2:] or 1) * (4 if name[1] == "U" else 1)  # bytes of one label
    if width > _MOST_BYTES:  # before NumPy is asked, which may refuse in its own words
        raise FaultError(f"labels of dtype {name} would take {width:,} bytes each")
    dtype = np.dtype(name)
    if not isinstance(values, list) or not values or not _are_of_one_kind(values, dtype):
        raise FaultError(f"the labels are {shown(values)}, which are no values of dtype {name}")
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
