"""Write the golden files of today's format: ``python tests/store/make_golden.py``.

Run it once for each format number, when that number is new. The files of earlier numbers are never written again: they
stand for what people have on their disks.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from margrove import (
    BasicLinearClassifier,
    KernelPerceptron,
    LeastSquaresClassifier,
    Perceptron,
    Table,
    TableEncoder,
    as_table,
    save,
)
from margrove.errors import ConvergenceWarning
from margrove.store.versions import FORMAT

GOLDEN = Path(__file__).parent / "golden"

X = np.array([[0.0, 0.5], [1.0, 0.0], [0.5, 3.0], [1.5, 4.0], [4.0, 1.0], [5.0, 0.5]])
LETTERS = np.array(["a", "a", "b", "b", "c", "c"])
TRUTHS = np.array([False, False, False, False, True, True])
TABLE: dict[str, list[Any]] = {
    "island": ["Biscoe", "Dream", None, "Dream", "Torgersen", "Biscoe"],
    "mass": [3.5, 4.0, None, 5.25, 4.5, 3.0],
    "is_old": [True, False, True, True, False, False],
}


def table() -> Table:
    """The rows of `TABLE`."""
    import pyarrow

    return as_table(pyarrow.table(TABLE))


def models() -> dict[str, tuple[Any, Any]]:
    """Name → a fitted model and what it predicts on."""
    single = X.astype(np.float32)
    sparse = sp.csr_matrix(X)
    balanced = Perceptron(variant="averaged", class_weight={"a": 1.0, "b": 2.0, "c": 1.5}, random_state=0)
    pipeline = make_pipeline(TableEncoder(), Perceptron(variant="voted", max_iter=20, random_state=0))
    return {
        "basic": (BasicLinearClassifier().fit(X, TRUTHS), X),
        "least-squares": (LeastSquaresClassifier().fit(X, LETTERS), X),
        "perceptron": (Perceptron(max_iter=50, random_state=0).fit(X, LETTERS), X),
        "averaged": (balanced.fit(X, LETTERS), X),
        "kernel-float32": (KernelPerceptron(gamma=0.5, random_state=0).fit(single, LETTERS), X),
        "kernel-sparse": (KernelPerceptron(kernel="poly", degree=2, random_state=0).fit(sparse, TRUTHS), X),
        "kernel-precomputed": (KernelPerceptron(kernel="precomputed", random_state=0).fit(X @ X.T, LETTERS), X @ X.T),
        "pipeline": (pipeline.fit(table(), LETTERS), table()),
    }


def main() -> None:
    """Write each model, and beside it what it predicts."""
    GOLDEN.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = models()
    for name, (model, points) in fitted.items():
        save(model, GOLDEN / f"format{FORMAT}-{name}.margrove")
        told = {
            "points": TABLE if isinstance(points, Table) else points.tolist(),
            "predictions": model.predict(points).tolist(),
            "decisions": model.decision_function(points).tolist(),
            "holds": (model[-1] if hasattr(model, "steps") else model).certificate_.holds,
        }
        text = json.dumps(told, indent=1) + "\n"
        (GOLDEN / f"format{FORMAT}-{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
