"""Format numbers. A file of any earlier number is read, by bringing its header and arrays up one number at a time.

To change the format: raise `FORMAT`, put a function into `UPGRADES` under the old number, keep the old golden file of
``tests/store/golden``, add a new one. A new parameter of an estimator is such a change: the upgrade gives it its old
meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from margrove.store.fault import FaultError, shown

Header: TypeAlias = dict[str, Any]
Tensors: TypeAlias = dict[str, NDArray[np.generic]]

FORMAT = 1

# format number of a file → what makes it a file of the next number
UPGRADES: dict[int, Callable[[Header, Tensors], tuple[Header, Tensors]]] = {}


def check_format(header: Header) -> None:
    """Refuse a file from the future, and one without a format number."""
    number = header.get("format")
    if type(number) is not int or number < 1:
        raise FaultError(f"its format number is {shown(number)}; a whole number from 1 on was expected")
    if number > FORMAT:
        writer = shown(header.get("margrove"))
        raise FaultError(
            f"written by a newer Margrove ({writer}), in format {number}; this one reads formats up to {FORMAT}",
            "Upgrade: pip install --upgrade margrove.",
        )


def bring_up_to_date(header: Header, tensors: Tensors) -> tuple[Header, Tensors]:
    """The same model in today's format."""
    while header["format"] < FORMAT:
        number = header["format"]
        header, tensors = UPGRADES[number](header, tensors)
        header = {**header, "format": number + 1}
    return header, tensors
