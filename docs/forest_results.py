"""What benchmarks/results/forest.json says, as tables and sentences. Called by docs/generate.py."""

from __future__ import annotations

import math
from typing import Any

from result_tables import in_print, table, times, verdict

WORDS = {
    "sqrt": "100 trees, √d columns in each node",
    "all columns": "20 trees, all columns in each node",
    "extra trees": "100 extremely randomised trees",
    "regression": "20 regression trees, all columns in each node",
    "regression, extra trees": "20 extremely randomised regression trees",
}
FIT_BARS = {  # no bar is set for regression
    "sqrt": 8.0,
    "all columns": 25.0,
    "extra trees": 5.0,
}
_PREDICT_BAR, _BYTES_BAR, _MEMORY_BAR, _INTELEX_BAR = 5.0, 5.0, 2.0, 2.0


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """One line for each kind of forest, for the table of all benchmarks."""
    lines = []
    for kind, words in WORDS.items():
        if cases := _of(result, kind):
            sums = [sum(case[f"{side} fit"] for case in cases) for side in ("margrove", "sklearn")]
            ours, theirs = (f"{seconds:.3g} s in all" for seconds in sums)
            name = f"{words}, {len(cases)} sets, one thread, geometric mean (slowest {min(_ratios(cases)):.1f} ×)"
            lines.append((name, "`sklearn.ensemble`", ours, theirs, times(_geometric(_ratios(cases)))))
    return lines


def section(result: dict[str, Any]) -> str:
    """Times, accuracies and bytes of each set and kind of forest."""
    parts = [
        "Forests of two thirds of the rows, accuracy on the others (of regression, which predicts the last column, R²),"
        " against scikit-learn's of the same name on one thread; scikit-learn-intelex bins its columns. Behind our"
        " times: how many times as fast."
    ]
    for kind, words in WORDS.items():
        cases = _of(result, kind)
        if cases:
            parts += [f"{words[0].upper()}{words[1:]}:", _table(cases)]
    memory = result.get("memory")
    if memory:
        ours, theirs = (memory[module] / 1e6 for module in ("margrove", "sklearn.ensemble"))
        parts.append(
            f"Growing 100 trees of covtype_sample takes {ours:.0f} MB beyond the table, scikit-learn {theirs:.0f}."
        )
    parts.append(verdict(list(_misses(result))))
    return "\n\n".join(parts)


def _table(cases: list[dict[str, Any]]) -> str:
    has_intelex = any("intelex fit" in case for case in cases)
    head = ["", "one thread", "two threads", "scikit-learn", *(["intelex"] if has_intelex else [])]
    head += ["accuracy", "scikit-learn's", "predict", "bytes of scikit-learn's"]
    rows = []
    for case in cases:
        ours, theirs = case["margrove fit"], case["sklearn fit"]
        both = case["margrove, two threads fit"]
        row = [f"{case['data']}, {case['n']:,} × {case['d']}", f"{in_print(ours)} ({times(theirs / ours)})"]
        row += [f"{in_print(both)} ({times(theirs / both)})", in_print(theirs)]
        row += [in_print(case["intelex fit"]) if "intelex fit" in case else "–"] if has_intelex else []
        row += [f"{case['margrove accuracy']:.4f}", f"{case['sklearn accuracy']:.4f}"]
        row.append(times(case["sklearn predict"] / case["margrove predict"]))
        row.append(f"1/{case['sklearn bytes'] / case['bytes']:.1f}")
        rows.append(row)
    return table(head, rows)


def _misses(result: dict[str, Any]) -> Any:
    for kind in WORDS:
        cases, bar = _of(result, kind), FIT_BARS.get(kind, 1.0)
        if not cases:
            continue
        if (mean := _geometric(_ratios(cases))) < bar:
            yield f"{WORDS[kind]}: the geometric mean is {mean:.1f}, and the bar is {bar:g}"
        predicted = _geometric([case["sklearn predict"] / case["margrove predict"] for case in cases])
        if predicted < _PREDICT_BAR:
            yield f"prediction with {WORDS[kind]} is {predicted:.1f} times as fast, and the bar is {_PREDICT_BAR:g}"
        if kind == "sqrt":
            bins = [case["intelex fit"] / case["margrove fit"] for case in cases if "intelex fit" in case]
            if bins and (mean := _geometric(bins)) < _INTELEX_BAR:
                yield f"against scikit-learn-intelex the mean is {mean:.1f}, and the bar is {_INTELEX_BAR:g}"
            least = min(case["sklearn bytes"] / case["bytes"] for case in cases)
            if least < _BYTES_BAR:
                yield f"a file takes 1/{least:.1f} of scikit-learn's bytes, and the bar is a fifth"
    memory = result.get("memory")
    if memory and memory["sklearn.ensemble"] < _MEMORY_BAR * memory["margrove"]:
        yield "growth takes more than half of scikit-learn's memory"


def _of(result: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [case for case in result["cases"] if case["kind"] == kind]


def _ratios(cases: list[dict[str, Any]]) -> list[float]:
    return [case["sklearn fit"] / case["margrove fit"] for case in cases]


def _geometric(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
