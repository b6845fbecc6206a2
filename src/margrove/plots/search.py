"""The table of a search: which C and which γ do well, and how much it matters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError
from margrove.plots.arguments import check_axes, check_model
from margrove.plots.judgement import learner_of
from margrove.plots.style import as_typed, colour_of, in_print, ink, legend_outside, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    from margrove.search.estimator import CrossValidatedSearch

_COLOURS = "cividis"  # made so that colour-blind people see the same order of brightness
_MOST_NUMBERS = 120  # cells that a picture bears with their scores written in them
_MOST_TICKS = 12  # along an axis, one for each value
_AROUND_ONE = 10.0**0.25  # half the width, as a factor, of a cell that has no neighbour
_CELL = ("C", "gamma")  # rows and columns of the map
_SIGNS = {"C": "C", "gamma": "γ"}
_BEST = "#D55E00"  # neither of the map's colours
_DARK = 0.5  # brightness below which letters must be white


@as_typed
def plot_search(search: CrossValidatedSearch | GridSearchCV | Pipeline, ax: Axes | None = None) -> Axes:
    """Draw the scores of a search for C and γ as a map, the best cell marked.

    Each cell is one pair of C and γ, its colour and number the mean score over the folds. Cells that were not scored,
    because they were given up or the time was over, are grey and hatched. Where only one of the two was searched, or
    the kernel has no γ, the scores are a curve with a band of one standard deviation over the folds.

    Parameters
    ----------
    search : a fitted `SVCCV` or `SVRCV`, or a ``Pipeline`` that ends in one
        A regression is drawn at its best ε. scikit-learn's ``GridSearchCV`` over C and gamma is welcome too.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If no cell was scored, or C was not searched.

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
    search = learner_of(search)
    if hasattr(search, "fit") and not hasattr(search, "cv") and not isinstance(search, type):
        raise InputError(f"{type(search).__name__} is no search", cure="Draw an SVCCV or SVRCV.")
    check_model("search", search, wanted="a fitted SVCCV or SVRCV", attribute="cv_results_")
    check_axes("ax", ax)
    scores = _scores_of(search)
    long = [name for name in _CELL if len(scores.axes.get(name, ())) > 1]
    if len(long) == 2:
        ax = new_axes(6.8, 4.6) if ax is None else ax
        _draw_map(ax, scores)
    else:
        ax = new_axes(6.8, 3.8) if ax is None else ax
        _draw_curve(ax, scores, long[0] if long else "C")
    ax.set_title(_title(search, scores))
    return ax


@dataclass(frozen=True)
class _Scores:
    """Mean and deviation of each cell, shape (Cs, γs); at the best ε where there are several."""

    axes: dict[str, NDArray[np.float64]]  # ascending; no "gamma" where the kernel has none
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    best: tuple[int, int]
    fixed: str  # what else the best cell has, in words

    @property
    def best_words(self) -> str:
        at = ", ".join(f"{_SIGNS[name]} = {in_print(float(v[i]))}" for (name, v), i in self._places())
        return f"best {in_print(float(self.mean[self.best]))} at {at}{self.fixed}"

    def _places(self) -> Iterable[tuple[tuple[str, NDArray[np.float64]], int]]:
        return zip(self.axes.items(), self.best, strict=False)


def _scores_of(search: CrossValidatedSearch | GridSearchCV) -> _Scores:
    results = search.cv_results_
    name = type(search).__name__
    if "param_C" not in results:
        raise InputError(f"{name} did not search C", cure="Draw an SVCCV or SVRCV.")
    columns = {
        each: np.asarray(results[f"param_{each}"], dtype=np.float64)
        for each in ("C", "gamma", "epsilon")
        if f"param_{each}" in results
    }
    mean = np.asarray(results["mean_test_score"], dtype=np.float64)
    if np.isnan(mean).all() or not hasattr(search, "best_params_"):
        raise InputError(f"{name} has no cell whose folds are all scored", cure="Give it more time_limit.")
    kept = np.ones(len(mean), np.bool_)
    fixed = ""
    if "epsilon" in columns:
        at = float(search.best_params_["epsilon"])
        kept = columns.pop("epsilon") == at
        fixed = f", ε = {in_print(at)}"
    axes = {each: np.unique(column[kept]) for each, column in columns.items()}
    shape = len(axes["C"]), len(axes.get("gamma", [0.0]))
    place = tuple(np.searchsorted(axes[each], columns[each][kept]) if each in axes else 0 for each in _CELL)
    table, deviation = np.full(shape, np.nan), np.full(shape, np.nan)
    table[place] = mean[kept]
    deviation[place] = np.asarray(results["std_test_score"], dtype=np.float64)[kept]
    chosen = [int(np.searchsorted(axes[each], search.best_params_[each])) if each in axes else 0 for each in _CELL]
    return _Scores(axes, table, deviation, (chosen[0], chosen[1]), fixed)


def _title(search: CrossValidatedSearch | GridSearchCV, scores: _Scores) -> str:
    folds = getattr(search, "n_splits_", 0)
    return f"{type(search).__name__}, mean score of {folds} folds\n{scores.best_words}"


