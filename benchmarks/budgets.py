"""`--budget` against the clock: `margrove train` and `margrove compare` on tables of different size, as processes.

    python benchmarks/budgets.py                     all 30 runs (about eight minutes)
    python benchmarks/budgets.py --only titanic      the runs of one table, or with "titanic train 3" one run

The seconds are those of the whole process, imports included. A run is within its budget if it takes at most 10 % and
2 s longer. Of a run that is repeated the slowest stays in benchmarks/results/budgets.json, since a budget must hold
every time; delete the file to begin again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from measure import RESULTS, keep, machine
from svm import DATA

BAR = "every run, imports, certificate and report included, ends within its budget, 10 % and 2 s"
TABLES = ("titanic", "soybean", "german_credit", "letter", "adult")
BUDGETS = (3, 10, 30)
RUNS = {
    f"{table} {command} {budget}": (table, command, budget)
    for table in TABLES
    for command in ("train", "compare")
    for budget in BUDGETS
}


def _file_of(name: str, folder: Path) -> Path:
    """The table as a file that the command reads; the class is the last column."""
    path = DATA / f"{name}.csv.gz"
    if path.exists():
        return path
    table, path = np.load(DATA / f"{name}.npz"), folder / f"{name}.csv"
    rows = np.column_stack([table["X_train"], table["y_train"]])
    np.savetxt(path, rows, "%g", ",", header=",".join([*map(str, table["feature_names"]), "class"]), comments="")
    return path


def measured(name: str) -> dict[str, Any]:
    """One run."""
    table, command, budget = RUNS[name]
    with tempfile.TemporaryDirectory() as place:
        file = _file_of(table, Path(place))
        words = [sys.executable, "-m", "margrove", command, str(file), "--budget", f"{budget}s", "--json"]
        started = time.perf_counter()
        process = subprocess.run(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        seconds = time.perf_counter() - started
        told, has_model = json.loads(process.stdout), any(Path(place).glob("*.margrove"))
    case = {"run": name, "budget": budget, "seconds": seconds, "is_within": seconds <= 1.1 * budget + 2}
    if command == "train":
        is_certified = not told["certifying"]["is_left_out"]
        return {**case, "has_model": has_model, "is_certified": is_certified, "has_report": told["report"] is not None}
    done = [line for line in told["learners"] if line["failure"] is None]
    n_certified = sum(line["is_certified"] for line in done)
    return {**case, "learners": len(told["learners"]), "done": len(done), "certified": n_certified}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[""], help="runs whose names contain one of these")
    only = parser.parse_args().only
    path, cases = RESULTS / "budgets.json", {}
    if path.exists():
        cases = {case["run"]: case for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}
    for name in RUNS:
        if any(part in f"{name} " for part in only):
            case = measured(name)
            cases[name] = max(case, cases.get(name, case), key=lambda each: each["seconds"])
            print(f"{name:26s} {case['seconds']:6.1f} s  {'within' if case['is_within'] else 'BEYOND'}", flush=True)
            ordered = [cases[each] for each in RUNS if each in cases]
            keep({"benchmark": "budgets", "bar": BAR, "machine": machine(), "cases": ordered})


if __name__ == "__main__":
    main()
