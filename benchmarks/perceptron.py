"""The perceptron against scikit-learn's, at the same number of passes over the same rows, both shuffled.

    python benchmarks/perceptron.py

scikit-learn's Perceptron runs with tol=None, so that it makes every pass it is asked for; ours cannot separate these
rows either and does the same. Both are given all defaults besides, and a penalty where the name of the case says so.
One-vs-rest on four classes shows the threads.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.linear_model import Perceptron as Peer

from margrove import Perceptron
from margrove.errors import ConvergenceWarning
from measure import interleaved, write


def rows(classes: int, dtype: type) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = make_classification(100_000, 50, n_informative=20, n_classes=classes, random_state=0)
    return np.ascontiguousarray(X, dtype=dtype), y


CASES: list[tuple[int, type, int, str | None]] = [
    (2, np.float32, 5, None),
    (2, np.float32, 20, None),
    (2, np.float64, 20, None),
    (4, np.float32, 20, None),
    (2, np.float32, 5, "l2"),
    (2, np.float32, 5, "l1"),
]


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    cases = []
    for classes, dtype, passes, penalty in CASES:
        X, y = rows(classes, dtype)
        how: dict[str, Any] = {"max_iter": passes, "penalty": penalty, "random_state": 0}
        sides = {
            "ours": lambda X=X, y=y, how=how: Perceptron(**how).fit(X, y),
            "ours, one thread": lambda X=X, y=y, how=how: Perceptron(n_jobs=1, **how).fit(X, y),
            "peer": lambda X=X, y=y, how=how: Peer(tol=None, **how).fit(X, y),
        }
        seconds = interleaved(sides, runs=7)
        accuracy = Perceptron(**how).fit(X, y).score(X, y)
        peer_accuracy = Peer(tol=None, **how).fit(X, y).score(X, y)
        with_penalty = "" if penalty is None else f", penalty {penalty}"
        cases.append(
            {
                "name": f"100,000 × 50 {np.dtype(dtype).name}, {classes} classes, {passes} passes{with_penalty}",
                "peer": "scikit-learn Perceptron",
                "ours_s": seconds["ours"],
                "ours_one_thread_s": seconds["ours, one thread"],
                "peer_s": seconds["peer"],
                "ratio": seconds["peer"] / seconds["ours"],
                "train_accuracy": accuracy,
                "peer_train_accuracy": peer_accuracy,
            }
        )
    bar = "dense 100,000 × 50 float32: at least 6 × scikit-learn's Perceptron at the same number of passes"
    write("perceptron", bar, cases)


if __name__ == "__main__":
    main()
