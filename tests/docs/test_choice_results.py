"""The page of benchmarks tells how what train takes compares with default peers, and every bar that is missed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

import choice_results


def case(data: str, ours: float, best: float) -> dict[str, Any]:
    return {
        "data": data, "rows": 1000, "test_rows": 500, "margrove": ours, "lightgbm": best,
        "hist_gradient_boosting": best - 0.01, "random_forest": best - 0.02, "difference": ours - best,
        "standard_error": 0.01, "learner": "random forest of 300 trees", "seconds": 50.0, "cpu_seconds": 80.0,
        "processor_clock": False,
    }  # fmt: skip


def test_every_table_has_a_line_and_there_is_a_mean() -> None:
    text = choice_results.section({"cases": [case("car", 0.99, 0.98), case("adult", 0.87, 0.875)]})
    line = "| car, 1,000 rows | 99.0 % | 98.0 % | 97.0 % | 96.0 % | +1.0 | random forest of 300 trees | 50 | 80 |"
    assert line in text
    assert "| mean | 93.0 % | 92.8 % |" in text
    assert "On 1 of 2 tables the command is at least as good as the best peer." in text
    assert "No bar is missed." in text


def test_misses_are_reported() -> None:
    text = choice_results.section({"cases": [case("car", 0.95, 0.98)]})
    assert "the mean is below that of LightGBM" in text
    assert "car is 3.0 points below the best peer" in text
