"""How far on the right side the points lie (THEORY L4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError, ParameterError, check_choice, check_flag, check_whole
from margrove.plots.arguments import check_axes, check_columns, check_model, check_rows
from margrove.plots.judgement import Judgement, Predictor, has_margins, judge, learner_of
from margrove.plots.style import WORD_COLOURS, as_typed, colour_of, in_print, ink, legend_outside, new_axes
from margrove.plots.words import MEANINGS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RULES = ("auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt")  # numpy's, for the width of bars
_MOST_BINS = 10_000  # bars: more than a picture has dots
_RUG_ROWS = 300  # up to so many points each gets a tick of its own below the bars


@as_typed
def plot_margins(
    model: Predictor, X: Any, y: Any, *, ax: Axes | None = None, bins: int | str = "auto", legend: bool = True
) -> Axes:
    """Draw the distribution of the margins y f(x)/‖w‖ of labelled points, the smallest marked.

    To the right of 0 a point is on its right side, and the number is its distance from the boundary; to the
    left it is misjudged. The smallest is the margin of the classifier on these points.

    Bars are coloured by class; those of a support vector machine on the points it was fitted on by word: *easy*
    (α = 0), *marginal* (0 < α < C) or *hard* (α = C). With two classes a line marks 1/‖w‖, half the width of its
    margin: marginal points lie on it, hard ones to the left of it.

    Parameters
    ----------
    model : a fitted linear or kernel classifier, or a ``Pipeline`` that ends in one
        Of any number of columns.
    X : array, sparse matrix, data frame or Table
    y : labels of shape (n,)
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.
    bins : int or str, default="auto"
        As in ``numpy.histogram_bin_edges``; the bars are then shifted so that none straddles 0.
    legend : bool, default=True
        A legend to the right of the axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If the model has no margins: a tree, or a voted perceptron.

    Notes
    -----
    With more than two classes there are several machines, one for each class or for each pair, and a point has a
    margin for each machine it has a part in. The smallest of them is drawn: it is > 0 where every machine is right
    about the point. Its word is the hardest of them.

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
    check_axes("ax", ax)
    check_flag("legend", legend)
    _check_bins(bins)
    check_rows(X)
    check_columns(model, X)
    name = type(learner_of(model)).__name__
    if not hasattr(model, "classes_") or not has_margins(model):
        raise InputError(f"{name} has no margins here", cure="Linear and kernel classifiers have.")
    judgement = judge(model, X, y)
    if judgement.geometric is None:
        raise InputError(f"{name} has w = 0, and so no boundary to be away from")
    is_smallest = judgement.geometric.ndim > 1
    distance = np.fmin.reduce(judgement.geometric, axis=1) if is_smallest else judgement.geometric
    ax = new_axes(6.8 if legend else 5.2, 3.8) if ax is None else ax
    _draw_bars(ax, _parts_of(judgement), distance, bins)
    if judgement.level == 1.0 and judgement.functional is not None:
        _mark_edge(ax, judgement.functional, distance)
    _mark_smallest(ax, distance)
    ax.set_xlabel("margin y f(x)/‖w‖" + (", the smallest over the machines" if is_smallest else ""))
    ax.set_ylabel("points")
    ax.set_title(f"{name}\n{judgement.in_words()}")
    if legend:
        legend_outside(ax)
    return ax


def _check_bins(bins: int | str) -> None:
    if isinstance(bins, str):
        check_choice("bins", bins, _RULES)
    else:
        check_whole("bins", bins, least=1, cure="Or a rule of numpy's, such as 'auto'.")
        if bins > _MOST_BINS:
            raise ParameterError(f"bins is {bins:,}; it must be {_MOST_BINS:,} at most.")


@dataclass(frozen=True)
class _Part:
    """Points that share a colour: a class, or a word."""

    name: str
    colour: str
    is_of_it: NDArray[np.bool_]  # (n,)


def _parts_of(judgement: Judgement) -> list[_Part]:
    if judgement.words is None:
        labels = enumerate(judgement.classes)
        return [_Part(str(label), colour_of(code), judgement.codes == code) for code, label in labels]
    parts = [
        _Part(f"{word}, {MEANINGS[word]}", WORD_COLOURS[word], judgement.words == word) for word in reversed(MEANINGS)
    ]
    idle = _Part("no part, weight 0", WORD_COLOURS[""], judgement.words == "")
    return [part for part in (*parts, idle) if part.is_of_it.any()]


def _draw_bars(ax: Axes, parts: list[_Part], distance: NDArray[np.float64], bins: int | str) -> None:
    """Bars of the parts stacked, a tick for each point below, and the wrong side shaded."""
    from matplotlib.ticker import MaxNLocator

    edges = _edges_through_zero(distance, bins)
    ax.hist(
        [distance[part.is_of_it] for part in parts],
        bins=edges,
        stacked=True,
        color=[part.colour for part in parts],
        edgecolor=ink(),
        linewidth=0.5,
        label=[part.name for part in parts],
        zorder=2,
    )
    ax.yaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    low, high = min(edges[0], 0.0), max(edges[-1], 0.0)
    room = 0.05 * (high - low)
    ax.set_xlim(low - room, high + room)
    if len(distance) <= _RUG_ROWS:
        below = ax.get_ylim()[1] * 0.05
        for part in parts:
            ax.vlines(distance[part.is_of_it], -below, 0, color=part.colour, linewidth=1.0, zorder=2)
        ax.set_ylim(bottom=-1.4 * below)
    ax.axvline(0.0, color=ink(), linewidth=1.6, zorder=3, label="boundary")
    ax.axvspan(low - 2 * room, 0.0, facecolor=ink(), alpha=0.07, zorder=0, label="wrong side")


def _edges_through_zero(distance: NDArray[np.float64], bins: int | str) -> list[float]:
    """Edges of the bars, one of them 0, so that no bar holds points of both sides."""
    given = np.histogram_bin_edges(distance, bins=bins)
    width = float(given[1] - given[0])
    first, last = np.floor(distance.min() / width), np.floor(distance.max() / width) + 1
    return [float(place * width) for place in np.arange(first, last + 1)]


def _mark_edge(ax: Axes, functional: NDArray[np.float64], distance: NDArray[np.float64]) -> None:
    """The edge of a support vector machine's margin: f = 1, at 1/‖w‖."""
    farthest = int(np.argmax(np.abs(functional)))
    edge = float(distance[farthest] / functional[farthest])
    ax.axvline(
        edge, color=ink(), linewidth=1.2, linestyle="dotted", zorder=3, label=f"margin, 1/‖w‖ = {in_print(edge)}"
    )


def _mark_smallest(ax: Axes, distance: NDArray[np.float64]) -> None:
    smallest = float(distance.min())
    label = f"smallest, {in_print(smallest)}"
    ax.axvline(smallest, color=ink(), linewidth=1.2, linestyle="dashed", zorder=3, label=label)
