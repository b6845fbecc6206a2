"""Codes by the book, entry by entry: the oracle of the tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations

LOSSES: dict[str, Callable[[float], float]] = {
    "hamming": lambda z: (1 - (z > 0) + (z < 0)) / 2,
    "hinge": lambda z: max(0.0, 1 - z),
    "exponential": lambda z: math.exp(-z),
    "linear": lambda z: -z,
}


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    """Of two code words: 1 where they are on different sides, ½ where either is on none.

    Examples
    --------
    >>> from margrove.multiclass.reference import distance
    >>> distance([1, 1, 0, 0], [1, -1, 1, 0])
    2.0
    """
    return float(sum(0.5 if a == 0 or b == 0 else float(a != b) for a, b in zip(one, other, strict=True)))


def minimum_distance(code: Sequence[Sequence[float]]) -> float:
    """The least distance of two words."""
    return min(distance(one, other) for one, other in combinations(code, 2))


def decode(values: Sequence[float], code: Sequence[Sequence[float]], decoding: str) -> int:
    """The class whose word pays the least loss Σ L(c f), the first of equals.

    Examples
    --------
    >>> from margrove.multiclass.reference import decode
    >>> decode([2.0, -0.5], [[-1, -1], [-1, 1], [1, -1]], "hinge")
    2
    """
    loss = LOSSES[decoding]
    paid = [sum(loss(c * f) for c, f in zip(word, values, strict=True)) for word in code]
    return paid.index(min(paid))
