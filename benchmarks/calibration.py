"""How far probabilities can be believed: ours, with and without the law, against scikit-learn's calibration.

    python benchmarks/calibration.py                   both parts
    python benchmarks/calibration.py svc               SVC(probability=True): 13 sets, ten splits each (half an hour)
    python benchmarks/calibration.py calibrated        CalibratedClassifier around four learners: 10 sets, five splits
    python benchmarks/calibration.py svc --only pima   one set, on the screen; nothing is written

Every side learns from the same rows, at most 3,000, with scaled columns, and tells the probabilities of the same
held-out rows. For SVC, C = 1 and γ = 1/d. No times are measured.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from margrove import (
    SVC,
    AdaBoostClassifier,
    CalibratedClassifier,
    DecisionTreeClassifier,
    LinearSVC,
    Perceptron,
    TableEncoder,
    read_table,
)
from margrove.errors import ConvergenceWarning
from measure import keep, machine
from svm import DATA

BAR = "no set on which Brier score or log loss is worse than scikit-learn's by more than noise"
TWO_CLASSES = ("spambase", "magic04", "phoneme", "banana", "pima", "ijcnn1", "german_credit", "bank_marketing")
MANY_CLASSES = ("letter", "segment", "dna", "covtype_sample", "digits")
MOST_ROWS = 3_000  # to learn from, and at most as many to judge by
SHARE = 2 / 3  # to learn from, of a small set
SEEDS = range(10)
BINS = 10  # of equal width
SIDES = ("margrove", "without_law", "sklearn", "sklearn_ensemble")
MEASURES = ("brier", "log_loss", "ece", "accuracy")
CALIBRATED_BAR = "expected calibration error at most that of CalibratedClassifierCV (sigmoid) around the learner + 0.01"
CALIBRATED_SETS = (
    *("spambase", "magic04", "phoneme", "pima", "ijcnn1", "german_credit", "bank_marketing"),
    *("segment", "dna", "letter"),
)
CALIBRATED_SEEDS = range(5)
CALIBRATED_SIDES = (*SIDES, "isotonic")
LEARNERS: dict[str, Callable[[], Any]] = {
    "AdaBoost of stumps": lambda: AdaBoostClassifier(n_estimators=100, random_state=0),
    "AdaBoost of trees of depth 3": lambda: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=3), n_estimators=100, random_state=0
    ),
    "LinearSVC": LinearSVC,
    "Perceptron, averaged": lambda: Perceptron(variant="averaged", max_iter=50, random_state=0),
}


def split(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn from and rows held out; columns scaled by the first alone. y is 0 … K − 1."""
    path = DATA / f"{name}.npz"
    if path.exists():
        file = np.load(path)
        table, labels = file["X_train"].reshape(len(file["y_train"]), -1).astype(np.float64), file["y_train"]
    else:
        table = read_table(DATA / f"{name}.csv.gz")
        labels = table.labels()
    y = np.unique(labels, return_inverse=True)[1]
    n = min(MOST_ROWS, int(SHARE * len(y)))
    train, test = train_test_split(
        np.arange(len(y)), train_size=n, test_size=min(MOST_ROWS, len(y) - n), stratify=y, random_state=seed
    )
    if not path.exists():
        encoder = TableEncoder().fit(table.take(train))
        return encoder.transform(table.take(train)), encoder.transform(table.take(test)), y[train], y[test]
    centre, spread = table[train].mean(axis=0), table[train].std(axis=0)
    X = (table - centre) / np.where(spread > 0, spread, 1)
    return X[train], X[test], y[train], y[test]


def one_split(name: str, seed: int) -> dict[str, Any]:
    """What each side says of the rows held out, and how often probabilities and predictions are at odds."""
    X, rows, y, truth = split(name, seed)
    settings = {"C": 1.0, "gamma": 1 / X.shape[1]}
    ours = SVC(probability=True, **settings).fit(X, y)
    lawful = ours.predict_proba(rows)
    with patch("margrove.svm.classifier.with_law", lambda p, predicted: p):
        lawless = ours.predict_proba(rows)
    peers = {
        ensemble: CalibratedClassifierCV(svm.SVC(**settings), method="sigmoid", cv=5, ensemble=ensemble).fit(X, y)
        for ensemble in (False, True)
    }
    told = dict(zip(SIDES, (lawful, lawless, *(peer.predict_proba(rows) for peer in peers.values())), strict=True))
    # The machine on all rows, in which ensemble=False trusts: its own word against that of its probabilities.
    by_machine = peers[False].calibrated_classifiers_[0].estimator.predict(rows)
    return compared(told, y, truth, ours.predict(rows), by_machine)


def calibrated_split(name: str, seed: int, learner: Callable[[], Any]) -> dict[str, Any]:
    """The same of ``CalibratedClassifier``, and of ``CalibratedClassifierCV``, around one learner."""
    X, rows, y, truth = split(name, seed)
    ours = CalibratedClassifier(learner()).fit(X, y)
    told = {"margrove": ours.predict_proba(rows)}
    with patch("margrove.calibrate.classifier.with_law", lambda p, predicted: p):
        told["without_law"] = ours.predict_proba(rows)
    for side, method, ensemble in (
        ("sklearn", "sigmoid", False),
        ("sklearn_ensemble", "sigmoid", True),
        ("isotonic", "isotonic", True),
    ):
        peer = CalibratedClassifierCV(learner(), method=method, cv=5, ensemble=ensemble).fit(X, y)
        told[side] = peer.predict_proba(rows)
    found = compared(told, y, truth, ours.predict(rows), ours.predict(rows))
    if hasattr(ours.estimator_, "predict_proba"):
        found["own_ece"] = judged(ours.estimator_.predict_proba(rows), truth)["ece"]
    return found


