"""The blocks of a report: plain data that each format writes in its own way. Texts are escaped by the formats alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Tone = Literal["plain", "lead", "note", "warning"]


@dataclass(frozen=True)
class Words:
    """A paragraph: "lead" for the main message, "note" for a small remark."""

    text: str
    tone: Tone = "plain"


def note(text: str) -> Words:
    """Return a small remark."""
    return Words(text, "note")


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numeric: frozenset[int] = frozenset()  # columns that are aligned to the right
    strong: frozenset[int] = frozenset()  # rows in bold
    long: frozenset[int] = frozenset()  # columns of sentences


@dataclass(frozen=True)
class Figure:
    """A number that is shown large, with its label and perhaps its interval."""

    label: str
    value: str
    detail: str = ""
    is_faint: bool = False


@dataclass(frozen=True)
class Headline:
    """A few numbers side by side."""

    figures: Sequence[Figure]


@dataclass(frozen=True)
class Bar:
    """One bar: ``share`` of the full width, to the left below 0; perhaps with an interval."""

    label: str
    share: float
    text: str
    low: float | None = None
    high: float | None = None
    is_faint: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars with their numbers beside them; ``left`` and ``right`` name the sides of bars to both sides."""

    bars: Sequence[Bar]
    caption: str
    left: str = ""
    right: str = ""


def bars_of(amounts: Mapping[str, float], text: Callable[[float], str]) -> list[Bar]:
    """Return a bar for each amount, relative to the largest, with the amount as text."""
    most = max(map(abs, amounts.values()), default=1.0) or 1.0
    return [Bar(label, amount / most, text(amount)) for label, amount in amounts.items()]


@dataclass(frozen=True)
class Matrix:
    """Counts by two labels, shaded by their share of the row."""

    labels: Sequence[str]
    counts: Sequence[Sequence[int]]
    caption: str
    down: str = "truth"
    across: str = "predicted"


@dataclass(frozen=True)
class Chart:
    """A plotly figure as JSON, its description, and its numbers as a table."""

    name: str
    title: str
    figure: dict[str, Any]
    alt: str
    table: Grid


@dataclass(frozen=True)
class Drawing:
    """A drawing as SVG whose texts are escaped already, its description, and its colours with their names."""

    title: str
    svg: str
    alt: str
    legend: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Bitmap:
    """A picture as a PNG file, and its description."""

    title: str
    png: bytes
    alt: str


@dataclass(frozen=True)
class Thumbnail:
    """A small picture as a PNG file, the name of its source, and its caption."""

    png: bytes
    name: str
    caption: str = ""


@dataclass(frozen=True)
class Example:
    """A picture, its true class, the predicted one if that is wrong, and perhaps training pictures near it."""

    picture: Thumbnail
    true: str
    predicted_as: str = ""
    near: Sequence[Thumbnail] = ()


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side."""

    examples: Sequence[Example]


@dataclass(frozen=True)
class Listing:
    """Verbatim lines: rules, commands."""

    text: str


@dataclass(frozen=True)
class Folded:
    """Blocks that are hidden until they are opened."""

    title: str
    blocks: Sequence[Block]


class Card(Folded):
    """Blocks in a frame."""


Block = Words | Headline | Grid | Bars | Matrix | Chart | Drawing | Bitmap | Gallery | Listing | Folded


@dataclass(frozen=True)
class Section:
    """A section: blocks for people, and the same as plain ``data`` for programs."""

    key: str
    title: str
    blocks: Sequence[Block]
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A report: first the sections for everybody, then the details."""

    title: str
    subtitle: str
    first: Sequence[Section]
    details: Sequence[Section]

    @property
    def sections(self) -> list[Section]:
        """All sections in order."""
        return [*self.first, *self.details]

    def to_dict(self) -> dict[str, Any]:
        """Return the data of every section under its key."""
        parts = {section.key: section.data for section in self.sections}
        return {"report": 1, "title": self.title, "subtitle": self.subtitle, **parts}


def charts_of(blocks: Sequence[Block]) -> list[Chart]:
    """Return the charts among blocks, at any depth."""
    inner = [charts_of(b.blocks) if isinstance(b, Folded) else [b] for b in blocks]
    return [block for found in inner for block in found if isinstance(block, Chart)]
