"""The random numbers of a tree: a counter-based generator keyed by seed, node and column.

A number depends on its key alone, not on what was drawn before. So certificates, both engines and other computers draw
the same numbers, in any order. The hash is SplitMix64 (Steele, Lea, Flood 2014). The core has the same functions
(core/tree/scan.hpp and growing.hpp).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_BITS = (1 << 64) - 1


def mixed(x: int) -> int:
    """Return a 64-bit number that looks random."""
    x = (x + 0x9E3779B97F4A7C15) & _BITS
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _BITS
    return x ^ (x >> 31)


def child_key(key: int, branch: int) -> int:
    """Return the key of a node's child; that of the root is ``mixed(seed)``."""
    return mixed((key + branch + 1) & _BITS)


def column_order(key: int, n_columns: int) -> Sequence[int]:
    """Return the columns in the order in which a node looks at them."""
    return sorted(range(n_columns), key=lambda column: _place(key, column))


def random_cut(key: int, column: int, x: NDArray[np.float64]) -> float:
    """Return a threshold drawn uniformly from [min, max) of the numbers."""
    low, high = float(x.min()), float(x.max())
    share = (mixed(_place(key, column)) >> 11) * 2.0**-53
    cut = (1 - share) * low + share * high  # the difference of the two may overflow
    return max(cut, low) if cut < high else low


def _place(key: int, column: int) -> int:
    return mixed(key ^ mixed(column))
