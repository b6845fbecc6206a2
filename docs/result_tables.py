"""Tables and sentences of Markdown, for the pages that docs/generate.py makes of results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def table(head: list[str], rows: list[list[str]]) -> str:
    """The first column to the left, all others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdict(misses: Iterable[str], otherwise: str = "No bar is missed.") -> str:
    """All bars that are missed, in one sentence; or that none is."""
    found = "; ".join(misses)
    return f"Missed: {found}." if found else otherwise


def geometric_mean(cases: list[dict[str, Any]], key: str = "ratio") -> float:
    """Of the factors of the cases."""
    return math.exp(sum(math.log(case[key]) for case in cases) / len(cases))


def in_print(seconds: float) -> str:
    """A time, in milliseconds if it is short."""
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{seconds * 1000:.3g} ms"


def times(ratio: float) -> str:
    """A factor."""
    return f"{ratio:.1f} ×"


def line_of(
    name: str, peer: str, cases: list[dict[str, Any]], ours: str, theirs: str, ratio: str = "ratio"
) -> tuple[str, ...]:
    """A line for the README: name, peer, our times, theirs, times as fast in the mean; of the keys in each case."""
    sums = (f"{sum(case[key] for case in cases):.3g} s in all" for key in (ours, theirs))
    return name, f"`{peer}`", *sums, times(geometric_mean(cases, ratio))
