"""Trees that predict classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.errors import ParameterError, check_choice, check_number
from margrove.estimator import checked, estimator
from margrove.tree.estimator import DecisionTree
from margrove.tree.problem import CLASS_CRITERIA, Cells
from margrove.tree.reading import TreeSample, read_classes
from margrove.tree.settings import words_of


@estimator
class TreeClassifier(ClassifierMixin, DecisionTree):
    """The parameters and predictions of trees that predict classes. Base class."""

    _criteria = CLASS_CRITERIA
    __metadata_request__predict_proba: ClassVar = {"check_input": UNUSED}  # as of `fit`

    criterion: str = checked(check_choice, allowed=words_of(CLASS_CRITERIA), default="gini")
    class_weight: Mapping[Any, float] | str | None = None
    smoothing: float = checked(check_number, least=0, default=0.0)

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        """Return the share of each class in the row's leaf. With ``smoothing`` λ it is (c_k + λ)/(w + λ K). Of several
        targets it is a list, as in scikit-learn. The input is always checked."""
        if kind_of_collection(X) is not None and self._n_targets == 1:
            check_is_fitted(self)
            return predicted_lazily(self, "predict_proba", X, np.float64, len(self.classes_))
        leaf, shares = self.apply(X), []
        for value in self._values_by_target():
            smoothed = value + self.smoothing
            shares.append(np.asarray((smoothed / smoothed.sum(axis=1, keepdims=True))[leaf]))
        return shares if self.n_outputs_ > 1 else shares[0]

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(share) for share in shares] if self.n_outputs_ > 1 else np.log(shares)

    def _predicted(self, leaf: NDArray[np.int32]) -> NDArray[Any]:
        classes = self.classes_ if self.n_outputs_ > 1 else [self.classes_]
        values = self._values_by_target()
        found = [own[value.argmax(axis=1)][leaf] for own, value in zip(classes, values, strict=True)]
        return np.stack(found, axis=1) if self.n_outputs_ > 1 else np.asarray(found[0])

    def _values_by_target(self) -> list[NDArray[np.float64]]:
        """Return the weight of each class in each node, for each target."""
        if self.n_outputs_ == 1:
            return [self.nodes_.value]
        return np.split(self.nodes_.value, np.cumsum(self.n_classes_)[:-1], axis=1)

    def _read_target(self, cells: Cells, y: Any, sample_weight: ArrayLike | None) -> TreeSample:
        return read_classes(cells, y, sample_weight, self.class_weight, may_be_several=True)


def _check_majority(name: str, value: float) -> None:
    check_number(name, value, above=0)
    if value > 1:
        raise ParameterError(f"{name} is {value}; it is a share and must be at most 1.")


@estimator
class DecisionTreeClassifier(TreeClassifier):
    """A decision tree for classes.

    Accepts tables as they are: numbers are tested by thresholds, categories (text, booleans, data frame categories) by
    their levels. In training, missing cells take the branch with the larger gain. Missing cells and levels that did not
    occur in a node during training take its heaviest branch.

    Parameters
    ----------
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
        The impurity. "log_loss" is the entropy.
    splitter : {"best", "random"}, default="best"
        "random": each column of numbers offers one threshold, drawn between its least and largest value in the node.
    split_score : {"gain", "gain_ratio", "skew_adjusted"}, default="gain"
        The score by which the best tests of the columns are compared. The gain ratio (C4.5) penalises many branches.
    thresholds : {"exact", "histogram", "gaussian", "logistic"}, default="exact"
        Which thresholds are tried: between all neighbouring values; at quantiles; where normal densities of the classes
        cross; where a logistic regression gives a probability of one half.
    categorical : {"auto", "multiway", "subset", "one_vs_rest"}, default="auto"
        How categories are tested. "auto": subsets, or with the gain ratio multiway; one level against the rest if
        there are more than ten levels with fewer than five rows each on average (tickets, names); with ``complexity``
        > 0, which penalises subsets, only if nearly every value is different. ``categorical_`` records the choice for
        each column, and the reason.
    categorical_features : "from_dtype" or array of columns or mask, default="from_dtype"
        The numeric columns to treat as categories, by name, position or mask.
    split_values : dict of column to cut points, optional
        Columns tested by these intervals: {1, 3, 5} makes x < 1, 1 ≤ x < 3, 3 ≤ x < 5 and x ≥ 5.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes, max_features, \
min_impurity_decrease, class_weight
        As in scikit-learn.
    min_gain : float, default=0
        The least gain of a split in its own node (min_impurity_decrease weighs it by the node's share of the rows).
    majority : float, default=1
        A node in which the largest class has at least this share is a leaf.
    complexity : float, default=0
        λ: the gain of a split, summed over its rows, is reduced by λ times the bits that encode its test, so that
        simple trees are preferred.
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
        The penalty per leaf in cost-complexity pruning; "cv" chooses it by cross-validation.
    monotonic_cst : array of -1, 0, 1, or dict by column, optional
        Whether the probability of the second class must fall or rise with a column.
    smoothing : float, default=0
        Added to the count of each class in a leaf in `predict_proba`; 1 is Laplace smoothing.
    n_bins : int, default=255
        Number of bins for ``thresholds="histogram"``.
    random_state : int or RandomState, optional
        None: ties go to the first column, and nothing is random. A number: each node examines the columns in its own
        random order. A RandomState: one number is drawn from it, and a model file stores that number.
    n_jobs : int, optional
        Threads; None means all. The tree is the same for any number.
    time_limit : float, optional
        Seconds for the whole fit, the folds of ``ccp_alpha="cv"`` included. Nodes still open then become leaves;
        folds not yet run are ignored.
    engine : str or Engine
        The engine that runs it: "auto", "native", "reference", "dask", or an `Engine` object.

    Attributes
    ----------
    nodes_ : TreeModel
        The tree as plain arrays: see `margrove.tree.model`.
    tree_ : scikit-learn's Tree
        The same for other tools, where every test is x ≤ θ.
    grown_ : TreeModel
        The tree before pruning.
    classes_ : array of shape (K,)
    categorical_ : dict
        How each category is tested, and why.
    feature_importances_ : array of shape (d,)
    ccp_alpha_ : float
        The penalty per leaf that was used.
    target_ : str or None
        The name of the target in the `Table` it was fitted on.
    target_format_ : margrove.data.formats.Format
        How a target of numbers is written; only where that is not plain.
    status_, engine_, certificate_
        Why growing ended, the engine that ran, the certificate.

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

    majority: float = checked(_check_majority, default=1.0)
