"""The page of benchmarks tells what train takes on real tables, and every bar that is missed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

import auto_results


def case(data: str, accuracy: float, seconds: float, budget: int = 120) -> dict[str, Any]:
    return {
        "data": data, "rows": 1000, "test_rows": 500, "test_accuracy": accuracy, "estimate": 0.87, "low": 0.86,
        "high": 0.88, "method": "hold-out", "baseline": 0.76, "learner": "decision tree", "seconds": seconds,
        "budget": budget, "certificate_holds": True,
    }  # fmt: skip


def test_every_table_has_a_line_with_what_was_taken() -> None:
    text = auto_results.section({"cases": [case("adult", 0.868, 100.4), case("letter", 0.97, 59.0)]})
    assert (
        "| adult, 1,000 rows | decision tree | 86.8 % | 87.0 % | 86.0 … 88.0 % | hold-out | 76.0 % | 100 | 120 |"
        in text
    )
    assert "| letter, 1,000 rows |" in text
    assert "No bar is missed." in text


def test_misses_are_reported() -> None:
    text = auto_results.section({"cases": [case("adult", 0.85, 130.0)]})
    assert "Missed: adult took 130 s of 120; adult has 85.0 % of 86.3 % in 120 s." in text
    text = auto_results.section({"cases": [case("adult", 0.84, 29.0, 30), case("adult", 0.87, 50.0, 60)]})
    assert "Missed: adult has 84.0 % in 30 s, and 87.0 % in 60 s." in text
