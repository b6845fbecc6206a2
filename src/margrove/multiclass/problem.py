"""The problem of each machine: the rows it sees, and the side of each row. No solver.

Column s of a code matrix is a two-class problem on the rows whose entry is not 0: y_i = c_{class(i), s}, −1 or +1. Of
several labels per row, each label is a two-class problem on all rows. An estimator gets the sides as the labels 0 and
1, as in scikit-learn. Where all rows are on one side there is nothing to learn (`ConstantMachine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _num_samples,
    assert_all_finite,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from margrove.data.frames import as_array
from margrove.data.sample import codes_of, number_classes, plain_labels
from margrove.data.table import Table
from margrove.errors import InputError, as_input_error
from margrove.svm.layout import machine_names

# y: a class for each row, or an indicator matrix of several labels. Predictions are sparse if that matrix was.
Target = Literal["classes", "labels", "sparse labels"]
TARGETS: tuple[Target, ...] = ("classes", "labels", "sparse labels")


@dataclass(frozen=True)
class Question:
    """One machine's question."""

    rows: NDArray[np.int64] | None  # of X; None where it sees all of them
    sign: NDArray[np.int8]  # −1 or +1 of each of these

    @property
    def targets(self) -> NDArray[np.int64]:
        """The sides as labels for an estimator: 0 or 1."""
        return (self.sign > 0).astype(np.int64)

    @property
    def is_constant(self) -> bool:
        """True if all rows are on one side."""
        return bool((self.sign == self.sign[0]).all())


class ConstantMachine(ClassifierMixin, BaseEstimator):
    """A machine whose rows were all on one side, which it predicts for every row."""

    def __init__(self, side: int = 0) -> None:
        self.side = side

    def fit(self, X: Any, y: Any = None) -> Self:
        """Take the names and the number of the columns."""
        validate_data(self, X, skip_check_array=True)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the side, 0 or 1, of each row, as scikit-learn does."""
        validate_data(self, X, reset=False, skip_check_array=True)
        return np.full(_num_samples(X), float(self.side))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the side of each row."""
        return self.decision_function(X).astype(np.int64)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return probability 1 of that side, shape (n, 2)."""
        side = self.decision_function(X)
        return np.stack([1 - side, side], axis=1)


def columns_of(code: NDArray[np.int8], codes: NDArray[np.intp]) -> list[Question]:
    """The questions of all machines; ``codes`` is the number of each row's class."""
    columns = []
    for column in code.T:
        sign = column[codes]
        rows = None if (column != 0).all() else np.flatnonzero(sign)
        columns.append(Question(rows, sign if rows is None else sign[rows]))
    return columns


def label_columns(indicator: Any) -> list[Question]:
    """The questions "does the row have the label?" of an indicator matrix, dense or sparse."""
    by_label: Any = sp.csc_array(indicator)
    columns = [by_label[:, [number]].toarray().ravel() > 0 for number in range(by_label.shape[1])]
    return [Question(None, np.where(has_it, 1, -1).astype(np.int8)) for has_it in columns]


@dataclass(frozen=True)
class Layout:
    """The targets of the machines: the classes, by a code; or several labels per row, a machine for each."""

    classes: NDArray[Any]
    code: NDArray[np.int8] | None = None  # None for several labels per row, and for a single class
    target: Target = "classes"

    @classmethod
    def of(cls, model: Any) -> Layout:
        """Return the layout by the public attributes of a fitted scheme, which `certify` checks."""
        return cls(model.classes_, getattr(model, "code_", None), model._machines.layout.target)

    @property
    def n_machines(self) -> int:
        """The number of machines."""
        return len(self.classes) if self.code is None else self.code.shape[1]

    @property
    def has_several(self) -> bool:
        """True if a row may have several labels."""
        return self.target != "classes"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the machines: the classes that each one separates, or its label."""
        if self.code is not None:
            return machine_names(self.classes, self.code)
        return tuple(f"{label} vs not {label}" if self.has_several else f"{label}" for label in self.classes)

    @as_input_error
    def questions(self, y: Any) -> list[Question]:
        """Return the questions of all machines about rows with these labels."""
        if not self.has_several:
            negative = np.array([[-1]], np.int8)  # of a single class, as in scikit-learn, whose label is 0
            return columns_of(negative if self.code is None else self.code, codes_of(y, self.classes))
        indicator = y if sp.issparse(y) else np.asarray(y)
        if indicator.ndim != 2 or indicator.shape[1] != self.n_machines:
            wanted = f"an indicator matrix of {self.n_machines} labels was expected"
            raise InputError(f"y has shape {indicator.shape}; {wanted}")
        return label_columns(indicator)


def last_step(estimator: Any) -> Any:
    """Return the learner at the end of a pipeline, or the learner itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def takes_gram(estimator: Any) -> bool:
    """Return whether the estimator takes a Gram matrix as X."""
    return bool(get_tags(estimator).input_tags.pairwise)


