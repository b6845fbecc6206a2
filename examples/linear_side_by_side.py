"""The linear classifiers side by side (THEORY L5): on points that suit them all, with outliers, and overlapping.

    python examples/linear_side_by_side.py

writes three pictures into the current folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.plots import compare_linear

Points = tuple[NDArray[np.float64], NDArray[np.str_]]


def two_clouds(distance: float, seed: int = 3) -> Points:
    """Forty points around the origin, forty around a point at that distance."""
    random = np.random.default_rng(seed)
    centre = distance * np.array([0.8, 0.6])
    X = np.vstack([random.normal(0, 1, (40, 2)), random.normal(centre, 1, (40, 2))])
    return X, np.repeat(["no", "yes"], 40)


def with_outliers(points: Points) -> Points:
    """A few more points far on the right side: they change nothing about what separates the classes."""
    X, y = points
    far = np.random.default_rng(0).normal([16.0, 9.0], 0.5, (12, 2))
    return np.vstack([X, far]), np.append(y, ["yes"] * len(far))


def figures() -> dict[str, Any]:
    """Each picture by its name."""
    cases = {
        "linear-separable": two_clouds(5),
        "linear-outliers": with_outliers(two_clouds(5)),
        "linear-overlap": two_clouds(2.5),
    }
    return {name: compare_linear(*points)[0].figure for name, points in cases.items()}


if __name__ == "__main__":
    for name, figure in figures().items():
        figure.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png: {'; '.join(ax.get_title().replace(chr(10), ': ', 1) for ax in figure.axes)}")
