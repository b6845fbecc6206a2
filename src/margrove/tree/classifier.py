"""Trees that tell classes apart: of any depth, and of one level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin

from margrove.errors import check_number
from margrove.tree.estimator import DecisionTree
from margrove.tree.model import TreeModel
from margrove.tree.problem import CLASS_CRITERIA, Cells, Criterion
from margrove.tree.reading import TreeSample, read_classes
from margrove.tree.settings import settle_criterion


class TreeClassifier(ClassifierMixin, DecisionTree):
    """What the classifiers share. Not a learner by itself."""

    criterion: Any
    class_weight: Any
    smoothing: float

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the tree, and prune it if asked.

        Parameters
        ----------
        X : data frame, Table, array or sparse matrix of shape (n, d)
            Text, categories and booleans as they are; missing cells too.
        y : labels of shape (n,)
        sample_weight : array of shape (n,), optional
            A row of weight 2 counts as two rows.
        """
        check_number("smoothing", self.smoothing, least=0)
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row: the heaviest of its leaf, the first of equals."""
        return self._answers(self.apply(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The share of each class in the row's leaf. With ``smoothing`` λ (1 is Laplace's): (c_k + λ)/(w + λ K)."""
        leaf = self.apply(X)
        smoothed = self.tree_.value + self.smoothing
        return np.asarray((smoothed / smoothed.sum(axis=1, keepdims=True))[leaf])

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _answers(self, leaf: NDArray[np.int32]) -> NDArray[Any]:
        return np.asarray(self.classes_[self.tree_.value.argmax(axis=1)][leaf])

    def _settled_criterion(self) -> Criterion:
        return settle_criterion(self.criterion, CLASS_CRITERIA)

    def _read_target(self, cells: Cells, y: Any, sample_weight: Any) -> TreeSample:
        return read_classes(cells, y, sample_weight, self.class_weight)

    def _score_leaves(
        self, tree: TreeModel, leaf: NDArray[np.int32], target: NDArray[Any], weight: NDArray[np.float64] | None
    ) -> float:
        return float(np.average(tree.value.argmax(axis=1)[leaf] == target, weights=weight))


class DecisionTreeClassifier(TreeClassifier):
    """A decision tree for classes (THEORY T1 – T11).

    Takes tables as they are: numbers are tested by thresholds, categories (text, booleans, data frame categories) by
    their levels. A missing cell goes where the gain is larger at training; where training had none in that node, and
    for categories that did not occur there, down the heaviest branch.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        The impurity. "log_loss" is the entropy.
    split_score : {"gain", "gain_ratio", "skew_adjusted"}, default="gain"
        By what columns compete. The gain ratio (C4.5) charges a test for its branches.
    thresholds : {"exact", "histogram", "gaussian", "logistic"}, default="exact"
        Which thresholds are tried: between all neighbouring values; at quantiles; where normal densities of the classes
        cross; where a logistic regression says one half.
    categorical : {"auto", "multiway", "subset", "one_vs_rest"}, default="auto"
        How categories are tested. "auto": subsets, or with the gain ratio multiway; one level against the rest where
        there are more than ten and they hold fewer than five rows each on average (tickets, names); with ``complexity``
        > 0, which charges subsets, only where nearly every cell differs. ``categorical_`` says what it chose for each
        column, and why.
    categorical_features : "from_dtype" or array of columns or mask, default="from_dtype"
        Which numbers are categories, by name, position or mask.
    split_values : dict of column to cut points, optional
        Columns tested by these intervals: {1, 3, 5} makes x < 1, 1 ≤ x < 3, 3 ≤ x < 5 and x ≥ 5.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes, max_features, \
min_impurity_decrease, class_weight
        As scikit-learn's.
    min_gain : float, default=0
        Least gain of a split in its own node (min_impurity_decrease weighs it by the node's share of the rows).
    majority : float, default=1
        A node in which the largest class has this share is a leaf.
    complexity : float, default=0
        λ: every gain is charged λ bits for naming the test, so that simple trees win.
    significance : float, optional
        Stop where a split is not significant at this level (χ², exact where counts are small).
    correct_significance : bool, default=True
        Correct p-values for the number of tests that a split was chosen from.
    prune : {"chi2", "binomial_test", "pessimistic", "mdl", "reduced_error", "cost_complexity"}, optional
        How the grown tree is pruned.
    prune_level : float, optional
        Significance (chi2 and binomial_test: 0.05) or confidence (pessimistic: 0.25).
    validation_fraction : float, default=0.25
        The share of rows held out for ``prune="reduced_error"``.
    ccp_alpha : float or "cv", default=0
        The price of a leaf in cost-complexity pruning; "cv" chooses it by cross-validation.
    monotonic_cst : array of -1, 0, 1, or dict by column, optional
        Whether the probability of the second class must fall or rise with a column.
    smoothing : float, default=0
        Added to each class of a leaf in `predict_proba`; 1 is Laplace's.
    n_bins : int, default=255
        Of ``thresholds="histogram"``.
    random_state : int or RandomState, optional
        None: of equal columns the first is taken, and nothing is random. A number: each node looks at the columns in an
        order of its own. Of a RandomState one number is drawn, and a model file keeps that number.
    n_jobs : int, optional
        Threads; None means all. The tree is the same for any number.
    time_limit : float, optional
        Seconds for the whole fit, the folds of ``ccp_alpha="cv"`` included. Nodes still open then are leaves; folds
        still to come have no say.
    engine : {"auto", "native", "reference"}
        Where it runs.

    Attributes
    ----------
    tree_ : TreeModel
        The tree as plain arrays: see `margrove.tree.model`.
    grown_ : TreeModel
        The tree before pruning.
    classes_ : array of shape (K,)
    categorical_ : dict
        For each category how it is tested, and why.
    feature_importances_ : array of shape (d,)
    ccp_alpha_ : float
        The price of a leaf that was used.
    target_ : str or None
        The name of the target within the `Table` it was fitted on.
    status_, engine_, certificate_
        Why growing ended, what ran, what it claims.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, load_penguins
    >>> penguins = load_penguins()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    >>> print(tree.rules())
    if flipper_length_mm ≤ 206.5 or missing:
        if bill_length_mm ≤ 43.35 or missing: Adelie (152 rows, 96.1 %)
        else (bill_length_mm > 43.35): Chinstrap (63 rows, 92.1 %)
    else (flipper_length_mm > 206.5):
        if island = Biscoe: Gentoo (122 rows, 100 %)
        else (island in {Dream, Torgersen}): Chinstrap (7 rows, 71.4 %)
    """

    def __init__(
        self,
        *,
        criterion: str = "gini",
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
        majority: float = 1.0,
        complexity: float = 0.0,
        significance: float | None = None,
        correct_significance: bool = True,
        prune: str | None = None,
        prune_level: float | None = None,
        validation_fraction: float = 0.25,
        ccp_alpha: float | str = 0.0,
        class_weight: Any = None,
        monotonic_cst: Any = None,
        smoothing: float = 0.0,
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
        self.majority = majority
        self.complexity = complexity
        self.significance = significance
        self.correct_significance = correct_significance
        self.prune = prune
        self.prune_level = prune_level
        self.validation_fraction = validation_fraction
        self.ccp_alpha = ccp_alpha
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst
        self.smoothing = smoothing
        self.n_bins = n_bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.engine = engine
