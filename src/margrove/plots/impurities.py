"""Impurity of a node of two classes over the share of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from margrove.errors import ParameterError, check_flag
from margrove.plots.arguments import as_list, found
from margrove.plots.displays import Display, made_from
from margrove.plots.style import OKABE_ITO, as_typed, axes_for, draw_grid, legend_outside
from margrove.tree.impurity import class_impurity
from margrove.tree.problem import CLASS_CRITERIA, Criterion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 201  # along the axis; ½, where the error has its corner, is one of them
_CURVES = {  # name, formula, line style, colour
    "entropy": ("entropy", "−Σ p log₂ p", "solid", OKABE_ITO[0]),
    "gini": ("Gini", "Σ p (1 − p)", "dashed", OKABE_ITO[5]),
    "error": ("error", "1 − max p", "dashdot", OKABE_ITO[2]),
}


@as_typed
def plot_impurities(
    criteria: Sequence[Criterion] = CLASS_CRITERIA, *, scaled: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the impurities of a node of two classes over the share of one class in it.

    All are 0 for a pure node and largest at ½. Entropy and Gini's index are strictly concave: every split that changes
    the shares gains. The error is piecewise linear: a split whose branches have the same largest class gains nothing.

    Parameters
    ----------
    criteria : sequence of {"entropy", "gini", "error"}
    scaled : bool, default=False
        Halve the entropy, so that all reach ½ and only their shapes differ.
    ax : matplotlib Axes, default: a new figure

    Examples
    --------
    >>> from margrove.plots import plot_impurities
    >>> ax = plot_impurities(["gini", "error"])
    >>> [float(line.get_ydata().max()) for line in ax.lines]
    [0.5, 0.5]
    """
    check_flag("scaled", scaled)
    criteria = as_list("criteria", criteria, ", ".join(_CURVES))
    if not criteria or any(criterion not in tuple(_CURVES) for criterion in criteria):
        raise ParameterError(f"{found('criteria', criteria)}; it must be a list of {', '.join(_CURVES)}.")
    ax = axes_for(ax, 6.4, 3.6)
    share = np.linspace(0.0, 1.0, _POINTS)
    for criterion in criteria:
        name, formula, line, colour = _CURVES[criterion]
        height = class_impurity(criterion, np.column_stack([share, 1 - share]))
        if scaled and criterion == "entropy":  # the others reach ½ by themselves
            height, formula = height / 2, f"({formula})/2"
        ax.plot(share, height, color=colour, linestyle=line, linewidth=1.6, label=f"{name}, {formula}")
    ax.set(xlim=(0, 1), ylim=(0, None), xlabel="share p of one of two classes", ylabel="impurity")
    ax.set_title("Impurity of a node of two classes")
    draw_grid(ax)
    legend_outside(ax)
    return ax


class ImpuritiesDisplay(Display, picture=plot_impurities):
    """Entropy, Gini's index and error of two classes: `plot_impurities`."""

    from_criteria: classmethod[ImpuritiesDisplay, ..., ImpuritiesDisplay] = classmethod(made_from)
