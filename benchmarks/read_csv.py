"""Reading a CSV file of about 100 MB: our `read_table` beside ``pandas.read_csv(engine="pyarrow")``.

Three files are made in a temporary folder: two of numbers and text, one of numbers only. The readers take
turns and the best of five is kept of each, so that a busy machine hurts both alike. Both end with the table
in memory, ours with text already as categories. The bar: at most 1.5 × the time of pandas.

    python benchmarks/read_csv.py
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv

from margrove.data import read_table

RESULT = Path(__file__).parent / "results" / "read_csv.json"
ROUNDS = 5
BAR = 1.5


def mixed_table(n: int, rng: np.random.Generator) -> pyarrow.Table:
    """Twelve numeric columns, five of text from few to many distinct values, and a label."""
    towns = np.array(["alpha", "beta", "gamma", "delta town"])
    words = np.char.add("word", rng.integers(0, 20_000, n).astype(str))
    return pyarrow.table(
        {f"real_{j}": rng.normal(size=n).round(4) for j in range(8)}
        | {f"whole_{j}": rng.integers(0, 1000, n) for j in range(4)}
        | {f"town_{j}": towns[rng.integers(0, len(towns), n)] for j in range(4)}
        | {"word": words, "label": np.array(["no", "yes"])[rng.integers(0, 2, n)]}
    )


def numeric_table(n: int, rng: np.random.Generator) -> pyarrow.Table:
    """Sixteen numeric columns and a label of 0 and 1."""
    columns = {f"real_{j}": rng.normal(size=n).round(4) for j in range(16)}
    return pyarrow.table(columns | {"label": rng.integers(0, 2, n)})


CASES: dict[str, tuple[Callable[..., pyarrow.Table], int, str]] = {
    "mixed, quotes where needed": (mixed_table, 980_000, "none"),
    "mixed, all text in quotes": (mixed_table, 900_000, "needed"),
    "numeric": (numeric_table, 900_000, "none"),
}


def seconds(read: Callable[[], Any]) -> float:
    start = time.perf_counter()
    read()
    return time.perf_counter() - start


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Write the case's file, read it in turns, and keep the best time of each reader."""
    make, n, quoting = CASES[name]
    path = folder / "table.csv"
    # pyarrow quotes all text where it says "needed"; pandas, like most writers, only what has to be.
    options = pyarrow.csv.WriteOptions(quoting_style=quoting)
    pyarrow.csv.write_csv(make(n, np.random.default_rng(0)), path, options)
    ours, peer = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(lambda: read_table(path)))
        peer.append(seconds(lambda: pd.read_csv(path, engine="pyarrow")))
    return {
        "case": name,
        "megabytes": round(path.stat().st_size / 1e6, 1),
        "rows": n,
        "ours_s": round(min(ours), 4),
        "peer": "pandas.read_csv(engine='pyarrow')",
        "peer_s": round(min(peer), 4),
        "ratio": round(min(ours) / min(peer), 3),
        "bar": BAR,
    }


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "pandas": pd.__version__,
        "pyarrow": pyarrow.__version__,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = [measure(name, Path(folder)) for name in CASES]
    for case in cases:
        print(
            f"{case['case']:28} {case['megabytes']:7.1f} MB   ours {case['ours_s']:.3f} s   "
            f"pandas {case['peer_s']:.3f} s   × {case['ratio']:.2f}"
        )
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"cases": cases, "machine": machine()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
