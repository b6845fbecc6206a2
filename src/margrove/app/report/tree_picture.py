"""A tree as an SVG drawing that takes its colours from the page: the boxes and the layout of `margrove.plots`."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from margrove.app.report.blocks import Drawing
from margrove.plots.style import OKABE_ITO, colour_of
from margrove.plots.tree_boxes import BAR, SMALL, Box, boxes_of, lay_out
from margrove.tree.words import labels_of

_MARGIN = 8.0  # in the units of the boxes: points
_MOST_BOXES = 40  # what can be looked at on a page
_DEEPEST = 6
_MOST_LEVELS = 4  # named at a branch


def drawn_tree(learner: Any) -> Drawing:
    """Draw a fitted tree, as deep as it stays readable, with the colours of its classes."""
    tree = learner.nodes_
    labels = labels_of(tree, getattr(learner, "classes_", None))
    per_depth = np.cumsum(np.bincount(tree.depth))
    depth = max(1, min(_DEEPEST, int(np.searchsorted(per_depth, _MOST_BOXES, side="right")) - 1))
    form = getattr(learner, "target_format_", None)
    boxes = boxes_of(tree, labels, depth, learner.p_values(), _MOST_LEVELS, form)
    width, height = (length + 2 * _MARGIN for length in lay_out(boxes))
    lines = [_line(box, boxes[child]) for box in boxes for child in box.children]
    shapes = [_box(box) for box in boxes]
    view = f"{-_MARGIN:g} {-_MARGIN:g} {width:.1f} {height:.1f}"
    size = f'width="{1.25 * width:.0f}" height="{1.25 * height:.0f}"'
    leaves = f"{tree.n_leaves:,} {'leaf' if tree.n_leaves == 1 else 'leaves'}"
    deepest = max(box.depth for box in boxes)
    shown = "" if tree.max_depth <= deepest else f"; drawn to depth {deepest}"
    alt = f"A decision tree of {leaves}, depth {tree.max_depth}{shown}. The rules below describe it in words."
    svg = (
        f'<svg viewBox="{view}" {size} role="img" aria-label="{escape(alt)}" xmlns="http://www.w3.org/2000/svg" '
        f'class="tree" data-root="{1.25 * (boxes[0].x + _MARGIN):.0f}">{"".join(lines)}{"".join(shapes)}</svg>'
    )
    names = [str(name) for name in getattr(learner, "classes_", ())]
    has_colours = len(names) <= len(OKABE_ITO)  # of more the colours repeat
    legend = [(name, colour_of(code)) for code, name in enumerate(names)] if has_colours else []
    return Drawing("Diagram of the tree", svg, alt, legend)


def _line(box: Box, child: Box) -> str:
    """Return the line from a box to a child, with the condition above the child."""
    start = f"M{box.x:.1f} {box.y + box.height:.1f}"
    path = f'<path class="twig" d="{start}V{child.turn:.1f}H{child.x:.1f}V{child.y:.1f}"/>'
    return path + "".join(_text(child.x, y, text, SMALL, "branch") for text, y in child.label_texts())


def _box(box: Box) -> str:
    edge = "" if box.code is None else f' style="stroke:{colour_of(box.code)};stroke-width:2"'
    dashes = ' stroke-dasharray="3 2"' if box.is_cut else ""
    left = box.x - box.width / 2
    parts = [
        f'<rect class="node" x="{left:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="4"{dashes}{edge}/>'
    ]
    parts += [_text(box.x, y, text, size, "head" if is_bold else "") for text, y, size, is_bold in box.texts()]
    return "".join(parts) + (_bar(box) if box.has_bar else "")


def _bar(box: Box) -> str:
    """Draw the shares of the classes, or the place of a number between the least and the largest leaf."""
    x, y, width = box.bar
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
