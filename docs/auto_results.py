"""What benchmarks/results/auto.json says, as a table and sentences. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table, verdict

LEAST_ADULT = 0.863  # of the official test part, within 120 s
MOST_LOSS = 0.02  # of adult with 30 s, compared with 60 s


def section(result: dict[str, Any]) -> str:
    """What was taken on each table, how good it is on rows kept from it, and the seconds of the whole run."""
    head = ["", "taken", "test rows right", "estimated", "95 % interval", "by", "largest class", "seconds", "budget"]
    lines = [
        "`margrove train` as it comes, in a process of its own, from the start of Python to its end. The test rows are"
        " the official ones of adult and letter, else a third that the command never saw. The estimate is its own.",
        table(head, [_row(case) for case in result["cases"]]),
        _misses(result["cases"]),
    ]
    return "\n\n".join(lines)


def _row(case: dict[str, Any]) -> list[str]:
    return [
        f"{case['data']}, {case['rows']:,} rows",
        case["learner"],
        _percent(case["test_accuracy"]),
        _percent(case["estimate"]),
        f"{100 * case['low']:.1f} … {_percent(case['high'])}",
        case["method"],
        _percent(case["baseline"]),
        f"{case['seconds']:.0f}",
        f"{case['budget']}",
    ]


def _misses(cases: list[dict[str, Any]]) -> str:
    found = [
        f"{case['data']} took {case['seconds']:.0f} s of {case['budget']}"
        for case in cases
        if case["seconds"] > case["budget"]
    ]
    adult = {case["budget"]: case["test_accuracy"] for case in cases if case["data"] == "adult"}
    if adult.get(120, 1.0) < LEAST_ADULT:
        found.append(f"adult has {_percent(adult[120])} of {_percent(LEAST_ADULT)} in 120 s")
    if {30, 60} <= adult.keys() and adult[30] < adult[60] - MOST_LOSS:
        found.append(f"adult has {_percent(adult[30])} in 30 s, and {_percent(adult[60])} in 60 s")
    return verdict(found)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
