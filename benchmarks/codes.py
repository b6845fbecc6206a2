"""Bit strings of kernel SVMs on letter against scikit-learn's OutputCodeClassifier of the same code length.

    python benchmarks/codes.py                  5, 15 and 31 bits, one-vs-rest, one-vs-one; each fit in a fresh process
    python benchmarks/codes.py --only "5 bits"  one scheme alone
    python benchmarks/codes.py --rows 2000      fewer rows, for a quick look; nothing is written

Each process is warmed by a tiny fit, reads the data, fits once and says how long that took, and how many kernel rows
were computed (of one-vs-one over the rows of each pair alone). Sides take turns, each side's best run counts; a peer
that needs more than 900 s is stopped and counted as 900 s. scikit-learn draws its code; Margrove's has the same number
of columns. Accuracies are on letter's own test rows.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from measure import keep, machine

DATA = Path(os.environ.get("MARGROVE_DATA", Path(__file__).parents[2] / "shared" / "data"))
LIMIT = 900.0  # seconds
LONG = 60.0  # seconds: a side that takes longer is not run again; noise matters less there
CACHE = 2000  # MB
C, GAMMA = 16.0, 4.0  # as benchmarks/svm.py has them for letter
BAR = (
    "letter: 5 bits, 15 random bits and 31 bits at least 10 × scikit-learn's OutputCodeClassifier(SVC()) of the same"
    " number of columns; each kernel row is computed once for all columns"
)
SIDES = ("margrove", "sklearn")
NAMES = {"margrove": "Margrove", "sklearn": "scikit-learn"}
RUNS = {"margrove": 3, "sklearn": 1}
# scheme → how Margrove makes it, and how many columns scikit-learn's OutputCodeClassifier gets; None: its own class
SCHEMES: dict[str, tuple[dict[str, Any], int | None]] = {
    "5 bits": ({"code": "binary"}, 5),
    "15 bits, random": ({"code": "random", "n_bits": 15, "random_state": 0}, 15),
    "15 bits, max-min": ({"code": "max_min", "n_bits": 15, "random_state": 0}, 15),
    "31 bits, hadamard": ({"code": "hadamard"}, 31),
    "one-vs-rest": ({}, None),
    "one-vs-one": ({}, None),
}


def load(rows: int | None) -> tuple[np.ndarray, ...]:
    """Training and test rows, scaled to −1 … 1 by the training rows."""
    table = np.load(DATA / "letter.npz")
    X, X_test = (table[name].astype(np.float64) for name in ("X_train", "X_test"))
    low, extent = X.min(axis=0), np.ptp(X, axis=0)
    X, X_test = (2 * (part - low) / extent - 1 for part in (X, X_test))
    return X[:rows], table["y_train"][:rows], X_test, table["y_test"]


# ---- one fit, in a process of its own


def one_fit(side: str, scheme: str, rows: int | None) -> dict[str, Any]:
    """Seconds of one fit, kernel rows, and the accuracy on the test rows."""
    make = _maker(side, scheme)
    random = np.random.default_rng(0)
    make(6).fit(random.normal(size=(300, 5)), np.arange(300) % 6)
    X, y, X_test, y_test = load(rows)
    model = make(len(np.unique(y)))
    signal.setitimer(signal.ITIMER_REAL, LIMIT)  # ends the process, whatever it is doing
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    signal.setitimer(signal.ITIMER_REAL, 0)
    started = time.perf_counter()
    accuracy = float(np.mean(model.predict(X_test) == y_test))
    record = {
        "seconds": seconds,
        "predict_seconds": time.perf_counter() - started,
        "accuracy": accuracy,
        "rows": len(y),
    }
    if side == "margrove":
        record |= {
            "machines": int(model.code_.shape[1]),
            "min_distance": model.min_distance_,
            "errors_corrected": model.errors_corrected_,
            "kernel_rows": int(model.n_kernel_rows_.sum()),
            "status": str(model.status_),
            "sharing": model.sharing_,
        }
    else:
        record["machines"] = len(model.estimators_)
    return record


def _maker(side: str, scheme: str) -> Callable[[int], Any]:
    """An unfitted model for so many classes."""
    settings, columns = SCHEMES[scheme]
    if side == "margrove":
        import margrove

        name = {"one-vs-rest": "OneVsRestClassifier", "one-vs-one": "OneVsOneClassifier"}.get(
            scheme, "BitStringClassifier"
        )
        base = margrove.SVC(C=C, gamma=GAMMA, cache_size=CACHE)

        def make(n_classes: int) -> Any:
            fitting = {key: value for key, value in settings.items() if key != "n_bits" or n_classes > 6}
            return getattr(margrove, name)(base, **fitting)

        return make
    from sklearn import multiclass
    from sklearn.svm import SVC

    peer = SVC(C=C, gamma=GAMMA, cache_size=CACHE)
    if columns is None:
        kind = multiclass.OneVsRestClassifier if scheme == "one-vs-rest" else multiclass.OneVsOneClassifier
        return lambda n_classes: kind(peer)
    # int(n_classes · code_size) columns: half a column more, so that rounding takes none away.
    return lambda n_classes: multiclass.OutputCodeClassifier(
        peer, code_size=(columns + 0.5) / n_classes, random_state=0
    )


# ---- all fits


def in_a_process(side: str, scheme: str, rows: int | None) -> dict[str, Any]:
    """`one_fit` in a fresh process; a fit that is not done in time counts as `LIMIT`."""
    call = [sys.executable, __file__, "--fit", json.dumps([side, scheme, rows])]
    process = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False)
    if process.returncode == -signal.SIGALRM:
        return {"seconds": LIMIT, "stopped": True}
    if process.returncode:
        raise SystemExit(f"{side} on {scheme} failed")
    return dict(json.loads(process.stdout.splitlines()[-1]))


def measure(scheme: str, sides: tuple[str, ...], rows: int | None) -> dict[str, Any]:
    """The best seconds of each side, in turns."""
    best: dict[str, dict[str, Any]] = {}
    for turn in range(max(RUNS.values())):
        for side in sides:
            if turn >= RUNS[side] or best.get(side, {"seconds": 0.0})["seconds"] > LONG:
                continue
            found = in_a_process(side, scheme, rows)
            if side in best:
                found = {**best[side], "seconds": min(best[side]["seconds"], found["seconds"])}
            best[side] = found
            told = f"{found.get('kernel_rows', ''):>8}  {found.get('accuracy', float('nan')):.4f}"
            print(f"  {NAMES[side]:14s} {found['seconds']:8.2f} s  {told}", flush=True)
    case: dict[str, Any] = {"scheme": scheme, "C": C, "gamma": GAMMA, **best}
    if len(best) == 2:
        case["ratio_sklearn"] = best["sklearn"]["seconds"] / best["margrove"]["seconds"]
    return case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(SCHEMES))
    parser.add_argument("--skip", action="append", default=[], choices=SIDES)
    parser.add_argument("--rows", type=int, help="of the training rows; nothing is written then")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(one_fit(*json.loads(arguments.fit))))
        return
    sides = tuple(side for side in SIDES if side not in arguments.skip)
    is_whole = arguments.rows is None and arguments.only is None and len(sides) == len(SIDES)
    record: dict[str, Any] = {"benchmark": "codes", "bar": BAR, "machine": machine(), "cases": []}
    for scheme in SCHEMES:
        if arguments.only in (None, scheme):
            print(scheme, flush=True)
            record["cases"].append(measure(scheme, sides, arguments.rows))
            if is_whole:
                keep(record)
    if not is_whole:
        print(json.dumps(record["cases"], indent=2))


if __name__ == "__main__":
    main()
