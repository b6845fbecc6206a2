"""What benchmarks/results/codes.json says, as a table and sentences. Called by docs/generate.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from result_tables import table, times, verdict

BAR = 10.0  # times as fast as OutputCodeClassifier of the same number of columns


def section(result: dict[str, Any]) -> str:
    """Every scheme: its code, its time beside scikit-learn's, its kernel rows, its accuracy; and every bar missed."""
    cases = result["cases"]
    rows = next((case["margrove"]["rows"] for case in cases), 0)
    head = ["", "machines", "distance", "Margrove", "scikit-learn", "kernel rows", "accuracy", "scikit-learn's"]
    return "\n\n".join(
        [
            f"letter, {rows:,} rows, `SVC(C={cases[0]['C']:g}, gamma={cases[0]['gamma']:g})`; every fit in a fresh"
            " process, the sides in turns, each side's best run counts. Behind scikit-learn's time: how many times as"
            " fast Margrove is. A pair of one-vs-one has kernel rows of its own classes' rows alone.",
            table(head, [_row(case) for case in cases]),
            verdict(_misses(cases)),
        ]
    )


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Lines for the README: name, peer, our time, theirs, times as fast."""
    return [
        (
            f"letter by {case['scheme']}",
            "`OutputCodeClassifier(SVC())`",
            _s(case["margrove"]["seconds"]),
            _s(case["sklearn"]["seconds"]),
            times(case["ratio_sklearn"]),
        )
        for case in result["cases"]
        if _has_bar(case) and "ratio_sklearn" in case
    ]


def _row(case: dict[str, Any]) -> list[str]:
    ours, theirs = case["margrove"], case.get("sklearn")
    peer = "" if theirs is None else f"{_s(theirs['seconds'])} ({case['ratio_sklearn']:.1f} ×)"
    if theirs is not None and theirs.get("stopped"):
        peer = f"> {peer}"
    accuracy = "" if theirs is None or "accuracy" not in theirs else _percent(theirs["accuracy"])
    return [
        case["scheme"],
        f"{ours['machines']:,}",
        f"{ours['min_distance']:g}",
        _s(ours["seconds"]),
        peer,
        f"{ours['kernel_rows']:,}",
        _percent(ours["accuracy"]),
        accuracy,
    ]


def _misses(cases: list[dict[str, Any]]) -> Iterator[str]:
    for case in cases:
        if not _has_bar(case):
            continue
        if case.get("ratio_sklearn", BAR) < BAR:
            yield f"{case['scheme']} is {case['ratio_sklearn']:.1f} times as fast, and the bar is {BAR:g}"
        ours = case["margrove"]
        if ours["kernel_rows"] > ours["rows"]:
            yield f"{case['scheme']} computed {ours['kernel_rows']:,} kernel rows of {ours['rows']:,}"


def _has_bar(case: dict[str, Any]) -> bool:
    return "bits" in case["scheme"]


def _s(seconds: float) -> str:
    return f"{seconds:.3g} s"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
