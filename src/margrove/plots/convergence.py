"""The course of a fit: gap, violation or loss over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from margrove.errors import InputError, check_number, shown
from margrove.plots.arguments import found
from margrove.plots.displays import Display, made_from
from margrove.plots.style import LINE_COLOURS, as_typed, axes_for, dot_of, draw_grid, in_print, ink, legend_outside
from margrove.run.progress import Course, in_short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = ("solid", "dashed", "dashdot", "dotted")  # beside the colours


@as_typed
def plot_convergence(
    course: Course | Sequence[Mapping[str, Any]], *, goal: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the gap, violation or loss that a solver reported, over time.

    The y-axis is logarithmic, with a line for each name that was reported; zeros are left out. The last report is made
    before the solve ends, so the line may end just above its goal. `InputError` if nothing was reported: a fit within a
    twentieth of a second reports nothing.

    Parameters
    ----------
    course : Course or sequence of mappings
        A `margrove.run.progress.Course` that followed a fit, or its ``points``: each has ``seconds`` and ``value``, and
        may have ``name`` and ``stage``.
    goal : float, optional
        The value at which the solver stops (``tol``), drawn as a line. Default: the goal of the Course, if it has one.
    ax : matplotlib Axes, default: a new figure

    Examples
    --------
    >>> from margrove.plots import plot_convergence
    >>> course = [{"seconds": 0.1 * k, "value": 10.0**-k, "name": "gap", "stage": "linear svm"} for k in range(5)]
    >>> ax = plot_convergence(course, goal=1e-4)
    >>> ax.get_title()
    'linear svm: gap from 1 to 0.0001 in 0.4 s'
    """
    if goal is not None:
        check_number("goal", goal, above=0, cure="It is the tol of the solver.")
    if isinstance(course, Course):
        goal = course.goal if goal is None else goal
        course = course.points
    lines = _lines_of(course)
    ax = axes_for(ax, 6.8, 3.6)
    n_points = sum(len(line) for line in lines.values())
    for k, (name, line) in enumerate(lines.items()):
        look: dict[str, Any] = {"color": LINE_COLOURS[k % len(LINE_COLOURS)], "linestyle": _LINES[k % len(_LINES)]}
        seconds, values = zip(*line, strict=True)
        ax.plot(seconds, values, marker=dot_of(n_points), markersize=3, label=name, **look)
    if goal is not None:
        ax.axhline(goal, color=ink(), linewidth=1.0, linestyle="dotted", label=f"goal, {in_print(goal)}")
    ax.set_yscale("log")
    draw_grid(ax)
    (name, line), *others = lines.items()
    if others:
        title = f"{len(lines)} courses, {in_short(max(line[-1][0] for line in lines.values()))}"
    else:
        (_, first), (end, last) = line[0], line[-1]
        title = f"{name} from {in_print(first)} to {in_print(last)} in {in_short(end)}"
    label = "gap, violation or loss" if others else name.rpartition(": ")[2]
    ax.set(xlim=(0, None), xlabel="seconds", ylabel=label, title=title)
    if others or goal is not None:
        legend_outside(ax)
    return ax


class ConvergenceDisplay(Display, picture=plot_convergence):
    """Gap, violation or loss over time: `plot_convergence`."""

    from_course: classmethod[ConvergenceDisplay, ..., ConvergenceDisplay] = classmethod(made_from)


def _lines_of(course: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Return the points (seconds, value) of each name that was reported."""
    if isinstance(course, (str, Mapping)) or not isinstance(course, Iterable):
        cure = "Pass a margrove.run.progress.Course that recorded a fit, or its points."
        raise InputError(f"{found('course', course)}; the points of a course were expected", cure=cure)
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
        cure = "A fit that takes less than 0.05 s reports nothing; use more rows or a smaller tol."
        raise InputError("the course has no point above 0 to draw", cure=cure)
    return lines
