"""The distribution of the margins of labelled points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError, ParameterError, check_choice, check_flag, check_whole
from margrove.explanation import explanation_of
from margrove.plots.arguments import check_model, check_rows
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import MEANINGS, Evaluation, Predictor, evaluate, last_step_of
from margrove.plots.style import (
    GRADE_COLOURS,
    as_typed,
    axes_for,
    colour_of,
    in_print,
    ink,
    legend_outside,
    use_integers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RULES = ("auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt")  # numpy's, for the width of bars
_MOST_BINS = 10_000  # bars: more than a picture has pixels
_RUG_ROWS = 300  # up to so many points, each gets a tick below the bars

Part = tuple[str, str, NDArray[np.bool_]]  # points that share a colour, a class or a kind: name, colour, mask (n,)


@as_typed
def plot_margins(
    model: Predictor, X: Any, y: Any, *, ax: Axes | None = None, bins: int | str = "auto", legend: bool = True
) -> Axes:
    """Draw the distribution of the margins y f(x)/‖w‖ of labelled points, the smallest marked.

    A margin > 0 is the distance from the boundary of a point that is classified correctly; a point with a margin < 0 is
    misclassified. The smallest is the margin of the classifier on these points.

    Bars are coloured by class; for a support vector machine on the points it was fitted on by kind: *easy* (α = 0),
    *marginal* (0 < α < C) or *hard* (α = C). With two classes a line marks 1/‖w‖, half the width of its margin:
    marginal points lie on it, hard ones to the left of it.

    Parameters
    ----------
    model : a fitted linear or kernel classifier, or a ``Pipeline`` that ends in one
        Trees and voted perceptrons have no margins.
    X : array, sparse matrix, data frame or Table
    y : labels of shape (n,)
    ax : matplotlib Axes, default: a new figure
    bins : int or str, default="auto"
        As in ``numpy.histogram_bin_edges``; the bars are then shifted so that none straddles 0.
    legend : bool, default=True
        A legend to the right of the axes.

    Notes
    -----
    With more than two classes there are several machines, one for each class or for each pair, and a point has a
    margin for each machine that was trained with its class. The smallest of them is drawn: it is > 0 if every machine
    is right about the point. Its kind is the hardest of them.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import BasicLinearClassifier
    >>> from margrove.plots import plot_margins
    >>> X, y = np.array([[-3.0], [-1.0], [1.0], [4.0]]), np.array([0, 0, 1, 1])
    >>> ax = plot_margins(BasicLinearClassifier().fit(X, y), X, y)
    >>> ax.get_title().splitlines()
    ['BasicLinearClassifier', 'no errors, margin 0.75']
    """
    check_model("model", model, wanted="a fitted classifier")
    check_flag("legend", legend)
    if isinstance(bins, str):
        check_choice("bins", bins, _RULES)
    else:
        check_whole("bins", bins, least=1, cure="Or use a rule of NumPy, such as 'auto'.")
        if bins > _MOST_BINS:
            raise ParameterError(f"bins is {bins:,}; it must be at most {_MOST_BINS:,}.")
    check_rows(X, model)
    name = type(last_step_of(model)).__name__
    if not hasattr(model, "classes_") or not explanation_of(model).has_margins:
        raise InputError(f"{name} has no margins", cure="Use a linear or kernel classifier.")
    evaluation = evaluate(model, X, y)
    if evaluation.geometric is None:
        raise InputError(f"{name} has w = 0, so it has no boundary")
    is_smallest = evaluation.geometric.ndim > 1
    distance = np.fmin.reduce(evaluation.geometric, axis=1) if is_smallest else evaluation.geometric
    ax = axes_for(ax, 6.8 if legend else 5.2, 3.8)
    _draw_bars(ax, _parts_of(evaluation), distance, bins)
    if evaluation.level == 1.0 and evaluation.functional is not None:  # a support vector machine: f = 1 at 1/‖w‖
        farthest = int(np.argmax(np.abs(evaluation.functional)))
        edge = float(distance[farthest] / evaluation.functional[farthest])
        label = f"margin, 1/‖w‖ = {in_print(edge)}"
        ax.axvline(edge, color=ink(), linewidth=1.2, linestyle="dotted", zorder=3, label=label)
    smallest = float(distance.min())
    look: dict[str, Any] = {"linestyle": "dashed", "label": f"smallest, {in_print(smallest)}"}
    ax.axvline(smallest, color=ink(), linewidth=1.2, zorder=3, **look)
    ax.set_xlabel("margin y f(x)/‖w‖" + (", the smallest over the machines" if is_smallest else ""))
    ax.set(ylabel="points", title=f"{name}\n{evaluation.description()}")
    if legend:
        legend_outside(ax)
    return ax


class MarginsDisplay(EstimatorDisplay, picture=plot_margins):
    """The distribution of margins, easy, marginal and hard: `plot_margins`."""


def _parts_of(evaluation: Evaluation) -> list[Part]:
    codes, grades = evaluation.codes, evaluation.grades
    if grades is None:
        return [(str(label), colour_of(code), codes == code) for code, label in enumerate(evaluation.classes)]
    names = {grade: f"{grade}, {MEANINGS[grade]}" for grade in reversed(MEANINGS)} | {"": "ignored, weight 0"}
    return [(name, GRADE_COLOURS[grade], grades == grade) for grade, name in names.items() if (grades == grade).any()]


def _draw_bars(ax: Axes, parts: list[Part], distance: NDArray[np.float64], bins: int | str) -> None:
    """Draw stacked bars, a tick for each point below them, and shade the wrong side."""
    given = np.histogram_bin_edges(distance, bins=bins)
    width = float(given[1] - given[0])
    first, last = np.floor(distance.min() / width), np.floor(distance.max() / width) + 1
    edges = [float(place * width) for place in np.arange(first, last + 1)]  # 0 is one: no bar is on both sides
    names, colours, masks = zip(*parts, strict=True)
    look: dict[str, Any] = {"edgecolor": ink(), "linewidth": 0.5, "zorder": 2, "stacked": True}
    ax.hist([distance[mask] for mask in masks], bins=edges, color=colours, label=names, **look)
    use_integers(ax.yaxis)
    low, high = min(edges[0], 0.0), max(edges[-1], 0.0)
    room = 0.05 * (high - low)
    ax.set_xlim(low - room, high + room)
    if len(distance) <= _RUG_ROWS:
        below = ax.get_ylim()[1] * 0.05
        for _, colour, mask in parts:
            ax.vlines(distance[mask], -below, 0, color=colour, linewidth=1.0, zorder=2)
        ax.set_ylim(bottom=-1.4 * below)
    ax.axvline(0.0, color=ink(), linewidth=1.6, zorder=3, label="boundary")
    ax.axvspan(low - 2 * room, 0.0, facecolor=ink(), alpha=0.07, zorder=0, label="wrong side")
