"""The boxes of a drawn tree: their text, their size and their place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.formats import Format
from margrove.errors import ParameterError
from margrove.tree.model import TreeModel
from margrove.tree.rules import p_words
from margrove.tree.words import Allowed, amount_text, places, shares

# Lengths are in points, 1/72 inch, of a new figure; on given axes all are scaled together.
HEAD, SMALL = 9.0, 8.0  # letters
DROP = 26.0  # between two rows of boxes, besides the words on the lines
LINE = 1.35  # of the height of letters: from one line to the next
_GAP = 9.0  # between two boxes side by side
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
    x: float = 0.0  # its middle
    y: float = 0.0  # its top; y grows downwards
    words: float = 0.0  # height that the row leaves above it for labels

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
    def turn(self) -> float:
        """The y at which the line from its parent turns."""
        return self.y - self.words - 0.6 * DROP

    @property
    def height(self) -> float:
        text = sum(LINE * (HEAD if bold else SMALL) for _, bold in self.lines)
        return 2 * PAD + text + (BAR + 3 if self.has_bar else 0)

    @property
    def _line_tops(self) -> list[float]:
        """The top of each line, and the end of the last."""
        return list(accumulate((LINE * (HEAD if bold else SMALL) for _, bold in self.lines), initial=self.y + PAD))

    def texts(self) -> Iterator[tuple[str, float, float, bool]]:
        """Yield the lines in it: text, middle along y, size of the letters, whether they are bold."""
        for (text, bold), top in zip(self.lines, self._line_tops, strict=False):
            size = HEAD if bold else SMALL
            yield text, top + LINE * size / 2, size, bold

    def label_texts(self) -> Iterator[tuple[str, float]]:
        """Yield the lines of its label, and their middle along y."""
        for i, text in enumerate(self.label):
            yield text, self.y - (0.3 * DROP + (len(self.label) - i - 0.5) * LINE * SMALL)

    @property
    def bar(self) -> tuple[float, float, float]:
        """Left edge, top and width of its bar."""
        return self.x - self.width / 2 + PAD, self._line_tops[-1] + 3, self.width - 2 * PAD


def boxes_of(
    tree: TreeModel,
    labels: list[Any] | None,
    max_depth: int | None,
    p_values: NDArray[np.float64] | None,
    max_levels: int | None = LISTED,
    form: Format | None = None,
) -> list[Box]:
    """Return the boxes to draw, each child after its parent; ``form`` is that of a target of numbers."""
    writer = _Writer(tree, labels, p_values, form)
    boxes: list[Box] = []
    number: dict[int, int] = {}  # of a node's box
    drawn: dict[int, list[int]] = {}  # its children that have one
    for place in places(tree, max_depth):
        node, parent = place.node, int(tree.parent[place.node])
        if parent >= 0 and node not in drawn.get(parent, ()):
            continue
        is_end = bool(tree.feature[node] < 0 or tree.depth[node] == max_depth)
        box = writer.box(node, is_end=is_end)
        if place.branch is not None:
            box.label = _label(place.branch, max_levels)
            boxes[number[parent]].children.append(len(boxes))
        children = np.empty(0, np.int32) if is_end else tree.children(node)
        if len(children) > _MOST_BRANCHES:
            children = children[np.argsort(-tree.weight[children], kind="stable")[: _MOST_BRANCHES - 1]]
        number[node], drawn[node] = len(boxes), children.tolist()
        boxes.append(box)
        if len(boxes) > _MOST_BOXES:
            raise ParameterError(f"max_depth is {max_depth}; that gives more than {_MOST_BOXES} boxes. Reduce it.")
    for node, kept in drawn.items():
        left_out = np.setdiff1d(tree.children(node), kept)
        if kept and len(left_out):
            boxes[number[node]].children.append(len(boxes))
            texts = f"… {len(left_out):,} more branches", f"n = {int(tree.n_rows[left_out].sum()):,}"
            boxes.append(Box(int(tree.depth[node]) + 1, [(text, False) for text in texts], is_cut=True))
    return boxes


def lay_out(boxes: list[Box]) -> tuple[float, float]:
    """Set the places of the boxes, the left and the upper edge of all at 0; return the width and height of all."""
    middles = tidy([box.children for box in boxes], [box.slot for box in boxes], _GAP)
    y = above = 0.0
    for depth in range(1 + max(box.depth for box in boxes)):
        row = [box for box in boxes if box.depth == depth]
        words = LINE * SMALL * max(len(box.label) for box in row)  # of the longest label above the row
        y = y + above + DROP + words if depth else 0.0
        for box in row:
            box.y, box.words = y, words
        above = max(box.height for box in row)
    for box, x in zip(boxes, middles, strict=True):
        box.x = x
    return max(box.x + box.slot / 2 for box in boxes), y + above


def tidy(children: Sequence[Sequence[int]], widths: Sequence[float], gap: float) -> list[float]:
    """Return the middle of each box along x, the leftmost edge at 0.

    Subtrees stand as closely as their outlines allow and each parent above the middle of its children (Reingold and
    Tilford 1981, "Tidier Drawings of Trees"), for boxes of any width and any number of children.

    Boxes are numbered so that every child comes after its parent; the first is the root. Two boxes of one depth are
    ``gap`` apart at least.
    """
    n = len(children)
    # Of each subtree, by depth below its root and relative to its root's middle: the leftmost and the rightmost edge.
    left: list[list[float]] = [[] for _ in range(n)]
    right: list[list[float]] = [[] for _ in range(n)]
    offset = [0.0] * n  # of a box from its parent's middle
    for box in reversed(range(n)):
        lows: list[float] = []
        highs: list[float] = []
        shifts = []
        for child in children[box]:
            pairs = zip(highs, left[child], strict=False)  # the depths that both have
            shift = max((high + gap - low for high, low in pairs), default=0.0)
            shifts.append(shift)
            lows += [low + shift for low in left[child][len(lows) :]]
            highs = [high + shift for high in right[child]] + highs[len(right[child]) :]
        middle = (shifts[0] + shifts[-1]) / 2 if shifts else 0.0
        for child, shift in zip(children[box], shifts, strict=True):
            offset[child] = shift - middle
        left[box] = [-widths[box] / 2, *(low - middle for low in lows)]
        right[box] = [widths[box] / 2, *(high - middle for high in highs)]
    places = [0.0] * n
    places[0] = -min(left[0])
    for box in range(n):
        for child in children[box]:
            places[child] = places[box] + offset[child]
    return places


class _Writer:
    """Fills the boxes of one tree."""

    def __init__(
        self, tree: TreeModel, labels: list[Any] | None, p_values: NDArray[np.float64] | None, form: Format | None
    ) -> None:
        self.tree, self.labels, self.p_values, self.form = tree, labels, p_values, form
        self.shares = None if labels is None else shares(tree)
        values = tree.value[tree.is_leaf, 0]
        self.low, self.high = float(values.min()), float(values.max())

    def box(self, node: int, *, is_end: bool) -> Box:
        """Return the box of a node: the column that it tests, or its prediction if the drawing ends there."""
        tree, box = self.tree, Box(int(self.tree.depth[node]), lines=[])
        n = f"n = {int(tree.n_rows[node]):,}"
        if self.labels is None or self.shares is None:
            value, span = float(tree.value[node, 0]), self.high - self.low
            # The median of a node may lie outside the medians of its leaves.
            box.place = min(1.0, max(0.0, (value - self.low) / span)) if span > 0 else 0.5
            outcome = amount_text(value, self.form, 4)
            words, code, below = f"value {outcome}", None, list[str]()
        else:
            box.shares = self.shares[node]
            code = int(box.shares.argmax())
            outcome, part = str(self.labels[code]), _percent(float(box.shares[code]))
            words, below = f"{part} {clipped(outcome, _LONGEST_INSIDE)}", [part]
        if is_end:
            box.code = code
            texts = [clipped(outcome), n, *below]
        else:
            texts = [clipped(tree.columns[int(tree.feature[node])].name), f"{n} · {words}"]
        if self.p_values is not None and np.isfinite(self.p_values[node]):
            texts.append(p_words(float(self.p_values[node])))
        n_below = int(tree.end[node]) - node - 1
        if is_end and n_below:
            box.is_cut = True
            texts.append(f"… {n_below:,} more nodes")
        box.lines = [(text, place == 0) for place, text in enumerate(texts)]
        return box


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


def width_of(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text in points, with some room, since letters are a little wider on a screen."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return 1.05 * float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])
