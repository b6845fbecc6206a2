"""The importance of columns in a forest, with its spread over the trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrove.data.columns import clip
from margrove.errors import check_number, check_whole
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.forest_error import checked_forest
from margrove.plots.style import as_typed, axes_for, colour_of, draw_grid, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 30  # letters of a name


@as_typed
def plot_importances(model: Any, *, n_columns: int = 15, coverage: float = 0.9, ax: Axes | None = None) -> Axes:
    """Draw the importance of the columns of a forest, with an interval over its trees.

    The importance of a column in a tree is the share of its tests in the gain of all tests. The bar is the mean over
    the trees, ``feature_importances_``; the line covers the middle ``coverage`` of the trees. A long line means that
    the trees use different columns, which often replace each other.

    Parameters
    ----------
    model : a fitted forest
    n_columns : int, default=15
        How many columns are drawn, the most important first.
    coverage : float, default=0.9
        The share of the trees that the line covers.
    ax : matplotlib Axes, default: a new figure

    Examples
    --------
    >>> from margrove import RandomForestClassifier, load_penguins
    >>> from margrove.plots import plot_importances
    >>> penguins = load_penguins()
    >>> forest = RandomForestClassifier(n_estimators=20).fit(penguins, penguins.labels())
    >>> [tick.get_text() for tick in plot_importances(forest, n_columns=2).get_yticklabels()]
    ['bill_length_mm', 'flipper_length_mm']
    """
    forest = checked_forest(model)
    check_whole("n_columns", n_columns, least=1)
    check_number("coverage", coverage, above=0, most=1)
    mean, of_each = forest.feature_importances_, forest.importances_by_tree()
    names = [column.name for column in forest.model_.columns]
    order = np.argsort(-mean, kind="stable")[:n_columns]
    ends = np.quantile(of_each[:, order], [(1 - coverage) / 2, (1 + coverage) / 2], axis=0)
    ax = axes_for(ax, 7.2, 1.4 + 0.28 * len(order))
    places = np.arange(len(order))
    ax.barh(places, mean[order], height=0.6, color=colour_of(0), alpha=0.75, label="mean")
    ax.hlines(places, *ends, color=ink(), linewidth=1.2, label=f"{100 * coverage:.3g} % of the trees")
    ax.set_yticks(places, [clip(names[j], _LONGEST) for j in order])
    ax.invert_yaxis()
    ax.set(xlim=(0, None), xlabel="share of the gain of all tests")
    more = len(names) - len(order)
    rest = f", {len(order)} of {len(names):,} columns" if more else ""
    ax.set_title(f"Importance of columns{rest}\n{type(forest).__name__}, {len(of_each):,} trees")
    draw_grid(ax, "x")
    ax.legend(loc="lower right", frameon=False)
    return ax


class ImportancesDisplay(EstimatorDisplay, picture=plot_importances):
    """The importance of the columns of a forest: `plot_importances`."""
