"""Forests as scikit-learn's: the same leaves and predictions, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.datasets import load_diabetes, load_iris
from sklearn.utils import get_tags

from margrove import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    load_penguins,
    to_sklearn,
)
from margrove.errors import InputError

X, Y = load_iris(return_X_y=True)
Z, NUMBERS = load_diabetes(return_X_y=True)
X, Z = (table.astype(np.float32).astype(np.float64) for table in (X, Z))  # scikit-learn rounds cells to float32
LABELS = np.array(["c", "a", "b"])[Y]


def with_holes(table):
    return np.where(np.random.default_rng(0).random(table.shape) < 0.1, np.nan, table)


def takes_missing(theirs):
    return get_tags(theirs).input_tags.allow_nan


@pytest.mark.parametrize(
    ("forest", "table", "target"),
    [
        (RandomForestClassifier(n_estimators=30, oob_score=True), X, LABELS),
        (RandomForestClassifier(n_estimators=4, criterion="error"), X, LABELS),
        (RandomForestClassifier(n_estimators=4), X, np.stack([Y, Y % 2], axis=1)),
        (ExtraTreesClassifier(n_estimators=4, class_weight="balanced"), with_holes(X), LABELS),
        (RandomForestRegressor(n_estimators=4, max_depth=5), with_holes(Z), NUMBERS),
        (RandomForestRegressor(n_estimators=4, max_depth=5), Z, np.stack([NUMBERS, -NUMBERS], axis=1)),
        (ExtraTreesRegressor(n_estimators=4, criterion="poisson", max_depth=5), Z, NUMBERS),
    ],
)
def test_a_converted_forest_predicts_the_same(forest, table, target):
    forest.fit(table, target)
    theirs = pickle.loads(pickle.dumps(to_sklearn(forest)))
    assert type(theirs) is getattr(sklearn.ensemble, type(forest).__name__)
    assert type(theirs[0]) is type(theirs.estimator_)
    for rows in (table, with_holes(table)) if takes_missing(theirs) else (table,):
        np.testing.assert_array_equal(theirs.apply(rows), forest.apply(rows))
        if hasattr(forest, "predict_proba"):
            np.testing.assert_array_equal(theirs.predict(rows), forest.predict(rows))
            shares = zip(
                *(
                    [model.predict_proba(rows)] if target.ndim == 1 else model.predict_proba(rows)
                    for model in (theirs, forest)
                ),
                strict=True,
            )
            for their, own in shares:
                np.testing.assert_allclose(their, own, rtol=1e-12)
        else:
            np.testing.assert_allclose(theirs.predict(rows), forest.predict(rows), rtol=1e-12)
    np.testing.assert_allclose(theirs.feature_importances_, forest.feature_importances_)
    assert getattr(theirs, "oob_score_", None) == getattr(forest, "oob_score_", None)
    assert not hasattr(theirs, "estimators_samples_")  # they would be other rows


def test_what_scikit_learn_cannot_hold_is_named():
    penguins = load_penguins()
    forest = RandomForestClassifier(n_estimators=3).fit(penguins, penguins.labels())
    with pytest.raises(AttributeError, match="column 'island' is tested by its levels"):
        forest.to_sklearn()
    holed = RandomForestRegressor(n_estimators=3, criterion="absolute_error", max_depth=3).fit(with_holes(X), Y)
    if takes_missing(sklearn.ensemble.RandomForestRegressor(criterion="absolute_error")):
        np.testing.assert_array_equal(to_sklearn(holed).apply(with_holes(X)), holed.apply(with_holes(X)))
    else:  # before 1.9
        with pytest.raises(
            InputError, match="'x0' has missing cells, and scikit-learn's RandomForestRegressor takes none"
        ):
            to_sklearn(holed)
