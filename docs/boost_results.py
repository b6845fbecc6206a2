"""What benchmarks/results/boost.json says, as a table and sentences. Called by docs/generate.py.

The file may hold some data sets only: a run writes each as it ends, and ``--only`` leaves the others as they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from result_tables import in_print, line_of, table, times, verdict

WITH_BARS = ("synthetic", "magic04", "a9a", "covtype_sample")  # the data sets of which benchmarks/boost.py has bars
SAME_ERROR = 1e-9  # weighted errors that differ by less, in any round, are the same but for rounding


def section(result: dict[str, Any]) -> str:
    """Every fit, how far its errors are scikit-learn's, and every bar that is missed."""
    cases = result["cases"]
    head = ["", "boosted", "one thread", "two threads", "scikit-learn", "bar, one thread", "error", "scikit-learn's"]
    absent = [name for name in WITH_BARS if name not in {case["data"] for case in cases}]
    lines = [
        "Whole fits of `AdaBoostClassifier`, ours and scikit-learn's, which boosts its exact trees on one thread; each"
        " side's best run counts. Behind our times: how many times as fast. The errors are of the training rows, after"
        " the last round. covtype_sample: the commonest class against the rest, unless it says otherwise.",
        table(head, [_row(case) for case in cases]),
        _sameness(cases),
        f"Not measured yet: {', '.join(absent)}." if absent else "",
        verdict(_misses(cases)),
    ]
    return "\n\n".join(line for line in lines if line)


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Lines for the README: name, peer, our time, theirs, times as fast."""
    rows = []
    for depth, thresholds in dict.fromkeys(_kind(case) for case in result["cases"]):
        cases = [case for case in result["cases"] if _kind(case) == (depth, thresholds)]
        sets = f"{len(cases)} set{'' if len(cases) == 1 else 's'}"
        name = f"{_words(depth, thresholds)}, boosted on {sets}, one thread, geometric mean"
        rows.append(line_of(name, "sklearn.ensemble.AdaBoostClassifier", cases, "one_thread", "sklearn"))
    return rows


def _row(case: dict[str, Any]) -> list[str]:
    return [
        f"{case['data']}, {case['rows']:,} × {case['columns']}, {case['rounds']} rounds",
        _words(*_kind(case)),
        f"{in_print(case['one_thread'])} ({times(case['ratio'])})",
        f"{in_print(case['two_threads'])} ({times(case['ratio_two'])})",
        in_print(case["sklearn"]),
        "" if case["bar"] is None else f"{case['bar']:g} ×",
        f"{case['training_error']:.4f}",
        f"{case['sklearn_training_error']:.4f}",
    ]


def _sameness(cases: list[dict[str, Any]]) -> str:
    """Whether the exact learners have scikit-learn's weighted errors, round by round."""
    exact = [case for case in cases if "rounds_that_differ" in case]
    if not exact:
        return ""
    n_rounds, n_differ = (sum(case[key] for case in exact) for key in ("rounds", "rounds_that_differ"))
    if n_differ:
        where = ", ".join(_where(case) for case in exact if case["rounds_that_differ"])
        return f"The weighted errors of {n_differ} of {n_rounds} rounds of exact trees are not scikit-learn's: {where}."
    largest = max(case["largest_difference_of_errors"] for case in exact)
    return f"In all {n_rounds} rounds of exact trees the weighted error is scikit-learn's, up to {largest:.0e}."


def _misses(cases: list[dict[str, Any]]) -> Iterator[str]:
    for case in cases:
        if case["bar"] is not None and case["ratio"] < case["bar"]:
            yield f"{_where(case)} is {case['ratio']:.1f} times as fast as scikit-learn, and the bar is {case['bar']:g}"
        if case.get("largest_difference_of_errors", 0.0) > SAME_ERROR:
            yield f"the errors of {_where(case)} are not scikit-learn's in {case['rounds_that_differ']} rounds"


def _kind(case: dict[str, Any]) -> tuple[int, str]:
    return case["depth"], case["thresholds"]


def _words(depth: int, thresholds: str) -> str:
    how = "exact" if thresholds == "exact" else "from bins"
    return f"stumps, {how}" if depth == 1 else f"depth {depth}, {how}"


def _where(case: dict[str, Any]) -> str:
    return f"{case['data']} ({_words(*_kind(case))})"
