"""Two spirals that no line separates: the perceptron in the dual, with a kernel (THEORY L3).

    python examples/two_spirals.py

writes two pictures into the current folder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove import KernelPerceptron, certify
from margrove.plots import plot_boundary, plot_margins


def two_spirals(n: int = 80) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """One spiral of n points, and the same turned by half a circle."""
    angle = np.linspace(0.5, 3 * np.pi, n)
    arm = angle[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([arm, -arm]), np.repeat([0, 1], n)


X, y = two_spirals()


def train() -> KernelPerceptron:
    """K(x, z) = exp(−‖x−z‖²/(2σ²)), σ about half the distance between the arms."""
    return KernelPerceptron(kernel="rbf", sigma=1.3, random_state=0).fit(X, y)


def figures() -> dict[str, Any]:
    """Each picture by its name."""
    model = train()
    return {
        "spirals-boundary": plot_boundary(model, X, y).figure,
        "spirals-margins": plot_margins(model, X, y).figure,
    }


if __name__ == "__main__":
    model = train()
    print(f"{len(model.support_)} of {len(X)} points were ever misjudged; f is made of these alone.")
    print(certify(model, X, y))
    for name, figure in figures().items():
        figure.savefig(f"{name}.png", dpi=120)
        print(f"{name}.png")
