"""Predictions and margins of a fitted model on labelled points, as the plots need them.

The *margin lines* of a two-class model are the level lines f = ±m:

- m is the smallest functional margin y f(x) of the points if that is > 0. The strip between the lines is
  then empty, one of them passes through the nearest point, and m/‖w‖ is the classifier's margin.
  For a kernel model that distance is measured in the feature space; in the plane the lines bend and their
  distance varies.
- m = 1 for support vector machines, as in their problem: points may then lie inside.
- Otherwise there are none. A perceptron that does not separate has no empty strip, and as η only scales its
  w, a line at f = ±1 would mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margrove import learner as registry
from margrove.data.sample import codes_of, read_points
from margrove.errors import InputError
from margrove.explanation import explanation_of
from margrove.plots.arguments import check_labels
from margrove.plots.style import in_print
from margrove.svm.margins import margins

#: The kinds of training points of a support vector machine, and their α.
MEANINGS = {"easy": "α = 0", "marginal": "0 < α < C", "hard": "α = C"}

_OUTSIDE = 1  # the code of rows outside
_TIE = 1e-9  # relative: points this little farther away than the nearest are as near


class Predictor(Protocol):
    """A fitted model, or a pipeline that ends in one; Margrove's, scikit-learn's or another library's."""

    def predict(self, X: Any, /) -> Any: ...


@dataclass(frozen=True)
class Evaluation:
    """Predictions and margins of labelled rows; for a one-class machine, which has no labels, inside or outside."""

    classes: NDArray[Any]
    codes: NDArray[np.intp]  # (n,), the labels as positions in classes
    is_wrong: NDArray[np.bool_]  # (n,), the prediction is another class
    functional: NDArray[np.float64] | None  # (n,) or (n, machines); None where the model has no margins
    geometric: NDArray[np.float64] | None
    level: float | None  # m of the margin lines, two classes only
    grades: NDArray[np.str_] | None = None  # (n,), easy, marginal or hard, of a support vector machine's own rows
    is_one_class: bool = False

    def nearest(self) -> NDArray[np.intp]:
        """Return the rows of each of two classes nearest to the boundary; none if the classes are not separated."""
        if self.functional is None or self.functional.ndim > 1 or self.functional.min() <= 0:
            return np.empty(0, np.intp)
        found = []
        for code in range(len(self.classes)):
            distance = np.where(self.codes == code, self.functional, np.inf)
            found.append(np.flatnonzero(np.isfinite(distance) & (distance <= distance.min() * (1 + _TIE))))
        return np.concatenate(found)

    def description(self) -> str:
        """Return errors and margin for a title, and the numbers of marginal and hard points."""
        wrong, n = int(self.is_wrong.sum()), len(self.codes)
        words = "no errors" if wrong == 0 else f"{wrong:,} of {n:,} misclassified"
        if self.is_one_class:
            words = f"{int((self.codes == _OUTSIDE).sum()):,} of {n:,} outside"
        if self.geometric is not None and self.geometric.ndim == 1:
            words = f"{words}, margin {in_print(float(self.geometric.min()))}"
        if self.grades is not None:
            counts = (int((self.grades == grade).sum()) for grade in ("marginal", "hard"))
            marginal, hard = (f"{count:,}" if count else "no" for count in counts)
            words = f"{words}\n{marginal} marginal and {hard} hard points"
        return words


def evaluate(model: Predictor, rows: Any, y: Any) -> Evaluation:
    """Predict, compare with the labels, and measure margins if the model has them."""
    learner, encoded = last_step(model, rows)
    if is_one_class(learner):
        grades = grades_of(learner, encoded)
        # A marginal point is on the boundary: only rounding decides on which side of it.
        is_outside = np.asarray(model.predict(rows)) < 0 if grades is None else grades == "hard"
        codes, right = np.where(is_outside, _OUTSIDE, 1 - _OUTSIDE), np.zeros(len(is_outside), np.bool_)
        return Evaluation(np.array(["inside", "outside"]), codes, right, None, None, None, grades, is_one_class=True)
    if not hasattr(model, "classes_"):
        raise InputError(f"{type(learner).__name__} is not a classifier", cure="Use a classifier or a OneClassSVM.")
    check_labels(y)
    predicted = np.asarray(model.predict(rows))
    codes = codes_of(y, model.classes_)
    if len(codes) != len(predicted):
        raise InputError(f"X has {len(predicted)} rows and y has {len(codes)}")
    functional = geometric = level = None
    if explanation_of(model).has_margins:
        found = margins(learner, encoded, y)
        is_known = ~np.isnan(found.functional)  # a machine of a pair of classes has no margins of the others
        if np.isfinite(found.geometric[is_known]).all():  # w = 0 has no boundary to be away from
            functional, geometric = found.functional, found.geometric
            if functional.ndim == 1:
                smallest, described = float(functional.min()), registry.learner_of(learner)
                has_unit_margin = described is not None and described.has_unit_margin
                level = 1.0 if has_unit_margin else smallest if smallest > 0 else None
    is_wrong = predicted != model.classes_[codes]
    return Evaluation(model.classes_, codes, is_wrong, functional, geometric, level, grades_of(learner, encoded))


def is_one_class(learner: object) -> bool:
    """Return whether the learner was fitted without classes."""
    return explanation_of(learner).task == "novelty"


def last_step_of(model: Any) -> Any:
    """Return the last step of a pipeline; any other model as it is."""
    return model[-1] if hasattr(model, "steps") else model


def last_step(model: Any, rows: Any) -> tuple[Any, Any]:
    """Return the last step of a pipeline, and the rows as they reach it."""
    if hasattr(model, "steps") and len(model) > 1:
        rows = model[:-1].transform(rows)
    return last_step_of(model), rows


def class_scores(model: Any, blocks: Iterable[Any]) -> NDArray[np.float64]:
    """Return for each class a score that is > 0 where the model predicts it and 0 on its border, (n, classes)."""
    has_decision = hasattr(model, "decision_function")
    pairs = [(model.predict(rows), model.decision_function(rows) if has_decision else []) for rows in blocks]
    predicted, decision = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    if is_one_class(last_step_of(model)):
        return np.column_stack([decision, -decision])
    n_classes = len(model.classes_)
    if has_decision:
        if decision.ndim == 1:
            return np.column_stack([-decision, decision])
        # Some machines of K classes do not predict the largest f: then only the prediction counts.
        if decision.shape[1] == n_classes and (model.classes_[decision.argmax(axis=1)] == predicted).all():
            second, first = np.sort(decision, axis=1)[:, -2:].T[:, :, None]
            return np.asarray(decision - np.where(decision == first, second, first))
    return np.where(predicted[:, None] == model.classes_[None, :], 1.0, -1.0)


def grades_of(learner: Any, rows: Any) -> NDArray[np.str_] | None:
    """Return "easy", "marginal" or "hard" for each row (the hardest of several machines), "" for one of zero weight;
    None if the learner has no grades or was fitted on other rows."""
    if not hasattr(learner, "kkt_"):
        return None
    points = read_points(learner, rows)
    if points.shape[0] != learner.n_rows_:
        is_own = False
    elif learner.kernel == "precomputed":
        is_own = points.shape[1] == points.shape[0]
    else:
        is_own = not len(learner.support_) or abs(points[learner.support_] - learner.support_vectors_).max() == 0
    return explanation_of(learner).grades() if is_own else None
