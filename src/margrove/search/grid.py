"""The values of a grid, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import ParameterError, check_number, shown


def listed_values(name: str, values: Any) -> list[Any]:
    """Return the values of one axis as a list; raise `ParameterError` for text, a table or nothing."""
    is_list = np.iterable(values) and not isinstance(values, str | bytes | Mapping)
    if not is_list or len(getattr(values, "shape", (1,))) != 1:
        raise ParameterError(f"{name} is {shown(values)}; it must be a list of values, or None for a default.")
    found = list(values)
    if not found:
        raise ParameterError(f"{name} is empty; it must be a list of values, or None for a default.")
    return found


def ascending(name: str, values: Any, **limits: Any) -> NDArray[np.float64]:
    """Return the values of one axis, checked by `check_number`, sorted, each once."""
    listed = listed_values(name, values)
    for value in listed:
        check_number(name, value, verb="holds", **limits)
    return np.unique(np.asarray(listed, dtype=np.float64))
