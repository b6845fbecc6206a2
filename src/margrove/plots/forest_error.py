"""The error of a forest against the number of its trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from margrove.errors import InputError, ParameterError
from margrove.plots.arguments import check_model, check_rows, found
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.evaluation import last_step_of
from margrove.plots.style import as_typed, axes_for, colour_of, dot_of, draw_grid, legend_outside, use_integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@as_typed
def plot_forest_error(
    model: Any, X: Any = None, y: Any = None, *, test: tuple[Any, Any] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the error of a forest against the number of its trees: out of bag, and on test rows.

    Where the curve is flat, more trees would not help. The error is the share of rows that are predicted incorrectly,
    of numbers the root mean squared error.

    Parameters
    ----------
    model : a fitted forest
    X, y : its training data, for the out-of-bag error
        May be left out if ``test`` is given, and must be with ``bootstrap=False``.
    test : tuple of rows and labels, optional
        Other rows, on which the error is drawn, too.
    ax : matplotlib Axes, default: a new figure

    Examples
    --------
    >>> from margrove import RandomForestClassifier, load_penguins
    >>> from margrove.plots import plot_forest_error
    >>> penguins = load_penguins()
    >>> forest = RandomForestClassifier(n_estimators=20).fit(penguins, penguins.labels())
    >>> ax = plot_forest_error(forest, penguins, penguins.labels())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('trees', 'error rate')
    """
    from margrove.forest.course import course_on, out_of_bag_course

    forest = checked_forest(model)
    if test is not None and (not isinstance(test, (tuple, list)) or len(test) != 2):
        raise ParameterError(f"{found('test', test)}; it must be a pair, (X_test, y_test).")
    if X is None and test is None:
        cure = "Pass X and y as in fit, or test=(X_test, y_test)."
        raise InputError("neither the training data nor test rows are given", cure=cure)
    courses = []
    if X is not None:
        check_rows(X, forest)
        courses.append(("out of bag", out_of_bag_course(forest, X, y)))
    if test is not None:
        check_rows(test[0], forest)
        courses.append(("test rows", course_on(forest, *test)))
    ax = axes_for(ax, 7.2, 3.8)
    for place, (name, course) in enumerate(courses):
        look: dict[str, Any] = {
            "color": colour_of((0, 5)[place]),
            "linestyle": ("solid", "dashed")[place],
            "linewidth": 1.6,
        }
        label = f"{name}, {course.error[-1]:.3g} at last"
        ax.plot(course.n_trees, course.error, label=label, marker=dot_of(len(course.error)), markersize=2.5, **look)
    ax.set(xlabel="trees", ylabel=courses[0][1].measure, ylim=(0, None))
    n_trees = forest.model_.n_trees
    ax.set_title(f"{type(forest).__name__}\n{n_trees:,} tree{'' if n_trees == 1 else 's'}, {forest.status_}")
    use_integers(ax.xaxis, min_n_ticks=1)
    draw_grid(ax)
    legend_outside(ax)
    return ax


class ForestErrorDisplay(EstimatorDisplay, picture=plot_forest_error):
    """The error against the number of trees: `plot_forest_error`."""


def checked_forest(model: Any) -> Any:
    """Return a fitted forest, or the one at the end of a pipeline; raise `InputError` for anything else."""
    learner = last_step_of(model)
    check_model("model", learner, wanted="a fitted forest")
    if not hasattr(learner, "importances_by_tree"):
        cure = "Use Margrove's RandomForestClassifier, ExtraTreesClassifier, or one of their regressors."
        kind = type(learner)
        raise InputError(f"{kind.__name__} of {kind.__module__.split('.')[0]} is not a forest of Margrove", cure=cure)
    return learner
