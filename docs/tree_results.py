"""What benchmarks/results/tree.json says, as tables and sentences. Called by docs/generate.py.

The file may hold some parts only: a run writes each as it ends, and ``--only`` leaves the others as they were.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from result_tables import geometric_mean, in_print, line_of, table, times, verdict

# The bars that benchmarks/tree.py states in words.
LEAST_BAR, MEAN_BAR = 4.0, 15.0  # times as fast as scikit-learn on one thread: the slowest case, the geometric mean
THREADS_BAR, LONG = 1.6, 0.05  # two threads against one, where one takes longer than so many seconds
BOOST_LEAST_BAR, BOOST_MEAN_BAR = 6.0, 20.0  # the same of boosting to depth 3
FIT_BAR = 4.0  # times as fast as LightGBM, bins included
ACCURACY_GAP = 0.005
TABLE_BAR = 5.0  # times as fast as scikit-learn's one-hot pipeline
TABLE_GAP = 0.01
PREDICTION_BAR = 3.0
MEMORY_BARS = {"exact": 3.0, "histogram": 1.5}  # times the float32 data
PARTS = ("exact", "regression", "boosting", "histogram", "categorical", "prediction", "memory")


def is_there(result: dict[str, Any]) -> bool:
    """Whether anything was measured."""
    return any(result.get(part) for part in PARTS)


def section(result: dict[str, Any]) -> str:
    """Each part, and every bar that is missed."""
    parts = (_exact, _regression, _boosting, _histogram, _categorical, _prediction, _memory)
    lines = [
        "The sides take turns in one process, and each side's best run counts.",
        *(line for name, part in zip(PARTS, parts, strict=True) for line in part(result.get(name) or [])),
        verdict(_misses(result)),
    ]
    return "\n\n".join(line for line in lines if line)


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Lines for the README: name, peer, our time, theirs, times as fast."""
    rows = []
    for part, cases in (("", _gini(result)), ("regression ", result.get("regression") or [])):
        if cases:
            sets = len({case["data"] for case in cases})
            worst = min(case["ratio"] for case in cases)
            name = f"exact {part}trees on {sets} sets, one thread, geometric mean (slowest {worst:.1f} ×)"
            peer = f"sklearn.tree.DecisionTree{'Regressor' if part else 'Classifier'}"
            rows.append(line_of(name, peer, cases, "one_thread", "sklearn"))
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
        "Exact growth to full depth (MNIST: depth 10) and to depth 8 against scikit-learn's `DecisionTreeClassifier`,"
        " which has one thread. Behind our times: how many times as fast. One-hot columns are numbers, not categories."
    )
    yield _growth_table(cases, lambda case: f", {case['classes']} classes: {case['nature']}")
    by_gini, by_entropy = ([c for c in cases if c["criterion"] == name] for name in ("gini", "entropy"))
    yield f"By gini: {_spread(by_gini)}. By entropy: {_spread(by_entropy)}. {_equal_impurity(cases)}"


def _regression(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    yield "The same for `DecisionTreeRegressor`; the last column of each set is predicted from the others."
    yield _growth_table(cases, lambda case: "")
    yield f"In all: {_spread(cases)}. {_equal_impurity(cases)}"


def _boosting(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    yield (
        f"`AdaBoostClassifier` of {cases[0]['rounds']} exact trees of depth 3, one thread, and the errors in training."
    )
    rows = [
        [
            f"{case['data']}, {case['rows']:,} × {case['columns']:,}",
            f"{in_print(case['one_thread'])} ({times(case['ratio'])})",
            in_print(case["sklearn"]),
            f"{case['training_error']:.4f}",
            f"{case['sklearn_training_error']:.4f}",
        ]
        for case in cases
    ]
    yield table(["", "one thread", "scikit-learn", "error", "scikit-learn's"], rows)
    yield f"In all: {_spread(cases)}."


def _growth_table(cases: list[dict[str, Any]], more: Callable[[dict[str, Any]], str]) -> str:
    rows = [
        [
            f"{case['data']}, {case['rows']:,} × {case['columns']:,}{more(case)}",
            case["criterion"],
            "full" if case["max_depth"] is None else str(case["max_depth"]),
            f"{in_print(case['one_thread'])} ({times(case['ratio'])})",
            f"{in_print(case['two_threads'])} ({times(case['ratio_two'])})",
            in_print(case["sklearn"]),
        ]
        for case in cases
    ]
    return table(["", "criterion", "depth", "one thread", "two threads", "scikit-learn"], rows)


def _spread(cases: list[dict[str, Any]]) -> str:
    """The mean factor and the least one, with its set."""
    worst = min(cases, key=lambda case: case["ratio"])
    return (
        f"geometric mean {geometric_mean(cases):.1f} × on one thread, slowest {worst['ratio']:.1f} × ({worst['data']})"
    )


def _equal_impurity(cases: list[dict[str, Any]]) -> str:
    pairs = [(case["impurity_at_depth_6"], case["sklearn_impurity_at_depth_6"]) for case in cases]
    gap = max(abs(ours - theirs) / max(abs(theirs), 1e-300) for ours, theirs in pairs)
    return f"At depth 6 the mean impurity of the leaves differs from scikit-learn's by a share of {gap:.1g} at most."


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
    for part, cases in (("trees", _gini(result)), ("regression trees", result.get("regression") or [])):
        for case in cases:
            depth = "full depth" if case["max_depth"] is None else f"depth {case['max_depth']}"
            if case["ratio"] < LEAST_BAR:
                words = f"{case['ratio']:.1f} times as fast as scikit-learn's"
                yield f"{part} of {case['data']} at {depth} are {words}, and the bar is {LEAST_BAR:g}"
            gain = case["one_thread"] / case["two_threads"]
            if case["one_thread"] > LONG and gain < THREADS_BAR:
                words = f"{gain:.2f} times as fast as one on {part} of {case['data']} at {depth}"
                yield f"two threads are {words}, and the bar is {THREADS_BAR:g}"
        if cases and geometric_mean(cases) < MEAN_BAR:
            yield f"the geometric mean of {part} is {geometric_mean(cases):.1f}, and the bar is {MEAN_BAR:g}"
    boosted = result.get("boosting") or []
    for case in boosted:
        if case["ratio"] < BOOST_LEAST_BAR:
            words = f"{case['ratio']:.1f} times as fast as scikit-learn's"
            yield f"boosting of {case['data']} is {words}, and the bar is {BOOST_LEAST_BAR:g}"
    if boosted and geometric_mean(boosted) < BOOST_MEAN_BAR:
        yield f"the geometric mean of boosting is {geometric_mean(boosted):.1f}, and the bar is {BOOST_MEAN_BAR:g}"
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
