"""What benchmarks/results/svm.json says, as tables and a picture. Called by docs/generate.py."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from result_tables import table, times, verdict

PEERS = {
    "sklearn": "scikit-learn",
    "intelex": "intelex, float64",
    "intelex32": "intelex, float32",
}


def section(result: dict[str, Any]) -> str:
    """Training of two classes, of many, prediction, memory, and how time grows."""
    peers = [peer for peer in PEERS if f"ratio_{peer}" in result["cases"][0]]
    lines = [
        "Every fit in a fresh process warmed by a tiny one; cache_size 2000 MB and tol 1e-3 on every side; the best of"
        " several runs in turns. Margrove is given float64. A peer that was not done after 300 s was stopped and"
        " counts as 300 s (marked >). Behind each peer's time: how many times as fast Margrove is.",
        table(["", "Margrove", *(PEERS[peer] for peer in peers)], [_row(case, peers) for case in result["cases"]]),
        _means(result, peers),
        _objectives(result, peers),
    ]
    if result.get("multiclass"):
        lines += [
            "One-vs-one, whole training:",
            table(["", "Margrove", *(PEERS[peer] for peer in peers)], [_row(c, peers) for c in result["multiclass"]]),
        ]
        lines += [_missed(result["multiclass"])]
        lines += [_prediction(case) for case in result["multiclass"] if "ratio_predict" in case]
    lines.append(_memory(result))
    if result.get("scaling"):
        lines += [
            "How time grows with rows and columns (MNIST, even against odd; columns: 10,000 rows, randomly projected):",
            "![Time of a fit against rows and against columns, Margrove and its peers](images/svm-scaling.png)",
            _exponents(result["scaling"], peers),
        ]
    return "\n\n".join(line for line in lines if line)


_MULTICLASS_BARS = {"sklearn": 10.0, "intelex": 4.0}


def _missed(cases: list[dict[str, Any]]) -> str:
    """The bars that several classes do not reach."""
    found = [
        f"{case['data']} is {case[f'ratio_{peer}']:.1f} times as fast as {PEERS[peer]}, and the bar is {bar:g}"
        for case in cases
        for peer, bar in _MULTICLASS_BARS.items()
        if case.get(f"ratio_{peer}", bar) < bar
    ]
    return verdict(found, otherwise="")


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """One line for each peer: name, peer, our time, theirs, times as fast."""
    rows = []
    cases = result["cases"]
    for peer, mean in result.get("geometric_means", {}).items():
        name = f"{len(cases)} kernel SVMs, geometric mean"
        ours, theirs = (sum(case[side]["seconds"] for case in cases) for side in ("margrove", peer))
        sums = f"{ours:.3g} s in all", f"{theirs:,.0f} s in all"
        rows.append((name, f"`{PEERS[peer]} SVC`", *sums, times(mean)))
    return rows


def draw_scaling(result: dict[str, Any], path: Path, dpi: int) -> None:
    """Seconds against rows, and against columns, one line for each side."""
    import matplotlib.pyplot as plt

    names = {"margrove": "Margrove", **PEERS}
    styles = {
        "margrove": ("#0072B2", "o"),
        "sklearn": ("#D55E00", "s"),
        "intelex": ("#009E73", "^"),
        "intelex32": ("#CC79A7", "v"),
    }
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, kind in zip(axes, ("rows", "columns"), strict=True):
        cases = [case for case in result["scaling"] if case["by"] == kind]
        for side, (colour, marker) in styles.items():
            measured = [case for case in cases if side in case]
            if measured:
                seconds = [case[side]["seconds"] for case in measured]
                sizes = [case["size"] for case in measured]
                axis.loglog(sizes, seconds, color=colour, marker=marker, label=names[side])
        axis.set_xlabel(kind)
        axis.set_ylabel("seconds")
        every_size = sorted({case["size"] for case in cases})
        axis.set_xticks(every_size, [f"{size:,}" for size in every_size])
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3, which="both")
    axes[0].legend()
    figure.savefig(path, dpi=dpi)
    plt.close(figure)


def _row(case: dict[str, Any], peers: list[str]) -> list[str]:
    cells = [f"{case['data']}, C = {case['C']:g}, γ = {case['gamma']:.4g}", _seconds(case["margrove"])]
    return cells + [f"{_seconds(case[peer])} ({case[f'ratio_{peer}']:.1f} ×)" for peer in peers]


def _seconds(found: dict[str, Any]) -> str:
    return f"{'>' if found.get('stopped') else ''}{found['seconds']:.3g} s"


def _means(result: dict[str, Any], peers: list[str]) -> str:
    worst = {peer: min(case[f"ratio_{peer}"] for case in result["cases"]) for peer in peers}
    return (
        "Geometric mean (and the worst case): "
        + "; ".join(f"{result['geometric_means'][peer]:.1f} × {PEERS[peer]} ({worst[peer]:.1f} ×)" for peer in peers)
        + "."
    )


def _objectives(result: dict[str, Any], peers: list[str]) -> str:
    """Whose dual objective is larger, and who misses its own tolerance, by our certificate."""
    cases = [*result["cases"], *result.get("multiclass", [])]
    lowest = min(
        (case[f"dual_excess_{peer}"] for case in cases for peer in peers if f"dual_excess_{peer}" in case), default=0
    )
    missed = {
        side: sum(case[side].get("violation", 0) > 1e-3 * (1 + 1e-6) for case in cases if side in case)
        for side in ("margrove", *peers)
    }
    words = ", ".join(f"{({'margrove': 'Margrove'} | PEERS)[side]} {count}" for side, count in missed.items())
    return (
        f"By the certificate, which is no solver's: relative to a peer's, our dual objective is never worse than by"
        f" {max(0.0, -lowest):.1g}. Models whose violation exceeds the tolerance they were asked for: {words}"
        f" (of {len(cases)}; those stopped at 300 s are not counted)."
    )


def _prediction(case: dict[str, Any]) -> str:
    ours, peer = case["margrove"], case["sklearn"]
    return (
        f"Prediction of 10,000 rows of {case['data']}: {ours['predict_seconds']:.3g} s against scikit-learn's"
        f" {peer['predict_seconds']:.3g} s, {case['ratio_predict']:.0f} times as fast; accuracy {ours['accuracy']:.4f}"
        f" and {peer['accuracy']:.4f}."
    )


def _memory(result: dict[str, Any]) -> str:
    found = [(case["margrove"]["risen_mb"], case["margrove"]["allowed_mb"], case["data"]) for case in result["cases"]]
    risen, allowed, name = max(found, key=lambda each: each[0] / each[1])
    return (
        f"Memory: the rise of resident memory over before the fit is within one float32 copy of the data + cache_size +"
        f" 100 MB in {sum(r <= a for r, a, _ in found)} of {len(found)} cases; the nearest to it was {name} with"
        f" {risen:.0f} of {allowed:.0f} MB."
    )


def _exponents(scaling: list[dict[str, Any]], peers: list[str]) -> str:
    """The slope of log time over log size, by least squares; a side that was stopped somewhere has none."""
    words = []
    for side in ("margrove", *peers):
        parts = []
        for kind in ("rows", "columns"):
            cases = [case for case in scaling if case["by"] == kind and side in case]
            if len(cases) < 2 or any(case[side].get("stopped") for case in cases):
                continue
            x = [math.log(case["size"]) for case in cases]
            t = [math.log(case[side]["seconds"]) for case in cases]
            mean_x, mean_t = sum(x) / len(x), sum(t) / len(t)
            slope = sum((a - mean_x) * (b - mean_t) for a, b in zip(x, t, strict=True)) / sum(
                (a - mean_x) ** 2 for a in x
            )
            parts.append(f"{kind}^{slope:.2f}")
        if parts:
            words.append(f"{({'margrove': 'Margrove'} | PEERS)[side]}: {', '.join(parts)}")
    return "Fitted: " + "; ".join(words) + "." if words else ""
