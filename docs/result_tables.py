"""Tables of Markdown, for the pages that docs/generate.py makes of results."""

from __future__ import annotations


def table(head: list[str], rows: list[list[str]]) -> str:
    """The first column to the left, all others to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
