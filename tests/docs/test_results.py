"""What the benchmarks of searches, calibration and trees found, as the pages tell it. The records here are made up."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

SEARCH: dict[str, Any] = {
    "benchmark": "search",
    "bar": "some",
    "search": [
        {
            "data": name,
            "rows": 4000,
            "fits": 240,
            "margrove_seconds": 2.0,
            "sklearn_seconds": 2.0 * ratio,
            "intelex_seconds": 40.0,
            "ratio_sklearn": ratio,
            "ratio_intelex": 20.0,
            "worst_score_gap_sklearn": 0.0005,
            "liquidsvm_seconds_per_fit": 0.01,
            "margrove_seconds_per_fit": 2.0 / 240,
        }
        for name, ratio in (("letter", 25.0), ("a9a", 64.0))
    ],
    "path": [
        {
            "data": "a9a",
            "gamma": 0.01,
            "path": 5.0,
            "hardest": 2.0,
            "all_alone": 12.0,
            "times_the_hardest": 2.5,
            "status": "converged",
        }
    ],
    "leave_one_out": {
        "data": "spambase",
        "rows": 2000,
        "margrove": {"seconds": 1.5, "error": 0.07, "bound": 0.3, "solves": 600},
        "sklearn": {"seconds": 90.0, "error": 0.07},
        "ratio": 60.0,
    },
}


def _module(name: str) -> ModuleType:
    if str(ROOT / "docs") not in sys.path:  # the pages share their tables: docs/generate.py puts it there too
        sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results() -> ModuleType:
    return _module("search_results")


@pytest.fixture
def record() -> dict[str, Any]:
    return copy.deepcopy(SEARCH)


def test_a_search_becomes_a_section(results, record):
    text = results.section(record)
    assert "| letter, 4,000 rows | 2 s | 50 s (25.0 ×) | 40 s (20.0 ×) | 8.33 ms | 10 ms | 0.0005 |" in text
    assert "Geometric mean (and the worst case): 40.0 × scikit-learn (25.0 ×); 20.0 ×" in text
    assert "| a9a, γ = 0.01 | 5 s | 2 s | 12 s | 2.50 |" in text
    assert "600 solves" in text
    assert "No bar is missed." in text


def test_the_readme_gets_a_line_for_each_peer(results, record):
    lines = results.summary(record)
    assert lines[0][:3] == ("2 searches of 240 fits, geometric mean", "`GridSearchCV, scikit-learn SVC`", "4 s in all")
    assert lines[0][4] == "40.0 ×"
    assert lines[-1] == ("leave-one-out of 2,000 rows", "`cross_val_score(SVC, LeaveOneOut)`", "1.5 s", "90 s", "60 ×")


def test_every_bar_that_is_missed_is_listed(results, record):
    record["search"][0] |= {"ratio_sklearn": 9.0, "ratio_intelex": 4.0, "worst_score_gap_sklearn": 0.003}
    record["search"][1]["margrove_seconds_per_fit"] = 0.02
    record["search"][1]["ratio_sklearn"] = 16.0
    record["path"][0] |= {"times_the_hardest": 3.4, "status": "stalled"}
    record["leave_one_out"]["ratio"] = 40.0
    missed = results.section(record).splitlines()[-1]
    assert missed.startswith("Missed: ")
    for words in (
        "12.0 times as fast as scikit-learn in the geometric mean, and the bar is 30",
        "8.9 times as fast as scikit-learn-intelex in the geometric mean, and the bar is 10",
        "the search of letter is 9.0 times as fast as scikit-learn, and the bar is 15",
        "the search of letter is 4.0 times as fast as scikit-learn-intelex, and the bar is 5",
        "a score of letter is 0.0030 off scikit-learn's, and the bar is 0.002",
        "a fit of a9a takes 20 ms, and liquidSVM 10 ms",
        "the path of a9a takes 3.40 times the hardest value alone, and the bar is 3",
        "the path of a9a ended as stalled",
        "leave-one-out is 40.0 times as fast, and the bar is 50",
    ):
        assert words in missed
    assert missed.count(";") == 8


@pytest.mark.parametrize("part", ["search", "path", "leave_one_out"])
def test_a_part_alone_will_do(results, record, part):
    alone = {"benchmark": "search", part: record[part]}
    assert results.is_there(alone)
    assert results.section(alone).endswith("No bar is missed.")
    results.summary(alone)


def test_a_peer_that_was_left_out_is_not_named(results, record):
    for case in record["search"]:
        del case["ratio_intelex"], case["intelex_seconds"]
    assert "intelex" not in results.section(record)
    assert len(results.summary(record)) == 2


def test_the_pages_describe_a_measured_search(tmp_path, monkeypatch, record):
    generate = _module("generate")
    (tmp_path / "search.json").write_text(json.dumps(record))
    (tmp_path / "calibration.json").write_text('{"cases": []}')
    (result,) = generate.read_results(tmp_path)
    assert generate.section(result).startswith("## search\n\nBar: some\n\n")
    assert "| search: leave-one-out of 2,000 rows |" in generate.summary([result])
    (tmp_path / "search.json").write_text('{"benchmark": "search", "search": []}')
    assert generate.read_results(tmp_path) == []


# ---- calibration


def _side(brier: float, at_odds: float) -> dict[str, Any]:
    bins = {"rows": [50.0, 0.0, 50.0], "said": [10.0, 0.0, 40.0], "true": [8.0, 0.0, 44.0]}
    return {"brier": brier, "log_loss": 0.4, "ece": 0.02, "accuracy": 0.9, "at_odds": at_odds, "bins": bins}


def _case(name: str, classes: Any, excess: float) -> dict[str, Any]:
    sides = {
        side: _side(brier, odds)
        for side, brier, odds in (
            ("margrove", 0.1, 0.0),
            ("without_law", 0.1, 0.01),
            ("sklearn", 0.1 - excess, 0.02),
            ("sklearn_ensemble", 0.1, 0.03),
        )
    }
    same = {key: {"mean": 0.0, "standard_error": 0.001} for key in ("brier", "log_loss", "ece", "accuracy")}
    other = same | {"brier": {"mean": excess, "standard_error": 0.001}}
    excesses = {"excess_over_without_law": same, "excess_over_sklearn": other, "excess_over_sklearn_ensemble": same}
    return {"data": name, "classes": classes, "n_train": 3000.0, "n_test": 3000.0, "moved": 0.01, **sides, **excesses}


def test_calibration_is_described_and_drawn(tmp_path):
    results = _module("calibration_results")
    record = {"benchmark": "calibration", "cases": [_case("worse", 2, 0.02), _case("better", "many", -0.02)]}
    text = results.section(record)
    assert "| worse, 3,000 rows | 0.1000 | 0.1000 | 0.0800 (−) | 0.1000 |" in text
    assert "| better, 3,000 rows | 0.1000 | 0.1000 | 0.1200 (+) | 0.1000 |" in text
    assert "Missed: Brier score on worse (0.1000 against 0.0800 of scikit-learn)." in text
    assert "| worse, 3,000 rows | 0.00% | 1.00% | 2.00% | 3.00% |" in text
    assert "costs more than noise in the Brier score on: no set." in text
    results.draw_reliability(record, tmp_path / "picture.png", 60)
    assert (tmp_path / "picture.png").stat().st_size > 0


def test_a_difference_within_noise_misses_no_bar():
    results = _module("calibration_results")
    text = results.section({"benchmark": "calibration", "cases": [_case("same", 2, 0.0015)]})
    assert "The bar is not missed." in text
    assert "(−)" not in text.split("Behind a number")[0]


def test_calibrated_classifiers_are_described_and_judged_by_the_better_peer():
    results = _module("calibrated_classifier_results")
    case = _case("made up", 2, 0.0) | {"learner": "AdaBoost", "own_ece": 0.3, "isotonic": _side(0.1, 0.0)}
    record = {"benchmark": "calibrated_classifier", "cases": [case]}
    text = results.section(record)
    assert "| made up, AdaBoost | 0.300 | 0.020 | 0.020 | 0.020 | 0.020 | 0.020 |" in text
    assert text.endswith("The bar is not missed.")
    case["sklearn"]["ece"] = 0.005
    assert "Missed: AdaBoost on made up (0.020 against 0.005)." in results.section(record)


# ---- accuracy of trees


def _accuracies(mean: float) -> dict[str, Any]:
    folds = [mean - 0.01, mean + 0.01]
    return {"accuracy": mean, "standard_error": 0.01, "leaves": 1234.4, "seconds": 0.012, "folds": folds}


@pytest.fixture
def trees() -> dict[str, Any]:
    sides = {side: _accuracies(0.95) for side in ("default", "cart", "c45", "rpart_1se", "j48")}
    case = {"data": "vote", "rows": 435, "columns": 16, "classes": 2, "missing": 392, "sides": sides}
    return {"benchmark": "tree_accuracy", "cases": [case]}


def test_accuracies_of_trees_become_tables(trees):
    results = _module("tree_accuracy_results")
    text = results.section(trees)
    assert "|  | vote, 435 × 16 | mean |" in text
    assert "| Weka's J48 | 95.00 ± 1.00 | 95.00 |" in text
    assert "| Weka's J48 | 1,234 |" in text
    assert "| Weka's J48 | 12 ms |" in text
    assert text.endswith("The bar is not missed.")
    assert "Left out" not in text


def test_a_tree_below_its_peer_is_reported_with_the_noise_of_the_difference(trees):
    trees["cases"][0]["sides"]["j48"] = _accuracies(0.97) | {"folds": [0.94, 1.0]}  # 0.00 and 0.04 more
    missed = _module("tree_accuracy_results").section(trees).splitlines()[-1]
    assert missed == "Missed: on vote Margrove, like C4.5 is 2.0 ± 2.0 points below Weka's J48."


def test_a_peer_that_was_not_there_is_named_with_the_reason(trees):
    trees["cases"][0]["sides"]["j48"] = {"absent": "java is not installed"}
    text = _module("tree_accuracy_results").section(trees)
    assert "| Weka's J48 | – | – |" in text
    assert "Left out: Weka's J48 (java is not installed) on vote." in text
    assert text.endswith("The bar is not missed.")
    trees["cases"][0]["sides"]["rpart_1se"] = {"absent": "R has no package rpart"}
    assert _module("tree_accuracy_results").section(trees).endswith("No peer was there to compare with.")


def test_the_cost_of_missing_cells_is_reported_for_sets_that_have_some(trees):
    results = _module("tree_accuracy_results")
    assert "What missing cells" not in results.section(trees)
    trees["cases"][0]["sides"] |= {"c45_filled": _accuracies(0.96), "j48_level": _accuracies(0.94)}
    text = results.section(trees)
    assert "What missing cells (vote 392) cost" in text
    assert "| J48: a level of their own | 94.00 ± 1.00 |" in text
    assert "94.00" not in text.split("What missing cells")[0]
