"""The random numbers of a tree: a counter-based generator keyed by seed, node and column.

A number depends on its key alone, not on what was drawn before. So certificates, both engines and other computers draw
the same numbers, in any order. The hash is SplitMix64 (Steele, Lea, Flood 2014). The core has the same functions
(core/tree/draws.hpp).
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


def tree_seed(seed: int, tree: int) -> int:
    """Return the seed of one tree of a forest, of 32 bits; trees are counted from 0."""
    return mixed(mixed(seed) ^ mixed(tree)) >> 32


def drawn_rows(seed: int, n_rows: int, n_drawn: int) -> NDArray[np.intp]:
    """Return the rows that a tree with this seed draws with replacement: draw i takes row ⌊u_i n / 2⁶⁴⌋."""
    key = np.uint64(mixed((seed + 1) & _BITS))
    u = _mixed_all(key ^ _mixed_all(np.arange(n_drawn, dtype=np.uint64)))
    n, low = np.uint64(n_rows), np.uint64(0xFFFFFFFF)  # the upper half of a product of 128 bits; n < 2³²
    return ((u >> np.uint64(32)) * n + ((u & low) * n >> np.uint64(32)) >> np.uint64(32)).astype(np.intp)


def _mixed_all(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return `mixed` of each number; sums and products wrap around."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
