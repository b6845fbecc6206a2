"""Searches over C, gamma and folds, paths along C, and exact leave-one-out, against GridSearchCV and friends.

    python benchmarks/search.py                   all of it (about ten minutes)
    python benchmarks/search.py --only search     search | path | leave_one_out

5 folds × 8 values of C × 6 of gamma, without a refit; two cores for every side. Every run in a fresh process, the
sides in turns; each side's best run counts.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

from measure import RESULTS, keep, machine
from svm import DATA, load

BAR = (
    "search: geometric mean 30 × GridSearchCV(SVC(), n_jobs=2), 10 × with scikit-learn-intelex's SVC, none below half"
    " of that, every score within 0.002 of scikit-learn's, less time per fit than liquidSVM; 20 values of C ≤ 3 × the"
    " hardest of them alone; leave-one-out of 2,000 rows 50 × cross_val_score(LeaveOneOut())"
)
CASES = {"letter": (4_000, -2, 1), "a9a": (4_000, -3, 0), "ijcnn1": (5_000, -2, 1)}  # rows, first and last gamma
CS = 10.0 ** np.linspace(-1, 2.5, 8)
PATH_CS = 10.0 ** np.linspace(-2, 2, 20)
PATHS = {"a9a": 1 / 123, "ijcnn1": 2.0}  # gamma
RUNS = {"margrove": 3, "sklearn": 2, "intelex": 1}
# Seconds per fit, measured once with R's liquidSVM 1.2.4 on this kind of machine: 500 fits, its own grid and stop.
LIQUIDSVM = {"letter": 15.9 / 500, "a9a": 5.4 / 500, "ijcnn1": 5.4 / 500}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    n = CASES[name][0]
    if name == "letter":
        table = np.load(DATA / "letter.npz")
        return table["X_train"][:n] / 7.5 - 1, table["y_train"][:n]
    X, y = load(name)
    return X[:n], y[:n]


def one_search(side: str, name: str) -> dict[str, Any]:
    X, y = rows_of(name)
    grid = {"C": CS.tolist(), "gamma": (10.0 ** np.linspace(*CASES[name][1:], 6)).tolist()}
    small = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    if side == "margrove":
        from margrove import SVCCV

        def make(grid: dict[str, Any]) -> Any:
            return SVCCV(Cs=grid["C"], gammas=grid["gamma"], refit=False, n_jobs=2)
    else:
        from sklearn.model_selection import GridSearchCV

        if side == "sklearn":
            from sklearn.svm import SVC
        else:
            from sklearnex.svm import SVC

        def make(grid: dict[str, Any]) -> Any:
            return GridSearchCV(SVC(), grid, refit=False, n_jobs=2)

    make({"C": [1.0], "gamma": [1.0]}).fit(*small)
    started = time.perf_counter()
    search = make(grid).fit(X, y)
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "scores": np.asarray(search.cv_results_["mean_test_score"]).tolist(),
        "best": float(search.best_score_),
    }


def one_path(name: str) -> dict[str, Any]:
    """The path, and each of its values by itself, in turns."""
    from margrove import SVC

    X, y = load(name)
    SVC().fit(X[:500], np.arange(500) % 2)
    model = SVC(gamma=PATHS[name], cache_size=2000)
    path_seconds, alone = math.inf, dict.fromkeys(PATH_CS.tolist(), math.inf)
    for _ in range(2):
        started = time.perf_counter()
        path = model.path(X, y, PATH_CS)
        path_seconds = min(path_seconds, time.perf_counter() - started)
        for C in alone:
            started = time.perf_counter()
            SVC(gamma=PATHS[name], cache_size=2000, C=C).fit(X, y)
            alone[C] = min(alone[C], time.perf_counter() - started)
    return {
        "path": path_seconds,
        "hardest": max(alone.values()),
        "all_alone": sum(alone.values()),
        "status": str(path.status),
        "statuses": [str(model.status_) for model in path.models],
    }


def one_leave_one_out(side: str) -> dict[str, Any]:
    table = np.load(DATA / "spambase.npz")
    X, y = table["X_train"].astype(np.float64), table["y_train"]
    order = np.random.default_rng(0).permutation(len(y))[:2000]
    X, y = X[order], y[order]
    spread = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    settings = {"C": 10.0, "gamma": 0.01}
    if side == "margrove":
        from margrove import SVC

        SVC(**settings).fit(X[:200], y[:200]).leave_one_out(X[:200], y[:200])
        started = time.perf_counter()
        found = SVC(**settings, n_jobs=2).fit(X, y).leave_one_out(X, y)
        return {
            "seconds": time.perf_counter() - started,
            "error": found.error,
            "bound": found.bound,
            "solves": found.n_solves,
        }
    from sklearn import svm
    from sklearn.model_selection import LeaveOneOut, cross_val_score

    cross_val_score(svm.SVC(), X[:60], y[:60], cv=5, n_jobs=2)
    started = time.perf_counter()
    scores = cross_val_score(svm.SVC(**settings), X, y, cv=LeaveOneOut(), n_jobs=2)
    return {"seconds": time.perf_counter() - started, "error": float(1 - scores.mean())}


RUNNERS = {"search": one_search, "path": one_path, "leave_one_out": one_leave_one_out}


def in_a_process(kind: str, *given: str) -> dict[str, Any]:
    call = [sys.executable, __file__, "--run", json.dumps([kind, *given])]
    process = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
    found = dict(json.loads(process.stdout.splitlines()[-1]))
    print(f"  {' '.join((kind, *given)):32s} {found.get('seconds', found.get('path')):8.2f} s", flush=True)
    return found


def search(record: dict[str, Any], skip: list[str]) -> None:
    record["search"] = []
    for name in CASES:
        best: dict[str, dict[str, Any]] = {}
        for turn in range(max(RUNS.values())):
            for side, runs in RUNS.items():
                if turn < runs and side not in skip:
                    found = in_a_process("search", side, name)
                    if side not in best or found["seconds"] < best[side]["seconds"]:
                        best[side] = found
        case: dict[str, Any] = {"data": name, "rows": CASES[name][0], "fits": 5 * 8 * 6}
        ours = best["margrove"]
        for side, found in best.items():
            case[f"{side}_seconds"], case[f"{side}_best"] = found["seconds"], found["best"]
            if side != "margrove":
                case[f"ratio_{side}"] = found["seconds"] / ours["seconds"]
                case[f"worst_score_gap_{side}"] = float(np.abs(np.subtract(found["scores"], ours["scores"])).max())
        case["liquidsvm_seconds_per_fit"] = LIQUIDSVM[name]
        case["margrove_seconds_per_fit"] = ours["seconds"] / case["fits"]
        record["search"].append(case)
        keep(record)
    for side in RUNS:
        if side != "margrove" and side not in skip:
            ratios = [case[f"ratio_{side}"] for case in record["search"]]
            record[f"geometric_mean_{side}"] = math.exp(sum(map(math.log, ratios)) / len(ratios))


def path(record: dict[str, Any], skip: list[str]) -> None:
    record["path"] = [{"data": name, "gamma": PATHS[name], **in_a_process("path", name)} for name in PATHS]
    for case in record["path"]:
        case["times_the_hardest"] = case["path"] / case["hardest"]


def leave_one_out(record: dict[str, Any], skip: list[str]) -> None:
    ours = min((in_a_process("leave_one_out", "margrove") for _ in range(3)), key=lambda found: found["seconds"])
    theirs = in_a_process("leave_one_out", "sklearn")
    ratio = theirs["seconds"] / ours["seconds"]
    record["leave_one_out"] = {"data": "spambase", "rows": 2000, "margrove": ours, "sklearn": theirs, "ratio": ratio}


PARTS = {"search": search, "path": path, "leave_one_out": leave_one_out}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--skip", action="append", default=[], choices=list(RUNS))
    parser.add_argument("--run", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        warnings.simplefilter("ignore")
        kind, *given = json.loads(arguments.run)
        print(json.dumps(RUNNERS[kind](*given)))
        return
    path = RESULTS / "search.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record |= {"benchmark": "search", "bar": BAR, "machine": machine("scikit-learn-intelex")}
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(record, arguments.skip)
            keep(record)


if __name__ == "__main__":
    main()
