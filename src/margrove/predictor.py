"""`Predictor`: the predictions of a fitted model, with NumPy and the core alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.given import Given
from margrove.errors import UnseenCategoryWarning
from margrove.learner import learner_named, loaded
from margrove.store.container import Tensors
from margrove.store.fault import FaultError, shown
from margrove.store.files import Target, naming
from margrove.store.saved import DAMAGED, Rule, Saved, read_file


class Predictor:
    """The predictions of a fitted model, for programs that only predict.

    It comes from `load_predictor` or from the method ``predictor`` of a fitted model, needs NumPy and the core alone,
    and gives the model's predictions: of trees, forests, boosted trees and linear models the same bits. The values of
    kernel machines differ by rounding (some 1e-15 of Σ|β|) in a process without SciPy, whose matrix products the core
    then computes by itself.

    Rows are an array of numbers, a list of rows, a dict of columns, or a data frame. Cells are read as they are: text
    such as "1.099,10 €" is for `margrove.load`.

    Attributes
    ----------
    classes_ : ndarray, or None of a model that predicts numbers
    n_features_in_ : int
    feature_names_in_ : tuple of str, or None

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> predictor = DecisionTreeClassifier().fit([[1.0], [2.0], [3.0]], ["a", "a", "b"]).predictor()
    >>> predictor.predict([[1.5], [9.0]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.classes_, self.n_features_in_, self.feature_names_in_ = rule.classes, rule.d, rule.names

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction for each row."""
        return self._of("predict", X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the model's decision function, if it has one."""
        return self._of("decision_function", X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, if the model gives any without SciPy: all kinds of trees do."""
        return self._of("predict_proba", X)

    def _of(self, name: str, X: Any) -> NDArray[Any]:
        function = getattr(self._rule, name)
        if function is None:
            raise AttributeError(f"this Predictor has no {name}: use margrove.load, if the model has one")
        found: NDArray[Any] = function(Given(X, self._rule.d, self._rule.names))
        return found


def load_predictor(path: Target) -> Predictor:
    """Read a model file for predictions alone, without scikit-learn, SciPy or pyarrow.

    Parameters
    ----------
    path : str, path or binary file
        A file that `margrove.save` or ``margrove train`` wrote, with a tree, a forest, a boosted or linear model or a
        support vector machine, alone or behind `TableEncoder` or scikit-learn's StandardScaler. Any other, and a
        damaged file, is a `ModelFileError`.
    """
    with naming(path, DAMAGED):
        header, tensors = read_file(path)
        return _predictor(header["model"], tensors)


def predictor_of(model: Any) -> Predictor:
    """Return the `Predictor` of a fitted model or pipeline."""
    from margrove.store.arrays import Arrays
    from margrove.store.codec import take_apart

    with naming("the model", "Fit it again."):
        arrays = Arrays()
        return _predictor(take_apart(model, arrays), arrays.tensors)


def _predictor(record: Any, tensors: Tensors) -> Predictor:
    try:
        rule = _rule(Saved(record, tensors))
        numbers = np.zeros((1, rule.d))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenCategoryWarning)
            rule.predict(Given(numbers, rule.d, rule.names))  # the core checks that the arrays fit together
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError) as error:
        raise FaultError(f"its parts do not fit together ({type(error).__name__}: {error})") from error
    return Predictor(rule)


def _rule(saved: Saved) -> Rule:
    name = saved.record["class"]
    if name == "Pipeline":
        steps = [(k, step) for k, (_, step) in enumerate(saved.record["steps"]) if isinstance(step, dict)]
        *before, last = [_rule(saved.within(f"steps.{k}", step)) for k, step in steps]
        return _behind(before, last)
    learner = learner_named(name)
    if learner is None or learner.predict is None:
        raise FaultError(f"it holds a {shown(name)}, which a Predictor does not serve", "Use margrove.load.")
    rule: Rule = loaded(learner.predict)(saved)
    return rule


def _behind(steps: list[Rule], last: Rule) -> Rule:
    """Return the rule of a pipeline: each step's ``predict`` gives the rows of the next."""
    if not steps:
        return last

    def fed(function: Any) -> Any:
        def call(given: Given) -> NDArray[Any]:
            for step, following in zip(steps, [*steps[1:], last], strict=True):
                given = Given(step.predict(given), following.d, None)
            return np.asarray(function(given))

        return None if function is None else call

    first, of_last = steps[0], (last.predict, last.decision_function, last.predict_proba)
    return Rule(first.d, *map(fed, of_last), classes=last.classes, names=first.names)
