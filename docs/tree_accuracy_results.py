"""What benchmarks/results/tree_accuracy.json says, as tables and sentences. Called by docs/generate.py.

A peer that was not installed, or did not end, is named with the reason; its cells say "–".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean, stdev
from typing import Any

from result_tables import table

SIDES = {
    "default": "Margrove, defaults",
    "command_line": "Margrove, `margrove train --model tree`",
    "cart": "Margrove, like CART",
    "c45": "Margrove, like C4.5",
    "sklearn": "scikit-learn, one-hot",
    "rpart": "rpart",
    "rpart_1se": "rpart, 1-SE",
    "ctree": "partykit's ctree",
    "j48": "Weka's J48",
}
# The bar that benchmarks/tree_accuracy.py states in words.
PEERS = {"cart": "rpart_1se", "c45": "j48"}
GAP = 0.01
SETTINGS = (
    "Ten stratified folds, the same for every side. Like CART: gini, subsets of levels, the price of a leaf by five folds."
    " Like C4.5: gain ratio, a branch for each level, pessimistic pruning at 0.25. scikit-learn's tree is grown to its end"
    " behind `SimpleImputer` and `OneHotEncoder`. rpart, ctree and J48 have their defaults; *1-SE* is grown with `cp = 0`"
    " and pruned by rpart's own ten folds and the rule of one standard error. Missing cells: each as it takes them."
)


def section(result: dict[str, Any]) -> str:
    """Accuracy, leaves and times of each side, and where we are below the peer we mean to match."""
    cases = result["cases"]
    lines = [
        SETTINGS,
        "Accuracy in percent ± its standard error over the folds:",
        _table(cases, lambda side: f"{100 * side['accuracy']:.2f} ± {100 * side['standard_error']:.2f}", _mean_accuracy),
        "Leaves, mean over the folds:",
        _table(cases, lambda side: f"{side['leaves']:,.0f}"),
        "Processor time of a fit, one thread; J48 tells elapsed time only, and its Java machine begins cold:",
        _table(cases, lambda side: _time(side["seconds"])),
        *_left_out(cases),
        _missed(cases),
    ]
    return "\n\n".join(lines)


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Nothing for the README: these are no times."""
    return []


def _table(cases: list[dict[str, Any]], cell: Any, last: Any = None) -> str:
    head = ["", *(f"{case['data']}, {case['rows']:,} × {case['columns']}" for case in cases)]
    rows = []
    for side, name in SIDES.items():
        found = [case["sides"].get(side, {}) for case in cases]
        row = [name, *(cell(each) if "accuracy" in each else "–" for each in found)]
        rows.append([*row, last(found)] if last else row)
    return table([*head, "mean"] if last else head, rows)


def _mean_accuracy(found: list[dict[str, Any]]) -> str:
    is_whole = all("accuracy" in side for side in found)
    return f"{100 * fmean(side['accuracy'] for side in found):.2f}" if is_whole else "–"


def _left_out(cases: list[dict[str, Any]]) -> Iterator[str]:
    """One sentence on the sides that some set is without, if there are any."""
    why: dict[str, list[str]] = {}
    for case in cases:
        for side, found in case["sides"].items():
            if "absent" in found:
                why.setdefault(f"{SIDES[side]} ({found['absent']})", []).append(case["data"])
    if why:
        yield "Left out: " + "; ".join(f"{side} on {', '.join(sets)}" for side, sets in why.items()) + "."


def _missed(cases: list[dict[str, Any]]) -> str:
    found = list(_misses(cases))
    return f"Missed: {'; '.join(found)}." if found else "The bar is not missed."


def _misses(cases: list[dict[str, Any]]) -> Iterator[str]:
    for case in cases:
        for side, peer in PEERS.items():
            ours, theirs = (case["sides"].get(name, {}).get("folds") for name in (side, peer))
            if not ours or not theirs:
                continue
            below = [b - a for a, b in zip(ours, theirs, strict=True)]
            if fmean(below) > GAP:
                noise = stdev(below) / math.sqrt(len(below))
                points = f"{100 * fmean(below):.1f} ± {100 * noise:.1f} points below {SIDES[peer]}"
                yield f"on {case['data']} {SIDES[side]} is {points}"


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{seconds * 1000:.2g} ms"
