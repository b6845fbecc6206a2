"""What benchmarks/results/exports.json says, as a table. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table

READERS = {"margrove": "Margrove", "pandas": "pandas", "polars": "polars", "duckdb": "DuckDB"}
PARTS = {
    "open": "first files",
    "sealed": "files set aside at first",
    "fresh": "files written afterwards",
    "blind": "files of a third author",
    "second_blind": "files of a fourth author",
    "third_blind": "files of a fifth author",
    "products": "forms of 53 programs",
    "more_products": "forms of 39 more programs",
    "last_products": "forms of 15 more programs",
}


def section(result: dict[str, Any]) -> str:
    """How many files of each part every reader reads exactly, refuses, or reads otherwise."""
    rows = [
        [PARTS[case["part"]], READERS[case["reader"]], *(f"{case[kind]}" for kind in ("exact", "refused", "wrong"))]
        for case in result["cases"]
    ]
    sizes = {case["part"]: case["files"] for case in result["cases"]}
    counts = ", ".join(f"{n} {PARTS[part]}" for part, n in sizes.items())
    words = f"Exported tables, read with the defaults of each reader: {counts}. `tests/exports` has them all."
    return f"{words}\n\n{table(['', 'reader', 'exact', 'refused', 'otherwise'], rows)}"
