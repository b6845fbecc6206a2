"""AdaBoost against scikit-learn's: exact stumps, trees of depth 3, exact and from bins; whole fits.

    python benchmarks/boost.py                   all of it (about five minutes on a quiet machine)
    python benchmarks/boost.py --only magic04    one data set; the others stay as they were

Ours takes turns with itself on one thread and on two, each side's best run counts. Of the exact learners the weighted
errors of all rounds are compared with scikit-learn's: they must be the same.
"""

from __future__ import annotations

import argparse
import json
import warnings
from functools import partial
from typing import Any

import numpy as np

from measure import RESULTS, interleaved, keep, machine
from svm import load
from tree import numbers, show

BAR = (
    "exact stumps, whole fit, the same errors in every round: 50 × scikit-learn's AdaBoostClassifier on 100,000 × 50 "
    "(10 rounds) and magic04 (50), 10 × on a9a (50) and covtype_sample (20). Trees of depth 3: exact 15 ×, from bins "
    "40 × on each but a9a (20 ×)."
)
ROUNDS = {"synthetic": 10, "magic04": 50, "a9a": 50, "covtype_sample": 20, "covtype_sample, 7 classes": 20}
STUMP_BARS = {"synthetic": 50.0, "magic04": 50.0, "a9a": 10.0, "covtype_sample": 10.0}


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows as float32 and classes; of covtype, unless all seven are asked for, the commonest against the rest."""
    if name == "a9a":
        X, y = load("a9a")
        return np.ascontiguousarray(X, dtype=np.float32), (y > 0).astype(int)
    base, _, classes = name.partition(",")
    X, y = numbers(base)
    if base == "covtype_sample" and not classes:
        y = (y == np.argmax(np.bincount(y))).astype(int)
    return X, y


def learners(name: str) -> list[dict[str, Any]]:
    """What is boosted: depth, thresholds and the bar."""
    is_counted = name in STUMP_BARS
    return [
        {"depth": 1, "thresholds": "exact", "bar": STUMP_BARS.get(name)},
        {"depth": 3, "thresholds": "exact", "bar": 15.0 if is_counted else None},
        {"depth": 3, "thresholds": "histogram", "bar": (20.0 if name == "a9a" else 40.0) if is_counted else None},
    ]


def cases_of(name: str) -> list[dict[str, Any]]:
    from sklearn.ensemble import AdaBoostClassifier as Peer
    from sklearn.tree import DecisionTreeClassifier as PeerTree

    from margrove import AdaBoostClassifier, DecisionTreeClassifier

    X, y = data(name)
    rounds = ROUNDS[name]
    peers: dict[int, tuple[float, Any]] = {}
    cases = []
    for how in learners(name):
        depth = how["depth"]
        tree = DecisionTreeClassifier(max_depth=depth, thresholds=how["thresholds"])
        one, two = (AdaBoostClassifier(tree, n_estimators=rounds, n_jobs=threads) for threads in (1, 2))
        ours = interleaved({"one": partial(one.fit, X, y), "two": partial(two.fit, X, y)}, runs=5)
        if depth not in peers:
            peer = Peer(PeerTree(max_depth=depth, random_state=0), n_estimators=rounds, random_state=0)
            runs = 1 if name == "synthetic" else 2
            peers[depth] = interleaved({"peer": partial(peer.fit, X, y)}, runs=runs)["peer"], peer
        seconds, peer = peers[depth]
        case = {
            "data": name,
            "rows": X.shape[0],
            "columns": X.shape[1],
            "classes": int(y.max()) + 1,
            "rounds": rounds,
            **how,
            "one_thread": ours["one"],
            "two_threads": ours["two"],
            "sklearn": seconds,
            "ratio": seconds / ours["one"],
            "ratio_two": seconds / ours["two"],
            "training_error": float(one.rounds_.training_error[-1]),
            "sklearn_training_error": float(1 - peer.score(X, y)),
        }
        if how["thresholds"] == "exact":
            same = min(one.n_estimators_, len(peer.estimator_errors_))
            differs = np.abs(one.estimator_errors_[:same] - peer.estimator_errors_[:same])
            case["largest_difference_of_errors"] = float(differs.max())
            case["rounds_that_differ"] = int(np.count_nonzero(differs > 1e-9))
        cases.append(case)
        show(case)
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*ROUNDS], help="one data set; the others stay as they were")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "boost.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"cases": []}
    record |= {"benchmark": "boost", "bar": BAR, "machine": machine()}
    for name in [given.only] if given.only else [*ROUNDS]:
        others = [case for case in record["cases"] if case["data"] != name]
        record["cases"] = sorted(others + cases_of(name), key=lambda case: [*ROUNDS].index(case["data"]))
        keep(record)


if __name__ == "__main__":
    main()
