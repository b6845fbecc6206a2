"""Forests in model files and ONNX: they predict the same, take few bytes, and changed files are refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier as ScikitForest
from sklearn.metrics import accuracy_score

from margrove import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    certify,
    load,
    load_penguins,
    save,
)
from margrove.errors import InputError, MargroveWarning, ModelFileError
from margrove.store import arrays


@pytest.mark.parametrize(
    ("forest", "read"),
    [
        (RandomForestClassifier(n_estimators=25, oob_score=True), load_iris),
        (RandomForestClassifier(n_estimators=2, max_depth=1, class_weight="balanced"), load_iris),
        (RandomForestRegressor(n_estimators=5), load_diabetes),
        (ExtraTreesRegressor(n_estimators=5, criterion="absolute_error", max_depth=4), load_diabetes),
    ],
)
def test_a_loaded_forest_predicts_and_certifies_the_same(tmp_path, forest, read):
    X, y = read(return_X_y=True)
    forest.fit(X, y)
    save(forest, tmp_path / "f.margrove")
    loaded = load(tmp_path / "f.margrove")
    np.testing.assert_array_equal(loaded.predict(X), forest.predict(X))
    np.testing.assert_array_equal(loaded.apply(X), forest.apply(X))
    np.testing.assert_array_equal(loaded.feature_importances_, forest.feature_importances_)
    assert certify(loaded, X, y).holds
    assert getattr(loaded, "oob_score_", None) == getattr(forest, "oob_score_", None)


def test_a_score_that_is_a_function_is_left_out(tmp_path):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=30, oob_score=accuracy_score).fit(X, y)
    with pytest.warns(MargroveWarning, match="oob_score is a function, which is not saved"):
        save(forest, tmp_path / "f.margrove")
    loaded = load(tmp_path / "f.margrove")
    assert loaded.oob_score is False
    assert not hasattr(loaded, "oob_score_")
    assert forest.oob_score_ > 0.9
    assert certify(loaded, X, y).holds


def test_training_targets_are_left_out(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(n_estimators=3, keep_targets=True).fit(X, y)
    with pytest.warns(MargroveWarning, match="training targets, for predict_quantiles, are not saved"):
        save(forest, tmp_path / "f.margrove")
    with pytest.raises(InputError, match="A model file does not hold them; a pickle does"):
        load(tmp_path / "f.margrove").predict_quantiles(X)


def test_a_forest_of_a_table(tmp_path):
    penguins = load_penguins()
    forest = RandomForestClassifier(n_estimators=5).fit(penguins, penguins.labels())
    save(forest, tmp_path / "f.margrove")
    loaded = load(tmp_path / "f.margrove")
    np.testing.assert_array_equal(loaded.predict_proba(penguins), forest.predict_proba(penguins))
    assert certify(loaded, penguins, penguins.labels()).holds


def test_a_file_has_a_fifth_of_scikit_learns_bytes(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(len(y)) < 0.2, 1 - y, y)  # deep trees
    save(RandomForestClassifier(n_estimators=50).fit(X, noisy), tmp_path / "f.margrove")
    theirs = len(pickle.dumps(ScikitForest(n_estimators=50, random_state=0).fit(X, noisy)))
    assert (tmp_path / "f.margrove").stat().st_size < theirs / 5


def test_trees_without_a_test_can_be_saved(tmp_path):
    forest = RandomForestRegressor(n_estimators=2).fit([[0.0], [1.0]], [3.0, 3.0])
    save(forest, tmp_path / "f.margrove")
    assert load(tmp_path / "f.margrove").predict([[5.0]]) == [3.0]


def test_several_targets_are_refused(tmp_path):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=2).fit(X, np.stack([y, y], axis=1))
    with pytest.raises(InputError, match="one target"):
        save(forest, tmp_path / "f.margrove")
    numbers = RandomForestRegressor(n_estimators=2).fit(X, X[:, :2])
    with pytest.raises(InputError, match="one target"):
        save(numbers, tmp_path / "f.margrove")


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("right", lambda a: a * 0 + 2),  # two parents
        ("right", lambda a: a * 0 + 30_000),  # out of the tree
        ("start", lambda a: np.array([0, 0, *a[2:]])),  # a tree without nodes
        ("feature", lambda a: np.where(a < 0, 0, a)),  # no leaves
        ("cut", lambda a: a[:-1]),
        ("place", lambda a: a + 1_000),
        ("n_rows", lambda a: a * 0),
        ("weight", lambda a: a[:-1]),
    ],
)
def test_forged_arrays_are_refused(tmp_path, monkeypatch, array, change):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(n_estimators=3).fit(X, y)
    put = arrays.Arrays.put

    def forging(self, name, given):
        return put(self, name, change(given) if name == array and self.prefix.endswith("packed.") else given)

    monkeypatch.setattr(arrays.Arrays, "put", forging)
    with pytest.raises((ModelFileError, InputError)):
        save(forest, tmp_path / "f.margrove")  # never writes what load would refuse
