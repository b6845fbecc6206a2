"""What benchmarks/results/tree.json says, as tables and sentences. Called by docs/generate.py.

The file may hold some parts only: a run writes each as it ends, and ``--only`` leaves the others as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from result_tables import geometric_mean, in_print, line_of, table, times, verdict

# The bars that benchmarks/tree.py states in words.
MEAN_BAR = 12.0  # times as fast as scikit-learn, geometric mean over the cases by gini, one thread
FIT_BAR = 4.0  # times as fast as LightGBM, bins included
ACCURACY_GAP = 0.005
TABLE_BAR = 5.0  # times as fast as scikit-learn's one-hot pipeline
TABLE_GAP = 0.01
PREDICTION_BAR = 3.0
MEMORY_BARS = {"exact": 3.0, "histogram": 1.5}  # times the float32 data
PARTS = ("exact", "histogram", "categorical", "prediction", "memory")


def is_there(result: dict[str, Any]) -> bool:
    """Whether anything was measured."""
    return any(result.get(part) for part in PARTS)


def section(result: dict[str, Any]) -> str:
    """Each part, and every bar that is missed."""
    parts = (_exact, _histogram, _categorical, _prediction, _memory)
    lines = [
        "The sides take turns in one process, and each side's best run counts.",
        *(line for name, part in zip(PARTS, parts, strict=True) for line in part(result.get(name) or [])),
        verdict(_misses(result)),
    ]
    return "\n\n".join(line for line in lines if line)


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Lines for the README: name, peer, our time, theirs, times as fast."""
    rows = []
    cases = _gini(result)
    if cases:
        name = f"{len(cases)} exact trees, one thread, geometric mean"
        rows.append(line_of(name, "sklearn.tree.DecisionTreeClassifier", cases, "one_thread", "sklearn"))
    for part, peer, words, side in (
        ("histogram", "`lightgbm`, one tree", "255 leaves from bins, {}", "lightgbm"),
        ("categorical", "`OneHotEncoder` and tree", "{}, categories as they are", "sklearn"),
    ):
        for case in result.get(part) or []:
            ours, theirs = in_print(case["margrove"]), in_print(case[side])
            rows.append((words.format(case["data"]), peer, ours, theirs, times(case["ratio"])))
    return rows


