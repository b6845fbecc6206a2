"""Reading a CSV file of about 100 MB: our `read_table` beside ``pandas.read_csv(engine="pyarrow")``.

Three files are made in a temporary folder: two of numbers and text, one of numbers only. The readers take
turns and the best of five is kept of each, so that a busy machine hurts both alike. Both end with the table
in memory, ours with text already as categories. The bar: at most 1.5 × the time of pandas.

    python benchmarks/read_csv.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.csv

from margrove.data import read_table
from measure import interleaved, write

ROUNDS = 5


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


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Write the case's file and let the readers take turns at it."""
    make, n, quoting = CASES[name]
    path = folder / "table.csv"
    # pyarrow quotes all text where it says "needed"; pandas, like most writers, only what has to be.
    options = pyarrow.csv.WriteOptions(quoting_style=quoting)
    pyarrow.csv.write_csv(make(n, np.random.default_rng(0)), path, options)
    seconds = interleaved(
        {"ours": lambda: read_table(path), "peer": lambda: pd.read_csv(path, engine="pyarrow")}, runs=ROUNDS
    )
    return {
        "name": f"{name}, {path.stat().st_size / 1e6:.0f} MB",
        "peer": "pandas.read_csv(engine='pyarrow')",
        "ours_s": seconds["ours"],
        "peer_s": seconds["peer"],
        "ratio": seconds["peer"] / seconds["ours"],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = [measure(name, Path(folder)) for name in CASES]
    write("read_csv", "100 MB of CSV: at most 1.5 × the time of pandas (ratio ≥ 0.67)", cases, "pandas", "pyarrow")


if __name__ == "__main__":
    main()
