"""A selector that takes tables as they are and gives them back with fewer columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from margrove.advice import Advice, Value
from margrove.data.alignment import check_names, sparse_as_trained
from margrove.data.columns import Column
from margrove.data.frames import as_array, is_frame
from margrove.data.table import Table, duplicate_names
from margrove.errors import InputError, ParameterError, check_choice, check_number, check_share, check_whole, shown
from margrove.estimator import checked, estimator, fitted
from margrove.select import scores
from margrove.select.scores import KINDS, ColumnScorer, ColumnScores
from margrove.tree.problem import EQUAL_GAIN


def _check_count(name: str, k: int | float | str) -> None:
    if isinstance(k, float | np.floating):
        check_number(name, k, above=0, cure="It is a share of the columns, or a whole number of them.")
        if k > 1:
            raise ParameterError(f"{name} is {k}; a float is a share of the columns and must be at most 1.0.")
    elif isinstance(k, str):
        check_choice(name, k, ("all",))
    else:
        check_whole(name, k, least=1, cure="Or use a share of the columns, such as 0.5, or 'all'.")


def _score_name(name: str, score: object) -> str:
    """Return the name of a score, given by that or as the function of that name."""
    functions = {getattr(scores, kind): kind for kind in KINDS}
    if callable(score) and score in functions:
        return functions[score]
    check_choice(name, score, tuple(KINDS))
    return str(score)


@estimator
class ImpuritySelector(SelectorMixin, ColumnScorer):
    """Keep the columns that tell most of the class, each by itself.

    Takes text, categories, booleans and missing cells, and gives back what it was given, a frame for a frame and a
    sparse matrix for a sparse matrix, with the chosen columns only, in their order. A frame or `Table` is matched by
    the names of its columns; the others may be absent.

    Parameters
    ----------
    score_func : {"information_gain", "gini_gain", "error_gain", "gain_ratio", "skew_adjusted_gain"}
        The score of a column, by name or as the function of that name: see `information_gain`. For the gain ratio,
        columns of at least average gain come first, as in a tree that splits by it: alone, the ratio is largest for a
        column that sets a few rows apart.
    k : int, float or "all", default=10
        At most so many columns, the best; of equals, the first. A float is a share of the columns.
    threshold : float, optional
        Only columns whose score is at least this.
    significance : float, optional
        Only columns whose p-value is at most this.
    criterion : {"entropy", "gini", "error"}, default="entropy"
        The impurity of "gain_ratio" and "skew_adjusted_gain"; the others have their own.
    thresholds, n_bins, categorical, categorical_features, split_values, class_weight, n_jobs, engine
        As `information_gain`.

    Attributes
    ----------
    scores_, p_values_ : ndarray of shape (d,)
        Of all columns. A p-value is corrected for the thresholds tried, not for the number of columns.
    gains_ : ndarray of shape (d,)
        The gain behind each score.
    best_thresholds_ : ndarray of shape (d,)
        Where each number was parted: x ≤ θ; ∞ where "present or missing" was best. NaN of categories and constants.
    support_ : ndarray of bool of shape (d,)
        Which columns are kept; `get_support` gives it too.
    engine_ : str
        What ran.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where the training table had names.

    Examples
    --------
    >>> from margrove import ImpuritySelector, load_penguins
    >>> penguins = load_penguins()
    >>> selector = ImpuritySelector(k=3).fit(penguins, penguins.labels())
    >>> selector.transform(penguins).names
    ('island', 'bill_length_mm', 'flipper_length_mm')
    """

    score_func: str | Callable[..., Any] = checked(_score_name, default="information_gain", kw_only=False)
    k: int | float | str = checked(_check_count, default=10)
    threshold: float | None = checked(check_number, cure=Advice(Value(None), " means no limit."), default=None)
    significance: float | None = checked(check_share, default=None)

    scores_: NDArray[np.float64] = fitted()
    p_values_: NDArray[np.float64] = fitted()
    gains_: NDArray[np.float64] = fitted()
    best_thresholds_: NDArray[np.float64] = fitted()
    support_: NDArray[np.bool_] = fitted()
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[Any] = fitted()

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Score the columns, and choose.

        Parameters
        ----------
        X : data frame, Table, array or sparse matrix of shape (n, d)
        y : labels of shape (n,)
        sample_weight : array of shape (n,), optional
            A row of weight 2 counts as two rows.
        """
        self._check()
        scored = self._score(self.score_name(), X, y, sample_weight)
        self.support_ = self._chosen(scored)
        self.scores_, self.p_values_, self.gains_ = scored.score, scored.p_value, scored.gain
        self.best_thresholds_ = scored.threshold
        return self

    def transform(self, X: Any) -> Any:
        """The chosen columns of X, in the kind that X is.

        With ``set_output`` (or scikit-learn's configuration) in the kind that was asked for.
        """
        check_is_fitted(self)
        if not isinstance(X, Table) and not is_frame(X):
            form, X = X.format if sp.issparse(X) else None, as_array(X)
            X = validate_data(self, X, reset=False, accept_sparse=True, dtype=None, ensure_all_finite=False)
            if form is None:
                return X[:, self.support_]
            return X.tocsc()[:, np.flatnonzero(self.support_)].asformat(form)
        import narwhals as nw

        wanted = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        if isinstance(X, Table):
            kept = self._of_table(X)
            if wanted == "default":
                return kept
            cells = {each.name: each.values.tolist() if each.kind == "numeric" else each.cells() for each in kept}
            return nw.from_dict(cells, backend=wanted).to_native()
        names = [str(name) for name in getattr(X, "column_names", X.columns)]
        if len(set(names)) < len(names):
            raise duplicate_names(names, file=f"{type(X).__module__.split('.')[0]} table")
        frame = nw.from_native(X, eager_only=True)
        header = Table([Column(name, "numeric", np.empty(0)) for name in names], source="table")
        chosen = frame[:, self._places(header)]
        if wanted == "default":
            return chosen.to_native()
        return chosen.to_pandas() if wanted == "pandas" else chosen.to_polars()

    def _of_table(self, table: Table) -> Table:
        if table.absent_is_zero and hasattr(self, "feature_names_in_"):  # columns of zeros alone may not be there
            names = self.feature_names_in_[self.support_].tolist()
            check_names(table, names, known=self.feature_names_in_.tolist())
            kept = Table(block=sparse_as_trained(table, names), names=names, source=table.source, absent_is_zero=True)
            return kept.with_target(table.target, *table.notes)
        return table.select([table.names[place] for place in self._places(table)])

    def _places(self, table: Table) -> list[int]:
        """Return the positions of the chosen columns in a table: by name where training had names."""
        if not hasattr(self, "feature_names_in_"):
            if table.n_columns != self.n_features_in_:
                raise InputError(
                    f"X has {table.n_columns} features, but ImpuritySelector is expecting {self.n_features_in_} "
                    "features as input",
                    file=table.source,
                )
            return np.flatnonzero(self.support_).tolist()
        chosen = self.feature_names_in_[self.support_].tolist()
        check_names(table, chosen, known=self.feature_names_in_.tolist())
        return [table.position(name) for name in chosen]

    # -------------------------------------------------------------------------------------------------- the choice

    def score_name(self) -> str:
        """The name of the score, whether it was given as that or as a function."""
        return _score_name("score_func", self.score_func)

    def _chosen(self, scored: ColumnScores) -> NDArray[np.bool_]:
        d = len(scored.score)
        allowed = np.ones(d, dtype=bool)
        if self.threshold is not None:
            allowed &= np.nan_to_num(scored.score, nan=-np.inf) >= self.threshold
        if self.significance is not None:
            allowed &= scored.p_value <= self.significance
        if not allowed.any():
            best = int(np.argmax(np.nan_to_num(scored.score, nan=-np.inf)))
            given = {"score ≥": self.threshold, "p ≤": self.significance}
            limits = " and ".join(f"{word} {shown(limit)}" for word, limit in given.items() if limit is not None)
            raise InputError(
                f"no column is left: none of {d} has {limits}. The best score is {scored.score[best]:.4g}, "
                f"with p = {scored.p_value[best]:.3g}",
                cure="Use a smaller threshold or a larger significance.",
            )
        ranked = np.array([j for j in _ranking(self.score_name(), scored) if allowed[j]])
        if isinstance(self.k, str):
            most = d
        else:
            most = max(1, int(self.k * d)) if isinstance(self.k, float | np.floating) else int(self.k)
        support = np.zeros(d, dtype=bool)
        support[ranked[:most]] = True
        return support

    # ------------------------------------------------------------------------------------------------- scikit-learn's

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        for taken in ("allow_nan", "sparse", "string", "categorical"):
            setattr(tags.input_tags, taken, True)
        return tags


def _ranking(kind: str, scored: ColumnScores) -> NDArray[np.intp]:
    """The columns, the best first; of those that are equal up to rounding the first in order."""
    score = np.round(np.nan_to_num(scored.score, nan=-np.inf) / EQUAL_GAIN)
    is_behind = np.zeros(len(score), dtype=bool)
    if kind == "gain_ratio":  # T5: at least the mean gain of the columns that offer a test
        offered = scored.n_tests > 0
        mean = scored.gain[offered].mean() if offered.any() else 0.0
        is_behind = scored.gain < mean - EQUAL_GAIN
    return np.lexsort((np.arange(len(score)), -score, is_behind))
