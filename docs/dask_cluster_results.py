"""What benchmarks/results/dask_cluster.json says, as tables and a sentence. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import in_print, table, times, verdict


def section(result: dict[str, Any]) -> str:
    """Times beside the native engine's, the cost of a killed worker, and the fits from Parquet with their memory."""
    cases = result["cases"]
    beside, parquet = ([case for case in cases if (key in case)] for key in ("native_seconds", "peak_mb"))
    rows = [
        [
            case["data"],
            in_print(case["native_seconds"]),
            f"{in_print(case['margrove_seconds'])} ({times(case['ratio'])})",
            in_print(case["killed_seconds"]),
        ]
        for case in beside
    ]
    parts = [
        "Two Dask workers of one thread, and the native engine with two threads, on the same rows. In the last column a"
        " worker is killed half-way; the model has the same bytes.",
        table(["", "native", "Dask", "Dask, a worker killed"], rows),
    ]
    if parquet:
        rows = [
            [case["data"], in_print(case["margrove_seconds"]), f"{case['peak_mb']:.0f} MB", case["status"]]
            for case in parquet
        ]
        parts += [
            "From a Parquet file with two workers of 1.5 GB, and the largest memory of a worker:",
            table(["", "time", "memory", "status"], rows),
        ]
    parts.append(verdict(case["data"] for case in cases if not case["is_within_bar"]))
    return "\n\n".join(parts)
