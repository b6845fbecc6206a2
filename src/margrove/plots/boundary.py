"""Regions and boundary of a classifier in a plane, with points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrove.errors import ParameterError, check_flag, check_number, check_whole
from margrove.plots.arguments import check_mapping, check_model, check_rows
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import MEANINGS, Evaluation, Predictor, class_scores, evaluate, last_step_of
from margrove.plots.plane import Plane, plane_of
from margrove.plots.style import MARKERS, as_typed, axes_for, colour_of, ink, legend_outside, line_share, marker_area

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RINGS = {"marginal": 0.9, "hard": 1.8}  # around support vectors: widths of the lines in points
_EDGE = 0.5  # width of the line around a marker, in points
_CROWDED = 500, 2000  # rows from which these lines fade, and at which they are gone: they would cover everything
_CELLS = 2_000_000  # numbers of a block of grid points, as rows of the model
_MOST_ALONG = 4_000  # grid points along an axis: more than a picture has pixels, and 16 million rows to predict
_CROWD = 200  # rings, or crosses; more are drawn fainter, so that the points stay visible
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

    The plane is that of the two columns of the model. For a model of more columns it is that of two chosen columns, the
    others held at a typical cell, or that of the first two principal components. The title says which.

    Colour and marker show the class of a point. Misclassified points are crossed out; if two classes are separated, a
    square marks the nearest point of each. The title gives the errors and the margin on these points.

    On the points that a support vector machine was fitted on, its support vectors are ringed: *marginal* ones (on the
    margin, 0 < α < C) with a thin ring, *hard* ones (α = C: inside the margin, or misclassified) with a bold one.

    Parameters
    ----------
    model : a fitted classifier, or a ``Pipeline`` that ends in one
        Margrove's or scikit-learn's. Without ``decision_function`` it has regions only. A one-class machine has one
        region: inside.
    X : array, sparse matrix, data frame or Table
        The points, predicted from all of their columns. Points with a missing cell in the plane are not drawn; the
        title counts them.
    y : labels of shape (n,)
        Left out for a one-class machine.
    ax : matplotlib Axes, default: a new figure
    features : pair of column names or positions, or "pca", optional
        The two columns that vary, the first along the x-axis. May be left out if ``X`` has just two. ``"pca"``: the
        first two principal components of the rows as the classifier sees them, after a pipeline's encoder.
    at : mapping of column names to cells, optional
        Where the other columns of a model are held. Default: the median, or the most frequent level.
    margins : bool or float, default=True
        Draw the lines f = ±m for two classes. A number is m itself. True takes 1 for support vector machines, and for
        others the smallest functional margin y f(x) if that is > 0: the nearest point is on a line, none between them.
    regions : bool, default=True
        Shade the plane by predicted class.
    legend : bool, default=True
        A legend to the right of the axes.
    resolution : int, default=300
        Grid points along each axis.

    Notes
    -----
    The margin is a distance in the space the classifier sees: after a pipeline's encoder, and for a kernel in
    its feature space. It is a distance in the picture only for a linear classifier without a pipeline; the axes then
    have one scale, unless their ranges differ much. The title of a slice of many columns counts the points for which
    the model predicts another class than the slice shows at their place.

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
    ['at sepal length (cm) = 5.8, sepal width (cm) = 3', '2 are classified differently from this slice']
    """
    check_model("model", model, wanted="a fitted classifier")
    _check_options(margins, regions, legend, resolution)
    check_rows(X)
    plane = plane_of(model, X, features, check_mapping("at", at, "columns to cells"))
    evaluation = evaluate(model, plane.rows, y)
    ax = axes_for(ax, 6.8 if legend else 5.2, 4.4)
    draw_points(ax, plane, evaluation)
    draw_model(ax, model, plane, evaluation, margins=margins, regions=regions, resolution=resolution)
    draw_marks(ax, plane, evaluation)
    plane = replace(plane, words=plane.words + _beside(model, plane))
    draw_frame(ax, model, plane, f"{type(last_step_of(model)).__name__}\n{evaluation.description()}")
    if legend:
        legend_outside(ax)
    return ax


class BoundaryDisplay(EstimatorDisplay, picture=plot_boundary):
    """Regions, boundary, margins and support vectors in a plane: `plot_boundary`."""


def _check_options(margins: bool | float, regions: bool, legend: bool, resolution: int) -> None:
    if not isinstance(margins, (bool, np.bool_)):
        check_number("margins", margins, above=0, cure="True chooses the level, False draws no lines.")
    check_flag("regions", regions)
    check_flag("legend", legend)
    check_whole("resolution", resolution, least=2, cure="The default is 300 grid points along each axis.")
    if resolution > _MOST_ALONG:
        raise ParameterError(f"resolution is {resolution:,}; it must be at most {_MOST_ALONG:,} grid points.")


def _beside(model: Predictor, plane: Plane) -> str:
    """Return for the title how many points are predicted otherwise than the slice shows at their place."""
    if not plane.words:
        return ""
    there = plane.is_complete
    in_slice = np.concatenate([_asked(model, plane).predict(rows) for rows in _in_blocks(plane, plane.points[there])])
    n = int((np.asarray(model.predict(plane.rows))[there] != in_slice).sum())
    return f"\n{n:,} {'is' if n == 1 else 'are'} classified differently from this slice" if n else ""


