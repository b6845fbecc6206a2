"""How classes look: the same colour and marker for a class in every picture."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.typing import ColorType

# Okabe and Ito (2008), "Color Universal Design": seven hues that colour-blind people can tell apart, without
# black, which is for lines. Neighbours in the list differ most.
OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
# Of easy, marginal and hard points; none of them is one of the first two classes' colour. From light to dark, too.
WORD_COLOURS = {"": "#BBBBBB", "easy": "#56B4E9", "marginal": "#F0E442", "hard": "#D55E00"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")  # eight beside seven colours: 56 different classes

_EDGE = 0.5  # width of the line around a marker, in points
_CROWDED = 500, 2000  # rows at which these lines begin to fade and are gone: they would cover everything
_TALL = 14  # entries of a legend beside axes of the usual height
_LARGE, _SMALL = 36.0, 8.0  # marker areas in points²
_FEW, _MANY = 200, 5000  # rows at which the markers begin and end to shrink


_Arguments = ParamSpec("_Arguments")
_Drawn = TypeVar("_Drawn")


def as_typed(draw: Callable[_Arguments, _Drawn]) -> Callable[_Arguments, _Drawn]:
    """Names of columns and classes stand in the picture as they were typed: a ``$`` begins no formula."""

    @wraps(draw)
    def drawn(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Drawn:
        import matplotlib as mpl

        with mpl.rc_context({"text.parse_math": False}):
            return draw(*args, **kwargs)

    return drawn


def colour_of(code: int) -> str:
    """The colour of the class with this number."""
    return OKABE_ITO[code % len(OKABE_ITO)]


def marker_of(code: int) -> str:
    """The marker of the class with this number."""
    return MARKERS[code % len(MARKERS)]


def marker_area(n: int) -> float:
    """Smaller markers for more points."""
    share = (min(max(n, _FEW), _MANY) - _FEW) / (_MANY - _FEW)
    return _LARGE + share * (_SMALL - _LARGE)


def edge_width(n: int) -> float:
    """Of the line around each of n markers."""
    few, many = _CROWDED
    return _EDGE * (many - min(max(n, few), many)) / (many - few)


def line_share(area: float) -> float:
    """How much thinner the lines around markers of this area are than around the largest."""
    return float((area / _LARGE) ** 0.5)


def ink() -> ColorType:
    """The colour of lines and letters: black on white, or whatever the style in force has."""
    import matplotlib as mpl

    return mpl.rcParams["text.color"]


def new_axes(width: float, height: float) -> Axes:
    """Axes on a figure of their own that makes room for what stands outside them."""
    import matplotlib.pyplot as plt

    ax: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return ax


def legend_outside(ax: Axes) -> None:
    """The legend to the right of the data, never over it; in smaller letters and several columns where it is long."""
    n = len(ax.get_legend_handles_labels()[1])
    look = {"ncols": -(-n // _TALL), "fontsize": "small", "columnspacing": 1.0} if n > _TALL else {}
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, frameon=False, **look)


def in_print(number: float) -> str:
    """Three digits, with the minus sign that matplotlib's axes have."""
    return f"{number:.3g}".replace("-", "\N{MINUS SIGN}")


def write_plainly(axis: Axis) -> None:
    """Of an axis of logarithms: 1, 2, 5 and their tens as numbers, as it seldom spans many powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=7))
    axis.set_major_formatter(lambda value, _: in_print(float(value)))
    axis.set_minor_formatter(NullFormatter())
