"""A tree as a picture: a box for each node, its test's branches on the lines below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from margrove.errors import InputError, ParameterError, check_whole
from margrove.plots.judgement import learner_of
from margrove.plots.style import OKABE_ITO, colour_of, ink
from margrove.plots.tree_layout import tidy
from margrove.tree.model import TreeModel
from margrove.tree.rules import p_words
from margrove.tree.words import labels_of, places, shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Lengths are in points, 1/72 inch, of a figure made to need; on axes that are given, all shrink or grow together.
_HEAD, _SMALL, _TITLE = 9.0, 8.0, 11.0  # letters
_LINE = 1.35  # of the height of letters: from one line to the next
_PAD = 6.0  # between the edge of a box and what is in it
_BAR = 7.0  # height of a bar of class shares
_LEAST = 46.0  # width of a box
_GAP = 9.0  # between two boxes side by side
_DROP = 26.0  # between two rows of boxes, besides the words on the lines
_MARGIN = 14.0  # around the drawing
_LONGEST_NAME, _LONGEST_LABEL = 28, 15  # letters of a column's or class's name; of a line of words at a branch
_LONGEST_INSIDE = 14  # letters of the name of the largest class, at a test
_LABEL_LINES = 4
_LISTED = 6  # levels at a branch
_MOST_BRANCHES = 12  # boxes below a node: of more, the heaviest and how many are left out
_MOST_BOXES = 600  # a picture with more cannot be read, nor made in a short time
_MOST_IN_LEGEND = 12  # classes; the colours begin anew after seven


@dataclass
class _Box:
    """A node as it is drawn, or what stands for nodes that are not."""

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
        texts = [_width(text, _HEAD if bold else _SMALL, bold) for text, bold in self.lines]
        return max(_LEAST, 2 * _PAD + max(texts))

    @property
    def slot(self) -> float:
        """The width that it needs with its label."""
        return max([self.width, *(_width(text, _SMALL) + 4 for text in self.label)])

    @property
    def has_bar(self) -> bool:
        return self.shares is not None or self.place is not None

    @property
    def height(self) -> float:
        text = sum(_LINE * (_HEAD if bold else _SMALL) for _, bold in self.lines)
        return 2 * _PAD + text + (_BAR + 3 if self.has_bar else 0)


def plot_tree(
    model: Any,
    *,
    ax: Axes | None = None,
    max_depth: int | None = 5,
    classes: Any = None,
    p_values: NDArray[np.float64] | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a tree: a box for each node with its test or its prediction, its rows, and a bar of its classes.

    The lines from a box down to the next say for which cells of its column they are; what stands there is what
    ``rules`` says. Regression has a mark on a line from the least to the largest leaf instead of a bar. The figure is
    made as large as the drawing needs, on axes that are given all is drawn to their size.

    Parameters
    ----------
    model : a fitted tree, a ``Pipeline`` that ends in one, or a TreeModel
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.
    max_depth : int, default=5
        Draw no deeper; a box with more below it has a dashed border and says how many nodes. None means all.
    classes : labels of shape (K,), optional
        Of a TreeModel, which knows no labels.
    p_values : array of shape (m,), optional
        One for each node of the tree; where it is a number, the box shows it.
    legend : bool, default=True
        The classes and their colours above the tree, if they are twelve at most.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ParameterError
        If more than 600 boxes would be drawn.
    """
    if max_depth is not None:
        check_whole("max_depth", max_depth, least=0, cure="None means all.")
    tree, classes = tree_of(model, classes)
    labels = labels_of(tree, classes)
    if p_values is not None and np.shape(p_values) != (tree.n_nodes,):
        raise InputError(
            f"p_values has the shape {np.shape(p_values)}; one for each of {tree.n_nodes} nodes was wanted"
        )
    boxes = _boxes(tree, labels, max_depth, p_values)
    middles = tidy([box.children for box in boxes], [box.slot for box in boxes], _GAP)
    rows = _rows(boxes)
    width = max(x + box.slot / 2 for x, box in zip(middles, boxes, strict=True))
    has_legend = legend and labels is not None and len(labels) <= _MOST_IN_LEGEND
    names = [_clipped(str(label), _LONGEST_NAME) for label in labels] if has_legend and labels is not None else []
    swatches, top = _swatches(names, width)
    height = top + rows[-1] + max(box.height for box in boxes if box.depth == len(rows) - 1)
    ax, scale = _axes(ax, width + 2 * _MARGIN, height + 2 * _MARGIN)
    for (x, y), code in zip(swatches, range(len(names)), strict=True):
        _rectangle(ax, x, y, 9.0, 9.0, facecolor=colour_of(code), linewidth=0)
        _write(ax, x + 13.0, y + 4.5, names[code], _SMALL * scale, ha="left")
    for box, x in zip(boxes, middles, strict=True):
        y = top + rows[box.depth]
        for child in box.children:
            below = top + rows[box.depth + 1]
            turn = below - _words_height(boxes, box.depth + 1) - 0.6 * _DROP
            corners = [(x, y + box.height), (x, turn), (middles[child], turn), (middles[child], below)]
            _draw_line(ax, boxes[child], corners, scale)
        _draw_box(ax, box, x, y, scale)
    shown = "" if tree.max_depth < len(rows) else f", drawn to depth {len(rows) - 1}"
    leaves = f"{tree.n_leaves:,} {'leaf' if tree.n_leaves == 1 else 'leaves'}"
    kind = "" if isinstance(model, TreeModel) else f"{type(learner_of(model)).__name__}: "
    ax.set_title(f"{kind}{leaves}, depth {tree.max_depth}{shown}", fontsize=_TITLE * min(1.0, scale))
    return ax


