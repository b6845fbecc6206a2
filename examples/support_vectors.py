"""Support vector machines seen in the plane: the margin, the points that hold it, and a machine of one class.

    python examples/support_vectors.py

writes three pictures into the current folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove import SVC, OneClassSVM, certify
from margrove.plots import plot_boundary, plot_margins


def two_moons(n: int = 60, noise: float = 0.22, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Two half circles that reach into each other, n points around each."""
    random = np.random.default_rng(seed)
    angle = random.uniform(0, np.pi, 2 * n)
    upper, lower = angle[:n], angle[n:]
    X = np.vstack(
        [
            np.column_stack([np.cos(upper), np.sin(upper)]),
            np.column_stack([1 - np.cos(lower), 0.4 - np.sin(lower)]),
        ]
    )
    return X + random.normal(0, noise, X.shape), np.repeat(["dusk", "dawn"], n)


X, y = two_moons()


def train() -> SVC:
    """C = 1: a point may stand in the margin, at a price."""
    return SVC(C=1.0, gamma=1.0).fit(X, y)


def figures() -> dict[str, Any]:
    """Each picture by its name."""
    model = train()
    cloud = X[y == "dusk"]
    return {
        "svm-boundary": plot_boundary(model, X, y).figure,
        "svm-margins": plot_margins(model, X, y).figure,
        "svm-one-class": plot_boundary(OneClassSVM(nu=0.1, gamma=1.0).fit(cloud), cloud).figure,
    }


if __name__ == "__main__":
    model = train()
    words, counts = np.unique(model.kkt_, return_counts=True)
    print(", ".join(f"{count} {word}" for word, count in zip(words, counts, strict=True)))
    print(certify(model, X, y))
    for name, figure in figures().items():
        figure.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png")
