"""Trees against scikit-learn's and LightGBM's: exact growth, boosting, bins, categories, prediction, memory.

    python benchmarks/tree.py                   all of it (about a quarter of an hour on a quiet machine)
    python benchmarks/tree.py --only exact      or another part: see --help

The sides take turns in one process, each side's best run counts; memory is measured in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from measure import RESULTS, interleaved, keep, machine
from svm import DATA

BAR = (
    "exact, one thread, to full depth and to depth 8: no set below 4 × scikit-learn, geometric mean 15 ×; two threads"
    " 1.6 × one where that takes above 50 ms; regression the same. Boosting to depth 3, ten rounds: no set below 6 ×,"
    " geometric mean 20 ×. Bins, 255 leaves: whole fit 4 × LightGBM's single"
    " tree, the tree alone not slower, accuracy within 0.005. Categories: fit 5 × scikit-learn's one-hot pipeline,"
    " 10-fold accuracy no more than 0.01 below. A million rows predicted 3 × as fast. Memory: 3 × the float32 data,"
    " 1.5 × for bins."
)
# Sets of different nature, each with the reason why it is here.
EXACT = {
    "synthetic": "continuous, two classes",
    "magic04": "continuous, two classes",
    "ijcnn1": "continuous, two classes",
    "phoneme": "continuous, two classes",
    "ct_eeg": "continuous, heavy ties",
    "ct_htru": "continuous, two classes",
    "breast_cancer": "few rows",
    "skin": "whole numbers, three columns",
    "spambase": "mostly zeros",
    "shuttle": "few leaves, 7 classes",
    "covtype_sample": "whole numbers and one-hot, 7 classes",
    "ct_avila": "continuous, 12 classes",
    "segment": "few rows, 7 classes",
    "letter": "few values, 26 classes",
    "pendigits": "few values, 10 classes",
    "digits": "few values, 10 classes, few rows",
    "usps": "wide, continuous, 10 classes",
    "mnist": "wide, few values, 10 classes",
    "madelon": "wide, whole numbers",
    "dna": "one-hot, 3 classes",
    "adult, one-hot": "one-hot and numbers",
    "bank_marketing, one-hot": "one-hot and numbers",
    "connect4, one-hot": "one-hot",
    "nursery, one-hot": "one-hot, 5 classes",
    "a9a": "sparse, one-hot",
    "w8a": "sparse, one-hot, rare class",
    "reuters_moneyfx": "sparse, text",
}
# The last column of these is predicted from the others, as a number.
NUMBERS = ("magic04", "ijcnn1", "phoneme", "covtype_sample", "letter", "usps", "spambase", "ct_avila")
ROUNDS = 10  # of boosting
TABLES = {"adult": "income", "nursery": "class", "mushroom": "class", "connect4": "class"}


def numbers(name: str) -> tuple[Any, np.ndarray]:
    """Rows of floats, dense or as CSC, and the number of each row's class."""
    if name == "synthetic":
        from sklearn.datasets import make_classification

        X, y = make_classification(100_000, 50, n_informative=20, random_state=0)
        return X.astype(np.float32), y
    if name.endswith(", one-hot"):
        import pandas

        frame = pandas.read_csv(DATA / f"{name.split(',')[0]}.csv.gz", keep_default_na=False, na_values=[""])
        if "split" in frame:
            frame = frame[frame["split"] == "train"].drop(columns="split")
        X = pandas.get_dummies(frame.iloc[:, :-1]).fillna(-1).to_numpy(np.float32)
        return np.ascontiguousarray(X), pandas.factorize(frame.iloc[:, -1], sort=True)[0]
    table = np.load(DATA / f"{name}.npz")
    y = np.unique(table["y_train"] if "y_train" in table else table["y"], return_inverse=True)[1]
    if "X_train_data" in table:
        parts = (table[f"X_train_{part}"] for part in ("data", "indices", "indptr"))
        return sp.csr_matrix(tuple(parts), shape=table["X_train_shape"], dtype=np.float32).tocsc(), y
    return np.ascontiguousarray(table["X_train" if "X_train" in table else "X"], dtype=np.float32), y


def training_impurity(tree: Any) -> float:
    """Weighted mean impurity of the leaves, of our trees and of scikit-learn's."""
    if hasattr(tree, "n_rows"):
        leaf = tree.is_leaf
        return float(np.average(tree.impurity[leaf], weights=tree.weight[leaf]))
    leaf = tree.children_left == -1
    return float(np.average(tree.impurity[leaf], weights=tree.weighted_n_node_samples[leaf]))


