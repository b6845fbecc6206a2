"""Trees of several targets, of counts (poisson) and of random thresholds: against the reference and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import tree as theirs

from margrove import DecisionTreeClassifier, DecisionTreeRegressor, certify, save, write_onnx
from margrove.errors import InputError, ParameterError
from margrove.tree.draws import child_key, column_order, mixed, random_cut

rng = np.random.default_rng(7)
X = rng.normal(size=(120, 4)).round(1).astype(np.float32)
HOLES = np.where(rng.random(X.shape) < 0.1, np.nan, X)
CLASSES = np.column_stack([1 * (X[:, 0] > 0) + (X[:, 1] > 1), X[:, 2] > 0.3, rng.integers(0, 4, 120)]).astype(int)
NUMBERS = np.column_stack([X[:, 0] + rng.normal(size=120), rng.poisson(3, 120)])
COUNTS = rng.poisson(np.exp(X[:, 0])).astype(float)
WEIGHT = rng.integers(1, 4, 120).astype(float)


def assert_same(ours, other):
    assert ours.node_count == other.node_count
    for name in ("children_left", "children_right", "n_node_samples"):
        assert getattr(ours, name).tolist() == getattr(other, name).tolist()
    for name in ("impurity", "value", "weighted_n_node_samples"):
        np.testing.assert_allclose(getattr(ours, name), getattr(other, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_several_classes_are_grown_as_by_scikit_learn(criterion, weight):
    how = {"criterion": criterion, "max_depth": 3}
    ours = DecisionTreeClassifier(**how).fit(X, CLASSES, weight)
    other = theirs.DecisionTreeClassifier(**how, random_state=0).fit(X, CLASSES, weight)
    assert_same(ours.tree_, other.tree_)
    assert ours.predict(X).tolist() == other.predict(X).tolist()
    for mine, others in zip(ours.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_allclose(mine, others)
    assert [classes.tolist() for classes in ours.classes_] == [classes.tolist() for classes in other.classes_]
    assert (ours.n_outputs_, ours.n_classes_.tolist()) == (3, [3, 2, 4])
    assert certify(ours, X, CLASSES, weight).holds
    assert not certify(ours, X, CLASSES[::-1], weight).holds


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_several_numbers_are_grown_as_by_scikit_learn(criterion, weight):
    how, Y = {"criterion": criterion, "max_depth": 3}, np.abs(NUMBERS)
    ours = DecisionTreeRegressor(**how).fit(X, Y, weight)
    other = theirs.DecisionTreeRegressor(**how, random_state=0).fit(X, Y, weight)
    left = [
        t.weighted_n_node_samples[t.children_left < 0] @ t.impurity[t.children_left < 0]
        for t in (ours.tree_, other.tree_)
    ]
    assert left[0] == pytest.approx(left[1], rel=0.02)  # medians of even counts differ, and so do splits
    assert ours.predict(X).shape == (120, 2)
    np.testing.assert_allclose(ours.to_sklearn().predict(X), ours.predict(X))
    assert certify(ours, X, Y, weight).holds


@pytest.mark.parametrize("y", [CLASSES, NUMBERS])
@pytest.mark.parametrize("how", [{}, {"splitter": "random"}, {"max_features": 2}, {"max_leaf_nodes": 9}])
def test_engines_grow_the_same_tree_of_several_targets(y, how):
    kind = DecisionTreeClassifier if y is CLASSES else DecisionTreeRegressor
    trees = [kind(**how, min_samples_leaf=5, engine=engine).fit(HOLES, y) for engine in ("native", "reference")]
    np.testing.assert_array_equal(trees[0].nodes_.threshold, trees[1].nodes_.threshold)
    np.testing.assert_allclose(trees[0].nodes_.value, trees[1].nodes_.value)
    assert certify(trees[0], HOLES, y).holds


def test_balanced_class_weights_of_several_targets_are_scikit_learns():
    ours = DecisionTreeClassifier(class_weight="balanced", max_depth=2).fit(X, CLASSES)
    other = theirs.DecisionTreeClassifier(class_weight="balanced", max_depth=2, random_state=0).fit(X, CLASSES)
    assert_same(ours.tree_, other.tree_)


def test_labels_of_several_targets_may_be_text():
    Y = np.array([["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]], dtype=object)
    tree = DecisionTreeClassifier().fit([[0, 0], [0, 1], [1, 0], [1, 1]], Y)
    assert tree.predict([[1, 0]]).tolist() == [["b", "x"]]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"prune": "pessimistic"}, "prune='pessimistic' takes one target"),
        ({"significance": 0.05}, "significance=0.05 takes one target"),
        ({"ccp_alpha": "cv"}, "ccp_alpha='cv' takes one target"),
        ({"thresholds": "gaussian"}, "thresholds is 'gaussian', which takes one target"),
        ({"monotonic_cst": [1, 0, 0, 0]}, "monotone constraint, which takes one target"),
    ],
)
def test_options_for_one_target_are_refused_by_name(how, words):
    with pytest.raises((InputError, ParameterError), match=words):
        DecisionTreeClassifier(**how).fit(X, CLASSES)


def test_files_rules_and_code_of_several_targets_are_refused_by_name(tmp_path):
    tree = DecisionTreeClassifier(max_depth=2).fit(X, CLASSES)
    for what, use in {
        "a model file": lambda: save(tree, tmp_path / "tree.margrove"),
        "ONNX": lambda: write_onnx(tree, tmp_path / "tree.onnx"),
        "rules": tree.rules,
        "to_sql": tree.to_sql,
        "p_values": tree.p_values,
    }.items():
        if what == "ONNX":
            pytest.importorskip("onnx")
        with pytest.raises(InputError, match=f"{what} takes one target, and this .* has 3"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_counts_are_grown_as_by_scikit_learn():
    for weight in (None, WEIGHT):
        ours = DecisionTreeRegressor(criterion="poisson", max_depth=4, min_samples_leaf=3).fit(X, COUNTS, weight)
        other = theirs.DecisionTreeRegressor(criterion="poisson", max_depth=4, min_samples_leaf=3, random_state=0)
        assert_same(ours.tree_, other.fit(X, COUNTS, weight).tree_)
        assert (ours.predict(X) > 0).all()
        assert certify(ours, X, COUNTS, weight).holds


def test_no_branch_of_counts_predicts_zero():
    y = np.array([0.0, 0, 0, 0, 1, 5])
    tree = DecisionTreeRegressor(criterion="poisson").fit(np.arange(6.0)[:, None], y)
    assert (tree.nodes_.value > 0).all()
    assert tree.get_n_leaves() > 1


@pytest.mark.parametrize(("y", "words"), [([-1.0, 2.0], "negative"), ([0.0, 0.0], "not positive")])
def test_counts_must_be_positive(y, words):
    with pytest.raises(InputError, match=words):
        DecisionTreeRegressor(criterion="poisson").fit([[0.0], [1.0]], y)


def test_friedman_mse_is_the_squared_error():
    trees = [DecisionTreeRegressor(criterion=name).fit(X, COUNTS) for name in ("friedman_mse", "squared_error")]
    np.testing.assert_array_equal(trees[0].nodes_.threshold, trees[1].nodes_.threshold)


def test_random_thresholds_follow_from_the_seed():
    trees = [
        DecisionTreeClassifier(splitter="random", random_state=seed).fit(HOLES, CLASSES[:, 0]) for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(trees[0].nodes_.threshold, trees[1].nodes_.threshold)
    assert not np.array_equal(trees[0].nodes_.threshold[:3], trees[2].nodes_.threshold[:3])
    assert all(certify(tree, HOLES, CLASSES[:, 0]).holds for tree in trees)


def test_random_thresholds_are_uniform_between_the_ends():
    ends = np.array([2.0, 10.0])
    cuts = np.array([random_cut(mixed(seed), column, ends) for seed in range(300) for column in range(10)])
    assert ((cuts >= 2) & (cuts < 10)).all()
    assert np.abs(np.histogram(cuts, 8, (2, 10))[0] - 375).max() < 80  # four standard deviations
    assert random_cut(1, 0, np.array([3.0, 3.0])) == 3


def test_orders_of_columns_are_even():
    firsts = [column_order(child_key(mixed(seed), branch), 5)[0] for seed in range(400) for branch in (0, 1)]
    assert np.abs(np.bincount(firsts, minlength=5) - 160).max() < 50


def test_a_random_splitter_excludes_other_thresholds():
    with pytest.raises(ParameterError, match="splitter is 'random' and thresholds is 'histogram'"):
        DecisionTreeClassifier(splitter="random", thresholds="histogram").fit(X, CLASSES[:, 0])


def test_sparse_matrices_are_split_by_the_absolute_error():
    import scipy.sparse as sp

    dense = np.where(np.abs(X) > 0.7, X, 0)
    tree = DecisionTreeRegressor(criterion="absolute_error", max_depth=3)
    expected = tree.fit(dense, COUNTS).predict(dense)
    for made in (sp.csr_matrix, sp.csc_array, sp.coo_matrix):
        assert tree.fit(made(dense), COUNTS).predict(made(dense)).tolist() == expected.tolist()
        assert certify(tree, made(dense), COUNTS).holds
