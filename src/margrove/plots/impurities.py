"""Impurity curves (THEORY T3): how mixed a node of two classes is, by the share of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from margrove.errors import ParameterError, check_flag
from margrove.plots.arguments import as_list, check_axes, found
from margrove.plots.style import OKABE_ITO, as_typed, ink, legend_outside, new_axes
from margrove.tree.impurity import class_impurity
from margrove.tree.problem import CLASS_CRITERIA, Criterion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 201  # along the axis; ½, where the error has its corner, is one of them
_FORMULAS: dict[str, str] = {"entropy": "−Σ p log₂ p", "gini": "Σ p (1 − p)", "error": "1 − max p"}
_NAMES = {"entropy": "entropy", "gini": "Gini", "error": "error"}
_LINES = {"entropy": "solid", "gini": "dashed", "error": "dashdot"}  # beside the colours
_COLOURS = dict(zip(_FORMULAS, (OKABE_ITO[0], OKABE_ITO[5], OKABE_ITO[2]), strict=True))


@as_typed
def plot_impurities(
    criteria: Sequence[Criterion] = CLASS_CRITERIA, *, scaled: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the impurities of a node of two classes over the share of one class in it.

    All are 0 for a pure node and largest at ½. The entropy and Gini's index bend everywhere, so that every split that
    changes the shares gains; the error is made of two straight lines, and a split whose branches have the same largest
    class gains nothing by it.

    Parameters
    ----------
    criteria : sequence of {"entropy", "gini", "error"}
        Which ones, as ``DecisionTreeClassifier`` names them.
    scaled : bool, default=False
        Halve the entropy, so that all reach ½ and only their shapes differ.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from margrove.plots import plot_impurities
    >>> ax = plot_impurities(["gini", "error"])
    >>> [float(line.get_ydata().max()) for line in ax.lines]
    [0.5, 0.5]
    """
    check_axes("ax", ax)
    check_flag("scaled", scaled)
    criteria = as_list("criteria", criteria, ", ".join(_FORMULAS))
    if not criteria or any(criterion not in tuple(_FORMULAS) for criterion in criteria):
        raise ParameterError(f"{found('criteria', criteria)}; it must be a list of {', '.join(_FORMULAS)}.")
    ax = new_axes(6.4, 3.6) if ax is None else ax
    share = np.linspace(0.0, 1.0, _POINTS)
    for criterion in criteria:
        is_halved = scaled and criterion == "entropy"  # the others reach ½ by themselves
        height = class_impurity(criterion, np.column_stack([share, 1 - share])) / (2 if is_halved else 1)
        name = f"{_NAMES[criterion]}, " + (f"({_FORMULAS[criterion]})/2" if is_halved else _FORMULAS[criterion])
        ax.plot(share, height, color=_COLOURS[criterion], linestyle=_LINES[criterion], linewidth=1.6, label=name)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)
    ax.grid(color=ink(), alpha=0.12, linewidth=0.6)
    ax.set_xlabel("share p of one of two classes")
    ax.set_ylabel("impurity")
    ax.set_title("Impurity of a node of two classes")
    legend_outside(ax)
    return ax
