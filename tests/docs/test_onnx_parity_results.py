"""What the benchmark of ONNX files found, as the pages tell it. The records here are made up."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = [
    {"data": data, "model": model, "rows": 1234, "labels_that_differ": 0, "onnx_s": 0.002, "ours_s": 0.01, **numbers}
    for data, model, numbers in (
        ("titanic", "tree", {"probabilities": 0.0}),
        ("titanic", "linear SVM", {"scores": 3e-14}),
        ("adult", "linear SVM", {"scores": 1e-15, "probabilities": 2e-10}),
    )
]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("docs_onnx_results", ROOT / "docs" / "onnx_parity_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_set_has_a_row_and_every_model_a_column(results: Any) -> None:
    text = results.section({"cases": CASES})
    assert "|  | tree | linear SVM |" in text
    assert "| titanic, 1,234 rows | 0 | 3e-14 |" in text
    assert "| adult, 1,234 rows |  | 2e-10 |" in text
    assert "| titanic, 1,234 rows | 2 / 10 | 2 / 10 |" in text
    assert "Of 3,702 labels on 2 sets none differs, and no number by more than 2e-10" in text


def test_a_difference_is_reported(results: Any) -> None:
    cases = copy.deepcopy(CASES)
    cases[1]["scores"], cases[2]["labels_that_differ"] = 2e-5, 3
    text = results.section({"cases": cases})
    assert "Missed: linear SVM on titanic (2e-05, 0 labels); linear SVM on adult (2e-10, 3 labels)." in text
