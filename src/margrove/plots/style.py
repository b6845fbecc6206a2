"""Colours, markers, axes and legends that all plots share: a class looks the same in each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from margrove.errors import ParameterError, shown
from margrove.plots.arguments import found, shape_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.typing import ColorType

# Okabe and Ito (2008), "Color Universal Design": seven hues that colour-blind people can tell apart, without
# black, which is for lines. Neighbours in the list differ most.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
LINE_COLOURS = OKABE_ITO[:-1]  # all but yellow, which is hard to see as a line or a letter
# Of easy, marginal and hard points; none of them is one of the first two classes' colour. From light to dark, too.
GRADE_COLOURS = {"": "#BBBBBB", "easy": "#56B4E9", "marginal": "#F0E442", "hard": "#D55E00"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")  # eight beside seven colours: 56 different classes

_MOST_DOTS = 60  # points of a line up to which each gets a dot
_TALL = 14  # entries of a legend beside axes of the usual height
_LARGE, _SMALL = 36.0, 8.0  # marker areas in points²
_FEW, _MANY = 200, 5000  # rows from which the markers shrink, and at which they are smallest

_Arguments = ParamSpec("_Arguments")
_Drawn = TypeVar("_Drawn")


def as_typed(draw: Callable[_Arguments, _Drawn]) -> Callable[_Arguments, _Drawn]:
    """Make a plot show the names of columns and classes literally: a ``$`` begins no formula."""

    @wraps(draw)
    def drawn(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Drawn:
        import matplotlib as mpl

        with mpl.rc_context({"text.parse_math": False}):
            return draw(*args, **kwargs)

    return drawn


def colour_of(code: int) -> str:
    """Return the colour of the class with this number."""
    return OKABE_ITO[code % len(OKABE_ITO)]


def marker_area(n: int) -> float:
    """Return the area of each of n markers: the more, the smaller."""
    return float(np.interp(n, (_FEW, _MANY), (_LARGE, _SMALL)))


def dot_of(n: int) -> str:
    """Return the marker of each of n points of a line: none if they are many."""
    return "o" if n <= _MOST_DOTS else ""


def line_share(area: float) -> float:
    """Return the width of lines around markers of this area, relative to those around the largest."""
    return float((area / _LARGE) ** 0.5)


def ink() -> ColorType:
    """Return the colour of lines and letters in the current style."""
    import matplotlib as mpl

    return mpl.rcParams["text.color"]


def axes_for(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the axes that were given, or new ones on a figure of this size in inches."""
    import matplotlib.pyplot as plt

    check_axes(ax)
    return plt.subplots(figsize=(width, height), layout="constrained")[1] if ax is None else ax


def check_axes(ax: object) -> None:
    """Raise `ParameterError` unless ax is None or matplotlib Axes."""
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        cure = "Use ax=None for a new figure, or axes from plt.subplots()."
        raise ParameterError(f"{found('ax', ax)}; matplotlib Axes were expected. {cure}")


def given_panels(axes: object, n: int, panels: str, wanted: str) -> NDArray[Any] | None:
    """Return the n axes that were given as an array, or None; ``panels`` and ``wanted`` are words for the error."""
    from matplotlib.axes import Axes

    if axes is None:
        return None
    places = np.asarray(axes, dtype=object).ravel()
    for ax in places:
        if not isinstance(ax, Axes):
            holder = found("axes", axes) if not shape_of(axes) else f"axes contains {shown(ax)}"
            cure = "Use axes=None for a new figure."
            raise ParameterError(f"{holder}; matplotlib Axes were expected, one for each of {panels}. {cure}")
    if len(places) != n:
        raise ParameterError(f"axes has {len(places)} axes for {n} {wanted}")
    return places


def stacked_axes(axes: object, width: float, heights: Sequence[float], around: float, *words: str) -> NDArray[Any]:
    """Return the axes that were given, or new ones, one below the other, that share x; lengths are in inches. ``words``
    are those of `given_panels`."""
    import matplotlib.pyplot as plt

    given = given_panels(axes, len(heights), *words)
    if given is not None:
        return given
    shape: dict[str, Any] = {"figsize": (width, sum(heights) + around), "height_ratios": heights, "sharex": True}
    figure, places = plt.subplots(len(heights), 1, layout="constrained", **shape)
    figure.align_ylabels(places)
    return np.asarray(places, dtype=object)


def draw_grid(ax: Axes, axis: Any = "both") -> None:
    """Draw a faint grid."""
    ax.grid(axis=axis, color=ink(), alpha=0.12, linewidth=0.6)


def legend_outside(ax: Axes) -> None:
    """Put the legend to the right of the axes; a long one is smaller and has several columns."""
    n = len(ax.get_legend_handles_labels()[1])
    look = {"ncols": -(-n // _TALL), "fontsize": "small", "columnspacing": 1.0} if n > _TALL else {}
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, frameon=False, **look)


def in_print(number: float) -> str:
    """Return a number with three digits and the minus sign of matplotlib's axes."""
    return f"{number:.3g}".replace("-", "\N{MINUS SIGN}")


def write_plainly(axis: Axis) -> None:
    """Label a logarithmic axis with 1, 2, 5 and their tens as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=7))
    axis.set_major_formatter(lambda value, _: in_print(float(value)))
    axis.set_minor_formatter(NullFormatter())


def use_integers(axis: Axis, **options: Any) -> None:
    """Label an axis of counts with whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], **options))
