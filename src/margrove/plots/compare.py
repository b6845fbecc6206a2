"""The linear classifiers side by side on the same points."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

import margrove
from margrove.errors import ConvergenceWarning, InputError, ParameterError
from margrove.plots.arguments import check_labels, check_mapping, check_rows, found, shape_of
from margrove.plots.boundary import RINGS, draw_frame, draw_marks, draw_model, draw_points
from margrove.plots.displays import Display, made_from
from margrove.plots.evaluation import MEANINGS, evaluate, last_step_of
from margrove.plots.plane import Plane, read_plane
from margrove.plots.style import as_typed, given_panels
from margrove.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The classifiers that `compare_linear` compares, by the name in the title.
LINEAR_CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "Basic linear": lambda: margrove.BasicLinearClassifier(),
    "Least squares": lambda: margrove.LeastSquaresClassifier(),
    "Perceptron": lambda: margrove.Perceptron(random_state=0),
    "Support vector machine": lambda: margrove.SVC(kernel="linear", C=1.0),
}

_WIDTH = 3.7  # inches of one picture with its labels
_AROUND = 1.5  # inches above and below it, for titles and legend


@as_typed
def compare_linear(
    X: Any,
    y: Any,
    *,
    models: Mapping[str, Any] | None = None,
    axes: Sequence[Axes] | NDArray[Any] | None = None,
    features: Sequence[str | int] | None = None,
) -> NDArray[Any]:
    """Fit the linear classifiers to the same points and draw each as `plot_boundary` does.

    The basic linear classifier uses the class means only; least squares also the spread, and is pulled towards points
    far on the right side; the perceptron stops at the first line that separates, and at ``max_iter`` if there is none;
    the support vector machine (C = 1) takes the widest margin, with rings around its support vectors. Each title gives
    the errors and the margin on these points. If a solve ended early, the title says so, and there is no warning.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Table
        Points of two numeric columns.
    y : labels of shape (n,)
    models : mapping of names to classifiers, optional
        Each is cloned and fitted. Default: all of ``LINEAR_CLASSIFIERS``.
    axes : sequence of matplotlib Axes, default: a new figure with a legend below
        One for each model.
    features : pair of column names or positions, optional
        The two columns of ``X`` to take if it has more.

    Returns
    -------
    array of matplotlib Axes
        One for each model, in order; ``axes[0].figure`` is the figure.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.plots import compare_linear
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 1.0], [4.0, 2.0]])
    >>> axes = compare_linear(X, np.array([0, 0, 1, 1]))
    >>> [ax.get_title().splitlines()[0] for ax in axes]
    ['Basic linear', 'Least squares', 'Perceptron', 'Support vector machine']
    """
    if models is None:
        models = {name: make() for name, make in LINEAR_CLASSIFIERS.items()}
    models = _checked(models)
    given = given_panels(axes, len(models), "the models", "models; one for each was expected.")
    check_rows(X)
    check_labels(y)
    planes = {name: read_plane(X, features, model) for name, model in models.items()}
    n_labels = shape_of(y)[0]
    for plane in planes.values():
        if len(plane.points) != n_labels:
            raise InputError(f"X has {len(plane.points)} rows and y has {n_labels}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = {name: clone(model).fit(planes[name].rows, y) for name, model in models.items()}
    evaluated = {name: evaluate(model, planes[name].rows, y) for name, model in fitted.items()}
    places = _new_axes(len(models), next(iter(planes.values()))) if given is None else given
    for ax, (name, model) in zip(places, fitted.items(), strict=True):
        draw_points(ax, planes[name], evaluated[name])
        draw_model(ax, model, planes[name], evaluated[name])
        draw_marks(ax, planes[name], evaluated[name])
        status = getattr(last_step_of(model), "status_", Status.CONVERGED)
        ending = "" if status == Status.CONVERGED else f"\nstopped early: {status}"
        draw_frame(ax, model, planes[name], f"{name}\n{evaluated[name].description()}{ending}")
    if given is None:
        _legend_below(places)
    return places


class LinearComparisonDisplay(Display, picture=compare_linear):
    """The linear classifiers side by side, fitted to the same points: `compare_linear`."""

    from_points: classmethod[LinearComparisonDisplay, ..., LinearComparisonDisplay] = classmethod(made_from)


def _checked(models: object) -> dict[str, Any]:
    """Return names and classifiers; raise `ParameterError` for anything else."""
    named = check_mapping("models", models, "names to classifiers")
    if not named:
        raise ParameterError("models is empty; at least one classifier was expected.")
    for name, model in named.items():
        if isinstance(model, type) or not hasattr(model, "fit") or not is_classifier(model):
            raise ParameterError(f"{found(f'models[{name!r}]', model)}; a classifier was expected.")
    return named


def _new_axes(count: int, plane: Plane) -> NDArray[Any]:
    """Return axes in a row of up to three, or in rows of two or three; as high as the points need."""
    import matplotlib.pyplot as plt

    columns = count if count <= 3 else 2 if count == 4 else 3
    rows = math.ceil(count / columns)
    height = 0.85 * _WIDTH * (plane.height_to_width if plane.has_one_scale else 1.0)
    size = (_WIDTH * columns, (height + _AROUND) * rows)
    _, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in grid.ravel()[count:]:
        ax.remove()
    return np.asarray(grid.ravel()[:count])


def _legend_below(places: NDArray[Any]) -> None:
    """Draw one legend for all. The margin lines differ in m, so their entry goes without it."""
    entries: dict[str, Any] = {}
    for ax in places:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault("margin" if label.startswith("margin, f") else label, handle)
    rings = (f"{word}, {MEANINGS[word]}" for word in RINGS)
    last = ("boundary, f = 0", "boundary", "margin", "nearest points of each class", *rings, "misclassified")
    entries |= {label: entries.pop(label) for label in last if label in entries}
    n_columns = min(len(entries), 4 if len(places) > 1 else 2)  # as many as there is room for
    look = {"loc": "outside lower center", "ncols": n_columns, "frameon": False}
    places[0].figure.legend(entries.values(), entries.keys(), **look)
