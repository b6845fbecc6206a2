"""The places of the boxes of a drawn tree.

Subtrees are drawn as closely as their outlines allow and each parent above the middle of its children (Reingold and
Tilford 1981, "Tidier Drawings of Trees"), for boxes of any width and any number of children.
"""

from __future__ import annotations

from collections.abc import Sequence


def tidy(children: Sequence[Sequence[int]], widths: Sequence[float], gap: float) -> list[float]:
    """Return the middle of each box along x, the leftmost edge at 0.

    Boxes are numbered so that every child comes after its parent; the first is the root. Two boxes of one depth are
    ``gap`` apart at least.
    """
    n = len(children)
    # Of each subtree, by depth below its root and relative to its root's middle: the leftmost and the rightmost edge.
    left: list[list[float]] = [[] for _ in range(n)]
    right: list[list[float]] = [[] for _ in range(n)]
    offset = [0.0] * n  # of a box from its parent's middle
    for box in reversed(range(n)):
        lows: list[float] = []
        highs: list[float] = []
        shifts = []
        for child in children[box]:
            pairs = zip(highs, left[child], strict=False)  # the depths that both have
            shift = max((high + gap - low for high, low in pairs), default=0.0)
            shifts.append(shift)
            lows += [low + shift for low in left[child][len(lows) :]]
            highs = [high + shift for high in right[child]] + highs[len(right[child]) :]
        middle = (shifts[0] + shifts[-1]) / 2 if shifts else 0.0
        for child, shift in zip(children[box], shifts, strict=True):
            offset[child] = shift - middle
        left[box] = [-widths[box] / 2, *(low - middle for low in lows)]
        right[box] = [widths[box] / 2, *(high - middle for high in highs)]
    places = [0.0] * n
    places[0] = -min(left[0])
    for box in range(n):
        for child in children[box]:
            places[child] = places[box] + offset[child]
    return places
