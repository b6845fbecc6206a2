"""A tree as an SVG drawing that takes its colours from the page: the boxes and the layout of `margrove.plots`."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from margrove.app.report.blocks import Block, Legend, Picture
from margrove.plots.style import OKABE_ITO, colour_of
from margrove.plots.tree_boxes import BAR, DROP, HEAD, LINE, PAD, SMALL, Box, boxes_of, tops_of, words_height
from margrove.plots.tree_layout import tidy
from margrove.tree.words import labels_of

_GAP, _MARGIN = 9.0, 8.0  # in the units of the boxes: points
_MOST_BOXES = 40  # what can be looked at on a page
_DEEPEST = 6
_MOST_LEVELS = 4  # named at a branch


def drawn_tree(learner: Any) -> list[Block]:
    """Draw a fitted tree, with the colours of its classes."""
    names = [str(label) for label in getattr(learner, "classes_", ())]
    has_colours = 0 < len(names) <= len(OKABE_ITO)  # of more the colours begin anew
    legend = [Legend([(name, colour_of(code)) for code, name in enumerate(names)])] if has_colours else []
    return [tree_picture(learner), *legend]


def tree_picture(learner: Any) -> Picture:
    """Draw a fitted tree, as deep as it stays readable."""
    tree = learner.tree_
    labels = labels_of(tree, getattr(learner, "classes_", None))
    per_depth = np.cumsum(np.bincount(tree.depth))
    depth = max(1, min(_DEEPEST, int(np.searchsorted(per_depth, _MOST_BOXES, side="right")) - 1))
    boxes = boxes_of(tree, labels, depth, learner.p_values(), _MOST_LEVELS)
    middles = tidy([box.children for box in boxes], [box.slot for box in boxes], _GAP)
    tops = tops_of(boxes)
    width = max(x + box.slot / 2 for x, box in zip(middles, boxes, strict=True)) + 2 * _MARGIN
    height = tops[-1] + max(box.height for box in boxes if box.depth == len(tops) - 1) + 2 * _MARGIN
    lines, shapes = [], []
    for box, x in zip(boxes, middles, strict=True):
        y = tops[box.depth]
        below = [(boxes[child], middles[child]) for child in box.children]
        lines += [_line(child, x, y + box.height, to_x, tops[box.depth + 1], boxes) for child, to_x in below]
        shapes.append(_box(box, x, y))
    view = f"{-_MARGIN:g} {-_MARGIN:g} {width:.1f} {height:.1f}"
    size = f'width="{1.25 * width:.0f}" height="{1.25 * height:.0f}"'
    leaves = f"{tree.n_leaves:,} {'leaf' if tree.n_leaves == 1 else 'leaves'}"
    shown = "" if tree.max_depth < len(tops) else f"; drawn to depth {len(tops) - 1}"
    alt = f"A decision tree of {leaves}, depth {tree.max_depth}{shown}. The rules below say the same in words."
    svg = (
        f'<svg viewBox="{view}" {size} role="img" aria-label="{escape(alt)}" xmlns="http://www.w3.org/2000/svg" '
        f'class="tree" data-root="{1.25 * (middles[0] + _MARGIN):.0f}">{"".join(lines)}{"".join(shapes)}</svg>'
    )
    return Picture("Its questions", svg, alt)


def _line(child: Box, x: float, y: float, to_x: float, to_y: float, boxes: list[Box]) -> str:
    """Return the line from a box to a child, with the condition above the child."""
    turn = to_y - words_height(boxes, child.depth) - 0.6 * DROP
    path = f'<path class="twig" d="M{x:.1f} {y:.1f}V{turn:.1f}H{to_x:.1f}V{to_y:.1f}"/>'
    words = []
    for i, text in enumerate(child.label):
        up = 0.3 * DROP + (len(child.label) - i - 0.5) * LINE * SMALL
        words.append(_text(to_x, to_y - up, text, SMALL, "branch"))
    return path + "".join(words)


def _box(box: Box, x: float, y: float) -> str:
    edge = "" if box.code is None else f' style="stroke:{colour_of(box.code)};stroke-width:2"'
    dashes = ' stroke-dasharray="3 2"' if box.is_cut else ""
    left = x - box.width / 2
    parts = [
        f'<rect class="node" x="{left:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="4"{dashes}{edge}/>'
    ]
    at = y + PAD
    for text, is_bold in box.lines:
        size = HEAD if is_bold else SMALL
        parts.append(_text(x, at + LINE * size / 2, text, size, "head" if is_bold else ""))
        at += LINE * size
    if box.has_bar:
        parts.append(_bar(box, left + PAD, at + 3, box.width - 2 * PAD))
    return "".join(parts)


def _bar(box: Box, x: float, y: float, width: float) -> str:
    """Draw the shares of the classes, or the place of a number between the least and the largest leaf."""
    if box.shares is None:
        place = box.place or 0.0
        rail = (
            f'<rect class="rail" x="{x:.1f}" y="{y + 0.42 * BAR:.1f}" width="{width:.1f}" height="{0.16 * BAR:.1f}"/>'
        )
        mark = f'x="{x + place * (width - 5):.1f}" y="{y:.1f}" width="5" height="{BAR}"'
        return f'{rail}<rect {mark} fill="{OKABE_ITO[0]}"/>'
    parts = []
    for code, share in enumerate(box.shares.tolist()):
        if share > 0:
            size = f'width="{share * width:.2f}" height="{BAR}"'
            parts.append(f'<rect x="{x:.2f}" y="{y:.1f}" {size} fill="{colour_of(code)}"/>')
            x += share * width
    return "".join(parts)


def _text(x: float, y: float, text: str, size: float, kind: str) -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{name}>{escape(text)}</text>'
