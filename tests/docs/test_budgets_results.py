"""The page of benchmarks tells how long each run took, what it did, and every budget that was missed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

import budgets_results


def test_every_run_has_a_line_and_a_missed_budget_is_named() -> None:
    train = {"run": "a train 3", "budget": 3, "seconds": 4.04, "is_within": True, "has_model": True}
    train |= {"is_certified": False, "has_report": True}
    compare = {"run": "a compare 3", "budget": 3, "seconds": 6.0, "is_within": False, "learners": 8, "done": 2}
    text = budgets_results.section({"cases": [train, {**compare, "certified": 1}]})
    assert "| a train 3 | 3 | 4.0 | model, report |" in text
    assert "| a compare 3 | 3 | 6.0 | 2 of 8 learners, 1 certificates |" in text
    assert "Missed: a compare 3 took 6.0 s of 3." in text
