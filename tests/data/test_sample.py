"""Labels become numbers, whatever they are."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge

from margrove import (
    SVC,
    SVR,
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    LinearSVC,
    OneClassSVM,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    TableEncoder,
)
from margrove.data.sample import number_classes
from margrove.errors import InputError

DTYPES = [np.int8, np.uint8, np.int32, np.int64, np.uint64]


@given(st.lists(st.integers(0, 100), min_size=1), st.sampled_from(DTYPES), st.sampled_from([0, 1, 27]))
def test_numbers_as_numpy_does(values, dtype, shift):
    y = np.array(values, dtype) + dtype(shift)
    classes, codes = number_classes(y)
    expected, inverse = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, inverse)
    assert classes.dtype == y.dtype


@pytest.mark.parametrize(
    "y",
    [
        np.array([-(2**63), 2**63 - 1, 0]),
        np.array([2**64 - 1, 0, 2**64 - 2], np.uint64),
        np.array([2**64 - 1, 2**64 - 2], np.uint64),
        np.array([5, -5, 10**12, 5]),
        np.array(["b", "a", "b"]),
        np.array([True, False, True]),
        np.array([2.5, -1.0, 2.5]),
        np.array(["b", "a", "b"], dtype=object),
        np.array([-128, 127, 0], np.int8),
    ],
    ids=repr,
)
def test_extremes_and_other_kinds(y):
    classes, codes = number_classes(y)
    np.testing.assert_array_equal(classes[codes], y)
    np.testing.assert_array_equal(classes, np.unique(y))


X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 0, 1])


def with_cell(value, row=2, column=1):
    changed = X.copy()
    changed[row, column] = value
    return changed


@pytest.mark.parametrize("learner", [SVC(), SVR(), Perceptron()], ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (with_cell(math.nan), r"X contains NaN, first in row 2, column 1. Fill .*SimpleImputer\(\), \w+\(\)"),
        (with_cell(-math.inf), "X contains infinity, first in row 2, column 1. Remove such rows"),
        (pd.DataFrame(with_cell(math.nan), columns=["age", "fare"]), "row 2, column 'fare'. Fill .*TableEncoder"),
        (pd.DataFrame({"a": pd.array([1, 2, None, 4, 5, 6], dtype="Int64"), "b": np.arange(6)}), "row 2, column 'a'"),
        (sp.csr_matrix(with_cell(math.nan)), "X contains NaN, first in row 2, column 1"),
        (with_cell(math.nan).tolist(), "X contains NaN, first in row 2, column 1"),
    ],
    ids=["nan", "infinity", "frame", "nullable", "sparse", "list"],
)
def test_a_cell_that_is_no_number_is_named(learner, rows, words):
    with pytest.raises(InputError, match=words):
        learner.fit(rows, Y)


def test_a_cell_that_is_no_number_is_named_in_prediction_and_in_y():
    with pytest.raises(InputError, match="X contains infinity, first in row 0, column 0"):
        SVC().fit(X, Y).predict([[math.inf, 1]])
    with pytest.raises(InputError, match=r"y contains NaN, first in row 3. Remove such rows"):
        SVR().fit(X, [0, 1, 2, math.nan, 4, 5])


def test_class_weights_of_unknown_classes_are_refused():
    with pytest.raises(InputError, match=r"classes of y, 0, 1, are not in class_weight, which has 'yes'. Use"):
        SVC(class_weight={"yes": 2.0}).fit(X, Y)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: OneVsRestClassifier().fit(X, y),
        lambda X, y: AdaBoostRegressor(Ridge()).fit(X, y),
        lambda X, y: LinearSVC().fit_stream((X, y)),
    ],
    ids=["machines", "a foreign learner", "a stream"],
)
def test_a_damaged_sparse_matrix_never_reaches_scipy(fit):
    X = sp.csc_matrix((4, 2))
    X.indptr = np.array([0, 5, 0], dtype=np.int32)
    with pytest.raises(InputError, match="damaged sparse matrix"):
        fit(X, np.array([0, 1, 0, 1]))


@pytest.mark.parametrize(
    "learner",
    [SVC(), TableEncoder(), DecisionTreeClassifier(), AdaBoostClassifier(), AdaBoostRegressor()],
    ids=lambda learner: type(learner).__name__,
)
def test_all_estimators_count_rows_from_zero(learner):
    with pytest.raises(InputError, match="in row 2") as info:
        learner.fit(with_cell(math.inf), Y)
    assert "empty" not in str(info.value)


WEIGHTED = [
    SVC(),
    SVR(),
    OneClassSVM(),
    LinearSVC(),
    DecisionTreeClassifier(max_depth=1),
    AdaBoostClassifier(),
    AdaBoostRegressor(),
    Perceptron(),
    OneVsOneClassifier(LinearSVC()),
]


@pytest.mark.parametrize("learner", WEIGHTED, ids=lambda learner: type(learner).__name__)
def test_one_weight_is_the_weight_of_every_row(learner):
    y = (X[:, 0] > 5).astype(int)
    one = clone(learner).fit(X, y, sample_weight=0.5)
    each = clone(learner).fit(X, y, sample_weight=np.full(6, 0.5))
    np.testing.assert_array_equal(one.predict(X), each.predict(X))


@pytest.mark.parametrize("learner", WEIGHTED, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize(("weight", "what"), [(math.nan, "NaN"), (math.inf, "infinity")])
def test_a_weight_that_is_not_finite_is_named_with_its_row(learner, weight, what):
    y, weights = (X[:, 0] > 5).astype(int), np.ones(6)
    weights[2] = weight
    with pytest.raises(InputError, match=f"Input sample_weight contains {what}, first in row 2"):
        clone(learner).fit(X, y, sample_weight=weights)