def compared(
    told: dict[str, np.ndarray], y: np.ndarray, truth: np.ndarray, ours: np.ndarray, theirs: np.ndarray
) -> dict[str, Any]:
    """What the probabilities of each side are worth, and how often they are at odds with the predictions."""
    found: dict[str, Any] = {side: judged(p, truth) for side, p in told.items()}
    for side, p in told.items():
        predicted = ours if side in ("margrove", "without_law") else theirs
        found[side]["at_odds"] = float(np.mean(p.argmax(axis=1) != predicted))
    found["n_train"], found["n_test"] = len(y), len(truth)
    found["smallest_class"] = float(np.bincount(y).min() / len(y))
    found["moved"] = float(np.mean((told["margrove"] != told["without_law"]).any(axis=1)))
    return found


def judged(p: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Brier score (of two classes halved, as in scikit-learn), log loss, expected calibration error, accuracy, bins."""
    n, k = p.shape
    is_true = np.arange(k) == truth[:, None]
    bins = reliability(p, truth)
    return {
        "brier": float(((p - is_true) ** 2).sum() / n / (2 if k == 2 else 1)),
        "log_loss": float(log_loss(truth, p, labels=np.arange(k))),
        "ece": float(np.abs(bins["said"] - bins["true"]).sum() / n),
        "accuracy": float(np.mean(p.argmax(axis=1) == truth)),
        "bins": {key: values.tolist() for key, values in bins.items()},
    }


def reliability(p: np.ndarray, truth: np.ndarray) -> dict[str, np.ndarray]:
    """Of each bin of what is said: how many rows, the sum of what is said of them, how often it is true.

    Of two classes it is the probability of the second; of more, that of the most probable one.
    """
    if p.shape[1] == 2:
        said, is_so = p[:, 1], truth == 1
    else:
        said, is_so = p.max(axis=1), p.argmax(axis=1) == truth
    bins = np.minimum((said * BINS).astype(int), BINS - 1)
    return {
        "rows": np.bincount(bins, minlength=BINS).astype(float),
        "said": np.bincount(bins, weights=said, minlength=BINS),
        "true": np.bincount(bins, weights=is_so, minlength=BINS),
    }


def case(name: str, splits: list[dict[str, Any]], sides: Iterable[str] = SIDES) -> dict[str, Any]:
    """A set: means over the splits; bins added up; our excess over each other side with its standard error."""
    found: dict[str, Any] = {"data": name, "classes": "many" if name in MANY_CLASSES else 2}
    for key in ("n_train", "n_test", "smallest_class", "moved", "own_ece"):
        if key in splits[0]:
            found[key] = float(np.mean([each[key] for each in splits]))
    for side in sides:
        of_side = [each[side] for each in splits]
        found[side] = {key: float(np.mean([each[key] for each in of_side])) for key in (*MEASURES, "at_odds")}
        bins = {key: np.sum([each["bins"][key] for each in of_side], axis=0) for key in ("rows", "said", "true")}
        found[side]["bins"] = {key: values.round(4).tolist() for key, values in bins.items()}
    for side in sides:
        if side == "margrove":
            continue
        found[f"excess_over_{side}"] = {}
        for key in MEASURES:
            excess = np.array([each["margrove"][key] - each[side][key] for each in splits])
            error = excess.std(ddof=1) / np.sqrt(len(excess))
            found[f"excess_over_{side}"][key] = {"mean": float(excess.mean()), "standard_error": float(error)}
    return found


def svc_cases(names: Iterable[str]) -> Iterable[dict[str, Any]]:
    """The cases of ``SVC(probability=True)``."""
    for name in names:
        yield case(name, [one_split(name, seed) for seed in SEEDS])


def calibrated_cases(names: Iterable[str]) -> Iterable[dict[str, Any]]:
    """The cases of ``CalibratedClassifier``: each learner on each set."""
    for name in names:
        for learner, make in LEARNERS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                splits = [calibrated_split(name, seed, make) for seed in CALIBRATED_SEEDS]
            yield {"learner": learner, **case(name, splits, CALIBRATED_SIDES)}


PARTS = {
    "svc": ("calibration", BAR, svc_cases, (*TWO_CLASSES, *MANY_CLASSES)),
    "calibrated": ("calibrated_classifier", CALIBRATED_BAR, calibrated_cases, CALIBRATED_SETS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=PARTS)
    parser.add_argument("--only", choices=[*TWO_CLASSES, *MANY_CLASSES])
    arguments = parser.parse_args()
    for part in PARTS if arguments.part is None else [arguments.part]:
        benchmark, bar, cases, names = PARTS[part]
        record: dict[str, Any] = {"benchmark": benchmark, "bar": bar, "machine": machine(), "cases": []}
        for found in cases([arguments.only] if arguments.only else names):
            record["cases"].append(found)
            name = f"{found['data']:16s} {found.get('learner', ''):28s}"
            for side in CALIBRATED_SIDES:
                if side in found:
                    numbers = "  ".join(f"{key} {found[side][key]:.4f}" for key in (*MEASURES, "at_odds"))
                    print(f"{name} {side:18s} {numbers}", flush=True)
            print(f"{name} the law moved {found['moved']:.2%}", flush=True)
            if not arguments.only:
                keep(record)


if __name__ == "__main__":
    main()
