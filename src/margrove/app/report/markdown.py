"""A report as Markdown: for a repository, a ticket or a mail. Charts are their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from margrove.app.report import blocks
from margrove.app.report.blocks import Block, Grid, Report

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&])")  # what Markdown, or HTML inside it, would read
_BAR = 20  # letters of a full bar


def to_markdown(report: Report) -> str:
    first, details = (
        [line for section in sections for line in (f"## {escaped(section.title)}", *_written(section.blocks))]
        for sections in (report.first, report.details)
    )
    return "\n\n".join([f"# {escaped(report.title)}", escaped(report.subtitle), *first, "---", *details]) + "\n"


def escaped(text: str) -> str:
    """Escape a text, on one line, for Markdown."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _written(content: Sequence[Block]) -> Iterator[str]:
    for block in content:
        if isinstance(block, blocks.Words):
            text = escaped(block.text)
            yield {"lead": f"**{text}**", "warning": f"> **Warning:** {text}", "note": f"*{text}*"}.get(
                block.tone, text
            )
        elif isinstance(block, blocks.Headline):
            rows = [[figure.label, figure.value, figure.detail] for figure in block.figures]
            yield from _grid(Grid(["", "", ""], rows, "", frozenset({1})))
        elif isinstance(block, Grid):
            yield from _grid(block)
        elif isinstance(block, blocks.Bars):
            rows = []
            for bar in block.bars:
                drawn = "█" * max(1, round(_BAR * min(1.0, abs(bar.share))))
                rows.append([bar.label, f"← {drawn}" if bar.share < 0 else drawn, bar.text])
            sides = f"{block.left} ←→ {block.right}" if block.left else ""
            yield from _grid(Grid(["", sides, ""], rows, block.caption, frozenset({2})))
        elif isinstance(block, blocks.Matrix):
            header = [f"{block.down} ↓ {block.across} →", *block.labels]
            pairs = zip(block.labels, block.counts, strict=True)
            rows = [[name, *(f"{count:,}" for count in counts)] for name, counts in pairs]
            yield from _grid(Grid(header, rows, block.caption, frozenset(range(1, len(header)))))
        elif isinstance(block, blocks.Chart):
            yield f"### {escaped(block.title)}"
            yield escaped(block.alt)
            yield from _grid(block.table)
        elif isinstance(block, blocks.Drawing | blocks.Bitmap):
            yield escaped(block.alt)
        elif isinstance(block, blocks.Gallery):
            has_near = any(example.near for example in block.examples)
            rows = []
            for example in block.examples:
                predicted_as = f", mistaken for {example.predicted_as}" if example.predicted_as else ""
                near = ", ".join(f"{each.caption} ({each.name})" for each in example.near)
                rows.append([example.picture.name, f"{example.true}{predicted_as}", near][: 2 + has_near])
            yield from _grid(Grid(["file", "class", "nearest support vectors"][: 2 + has_near], rows))
        elif isinstance(block, blocks.Listing):
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
            yield f"{fence}text\n{block.text}\n{fence}"
        elif isinstance(block, blocks.Folded):
            yield f"### {escaped(block.title)}" if isinstance(block, blocks.Card) else f"**{escaped(block.title)}**"
            yield from _written(block.blocks)


def _grid(grid: Grid) -> Iterator[str]:
    if grid.caption:
        yield f"*{escaped(grid.caption)}*"
    rule = ["---:" if place in grid.numeric else "---" for place in range(len(grid.header))]
    lines = [[escaped(name) for name in grid.header], rule, *([escaped(cell) for cell in row] for row in grid.rows)]
    yield "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
