"""The path of a support vector classifier along C: margin, support vectors, coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError, ParameterError
from margrove.plots.arguments import as_list
from margrove.plots.displays import Display, made_from
from margrove.plots.style import LINE_COLOURS, as_typed, colour_of, draw_grid, ink, stacked_axes, write_plainly
from margrove.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from margrove.svm.path import SupportVectorPath

_WIDTH, _HEIGHT = 7.0, 2.1  # inches of the figure, and of one panel
_TALLER = 1.6  # a panel of coefficients, as a multiple of the others: its lines cross
_MOST_NAMED = 6  # machines with a name of their own in a legend; coefficients labelled in a panel
_MOST_PANELS = 3  # machines whose coefficients are drawn
_APART = 0.075  # of a panel's height: the least distance between two labels
_REST = "#AAAAAA"  # the coefficients that have no label
_LINES = ("solid", "dashed", "dashdot")  # beside the colours, for machines


@as_typed
def plot_path(
    path: SupportVectorPath,
    *,
    axes: Sequence[Axes] | NDArray[Any] | None = None,
    names: Sequence[str] | None = None,
) -> NDArray[Any]:
    """Draw margin, support vectors and coefficients of a support vector classifier as C grows.

    As slack becomes more expensive, the margin 2/‖w‖ narrows and fewer rows lie in it. With a linear kernel the
    coefficients of each machine are drawn as well, a line for each column; the largest are named.

    Parameters
    ----------
    path : SupportVectorPath
        Returned by ``SVC.path``; it has at least one model.
    axes : sequence of matplotlib Axes, default: a new figure
        One for each panel, from top to bottom.
    names : sequence of str, optional
        Names of the columns. Default: those the models were fitted with, or x0, x1, ….

    Returns
    -------
    array of matplotlib Axes
        The margin, the support vectors, and with a linear kernel the coefficients of each machine, of at most three;
        ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import SVC
    >>> from margrove.plots import plot_path
    >>> X, y = np.array([[-2.0, 1.0], [-1.0, 0.0], [1.0, 0.0], [2.0, 1.0]]), np.array([0, 0, 1, 1])
    >>> axes = plot_path(SVC(kernel="linear").path(X, y, [0.01, 0.1, 1, 10]), names=["length", "width"])
    >>> [ax.get_ylabel() for ax in axes]
    ['margin 2/‖w‖', 'support vectors', 'coefficients']
    """
    if not hasattr(path, "models"):
        words = f"plot_path draws the result of SVC.path, but this is of type {type(path).__name__}"
        raise InputError(words, cure="Pass SVC(...).path(X, y).")
    if not len(path.models):
        raise InputError("the path has no model", cure="Raise the time_limit of SVC, or use a smaller first C.")
    model = path.models[-1]
    machines = model.certificate_.machines
    n_panels = min(len(machines), _MOST_PANELS) if model.kernel == "linear" else 0
    wanted = f"panels: margin, support vectors and {n_panels} of coefficients."
    columns, colours = _column_names(path, names), dict[int, str]()
    heights = [_HEIGHT, _HEIGHT, *[_TALLER * _HEIGHT] * n_panels]
    places = stacked_axes(axes, _WIDTH, heights, 0.6, "the panels, from top to bottom", wanted)
    _draw_margins(places[0], path, machines)
    _draw_support(places[1], path)
    for machine, ax in enumerate(places[2:]):
        _draw_coefficients(ax, path, machine, columns, colours)
        ax.set_ylabel("coefficients" if len(machines) == 1 else f"coefficients,\n{machines[machine]}")
    for ax in places:
        ax.set_xscale("log")
        draw_grid(ax)
    places[-1].set_xlabel("C")
    title = f"{type(model).__name__}, kernel {model.kernel}, along C"
    if 0 < n_panels < len(machines):
        title += f"\ncoefficients of {n_panels} of {len(machines)} machines"
    if path.status is not Status.CONVERGED:
        title += f"\nended with status {str(path.status)!r}"
    places[0].set_title(title)
    return places


class PathDisplay(Display, picture=plot_path):
    """Margin, support vectors and coefficients along C, two panels or more: `plot_path`."""

    from_path: classmethod[PathDisplay, ..., PathDisplay] = classmethod(made_from)


def _draw_margins(ax: Axes, path: SupportVectorPath, machines: Sequence[str]) -> None:
    is_named = 1 < len(machines) <= _MOST_NAMED
    for k, (name, widths) in enumerate(zip(machines, path.margins.T, strict=True)):
        look: dict[str, Any] = {"color": colour_of(k), "linestyle": _LINES[k % len(_LINES)], "linewidth": 1.6}
        if len(machines) > _MOST_NAMED:
            look |= {"color": colour_of(0), "linestyle": "solid", "linewidth": 0.8, "alpha": 0.6}
        ax.plot(path.Cs, widths, label=name if is_named else None, **look)
    ax.set_yscale("log")
    write_plainly(ax.yaxis)
    ax.set_ylabel("margin 2/‖w‖" if len(machines) <= _MOST_NAMED else f"margin 2/‖w‖,\n{len(machines)} machines")
    if is_named:
        ax.legend(frameon=False, fontsize="small")


def _draw_support(ax: Axes, path: SupportVectorPath) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.plot(path.Cs, path.n_support, color=colour_of(0), linewidth=1.6, marker="o", markersize=3)
    n = int(path.models[-1].n_rows_)
    ax.axhline(n, color=ink(), linewidth=0.8, linestyle="dotted")
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    ax.annotate(f"all {n:,} rows", (1.0, n), xytext=(-3, -3), ha="right", va="top", fontsize="small", **place)
    ax.set_ylim(0, 1.08 * n)
    ax.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    ax.set_ylabel("support vectors")


def _column_names(path: SupportVectorPath, names: Sequence[str] | None) -> list[str]:
    model = path.models[-1]
    d = int(model.n_features_in_)
    if names is None:
        return [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(d)])]
    names = as_list("names", names, f"names, one for each of {d} columns")
    if len(names) != d:
        raise ParameterError(f"names has {len(names)} entries, but the models have {d} columns.")
    return [str(name) for name in names]


def _draw_coefficients(
    ax: Axes, path: SupportVectorPath, machine: int, names: list[str], colours: dict[int, str]
) -> None:
    """Draw the lines of one machine. A column keeps the colour that it has in the panels above."""
    rows = (model.coef_[[machine]] for model in path.models)
    coefficients = np.vstack([row.toarray() if hasattr(row, "toarray") else row for row in rows])  # (k, d)
    order = np.argsort(-np.abs(coefficients).max(axis=0), kind="stable")
    named = order[:_MOST_NAMED]
    ax.axhline(0.0, color=ink(), linewidth=0.8)
    for j in order[_MOST_NAMED:][::-1]:
        ax.plot(path.Cs, coefficients[:, j], color=_REST, linewidth=0.7, zorder=1)
    for j in named:
        colours.setdefault(int(j), LINE_COLOURS[len(colours) % len(LINE_COLOURS)])
        ax.plot(path.Cs, coefficients[:, j], color=colours[int(j)], linewidth=1.6, zorder=2, label=names[j])
    _label_ends(ax, coefficients[-1, named], [(names[j], colours[int(j)]) for j in named])


def _label_ends(ax: Axes, values: NDArray[np.float64], labels: list[tuple[str, str]]) -> None:
    """Write a name to the right of the end of each line, moved up or down if two would overlap."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)  # so that the labels stay where they are put
    wanted = (values - low) / (high - low)
    look: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "axes fraction", "fontsize": "small"}
    for (name, colour), end, place in zip(labels, wanted, _apart(wanted), strict=True):
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1.0, "shrinkB": 0.0}
        ends: dict[str, Any] = {"xy": (1.0, float(end)), "xytext": (1.03, float(place))}
        ax.annotate(name, **ends, color=colour, va="center", arrowprops=line, **look)


def _apart(wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the places, moved as little as possible (least squares), at least `_APART` from each other."""
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    steps = _APART * np.arange(len(wanted))
    # Isotonic regression of what remains after the least distances are subtracted keeps the order.
    placed = np.empty_like(wanted)
    placed[order] = isotonic_regression(wanted[order] - steps) + steps
    return placed