def tree_of(model: Any, classes: Any = None) -> tuple[TreeModel, Any]:
    """The arrays of a fitted tree and its class labels; None for regression."""
    learner = learner_of(model)
    if isinstance(learner, TreeModel):
        return learner, classes
    if classes is not None:
        raise ParameterError(f"classes is given, and {type(learner).__name__} has its own; leave it out.")
    check_is_fitted(learner)
    tree = getattr(learner, "tree_", None)
    if not isinstance(tree, TreeModel):
        raise InputError(f"{type(learner).__name__} is not one of Margrove's trees", cure="Fit one, and give that.")
    return tree, getattr(learner, "classes_", None)


def _boxes(
    tree: TreeModel, labels: list[Any] | None, max_depth: int | None, p_values: NDArray[np.float64] | None
) -> list[_Box]:
    """What is drawn, each child behind its parent."""
    leaf_values = tree.value[tree.is_leaf, 0]
    low, high = float(leaf_values.min()), float(leaf_values.max())
    share_of_class = None if labels is None else shares(tree)
    boxes: list[_Box] = []
    number: dict[int, int] = {}  # of a node's box
    for place in places(tree, max_depth):
        node, parent = place.node, int(tree.parent[place.node])
        if parent >= 0 and (parent not in number or not _is_drawn(tree, parent, node)):
            continue
        number[node] = len(boxes)
        n_below = int(tree.end[node]) - node - 1
        is_end = tree.feature[node] < 0 or tree.depth[node] == max_depth
        box = _Box(int(tree.depth[node]), lines=[], is_cut=is_end and n_below > 0)
        n = f"n = {int(tree.n_rows[node]):,}"
        if labels is None or share_of_class is None:
            value = float(tree.value[node, 0])
            box.place = (value - low) / (high - low) if high > low else 0.5
            box.place = min(1.0, max(0.0, box.place))  # a median of medians may lie beside them
            outcome, facts = f"{value:.4g}", [n] if is_end else [f"{n} · value {value:.4g}"]
        else:
            box.shares = share_of_class[node]
            k = int(box.shares.argmax())
            outcome, part = str(labels[k]), _percent(float(box.shares[k]))
            box.code = k if is_end else None
            facts = [n, part] if is_end else [f"{n} · {part} {_clipped(outcome, _LONGEST_INSIDE)}"]
        head = outcome if is_end else tree.columns[int(tree.feature[node])].name
        box.lines = [(_clipped(head, _LONGEST_NAME), True), *((fact, False) for fact in facts)]
        if p_values is not None and np.isfinite(p_values[node]):
            box.lines.append((p_words(float(p_values[node])), False))
        if box.is_cut:
            box.lines.append((f"… {n_below:,} more nodes", False))
        if place.branch is not None:
            box.label = _label(place.branch.words(name=False, most=_LISTED))
        boxes.append(box)
        if parent >= 0:
            boxes[number[parent]].children.append(number[node])
        if len(boxes) > _MOST_BOXES:
            raise ParameterError(f"max_depth is {max_depth}; that is more than {_MOST_BOXES} boxes. Use less.")
    for node, i in list(number.items()):
        for stub in _stub(tree, node, boxes[i]):
            boxes[i].children.append(len(boxes))
            boxes.append(stub)
    return boxes


