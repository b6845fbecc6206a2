"""What the benchmark of linear SVMs found, as the pages tell it. The records here are made up."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    spec = importlib.util.spec_from_file_location("linear_results", DOCS / "linear_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("result_tables", None)


def fit(name: str, ratio: float, bar: float, *, miss: float = 1e-5, peer_miss: float = 1e-5) -> dict[str, Any]:
    return {
        "name": name,
        "peer": "scikit-learn LinearSVC",
        "ours_s": 0.01,
        "peer_s": 0.01 * ratio,
        "ratio": ratio,
        "bar": bar,
        "our_tol": 0.1,
        "our_suboptimality": miss,
        "our_solver": "newton",
        "peer_suboptimality": peer_miss,
    }


SEARCH = {
    "name": "a9a, 20 values of C, 5 folds",
    "peer": "GridSearchCV(LinearSVC)",
    "ours_s": 0.25,
    "peer_s": 10.0,
    "ratio": 40.0,
    "bar": 10,
    "our_best_score": 0.8477,
    "peer_best_score": 0.8476,
}


def test_a_missed_bar_is_named_with_its_numbers(pages):
    text = pages.section({"cases": [fit("a9a, squared_hinge", 4.8, 4), fit("ijcnn1, squared_hinge", 3.7, 5)]})
    assert "Missed: ijcnn1, squared hinge is 3.7 times as fast as scikit-learn LinearSVC, and the bar is 5." in text
    assert "a9a, squared hinge is" not in text


def test_a_result_that_is_not_good_enough_is_a_miss(pages):
    assert "misses the best by 1e-03" in pages.section({"cases": [fit("a9a, hinge", 4.8, 4, miss=1e-3)]})


def test_a_peer_that_misses_the_target_is_reported(pages):
    text = pages.section({"cases": [fit("w8a, hinge", 2.0, 1.2, peer_miss=4e-4), SEARCH]})
    assert "does not come within 0.0001 of the best with any tolerance on w8a, hinge." in text
    assert "No bar is missed." in text
    assert "40.0 ×" in text


def test_the_readme_has_a_line_for_each_peer(pages):
    lines = pages.summary({"cases": [fit("a9a, hinge", 4.0, 1), fit("w8a, hinge", 9.0, 1), SEARCH]})
    assert [line[0] for line in lines] == [
        "2 fits, hinge, geometric mean",
        "20 values of C, 5 folds, 1 sets, geometric mean",
    ]
    assert lines[0][-1] == "6.0 ×"
