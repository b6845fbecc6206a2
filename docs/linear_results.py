"""What benchmarks/results/linear.json says, as tables and sentences. Called by docs/generate.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from result_tables import in_print, line_of, table, times, verdict

ENOUGH = 1e-4  # relative primal suboptimality that both sides are to reach


def section(result: dict[str, Any]) -> str:
    """Every fit and every search, the peers that did not get there, and every bar that is missed."""
    fits, searches = _parts(result)
    lines = []
    if fits:
        head = ["", "solver", "ours", "peer", "", "bar", "misses the best by", "peer's"]
        lines += [
            "Whole fits, one thread (news20: 20 classes, two threads allowed to both). What each misses the best primal"
            " value by is relative to it; the best is bounded by a certified dual value.",
            table(head, [_fit(case) for case in fits]),
            _short_of_it(fits),
        ]
    if searches:
        head = ["", "ours", "`GridSearchCV(LinearSVC)`", "", "bar", "best score", "its"]
        lines += [
            "`LinearSVCCV` against a grid search, one thread; scikit-learn's solves to its default tolerance.",
            table(head, [_search(case) for case in searches]),
        ]
    lines.append(verdict(_misses(result["cases"])))
    return "\n\n".join(line for line in lines if line)


def summary(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Lines for the README: name, peer, our time, theirs, times as fast."""
    fits, searches = _parts(result)
    rows = []
    for peer in dict.fromkeys(case["peer"] for case in fits):
        cases = [case for case in fits if case["peer"] == peer]
        loss = cases[0]["name"].rsplit(", ", 1)[1].replace("_", " ")
        rows.append(line_of(f"{len(cases)} fits, {loss}, geometric mean", peer, cases, "ours_s", "peer_s"))
    if searches:
        title = f"20 values of C, 5 folds, {len(searches)} sets, geometric mean"
        rows.append(line_of(title, searches[0]["peer"], searches, "ours_s", "peer_s"))
    return rows


def _parts(result: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    cases = result["cases"]
    return [case for case in cases if "our_tol" in case], [case for case in cases if "our_tol" not in case]


def _fit(case: dict[str, Any]) -> list[str]:
    return [
        case["name"].replace("_", " "),
        case["our_solver"].replace("_", " "),
        in_print(case["ours_s"]),
        f"{in_print(case['peer_s'])} ({case['peer']})",
        times(case["ratio"]),
        f"{case['bar']:g} ×",
        f"{case['our_suboptimality']:.0e}",
        f"{case['peer_suboptimality']:.0e}",
    ]


def _search(case: dict[str, Any]) -> list[str]:
    return [
        case["name"],
        in_print(case["ours_s"]),
        in_print(case["peer_s"]),
        times(case["ratio"]),
        f"{case['bar']:g} ×",
        f"{case['our_best_score']:.4f}",
        f"{case['peer_best_score']:.4f}",
    ]


def _short_of_it(fits: list[dict[str, Any]]) -> str:
    """Peers that no tolerance of the grid brings near enough: their own limit of passes ends them."""
    short = [case["name"].replace("_", " ") for case in fits if case["peer_suboptimality"] > ENOUGH]
    if not short:
        return ""
    return f"The peer does not come within {ENOUGH:g} of the best with any tolerance on {'; '.join(short)}."


def _misses(cases: list[dict[str, Any]]) -> Iterator[str]:
    for case in cases:
        name = case["name"].replace("_", " ")
        if case["ratio"] < case["bar"]:
            yield f"{name} is {case['ratio']:.1f} times as fast as {case['peer']}, and the bar is {case['bar']:g}"
        if case.get("our_suboptimality", 0.0) > ENOUGH:
            yield f"{name} misses the best by {case['our_suboptimality']:.0e}"