def _is_drawn(tree: TreeModel, parent: int, node: int) -> bool:
    """Of many branches, whether this is one of the heaviest."""
    children = tree.children(parent)
    if len(children) <= _MOST_BRANCHES:
        return True
    heaviest = np.argsort(-tree.weight[children], kind="stable")[: _MOST_BRANCHES - 1]
    return bool(np.any(children[heaviest] == node))


def _stub(tree: TreeModel, node: int, box: _Box) -> Iterator[_Box]:
    """What stands for the branches that are not drawn."""
    children = tree.children(node)
    left_out = [int(child) for child in children if box.children and not _is_drawn(tree, node, int(child))]
    if left_out:
        rows = int(tree.n_rows[left_out].sum())
        yield _Box(
            box.depth + 1, [(f"… {len(left_out):,} more branches", False), (f"n = {rows:,}", False)], is_cut=True
        )


def _rows(boxes: list[_Box]) -> list[float]:
    """The top of the boxes of each depth: below the highest box above them, and the longest label."""
    tops = [0.0]
    for depth in range(1, 1 + max(box.depth for box in boxes)):
        above = max(box.height for box in boxes if box.depth == depth - 1)
        tops.append(tops[-1] + above + _DROP + _words_height(boxes, depth))
    return tops


def _words_height(boxes: list[_Box], depth: int) -> float:
    """Of the longest label above the boxes of one depth."""
    return _LINE * _SMALL * max(len(box.label) for box in boxes if box.depth == depth)


def _swatches(names: list[str], width: float) -> tuple[list[tuple[float, float]], float]:
    """Where the squares of the legend stand, in lines as wide as the tree; and the height of it all."""
    spots: list[tuple[float, float]] = []
    x, y = 0.0, 0.0
    for name in names:
        need = 13.0 + _width(name, _SMALL) + 14.0
        if x > 0 and x + need > width:
            x, y = 0.0, y + 1.6 * _SMALL
        spots.append((x, y))
        x += need
    if y == 0.0:
        spots = [(spot + max(0.0, (width - x) / 2), y) for spot, y in spots]
    return spots, y + 1.6 * _SMALL + 10.0 if names else 0.0


def _axes(ax: Axes | None, width: float, height: float) -> tuple[Axes, float]:
    """Axes in points, y downwards, and how many points of paper one of them is."""
    if ax is None:
        import matplotlib.pyplot as plt

        title = 2.2 * _TITLE
        ax = plt.figure(figsize=(max(width, 260.0) / 72, (height + title) / 72)).add_axes(
            (0.0, 0.0, 1.0, height / (height + title))
        )
    figure: Any = ax.get_figure(root=True)
    paper = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())  # in inches
    scale = float(min(72 * paper.width / width, 72 * paper.height / height))
    ax.set_xlim(-_MARGIN, width - _MARGIN)
    ax.set_ylim(height - _MARGIN, -_MARGIN)
    ax.set_aspect("equal", adjustable="box", anchor="C")
    ax.set_axis_off()
    return ax, scale


