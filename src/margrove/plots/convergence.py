"""The course of a fit: how a solver brings its gap, violation or loss down, second by second."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from margrove.errors import InputError, check_number, shown
from margrove.plots.arguments import check_axes, found
from margrove.plots.style import OKABE_ITO, as_typed, in_print, ink, legend_outside, new_axes
from margrove.run.progress import Course, in_short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("solid", "dashed", "dashdot", "dotted")  # beside the colours
_COLOURS = OKABE_ITO[:-1]  # all but yellow, which is hard to see as a line
_MOST_DOTS = 60  # points up to which each gets a dot


@as_typed
def plot_convergence(
    course: Course | Sequence[Mapping[str, Any]], *, goal: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what a solver reported while it was at work: its gap, violation or loss over time.

    By logarithms, a line for each thing that was reported. A number of 0 cannot be drawn there and is left out. The
    last report is made before the solve ends, so that the line may end just above its goal.

    Parameters
    ----------
    course : Course or sequence of mappings
        What `margrove.run.progress.Course` heard of a fit, or its ``points``, perhaps from a file: each has ``seconds``
        and ``value``, and may have ``name`` and ``stage``.
    goal : float, optional
        Where the solver stops (``tol``), drawn as a line. A Course knows it where its solver does.
    ax : matplotlib Axes, optional
        Where to draw; a new figure if left out.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        If nothing was reported: a fit that is done within a twentieth of a second is done before anybody asks.

    Examples
    --------
    >>> from margrove.plots import plot_convergence
    >>> course = [{"seconds": 0.1 * k, "value": 10.0**-k, "name": "gap", "stage": "linear svm"} for k in range(5)]
    >>> ax = plot_convergence(course, goal=1e-4)
    >>> ax.get_title()
    'linear svm: gap from 1 to 0.0001 in 0.4 s'
    """
    check_axes("ax", ax)
    if goal is not None:
        check_number("goal", goal, above=0, cure="It is what the solver was given as tol.")
    if isinstance(course, Course):
        goal = course.goal if goal is None else goal
        course = course.points
    lines = _lines_of(course)
    ax = new_axes(6.8, 3.6) if ax is None else ax
    n_points = sum(len(line) for line in lines.values())
    for k, (name, line) in enumerate(lines.items()):
        look: dict[str, Any] = {"color": _COLOURS[k % len(_COLOURS)], "linestyle": _LINES[k % len(_LINES)]}
        seconds, values = zip(*line, strict=True)
        ax.plot(seconds, values, marker="o" if n_points <= _MOST_DOTS else "", markersize=3, label=name, **look)
    if goal is not None:
        ax.axhline(goal, color=ink(), linewidth=1.0, linestyle="dotted", label=f"goal, {in_print(goal)}")
    ax.set_yscale("log")
    ax.set_xlim(left=0)
    ax.grid(color=ink(), alpha=0.12, linewidth=0.6)
    ax.set_xlabel("seconds")
    ax.set_ylabel(next(iter(lines)).rpartition(": ")[2] if len(lines) == 1 else "what is brought down")
    ax.set_title(_title(lines))
    if len(lines) > 1 or goal is not None:
        legend_outside(ax)
    return ax


def _lines_of(course: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """The points of each thing that was reported, under its name."""
    if isinstance(course, (str, Mapping)) or not isinstance(course, Iterable):
        cure = "Give a margrove.run.progress.Course that heard a fit, or its points."
        raise InputError(f"{found('course', course)}; the points of a course were wanted", cure=cure)
    lines: dict[str, list[tuple[float, float]]] = {}
    for number, point in enumerate(course):
        if not isinstance(point, Mapping) or not {"seconds", "value"} <= set(point):
            raise InputError(f"point {number} of the course is {point!r}; it must have 'seconds' and 'value'")
        for key in ("seconds", "value"):
            is_number = isinstance(point[key], Real) and not isinstance(point[key], bool)
            if not is_number or math.isnan(point[key]):
                raise InputError(f"{key!r} of point {number} of the course is {shown(point[key])}; it must be a number")
        name = ": ".join(str(point[key]) for key in ("stage", "name") if point.get(key))
        if 0 < float(point["value"]) < float("inf"):
            lines.setdefault(name or "value", []).append((float(point["seconds"]), float(point["value"])))
    if not lines:
        cure = "A fit within a twentieth of a second reports nothing; take more rows or a smaller tol."
        raise InputError("the course has no point above 0 to draw", cure=cure)
    return lines


def _title(lines: dict[str, list[tuple[float, float]]]) -> str:
    if len(lines) > 1:
        return f"{len(lines)} courses, {in_short(max(line[-1][0] for line in lines.values()))}"
    (name, line) = next(iter(lines.items()))
    (_, first), (seconds, last) = line[0], line[-1]
    return f"{name} from {in_print(first)} to {in_print(last)} in {in_short(seconds)}"
