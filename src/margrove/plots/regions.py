"""The rectangles into which a tree cuts the plane of two columns, from its thresholds and not from a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import is_missing
from margrove.data.frames import as_table
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, check_flag
from margrove.plots.arguments import as_numbers, check_labels, check_mapping, check_rows
from margrove.plots.boundary import draw_frame, draw_marks, draw_points
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import evaluate, last_step_of
from margrove.plots.plane import Plane, held_in_words, held_number, read_plane, typical_cell
from margrove.plots.style import as_typed, axes_for, colour_of, ink, legend_outside, marker_area
from margrove.plots.tree import tree_of
from margrove.tree.model import TreeModel
from margrove.tree.problem import MISSING, Cells, TreeColumn
from margrove.tree.words import branch_of_codes, level_text, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

    from margrove.tree.estimator import DecisionTree

_COLOURS = "viridis"  # of values; readable without colours too

Rectangle = tuple[int, tuple[float, float], tuple[float, float]]  # leaf, from and to along x, along y


@as_typed
def plot_regions(
    model: DecisionTree,
    X: Any,
    y: Any,
    *,
    features: Sequence[str | int] | None = None,
    at: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the rectangles into which a tree cuts the plane of two numeric columns, with the points.

    A rectangle has the colour of the predicted class, or of the predicted value. Borders are exact: they are the tree's
    thresholds. If the tree tests other columns too, the picture is the slice where these are held at a value.
    Misclassified points are crossed out; they are predicted from all of their own cells.

    Parameters
    ----------
    model : a fitted tree
    X : array, sparse matrix, data frame or Table
        All columns that the tree was fitted on. Rows with one of the two cells missing are not drawn; the title counts
        them.
    y : labels or numbers of shape (n,)
    features : pair of column names or positions, optional
        The first along the x-axis. May be left out if ``X`` has just two.
    at : mapping of column names to cells, optional
        Where other columns are held. Default: the median, or the most frequent level.
    ax : matplotlib Axes, default: a new figure
    legend : bool, default=True
        A legend to the right of the axes, or a colour bar.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, load_penguins
    >>> from margrove.plots import plot_regions
    >>> penguins = load_penguins()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> ax = plot_regions(tree, penguins, penguins.labels(), features=["bill_length_mm", "flipper_length_mm"])
    >>> ax.get_title().splitlines()
    ['DecisionTreeClassifier', '13 of 344 misclassified', 'at island = Biscoe', '2 rows with a missing cell not drawn']
    """
    if hasattr(model, "steps"):
        cure = "Pass the tree and the rows it takes."
        raise InputError("model is a pipeline, whose columns are not those of the tree", cure=cure)
    tree, classes = tree_of(model)
    check_flag("legend", legend)
    check_rows(X)
    check_labels(y, wanted="labels" if classes is not None else "numbers")
    plane = read_plane(X, features)
    axes = _columns_of(tree, plane)
    held = held_cells(tree, as_table(X), axes, check_mapping("at", at, "columns to cells"))
    slices = rectangles(tree, axes, held)
    title = type(last_step_of(model)).__name__
    size = 6.8 if legend else 5.2, 4.4
    if classes is None:
        values = _values_of(y, len(plane.points))
        ax = axes_for(ax, *size)
        _draw_values(ax, tree, plane, values, slices, legend)
    else:
        evaluation = evaluate(model, X, y)
        title += f"\n{evaluation.description()}"
        ax = axes_for(ax, *size)
        for leaf, across, up in slices:
            _shade(ax, plane, across, up, colour_of(int(tree.value[leaf].argmax())), alpha=0.22)
        draw_points(ax, plane, evaluation)
        draw_marks(ax, plane, evaluation)
    words = {tree.columns[j].name: _in_words(tree.columns[j], cell) for j, cell in held.items()}
    draw_frame(ax, model, plane, title + held_in_words(words))
    ax.set_aspect("auto")  # a tree knows no angles: the axes need not have one scale
    if legend and classes is not None:
        legend_outside(ax)
    return ax


class RegionsDisplay(EstimatorDisplay, picture=plot_regions):
    """The rectangles into which a tree cuts a plane: `plot_regions`."""


def _values_of(y: Any, n: int) -> NDArray[np.float64]:
    """Return the numbers to be estimated, one for each row."""
    values = as_numbers(y)
    if values is None:
        raise InputError("y is not a column of numbers, but the tree predicts numbers")
    values = values.ravel()
    if len(values) != n:
        raise InputError(f"X has {n} rows and y has {len(values)}")
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InputError(f"y is {values[row]} in row {row}; a finite number was expected", cure="Remove such rows.")
    return values


