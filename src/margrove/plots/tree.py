"""A tree: a box for each node, the branches of its test on the lines below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.errors import InputError, ParameterError, check_flag, check_whole
from margrove.plots.arguments import as_list, as_numbers, check_model, found, shape_of
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import last_step_of
from margrove.plots.style import OKABE_ITO, as_typed, check_axes, colour_of, ink
from margrove.plots.tree_boxes import BAR, LISTED, SMALL, Box, boxes_of, clipped, lay_out, width_of
from margrove.tree.model import TreeModel
from margrove.tree.words import labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.pipeline import Pipeline

    from margrove.tree.estimator import DecisionTree

# In points, as all lengths here: see `tree_boxes`.
_TITLE = 11.0  # letters
_MARGIN = 14.0  # around the drawing
_MOST_IN_LEGEND = 12  # classes; the colours repeat after seven


@as_typed
def plot_tree(
    model: DecisionTree | TreeModel | Pipeline,
    *,
    ax: Axes | None = None,
    max_depth: int | None = 5,
    classes: ArrayLike | None = None,
    p_values: NDArray[np.float64] | bool | None = True,
    legend: bool = True,
    max_levels: int | None = LISTED,
) -> Axes:
    """Draw a tree: a box for each node with its test or its prediction, its rows, and a bar of its classes.

    A box of a test also has the p-value of its split. The lines to its branches are labelled with the cells that take
    them, in the words of ``rules``. Regression has a mark on a line from the smallest to the largest leaf instead of a
    bar. A new figure is as large as the drawing; on given axes the drawing is scaled to fit.

    Parameters
    ----------
    model : a fitted tree, a ``Pipeline`` that ends in one, or a TreeModel
    ax : matplotlib Axes, default: a new figure
    max_depth : int, default=5
        Deeper nodes are not drawn; a box with more below it has a dashed border and counts them. None means all. 600
        boxes at most are drawn.
    classes : labels of shape (K,), optional
        For a TreeModel, which has no labels.
    p_values : bool or array of shape (m,), default=True
        True: those of the tree's ``p_values()``, which a TreeModel has not. False: none. An array has one for each
        node of the tree, NaN for none.
    legend : bool, default=True
        The classes and their colours above the tree, if they are twelve at most.
    max_levels : int, default=6
        Levels named at a branch; the others are counted. None means all.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.plots import plot_tree
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> from margrove.tree.reference import grow
    >>> weight = np.array([15.0, 16, 19, 22, 27, 29])
    >>> cells = Cells((TreeColumn("weight", has_missing=False),), 6, (weight,))
    >>> tree = grow(TreeProblem(cells, np.array([0, 0, 0, 1, 1, 1], dtype=np.int32), n_classes=2))
    >>> ax = plot_tree(tree, classes=["light", "heavy"], legend=False)
    >>> [text.get_text() for text in ax.texts]
    ['≤ 20.5', '> 20.5', 'weight', 'n = 6 · 50 % light', 'light', 'n = 3', '100 %', 'heavy', 'n = 3', '100 %']
    """
    if max_depth is not None:
        check_whole("max_depth", max_depth, least=0, cure="None means all.")
    if max_levels is not None:
        check_whole("max_levels", max_levels, least=1, cure="None means all.")
    check_flag("legend", legend)
    check_axes(ax)
    tree, classes = tree_of(model, classes)
    if isinstance(model, TreeModel) and classes is not None:
        classes = as_list("classes", classes, "labels, one for each class")
    labels = labels_of(tree, classes)
    form = getattr(model, "target_format_", None)
    boxes = boxes_of(tree, labels, max_depth, _shown_p_values(model, tree, p_values), max_levels, form)
    width, height = lay_out(boxes)
    names = [clipped(str(label)) for label in labels or ()] if legend else []
    names = names if len(names) <= _MOST_IN_LEGEND else []
    swatches, top = _swatches(names, width)
    ax, scale = _axes(ax, width + 2 * _MARGIN, top + height + 2 * _MARGIN)
    for code, ((x, y), name) in enumerate(zip(swatches, names, strict=True)):
        _rectangle(ax, x, y, 9.0, 9.0, facecolor=colour_of(code), linewidth=0)
        _write(ax, x + 13.0, y + 4.5, name, SMALL * scale, ha="left")
    for box in boxes:
        box.y += top
    for box in boxes:
        for child in box.children:
            _draw_line(ax, box, boxes[child], scale)
        _draw_box(ax, box, scale)
    deepest = max(box.depth for box in boxes)
    shown = "" if tree.max_depth <= deepest else f", drawn to depth {deepest}"
    leaves = f"{tree.n_leaves:,} {'leaf' if tree.n_leaves == 1 else 'leaves'}"
    kind = "" if isinstance(model, TreeModel) else f"{type(last_step_of(model)).__name__}: "
    ax.set_title(f"{kind}{leaves}, depth {tree.max_depth}{shown}", fontsize=_TITLE * min(1.0, scale))
    return ax


class TreeDisplay(EstimatorDisplay, picture=plot_tree):
    """A tree, box by box: `plot_tree`."""


def _shown_p_values(
    model: object, tree: TreeModel, wanted: NDArray[np.float64] | bool | None
) -> NDArray[np.float64] | None:
    """Return the p-value of each node, or None to show none."""
    if wanted is None or isinstance(wanted, (bool, np.bool_)):
        own = getattr(last_step_of(model), "p_values", None)
        return own() if wanted and own is not None else None
    if not shape_of(wanted):
        raise ParameterError(f"{found('p_values', wanted)}; it must be True, False or an array of {tree.n_nodes}.")
    if shape_of(wanted) != (tree.n_nodes,):
        raise InputError(f"p_values has the shape {shape_of(wanted)}; one for each of {tree.n_nodes} nodes is needed")
    values = as_numbers(wanted)
    if values is None or ((values < 0) | (values > 1)).any():  # NaN stands for none
        raise ParameterError("p_values contains entries that are not from 0 to 1; use NaN for a node without one.")
    return values


def tree_of(model: object, classes: ArrayLike | None = None) -> tuple[TreeModel, ArrayLike | None]:
    """Return the arrays of a fitted tree and its class labels; None for regression."""
    learner = last_step_of(model)
    if isinstance(learner, TreeModel):
        return learner, classes
    if classes is not None:
        raise ParameterError(f"classes is given, but {type(learner).__name__} has its own; leave it out.")
    check_model("model", learner, wanted="a fitted tree")
    tree = getattr(learner, "nodes_", None)
    if not isinstance(tree, TreeModel):
        raise InputError(f"{type(learner).__name__} is not one of Margrove's trees", cure="Fit one and pass it.")
    return tree, getattr(learner, "classes_", None)


def _swatches(names: list[str], width: float) -> tuple[list[tuple[float, float]], float]:
    """Return the places of the squares of the legend, in lines as wide as the tree, and its height."""
    spots: list[tuple[float, float]] = []
    x, y = 0.0, 0.0
    for name in names:
        need = 13.0 + width_of(name, SMALL) + 14.0
        if x > 0 and x + need > width:
            x, y = 0.0, y + 1.6 * SMALL
        spots.append((x, y))
        x += need
    if y == 0.0:
        spots = [(spot + max(0.0, (width - x) / 2), y) for spot, y in spots]
    return spots, y + 1.6 * SMALL + 10.0 if names else 0.0


def _axes(ax: Axes | None, width: float, height: float) -> tuple[Axes, float]:
    """Return axes in points, y downwards, and the points of paper of one of them."""
    if ax is None:
        import matplotlib.pyplot as plt

        whole = height + 2.2 * _TITLE
        size = (max(width, 260.0) / 72, whole / 72)
        ax = plt.figure(figsize=size).add_axes((0.0, 0.0, 1.0, height / whole))
    figure: Figure = ax.get_figure(root=True)  # type: ignore[assignment]  # axes that are drawn on have one
    paper = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())  # in inches
    scale = float(min(72 * paper.width / width, 72 * paper.height / height))
    ax.set_xlim(-_MARGIN, width - _MARGIN)
    ax.set_ylim(height - _MARGIN, -_MARGIN)
    ax.set_aspect("equal", adjustable="box", anchor="C")
    ax.set_axis_off()
    return ax, scale


def _draw_box(ax: Axes, box: Box, scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    def rounded(**look: Any) -> None:
        place, shape = (box.x - box.width / 2, box.y), "round,pad=0,rounding_size=4"
        ax.add_patch(FancyBboxPatch(place, box.width, box.height, shape, **look))

    tint = None if box.code is None else colour_of(box.code)
    line = {"linewidth": (1.4 if tint else 0.9) * scale, "linestyle": (0, (3, 2)) if box.is_cut else "solid"}
    rounded(facecolor=ax.get_facecolor(), edgecolor="none", zorder=2)
    if tint:
        rounded(facecolor=tint, edgecolor="none", alpha=0.14, zorder=3)
    rounded(facecolor="none", edgecolor=tint or ink(), zorder=5, **line)
    for text, y, size, bold in box.texts():
        _write(ax, box.x, y, text, size * scale, weight="bold" if bold else "normal")
    x, y, width = box.bar
    if box.shares is not None:
        for k, share in enumerate(box.shares.tolist()):
            if share > 0:
                _rectangle(ax, x, y, share * width, BAR, facecolor=colour_of(k), linewidth=0)
                x += share * width
    elif box.place is not None:
        _rectangle(ax, x, y + 0.42 * BAR, width, 0.16 * BAR, facecolor=ink(), alpha=0.35, linewidth=0)
        _rectangle(ax, x + box.place * (width - 5.0), y, 5.0, BAR, facecolor=OKABE_ITO[0], linewidth=0)


def _draw_line(ax: Axes, box: Box, child: Box, scale: float) -> None:
    """Draw a line down, across and down again, with the label on its last part, above the child."""
    look: dict[str, Any] = {"color": ink(), "linewidth": 0.9 * scale, "alpha": 0.6, "zorder": 1}
    across, down = [box.x, box.x, child.x, child.x], [box.y + box.height, child.turn, child.turn, child.y]
    ax.plot(across, down, solid_joinstyle="round", **look)
    for text, y in child.label_texts():
        background = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1.0 * scale}
        _write(ax, child.x, y, text, SMALL * scale, bbox=background, zorder=4)


def _rectangle(ax: Axes, x: float, y: float, width: float, height: float, **look: Any) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((x, y), width, height, zorder=4, **look))


def _write(ax: Axes, x: float, y: float, text: str, size: float, **look: Any) -> None:
    place = {"ha": "center", "va": "center_baseline", "zorder": 6, **look}
    ax.text(x, y, text, fontsize=size, parse_math=False, **place)
