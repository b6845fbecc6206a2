"""A code matrix: a row for each class, a column for each machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.errors import InputError, ParameterError
from margrove.multiclass.codes import check_code, errors_corrected, minimum_distance
from margrove.plots.arguments import as_list, as_numbers, check_model, found, shape_of
from margrove.plots.displays import EstimatorDisplay, made_from
from margrove.plots.style import OKABE_ITO, as_typed, axes_for, ink, legend_outside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from margrove.multiclass.coded import CodedClassifier

_COLOURS = {1: OKABE_ITO[0], -1: OKABE_ITO[1], 0: "#EEEEEE"}
_SIGNS = {1: "+", -1: "\N{MINUS SIGN}", 0: ""}
_WORDS = {1: "positive side", -1: "negative side", 0: "not used"}
_MOST_SIGNS = 600  # cells; with more, the signs are too small to read


@as_typed
def plot_code(
    code: CodedClassifier | ArrayLike, labels: Sequence[Any] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw a code matrix: a row for each class, a column for each machine.

    Parameters
    ----------
    code : fitted `OneVsRestClassifier`, `OneVsOneClassifier` or `BitStringClassifier`, or array of shape (K, machines)
        A matrix of +1, −1 and 0.
    labels : sequence of length K, optional
        Names of the classes; None takes the model's, or numbers.
    ax : matplotlib Axes, default: a new figure

    Examples
    --------
    >>> from margrove.multiclass.codes import hadamard
    >>> from margrove.plots import plot_code
    >>> ax = plot_code(hadamard(4), ["north", "east", "south", "west"])
    >>> ax.get_title(loc="left")
    '3 machines, minimum distance 2, corrects 0'
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap

    matrix, names = _read(code, labels)
    k, machines = matrix.shape
    ax = axes_for(ax, 2.2 + 0.28 * machines, 1.0 + 0.28 * k)
    shades = ListedColormap([_COLOURS[value] for value in (-1, 0, 1)])
    ax.pcolormesh(matrix, cmap=shades, norm=BoundaryNorm([-1.5, -0.5, 0.5, 1.5], 3), edgecolors="white", linewidth=1)
    if matrix.size <= _MOST_SIGNS:
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": ink(), "fontsize": "small"}
        for (row, column), value in np.ndenumerate(matrix):
            ax.text(column + 0.5, row + 0.5, _SIGNS[int(value)], **look)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(k) + 0.5, [str(name) for name in names])
    step = max(1, -(-machines // 20))
    ax.set_xticks(np.arange(0, machines, step) + 0.5, [str(number) for number in range(0, machines, step)])
    ax.tick_params(length=0)
    ax.set_xlabel("machine")
    distance, corrected = minimum_distance(matrix), errors_corrected(matrix)
    ax.set_title(f"{machines} machines, minimum distance {distance:g}, corrects {max(0, corrected)}", loc="left")
    ax.spines[:].set_visible(False)
    for side, words in _WORDS.items():
        if (matrix == side).any():
            ax.scatter([], [], marker="s", s=60, color=_COLOURS[side], label=words)
    legend_outside(ax)
    return ax


class CodeDisplay(EstimatorDisplay, picture=plot_code):
    """A code matrix, of a fitted scheme or by itself: `plot_code`."""

    from_code: classmethod[CodeDisplay, ..., CodeDisplay] = classmethod(made_from)


def _read(code: Any, labels: Sequence[Any] | None) -> tuple[NDArray[np.int8], Sequence[Any]]:
    wanted = "a matrix of +1, −1 and 0, or a fitted classifier that has one,"
    if labels is not None:
        labels = as_list("labels", labels, "names, one for each class")
    if hasattr(code, "fit") or not shape_of(code):
        check_model("code", code, wanted=wanted)
        if not hasattr(code, "code_"):
            raise InputError(f"{type(code).__name__} has no code matrix", cure="Pass one that has code_, or a matrix.")
        names = code.classes_ if labels is None else labels
        matrix = code.code_
    else:
        matrix = as_numbers(code)
        if matrix is None or matrix.ndim != 2:
            raise InputError(f"{found('code', code)}; {wanted} was expected")
        names = range(len(matrix)) if labels is None else labels
    if len(names) != len(matrix):
        raise ParameterError(f"labels has {len(names)} entries, but the code has {len(matrix)} classes.")
    return check_code(matrix, np.asarray(names)), names