def rectangles(tree: TreeModel, axes: tuple[int, int], held: dict[int, Any]) -> list[Rectangle]:
    """Return the leaves that the slice meets, each with its intervals of both columns; they cover the plane."""
    row = Cells(tree.columns, 1, tuple(_coded(column, held.get(j)) for j, column in enumerate(tree.columns)))
    everywhere = (-inf, inf)
    found: list[Rectangle] = []
    waiting = [(0, everywhere, everywhere)]
    while waiting:
        node, across, up = waiting.pop()
        j = int(tree.feature[node])
        if j < 0:
            found.append((node, across, up))
        elif j in axes:
            for child, (low, high) in _stretches(tree, node):
                before = across if j == axes[0] else up
                narrowed = max(before[0], low), min(before[1], high)
                if narrowed[0] < narrowed[1]:
                    waiting.append((child, narrowed, up) if j == axes[0] else (child, across, narrowed))
        else:
            branch = int(tree.branches(node, row, np.zeros(1, np.intp))[0])
            waiting.append((int(tree.children(node)[branch]), across, up))
    return found


def _stretches(tree: TreeModel, node: int) -> list[tuple[int, tuple[float, float]]]:
    """Return pairs of a child of a numeric test and an interval that leads to it."""
    column, children = tree.columns[int(tree.feature[node])], tree.children(node).tolist()
    if column.test == "threshold":
        theta = float(tree.threshold[node])
        return [(children[0], (-inf, theta)), (children[1], (theta, inf))]
    bounds = (-inf, *column.cuts, inf)
    branches = branch_of_codes(tree, node)
    return [(children[b], (bounds[code], bounds[code + 1])) for code, b in enumerate(branches)]


def _columns_of(tree: TreeModel, plane: Plane) -> tuple[int, int]:
    names = [column.name for column in tree.columns]
    for name in plane.names:
        if name not in names:
            cure = f"Its columns are {', '.join(names[:10])}."
            raise InputError(f"the tree was not fitted on a column {name!r}", cure=cure)
    first, second = (names.index(name) for name in plane.names)
    for j in (first, second):
        if not _is_numeric(tree.columns[j]):
            raise InputError(f"{names[j]!r} is a category in the tree; an axis needs numbers")
    return first, second


def held_cells(tree: TreeModel, table: Table, axes: tuple[int, int], at: dict[str, Any]) -> dict[int, Any]:
    """Return the cell of each column that the tree tests and the plane does not have."""
    asked = sorted(set(tree.feature[tree.feature >= 0].tolist()) - set(axes))
    names = [tree.columns[j].name for j in range(len(tree.columns)) if j not in axes]
    for name in at:
        if name not in names:
            others = f"'s other columns are {', '.join(names[:10])}" if names else " has no other column"
            raise ParameterError(f"at names {name!r}; the tree{others}.")
    return {j: at.get(name := tree.columns[j].name, typical_cell(table[name])) for j in asked}


def _is_numeric(column: TreeColumn) -> bool:
    return column.test in ("threshold", "intervals")


def _coded(column: TreeColumn, cell: Any) -> NDArray[Any]:
    """Return a cell as an array of one number or code; an unknown level gets the next code."""
    if _is_numeric(column):
        return np.array([np.nan if is_missing(cell) else held_number(column.name, cell)])
    known = column.levels.index(cell) if cell in column.levels else len(column.levels)
    return np.array([MISSING if is_missing(cell) else known], np.int32)


def _in_words(column: TreeColumn, cell: Any) -> str:
    if is_missing(cell):
        return "missing"
    if _is_numeric(column):
        return number_text(float(cell), column.format)
    return level_text(cell) if cell in column.levels else "other"


def _shade(
    ax: Axes, plane: Plane, across: tuple[float, float], up: tuple[float, float], colour: ColorType, alpha: float
) -> None:
    """Draw the visible part of a rectangle."""
    from matplotlib.patches import Rectangle as Patch

    (left, right), (bottom, top) = plane.limits
    x, y = max(across[0], left), max(up[0], bottom)
    width, height = min(across[1], right) - x, min(up[1], top) - y
    if width > 0 and height > 0:
        ax.add_patch(Patch((x, y), width, height, facecolor=colour, alpha=alpha, zorder=0, linewidth=0.0))
        ax.add_patch(Patch((x, y), width, height, facecolor="none", edgecolor=ink(), linewidth=0.8, zorder=1))


def _draw_values(
    ax: Axes, tree: TreeModel, plane: Plane, y: NDArray[np.float64], slices: list[Rectangle], legend: bool
) -> None:
    """Draw rectangles and points coloured by value, on one scale."""
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    scale = Normalize(float(y.min()), float(y.max()))
    colours = ScalarMappable(scale, mpl.colormaps[_COLOURS])
    for leaf, across, up in slices:
        _shade(ax, plane, across, up, colours.to_rgba(tree.value[leaf, 0]), alpha=0.55)
    x = plane.points[plane.is_complete]
    look: dict[str, Any] = {"edgecolors": ink(), "linewidths": 0.5, "zorder": 2, "norm": scale, "cmap": _COLOURS}
    ax.scatter(x[:, 0], x[:, 1], c=y[plane.is_complete], s=marker_area(len(x)), **look)
    if legend:
        ax.figure.colorbar(colours, ax=ax, label="value")
