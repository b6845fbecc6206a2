"""What benchmarks/results/budgets.json says, as a table and sentences. Called by docs/generate.py."""

from __future__ import annotations

from typing import Any

from result_tables import table, verdict


def section(result: dict[str, Any]) -> str:
    """The seconds of each run, and what did not fit into its budget."""
    cases = result["cases"]
    return "\n\n".join(
        [
            "Seconds from the start of Python to its end. What does not fit into a budget is left out and named.",
            table(["", "budget", "seconds", "done in it"], [_row(case) for case in cases]),
            verdict(
                f"{case['run']} took {case['seconds']:.1f} s of {case['budget']}"
                for case in cases
                if not case["is_within"]
            ),
        ]
    )


def _row(case: dict[str, Any]) -> list[str]:
    if "learners" in case:
        done = f"{case['done']} of {case['learners']} learners, {case['certified']} certificates"
    else:
        parts = {"model": "has_model", "certificate": "is_certified", "report": "has_report"}
        done = ", ".join(name for name, key in parts.items() if case[key])
    return [case["run"], f"{case['budget']}", f"{case['seconds']:.1f}", done]
