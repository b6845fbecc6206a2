"""Trees that predict numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from margrove.errors import InputError, ParameterError, check_choice
from margrove.estimator import checked, estimator
from margrove.tree.estimator import DecisionTree
from margrove.tree.problem import VALUE_CRITERIA, Cells
from margrove.tree.prune import RULES, Rule
from margrove.tree.reading import TreeSample, read_numbers
from margrove.tree.settings import words_of

_OF_CLASSES = ("binomial_test", "pessimistic")


def _check_rule(name: str, rule: Rule) -> None:
    check_choice(name, rule, (None, *RULES))
    if rule in _OF_CLASSES:
        rules = ", ".join(repr(other) for other in RULES if other not in _OF_CLASSES)
        raise ParameterError(f"{name} is {rule!r}, which is for classification; for regression it must be {rules}.")


@estimator
class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    """A decision tree for numbers.

    Parameters
    ----------
    criterion : {"squared_error", "friedman_mse", "gaussian_entropy", "absolute_error", "poisson"}, \
default="squared_error"
        The impurity: the variance; the entropy of a normal distribution; the mean distance from the median, which is
        then the prediction of a leaf; the Poisson deviance of counts. "friedman_mse" is "squared_error".
    thresholds : {"exact", "histogram"}, default="exact"
    significance : float, optional
        Stop where a split is not significant at this level (F test).
    prune : {"chi2", "mdl", "reduced_error", "cost_complexity"}, optional
        How the grown tree is pruned; "chi2" is the F test here.
    others
        As in `DecisionTreeClassifier`.

    Attributes
    ----------
    nodes_, grown_, categorical_, feature_importances_, ccp_alpha_, status_, engine_, certificate_
        As in `DecisionTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import DecisionTreeRegressor
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([10.0, 12.0, 30.0, 32.0])
    >>> tree = DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> tree.predict([[1.5], [9.0]])
    array([11., 31.])
    """

    _criteria = VALUE_CRITERIA

    criterion: str = checked(check_choice, allowed=words_of(VALUE_CRITERIA), default="squared_error")
    prune: Rule | None = checked(_check_rule, default=None)

    def _predicted(self, leaf: NDArray[np.int32]) -> NDArray[np.float64]:
        return np.asarray(self.nodes_.value[leaf] if self.n_outputs_ > 1 else self.nodes_.value[leaf, 0])

    def _read_target(self, cells: Cells, y: Any, sample_weight: ArrayLike | None) -> TreeSample:
        if self.criterion == "poisson":
            _check_counts(np.asarray(y))
        return read_numbers(cells, y, sample_weight, may_be_several=True)


def _check_counts(y: NDArray[Any]) -> None:
    """Raise `InputError` unless the Poisson deviance is defined; the sentences are scikit-learn's."""
    if y.dtype.kind not in "fiub":
        return  # refused by its type
    cure = "Use criterion='squared_error'."
    if (y < 0).any():
        raise InputError("Some value(s) of y are negative which is not allowed for Poisson regression", cure=cure)
    if not (y.sum(axis=0) > 0).all():
        raise InputError("Sum of y is not positive which is necessary for Poisson regression", cure=cure)
