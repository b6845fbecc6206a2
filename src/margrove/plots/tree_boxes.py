"""The boxes of a drawn tree: their text and their size."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import ParameterError
from margrove.tree.model import TreeModel
from margrove.tree.rules import p_words
from margrove.tree.words import Allowed, places, shares

if TYPE_CHECKING:
    from matplotlib.textpath import TextToPath

# Lengths are in points, 1/72 inch, of a new figure; on given axes all are scaled together.
HEAD, SMALL = 9.0, 8.0  # letters
DROP = 26.0  # between two rows of boxes, besides the words on the lines
LINE = 1.35  # of the height of letters: from one line to the next
PAD = 6.0  # between the edge of a box and what is in it
BAR = 7.0  # height of a bar of class shares
_LEAST = 46.0  # width of a box
_LONGEST_NAME, _LONGEST_LABEL = 28, 15  # letters of a column's or class's name; of a line of words at a branch
_LONGEST_LINE = _LONGEST_LABEL + 4  # of such a line, where its only word is longer
_LONGEST_INSIDE = 14  # letters of the name of the largest class, at a test
_LABEL_LINES = 4
LISTED = 6  # levels at a branch, unless asked otherwise
_MOST_BRANCHES = 12  # boxes below a node: of more, the heaviest and one for all others
_MOST_BOXES = 600  # a picture with more cannot be read, nor made in a short time


@dataclass
class Box:
    """A node as it is drawn, or a placeholder for nodes that are not."""

    depth: int
    lines: list[tuple[str, bool]]  # text, whether it is bold
    shares: NDArray[np.float64] | None = None  # of the classes
    place: float | None = None  # of a number between the least and the largest leaf
    code: int | None = None  # of the class, where the drawing ends
    label: list[str] = field(default_factory=list)  # on the line from its parent
    is_cut: bool = False
    children: list[int] = field(default_factory=list)

    @property
    def width(self) -> float:
        texts = [width_of(text, HEAD if bold else SMALL, bold) for text, bold in self.lines]
        return max(_LEAST, 2 * PAD + max(texts))

    @property
    def slot(self) -> float:
        """The width that it needs with its label."""
        return max([self.width, *(width_of(text, SMALL) + 4 for text in self.label)])

    @property
    def has_bar(self) -> bool:
        return self.shares is not None or self.place is not None

    @property
    def height(self) -> float:
        text = sum(LINE * (HEAD if bold else SMALL) for _, bold in self.lines)
        return 2 * PAD + text + (BAR + 3 if self.has_bar else 0)


def boxes_of(
    tree: TreeModel,
    labels: list[Any] | None,
    max_depth: int | None,
    p_values: NDArray[np.float64] | None,
    max_levels: int | None = LISTED,
) -> list[Box]:
    """Return the boxes to draw, each child after its parent."""
    writer = _Writer(tree, labels, p_values)
    boxes: list[Box] = []
    number: dict[int, int] = {}  # of a node's box
    drawn: dict[int, list[int]] = {}  # its children that have one
    for place in places(tree, max_depth):
        node, parent = place.node, int(tree.parent[place.node])
        if parent >= 0 and node not in drawn.get(parent, ()):
            continue
        is_end = bool(tree.feature[node] < 0 or tree.depth[node] == max_depth)
        box = writer.test_box(node) if not is_end else writer.end_box(node)
        if place.branch is not None:
            box.label = _label(place.branch, max_levels)
            boxes[number[parent]].children.append(len(boxes))
        number[node], drawn[node] = len(boxes), [] if is_end else _heaviest(tree, node)
        boxes.append(box)
        if len(boxes) > _MOST_BOXES:
            raise ParameterError(f"max_depth is {max_depth}; that is more than {_MOST_BOXES} boxes. Use less.")
    for node, children in drawn.items():
        left_out = np.setdiff1d(tree.children(node), children) if children else np.empty(0, np.intp)
        if len(left_out):
            boxes[number[node]].children.append(len(boxes))
            texts = f"… {len(left_out):,} more branches", f"n = {int(tree.n_rows[left_out].sum()):,}"
            boxes.append(Box(int(tree.depth[node]) + 1, [(text, False) for text in texts], is_cut=True))
    return boxes


def tops_of(boxes: list[Box]) -> list[float]:
    """Return the top of the boxes of each depth: below the highest box above them, and the longest label."""
    tops = [0.0]
    for depth in range(1, 1 + max(box.depth for box in boxes)):
        above = max(box.height for box in boxes if box.depth == depth - 1)
        tops.append(tops[-1] + above + DROP + words_height(boxes, depth))
    return tops


def words_height(boxes: list[Box], depth: int) -> float:
    """Return the height of the longest label above the boxes of one depth."""
    return LINE * SMALL * max(len(box.label) for box in boxes if box.depth == depth)


def _heaviest(tree: TreeModel, node: int) -> list[int]:
    """Return the children of a node; of many, those with most rows."""
    children = tree.children(node)
    if len(children) > _MOST_BRANCHES:
        children = children[np.argsort(-tree.weight[children], kind="stable")[: _MOST_BRANCHES - 1]]
    return [int(child) for child in children]


class _Writer:
    """Fills the boxes of one tree."""

    def __init__(self, tree: TreeModel, labels: list[Any] | None, p_values: NDArray[np.float64] | None) -> None:
        self.tree, self.labels, self.p_values = tree, labels, p_values
        self.shares = None if labels is None else shares(tree)
        values = tree.value[tree.is_leaf, 0]
        self.low, self.high = float(values.min()), float(values.max())

    def test_box(self, node: int) -> Box:
        """Return the box of a node with branches below it: the column that it tests."""
        box, outcome, part = self._box(node)
        words = f"value {outcome}" if box.shares is None else f"{part} {clipped(outcome, _LONGEST_INSIDE)}"
        name = self.tree.columns[int(self.tree.feature[node])].name
        box.lines = [(clipped(name), True), (f"{self._n(node)} · {words}", False), *self._p_line(node)]
        return box

    def end_box(self, node: int) -> Box:
        """Return the box of a leaf, or of a node whose branches are not drawn: its prediction."""
        box, outcome, part = self._box(node)
        box.lines = [(clipped(outcome), True), (self._n(node), False)]
        if box.shares is not None:
            box.code = int(box.shares.argmax())
            box.lines.append((part, False))
        box.lines += self._p_line(node)
        n_below = int(self.tree.end[node]) - node - 1
        if n_below:
            box.is_cut = True
            box.lines.append((f"… {n_below:,} more nodes", False))
        return box

    def _box(self, node: int) -> tuple[Box, str, str]:
        """Return a box with its bar, the prediction of the node, and the share of that class."""
        box = Box(int(self.tree.depth[node]), lines=[])
        if self.labels is None or self.shares is None:
            value, span = float(self.tree.value[node, 0]), self.high - self.low
            # The median of a node may lie outside the medians of its leaves.
            box.place = min(1.0, max(0.0, (value - self.low) / span)) if span > 0 else 0.5
            return box, f"{value:.4g}", ""
        box.shares = self.shares[node]
        k = int(box.shares.argmax())
        return box, str(self.labels[k]), _percent(float(box.shares[k]))

    def _n(self, node: int) -> str:
        return f"n = {int(self.tree.n_rows[node]):,}"

    def _p_line(self, node: int) -> list[tuple[str, bool]]:
        if self.p_values is None or not np.isfinite(self.p_values[node]):
            return []
        return [(p_words(float(self.p_values[node])), False)]


def _label(branch: Allowed, max_levels: int | None) -> list[str]:
    """Return the label of a branch in short lines; by default a few, with as many levels as fit."""
    tried = [max_levels] if max_levels is None or max_levels > LISTED else range(max_levels, 0, -1)
    for most in tried:
        lines = _wrapped(branch.words(name=False, most=most))
        if len(lines) <= _LABEL_LINES:
            break
    if isinstance(tried, range) and len(lines) > _LABEL_LINES:
        lines = [*lines[: _LABEL_LINES - 1], f"{lines[_LABEL_LINES - 1]} …"]
    return [clipped(line, _LONGEST_LINE) for line in lines]


def _wrapped(words: str) -> list[str]:
    """Break into lines; "or missing", "… 3 more" and hyphenated words that fit into a line stay together."""
    joint = words.replace(" or ", " or\N{NO-BREAK SPACE}")
    joint = re.sub(r"… ([\d,]+) more", "…\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}more", joint)
    whole = [
        word if len(word) > _LONGEST_LINE else word.replace("-", "\N{NON-BREAKING HYPHEN}") for word in joint.split(" ")
    ]
    lines = wrap(" ".join(whole), _LONGEST_LABEL, break_long_words=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NON-BREAKING HYPHEN}", "-") for line in lines]


def _percent(share: float) -> str:
    """Return a share in whole per cent; 100 % only if it is all."""
    return "> 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def clipped(text: str, most: int = _LONGEST_NAME) -> str:
    """Return at most so many letters, all of them printable."""
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


@cache
def _text_to_path() -> TextToPath:
    from matplotlib.textpath import TextToPath

    return TextToPath()


def width_of(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text in points, with some room, since letters are a little wider on a screen."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return 1.05 * float(_text_to_path().get_text_width_height_descent(text, font, ismath=False)[0])
