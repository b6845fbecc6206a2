"""`margrove train` as it comes on tables with rare classes, beside LightGBM with class weights.

    pip install lightgbm
    python benchmarks/rare.py                 all of it (about twelve minutes)
    python benchmarks/rare.py --only w8a      one table

The ten tables were named before the choice looked at rare classes. Where there are several classes, one of them is
predicted against the rest; of bank_marketing only every second row of the rare class is kept. Both learn from the same
rows; the balanced accuracy is that of rows kept back here: the official test part, or a stratified third (seed 0). Of
more than 20,000 rows a stratified sample of that size is used.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

import margrove
from measure import RESULTS, keep, machine
from svm import DATA

BAR = "balanced accuracy of `margrove train` on average at most 1 point below LightGBM with balanced class weights"
MOST_ROWS = 20_000
MOST_COLUMNS = 300  # of sparse tables
TABLES = {  # with the rare class
    "bank_marketing": "yes",
    "hypothyroid": "compensated_hypothyroid",
    "car": "vgood",
    "nursery": "very_recom",
    "ijcnn1": "1",
    "ct_htru": "1",
    "covtype_sample": "4",
    "letter": "0",
    "w8a": "1",
    "reuters_moneyfx": "1",
}
TARGET = "answer"


def parts_of(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to train on and those that are kept back; the last column is the answer, Yes or No."""
    path = DATA / f"{name}.csv.gz"
    if path.exists():
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
        return _split(_answered(frame.iloc[:, :-1], frame.iloc[:, -1], name))
    table = np.load(DATA / f"{name}.npz")
    parts = [
        _answered(_columns(table, part), pd.Series(table[f"y_{part}"]), name)
        for part in ("train", "test")
        if f"y_{part}" in table
    ]
    return _split(parts[0]) if len(parts) == 1 else (_few(parts[0]), _few(parts[1]))


def _columns(table: Any, part: str) -> pd.DataFrame:
    if f"X_{part}" in table:
        X = table[f"X_{part}"]
    else:
        data, indices, indptr, shape = (table[f"X_{part}_{key}"] for key in ("data", "indices", "indptr", "shape"))
        X = sp.csr_matrix((data, indices, indptr), shape=shape)[:, :MOST_COLUMNS].toarray()
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def _answered(frame: pd.DataFrame, labels: pd.Series, name: str) -> pd.DataFrame:
    is_rare = (labels.astype(str) == TABLES[name]).to_numpy()
    frame = frame.assign(**{TARGET: np.where(is_rare, "Yes", "No")})
    if name == "bank_marketing":  # 11.7 % of the rows
        frame = frame.drop(index=np.flatnonzero(is_rare)[::2]).reset_index(drop=True)
    return frame


def _split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    train, test = train_test_split(frame, test_size=1 / 3, stratify=frame[TARGET], random_state=0)
    return _few(train), _few(test)


def _few(frame: pd.DataFrame) -> pd.DataFrame:
    if len(frame) <= MOST_ROWS:
        return frame
    return train_test_split(frame, train_size=MOST_ROWS, stratify=frame[TARGET], random_state=0)[0]


def measured(name: str) -> dict[str, Any]:
    """One table."""
    train, test = parts_of(name)
    truth = test[TARGET].astype(str).to_numpy()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        train.to_csv(folder / "train.csv", index=False)
        test.to_csv(folder / "test.csv", index=False)
        words = ["train", "train.csv", "--target", TARGET, "--no-report", "--json"]
        started = time.perf_counter()
        process = subprocess.run(
            [sys.executable, "-m", "margrove", *words], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
        )
        seconds = time.perf_counter() - started
        told = json.loads(process.stdout)
        model = margrove.load(folder / "train.margrove")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = margrove.read_table(folder / "test.csv", target=TARGET, like=model)
            ours = balanced_accuracy_score(truth, np.asarray(model.predict(asked)).astype(str))
    X, asked = (part.drop(columns=TARGET) for part in (train, test))
    for column in X.select_dtypes(exclude="number"):
        levels = pd.CategoricalDtype(X[column].dropna().unique())
        X[column], asked[column] = X[column].astype(levels), asked[column].astype(levels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = lightgbm.LGBMClassifier(class_weight="balanced", n_jobs=2, random_state=0, verbose=-1)
        theirs = balanced_accuracy_score(truth, peer.fit(X, train[TARGET].astype(str)).predict(asked))
    taken = next(line for line in told["leaderboard"] if line["is_chosen"])
    return {
        "data": name,
        "rows": len(train),
        "rarest": float(train[TARGET].value_counts(normalize=True).min()),
        "ours": float(ours),
        "lightgbm": float(theirs),
        "difference": float(ours - theirs),
        "learner": taken["title"],
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=TABLES)
    only = parser.parse_args().only
    path = RESULTS / "rare.json"
    record: dict[str, Any] = {"benchmark": "rare", "bar": BAR, "machine": machine("lightgbm"), "cases": []}
    if only and path.exists():
        cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
        record["cases"] = [case for case in cases if case["data"] not in (only, "mean")]
    for name in [only] if only else TABLES:
        case = measured(name)
        print(case, flush=True)
        record["cases"].append(case)
        keep(record)
    cases = record["cases"]
    mean = {key: float(np.mean([case[key] for case in cases])) for key in ("ours", "lightgbm", "difference")}
    record["cases"].append({"data": "mean", **mean})
    keep(record)
    print(record["cases"][-1])


if __name__ == "__main__":
    main()
