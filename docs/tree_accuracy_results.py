"""What benchmarks/results/tree_accuracy.json says, as tables and sentences. Called by docs/generate.py.

A peer that was not installed, or did not end, is named with the reason; its cells say "–".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import fmean, stdev
from typing import Any

from result_tables import table, verdict

SIDES = {
    "default": "Margrove, defaults",
    "command_line": "Margrove, `margrove train --model tree`",
    "cart": "Margrove, like CART",
    "c45": "Margrove, like C4.5",
    "c45_price": "Margrove, like C4.5, `complexity=0.5`",
    "sklearn": "scikit-learn, one-hot",
    "rpart": "rpart",
    "rpart_1se": "rpart, 1-SE",
    "ctree": "partykit's ctree",
    "j48": "Weka's J48",
}
# For sets with missing cells: each side as it takes them, and as the other does.
MISSING = {
    "c45": "Margrove, like C4.5: a level of their own",
    "c45_filled": "Margrove, like C4.5: filled with the most frequent level",
    "j48": "J48: parts of a row down every branch",
    "j48_level": "J48: a level of their own",
}
# The bar that benchmarks/tree_accuracy.py states in words.
PEERS = {"cart": "rpart_1se", "c45": "j48"}
GAP = 0.01
SETTINGS = (
    "Ten stratified folds, the same for every side. Like CART: gini, subsets of levels, the price of a leaf by five"
    " folds. Like C4.5: gain ratio, a branch for each level, pessimistic pruning at 0.25. scikit-learn's tree is grown"
    " to its end behind `SimpleImputer` and `OneHotEncoder`. rpart, ctree and J48 have their defaults; *1-SE* is grown"
    " with `cp = 0` and pruned by rpart's own ten folds and the rule of one standard error. Missing cells: each as it"
    " takes them."
)


def section(result: dict[str, Any]) -> str:
    """Accuracy, leaves and times of each side, and where we are below the peer we mean to match."""
    cases = result["cases"]
    lines = [
        SETTINGS,
        "Accuracy in percent ± its standard error over the folds:",
        _table(cases, SIDES, _accuracy, _mean_accuracy),
        "Leaves, mean over the folds:",
        _table(cases, SIDES, lambda side: f"{side['leaves']:,.0f}"),
        "Processor time of a fit, one thread; J48 tells elapsed time only, and its Java machine begins cold:",
        _table(cases, SIDES, lambda side: _time(side["seconds"])),
        *_of_missing_cells([case for case in cases if "c45_filled" in case["sides"]]),
        *_left_out(cases),
        _missed(cases),
    ]
    return "\n\n".join(lines)


def _table(
    cases: list[dict[str, Any]],
    sides: dict[str, str],
    cell: Callable[[dict[str, Any]], str],
    last: Callable[[list[dict[str, Any]]], str] | None = None,
) -> str:
    head = ["", *(f"{case['data']}, {case['rows']:,} × {case['columns']}" for case in cases)]
    rows = []
    for side, name in sides.items():
        found = [case["sides"].get(side, {}) for case in cases]
        row = [name, *(cell(each) if "accuracy" in each else "–" for each in found)]
        rows.append([*row, last(found)] if last else row)
    return table([*head, "mean"] if last else head, rows)


def _accuracy(side: dict[str, Any]) -> str:
    return f"{100 * side['accuracy']:.2f} ± {100 * side['standard_error']:.2f}"


def _mean_accuracy(found: list[dict[str, Any]]) -> str:
    is_whole = all("accuracy" in side for side in found)
    return f"{100 * fmean(side['accuracy'] for side in found):.2f}" if is_whole else "–"


def _of_missing_cells(cases: list[dict[str, Any]]) -> Iterator[str]:
    if cases:
        counts = ", ".join(f"{case['data']} {case['missing']:,}" for case in cases)
        yield f"What missing cells ({counts}) cost, by what is done with them; accuracy in percent:"
        yield _table(cases, MISSING, _accuracy)


def _left_out(cases: list[dict[str, Any]]) -> Iterator[str]:
    """One sentence on the sides that some set is without, if there are any."""
    why: dict[str, list[str]] = {}
    for case in cases:
        for side, found in case["sides"].items():
            if "absent" in found:
                why.setdefault(f"{(MISSING | SIDES)[side]} ({found['absent']})", []).append(case["data"])
    if why:
        yield "Left out: " + "; ".join(f"{side} on {', '.join(sets)}" for side, sets in why.items()) + "."


def _missed(cases: list[dict[str, Any]]) -> str:
    compared = [pair for case in cases for pair in _pairs(case)]
    if not compared:
        return "No peer was there to compare with."
    return verdict(filter(None, compared), otherwise="The bar is not missed.")


def _pairs(case: dict[str, Any]) -> Iterator[str]:
    """For each of our settings whose peer was there, how far it is below if that is too far, or nothing."""
    for side, peer in PEERS.items():
        ours, theirs = (case["sides"].get(name, {}).get("folds") for name in (side, peer))
        if ours and theirs:
            below = [b - a for a, b in zip(ours, theirs, strict=True)]
            noise = stdev(below) / math.sqrt(len(below))
            points = f"{100 * fmean(below):.1f} ± {100 * noise:.1f} points below {SIDES[peer]}"
            yield f"on {case['data']} {SIDES[side]} is {points}" if fmean(below) > GAP else ""


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{seconds * 1000:.2g} ms"
