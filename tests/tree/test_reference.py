"""Trees grown by the reference: hand-worked tables, scikit-learn's trees, and what must hold of any tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from margrove.engine import Effort, Reference
from margrove.errors import EngineError
from margrove.tree.problem import Cells
from margrove.tree.reference import grow

seeds = st.integers(0, 2**32 - 1)
CRITERIA = ("entropy", "gini", "error", "squared_error", "gaussian_entropy", "absolute_error")


def leaf_impurity(tree):
    """Σ w imp over the leaves: what greedy growth makes small."""
    return float((tree.weight * tree.impurity)[tree.is_leaf].sum())


def peer_leaf_impurity(peer):
    is_leaf = peer.tree_.children_left < 0
    return float((peer.tree_.weighted_n_node_samples * peer.tree_.impurity)[is_leaf].sum())


def numbers(X):
    return {f"x{j}": column.tolist() for j, column in enumerate(np.asarray(X, dtype=float).T)}


# ---------------------------------------------------------------------------------------------------- worked by hand


def test_xor_is_learned_though_its_root_gains_nothing(problem_of):
    tree = grow(problem_of(numbers([[0, 0], [0, 1], [1, 0], [1, 1]]), list("nyyn")))
    assert tree.feature.tolist() == [0, 1, -1, -1, 1, -1, -1]
    assert tree.gain[[0, 1, 4]].tolist() == [0.0, 0.5, 0.5]
    assert tree.value[tree.is_leaf].tolist() == [[1, 0], [0, 1], [0, 1], [1, 0]]


def test_a_day_out_is_predicted_by_sky_then_ground_or_wind(problem_of, outings):
    columns = {name: cells for name, cells in outings.items() if name != "out"}
    problem = problem_of(columns, outings["out"], criterion="entropy")
    tree = grow(problem)
    names = [None if j < 0 else list(columns)[j] for j in tree.feature]
    assert names == ["sky", "ground", None, None, None, "wind", None, None]
    assert leaf_impurity(tree) == 0
    assert tree.n_rows.tolist() == [14, 5, 3, 2, 4, 5, 3, 2]
    assert (tree.value.argmax(axis=1)[tree.apply(problem.cells)] == problem.target).all()


def test_guests_wait_by_how_full_the_house_is(problem_of, tables_for_two):
    columns = {name: cells for name, cells in tables_for_two.items() if name != "answer"}
    tree = grow(problem_of(columns, tables_for_two["answer"], criterion="entropy"))
    assert tree.columns[tree.feature[0]].name == "guests"
    assert tree.gain[0] == pytest.approx(1 - 0.5 * 0.9182958)  # six before a full house: two wait, four leave
    full = tree.children(0)[0]  # levels: full, none, some
    assert tree.columns[tree.feature[full]].name == "minutes"
    assert tree.threshold[full] == 36.5  # between 28 and 45 minutes
    assert tree.n_nodes == 6
    assert leaf_impurity(tree) == 0


def test_given_intervals_make_one_branch_each(problem_of):
    x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    problem = problem_of({"x": x}, list("abbccdd"), tests={"x": (1.0, 3.0, 5.0)})
    tree = grow(problem)
    assert tree.apply(problem.cells).tolist() == [1, 2, 2, 3, 3, 4, 4]


def test_categories_unseen_in_training_take_the_heaviest_branch(problem_of):
    problem = problem_of({"a": list("xxxyzz")}, list("llllhh"), tests={"a": "multiway"})
    tree = grow(replace(problem, cells=problem.cells.take([0, 1, 2, 4, 5]), target=problem.target[[0, 1, 2, 4, 5]]))
    assert tree.levels(0).tolist() == [0, -1, 1]
    assert tree.default_branch[0] == 0
    unseen = np.array([1, 7, -1], dtype=np.int32)
    assert tree.apply(Cells(problem.cells.columns, 3, (unseen,))).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        (["a"], {"x": [1.0]}),
        (list("aaa"), {"x": [1.0, 2.0, 3.0]}),
        (list("ab"), {"x": [1.0, 1.0]}),
        (list("ab"), {"x": [None, None]}),
        (list("ab"), {"x": ["u", "u"]}),
        ([1.5, 1.5], {"x": [1.0, 2.0]}),
    ],
    ids=["one row", "one class", "constant", "all missing", "one level", "one value"],
)
def test_a_node_without_a_split_is_a_leaf(problem_of, target, columns):
    tree = grow(problem_of(columns, target))
    assert (tree.n_nodes, tree.n_leaves, tree.max_depth) == (1, 1, 0)
    assert tree.n_rows[0] == len(target)


# ---------------------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "options", [{}, {"min_samples_leaf": 7}, {"min_impurity_decrease": 0.01}, {"max_leaf_nodes": 6}]
)
def test_scikit_learns_classification_trees_are_as_pure(problem_of, rng, criterion, n_classes, options):
    X = rng.normal(size=(150, 4))
    X[:, 1] = rng.permutation(150)
    y = ((X[:, 0] > 0) + (X[:, 2] > 0.5) + rng.integers(0, n_classes, 150)) % n_classes
    w = rng.uniform(0.5, 2, 150)
    tree = grow(problem_of(numbers(X), y, w, criterion=criterion, max_depth=4, **options))
    peer = DecisionTreeClassifier(criterion=criterion, max_depth=4, random_state=0, **options).fit(X, y, w)
    assert leaf_impurity(tree) == pytest.approx(peer_leaf_impurity(peer), rel=1e-9)
    assert tree.n_nodes == peer.tree_.node_count


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("options", [{}, {"min_samples_leaf": 7}, {"max_leaf_nodes": 6}, {"min_samples_split": 20}])
def test_scikit_learns_regression_trees_are_as_pure(problem_of, rng, criterion, options):
    X = rng.normal(size=(120, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=120)
    tree = grow(problem_of(numbers(X), y, criterion=criterion, max_depth=4, **options))
    peer = DecisionTreeRegressor(criterion=criterion, max_depth=4, random_state=0, **options).fit(X, y)
    assert leaf_impurity(tree) == pytest.approx(peer_leaf_impurity(peer), rel=1e-9)
    assert tree.n_nodes == peer.tree_.node_count


@pytest.mark.parametrize("signs", [(1, 0, 0), (-1, 0, 0), (1, -1, 0)])
@pytest.mark.parametrize("is_regression", [True, False])
def test_monotone_trees_are_scikit_learns(problem_of, rng, signs, is_regression):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=200)
    tests = {f"x{j}": sign for j, sign in enumerate(signs)}
    if is_regression:
        problem = problem_of(numbers(X), y, tests=tests, max_depth=5)
        peer = DecisionTreeRegressor(max_depth=5, random_state=0, monotonic_cst=signs).fit(X, y)
    else:
        y = (y > 0).astype(int)
        problem = problem_of(numbers(X), y, tests=tests, max_depth=5)
        peer = DecisionTreeClassifier(max_depth=5, random_state=0, monotonic_cst=signs).fit(X, y)
    tree = grow(problem)
    assert leaf_impurity(tree) == pytest.approx(peer_leaf_impurity(peer), rel=1e-9)
    value = tree.value[tree.apply(problem.cells)]
    predicted = value[:, 0] if is_regression else value[:, 1] / value.sum(axis=1)
    assert predicted == pytest.approx(peer.predict(X) if is_regression else peer.predict_proba(X)[:, 1])


# ------------------------------------------------------------------------------------------ what holds of every tree


@pytest.mark.parametrize("sign", [1, -1])
@settings(max_examples=40, deadline=None)
@given(seed=seeds, is_regression=st.booleans())
def test_predictions_are_monotone_in_a_constrained_column(problem_of, seed, is_regression, sign):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(60, 2)).astype(float)
    y = rng.normal(size=60) + X[:, 0] if is_regression else rng.choice(["a", "b"], 60)
    tree = grow(problem_of(numbers(X), y, tests={"x0": sign}))
    grid = np.linspace(-0.25, 5.75, 13)
    for other in range(6):
        value = tree.value[tree.apply(Cells(tree.columns, 13, (grid, np.full(13, float(other)))))]
        predicted = value[:, 0] if is_regression else value[:, 1] / value.sum(axis=1)
        assert (sign * np.diff(predicted) >= -1e-9).all()


@settings(max_examples=200, deadline=None)
@given(
    seed=seeds,
    criterion=st.sampled_from(CRITERIA),
    score=st.sampled_from(("gain", "gain_ratio", "skew_adjusted")),
    thresholds=st.sampled_from(("exact", "histogram")),
    options=st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.integers(0, 4),
            "min_samples_split": st.integers(2, 9),
            "min_samples_leaf": st.integers(1, 4),
            "min_weight_leaf": st.floats(0, 4),
            "max_leaf_nodes": st.integers(2, 9),
            "max_features": st.integers(1, 3),
            "majority": st.floats(0.5, 1),
            "min_gain": st.floats(0, 0.2),
            "complexity": st.floats(0, 0.5),
            "seed": st.integers(0, 99),
        },
    ),
)
def test_every_tree_keeps_its_rules(ugly_problem, seed, criterion, score, thresholds, options):
    problem = ugly_problem(seed, criterion, split_score=score, thresholds=thresholds, n_bins=4, **options)
    tree, growth = grow(problem), problem.growth
    rows = tree.rows_of_nodes(problem.cells)
    weight = np.ones(problem.cells.n_rows) if problem.weight is None else problem.weight
    assert rows[0].tolist() == list(range(problem.cells.n_rows))
    for node in range(tree.n_nodes):
        assert len(rows[node]) == tree.n_rows[node]
        assert weight[rows[node]].sum() == pytest.approx(tree.weight[node])
        children = tree.children(node)
        if len(children) == 0:
            continue
        assert sorted(np.concatenate([rows[child] for child in children])) == rows[node].tolist()
        unit = abs(tree.impurity[node]) + (criterion == "gaussian_entropy")
        assert tree.gain[node] >= growth.min_gain - 1e-9 * unit
        after = tree.weight[children] @ tree.impurity[children] / tree.weight[node]
        assert tree.gain[node] == pytest.approx(tree.impurity[node] - after, abs=1e-9 * unit)
        assert len(rows[node]) >= growth.min_samples_split
        assert tree.n_rows[children].min() >= growth.min_samples_leaf
        assert tree.weight[children].min() >= growth.min_weight_leaf * (1 - 1e-9)
        is_subset = problem.cells.columns[tree.feature[node]].test == "subset"
        assert 1 <= (1 if is_subset else tree.n_tests[node]) <= tree.n_candidates[node]
        assert (tree.n_levels[node] >= 2) == is_subset
        if problem.n_classes:
            assert tree.value[node].max() < growth.majority * tree.weight[node]
    assert growth.max_depth is None or tree.max_depth <= growth.max_depth
    assert growth.max_leaf_nodes is None or tree.n_leaves <= growth.max_leaf_nodes
    assert tree.value[:, : max(1, problem.n_classes)].shape == tree.value.shape
    if problem.n_classes:
        assert tree.value.sum(axis=1) == pytest.approx(tree.weight)
    # Depth first, branches in order: a child that is the first branch follows its parent.
    inner = np.flatnonzero(~tree.is_leaf)
    assert (tree.child[tree.child_start[inner]] == inner + 1).all()
    assert (tree.end[0], tree.parent[0]) == (tree.n_nodes, -1)


@settings(max_examples=60, deadline=None)
@given(seed=seeds, criterion=st.sampled_from(CRITERIA))
def test_weights_are_repeated_rows(ugly_problem, seed, criterion):
    problem = ugly_problem(seed, criterion, max_rows=15, max_depth=3)
    n = problem.cells.n_rows
    times = np.random.default_rng(seed).integers(1, 4, n)
    again = np.repeat(np.arange(n), times)
    weighted = grow(replace(problem, weight=times.astype(float)))
    repeated = grow(replace(problem, cells=problem.cells.take(again), target=problem.target[again], weight=None))
    assert weighted.feature.tolist() == repeated.feature.tolist()
    assert weighted.weight == pytest.approx(repeated.weight)
    assert weighted.gain == pytest.approx(repeated.gain, rel=1e-6, abs=1e-9, nan_ok=True)


def test_sparse_numbers_grow_the_same_tree(problem_of, rng):
    X = rng.integers(0, 3, (60, 4)) * (rng.random((60, 4)) < 0.4)
    problem = problem_of(numbers(X), rng.choice(["a", "b"], 60))
    dense = grow(problem)
    sparse = grow(replace(problem, cells=Cells(problem.cells.columns, 60, sparse=sp.csc_matrix(X.astype(float)))))
    assert sparse.feature.tolist() == dense.feature.tolist()
    assert sparse.gain == pytest.approx(dense.gain, nan_ok=True)


def test_the_largest_gain_is_split_first(problem_of, rng):
    for _ in range(10):
        X, y = rng.normal(size=(60, 3)), rng.choice(["a", "b"], 60)
        full = grow(problem_of(numbers(X), y))
        three_leaves = grow(problem_of(numbers(X), y, max_leaf_nodes=3))
        gained = np.nan_to_num((full.weight * full.gain)[full.children(0)])
        is_split = ~three_leaves.is_leaf[three_leaves.children(0)]
        assert np.flatnonzero(is_split).tolist() == [int(gained.argmax())]


def test_a_split_with_too_many_branches_is_skipped(problem_of):
    problem = problem_of({"a": list("aabbccdd")}, list("mmnnmmnn"), max_leaf_nodes=3)
    assert grow(problem).n_nodes == 1
    assert grow(replace(problem, growth=replace(problem.growth, max_leaf_nodes=4))).n_leaves == 4


def test_a_node_whose_largest_class_has_the_majority_stays_a_leaf(problem_of):
    columns, target = {"x": [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10]}, list("aaaaaaaaab")
    assert grow(problem_of(columns, target, majority=0.9)).n_nodes == 1
    assert grow(problem_of(columns, target, majority=0.91)).n_nodes == 3


def test_seeds_draw_columns_and_repeat_themselves(problem_of, rng):
    X, y = rng.normal(size=(80, 6)), rng.choice(["a", "b"], 80)
    roots = set()
    for seed in range(12):
        problem = problem_of(numbers(X), y, max_features=2, max_depth=2, seed=seed)
        tree = grow(problem)
        assert grow(problem).feature.tolist() == tree.feature.tolist()
        roots.add(int(tree.feature[0]))
    assert len(roots) > 1


def test_drawing_continues_until_a_column_offers_a_test(problem_of):
    """Of five columns four are constant: the fifth is found though one is looked at."""
    columns = {**{f"c{j}": [0.0] * 4 for j in range(4)}, "x": [1.0, 2.0, 3.0, 4.0]}
    for seed in range(5):
        assert grow(problem_of(columns, list("aabb"), max_features=1, seed=seed)).feature[0] == 4


def test_ties_between_columns_go_to_the_first_unless_a_seed_is_given(problem_of):
    columns = {f"x{j}": [1.0, 2.0, 3.0, 4.0] for j in range(6)}
    assert grow(problem_of(columns, list("aabb"))).feature[0] == 0
    assert len({int(grow(problem_of(columns, list("aabb"), seed=seed)).feature[0]) for seed in range(20)}) > 2


def test_the_reference_engine_grows_trees_and_has_no_time_limit(problem_of):
    problem = problem_of({"x": [1.0, 2.0]}, list("ab"))
    assert Reference().solve(problem, Effort()).model.n_leaves == 2
    with pytest.raises(EngineError, match="does not support time_limit"):
        Reference().solve(problem, Effort(time_limit=1.0))
