"""What a report is made of: sections of blocks, plain data that each format writes in its own way.

Texts are as people wrote them: nothing is escaped before a format writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Tone = Literal["plain", "lead", "note", "warning"]


@dataclass(frozen=True)
class Words:
    """A paragraph. "lead" is what nobody should miss, "note" a small remark, "warning" what to beware of."""

    text: str
    tone: Tone = "plain"


def note(text: str) -> Words:
    """A small remark."""
    return Words(text, "note")


@dataclass(frozen=True)
class Grid:
    """A table of texts; ``numeric`` are the columns that stand to the right, ``long`` those with sentences, ``strong``
    the rows that stand out."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    numeric: frozenset[int] = frozenset()
    strong: frozenset[int] = frozenset()
    long: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Figure:
    """A number that is shown large: what it is, and perhaps how sure it is."""

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
    """One line of bars: ``share`` of the full width, below 0 to the left; perhaps a stretch where the truth lies."""

    label: str
    share: float
    text: str
    low: float | None = None
    high: float | None = None
    is_faint: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars with their numbers beside them, which need no script; ``left`` and ``right`` say what the sides mean."""

    bars: Sequence[Bar]
    caption: str
    left: str = ""
    right: str = ""

    @property
    def is_two_sided(self) -> bool:
        """Whether bars go to both sides."""
        return bool(self.left)


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
    """A plotly figure as JSON, what it shows in words, and its numbers as a table."""

    name: str
    title: str
    figure: dict[str, Any]
    alt: str
    table: Grid


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG whose texts are escaped already, and the same in words."""

    title: str
    svg: str
    alt: str


@dataclass(frozen=True)
class Bitmap:
    """A picture as a PNG file, and the same in words."""

    title: str
    png: bytes
    alt: str


@dataclass(frozen=True)
class Thumbnail:
    """A small picture as a PNG file, where it comes from, and what is said below it."""

    png: bytes
    name: str
    caption: str = ""


@dataclass(frozen=True)
class Example:
    """A picture that was judged: what it ``is`` and, where that is wrong, what it was ``taken_for``; perhaps others
    that are ``near`` it."""

    picture: Thumbnail
    true: str
    taken_for: str = ""
    near: Sequence[Thumbnail] = ()

    @property
    def words(self) -> str:
        """In one line."""
        return f"{self.true}, taken for {self.taken_for}" if self.taken_for else self.true


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side."""

    examples: Sequence[Example]


@dataclass(frozen=True)
class Legend:
    """The colours of classes in the picture above."""

    names: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Listing:
    """Lines to be shown as they are: rules, commands."""

    text: str
    caption: str = ""


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown when somebody asks for them."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Card:
    """Blocks that belong together, in a frame."""

    title: str
    blocks: Sequence[Block]


Block = Words | Headline | Grid | Bars | Matrix | Chart | Picture | Bitmap | Gallery | Legend | Listing | Folded | Card


@dataclass(frozen=True)
class Section:
    """A part with a title: blocks for people, and the same as plain ``data`` for programs."""

    key: str
    title: str
    blocks: Sequence[Block]
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A whole report: first the parts for everybody, then the details."""

    title: str
    subtitle: str
    first: Sequence[Section]
    details: Sequence[Section]

    @property
    def sections(self) -> list[Section]:
        """All of them in order."""
        return [*self.first, *self.details]

    def to_dict(self) -> dict[str, Any]:
        """The data of every section under its key, as plain JSON values."""
        parts = {section.key: section.data for section in self.sections}
        return {"report": 1, "title": self.title, "subtitle": self.subtitle, **parts}


def charts_of(blocks: Sequence[Block]) -> list[Chart]:
    """The charts among blocks, at any depth."""
    found: list[Chart] = []
    for block in blocks:
        if isinstance(block, Chart):
            found.append(block)
        elif isinstance(block, Card | Folded):
            found += charts_of(block.blocks)
    return found
