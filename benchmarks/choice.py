"""`margrove train` as it comes beside default LightGBM, HistGradientBoosting and RandomForest, on real tables.

    pip install lightgbm
    python benchmarks/choice.py                     all of it (about half an hour on a quiet machine)
    python benchmarks/choice.py --only adult car    these; the others stay as they were

All sides get the same rows; the accuracy is of the official test part or of a stratified third (seed 0). The command
has 60 s on two cores (with --processor-clock 60 s of both cores together, which is less) and is asked for accuracy. The
peers have their defaults on one thread: LightGBM and HistGradientBoosting take text as categories, RandomForest one
column for each level (ordinal codes above 255 levels).
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from threadpoolctl import threadpool_limits

import margrove
from auto import parts_of, run, write_rows
from margrove.errors import UnseenCategoryWarning
from measure import RESULTS, keep, machine

BAR = "on the mean accuracy ahead of each peer; on no table more than 0.01 below the best of the three"
BUDGET = 60
TABLES = (
    "car", "nursery", "soybean", "tic_tac_toe", "kr_vs_kp", "splice", "connect4", "titanic", "german_credit",
    "hypothyroid", "adult", "bank_marketing", "letter", "pendigits", "digits", "segment", "dna", "spambase", "phoneme",
    "magic04", "madelon", "ct_avila", "ct_eeg", "ct_rice", "ct_bidding", "covtype_sample",
)  # fmt: skip
PEERS = ("lightgbm", "hist_gradient_boosting", "random_forest")
MOST_LEVELS = 255  # that HistGradientBoosting takes


def frames(folder: Path) -> tuple[Any, Any, Any, Any]:
    """The rows to train on, their classes, the rows to test and theirs: text as categories of the training rows."""
    train, test = (pandas.read_csv(folder / f"{part}.csv", keep_default_na=False, na_values=[""]) for part in
                   ("train", "test"))  # fmt: skip
    target = train.columns[-1]
    y, truth = train.pop(target).astype(str), test.pop(target).astype(str)
    train = train.dropna(axis="columns", how="all")  # HistGradientBoosting refuses such a column
    test = test[train.columns]
    for name in train.columns:
        if not pandas.api.types.is_numeric_dtype(train[name]):
            levels = sorted(train[name].dropna().astype(str).unique())
            kind = pandas.CategoricalDtype(levels)
            for part in (train, test):
                cells = part[name].astype(str)
                part[name] = cells.where(cells.isin(levels) & part[name].notna()).astype(kind)
        else:
            test[name] = pandas.to_numeric(test[name], errors="coerce")
    return train, y, test, truth


def peers(train: Any) -> dict[str, Callable[[], Any]]:
    """The unfitted peers for such a frame."""
    import lightgbm

    text = [name for name in train.columns if train[name].dtype == "category"]
    many = [name for name in text if len(train[name].cat.categories) > MOST_LEVELS]
    few = [name for name in text if name not in many]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    own: dict[str, Any] = {"remainder": "passthrough", "verbose_feature_names_out": False}
    forest = RandomForestClassifier(n_jobs=1, random_state=0)
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    as_codes = make_column_transformer((codes, many), **own).set_output(transform="pandas")
    return {
        "lightgbm": lambda: lightgbm.LGBMClassifier(n_jobs=1, random_state=0, verbose=-1),
        "hist_gradient_boosting": lambda: make_pipeline(as_codes, boosting),
        "random_forest": lambda: make_pipeline(make_column_transformer((levels, few), (codes, many), **own), forest),
    }


def measured(name: str, *, processor_clock: bool) -> dict[str, Any]:
    """One table."""
    header, train, test = parts_of(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_rows(folder / "train.csv", header, train)
        write_rows(folder / "test.csv", header, test)
        words = ["train", "train.csv", "--target", header[-1], "--budget", f"{BUDGET}s", "--no-report"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        told, seconds = run([*words, "--metric", "accuracy"], folder, processor_clock=processor_clock)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        model = margrove.load(folder / "train.margrove")
        asked = margrove.read_table(folder / "test.csv", target=header[-1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenCategoryWarning)
            accuracy = float(np.mean(model.predict(asked).astype(str) == asked.labels().astype(str)))
        case: dict[str, Any] = {"data": name, "rows": len(train), "test_rows": len(test), "margrove": accuracy}
        X, y, T, truth = frames(folder)
    for peer, made in peers(X).items():
        started = time.perf_counter()
        with warnings.catch_warnings(), threadpool_limits(1):  # threads of OpenMP wait for each other on a busy machine
            warnings.simplefilter("ignore")
            case[peer] = float(np.mean(made().fit(X, y).predict(T) == truth))
        case[f"{peer}_seconds"] = time.perf_counter() - started
    taken = next(line for line in told["leaderboard"] if line["is_chosen"])
    best = max(case[peer] for peer in PEERS)
    error = (best * (1 - best) / len(test)) ** 0.5
    tried = [[line["title"], line["score"], line["seconds"]] for line in told["leaderboard"]]
    return case | {
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "processor_clock": processor_clock,
        "difference": accuracy - best, "standard_error": error, "learner": taken["title"], "seconds": seconds,
        "estimate": told["estimate"]["value"], "certificate_holds": told["certificate"]["holds"], "tried": tried,
    }  # fmt: skip


def summary(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The means, and the tables on which the command is more than a point below the best peer."""
    means = {side: float(np.mean([case[side] for case in cases])) for side in ("margrove", *PEERS)}
    behind = [case["data"] for case in cases if case["difference"] < -0.01]
    clearly = [case["data"] for case in cases if case["difference"] < -max(0.01, 2 * case["standard_error"])]
    return {"tables": len(cases), "mean": means, "behind": behind, "clearly_behind": clearly}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=TABLES)
    parser.add_argument(
        "--processor-clock", action="store_true", help="the budget is of processor time (busy machines)"
    )
    given = parser.parse_args()
    only = given.only
    path = RESULTS / "choice.json"
    cases: dict[str, dict[str, Any]] = {}
    if only and path.exists():
        cases = {case["data"]: case for case in json.loads(path.read_text(encoding="utf-8"))["cases"]}
    for name in only or TABLES:
        cases[name] = case = measured(name, processor_clock=given.processor_clock)
        shown = "  ".join(f"{side} {case[side]:.4f}" for side in ("margrove", *PEERS))
        took = f"{case['seconds']:5.1f} s ({case['cpu_seconds']:.0f} s of CPU)"
        print(f"{name:15s} {shown}  {case['difference']:+.4f}  {took}  {case['learner']}", flush=True)
        ordered = [cases[each] for each in TABLES if each in cases]
        keep({"benchmark": "choice", "bar": BAR, "machine": machine("lightgbm"),
              "summary": summary(ordered), "cases": ordered})  # fmt: skip
    print(json.dumps(summary(list(cases.values())), indent=2))


if __name__ == "__main__":
    main()
