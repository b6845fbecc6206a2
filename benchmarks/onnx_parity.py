"""Do ONNX files say what we say? Twelve real sets, four models or more on each, on rows held out.

    python benchmarks/onnx_parity.py                  all sets (some minutes)
    python benchmarks/onnx_parity.py --only titanic   one set, on the screen; nothing is written

Each model learns from at most 3,000 rows, text and missing cells as they are, and is written by `margrove.write_onnx`.
onnxruntime then predicts rows that were held out, at most 3,000. Differences are of the scores (or of probabilities,
where there are no scores), relative to the value itself, or to a thousandth of the largest where it is smaller.
"""

from __future__ import annotations

import argparse
import io
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from margrove import (
    SVC,
    AdaBoostClassifier,
    DecisionTreeClassifier,
    LinearSVC,
    OneVsOneClassifier,
    Table,
    TableEncoder,
    read_table,
    write_onnx,
)
from margrove.errors import MargroveWarning
from margrove.store import onnx_inputs
from measure import interleaved, keep, machine, shown
from svm import DATA

BAR = "scores within 1e-5 relative and no label other, but for ties, on ten real sets"
TABLES = ("adult", "bank_marketing", "titanic", "mushroom", "credit_approval", "hypothyroid", "car")
ARRAYS = ("letter", "segment", "digits", "spambase", "magic04")
LEFT_OUT = ("split", "boat", "body")  # the official parts of a set, and what tells the fate of a passenger
MOST_ROWS = 3_000  # to learn from, and at most as many to predict
LEAST = 1e-3  # of the largest score: smaller ones are compared with this
RUNS = 9


def rows_of(name: str) -> tuple[Any, np.ndarray]:
    """The rows of a set, as a table or as an array, and their labels."""
    if name in ARRAYS:
        file = np.load(DATA / f"{name}.npz")
        return file["X_train"].reshape(len(file["y_train"]), -1).astype(np.float64), file["y_train"]
    table = read_table(DATA / f"{name}.csv.gz")
    return table.select([column for column in table.names if column not in LEFT_OUT]), table.labels()


def taken(X: Any, rows: np.ndarray) -> Any:
    return X.take(rows) if isinstance(X, Table) else X[rows]


def models(n_classes: int, *, has_categories: bool) -> Iterator[tuple[str, Any]]:
    """What is held against its ONNX file."""
    yield "tree", DecisionTreeClassifier(min_samples_leaf=3)
    if has_categories:
        yield "tree, multi-way", DecisionTreeClassifier(categorical="multiway", min_samples_leaf=3)
    yield "AdaBoost, 50 trees of depth 3", AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=50)
    yield "linear SVM", make_pipeline(TableEncoder(), LinearSVC())
    yield "RBF SVM with probabilities", make_pipeline(TableEncoder(), SVC(C=10.0, probability=True))
    if n_classes > 2:
        yield "pairs of linear SVMs", make_pipeline(TableEncoder(), OneVsOneClassifier(LinearSVC()))


def one_set(name: str) -> Iterator[dict[str, Any]]:
    """A case for each model."""
    X, y = rows_of(name)
    classes, counts = np.unique(y, return_counts=True)
    n = min(MOST_ROWS, int(0.7 * len(y)))
    is_frequent = np.isin(y, classes[counts >= 5])
    rows = np.flatnonzero(is_frequent)
    train, test = train_test_split(
        rows, train_size=n, test_size=min(MOST_ROWS, len(rows) - n), stratify=y[rows], random_state=0
    )
    for title, model in models(len(np.unique(y[train])), has_categories=name in TABLES):
        yield {"data": name, "model": title, **parity(model.fit(taken(X, train), y[train]), taken(X, test))}


def parity(model: Any, X: Any) -> dict[str, Any]:
    """How far onnxruntime is from us on these rows, and how long both take."""
    file = io.BytesIO()
    written = write_onnx(model, file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    file.seek(0)
    given = onnx_inputs(file, X)
    found = dict(zip(written.outputs, session.run(None, given), strict=True))
    label = model.predict(X)
    record: dict[str, Any] = {
        "rows": len(label),
        "labels_that_differ": int((found["label"] != label).sum()),
        "file_bytes": len(file.getvalue()),
    }
    if "scores" in found:
        record["scores"] = difference(found["scores"], model.decision_function(X))
    if "probabilities" in found:
        record["probabilities"] = difference(found["probabilities"], model.predict_proba(X))
    # Both are asked for the label alone, of rows in the form that they take.
    best = interleaved({"onnx": lambda: session.run(["label"], given), "ours": lambda: model.predict(X)}, RUNS)
    return record | {"onnx_s": best["onnx"], "ours_s": best["ours"]}


def difference(found: np.ndarray, ours: np.ndarray) -> float:
    """The largest one, relative."""
    least = LEAST * np.abs(ours).max(axis=0)
    return float((np.abs(found - ours) / np.maximum(np.abs(ours), least)).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="SET", choices=(*TABLES, *ARRAYS), help="one set; nothing is written")
    only = parser.parse_args().only
    warnings.simplefilter("ignore", MargroveWarning)  # columns that name the rows, categories unseen: they are wanted
    cases = []
    for name in (*TABLES, *ARRAYS) if only is None else (only,):
        for case in one_set(name):
            print(shown(case), flush=True)
            cases.append(case)
        if only is None:
            keep(
                {
                    "benchmark": "onnx_parity",
                    "bar": BAR,
                    "machine": machine("onnx", "onnxruntime"),
                    "cases": cases,
                }
            )


if __name__ == "__main__":
    main()
