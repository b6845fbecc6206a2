"""The decision stump: a tree of one level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils import Tags

from margrove.estimator import estimator, fixed
from margrove.tree.classifier import TreeClassifier
from margrove.tree.prune import Rule


@estimator
class DecisionStump(TreeClassifier):
    """A tree with a single test: the best column, and a prediction for each of its branches.

    Parameters
    ----------
    criterion, split_score, thresholds, categorical, categorical_features, split_values, min_samples_leaf, \
min_weight_fraction_leaf, class_weight, smoothing, random_state, n_jobs, engine
        As in `DecisionTreeClassifier`.

    Attributes
    ----------
    nodes_, classes_, categorical_, feature_importances_, status_, engine_, certificate_
        As in `DecisionTreeClassifier`.

    Examples
    --------
    >>> from margrove import DecisionStump
    >>> X, y = [[15], [16], [19], [22], [27], [29]], ["light", "light", "light", "heavy", "heavy", "heavy"]
    >>> print(DecisionStump().fit(X, y).rules())
    if x0 ≤ 20.5: light (3 rows, 100 %)
    else (x0 > 20.5): heavy (3 rows, 100 %)
    """

    # The parameters of a tree that a stump has no choice of.
    splitter: str = fixed("best")
    max_depth: int | None = fixed(1)
    min_samples_split: int | float = fixed(2)
    max_features: int | float | str | None = fixed(None)
    max_leaf_nodes: int | None = fixed(None)
    min_impurity_decrease: float = fixed(0.0)
    min_gain: float = fixed(0.0)
    complexity: float = fixed(0.0)
    significance: float | None = fixed(None)
    correct_significance: bool = fixed(True)
    prune: Rule | None = fixed(None)
    prune_level: float | None = fixed(None)
    validation_fraction: float = fixed(0.25)
    ccp_alpha: float | str = fixed(0.0)
    monotonic_cst: ArrayLike | Mapping[Any, int] | None = fixed(None)
    n_bins: int = fixed(255)
    time_limit: float | None = fixed(None)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # one test does not separate three classes
        return tags