def as_rows(X: Any, *, is_pairwise: bool) -> Any:
    """Return X in a form whose rows can be taken: sparse matrices as CSR, Gram matrices as arrays, others as they
    are."""
    if sp.issparse(X):
        return as_array(X).tocsr()
    return np.asarray(X) if is_pairwise or not hasattr(X, "__getitem__") else X


@as_input_error
def rows_of(X: Any, rows: NDArray[np.int64] | None, *, is_pairwise: bool = False) -> Any:
    """Some rows of X, of the kind that X is: array, sparse matrix, data frame or `Table`. Of a Gram matrix
    (``is_pairwise``) also those columns."""
    if rows is None:
        return X
    if is_pairwise:
        return X[rows][:, rows]
    if isinstance(X, Table) or type(X).__module__.startswith("pyarrow"):
        return X.take(rows)
    return _safe_indexing(X, rows)


def seen_columns(X: Any, rows: NDArray[np.int64] | None, *, is_pairwise: bool) -> Any:
    """X as a machine predicts from it: of kernel values (``is_pairwise``) those with the rows it has seen."""
    return X if rows is None or not is_pairwise else X[:, rows]


def parameters_of(params: Mapping[str, Any], rows: NDArray[np.int64] | None, n: int) -> dict[str, Any]:
    """Return the parameters of `fit` for some rows: those entries of weights, and of all else with one entry per
    row."""
    found = {}
    for name, value in params.items():
        if name.rpartition("__")[2] == "sample_weight":
            found[name] = weights_of(value, rows, n)
        else:
            is_by_row = hasattr(value, "__len__") and not isinstance(value, (str, dict)) and _num_samples(value) == n
            found[name] = rows_of(value, rows) if is_by_row else value
    return found


def weight_parameter(estimator: Any) -> str:
    """Return the name of the weights in the estimator's ``fit``, where those of a pipeline are of its last step; raise
    `InputError` if it takes none."""
    learner = last_step(estimator)
    if not has_fit_parameter(learner, "sample_weight"):
        raise InputError(
            f"sample_weight is given, but {type(learner).__name__}.fit does not accept it",
            cure="Omit it, or use another estimator.",
        )
    return "sample_weight" if learner is estimator else f"{estimator.steps[-1][0]}__sample_weight"


@as_input_error
def weights_of(sample_weight: Any, rows: NDArray[np.int64] | None, n: int) -> Any:
    """The weights of some rows."""
    if sample_weight is None or rows is None or np.ndim(sample_weight) == 0:
        return sample_weight
    weight = np.asarray(sample_weight)
    if weight.shape[:1] != (n,):
        raise InputError(f"sample_weight has shape {weight.shape}; X has {n} rows", cure=f"Pass {n} numbers.")
    return weight[rows]


@as_input_error
def read_labels(X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the labels as an array, and the classes."""
    if y is None:
        raise InputError("a classifier requires y to be passed, but the target y is None")
    n = _num_samples(X)
    if sp.issparse(y) or (getattr(y, "ndim", 1) == 2 and y.shape[1] > 1):
        raise InputError(
            f"y has shape {tuple(y.shape)}; y should be a 1d array, one label for each row",
            cure="For several labels per row, use OneVsRestClassifier, whose fit takes an indicator matrix.",
        )
    if n == 0:
        raise InputError("X has 0 rows", cure="Pass at least one row of each of two classes.")
    labels = column_or_1d(y, warn=True)
    if len(labels) != n:
        raise InputError(f"X has {n} rows and y has {len(labels)}: inconsistent numbers of samples")
    labels = plain_labels(labels)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels, number_classes(labels)[0]
