"""What benchmarks/results/search.json says, as tables and sentences. Called by docs/generate.py.

The file may hold some parts only: a run writes each as it ends, and ``--only`` and ``--skip`` leave some out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from result_tables import geometric_mean, line_of, table, verdict

PEERS = {"sklearn": "scikit-learn", "intelex": "scikit-learn-intelex"}
# The bars that benchmarks/search.py states in words.
MEAN_BARS = {"sklearn": 30.0, "intelex": 10.0}  # times as fast, geometric mean; no case below half of that
SCORE_GAP = 0.002  # of any cell's mean score against scikit-learn's
PATH_BAR = 3.0  # times the hardest value alone
LEAVE_ONE_OUT_BAR = 50.0  # times as fast


def is_there(result: dict[str, Any]) -> bool:
    """Whether anything was measured."""
    return any(result.get(part) for part in ("search", "path", "leave_one_out"))


def section(result: dict[str, Any]) -> str:
    """Searches, paths, leave-one-out, and every bar that is missed."""
    lines = [
        "Every run in a fresh process warmed by a tiny one; two cores for every side; the sides in turns, each side's"
        " best run counts.",
        *_search(result.get("search") or []),
        *_path(result.get("path") or []),
        *_leave_one_out(result.get("leave_one_out")),
        verdict(_misses(result)),
    ]
    return "\n\n".join(line for line in lines if line)


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Lines for the README: name, peer, our time, theirs, times as fast."""
    rows = []
    cases = result.get("search") or []
    for peer in _peers(cases):
        name = f"{len(cases)} searches of {cases[0]['fits']} fits, geometric mean"
        keys = "margrove_seconds", f"{peer}_seconds", f"ratio_{peer}"
        rows.append(line_of(name, f"GridSearchCV, {PEERS[peer]} SVC", cases, *keys))
    found = result.get("leave_one_out")
    if found:
        ours, theirs = found["margrove"]["seconds"], found["sklearn"]["seconds"]
        name = f"leave-one-out of {found['rows']:,} rows"
        rows.append((name, "`cross_val_score(SVC, LeaveOneOut)`", _s(ours), _s(theirs), f"{found['ratio']:.0f} ×"))
    return rows


def _search(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    peers = _peers(cases)
    yield (
        f"`SVCCV` against `GridSearchCV(SVC(), n_jobs=2)`, {cases[0]['fits']} fits each (5 folds, 8 values of C, 6 of"
        " γ), without a refit. Behind each peer's time: how many times as fast Margrove is."
    )
    head = ["", "Margrove", *(PEERS[peer] for peer in peers), "per fit", "liquidSVM, per fit", "largest gap of a score"]
    rows = []
    for case in cases:
        cells = [f"{case['data']}, {case['rows']:,} rows", _s(case["margrove_seconds"])]
        cells += [f"{_s(case[f'{peer}_seconds'])} ({case[f'ratio_{peer}']:.1f} ×)" for peer in peers]
        cells += [_ms(case["margrove_seconds_per_fit"]), _ms(case["liquidsvm_seconds_per_fit"])]
        rows.append([*cells, _gap(case)])
    yield table(head, rows)
    yield (
        "The gap is the largest difference of a cell's mean score from scikit-learn's. liquidSVM's time was measured"
        " once, on a machine of this kind, with its own grid and its own stop."
    )
    if peers:
        worst = {peer: min(case[f"ratio_{peer}"] for case in cases) for peer in peers}
        means = {peer: geometric_mean(cases, f"ratio_{peer}") for peer in peers}
        words = (f"{means[peer]:.1f} × {PEERS[peer]} ({worst[peer]:.1f} ×)" for peer in peers)
        yield f"Geometric mean (and the worst case): {'; '.join(words)}."


def _path(cases: list[dict[str, Any]]) -> Iterator[str]:
    if not cases:
        return
    yield "`SVC.path` over 20 values of C, each model certified, against fits of each value by itself:"
    head = ["", "path", "the hardest alone", "all, one by one", "path / hardest"]
    yield table(
        head,
        [
            [
                f"{case['data']}, γ = {case['gamma']:.4g}",
                *(_s(case[key]) for key in ("path", "hardest", "all_alone")),
                f"{case['times_the_hardest']:.2f}",
            ]
            for case in cases
        ],
    )


def _leave_one_out(found: dict[str, Any] | None) -> Iterator[str]:
    if not found:
        return
    ours, theirs = found["margrove"], found["sklearn"]
    yield (
        f"Exact leave-one-out of {found['rows']:,} rows of {found['data']}: {_s(ours['seconds'])} for the fit and"
        f" {ours['solves']:,} solves, against {_s(theirs['seconds'])} of `cross_val_score(SVC(), cv=LeaveOneOut())`,"
        f" {found['ratio']:.0f} times as fast. Error {ours['error']:.4f} and {theirs['error']:.4f}; the bound is"
        f" {ours['bound']:.4f}."
    )


def _misses(result: dict[str, Any]) -> Iterator[str]:
    cases = result.get("search") or []
    for peer in _peers(cases):
        bar = MEAN_BARS[peer]
        mean = geometric_mean(cases, f"ratio_{peer}")
        if mean < bar:
            yield (
                f"the searches are {mean:.1f} times as fast as {PEERS[peer]} in the geometric mean, and the bar is"
                f" {bar:g}"
            )
        for case in cases:
            ratio = case[f"ratio_{peer}"]
            if ratio < bar / 2:
                yield (
                    f"the search of {case['data']} is {ratio:.1f} times as fast as {PEERS[peer]}, and the bar is"
                    f" {bar / 2:g}"
                )
    for case in cases:
        if case.get("worst_score_gap_sklearn", 0.0) > SCORE_GAP:
            gap = case["worst_score_gap_sklearn"]
            yield f"a score of {case['data']} is {gap:.4f} off scikit-learn's, and the bar is {SCORE_GAP:g}"
        ours, theirs = case["margrove_seconds_per_fit"], case["liquidsvm_seconds_per_fit"]
        if ours >= theirs:
            yield f"a fit of {case['data']} takes {_ms(ours)}, and liquidSVM {_ms(theirs)}"
    for case in result.get("path") or []:
        if case["times_the_hardest"] > PATH_BAR:
            words = f"{case['times_the_hardest']:.2f} times the hardest value alone"
            yield f"the path of {case['data']} takes {words}, and the bar is {PATH_BAR:g}"
        if case.get("status", "converged") != "converged":
            yield f"the path of {case['data']} ended as {case['status']}"
    found = result.get("leave_one_out")
    if found:
        if found["ratio"] < LEAVE_ONE_OUT_BAR:
            yield f"leave-one-out is {found['ratio']:.1f} times as fast, and the bar is {LEAVE_ONE_OUT_BAR:g}"
        if found["margrove"]["error"] > found["margrove"]["bound"]:
            yield "the leave-one-out error is above its bound"


def _peers(cases: list[dict[str, Any]]) -> list[str]:
    """Those measured in every case."""
    return [peer for peer in PEERS if cases and all(f"ratio_{peer}" in case for case in cases)]


def _gap(case: dict[str, Any]) -> str:
    return f"{case['worst_score_gap_sklearn']:.4f}" if "worst_score_gap_sklearn" in case else ""


def _s(seconds: float) -> str:
    return f"{seconds:.3g} s"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"
