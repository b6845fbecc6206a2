"""Forests against scikit-learn's and scikit-learn-intelex's: growth, extra trees, prediction, bytes, memory.

    python benchmarks/forest.py              all of it (about ten minutes on a quiet machine)
    python benchmarks/forest.py letter       some sets

The sides take turns in one process, each side's best run counts; memory is measured in processes of their own.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from measure import keep, machine, shown
from tree import numbers

BAR = (
    "100 trees, one thread, geometric mean over 8 sets: 8 × scikit-learn at max_features='sqrt', 25 × at 1.0 (20"
    " trees), 2 × scikit-learn-intelex, extra-trees 5 ×, prediction 5 ×; a model file of at most a fifth of"
    " scikit-learn's bytes; at most half of its memory"
)
SETS = ("letter", "magic04", "ijcnn1", "spambase", "usps", "shuttle", "ct_eeg", "covtype_sample")
KINDS = {  # name: (class, trees, settings)
    "sqrt": ("RandomForestClassifier", 100, {"max_features": "sqrt"}),
    "all columns": ("RandomForestClassifier", 20, {"max_features": None}),
    "extra trees": ("ExtraTreesClassifier", 100, {}),
    "regression": ("RandomForestRegressor", 20, {}),
    "regression, extra trees": ("ExtraTreesRegressor", 20, {}),
}
INTELEX = importlib.util.find_spec("sklearnex") is not None


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    made = work()
    return time.perf_counter() - started, made


def compared(name: str, kind: str, runs: int) -> dict[str, Any]:
    """Times of growth and prediction, accuracies or R² on a third of the rows, and bytes.

    Regression predicts the last column from the others.
    """
    import sklearn.ensemble

    import margrove

    class_name, n_trees, settings = KINDS[kind]
    X, y = numbers(name)
    if kind.startswith("regression"):
        X, y = X[:, :-1], X[:, -1].astype(np.float64)
    is_test = np.random.default_rng(0).random(len(y)) < 1 / 3
    train, test = np.ascontiguousarray(X[~is_test]), np.ascontiguousarray(X[is_test])
    makers: dict[str, Callable[[], Any]] = {
        "margrove": lambda: getattr(margrove, class_name)(n_trees, n_jobs=1, **settings),
        "margrove, two threads": lambda: getattr(margrove, class_name)(n_trees, n_jobs=2, **settings),
        "sklearn": lambda: getattr(sklearn.ensemble, class_name)(n_trees, n_jobs=1, random_state=0, **settings),
    }
    if INTELEX and kind == "sqrt":
        import sklearnex.ensemble

        makers["intelex"] = lambda: sklearnex.ensemble.RandomForestClassifier(
            n_trees, n_jobs=1, random_state=0, **settings
        )
    case: dict[str, Any] = {"data": name, "kind": kind, "n": len(train), "d": X.shape[1], "trees": n_trees}
    fit, predict, model = dict.fromkeys(makers, math.inf), dict.fromkeys(makers, math.inf), {}
    for _ in range(runs):
        for side, make in makers.items():
            taken, model[side] = seconds(lambda make=make: make().fit(train, y[~is_test]))
            fit[side] = min(fit[side], taken)
    for _ in range(max(2, runs)):
        for side in makers:
            taken, predicted = seconds(lambda side=side: model[side].predict(test))
            predict[side] = min(predict[side], taken)
            score = r2_score if kind.startswith("regression") else accuracy_score
            case[f"{side} accuracy"] = float(score(y[is_test], predicted))
    for side in makers:
        case[f"{side} fit"], case[f"{side} predict"] = fit[side], predict[side]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.margrove")
        margrove.save(model["margrove"], path)
        case["bytes"], case["sklearn bytes"] = os.path.getsize(path), len(pickle.dumps(model["sklearn"]))
        case["load"] = min(seconds(lambda: margrove.load(path))[0] for _ in range(3))
    return case


_MEMORY = """
import sys
sys.path.insert(0, {folder!r})
from pathlib import Path
from tree import numbers, resident
X, y = numbers("covtype_sample")
from {module} import RandomForestClassifier
RandomForestClassifier(2, n_jobs=1).fit(X[:500], y[:500])
Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the largest size so far is forgotten
before = resident("VmRSS")
model = RandomForestClassifier(100, n_jobs=1).fit(X, y)
print(resident("VmHWM") - before)
"""


def memory(module: str) -> int:
    """Bytes that growing 100 trees of covtype_sample takes beyond the table."""
    code = _MEMORY.format(folder=os.path.dirname(os.path.abspath(__file__)), module=module)
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def main() -> None:
    chosen = [name for name in SETS if name in sys.argv[1:]] or SETS
    record: dict[str, Any] = {"benchmark": "forest", "bar": BAR, "machine": machine(), "cases": []}
    warnings.simplefilter("ignore")
    for name in chosen:
        for kind in KINDS:
            case = compared(name, kind, runs=1 if name == "covtype_sample" else 2)
            record["cases"].append(case)
            print(shown(case), flush=True)
            keep(record)
    record["memory"] = {module: memory(module) for module in ("margrove", "sklearn.ensemble")}
    for kind in KINDS:
        cases = [case for case in record["cases"] if case["kind"] == kind]
        for part in ("fit", "predict"):
            ratios = [case[f"sklearn {part}"] / case[f"margrove {part}"] for case in cases]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{kind}, {part}: {mean:.1f} ×, slowest {min(ratios):.1f} ×")
    keep(record)
    print(json.dumps(record["memory"]))


if __name__ == "__main__":
    main()
