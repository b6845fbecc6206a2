"""The scores of a search over C and γ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError
from margrove.plots.arguments import check_model
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import last_step_of
from margrove.plots.style import as_typed, axes_for, colour_of, draw_grid, in_print, legend_outside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    from margrove.search.estimator import CrossValidatedSearch

_COLOURS = "cividis"  # made so that colour-blind people see the same order of brightness
_MOST_NUMBERS = 120  # cells; with more, their scores are not written in them
_MOST_TICKS = 12  # along an axis, one for each value
_AROUND_ONE = 10.0**0.25  # half the width, as a factor, of a cell that has no neighbour
_CELL = ("C", "gamma")  # rows and columns of the map
_SIGNS = {"C": "C", "gamma": "γ", "epsilon": "ε"}
_BEST = "#D55E00"  # neither of the map's colours
_DARK = 0.5  # brightness below which letters must be white


@as_typed
def plot_search(search: CrossValidatedSearch | GridSearchCV | Pipeline, ax: Axes | None = None) -> Axes:
    """Draw the scores of a search over C and γ as a map, the best cell marked.

    Each cell is a pair of C and γ; its colour and number are the mean score over the folds. Cells that were not scored
    (given up, or out of time) are grey and hatched. If only one of the two was searched, or the kernel has no γ, the
    scores are a curve with a band of one standard deviation over the folds.

    Parameters
    ----------
    search : a fitted `SVCCV` or `SVRCV`, or a ``Pipeline`` that ends in one
        C was searched, and at least one cell was scored. A regression is drawn at its best ε. scikit-learn's
        ``GridSearchCV`` over C and gamma can be drawn too.
    ax : matplotlib Axes, default: a new figure

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from margrove import SVCCV
    >>> from margrove.plots import plot_search
    >>> search = SVCCV(Cs=[0.1, 1, 10], gammas=[0.1, 1]).fit(*load_iris(return_X_y=True))
    >>> ax = plot_search(search)
    >>> ax.get_title().splitlines()
    ['SVCCV, mean score of 5 folds', 'best 0.98 at C = 1, γ = 0.1']
    """
    search = last_step_of(search)
    if hasattr(search, "fit") and not hasattr(search, "cv") and not isinstance(search, type):
        raise InputError(f"{type(search).__name__} is not a search", cure="Draw an SVCCV or SVRCV.")
    check_model("search", search, wanted="a fitted SVCCV or SVRCV", attribute="cv_results_")
    scores = _scores_of(search)
    long = [name for name in _CELL if len(scores.axes.get(name, ())) > 1]
    ax = axes_for(ax, 6.8, 4.6 if len(long) == 2 else 3.8)
    if len(long) == 2:
        _draw_map(ax, scores)
    else:
        _draw_curve(ax, scores, long[0] if long else "C")
    folds = getattr(search, "n_splits_", 0)
    ax.set_title(f"{type(search).__name__}, mean score of {folds} folds\n{scores.words}")
    return ax


class SearchDisplay(EstimatorDisplay, picture=plot_search):
    """The scores of a search over C and γ: `plot_search`."""


@dataclass(frozen=True)
class _GridScores:
    """Mean and deviation of each cell, shape (Cs, γs); at the best ε if there are several."""

    axes: dict[str, NDArray[np.float64]]  # ascending; no "gamma" where the kernel has none
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    best: tuple[int, int]
    words: str  # the best score, and its C, γ and ε


def _scores_of(search: CrossValidatedSearch | GridSearchCV) -> _GridScores:
    results = search.cv_results_
    name = type(search).__name__
    if "param_C" not in results:
        raise InputError(f"{name} did not search C", cure="Draw an SVCCV or SVRCV.")
    searched = [each for each in _SIGNS if f"param_{each}" in results]
    columns = {each: np.asarray(results[f"param_{each}"], dtype=np.float64) for each in searched}
    mean = np.asarray(results["mean_test_score"], dtype=np.float64)
    if np.isnan(mean).all() or not hasattr(search, "best_params_"):
        raise InputError(f"{name} has no cell with scores of all folds", cure="Raise time_limit.")
    best = {each: float(search.best_params_[each]) for each in searched}
    kept = columns["epsilon"] == best["epsilon"] if "epsilon" in searched else np.ones(len(mean), np.bool_)
    axes = {each: np.unique(columns[each][kept]) for each in _CELL if each in searched}
    shape = len(axes["C"]), len(axes.get("gamma", [0.0]))
    place = tuple(np.searchsorted(axes[each], columns[each][kept]) if each in axes else 0 for each in _CELL)
    table, deviation = np.full(shape, np.nan), np.full(shape, np.nan)
    table[place] = mean[kept]
    deviation[place] = np.asarray(results["std_test_score"], dtype=np.float64)[kept]
    c, g = (int(np.searchsorted(axes[each], best[each])) if each in axes else 0 for each in _CELL)
    at = ", ".join(f"{_SIGNS[each]} = {in_print(value)}" for each, value in best.items())
    return _GridScores(axes, table, deviation, (c, g), f"best {in_print(float(table[c, g]))} at {at}")


def _draw_map(ax: Axes, scores: _GridScores) -> None:
    from matplotlib.patches import Rectangle

    Cs, gammas = scores.axes["C"], scores.axes["gamma"]
    across, up = _edges(gammas), _edges(Cs)
    found = scores.mean[~np.isnan(scores.mean)]
    high = float(found.max())
    low = max(float(found.min()), high - 2.0 * (high - float(np.median(found))))  # differences far below do not matter
    low = low if high > low else high - 1e-3
    mesh = ax.pcolormesh(across, up, np.ma.masked_invalid(scores.mean), cmap=_COLOURS, vmin=low, vmax=high)
    ax.set_xscale("log")
    ax.set_yscale("log")
    is_cut = bool(np.nanmin(scores.mean) < low)
    bar = ax.figure.colorbar(mesh, ax=ax, extend="min" if is_cut else "neither")
    bar.set_label("mean score" + (f", darkest below {in_print(low)}" if is_cut else ""))

    def mark(c: int, g: int, label: str | None, **look: Any) -> None:
        corner, width, height = (across[g], up[c]), across[g + 1] - across[g], up[c + 1] - up[c]
        ax.add_patch(Rectangle(corner, width, height, label=label, **look))

    for k, (c, g) in enumerate(np.argwhere(np.isnan(scores.mean))):
        label = None if k else "not scored"
        mark(c, g, label, facecolor="#DDDDDD", edgecolor="#888888", hatch="///", linewidth=0.0)
    if scores.mean.size <= _MOST_NUMBERS:
        _write_scores(ax, scores, mesh)
    mark(*scores.best, "best", clip_on=False, fill=False, edgecolor=_BEST, linewidth=3.0, zorder=4)
    _tick_values(ax.xaxis, gammas)
    _tick_values(ax.yaxis, Cs)
    ax.set(xlabel="γ", ylabel="C")
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.14), ncols=2, frameon=False, borderaxespad=0.0)


def _write_scores(ax: Axes, scores: _GridScores, mesh: Any) -> None:
    """Write the score into each cell, white on dark colours."""
    found = scores.mean[~np.isnan(scores.mean)]
    decimals = 2 if np.ptp(found) > 0.5 and len(found) > 1 else 3
    size = "small" if scores.mean.shape[1] <= 8 else "x-small"
    for (c, g), value in np.ndenumerate(scores.mean):
        if np.isnan(value):
            continue
        red, green, blue, _ = mesh.cmap(mesh.norm(value))
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < _DARK
        text = f"{value:.{decimals}f}".replace("-", "\N{MINUS SIGN}")
        weight = "bold" if (c, g) == scores.best else "normal"
        look: dict[str, Any] = {"color": "white" if is_dark else "black", "fontsize": size, "weight": weight}
        place = float(scores.axes["gamma"][g]), float(scores.axes["C"][c])
        ax.text(*place, text, ha="center", va="center", zorder=5, **look)


def _draw_curve(ax: Axes, scores: _GridScores, name: str) -> None:
    """Draw the scores along one parameter."""
    values = scores.axes[name]
    mean, deviation = scores.mean.ravel(), scores.deviation.ravel()  # the other parameter has one value
    is_scored = ~np.isnan(mean)
    x, y, band = values[is_scored], mean[is_scored], deviation[is_scored]
    look: dict[str, Any] = {"color": colour_of(0), "alpha": 0.18, "linewidth": 0.0}
    ax.fill_between(x, y - band, y + band, label="± 1 standard deviation", **look)
    ax.plot(x, y, color=colour_of(0), marker="o", markersize=4, label="mean over the folds")
    ax.set_xscale("log")
    for each in values[~is_scored]:
        ax.axvline(each, color="#888888", linewidth=0.8, linestyle="dotted")
    if not is_scored.all():
        ax.plot([], [], color="#888888", linewidth=0.8, linestyle="dotted", label="not scored")
    place = scores.best[_CELL.index(name)]
    mark: dict[str, Any] = {"s": 110, "facecolors": "none", "edgecolors": _BEST, "linewidths": 2.2, "zorder": 4}
    ax.scatter([values[place]], [mean[place]], label="best", **mark)
    _tick_values(ax.xaxis, values)
    draw_grid(ax, "y")
    ax.set(xlabel=_SIGNS[name], ylabel="mean score")
    legend_outside(ax)


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the borders of cells around the values: halfway between neighbours on a log scale."""
    logs = np.log(values)
    if len(logs) == 1:
        return np.array([values[0] / _AROUND_ONE, values[0] * _AROUND_ONE])
    between = (logs[1:] + logs[:-1]) / 2
    return np.asarray(np.exp([2 * logs[0] - between[0], *between, 2 * logs[-1] - between[-1]]))


def _tick_values(axis: Axis, values: NDArray[np.float64]) -> None:
    """Put ticks at the values that were tried, at every other one or fewer if they are many."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(values[:: int(np.ceil(len(values) / _MOST_TICKS))].tolist()))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: in_print(float(value)))