def _draw_box(ax: Axes, box: _Box, x: float, y: float, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    tint = None if box.code is None else colour_of(box.code)
    line = {"linewidth": (1.4 if tint else 0.9) * scale, "linestyle": (0, (3, 2)) if box.is_cut else "solid"}
    shape = "round,pad=0,rounding_size=4"
    place = (x - box.width / 2, y)
    ground = ax.get_facecolor()
    ax.add_patch(FancyBboxPatch(place, box.width, box.height, shape, facecolor=ground, edgecolor="none", zorder=2))
    if tint:
        look: dict[str, Any] = {"facecolor": tint, "edgecolor": "none", "alpha": 0.14, "zorder": 3}
        ax.add_patch(FancyBboxPatch(place, box.width, box.height, shape, **look))
    edge = tint or ink()
    look = {"facecolor": "none", "edgecolor": edge, "zorder": 5, **line}
    ax.add_patch(FancyBboxPatch(place, box.width, box.height, shape, **look))
    at = y + _PAD
    for text, bold in box.lines:
        size = _HEAD if bold else _SMALL
        _write(ax, x, at + _LINE * size / 2, text, size * scale, weight="bold" if bold else "normal")
        at += _LINE * size
    if box.has_bar:
        _draw_bar(ax, box, x - box.width / 2 + _PAD, at + 3, box.width - 2 * _PAD)


def _draw_bar(ax: Axes, box: _Box, x: float, y: float, width: float) -> None:
    if box.shares is not None:
        for k, share in enumerate(box.shares.tolist()):
            if share > 0:
                _rectangle(ax, x, y, share * width, _BAR, facecolor=colour_of(k), linewidth=0)
                x += share * width
    elif box.place is not None:
        _rectangle(ax, x, y + 0.42 * _BAR, width, 0.16 * _BAR, facecolor=ink(), alpha=0.35, linewidth=0)
        _rectangle(ax, x + box.place * (width - 5.0), y, 5.0, _BAR, facecolor=OKABE_ITO[0], linewidth=0)


def _draw_line(ax: Axes, child: _Box, corners: list[tuple[float, float]], scale: float) -> None:
    """Down, across and down again; the words stand on the last part, above the child."""
    look: dict[str, Any] = {"color": ink(), "linewidth": 0.9 * scale, "alpha": 0.6, "zorder": 1}
    ax.plot(*zip(*corners, strict=True), solid_joinstyle="round", **look)
    x, y = corners[-1]
    for i, text in enumerate(child.label):
        up = 0.3 * _DROP + (len(child.label) - i - 0.5) * _LINE * _SMALL
        ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1.0 * scale}
        _write(ax, x, y - up, text, _SMALL * scale, bbox=ground, zorder=4)


def _rectangle(ax: Axes, x: float, y: float, width: float, height: float, **look: Any) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, y), width, height, zorder=4, **look))


def _write(ax: Axes, x: float, y: float, text: str, size: float, **look: Any) -> None:
    place = {"ha": "center", "va": "center_baseline", "zorder": 6, **look}
    ax.text(x, y, text, fontsize=size, parse_math=False, **place)


def _label(words: str) -> list[str]:
    """A few short lines."""
    joint = words.replace(" or ", " or\N{NO-BREAK SPACE}")  # "or missing" stays together
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrap(joint, _LONGEST_LABEL, break_long_words=False)]
    if len(lines) > _LABEL_LINES:
        lines = [*lines[: _LABEL_LINES - 1], f"{lines[_LABEL_LINES - 1]} …"]
    return [_clipped(line, _LONGEST_LABEL + 4) for line in lines]


def _percent(share: float) -> str:
    """Without digits behind the point; 100 % only if it is all."""
    return "> 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _clipped(text: str, most: int) -> str:
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


@cache
def _text_to_path() -> Any:
    from matplotlib.textpath import TextToPath

    return TextToPath()


def _width(text: str, size: float, bold: bool = False) -> float:
    """Of letters of this size, in points, with some room, since on a screen letters are a little wider."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return 1.05 * float(_text_to_path().get_text_width_height_descent(text, font, ismath=False)[0])
