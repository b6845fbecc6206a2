"""What the benchmark of AdaBoost found, as the pages tell it. The records here are made up."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _case(data: str, depth: int, thresholds: str, ratio: float, bar: float | None) -> dict[str, Any]:
    case: dict[str, Any] = {
        "data": data,
        "rows": 19020,
        "columns": 10,
        "classes": 2,
        "rounds": 50,
        "depth": depth,
        "thresholds": thresholds,
        "bar": bar,
        "one_thread": 0.04,
        "two_threads": 0.02,
        "sklearn": 0.04 * ratio,
        "ratio": ratio,
        "ratio_two": 2 * ratio,
        "training_error": 0.16467,
        "sklearn_training_error": 0.16467,
    }
    if thresholds == "exact":
        case |= {"largest_difference_of_errors": 8e-14, "rounds_that_differ": 0}
    return case


CASES = [
    _case("magic04", 1, "exact", 64.0, 50.0),
    _case("magic04", 3, "histogram", 41.0, 40.0),
    _case("seven", 1, "exact", 25.0, None),
]


@pytest.fixture
def boost_results(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("docs_boost_results", ROOT / "docs" / "boost_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def record() -> dict[str, Any]:
    return {"cases": copy.deepcopy(CASES)}


def test_every_fit_has_a_row(boost_results: Any, record: dict[str, Any]) -> None:
    text = boost_results.section(record)
    row = "| 40 ms (64.0 ×) | 20 ms (128.0 ×) | 2.56 s | 50 × | 0.1647 | 0.1647 |"
    assert f"| magic04, 19,020 × 10, 50 rounds | stumps, exact {row}" in text
    assert "| depth 3, from bins |" in text
    assert "| seven, 19,020 × 10, 50 rounds | stumps, exact | 40 ms (25.0 ×) | 20 ms (50.0 ×) | 1 s |  |" in text
    assert "In all 100 rounds of exact trees the weighted error is scikit-learn's, up to 8e-14." in text
    assert text.endswith("No bar is missed.")


def test_the_readme_gets_a_line_for_each_kind_of_learner(boost_results: Any, record: dict[str, Any]) -> None:
    peer = "`sklearn.ensemble.AdaBoostClassifier`"
    assert boost_results.summary(record) == [
        (
            "stumps, exact, boosted on 2 sets, one thread, geometric mean",
            peer,
            "0.08 s in all",
            "3.56 s in all",
            "40.0 ×",
        ),
        (
            "depth 3, from bins, boosted on 1 set, one thread, geometric mean",
            peer,
            "0.04 s in all",
            "1.64 s in all",
            "41.0 ×",
        ),
    ]


def test_every_bar_that_is_missed_is_listed(boost_results: Any, record: dict[str, Any]) -> None:
    record["cases"][0] |= {"ratio": 48.0, "largest_difference_of_errors": 1e-3, "rounds_that_differ": 4}
    record["cases"][1]["ratio"] = 39.0
    record["cases"][2]["ratio"] = 2.0  # has no bar
    *_, sameness, _, missed = boost_results.section(record).split("\n\n")
    assert sameness == (
        "The weighted errors of 4 of 100 rounds of exact trees are not scikit-learn's: magic04 (stumps, exact)."
    )
    assert missed == (
        "Missed: magic04 (stumps, exact) is 48.0 times as fast as scikit-learn, and the bar is 50; the errors of "
        "magic04 (stumps, exact) are not scikit-learn's in 4 rounds; magic04 (depth 3, from bins) is 39.0 times as "
        "fast as scikit-learn, and the bar is 40."
    )


def test_what_has_a_bar_and_was_not_measured_is_named(boost_results: Any, record: dict[str, Any]) -> None:
    assert "Not measured yet: synthetic, a9a, covtype_sample." in boost_results.section(record)
    record["cases"] = [_case(name, 1, "exact", 60.0, 50.0) for name in boost_results.WITH_BARS]
    assert "Not measured" not in boost_results.section(record)


def test_learners_from_bins_alone_will_do(boost_results: Any, record: dict[str, Any]) -> None:
    record["cases"] = record["cases"][1:2]
    assert "weighted error" not in boost_results.section(record)
