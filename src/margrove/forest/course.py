"""The error of a forest against the number of its trees: on rows out of bag, and on other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from margrove.errors import InputError
from margrove.tree.problem import Cells
from margrove.tree.reading import read_cells

_SIZES = 60  # at most, at which errors are computed


@dataclass(frozen=True, eq=False)
class ForestCourse:
    """The error of the first trees of a forest. ``measure`` is "error rate" or "root mean squared error"."""

    n_trees: NDArray[np.intp]  # (s,) ascending
    error: NDArray[np.float64]  # (s,) over the rows that one of these trees predicts
    n_rows: NDArray[np.intp]  # (s,) how many these are
    measure: str


def out_of_bag_course(
    model: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, most_rows: int | None = None
) -> ForestCourse:
    """Return the out-of-bag error of the first trees of a fitted forest. X and y are its training data; of more
    rows than ``most_rows`` a sample is predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import RandomForestClassifier, load_penguins
    >>> from margrove.forest.course import out_of_bag_course
    >>> penguins = load_penguins()
    >>> forest = RandomForestClassifier(n_estimators=50, oob_score=True).fit(penguins, penguins.labels())
    >>> course = out_of_bag_course(forest, penguins, penguins.labels())
    >>> bool(np.isclose(course.error[-1], 1 - forest.oob_score_))
    True
    """
    check_is_fitted(model)
    model._refuse_without_bag("the out-of-bag error")
    _refuse_several(model)
    problem = model._problem_of(X, y, sample_weight)
    n = problem.root.cells.n_rows
    rows = np.arange(n)
    if most_rows is not None and n > most_rows:
        rows = np.sort(np.random.default_rng(0).permutation(n)[:most_rows])
    target = problem.root.target[rows]
    is_out = np.stack([problem.counts(t)[rows] == 0 for t in range(model.model_.n_trees)])  # (T, n)
    return _course(model, problem.root.cells.take(rows), target, lambda t, block: is_out[t, block])


def course_on(model: Any, X: Any, y: ArrayLike) -> ForestCourse:
    """Return the error of the first trees of a fitted forest on rows that it was not trained on."""
    check_is_fitted(model)
    _refuse_several(model)
    cells, truth = read_cells(model, X, model.model_.columns), np.asarray(y)
    if truth.shape != (cells.n_rows,):
        raise InputError(f"y has the shape {truth.shape}; it must be ({cells.n_rows},), one for each row of X")
    if model.model_.n_classes:
        classes = model.classes_.tolist()
        code = {label: k for k, label in enumerate(classes)}
        truth = np.array([code.get(label, -1) for label in truth.tolist()])  # a class that is not known: an error
    return _course(model, cells, truth, lambda t, block: np.ones(block.stop - block.start, dtype=bool))


def _refuse_several(model: Any) -> None:
    if model.n_outputs_ > 1:
        raise InputError(f"the error of one target was expected, and this forest has {model.n_outputs_}")


def _course(
    model: Any, cells: Cells, truth: NDArray[Any], counted: Callable[[int, slice], NDArray[np.bool_]]
) -> ForestCourse:
    """Return the errors, where ``counted(t, rows)`` returns which rows tree t predicts."""
    forest, of_classes = model.model_, model.model_.n_classes > 0
    sizes = np.unique(np.geomspace(1, forest.n_trees, _SIZES).round().astype(np.intp))
    values = [forest.leaf_values(t) for t in range(forest.n_trees)]
    places = model._places(cells, forest)
    loss, n_rows = np.zeros(len(sizes)), np.zeros(len(sizes), dtype=np.intp)
    for block in forest.blocks(cells.n_rows):
        leaf, own = places(block), truth[block]
        total, count = np.zeros((len(own), values[0].shape[1])), np.zeros(len(own))
        at = 0
        for t, value in enumerate(values):
            rows = counted(t, block)
            total[rows] += value[leaf[rows, t]]
            count += rows
            if t + 1 == sizes[at]:
                known = count > 0
                mean = total[known] / count[known, None]
                off = mean.argmax(axis=1) != own[known] if of_classes else np.square(mean[:, 0] - own[known])
                loss[at] += off.sum()
                n_rows[at] += np.count_nonzero(known)
                at += 1
    seen = n_rows > 0
    error = loss[seen] / n_rows[seen]
    measure = "error rate" if of_classes else "root mean squared error"
    return ForestCourse(sizes[seen], error if of_classes else np.sqrt(error), n_rows[seen], measure)
