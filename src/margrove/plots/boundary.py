"""A plane: what a classifier says everywhere in it, and the points it was asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError, ParameterError, check_flag, check_number, check_whole
from margrove.plots.arguments import check_axes, check_mapping, check_model, check_rows
from margrove.plots.components import component_plane
from margrove.plots.judgement import Judgement, Predictor, class_scores, judge, learner_of
from margrove.plots.plane import Plane, check_names, plane_for
from margrove.plots.slices import slice_plane
from margrove.plots.style import (
    as_typed,
    colour_of,
    edge_width,
    ink,
    legend_outside,
    line_share,
    marker_area,
    marker_of,
    new_axes,
)
from margrove.plots.words import MEANINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RINGS = {"marginal": 0.9, "hard": 1.8}  # around support vectors: widths of the lines in points
_CELLS = 2_000_000  # of the points of the grid that are judged at a time
_MOST_ALONG = 4_000  # grid points along an axis: more than a picture has dots, and 16 million rows to judge
_CROWD = 200  # rings, or crosses, that a picture bears; more are drawn fainter, so that the points stay visible
_FAINTEST = 0.1  # their opacity, at least


@as_typed
def plot_boundary(
    model: Predictor,
    X: Any,
    y: Any = None,
    *,
    ax: Axes | None = None,
    features: Sequence[str | int] | Literal["pca"] | None = None,
    at: Mapping[str, Any] | None = None,
    margins: bool | float = True,
    regions: bool = True,
    legend: bool = True,
    resolution: int = 300,
) -> Axes:
    """Draw the regions, the boundary and the margins of a classifier in a plane, with its points.

    The plane is that of the two columns of the model; of a model of more columns that of two that are chosen, the
    others held at their typical cell, or that of the two first principal components. The title says which.

    The class of a point is shown by colour and by marker. Misclassified points are crossed out; of two classes that are
    separated, the nearest point of each stands in a square. The title gives the errors and the margin on these points.

    The support vectors of a support vector machine are ringed, if these are the points it was fitted on: with a thin
    ring where they are *marginal* (on the margin, 0 < α < C), with a bold one where they are *hard* (α = C: inside the
    margin, or on the wrong side). The others are *easy*: without them nothing would change.

    Parameters
    ----------
    model : a fitted classifier, or a ``Pipeline`` that ends in one
        Margrove's or scikit-learn's. Without ``decision_function`` it has regions only. A one-class machine has one
        region: inside.
    X : array, sparse matrix, data frame or Table
        The points, judged by all of their cells. One of which a cell that the plane shows is missing has no place in
        it; the title says so.
    y : labels of shape (n,)
        Left out for a one-class machine.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.
    features : pair of column names or positions, or "pca", optional
        The two columns that vary, the first along the x-axis. May be left out if ``X`` has just two. ``"pca"`` is
        the plane of the two first principal components of the rows as the classifier sees them, after a pipeline's
        encoder.
    at : mapping of column names to cells, optional
        Where a model of more than two columns has the others held. Those that are not named: at their median, or their
        most frequent level.
    margins : bool or float, default=True
        Draw the lines f = ±m for two classes. True takes for m the smallest functional margin y f(x) where
        that is > 0, so that the nearest point is on a line and nothing lies between them; it takes 1 for
        support vector machines, and draws no lines where the points are not separated. A number is m itself.
    regions : bool, default=True
        Shade the plane by predicted class.
    legend : bool, default=True
        A legend to the right of the axes.
    resolution : int, default=300
        Grid points along each axis.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the two columns are not said, or one of them is not numeric.
    ParameterError
        If ``at`` names a column that cannot be held, or a level that no row has.

    Notes
    -----
    The margin is a distance in the space the classifier sees: after a pipeline's encoder, and for a kernel in
    its feature space. Only for a linear classifier without a pipeline is it what a ruler finds in the
    picture; its axes have one scale then, unless their ranges differ much. In a slice of many columns the margin lines
    are where f = ±m in that slice; a point beside it may be on the other side of them. The title counts those that the
    model judges otherwise than the slice at the place where they are drawn: the fewer, the more the slice tells.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import BasicLinearClassifier
    >>> from margrove.plots import plot_boundary
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 3.0], [6.0, 3.0]])
    >>> y = np.array(["a", "a", "b", "b"])
    >>> ax = plot_boundary(BasicLinearClassifier().fit(X, y), X, y)
    >>> ax.get_title().splitlines()
    ['BasicLinearClassifier', 'no errors, margin 1.7']

    Of the 4 columns of iris two are chosen:

    >>> from sklearn.datasets import load_iris
    >>> from margrove import SVC
    >>> iris = load_iris(as_frame=True)
    >>> model = SVC().fit(iris.data, iris.target)
    >>> ax = plot_boundary(model, iris.data, iris.target, features=["petal length (cm)", "petal width (cm)"])
    >>> ax.get_title().splitlines()[3:]
    ['at sepal length (cm) = 5.8, sepal width (cm) = 3', '2 are judged otherwise than this slice shows']
    """
    check_model("model", model, wanted="a fitted classifier")
    check_axes("ax", ax)
    _check_options(margins, regions, legend, resolution)
    check_rows(X)
    plane = _plane_of(model, X, features, {} if at is None else check_mapping("at", at, "columns to cells"))
    judgement = judge(model, plane.rows, y)
    ax = new_axes(6.8 if legend else 5.2, 4.4) if ax is None else ax
    draw_points(ax, plane, judgement)
    draw_model(ax, model, plane, judgement, margins=margins, regions=regions, resolution=resolution)
    draw_marks(ax, plane, judgement)
    plane = replace(plane, words=plane.words + _beside(model, plane))
    draw_frame(ax, model, plane, f"{type(learner_of(model)).__name__}\n{judgement.in_words()}")
    if legend:
        legend_outside(ax)
    return ax


def _check_options(margins: bool | float, regions: bool, legend: bool, resolution: int) -> None:
    if not isinstance(margins, (bool, np.bool_)):
        check_number("margins", margins, above=0, cure="True finds the level itself, False draws no lines.")
    check_flag("regions", regions)
    check_flag("legend", legend)
    check_whole("resolution", resolution, least=2, cure="300 grid points along each axis are the default.")
    if resolution > _MOST_ALONG:
        raise ParameterError(f"resolution is {resolution:,}; it must be {_MOST_ALONG:,} grid points at most.")


def _beside(model: Predictor, plane: Plane) -> str:
    """How many points of a slice do not lie in it as far as the model can tell, for the title."""
    if not plane.words:
        return ""
    there = plane.is_complete
    asked = learner_of(model) if plane.is_encoded else model
    in_slice = np.concatenate([np.asarray(asked.predict(rows)) for rows in _in_blocks(plane, plane.points[there])])
    n = int((np.asarray(model.predict(plane.rows))[there] != in_slice).sum())
    return f"\n{n:,} {'is' if n == 1 else 'are'} judged otherwise than this slice shows" if n else ""


def _plane_of(
    model: Predictor, X: Any, features: Sequence[str | int] | Literal["pca"] | None, at: Mapping[str, Any]
) -> Plane:
    """The plane of two columns, of two out of more, or of two principal components."""
    if getattr(learner_of(model), "kernel", None) == "precomputed":
        raise InputError("a model with kernel='precomputed' knows no points", cure="Fit it with a kernel by name.")
    if isinstance(features, str) and features == "pca":
        if at:
            raise ParameterError("at holds columns, and features='pca' has none to hold; leave one of the two out.")
        return component_plane(model, X)
    if getattr(model, "n_features_in_", 2) != 2:
        return slice_plane(model, X, features, at)
    if at:
        raise ParameterError("at holds columns, and the model was fitted on two; leave it out.")
    plane = plane_for(model, X, features)
    check_names(model, plane.names)
    return plane


def draw_points(ax: Axes, plane: Plane, judgement: Judgement) -> None:
    """Every point that has both its cells, by class."""
    for code, label in enumerate(judgement.classes):
        x = plane.points[plane.is_complete & (judgement.codes == code)]
        look: dict[str, Any] = {
            "color": colour_of(code),
            "marker": marker_of(code),
            "edgecolors": ink(),
            "linewidths": edge_width(len(plane.points)),
        }
        ax.scatter(x[:, 0], x[:, 1], s=marker_area(len(plane.points)), label=str(label), zorder=2, **look)


def draw_model(
    ax: Axes,
    model: Predictor,
    plane: Plane,
    judgement: Judgement,
    *,
    margins: bool | float = True,
    regions: bool = True,
    resolution: int = 300,
) -> None:
    """Regions, boundary f = 0 and margin lines f = ±m, from the scores of a grid."""
    (left, right), (bottom, top) = plane.limits
    across, up = np.meshgrid(np.linspace(left, right, resolution), np.linspace(bottom, top, resolution))
    asked = learner_of(model) if plane.is_encoded else model
    scores = class_scores(asked, _in_blocks(plane, np.column_stack([across.ravel(), up.ravel()])))
    maps = scores.T.reshape(-1, resolution, resolution)  # one per class, > 0 inside its region
    if regions:
        for code, score in enumerate(maps):
            is_shaded = code == 0 or not judgement.is_one_class
            if is_shaded and score.max() > 0:
                inside = [0.0, 2.0 * float(score.max())]
                ax.contourf(across, up, score, inside, colors=[colour_of(code)], alpha=0.18, zorder=0)
    is_one_machine = len(maps) == 2
    for score in maps[-1:] if is_one_machine else maps:
        _draw_levels(ax, across, up, score, [0.0], linewidths=1.6, linestyles="solid")
    name = "boundary, f = 0" if is_one_machine and hasattr(model, "decision_function") else "boundary"
    ax.plot([], [], color=ink(), linewidth=1.6, label=name)
    level = judgement.level if margins is True else float(margins)
    if level and is_one_machine and hasattr(model, "decision_function"):
        _draw_levels(ax, across, up, maps[1], [-level, level], linewidths=1.0, linestyles="dashed")
        ax.plot([], [], color=ink(), linewidth=1.0, linestyle="dashed", label=f"margin, f = ±{level:.3g}")


def _in_blocks(plane: Plane, grid: NDArray[np.float64]) -> Iterator[Any]:
    """The points of a grid as rows of the table, a block at a time: with thousands of columns they are many numbers."""
    n = max(1, _CELLS // plane.width)
    for first in range(0, len(grid), n):
        yield plane.like_rows(grid[first : first + n])


def _draw_levels(
    ax: Axes,
    across: NDArray[np.float64],
    up: NDArray[np.float64],
    score: NDArray[np.float64],
    levels: list[float],
    **look: float | str,
) -> None:
    """Level lines; those that do not cross the plane are left out, of which matplotlib would warn."""
    present = [level for level in levels if score.min() < level < score.max()]
    if present:
        ax.contour(across, up, score, present, colors=[ink()], zorder=1, **look)


def draw_marks(ax: Axes, plane: Plane, judgement: Judgement) -> None:
    """A ring around each support vector, or a square around the nearest point of each class; a cross over each
    misclassified one."""
    area = marker_area(len(plane.points))
    outline: dict[str, Any] = {"facecolors": "none", "edgecolors": ink(), "zorder": 3}
    opacity = _opacity(int(np.isin(judgement.words, list(RINGS)).sum()) if judgement.words is not None else 0)
    for word, width in RINGS.items() if judgement.words is not None else ():
        x = plane.points[(judgement.words == word) & plane.is_complete]
        if len(x):
            look: dict[str, Any] = {"s": 3.2 * area, "marker": "o", "linewidths": width * line_share(area)}
            ax.scatter(x[:, 0], x[:, 1], label=f"{word}, {MEANINGS[word]}", alpha=opacity, **look, **outline)
    x = plane.points[judgement.nearest() if judgement.words is None else []]
    if len(x):
        look = {"s": 4.5 * area, "marker": "s", "linewidths": 1.0}
        ax.scatter(x[:, 0], x[:, 1], label="nearest of each class", **look, **outline)
    x = plane.points[judgement.is_wrong & plane.is_complete]
    if len(x):
        look = {"s": 2.4 * area, "marker": "x", "linewidths": 1.2 * line_share(area), "color": ink(), "zorder": 4}
        ax.scatter(x[:, 0], x[:, 1], label="misclassified", alpha=_opacity(len(x)), **look)


def _opacity(n_marks: int) -> float:
    return max(_FAINTEST, min(1.0, _CROWD / max(1, n_marks)))


def draw_frame(ax: Axes, model: object, plane: Plane, title: str) -> None:
    """Limits, scale, names of the axes and title."""
    ax.set_xlim(*plane.limits[0])
    ax.set_ylim(*plane.limits[1])
    if plane.has_one_scale and (plane.is_encoded or not hasattr(model, "steps")):
        ax.set_aspect("equal", adjustable="box")
    ax.set_xlabel(plane.names[0])
    ax.set_ylabel(plane.names[1])
    title += plane.words
    absent = int((~plane.is_complete).sum())
    if absent:
        title += f"\n{absent:,} {'row' if absent == 1 else 'rows'} with a missing cell not drawn"
    ax.set_title(title)
