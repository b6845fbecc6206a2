"""What the benchmark of codes found, as the pages tell it. The records here are made up."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = [
    {
        "scheme": scheme,
        "C": 16.0,
        "gamma": 4.0,
        "margrove": {
            "seconds": 2.0,
            "accuracy": 0.97,
            "rows": 16000,
            "machines": machines,
            "min_distance": distance,
            "kernel_rows": kernel_rows,
        },
        "sklearn": {"seconds": 50.0, "accuracy": 0.96},
        "ratio_sklearn": 25.0,
    }
    for scheme, machines, distance, kernel_rows in (("5 bits", 5, 1.0, 15000), ("one-vs-one", 325, 163.0, 300000))
]


@pytest.fixture
def codes_results(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("docs_codes_results", ROOT / "docs" / "codes_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_scheme_has_a_row_and_only_bit_strings_have_a_bar(codes_results: Any) -> None:
    text = codes_results.section({"cases": CASES})
    assert "| 5 bits | 5 | 1 | 2 s | 50 s (25.0 ×) | 15,000 | 97.00 % | 96.00 % |" in text
    assert "| one-vs-one | 325 | 163 |" in text
    assert text.endswith("No bar is missed.")
    assert [line[0] for line in codes_results.summary({"cases": CASES})] == ["letter by 5 bits"]


def test_a_missed_bar_is_reported(codes_results: Any) -> None:
    cases = copy.deepcopy(CASES)
    cases[0]["ratio_sklearn"] = 9.0
    cases[0]["margrove"]["kernel_rows"] = 16001
    text = codes_results.section({"cases": cases})
    assert "Missed: 5 bits is 9.0 times as fast, and the bar is 10; 5 bits computed 16,001 kernel rows" in text


def test_a_peer_that_was_stopped_or_left_out_is_reported(codes_results: Any) -> None:
    cases = copy.deepcopy(CASES)
    cases[0]["sklearn"] = {"seconds": 900.0, "stopped": True}
    del cases[1]["sklearn"], cases[1]["ratio_sklearn"]
    text = codes_results.section({"cases": cases})
    assert "> 900 s" in text
    assert "| 300,000 | 97.00 % |  |" in text
