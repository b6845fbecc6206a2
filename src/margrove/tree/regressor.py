"""Trees that predict numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from margrove.tree.estimator import DecisionTree
from margrove.tree.model import TreeModel
from margrove.tree.problem import VALUE_CRITERIA, Cells, Criterion
from margrove.tree.reading import TreeSample, read_numbers
from margrove.tree.settings import settle_criterion


class DecisionTreeRegressor(RegressorMixin, DecisionTree):
    """A decision tree for numbers (THEORY T11).

    Parameters
    ----------
    criterion : {"squared_error", "gaussian_entropy", "absolute_error"}, default="squared_error"
        The impurity: the variance; the entropy of a normal distribution; the mean distance from the median, which then
        is what a leaf predicts.
    thresholds : {"exact", "histogram"}, default="exact"
    significance : float, optional
        Stop where a split is not significant at this level (F test).
    prune : {"chi2", "mdl", "reduced_error", "cost_complexity"}, optional
        How the grown tree is pruned; "chi2" is the F test here.
    others
        As `DecisionTreeClassifier`.

    Attributes
    ----------
    tree_, grown_, categorical_, feature_importances_, ccp_alpha_, status_, engine_, certificate_
        As `DecisionTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import DecisionTreeRegressor
    >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([10.0, 12.0, 30.0, 32.0])
    >>> tree = DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> tree.predict([[1.5], [9.0]])
    array([11., 31.])
    """

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        split_score: str = "gain",
        thresholds: str = "exact",
        categorical: str = "auto",
        categorical_features: Any = "from_dtype",
        split_values: Mapping[Any, Sequence[float]] | None = None,
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_features: int | float | str | None = None,
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        min_gain: float = 0.0,
        complexity: float = 0.0,
        significance: float | None = None,
        correct_significance: bool = True,
        prune: str | None = None,
        prune_level: float | None = None,
        validation_fraction: float = 0.25,
        ccp_alpha: float | str = 0.0,
        monotonic_cst: Any = None,
        n_bins: int = 255,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        engine: str = "auto",
    ) -> None:
        self.criterion = criterion
        self.split_score = split_score
        self.thresholds = thresholds
        self.categorical = categorical
        self.categorical_features = categorical_features
        self.split_values = split_values
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.min_gain = min_gain
        self.complexity = complexity
        self.significance = significance
        self.correct_significance = correct_significance
        self.prune = prune
        self.prune_level = prune_level
        self.validation_fraction = validation_fraction
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.n_bins = n_bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.engine = engine

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree, and prune it if asked.

        Parameters
        ----------
        X : data frame, Table, array or sparse matrix of shape (n, d)
            Text, categories and booleans as they are; missing cells too.
        y : numbers of shape (n,)
        sample_weight : array of shape (n,), optional
            A row of weight 2 counts as two rows.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The mean (or median) of the row's leaf."""
        return self._answers(self.apply(X))

    def _answers(self, leaf: NDArray[np.int32]) -> NDArray[np.float64]:
        return np.asarray(self.tree_.value[leaf, 0])

    def _settled_criterion(self) -> Criterion:
        return settle_criterion(self.criterion, VALUE_CRITERIA)

    def _read_target(self, cells: Cells, y: Any, sample_weight: Any) -> TreeSample:
        return read_numbers(cells, y, sample_weight)

    def _score_leaves(
        self, tree: TreeModel, leaf: NDArray[np.int32], target: NDArray[Any], weight: NDArray[np.float64] | None
    ) -> float:
        distance = np.abs(tree.value[leaf, 0] - target)
        power = 1 if self.criterion == "absolute_error" else 2
        return -float(np.average(distance**power, weights=weight))
