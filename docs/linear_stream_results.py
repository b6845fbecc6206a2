"""What benchmarks/results/linear_stream.json says, as a table and a sentence. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table

WAYS = {"fit": "`fit` on the memory map", "fit_stream": "`fit_stream` over chunks"}


def section(result: dict[str, Any]) -> str:
    """Memory and time of each way, and whether the bar is held."""
    cases = result["cases"]
    rows = [
        [
            WAYS[case["way"]],
            case["loss"].replace("_", " "),
            f"{case['anonymous_mb']:.0f} MB",
            f"{case['seconds']:.0f} s",
            f"{case['passes']}",
            f"{case['relative_gap']:.1e}",
        ]
        for case in cases
    ]
    first = cases[0]
    held = all(case["is_within_bar"] for case in cases)
    return "\n\n".join(
        [
            f"{first['rows']:,} × {first['columns']} float32 numbers on disk, one thread, to a relative duality gap of"
            f" 1 %. Memory is the process's own (RssAnon, sampled), {first['baseline_mb']:.0f} MB of it Python and its"
            " packages.",
            table(["", "loss", "memory", "time", "passes", "gap"], rows),
            "The bar, 500 MB, is held by all." if held else "The bar, 500 MB, is not held by all.",
        ]
    )
