"""The path along C: the margin narrows, rows drop out, coefficients grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.errors import InputError, ParameterError
from margrove.plots.arguments import as_list, check_panels
from margrove.plots.style import OKABE_ITO, as_typed, colour_of, ink, write_plainly
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
_LETTERS = OKABE_ITO[:-1]  # all but yellow, whose letters would be hard to read on white
_LINES = ("solid", "dashed", "dashdot")  # beside the colours, for machines


@as_typed
def plot_path(
    path: SupportVectorPath,
    *,
    axes: Sequence[Axes] | NDArray[Any] | None = None,
    names: Sequence[str] | None = None,
) -> NDArray[Any]:
    """Draw what becomes of a support vector classifier as C grows: margin, support vectors, coefficients.

    As slack gets dearer the margin 2/‖w‖ narrows and fewer rows stand in it. With a linear kernel the coefficients of
    each machine are drawn as well, a line for each column; those that get largest are named.

    Parameters
    ----------
    path : SupportVectorPath
        Of ``SVC.path``.
    axes : sequence of matplotlib Axes, optional
        One for each panel, from top to bottom. A new figure if left out.
    names : sequence of str, optional
        Of the columns. If left out, those the models were fitted with, or x0, x1, ….

    Returns
    -------
    array of matplotlib Axes
        The margin, the support vectors, and with a linear kernel the coefficients of each machine, of at most three;
        ``axes[0].figure`` is the figure.

    Raises
    ------
    InputError
        If the path has no model: it was ended before the first.

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
        words = f"plot_path draws what SVC.path returns, and this is of type {type(path).__name__}"
        raise InputError(words, cure="Give it SVC(...).path(X, y).")
    if not len(path.models):
        raise InputError("the path has no model", cure="Give SVC more time_limit, or a smaller first C.")
    machines = path.models[-1].certificate_.machines
    n_panels = min(len(machines), _MOST_PANELS) if path.models[-1].kernel == "linear" else 0
    given = check_panels("axes", axes, "the panels, from top to bottom")
    if given is not None and len(given) != 2 + n_panels:
        found = f"axes holds {len(given)} axes for {2 + n_panels} panels"
        raise ParameterError(f"{found}: margin, support vectors and {n_panels} of coefficients.")
    columns, colours = _column_names(path, names), dict[int, str]()
    places = _new_axes(n_panels) if given is None else given
    _draw_margins(places[0], path, machines)
    _draw_support(places[1], path)
    for machine, ax in enumerate(places[2:]):
        _draw_coefficients(ax, path, machine, columns, colours)
        ax.set_ylabel("coefficients" if len(machines) == 1 else f"coefficients,\n{machines[machine]}")
    for ax in places:
        ax.set_xscale("log")
        ax.grid(color=ink(), alpha=0.12, linewidth=0.6)
    places[-1].set_xlabel("C")
    places[0].set_title(_title(path, len(machines), n_panels))
    return places


def _title(path: SupportVectorPath, n_machines: int, n_panels: int) -> str:
    model = path.models[-1]
    title = f"{type(model).__name__}, kernel {model.kernel}, along C"
    if 0 < n_panels < n_machines:
        title += f"\ncoefficients of {n_panels} of {n_machines} machines"
    if path.status is not Status.CONVERGED:
        title += f"\nended with status {str(path.status)!r}"
    return title


def _new_axes(n_panels: int) -> NDArray[Any]:
    import matplotlib.pyplot as plt

    shares = [1.0, 1.0, *[_TALLER] * n_panels]
    size = (_WIDTH, _HEIGHT * sum(shares) + 0.6)
    figure, places = plt.subplots(len(shares), 1, sharex=True, figsize=size, layout="constrained", height_ratios=shares)
    figure.align_ylabels(places)
    return np.asarray(places, dtype=object)


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
        raise ParameterError(f"names holds {len(names)} names; the models have {d} columns.")
    return [str(name) for name in names]


def _draw_coefficients(
    ax: Axes, path: SupportVectorPath, machine: int, names: list[str], colours: dict[int, str]
) -> None:
    """The lines of one machine. A column keeps the colour that a machine before gave it."""
    coefficients = np.array([_dense(model.coef_)[machine] for model in path.models])  # (k, d)
    order = np.argsort(-np.abs(coefficients).max(axis=0), kind="stable")
    named = order[:_MOST_NAMED]
    ax.axhline(0.0, color=ink(), linewidth=0.8)
    for j in order[_MOST_NAMED:][::-1]:
        ax.plot(path.Cs, coefficients[:, j], color=_REST, linewidth=0.7, zorder=1)
    for j in named:
        colours.setdefault(int(j), _LETTERS[len(colours) % len(_LETTERS)])
        ax.plot(path.Cs, coefficients[:, j], color=colours[int(j)], linewidth=1.6, zorder=2, label=names[j])
    _label_ends(ax, coefficients[-1, named], [(names[j], colours[int(j)]) for j in named])


def _label_ends(ax: Axes, ends: NDArray[np.float64], labels: list[tuple[str, str]]) -> None:
    """A name to the right of where each line ends, moved up or down where two would overlap."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)  # so that the labels stay where they are put
    wanted = (ends - low) / (high - low)
    places = _apart(wanted)
    for (name, colour), end, place in zip(labels, wanted, places, strict=True):
        ax.annotate(
            name,
            (1.0, float(end)),
            xycoords="axes fraction",
            xytext=(1.03, float(place)),
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1.0, "shrinkB": 0.0},
        )


def _apart(wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same places, in the same order, `_APART` from each other at least and about the same middle."""
    order = np.argsort(wanted, kind="stable")
    steps = _APART * np.arange(len(wanted))
    # Least squares with an order: isotonic regression of what is left after the least distances are taken away.
    from sklearn.isotonic import isotonic_regression

    placed = np.empty_like(wanted)
    placed[order] = isotonic_regression(wanted[order] - steps) + steps
    return placed


def _dense(coefficients: Matrix) -> NDArray[np.float64]:
    return np.asarray(coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients)
