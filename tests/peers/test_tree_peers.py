"""Trees against scikit-learn's on real tables, by what is unique: the gain of each split, the impurity that is left."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import tree as peers

from margrove import DecisionTreeClassifier, DecisionTreeRegressor

SETS = ["iris", "sonar", "pima", "segment", "phoneme", "pendigits", "usps", "letter", "spambase", "covtype_sample"]
MOST_ROWS = 1500
DEPTH = 8


def some_rows(X, y):
    """Evenly spread rows, in float32 as scikit-learn takes them."""
    rows = np.linspace(0, X.shape[0] - 1, min(MOST_ROWS, X.shape[0])).astype(int)
    X = X[rows]
    return (X.toarray() if sp.issparse(X) else X).astype(np.float32), y[rows]


def compare(ours, theirs):
    """Walk both trees as long as they part the rows alike: same impurity and gain at each node in common, the best of
    equals being anybody's. Returns whether no tie has led them apart."""
    mine, other = ours.nodes_, theirs.tree_
    weight = other.weighted_n_node_samples
    waiting, is_same = [(0, 0)], True
    while waiting:
        i, k = waiting.pop()
        assert mine.n_rows[i] == other.n_node_samples[k]
        np.testing.assert_allclose(mine.impurity[i], other.impurity[k], rtol=1e-6, atol=1e-9)
        children = other.children_left[k], other.children_right[k]
        assert mine.is_leaf[i] == (children[0] < 0)
        if mine.is_leaf[i]:
            continue
        after = sum(weight[child] * other.impurity[child] for child in children) / weight[k]
        np.testing.assert_allclose(mine.gain[i], other.impurity[k] - after, atol=1e-7 * other.impurity[0])
        if (
            mine.feature[i] == other.feature[k]
            and mine.n_rows[mine.children(i)[0]] == other.n_node_samples[children[0]]
        ):
            waiting += zip(mine.children(i).tolist(), children, strict=True)
        else:
            is_same = False
    return is_same


def impurity_left(model):
    inner = getattr(model, "nodes_", None) or model.tree_
    if hasattr(inner, "children_left"):
        leaf = inner.children_left < 0
        return inner.weighted_n_node_samples[leaf] @ inner.impurity[leaf]
    return inner.weight[inner.is_leaf] @ inner.impurity[inner.is_leaf]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_classes_are_predicted_as_by_scikit_learn(name, criterion, real_arrays):
    X, y = some_rows(*real_arrays(name))
    ours = DecisionTreeClassifier(criterion=criterion, max_depth=DEPTH).fit(X, y)
    theirs = peers.DecisionTreeClassifier(criterion=criterion, max_depth=DEPTH, random_state=0).fit(X, y)
    if compare(ours, theirs):
        np.testing.assert_allclose(impurity_left(ours), impurity_left(theirs), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
        mine, other = (tree.cost_complexity_pruning_path(X, y) for tree in (ours, theirs))
        np.testing.assert_allclose(mine.ccp_alphas[-1], other.ccp_alphas[-1], rtol=1e-6)
        np.testing.assert_allclose(mine.impurities[-1], other.impurities[-1], rtol=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_numbers_are_predicted_as_by_scikit_learn(name, real_arrays):
    """The last column is predicted from the others."""
    X, _ = some_rows(*real_arrays(name))
    X, y = X[:, :-1], X[:, -1].astype(np.float64)
    ours = DecisionTreeRegressor(max_depth=DEPTH).fit(X, y)
    theirs = peers.DecisionTreeRegressor(max_depth=DEPTH, random_state=0).fit(X, y)
    if compare(ours, theirs):
        np.testing.assert_allclose(impurity_left(ours), impurity_left(theirs), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9, atol=1e-9)
