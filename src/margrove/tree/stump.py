"""The decision stump (THEORY T13): a tree of one level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from margrove.tree.classifier import TreeClassifier


class DecisionStump(TreeClassifier):
    """A tree of a single test: the best column, and what its branches predict.

    Parameters
    ----------
    criterion, split_score, thresholds, categorical, categorical_features, split_values, min_samples_leaf, \
min_weight_fraction_leaf, class_weight, smoothing, random_state, n_jobs, engine
        As `DecisionTreeClassifier`.

    Attributes
    ----------
    tree_, classes_, categorical_, feature_importances_, status_, engine_, certificate_
        As `DecisionTreeClassifier`.

    Examples
    --------
    >>> from margrove import DecisionStump
    >>> X, y = [[15], [16], [19], [22], [27], [29]], ["light", "light", "light", "heavy", "heavy", "heavy"]
    >>> print(DecisionStump().fit(X, y).rules())
    if x0 ≤ 20.5: light (3 rows, 100 %)
    else (x0 > 20.5): heavy (3 rows, 100 %)
    """

    # A stump has these settings too, and they never change.
    max_depth = 1
    min_samples_split = 2
    max_features = None
    max_leaf_nodes = None
    min_impurity_decrease = 0.0
    min_gain = 0.0
    majority = 1.0
    complexity = 0.0
    significance = None
    correct_significance = True
    prune = None
    prune_level = None
    validation_fraction = 0.25
    ccp_alpha = 0.0
    monotonic_cst = None
    n_bins = 255
    time_limit = None

    def __init__(
        self,
        *,
        criterion: str = "gini",
        split_score: str = "gain",
        thresholds: str = "exact",
        categorical: str = "auto",
        categorical_features: Any = "from_dtype",
        split_values: Mapping[Any, Sequence[float]] | None = None,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        class_weight: Any = None,
        smoothing: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        engine: str = "auto",
    ) -> None:
        self.criterion = criterion
        self.split_score = split_score
        self.thresholds = thresholds
        self.categorical = categorical
        self.categorical_features = categorical_features
        self.split_values = split_values
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.class_weight = class_weight
        self.smoothing = smoothing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one test does not tell three classes apart
        return tags
