"""Certificates of forests: forged ones are found."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from margrove import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor, certify, load_penguins
from margrove.forest import certificate

pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")  # few trees


def failed(model, X, y):
    return [claim.name for claim in certify(model, X, y).claims if claim.holds is False]


def forged(model, **arrays):
    """The forest with some arrays changed by functions."""
    copy = deepcopy(model)
    trees = copy.model_.trees
    changed = {name: change(np.array(getattr(trees, name))) for name, change in arrays.items()}
    copy.model_ = replace(copy.model_, trees=replace(trees, **changed))
    return copy


def at(place, change):
    def apply(array):
        array[place] = change(array[place])
        return array

    return apply


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return RandomForestClassifier(n_estimators=6, oob_score=True).fit(X, y), X, y


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("threshold", lambda value: value + 0.01),
        ("feature", lambda value: (value + 1) % 4),
    ],
)
def test_a_changed_test_is_found(iris, array, change):
    model, X, y = iris
    inner = np.flatnonzero(model.model_.trees.feature >= 0)
    for node in inner[:: len(inner) // 6]:
        assert failed(forged(model, **{array: at(node, change)}), X, y) != []


@pytest.mark.parametrize(
    ("array", "change"),
    [
        ("weight", lambda value: value + 1),
        ("n_rows", lambda value: value + 1),
        ("place", lambda value: (value + 1) % 3),
    ],
)
def test_a_changed_leaf_is_found(iris, array, change):
    model, X, y = iris
    n_leaves = len(model.model_.trees.weight)
    for leaf in range(0, n_leaves, max(1, n_leaves // 6)):
        assert failed(forged(model, **{array: at(leaf, change)}), X, y) != []


def test_a_forest_some_of_whose_trees_are_single_leaves_holds():
    X, y = [[182.0], [240.0], [327.0], [-592.0]], [1, 1, 0, 0]
    model = RandomForestClassifier(n_estimators=100).fit(X, y)
    sizes = np.diff(model.model_.trees.start)
    assert sizes.min() == 1 < sizes.max()
    assert failed(model, X, y) == []
    threshold = at(int(np.flatnonzero(model.model_.trees.feature >= 0)[0]), lambda value: value + 100)
    assert failed(forged(model, threshold=threshold), X, y) != []


def test_a_forest_of_targets_far_from_zero_with_very_different_weights_holds():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(40, 3)), 1e7 + rng.normal(size=40), 10.0 ** rng.uniform(-9, 11, 40)
    model = RandomForestRegressor(n_estimators=5).fit(X, y, sample_weight=weight)
    assert certify(model, X, y, weight).holds


def test_other_draws_other_rows_and_other_votes_are_found(iris):
    model, X, y = iris
    other = deepcopy(model).set_params(random_state=1)
    assert "rows drawn for each tree" in failed(other, X, y)
    assert failed(model, X[:-1], y[:-1]) == ["the rows are those it was fitted on"]
    swapped = deepcopy(model)
    swapped.oob_decision_function_ = swapped.oob_decision_function_[::-1]
    assert failed(swapped, X, y) == ["out-of-bag predictions and score"]
    assert failed(deepcopy(model).set_params(min_samples_leaf=5), X, y) != []
    fewer = deepcopy(model)
    fewer.model_ = model.model_.first(5)
    assert failed(fewer, X, y) == ["rows drawn for each tree"]
    assert failed(deepcopy(model).set_params(max_features=1), X, y) != []


def test_a_tree_without_its_best_split_is_found():
    X, y = load_diabetes(return_X_y=True)
    honest = RandomForestRegressor(n_estimators=3, max_depth=3).fit(X, y)
    lazy = RandomForestRegressor(n_estimators=3, max_depth=3, max_features=2).fit(X, y)
    lazy.set_params(max_features=1.0)
    assert certify(honest, X, y).holds
    assert "a better column" in failed(lazy, X, y)


def test_forged_trees_of_tables_are_found():
    penguins = load_penguins()
    model = RandomForestClassifier(n_estimators=4, oob_score=True).fit(penguins, penguins.labels())
    assert certify(model, penguins, penguins.labels()).holds
    node = int(np.flatnonzero(~np.isnan(model.model_.trees.threshold))[0])
    assert failed(forged(model, threshold=at(node, lambda value: value * 1.2)), penguins, penguins.labels()) != []


def test_random_thresholds_are_drawn_again():
    X, y = load_iris(return_X_y=True)
    model = ExtraTreesClassifier(n_estimators=4).fit(X, y)
    assert certify(model, X, y).holds
    trees = model.model_.trees
    # Moved a little, so that every row goes the same way: only the draw tells.
    node = int(np.flatnonzero(trees.feature >= 0)[0])
    assert "splits that violate the rules" in failed(forged(model, threshold=at(node, lambda v: v + 1e-7)), X, y)


def test_a_large_forest_is_checked_in_part_and_says_so(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(n_estimators=10, oob_score=True).fit(X, y)
    for name, limit in (("STEP_LIMIT", 20_000), ("SEARCH_LIMIT", 500), ("_LEAST_ROWS", 100)):
        monkeypatch.setattr(certificate, name, limit)
    claims = {claim.name: claim for claim in certify(model, X, y).claims}
    assert all(claim.holds is not False for claim in claims.values())
    assert "of 10 trees recounted" in claims["rows, weight and prediction of each leaf"].words
    assert "10 of 10" not in claims["rows, weight and prediction of each leaf"].words
    assert "of 569 rows" in claims["out-of-bag predictions and score"].words
    assert "569 of 569" not in claims["out-of-bag predictions and score"].words