def _asked(model: Predictor, plane: Plane) -> Any:
    """Return the model that takes points of the plane: the last step of a pipeline if they are encoded."""
    return last_step_of(model) if plane.is_encoded else model


def draw_points(ax: Axes, plane: Plane, evaluation: Evaluation) -> None:
    """Draw every point that has both its cells, by class."""
    n = len(plane.points)
    edge = float(np.interp(n, _CROWDED, (_EDGE, 0.0)))
    look: dict[str, Any] = {"edgecolors": ink(), "linewidths": edge, "s": marker_area(n), "zorder": 2}
    for code, label in enumerate(evaluation.classes):
        x, marker = plane.points[plane.is_complete & (evaluation.codes == code)], MARKERS[code % len(MARKERS)]
        ax.scatter(x[:, 0], x[:, 1], color=colour_of(code), marker=marker, label=str(label), **look)


def draw_model(
    ax: Axes,
    model: Predictor,
    plane: Plane,
    evaluation: Evaluation,
    *,
    margins: bool | float = True,
    regions: bool = True,
    resolution: int = 300,
) -> None:
    """Draw regions, boundary f = 0 and margin lines f = ±m, from the scores of a grid."""
    across, up = np.meshgrid(*(np.linspace(*limits, resolution) for limits in plane.limits))
    scores = class_scores(_asked(model, plane), _in_blocks(plane, np.column_stack([across.ravel(), up.ravel()])))
    maps = scores.T.reshape(-1, resolution, resolution)  # one per class, > 0 inside its region
    if regions:
        for code, score in enumerate(maps):
            is_shaded = code == 0 or not evaluation.is_one_class
            if is_shaded and score.max() > 0:
                inside = [0.0, 2.0 * float(score.max())]
                ax.contourf(across, up, score, inside, colors=[colour_of(code)], alpha=0.18, zorder=0)
    is_one_machine = len(maps) == 2
    has_lines = is_one_machine and hasattr(model, "decision_function")

    def draw_levels(scores: NDArray[np.float64], levels: list[float], width: float, line: str, label: str) -> None:
        for score in scores:
            present = [level for level in levels if score.min() < level < score.max()]  # matplotlib warns of others
            if present:
                ax.contour(across, up, score, present, colors=[ink()], zorder=1, linewidths=width, linestyles=line)
        ax.plot([], [], color=ink(), linewidth=width, linestyle=line, label=label)

    name = "boundary, f = 0" if has_lines else "boundary"
    draw_levels(maps[-1:] if is_one_machine else maps, [0.0], 1.6, "solid", name)
    level = evaluation.level if margins is True else float(margins)
    if level and has_lines:
        draw_levels(maps[1:], [-level, level], 1.0, "dashed", f"margin, f = ±{level:.3g}")


def _in_blocks(plane: Plane, grid: NDArray[np.float64]) -> Iterator[Any]:
    """Yield the points of a grid as rows for the model, in blocks: rows of thousands of columns need much memory."""
    n = max(1, _CELLS // plane.width)
    for first in range(0, len(grid), n):
        yield plane.like_rows(grid[first : first + n])


def draw_marks(ax: Axes, plane: Plane, evaluation: Evaluation) -> None:
    """Draw a ring around each support vector, or a square around the nearest point of each class, and a cross over each
    misclassified point."""
    area, grades = marker_area(len(plane.points)), evaluation.grades

    def mark(chosen: NDArray[Any], label: str, marker: str, size: float, width: float, **look: Any) -> None:
        x = plane.points[chosen]
        if len(x):
            ax.scatter(x[:, 0], x[:, 1], s=size * area, marker=marker, linewidths=width, label=label, **look)

    def opacity(is_marked: NDArray[np.bool_]) -> float:
        return max(_FAINTEST, min(1.0, _CROWD / max(1, int(is_marked.sum()))))

    outline: dict[str, Any] = {"facecolors": "none", "edgecolors": ink(), "zorder": 3}
    if grades is None:
        mark(evaluation.nearest(), "nearest points of each class", "s", 4.5, 1.0, **outline)
    else:
        outline["alpha"] = opacity(np.isin(grades, list(RINGS)))
        for grade, width in RINGS.items():
            is_ringed = (grades == grade) & plane.is_complete
            mark(is_ringed, f"{grade}, {MEANINGS[grade]}", "o", 3.2, width * line_share(area), **outline)
    is_wrong = evaluation.is_wrong & plane.is_complete
    cross: dict[str, Any] = {"color": ink(), "zorder": 4, "alpha": opacity(is_wrong)}
    mark(is_wrong, "misclassified", "x", 2.4, 1.2 * line_share(area), **cross)


def draw_frame(ax: Axes, model: object, plane: Plane, title: str) -> None:
    """Set the limits, the scale, the names of the axes and the title."""
    title += plane.words
    absent = int((~plane.is_complete).sum())
    if absent:
        title += f"\n{absent:,} {'row' if absent == 1 else 'rows'} with a missing cell not drawn"
    ax.set(xlim=plane.limits[0], ylim=plane.limits[1], xlabel=plane.names[0], ylabel=plane.names[1], title=title)
    plane.write_dates(ax)
    if plane.has_one_scale and (plane.is_encoded or not hasattr(model, "steps")):
        ax.set_aspect("equal", adjustable="box")