def _exact(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    yield (
        "Exact growth to full depth (MNIST: depth 10) against scikit-learn's `DecisionTreeClassifier`, which has one"
        " thread. Behind our times: how many times as fast."
    )
    rows = [
        [
            f"{case['data']}, {case['rows']:,} × {case['columns']}, {case['classes']} classes",
            case["criterion"],
            f"{in_print(case['one_thread'])} ({times(case['ratio'])})",
            f"{in_print(case['two_threads'])} ({times(case['ratio_two'])})",
            in_print(case["sklearn"]),
            "" if case["bar"] is None else f"{case['bar']:g} ×",
        ]
        for case in cases
    ]
    yield table(["", "criterion", "one thread", "two threads", "scikit-learn", "bar, one thread"], rows)
    gap = max(abs(case["impurity_at_depth_6"] - case["sklearn_impurity_at_depth_6"]) for case in cases)
    by_gini, by_entropy = (geometric_mean([c for c in cases if c["criterion"] == name]) for name in ("gini", "entropy"))
    yield (
        f"Geometric mean by gini: {by_gini:.1f} × on one thread; by entropy {by_entropy:.1f} ×. At depth 6 the leaves'"
        f" mean impurity differs from scikit-learn's by {gap:.1g} at most."
    )


def _histogram(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    yield (
        "Growth from 255 bins to 255 leaves of 20 rows or more, one thread, against LightGBM's first tree; both cut"
        " bins from all rows. covtype_sample: class 2 against the rest."
    )
    rows = [
        [
            f"{case['data']}, {case['rows']:,} × {case['columns']}",
            in_print(case["margrove"]),
            f"{in_print(case['lightgbm'])} ({times(case['ratio'])})",
            in_print(case["margrove_tree"]),
            f"{in_print(case['lightgbm_tree'])} ({times(case['tree_ratio'])})",
            f"{case['accuracy']:.4f}",
            f"{case['lightgbm_accuracy']:.4f}",
        ]
        for case in cases
    ]
    head = ["", "whole fit", "LightGBM", "without binning", "LightGBM's", "training accuracy", "LightGBM's"]
    yield table(head, rows)


def _categorical(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    yield (
        "Tables with categories as they are, default settings, one thread, against scikit-learn's tree behind"
        " `SimpleImputer` and `OneHotEncoder`; accuracy by ten folds, and for each way to test a category:"
    )
    rows = [
        [
            f"{case['data']}, {case['rows']:,} × {case['columns']}",
            in_print(case["margrove"]),
            f"{in_print(case['sklearn'])} ({times(case['ratio'])})",
            *(f"{case[key]:.4f}" for key in ("accuracy", "sklearn_accuracy", "accuracy_subset")),
            *(f"{case[key]:.4f}" for key in ("accuracy_multiway", "accuracy_one_vs_rest")),
        ]
        for case in cases
    ]
    yield table(["", "fit", "one-hot", "accuracy", "one-hot's", "subset", "multiway", "one_vs_rest"], rows)


def _prediction(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    yield f"`predict` of {cases[0]['rows']:,} rows of 50 columns:"
    rows = [
        [
            "full depth" if case["max_depth"] is None else f"depth {case['max_depth']}",
            f"{in_print(case['one_thread'])} ({times(case['ratio'])})",
            f"{in_print(case['two_threads'])} ({times(case['ratio_two'])})",
            in_print(case["sklearn"]),
        ]
        for case in cases
    ]
    yield table(["", "one thread", "two threads", "scikit-learn"], rows)


def _memory(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    data = cases[0]["data_bytes"] / 1e6
    shares = "; ".join(f"{case['side']} {case['share']:.2f}" for case in cases)
    yield f"Memory that a fit takes beyond its {data:,.0f} MB of float32 data, as a multiple of them: {shares}."


def _misses(result: dict[str, Any]) -> Iterator[str]:
    cases = _gini(result)
    for case in cases:
        if case["ratio"] < case["bar"]:
            yield f"{case['data']} is {case['ratio']:.1f} times as fast as scikit-learn, and the bar is {case['bar']:g}"
    if cases and geometric_mean(cases) < MEAN_BAR:
        yield f"the geometric mean is {geometric_mean(cases):.1f}, and the bar is {MEAN_BAR:g}"
    for case in result.get("exact") or []:
        if case["two_threads"] > case["one_thread"]:
            slower = case["two_threads"] / case["one_thread"]
            yield f"two threads take {slower:.2f} times as long as one on {case['data']} by {case['criterion']}"
    for case in result.get("histogram") or []:
        if case["ratio"] < FIT_BAR:
            words = f"{case['ratio']:.1f} times as fast as LightGBM"
            yield f"growth from bins of {case['data']} is {words}, and the bar is {FIT_BAR:g}"
        if case["tree_ratio"] < 1:
            yield f"the tree alone of {case['data']} is slower than LightGBM's: {case['tree_ratio']:.2f} times as fast"
        if case["accuracy"] < case["lightgbm_accuracy"] - ACCURACY_GAP:
            yield f"the tree of {case['data']} is less accurate than LightGBM's by more than {ACCURACY_GAP}"
    for case in result.get("categorical") or []:
        if case["ratio"] < TABLE_BAR:
            yield f"{case['data']} is {case['ratio']:.1f} times as fast as one-hot, and the bar is {TABLE_BAR:g}"
        if case["accuracy"] < case["sklearn_accuracy"] - TABLE_GAP:
            yield f"{case['data']} is less accurate than one-hot by more than {TABLE_GAP}"
    for case in result.get("prediction") or []:
        best = max(case["ratio"], case["ratio_two"])
        if best < PREDICTION_BAR:
            depth = "full depth" if case["max_depth"] is None else f"depth {case['max_depth']}"
            yield f"prediction at {depth} is {best:.1f} times as fast, and the bar is {PREDICTION_BAR:g}"
    for case in result.get("memory") or []:
        bar = MEMORY_BARS.get(case["side"], math.inf)
        if case["share"] > bar:
            yield f"{case['side']} takes {case['share']:.2f} times the data, and the bar is {bar:g}"


def _gini(result: dict[str, Any]) -> list[dict[str, Any]]:
    return [case for case in result.get("exact") or [] if case["criterion"] == "gini"]
