"""What benchmarks/results/exports.json says, as a table. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table

READERS = {"margrove": "Margrove", "pandas": "pandas", "polars": "polars", "duckdb": "DuckDB"}
FIRST = dict.fromkeys(("open", "sealed"), "files of the first author")
OTHERS = dict.fromkeys(("fresh", "blind", "second_blind", "third_blind"), "files of four others")
PROGRAMS = dict.fromkeys(("products", "more_products", "last_products"), "forms of 107 programs")
LATER = "files of later authors, by written conventions"


def section(result: dict[str, Any]) -> str:
    """Return a table of how many files each reader reads exactly, refuses, or reads otherwise."""
    counts: dict[tuple[str, str], list[int]] = {}
    for case in result["cases"]:
        group = (FIRST | OTHERS | PROGRAMS).get(case["part"], LATER)
        found = counts.setdefault((group, READERS[case["reader"]]), [0, 0, 0, 0])
        found[:] = [a + case[kind] for a, kind in zip(found, ("files", "exact", "refused", "wrong"), strict=True)]
    rows = [[*names, *map(str, found)] for names, found in counts.items()]
    n = sum(found[0] for (_, reader), found in counts.items() if reader == "Margrove")
    words = f"{n} exported tables, read with the defaults of each reader."
    return f"{words}\n\n{table(['', 'reader', 'files', 'exact', 'refused', 'otherwise'], rows)}"
