"""What benchmarks/results/rare.json says, as a table and a sentence. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table, verdict

_MOST = 0.01  # that the mean may be below the peer's


def section(result: dict[str, Any]) -> str:
    """The balanced accuracy of each table, ours and the peer's."""
    cases = result["cases"]
    mean = cases[-1]
    rows = [
        [
            case["data"],
            f"{case['rows']:,}" if "rows" in case else "",
            f"{100 * case['rarest']:.1f} %" if "rarest" in case else "",
            f"{case['ours']:.3f}",
            f"{case['lightgbm']:.3f}",
            case.get("learner", ""),
        ]
        for case in cases
    ]
    return "\n\n".join(
        [
            "Balanced accuracy on rows kept back, of `margrove train` as it comes and of LightGBM with balanced class "
            "weights, both trained on the same rows. The tables were named before the choice looked at rare classes.",
            table(["", "rows", "rare class", "Margrove", "LightGBM", "learner chosen"], rows),
            verdict(["the mean is too low"] if mean["ours"] < mean["lightgbm"] - _MOST else []),
        ]
    )