def _draw_map(ax: Axes, scores: _Scores) -> None:
    from matplotlib.patches import Rectangle

    Cs, gammas = scores.axes["C"], scores.axes["gamma"]
    across, up = _edges(gammas), _edges(Cs)
    low, high = _range_of_colours(scores.mean)
    mesh = ax.pcolormesh(across, up, np.ma.masked_invalid(scores.mean), cmap=_COLOURS, vmin=low, vmax=high)
    ax.set_xscale("log")
    ax.set_yscale("log")
    is_cut = bool(np.nanmin(scores.mean) < low)
    bar = ax.figure.colorbar(mesh, ax=ax, extend="min" if is_cut else "neither")
    bar.set_label("mean score" + (f", darkest below {in_print(low)}" if is_cut else ""))
    for c, g in np.argwhere(np.isnan(scores.mean)):
        corner, width, height = (across[g], up[c]), across[g + 1] - across[g], up[c + 1] - up[c]
        look: dict[str, Any] = {"facecolor": "#DDDDDD", "edgecolor": "#888888", "hatch": "///", "linewidth": 0.0}
        label = "not scored" if not ax.get_legend_handles_labels()[1] else None
        ax.add_patch(Rectangle(corner, width, height, label=label, **look))
    if scores.mean.size <= _MOST_NUMBERS:
        _write_scores(ax, scores, mesh)
    c, g = scores.best
    mark: dict[str, Any] = {"fill": False, "edgecolor": _BEST, "linewidth": 3.0, "zorder": 4}
    corner = (across[g], up[c])
    ax.add_patch(Rectangle(corner, across[g + 1] - across[g], up[c + 1] - up[c], label="best", clip_on=False, **mark))
    for axis, values in ((ax.xaxis, gammas), (ax.yaxis, Cs)):
        _tick_values(axis, values)
    ax.set_xlabel("γ")
    ax.set_ylabel("C")
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.14), ncols=2, frameon=False, borderaxespad=0.0)


def _range_of_colours(mean: NDArray[np.float64]) -> tuple[float, float]:
    """From the better half's foot to the best: what lies far below is bad, and how bad does not matter."""
    found = mean[~np.isnan(mean)]
    high = float(found.max())
    low = max(float(found.min()), high - 2.0 * (high - float(np.median(found))))
    return (low, high) if high > low else (high - 1e-3, high)


def _write_scores(ax: Axes, scores: _Scores, mesh: Any) -> None:
    """The score in each cell, in letters that its colour leaves legible; no more digits than tell them apart."""
    found = scores.mean[~np.isnan(scores.mean)]
    decimals = 2 if np.ptp(found) > 0.5 and len(found) > 1 else 3
    size = "small" if scores.mean.shape[1] <= 8 else "x-small"
    for c, C in enumerate(scores.axes["C"]):
        for g, gamma in enumerate(scores.axes["gamma"]):
            value = scores.mean[c, g]
            if np.isnan(value):
                continue
            red, green, blue, _ = mesh.cmap(mesh.norm(value))
            is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < _DARK
            text = f"{value:.{decimals}f}".replace("-", "\N{MINUS SIGN}")
            weight = "bold" if (c, g) == scores.best else "normal"
            look: dict[str, Any] = {"color": "white" if is_dark else "black", "fontsize": size, "weight": weight}
            ax.text(gamma, C, text, ha="center", va="center", zorder=5, **look)


def _draw_curve(ax: Axes, scores: _Scores, name: str) -> None:
    """The scores along one parameter, the other being what it is."""
    values = scores.axes[name]
    mean, deviation = (table if name == "C" else table.T for table in (scores.mean, scores.deviation))
    mean, deviation = mean[:, 0], deviation[:, 0]
    is_scored = ~np.isnan(mean)
    x, y, band = values[is_scored], mean[is_scored], deviation[is_scored]
    ax.fill_between(x, y - band, y + band, color=colour_of(0), alpha=0.18, linewidth=0.0, label="± 1 deviation")
    ax.plot(x, y, color=colour_of(0), marker="o", markersize=4, label="mean over the folds")
    ax.set_xscale("log")
    for each in values[~is_scored]:
        ax.axvline(each, color="#888888", linewidth=0.8, linestyle="dotted")
    if not is_scored.all():
        ax.plot([], [], color="#888888", linewidth=0.8, linestyle="dotted", label="not scored")
    place = scores.best[0] if name == "C" else scores.best[1]
    mark: dict[str, Any] = {"s": 110, "facecolors": "none", "edgecolors": _BEST, "linewidths": 2.2, "zorder": 4}
    ax.scatter([values[place]], [mean[place]], label="best", **mark)
    _tick_values(ax.xaxis, values)
    ax.grid(axis="y", color=ink(), alpha=0.12, linewidth=0.6)
    ax.set_xlabel(_SIGNS[name])
    ax.set_ylabel("mean score")
    legend_outside(ax)


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Borders of cells about the values: halfway between neighbours on a log scale."""
    logs = np.log(values)
    if len(logs) == 1:
        return np.array([values[0] / _AROUND_ONE, values[0] * _AROUND_ONE])
    between = (logs[1:] + logs[:-1]) / 2
    return np.asarray(np.exp([2 * logs[0] - between[0], *between, 2 * logs[-1] - between[-1]]))


def _tick_values(axis: Axis, values: NDArray[np.float64]) -> None:
    """The values that were tried, instead of powers of ten; of very many, every other one or fewer."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_major_locator(FixedLocator(values[:: int(np.ceil(len(values) / _MOST_TICKS))].tolist()))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: in_print(float(value)))
