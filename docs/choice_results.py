"""What benchmarks/results/choice.json says, as a table and sentences. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table, verdict

PEERS = {"lightgbm": "LightGBM", "hist_gradient_boosting": "HistGradientBoosting", "random_forest": "RandomForest"}
MOST_BEHIND = 0.01  # of the best peer, on any table


def section(result: dict[str, Any]) -> str:
    """The accuracy of what the command chose beside that of the peers, on rows that none of them saw."""
    cases = result["cases"]
    head = ["", "`margrove train`", *PEERS.values(), "to the best of these", "taken", "seconds", "of CPU"]
    sides = ("margrove", *PEERS)
    means = [sum(case[side] for case in cases) / len(cases) for side in sides]
    n_right = sum(case["difference"] >= 0 for case in cases)
    lines = [
        "`margrove train`, asked for accuracy, beside the peers with their defaults, on the same rows. The test rows "
        "are the official ones, or a stratified third. The budget is 60 s"
        f"{_clock(cases)}.",
        table(head, [*map(_row, cases), ["mean", *map(_percent, means), "", "", "", ""]]),
        f"On {n_right} of {len(cases)} tables the command is at least as good as the best peer.",
        _misses(cases, dict(zip(sides, means, strict=True))),
    ]
    return "\n\n".join(lines)


def _clock(cases: list[dict[str, Any]]) -> str:
    others = [case["data"] for case in cases if case["processor_clock"]]
    of_all = "" if len(others) == len(cases) else f" on {', '.join(others)}"
    return f" of processor time{of_all}, measured on a busy machine" if others else ""


def _row(case: dict[str, Any]) -> list[str]:
    return [
        f"{case['data']}, {case['rows']:,} rows",
        *(_percent(case[side]) for side in ("margrove", *PEERS)),
        f"{100 * case['difference']:+.1f}",
        case["learner"],
        f"{case['seconds']:.0f}",
        f"{case['cpu_seconds']:.0f}",
    ]


def _misses(cases: list[dict[str, Any]], means: dict[str, float]) -> str:
    found = [f"the mean is below that of {name}" for peer, name in PEERS.items() if means["margrove"] <= means[peer]]
    found += [
        f"{case['data']} is {-100 * case['difference']:.1f} points below the best peer"
        for case in cases
        if case["difference"] < -MOST_BEHIND
    ]
    return verdict(found)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
