"""Forests that predict numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.errors import InputError, ParameterError, check_choice, check_flag, shown
from margrove.estimator import checked, estimator, fitted, fixed
from margrove.forest.estimator import Floats, Forest
from margrove.forest.out_of_bag import OutOfBag
from margrove.forest.problem import ForestProblem
from margrove.tree.problem import VALUE_CRITERIA
from margrove.tree.reading import TreeSample
from margrove.tree.regressor import DecisionTreeRegressor
from margrove.tree.settings import words_of

_MOST_SHARES = 10_000_000  # shares of training rows at a time: 80 MB
_LEAST = float(np.finfo(np.float64).tiny)  # of a sum of shares: a row that shares no leaf does not count


@estimator
class ForestRegressor(RegressorMixin, Forest):
    """The parameters and predictions of forests for numbers. Base class."""

    _tree_type = DecisionTreeRegressor

    criterion: str = checked(check_choice, allowed=words_of(VALUE_CRITERIA), default="squared_error")
    max_features: int | float | str | None = 1.0
    _kept = {"oob_score": "oob_score_", "keep_targets": "training_"}  # noqa: RUF012
    keep_targets: bool = checked(check_flag, default=False)

    oob_prediction_: Floats = fitted()
    training_: tuple[sp.csr_array, Floats] = fitted()  # the share of each training row in each leaf; the targets

    def predict(self, X: Any) -> Any:
        """Return the mean of what the trees predict."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict", X, np.float64)
        mean = self._mean(X)
        return mean if self.n_outputs_ > 1 else mean[:, 0]

    def predict_quantiles(self, X: Any, quantiles: ArrayLike = (0.05, 0.5, 0.95)) -> Floats:
        """Return quantiles of the target for each row, shape (n, quantiles): those of the training targets, weighted by
        how often they share a leaf with the row (Meinshausen 2006). Needs ``keep_targets=True``.

        Examples
        --------
        >>> import numpy as np
        >>> from margrove import RandomForestRegressor
        >>> x = np.arange(100.0)[:, None]
        >>> forest = RandomForestRegressor(min_samples_leaf=5, keep_targets=True).fit(x, x.ravel())
        >>> low, high = forest.predict_quantiles([[50.0]], (0.1, 0.9))[0]
        >>> bool(low < 50 < high)
        True
        """
        check_is_fitted(self)
        wanted = np.atleast_1d(np.asarray(quantiles))
        if wanted.dtype.kind not in "fiu" or wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
            raise ParameterError(f"quantiles is {shown(quantiles)}; each must be a number from 0 to 1.")
        if not hasattr(self, "training_"):
            raise InputError(
                "predict_quantiles needs the training targets, which this forest did not keep",
                cure="Fit with keep_targets=True. A model file does not hold them; a pickle does.",
            )
        of_leaves, target = self.training_
        order = np.argsort(target, kind="stable")
        reaching, found = self._leaf_indicator(X), []
        step = max(1, _MOST_SHARES // len(target))
        for first in range(0, reaching.shape[0], step):
            shares = (reaching[first : first + step] @ of_leaves).toarray()[
                :, order
            ]  # of the training rows, for each row
            reached = np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True)
            places = [np.searchsorted(of_row, np.maximum(wanted - 1e-12, _LEAST)) for of_row in reached]
            found.append(target[order][np.minimum(places, len(order) - 1)])
        return np.concatenate(found)

    def _keep_targets(self, problem: ForestProblem, sample: TreeSample) -> None:
        self.__dict__.pop("training_", None)
        if not self.keep_targets:
            return
        if sample.outputs:
            raise ParameterError("keep_targets is True, which takes one target, and y has several.")
        cells, n_trees = problem.root.cells, self.model_.n_trees
        weight = np.zeros((cells.n_rows, n_trees))
        for t in range(n_trees):
            counts = problem.counts(t)
            of_rows = problem.weight(counts)
            weight[np.flatnonzero(counts), t] = 1.0 if of_rows is None else of_rows
        reached = self._indicator(self._engine.leaves(self.model_, cells, self._threads))
        reached.data = weight.ravel()
        total = np.asarray(reached.sum(axis=0)).ravel()
        of_leaves = reached.tocsc() @ sp.diags_array(1 / np.where(total > 0, total, 1.0))
        self.training_ = of_leaves.T.tocsr(), sample.target

    def _set_oob_score_and_attributes(self, found: OutOfBag, target: NDArray[Any], value: Floats) -> None:
        self.oob_score_ = self._score_out_of_bag(found, target)
        self.oob_prediction_ = value if self.n_outputs_ > 1 else value[:, 0]

    def _stored_out_of_bag(self) -> Floats | None:
        stored = getattr(self, "oob_prediction_", None)
        return None if stored is None else stored.reshape(len(stored), -1)

    def _score(self, target: NDArray[Any], value: Floats) -> float:
        score = self.oob_score if callable(self.oob_score) else r2_score
        return float(score(target, value if target.ndim > 1 else value[:, 0]))


@estimator
class RandomForestRegressor(ForestRegressor):
    """A random forest for numbers: the mean of trees grown from rows drawn with replacement.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    criterion : {"squared_error", "friedman_mse", "gaussian_entropy", "absolute_error", "poisson"}, \
default="squared_error"
    max_features : {"sqrt", "log2", None}, int or float, default=1.0
        The number of columns that each node examines; 1.0 is all of them.
    keep_targets : bool, default=False
        Keep the training targets, for `predict_quantiles`. A model file does not hold them.
    oob_score : bool or callable, default=False
        Compute ``oob_score_`` (R²) and ``oob_prediction_``, from the trees that have not seen a row. A function
        ``f(y, predictions)`` computes the score instead.
    bootstrap, max_samples, warm_start, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, \
max_leaf_nodes, min_impurity_decrease, ccp_alpha, monotonic_cst, categorical, categorical_features, split_values, \
random_state, n_jobs, time_limit, checkpoint, engine
        As in `RandomForestClassifier`.

    Attributes
    ----------
    estimators_, model_, feature_importances_, oob_score_, status_, engine_, certificate_
        As in `RandomForestClassifier`.
    oob_prediction_ : array of shape (n,)
        The mean of what the trees predict that have not seen a row.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import RandomForestRegressor
    >>> x = np.linspace(0, 6, 200)
    >>> forest = RandomForestRegressor(n_estimators=50, oob_score=True).fit(x[:, None], np.sin(x))
    >>> f"{forest.oob_score_:.3f}"
    '1.000'
    """


@estimator
class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomised trees for numbers: each node draws one threshold for each column that it examines.

    Parameters
    ----------
    bootstrap : bool, default=False
    n_estimators, criterion, max_features, max_samples, oob_score, keep_targets, warm_start, max_depth, \
min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_leaf_nodes, min_impurity_decrease, ccp_alpha, \
monotonic_cst, categorical, categorical_features, split_values, random_state, n_jobs, time_limit, checkpoint, engine
        As in `RandomForestRegressor`.

    Attributes
    ----------
    estimators_, model_, feature_importances_, oob_score_, oob_prediction_, status_, engine_, certificate_
        As in `RandomForestRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import ExtraTreesRegressor
    >>> x = np.linspace(0, 6, 200)
    >>> forest = ExtraTreesRegressor(n_estimators=50).fit(x[:, None], np.sin(x))
    >>> f"{forest.score(x[:, None], np.sin(x)):.3f}"
    '1.000'
    """

    splitter: str = fixed("random")
    bootstrap: bool = checked(check_flag, default=False)
