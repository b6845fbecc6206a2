"""`tree_` and `to_sklearn`: our trees as scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import tree as theirs
from sklearn.datasets import load_diabetes, load_iris

from margrove import DecisionStump, DecisionTreeClassifier, DecisionTreeRegressor, load_penguins, to_sklearn

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 151.0)])
def test_arrays_are_those_of_a_tree_that_scikit_learn_grew(criterion, weight):
    X, y = IRIS[0].astype(np.float32), IRIS[1]
    ours = DecisionTreeClassifier(criterion=criterion, max_depth=2).fit(X, y, weight)
    other = theirs.DecisionTreeClassifier(criterion=criterion, max_depth=2, random_state=3).fit(X, y, weight)
    mine, other = ours.tree_, other.tree_
    assert mine.node_count == (5 if weight is None else 7)
    for name in ("node_count", "max_depth", "n_leaves", "n_features", "n_outputs", "max_n_classes"):
        assert getattr(mine, name) == getattr(other, name)
    for name in ("children_left", "children_right", "n_node_samples"):
        assert getattr(mine, name).tolist() == getattr(other, name).tolist()
    for name in ("weighted_n_node_samples", "impurity", "value"):
        np.testing.assert_allclose(getattr(mine, name), getattr(other, name), rtol=1e-12, atol=1e-15)
    assert mine.apply(X).tolist() == ours.apply(X).tolist()
    np.testing.assert_allclose(mine.compute_feature_importances(), ours.feature_importances_)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "gaussian_entropy"])
def test_a_converted_regression_predicts_the_same(criterion):
    X, y = DIABETES[0].astype(np.float32), DIABETES[1]
    ours = DecisionTreeRegressor(criterion=criterion, max_depth=5).fit(X, y)
    other = ours.to_sklearn()
    assert type(other) is theirs.DecisionTreeRegressor
    assert other.predict(X).tolist() == ours.predict(X).tolist()
    assert other.tree_.impurity.tolist() == ours.nodes_.impurity.tolist()
    assert (other.decision_path(X) != ours.decision_path(X)).nnz == 0


def test_missing_cells_take_the_same_branch():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < 0.2] = np.nan
    ours = DecisionTreeClassifier(min_samples_leaf=5).fit(X, y)
    assert np.isinf(ours.nodes_.threshold).any() or (ours.nodes_.missing_branch == 0).any()
    assert ours.to_sklearn().predict(X).tolist() == ours.predict(X).tolist()


def test_names_and_labels_come_along():
    pandas = pytest.importorskip("pandas")
    frame, labels = pandas.DataFrame(IRIS[0], columns=list("abcd")), np.array(["x", "y", "z"])[IRIS[1]]
    other = to_sklearn(DecisionTreeClassifier(max_depth=2, random_state=5).fit(frame, labels))
    assert other.feature_names_in_.tolist() == list("abcd")
    assert (other.get_params()["max_depth"], other.get_params()["random_state"]) == (2, 5)
    assert set(other.predict(frame)) == {"x", "y", "z"}
    assert theirs.export_text(other, feature_names=list("abcd")).startswith("|--- ")


def test_booleans_and_a_single_cut_are_thresholds():
    X = np.array([[True, 0.5], [False, 1.0], [True, 2.0], [False, 3.0]], dtype=object)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"flag": X[:, 0].astype(bool), "size": X[:, 1].astype(float)})
    flags = DecisionTreeClassifier().fit(frame, [1, 0, 1, 0])
    assert flags.tree_.threshold[0] == 0.5
    assert flags.to_sklearn().predict(frame.assign(size=9)).tolist() == [1, 0, 1, 0]
    cut = DecisionTreeClassifier(split_values={"size": [2.0]}).fit(frame[["size"]], [0, 0, 1, 1])
    assert cut.to_sklearn().predict(frame[["size"]]).tolist() == [0, 0, 1, 1]


def test_other_tests_are_refused_by_the_name_of_the_option():
    penguins = load_penguins()
    levels = DecisionTreeClassifier(max_depth=2).fit(penguins, penguins.labels())
    assert not hasattr(levels, "tree_")
    with pytest.raises(AttributeError, match=r"column 'island' is tested by its levels \(categorical\)"):
        levels.to_sklearn()
    intervals = DecisionTreeClassifier(split_values={0: [1, 2]}).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    with pytest.raises(AttributeError, match=r"intervals \(split_values\)"):
        intervals.to_sklearn()


def test_a_new_fit_makes_a_new_tree():
    tree = DecisionTreeClassifier(max_depth=1)
    with pytest.raises(AttributeError, match="after fit"):
        tree.tree_  # noqa: B018
    assert tree.fit(*IRIS).tree_.node_count == 3
    assert tree.set_params(max_depth=None).fit(*IRIS).tree_.node_count == 17


def test_a_stump_is_a_tree_of_depth_one():
    other = DecisionStump(min_samples_leaf=3).fit(*IRIS).to_sklearn()
    assert type(other) is theirs.DecisionTreeClassifier
    assert (other.max_depth, other.min_samples_leaf, other.get_depth()) == (1, 3, 1)
