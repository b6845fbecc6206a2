"""Forests that predict classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.errors import check_choice, check_flag
from margrove.estimator import checked, estimator, fitted, fixed
from margrove.forest.estimator import Floats, Forest
from margrove.forest.out_of_bag import OutOfBag
from margrove.tree.classifier import DecisionTreeClassifier
from margrove.tree.problem import CLASS_CRITERIA
from margrove.tree.settings import words_of


@estimator
class ForestClassifier(ClassifierMixin, Forest):
    """The parameters and predictions of forests for classes. Base class."""

    _tree_type = DecisionTreeClassifier

    criterion: str = checked(check_choice, allowed=words_of(CLASS_CRITERIA), default="gini")
    max_features: int | float | str | None = "sqrt"
    class_weight: Mapping[Any, float] | list[Any] | str | None = None

    oob_decision_function_: Floats = fitted()

    @property
    def _is_balanced(self) -> bool:  # type: ignore[override]
        return isinstance(self.class_weight, str) and self.class_weight == "balanced_subsample"

    def predict_proba(self, X: Any) -> Any:
        """Return the mean over the trees of the share of each class in the row's leaf. Of several targets it is a list,
        as in scikit-learn."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict_proba", X, np.float64, len(self.classes_))
        shares = self._by_target(self._mean(X))
        return shares if self.n_outputs_ > 1 else shares[0]

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return [np.log(share) for share in shares] if self.n_outputs_ > 1 else np.log(shares)

    def predict(self, X: Any) -> Any:
        """Return the class with the largest mean share, the first of equals."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict", X, self.classes_.dtype)
        shares = self._by_target(self._mean(X))
        return self._labels_of(np.stack([share.argmax(axis=1) for share in shares], axis=1))

    def _by_target(self, shares: Floats) -> list[Floats]:
        """Return the shares of each target."""
        return [shares] if self.n_outputs_ == 1 else np.split(shares, np.cumsum(self.n_classes_)[:-1], axis=1)

    def _set_oob_score_and_attributes(self, found: OutOfBag, target: NDArray[Any], value: Floats) -> None:
        self.oob_score_ = self._score_out_of_bag(found, target)
        shares = self._by_target(value)
        self.oob_decision_function_ = np.stack(shares, axis=2) if self.n_outputs_ > 1 else shares[0]

    def _stored_out_of_bag(self) -> Floats | None:
        stored = getattr(self, "oob_decision_function_", None)
        return np.concatenate(np.moveaxis(stored, 2, 0), axis=1) if stored is not None and stored.ndim == 3 else stored

    def _score(self, target: NDArray[Any], value: Floats) -> float:
        codes = target.reshape(len(target), -1)
        predicted = np.stack([share.argmax(axis=1) for share in self._by_target(value)], axis=1)
        if not callable(self.oob_score):
            return float((predicted == codes).all(axis=1).mean())  # a row counts if all its targets are right
        return float(self.oob_score(self._labels_of(codes), self._labels_of(predicted)))

    def _labels_of(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of classes given by position, (n, targets)."""
        if self.n_outputs_ == 1:
            return np.asarray(self.classes_[codes[:, 0]])
        return np.stack([own[column] for own, column in zip(self.classes_, codes.T, strict=True)], axis=1)


@estimator
class RandomForestClassifier(ForestClassifier):
    """A random forest for classes: trees grown from rows drawn with replacement, and from columns drawn in each node.

    Accepts tables as they are, as `DecisionTreeClassifier` does, and has scikit-learn's parameters. `margrove.certify`
    repeats the draws, searches splits again, and recounts the out-of-bag votes.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    criterion : {"gini", "entropy", "log_loss", "error"}, default="gini"
    max_features : {"sqrt", "log2", None}, int or float, default="sqrt"
        The number of columns that each node examines.
    bootstrap : bool, default=True
        Whether each tree draws its rows; otherwise it is grown from all of them.
    max_samples : int or float, optional
        How many rows each tree draws, or their share of all rows. None: as many as there are.
    oob_score : bool or callable, default=False
        Compute ``oob_score_`` and ``oob_decision_function_``, from the trees that have not seen a row. A function
        ``f(y, predictions)`` computes the score instead.
    class_weight : dict, "balanced", "balanced_subsample", or list of dicts, optional
        As in scikit-learn: "balanced_subsample" weighs the rows of each tree by the sizes of the classes among them.
    warm_start : bool, default=False
        A further fit adds trees up to ``n_estimators``.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes, min_impurity_decrease, \
ccp_alpha, monotonic_cst, categorical, categorical_features, split_values
        Of each tree, as in `DecisionTreeClassifier`.
    random_state : int or RandomState, optional
        The seed of all draws. None is 0: the result is the same every time, unlike in scikit-learn.
    n_jobs : int, optional
        Threads; None means all. The trees are the same for any number.
    time_limit : float, optional
        Seconds; the trees grown by then are kept, as they are after Ctrl-C.
    checkpoint : path or Checkpoint, optional
        The file in which the trees grown so far are kept; a later fit of the same data continues from it.
    engine : str or Engine
        The engine that runs it: "auto", "native", "reference", "dask", or an `Engine` object.

    Attributes
    ----------
    estimators_ : list of DecisionTreeClassifier
        The trees, made on first access.
    model_ : ForestModel
        The trees as plain arrays.
    classes_ : array of shape (K,)
    feature_importances_ : array of shape (d,)
    oob_score_, oob_decision_function_
        Accuracy, and the mean shares of the classes, from the trees that have not seen a row. Only with ``oob_score``.
    status_, engine_, certificate_
        Why growing ended, the engine that ran, the certificate.

    Examples
    --------
    >>> from margrove import RandomForestClassifier, load_penguins
    >>> penguins = load_penguins()
    >>> forest = RandomForestClassifier(n_estimators=50, oob_score=True).fit(penguins, penguins.labels())
    >>> f"{forest.oob_score_:.3f}"
    '0.980'
    """


@estimator
class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomised trees for classes: each node draws one threshold for each column that it examines.

    Parameters
    ----------
    bootstrap : bool, default=False
    n_estimators, criterion, max_features, max_samples, oob_score, class_weight, warm_start, max_depth, \
min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes, min_impurity_decrease, ccp_alpha, \
monotonic_cst, categorical, categorical_features, split_values, random_state, n_jobs, time_limit, checkpoint, engine
        As in `RandomForestClassifier`.

    Attributes
    ----------
    estimators_, model_, classes_, feature_importances_, oob_score_, oob_decision_function_, status_, engine_, \
certificate_
        As in `RandomForestClassifier`.

    Examples
    --------
    >>> from margrove import ExtraTreesClassifier, load_penguins
    >>> penguins = load_penguins()
    >>> forest = ExtraTreesClassifier(n_estimators=50).fit(penguins, penguins.labels())
    >>> forest.predict(penguins)[:2]
    array(['Adelie', 'Adelie'], dtype='<U9')
    """

    splitter: str = fixed("random")
    bootstrap: bool = checked(check_flag, default=False)
