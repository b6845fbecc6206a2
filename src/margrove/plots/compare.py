"""The linear classifiers side by side on the same points (THEORY L5)."""

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
from margrove.plots.arguments import check_labels, check_mapping, check_panels, check_rows, found, shape_of
from margrove.plots.boundary import RINGS, draw_frame, draw_marks, draw_model, draw_points
from margrove.plots.judgement import Judgement, Predictor, judge, learner_of
from margrove.plots.plane import Plane, plane_for
from margrove.plots.style import as_typed
from margrove.plots.words import MEANINGS
from margrove.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: What `compare_linear` compares, by the name in the title. A new linear learner is one line here.
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

    What there is to see: the basic linear classifier looks at the class means only; least squares also at the
    spread, and is drawn towards points far on the right side; the perceptron stops at the first line that
    separates, wherever that is, and finds none where there is none; the support vector machine (C = 1) takes the
    widest strip, and rings the points that hold it. Each title gives the errors and the margin on these points.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Table
        Points of two numeric columns.
    y : labels of shape (n,)
    models : mapping of names to classifiers, optional
        What to compare; each is cloned and fitted. All of ``LINEAR_CLASSIFIERS`` if left out.
    axes : sequence of matplotlib Axes, optional
        One for each model. A new figure if left out, with a legend below.
    features : pair of column names or positions, optional
        Which two columns of ``X``, if it has more.

    Returns
    -------
    array of matplotlib Axes
        One for each model, in order; ``axes[0].figure`` is the figure.

    Notes
    -----
    A solve that ends before it is done gives no warning here: its title says so.

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
    given = check_panels("axes", axes, "the models")
    models = _checked(models)
    check_rows(X)
    check_labels(y)
    planes = {name: plane_for(model, X, features) for name, model in models.items()}
    if given is not None and len(given) != len(models):
        raise ParameterError(f"axes holds {len(given)} axes for {len(models)} models; one for each was wanted.")
    fitted = {name: _fitted(model, planes[name], y) for name, model in models.items()}
    places = _new_axes(len(models), next(iter(planes.values()))) if given is None else given
    for ax, (name, (model, judgement)) in zip(places, fitted.items(), strict=True):
        _draw_one(ax, name, model, planes[name], judgement)
    if given is None:
        _legend_below(places)
    return places


def _checked(models: object) -> dict[str, Any]:
    """Names and classifiers, or an error that says which is none."""
    named = check_mapping("models", models, "names to classifiers")
    if not named:
        raise ParameterError("models is empty; at least one classifier was wanted.")
    for name, model in named.items():
        if isinstance(model, type) or not hasattr(model, "fit") or not is_classifier(model):
            raise ParameterError(f"{found(f'models[{name!r}]', model)}; a classifier was wanted.")
    return named


def _fitted(model: Any, plane: Plane, y: Any) -> tuple[Predictor, Judgement]:
    """A copy of the model, fitted to the points, and what it says of them."""
    model, n, n_labels = clone(model), len(plane.points), shape_of(y)[0]
    if n != n_labels:
        raise InputError(f"X has {n} rows and y has {n_labels}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(plane.rows, y)
    return model, judge(model, plane.rows, y)


def _draw_one(ax: Axes, name: str, model: Predictor, plane: Plane, judgement: Judgement) -> None:
    draw_points(ax, plane, judgement)
    draw_model(ax, model, plane, judgement)
    draw_marks(ax, plane, judgement)
    draw_frame(ax, model, plane, f"{name}\n{judgement.in_words()}{_ending(model)}")


def _ending(model: Predictor) -> str:
    """Why a solve stopped short, if it did."""
    status = getattr(learner_of(model), "status_", Status.CONVERGED)
    return "" if status == Status.CONVERGED else f"\nstopped short: {status}"


def _new_axes(count: int, plane: Plane) -> NDArray[Any]:
    """A row of up to three, or rows of two or three; as high as the points need."""
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
    """One legend for all. The margin lines differ in m, so theirs goes without it."""
    entries: dict[str, Any] = {}
    for ax in places:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault("margin" if label.startswith("margin, f") else label, handle)
    rings = (f"{word}, {MEANINGS[word]}" for word in RINGS)
    last = ("boundary, f = 0", "boundary", "margin", "nearest of each class", *rings, "misclassified")
    entries |= {label: entries.pop(label) for label in last if label in entries}
    places[0].figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=min(len(entries), 4 if len(places) > 1 else 2),  # as many as there is room for below one picture, or two
        frameon=False,
    )