def exact() -> list[dict[str, Any]]:
    from sklearn.tree import DecisionTreeClassifier as Peer

    from margrove import DecisionTreeClassifier

    cases = []
    for name, nature in EXACT.items():
        X, y = numbers(name)
        facts = {"data": name, "nature": nature, "classes": int(y.max()) + 1}
        for depth in (10 if name == "mnist" else None, 8):
            cases.append(facts | grown(DecisionTreeClassifier, Peer, X, y, {"criterion": "gini", "max_depth": depth}))
            show(cases[-1])
        if name in ("synthetic", "magic04", "covtype_sample", "letter"):
            cases.append(facts | grown(DecisionTreeClassifier, Peer, X, y, {"criterion": "entropy", "max_depth": None}))
            show(cases[-1])
    return cases


def regression() -> list[dict[str, Any]]:
    from sklearn.tree import DecisionTreeRegressor as Peer

    from margrove import DecisionTreeRegressor

    cases = []
    for name in NUMBERS:
        table = numbers(name)[0]
        X, y = np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.float64)
        for depth in (None, 8):
            how = {"criterion": "squared_error", "max_depth": depth}
            cases.append({"data": name} | grown(DecisionTreeRegressor, Peer, X, y, how))
            show(cases[-1])
    return cases


def boosting() -> list[dict[str, Any]]:
    from sklearn.ensemble import AdaBoostClassifier as Peer
    from sklearn.tree import DecisionTreeClassifier as PeerTree

    from margrove import AdaBoostClassifier, DecisionTreeClassifier

    cases = []
    for name in EXACT:
        X, y = numbers(name)
        ours = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=ROUNDS, n_jobs=1)
        peer = Peer(PeerTree(max_depth=3, random_state=0), n_estimators=ROUNDS, random_state=0)
        runs = 1 if name in ("synthetic", "mnist") else 3
        best = interleaved({"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}, runs=runs)
        case = {
            "data": name,
            "rows": X.shape[0],
            "columns": X.shape[1],
            "rounds": ROUNDS,
            "one_thread": best["ours"],
            "sklearn": best["peer"],
            "ratio": best["peer"] / best["ours"],
            "training_error": float(ours.rounds_.training_error[-1]),
            "sklearn_training_error": float(1 - peer.score(X, y)),
        }
        cases.append(case)
        show(case)
    return cases


def grown(ours: Any, peer: Any, X: Any, y: np.ndarray, how: dict[str, Any]) -> dict[str, Any]:
    """The times of both sides, taken in turns, and the impurity that their trees leave at depth 6."""
    best = interleaved(
        {
            "one": partial(ours(**how, n_jobs=1).fit, X, y),
            "two": partial(ours(**how, n_jobs=2).fit, X, y),
            "peer": partial(peer(**how, random_state=0).fit, X, y),
        },
        runs=2 if X.shape[0] * X.shape[1] > 3_000_000 else 7,
    )
    shallow = how | {"max_depth": 6}
    return how | {
        "rows": X.shape[0],
        "columns": X.shape[1],
        "one_thread": best["one"],
        "two_threads": best["two"],
        "sklearn": best["peer"],
        "ratio": best["peer"] / best["one"],
        "ratio_two": best["peer"] / best["two"],
        "impurity_at_depth_6": training_impurity(ours(**shallow).fit(X, y).nodes_),
        "sklearn_impurity_at_depth_6": training_impurity(peer(**shallow, random_state=0).fit(X, y).tree_),
    }


def histogram() -> list[dict[str, Any]]:
    import lightgbm

    from margrove import DecisionTreeClassifier

    cases = []
    for name in ("synthetic", "covtype_sample"):
        X, y = numbers(name)
        y = y if name == "synthetic" else (y == 1).astype(int)
        bins = {"max_bin": 255, "bin_construct_sample_cnt": len(X), "verbose": -1, "num_threads": 1}
        kept: dict[str, Any] = {}

        def theirs(X: Any = X, y: Any = y, bins: Any = bins, kept: Any = kept) -> None:
            data = lightgbm.Dataset(X, label=y, params=bins).construct()
            started = time.perf_counter()
            kept["peer"] = lightgbm.train({**bins, "objective": "binary", "num_leaves": 255}, data, 1)
            kept["tree"] = min(kept.get("tree", math.inf), time.perf_counter() - started)

        def ours(X: Any = X, y: Any = y, kept: Any = kept) -> None:
            kept["model"] = DecisionTreeClassifier(
                thresholds="histogram", max_leaf_nodes=255, min_samples_leaf=20, n_jobs=1
            ).fit(X, y)

        def bins_alone(X: Any = X, y: Any = y) -> None:
            DecisionTreeClassifier(thresholds="histogram", max_leaf_nodes=2, min_samples_leaf=20, n_jobs=1).fit(X, y)

        best = interleaved({"ours": ours, "theirs": theirs, "bins": bins_alone}, runs=5)
        alone = best["ours"] - best["bins"]
        case = {
            "data": name,
            "rows": X.shape[0],
            "columns": X.shape[1],
            "margrove": best["ours"],
            "lightgbm": best["theirs"],
            "ratio": best["theirs"] / best["ours"],
            "margrove_tree": alone,
            "lightgbm_tree": kept["tree"],
            "tree_ratio": kept["tree"] / alone,
            "accuracy": float(kept["model"].score(X, y)),
            "lightgbm_accuracy": float(((kept["peer"].predict(X) > 0.5) == y).mean()),
        }
        cases.append(case)
        show(case)
    return cases


def one_hot_tree() -> Any:
    """scikit-learn's tree, behind what makes numbers of a data frame."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier as Peer

    words = make_column_selector(dtype_exclude=np.number)
    figures = make_column_selector(dtype_include=np.number)
    encode = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), words),
        (SimpleImputer(), figures),
    )
    return make_pipeline(encode, Peer(random_state=0))


def categorical() -> list[dict[str, Any]]:
    import pandas
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    from margrove import DecisionTreeClassifier, read_table

    cases = []
    for name in TABLES:
        path = DATA / f"{name}.csv.gz"
        table = read_table(path)
        y = table.labels()
        frame = pandas.read_csv(path, na_values=["?"]).drop(columns=[table.target.name])
        peer = one_hot_tree()
        best = interleaved(
            {
                "ours": partial(DecisionTreeClassifier(n_jobs=1).fit, table, y),
                "theirs": partial(peer.fit, frame, y),
            },
            runs=3,
        )
        folds = StratifiedKFold(10, shuffle=True, random_state=0)
        case = {
            "data": name,
            "rows": table.n_rows,
            "columns": table.n_columns,
            "margrove": best["ours"],
            "sklearn": best["theirs"],
            "ratio": best["theirs"] / best["ours"],
            "accuracy": float(cross_val_score(DecisionTreeClassifier(), table, y, cv=folds).mean()),
            "sklearn_accuracy": float(cross_val_score(peer, frame, y, cv=folds).mean()),
        }
        for how in ("multiway", "subset", "one_vs_rest"):
            model = DecisionTreeClassifier(categorical=how)
            case[f"accuracy_{how}"] = float(cross_val_score(model, table, y, cv=folds).mean())
        cases.append(case)
        show(case)
    return cases


def prediction() -> list[dict[str, Any]]:
    from sklearn.tree import DecisionTreeClassifier as Peer

    from margrove import DecisionTreeClassifier

    X, y = numbers("synthetic")
    many = np.ascontiguousarray(np.tile(X, (10, 1)))
    cases = []
    for depth in (8, None):
        ours, theirs = (make(max_depth=depth).fit(X, y) for make in (DecisionTreeClassifier, Peer))
        one = DecisionTreeClassifier(max_depth=depth, n_jobs=1).fit(X, y)
        best = interleaved(
            {
                "one": partial(one.predict, many),
                "two": partial(ours.predict, many),
                "peer": partial(theirs.predict, many),
            },
            runs=3,
        )
        case = {
            "rows": len(many),
            "max_depth": depth,
            "one_thread": best["one"],
            "two_threads": best["two"],
            "sklearn": best["peer"],
            "ratio": best["peer"] / best["one"],
            "ratio_two": best["peer"] / best["two"],
        }
        cases.append(case)
        show(case)
    return cases


def one_memory(side: str) -> None:
    """In a process of its own: by how much a fit raises the largest resident size, in bytes."""
    X, y = numbers("synthetic")
    X, y = np.tile(X, (5, 1)), np.tile(y, 5)
    if side == "sklearn":
        from sklearn.tree import DecisionTreeClassifier as Peer

        model: Any = Peer(max_depth=6)
    else:
        from margrove import DecisionTreeClassifier

        model = DecisionTreeClassifier(thresholds=side, max_depth=6, n_jobs=2)
    model.fit(X[:2000], y[:2000])
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the largest size so far is forgotten
    before = resident("VmRSS")
    model.fit(X, y)
    print(json.dumps({"bytes": resident("VmHWM") - before, "data": X.nbytes}))


def resident(key: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) * 1024


def memory() -> list[dict[str, Any]]:
    cases = []
    for side in ("exact", "histogram", "sklearn"):
        command = [sys.executable, __file__, "--memory-of", side]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
        case = {
            "side": side,
            "data_bytes": found["data"],
            "bytes": found["bytes"],
            "share": found["bytes"] / found["data"],
        }
        cases.append(case)
        show(case)
    return cases


def show(case: dict[str, Any]) -> None:
    print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in case.items()), flush=True)


PARTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "exact": exact,
    "regression": regression,
    "boosting": boosting,
    "histogram": histogram,
    "categorical": categorical,
    "prediction": prediction,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*PARTS], help="one part; the others stay as they were")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.memory_of:
        one_memory(given.memory_of)
        return
    path = RESULTS / "tree.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    record |= {"benchmark": "tree", "bar": BAR, "machine": machine("lightgbm")}
    for name in [given.only] if given.only else [*PARTS]:
        record[name] = PARTS[name]()
        keep(record)


if __name__ == "__main__":
    main()
