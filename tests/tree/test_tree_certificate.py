"""A certificate of a tree holds for what the rules grow, and fails for anything else."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from margrove import DecisionTreeClassifier as TreeClassifier
from margrove import DecisionTreeRegressor, certify
from margrove.engine import solve
from margrove.learner import Learner, register
from margrove.tree.certificate import certify_tree, certify_tree_problem
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells
from margrove.tree.reference import grow

seeds = st.integers(0, 2**32 - 1)
CRITERIA = ("entropy", "gini", "error", "squared_error", "gaussian_entropy", "absolute_error")


def broken(problem, tree, grown=None, **options):
    """The names of the claims that do not hold."""
    claims = certify_tree_problem(problem, tree, tree if grown is None else grown, **options)
    assert all(claim.holds is None or isinstance(claim.holds, bool) for claim in claims)
    return [claim.name for claim in claims if claim.holds is False]


@pytest.fixture
def blobs(problem_of, rng):
    """Two numbers, a category and a few missing cells; three classes."""
    X = rng.normal(size=(90, 2))
    level = rng.choice(list("uvw"), 90)
    target = np.where(X[:, 0] + (level == "u") > 0.3, "a", np.where(X[:, 1] > 0, "b", "c"))
    columns = {f"x{j}": column.tolist() for j, column in enumerate(X.T)} | {"level": level.tolist()}
    for row in (3, 10, 50):
        columns["x0"][row] = None
    return problem_of(columns, target, max_depth=4, min_samples_leaf=2)


def changed(tree, name, node, value):
    """The tree with one number of one node replaced."""
    values = getattr(tree, name).copy()
    values[node] = value
    return replace(tree, **{name: values})


# ---------------------------------------------------------------------------------------------------- sound trees


@settings(max_examples=150, deadline=None)
@given(
    seed=seeds,
    criterion=st.sampled_from(CRITERIA),
    score=st.sampled_from(("gain", "gain_ratio", "skew_adjusted")),
    thresholds=st.sampled_from(("exact", "histogram", "gaussian", "logistic")),
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
def test_trees_of_the_reference_are_certified(ugly_problem, seed, criterion, score, thresholds, options):
    if criterion not in ("entropy", "gini", "error") and thresholds in ("gaussian", "logistic"):
        thresholds = "exact"
    problem = ugly_problem(seed, criterion, split_score=score, thresholds=thresholds, n_bins=4, **options)
    assert broken(problem, grow(problem)) == []


@pytest.mark.parametrize("is_regression", [True, False])
def test_monotone_trees_are_certified(problem_of, rng, is_regression):
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)
    columns = {"up": X[:, 0].tolist(), "down": X[:, 1].tolist()}
    problem = problem_of(columns, y if is_regression else y > 0, tests={"up": 1, "down": -1})
    assert broken(problem, grow(problem)) == []
    free = problem_of(columns, y if is_regression else y > 0)
    assert "splits that violate the rules" in broken(problem, replace(grow(free), columns=problem.cells.columns))


@pytest.mark.parametrize("criterion", ["squared_error", "gaussian_entropy"])
def test_a_centred_target_is_certified_and_its_values_cannot_be_changed(rng, criterion):
    """The mean of all rows is rounding, and nobody's digits of it are right."""
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    y = (y - y.mean()) / y.std()
    model = DecisionTreeRegressor(criterion=criterion, max_depth=3).fit(X, y)
    assert certify(model, X, y).holds is True
    for node in range(model.nodes_.n_nodes):
        model.nodes_ = model.grown_ = changed(model.nodes_, "value", node, model.nodes_.value[node] + 1e-6)
        assert certify(model, X, y).holds is False
        model.nodes_ = model.grown_ = changed(model.nodes_, "value", node, model.nodes_.value[node] - 1e-6)


def test_a_monotone_order_that_depends_on_rounding_leaves_the_mean_gain_open(problem_of):
    """Targets that are equal in nine digits: whether they are in order is not known, nor which columns compete."""
    columns = {"a": [None, None, 1.0], "b": [1.0, 3.0, 2.0], "c": list("vvu")}
    options = {"criterion": "gaussian_entropy", "split_score": "gain_ratio"}
    target = np.array([-1.9, 0.9, 0.7]) + 1e9
    problem = problem_of(columns, target, tests={"a": -1, "b": -1, "c": "multiway"}, **options)
    assert broken(problem, grow(problem)) == []


def test_sparse_numbers_are_certified(problem_of, rng):
    X = rng.integers(0, 3, (60, 3)) * (rng.random((60, 3)) < 0.5)
    problem = problem_of({f"x{j}": column.tolist() for j, column in enumerate(X.T * 1.0)}, rng.choice(["a", "b"], 60))
    problem = replace(problem, cells=Cells(problem.cells.columns, 60, sparse=sp.csc_matrix(X * 1.0)))
    assert broken(problem, grow(problem)) == []


# ---------------------------------------------------------------------------------------------------- forgeries


def test_a_threshold_moved_across_a_row_is_found(blobs):
    tree = grow(blobs)
    for node in np.flatnonzero(np.isfinite(tree.threshold)):
        assert "rows in each node" in broken(blobs, changed(tree, "threshold", node, tree.threshold[node] + 0.5))


def test_a_threshold_moved_between_its_neighbours_is_found(problem_of):
    problem = problem_of({"x": [1.0, 2.0, 5.0, 6.0]}, list("aabb"))
    tree = grow(problem)
    assert tree.threshold[0] == 3.5
    assert broken(problem, changed(tree, "threshold", 0, 3.6)) == ["splits that violate the rules"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("thresholds", ["exact", "histogram"])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_threshold_moved_by_a_little_is_found(rng, dtype, thresholds, engine):
    X, y = rng.normal(10, 1, size=(60, 2)).astype(dtype), rng.integers(0, 2, 60)
    model = TreeClassifier(max_depth=3, thresholds=thresholds, n_bins=8, engine=engine).fit(X, y)
    whole = model.nodes_
    assert certify(model, X, y).holds is True
    for node in np.flatnonzero(~whole.is_leaf):
        model.nodes_ = model.grown_ = changed(whole, "threshold", node, whole.threshold[node] * (1 + 1e-13))
        assert certify(model, X, y).holds is False


def test_of_branches_of_equal_counts_unknown_cells_go_to_the_first(problem_of):
    """With weights the sums may differ by rounding: then either branch is accepted."""
    columns, target = {"x": [1.0, 2.0, 5.0, 6.0]}, list("aabb")
    for name in ("default_branch", "missing_branch"):
        problem = problem_of(columns, target)
        tree = grow(problem)
        assert getattr(tree, name)[0] == 0
        assert broken(problem, changed(tree, name, 0, 1)) == [
            "splits that send unknown cells elsewhere than to the heaviest branch"
        ]
        weighed = replace(problem, weight=np.ones(4))
        assert broken(weighed, changed(tree, name, 0, 1)) == []


def test_swapped_branches_are_found(blobs):
    tree = grow(blobs)
    swapped = changed(tree, "child", slice(0, 2), tree.child[1::-1])
    assert broken(blobs, swapped) == ["the rows are those it was fitted on"]


def test_missing_cells_sent_elsewhere_are_found(problem_of):
    problem = problem_of({"x": [1.0, 2.0, 3.0, 4.0, None]}, list("aabba"))
    tree = grow(problem)
    assert "rows in each node" in broken(problem, changed(tree, "missing_branch", 0, 1 - tree.missing_branch[0]))


def test_cells_unknown_in_training_go_to_the_heaviest_branch(problem_of):
    problem = problem_of({"x": [1.0, 2.0, 3.0]}, list("aab"))
    for name in ("missing_branch", "default_branch"):
        forged = changed(grow(problem), name, 0, 1)
        assert broken(problem, forged) == ["splits that send unknown cells elsewhere than to the heaviest branch"]


def test_a_level_sent_elsewhere_is_found(problem_of):
    problem = problem_of({"a": list("uuvvww")}, list("mmnnmn"), tests={"a": "subset"})
    tree = grow(problem)
    assert "rows in each node" in broken(problem, changed(tree, "level_branch", 0, 1 - tree.level_branch[0]))


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("n_rows", "rows in each node"),
        ("weight", "weight and value of each node"),
        ("value", "weight and value of each node"),
        ("impurity", "impurity of each node"),
        ("gain", "gain of each split"),
        ("n_tests", "number of candidate tests"),
        ("n_candidates", "number of candidate tests"),
    ],
)
def test_a_changed_number_of_any_node_is_found(blobs, name, claim):
    tree = grow(blobs)
    nodes = (
        range(1, tree.n_nodes) if name in ("n_rows", "weight", "value", "impurity") else np.flatnonzero(~tree.is_leaf)
    )
    for node in nodes:
        number = getattr(tree, name)[node]
        assert claim in broken(blobs, changed(tree, name, node, number * 1.01 + (1 if name == "n_rows" else 0.001)))


@pytest.mark.parametrize("name", [part.name for part in fields(TreeModel) if part.name != "columns"])
def test_no_entry_of_any_array_can_be_changed(problem_of, name):
    """Not even where no training row would notice: a level that does not occur, a leaf's blanks."""
    columns = {"a": list("uuvvvvwwww"), "x": [1.0, 2, 1, 2, 3, 4, 1, 2, 3, 4]}
    weight = 1 + 0.01 * np.arange(10) ** 2  # so that no two branches weigh the same
    problem = problem_of(columns, list("mmmmnnnnnm"), weight, tests={"a": "subset"})
    tree = grow(problem)
    assert (tree.level_branch == -1).any()
    values = getattr(tree, name)
    for index in np.ndindex(values.shape):
        old = values[index]
        forged = changed(tree, name, index, 0.5 if old != old else old + 1)  # NaN is what differs from itself
        assert broken(problem, forged) != [], index


def test_a_worse_column_is_found(problem_of, rng):
    """A tree that is sound but for its root, which looks at the second best column."""
    X = rng.normal(size=(80, 2))
    columns = {"good": X[:, 0].tolist(), "bad": X[:, 1].tolist()}
    target = (X[:, 0] + 0.3 * rng.normal(size=80) > 0).astype(int)
    problem = problem_of(columns, target, max_depth=1)
    without = problem_of({"good": [0.0] * 80, "bad": columns["bad"]}, target, max_depth=1)
    forged = grow(without)
    assert forged.feature[0] == 1
    forged = changed(forged, "n_candidates", 0, grow(problem).n_candidates[0])
    assert broken(problem, forged) == ["a better column"]


def test_a_worse_threshold_is_found(problem_of):
    """All numbers of the tree are true, but the test is not the best of its column."""
    x, target = [1.0, 2.0, 3.0, 4.0], list("aabb")
    problem = problem_of({"x": x}, target, max_depth=1)
    tree = grow(problem)
    forged = replace(
        tree,
        threshold=np.array([1.5, np.nan, np.nan]),
        missing_branch=np.array([1, -1, -1], dtype=np.int32),
        default_branch=np.array([1, -1, -1], dtype=np.int32),
        n_rows=np.array([4, 1, 3]),
        weight=np.array([4.0, 1.0, 3.0]),
        value=np.array([[2.0, 2.0], [1.0, 0.0], [1.0, 2.0]]),
        impurity=np.array([0.5, 0.0, 4 / 9]),
        gain=np.array([0.5 - 0.75 * 4 / 9, np.nan, np.nan]),
    )
    assert broken(problem, forged) == ["a better test of the same column", "a better column"]


def test_the_gain_ratio_below_the_mean_gain_is_found(problem_of):
    columns = {"row": [f"r{i}" for i in range(8)], "sign": list("aaaaabbb")}
    options = {"criterion": "entropy", "max_depth": 1}
    problem = problem_of(columns, list("ggggssss"), split_score="gain_ratio", **options)
    assert broken(problem, grow(problem)) == []
    alone = grow(problem_of({"row": ["r"] * 8, "sign": columns["sign"]}, list("ggggssss"), **options))
    alone = replace(alone, columns=problem.cells.columns)
    assert broken(problem, changed(alone, "n_candidates", 0, 2.0)) == ["a better column"]


def test_a_leaf_that_should_have_been_split_is_found(blobs):
    tree = grow(blobs)
    for node in np.flatnonzero(~tree.is_leaf):
        cut = tree.cut(np.arange(tree.n_nodes) == node)
        assert broken(blobs, cut) == ["leaves that should be split"]


def test_a_leaf_of_zero_gain_should_have_been_split_too(problem_of):
    problem = problem_of({"x": [0.0, 0, 1, 1], "y": [0.0, 1, 0, 1]}, list("nyyn"))
    assert broken(problem, grow(problem).cut(np.arange(7) == 0)) == ["leaves that should be split"]


@pytest.mark.parametrize(
    "options",
    [{"max_depth": 2}, {"min_samples_split": 40}, {"min_samples_leaf": 20}, {"min_gain": 0.2}, {"majority": 0.5}],
)
def test_a_split_that_a_rule_forbids_is_found(blobs, options):
    asked = replace(blobs, growth=replace(blobs.growth, **options))
    assert "splits that violate the rules" in broken(asked, grow(blobs))
    assert broken(asked, grow(asked)) == []


def test_a_limited_number_of_leaves_goes_to_the_largest_gains(problem_of, rng):
    X, y = rng.normal(size=(80, 3)), rng.choice(["a", "b"], 80)
    columns = {f"x{j}": column.tolist() for j, column in enumerate(X.T)}
    problem = problem_of(columns, y, max_leaf_nodes=5)
    assert broken(problem, grow(problem)) == []
    deep = grow(problem_of(columns, y))
    # Five leaves along the first branches only: each split the best of its node, but not the next in order.
    chain, at = np.zeros(deep.n_nodes, dtype=bool), 0
    while deep.depth[at] < 3:
        at = int(deep.children(at)[0]) if not deep.is_leaf[deep.children(at)[0]] else int(deep.children(at)[1])
        chain[at] = True
    lopsided = deep.cut(~chain & (np.arange(deep.n_nodes) > 0))
    assert lopsided.n_leaves == 5
    assert broken(problem, lopsided) == ["leaves that should be split"]


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_of_nodes_that_gain_the_same_any_may_be_split_first(problem_of, engine):
    """Three nodes of exclusive or, none of which gains a thing. The one on the right is the oldest and is split to the
    end; for one on the left there is room, for its children no more."""
    u, v = np.tile([0.0, 0, 1, 1], 3), np.tile([0.0, 1, 0, 1], 3)
    side, block = np.repeat([0.0, 0, 1], 4), np.repeat([0.0, 1, 0], 4)
    columns = {"side": side.tolist(), "block": block.tolist(), "u": u.tolist(), "v": v.tolist()}
    target = 100 * side + 4 * block + (u != v)
    problem = problem_of(columns, target, criterion="squared_error", max_leaf_nodes=7)
    tree = solve(problem, engine).model
    assert tree.n_leaves == 7
    assert broken(problem, tree) == []
    # A split of the right side taken back was due before the one on the left.
    inner = np.flatnonzero(~tree.is_leaf & (tree.depth == 2) & (tree.value[:, 0] > 50))
    assert broken(problem, tree.cut(np.isin(np.arange(tree.n_nodes), inner[:1]))) == ["leaves that should be split"]


def test_arrays_that_do_not_form_a_tree_are_found(blobs):
    tree = grow(blobs)
    for name, node, value in (("feature", 0, 99), ("child", 0, 2), ("feature", 1, -1), ("child_start", 1, 0)):
        if getattr(tree, name)[node] == value:
            continue
        assert broken(blobs, changed(tree, name, node, value)) == ["the rows are those it was fitted on"]


def test_other_rows_fail_the_claim_on_rows(blobs):
    tree = grow(blobs)
    fewer = replace(blobs, cells=blobs.cells.take(slice(0, 50)), target=blobs.target[:50])
    (claim,) = certify_tree_problem(fewer, tree, tree)
    assert claim.holds is False
    assert claim.limits is None  # 50 ≤ 90 would look true
    assert "fitted on 90 rows, given 50" in claim.words


def test_a_branch_that_no_row_takes_is_found(problem_of):
    problem = problem_of({"x": [1.0, 2.0, 3.0, 4.0]}, list("aabb"))
    assert "splits that violate the rules" in broken(problem, changed(grow(problem), "threshold", 0, 9.0))


# ---------------------------------------------------------------------------------------------------- pruned trees


AS_PRUNED = "pruning the grown tree gives this tree"


def test_pruning_the_grown_tree_gives_the_pruned_tree(blobs):
    grown = grow(blobs)
    pruned = grown.cut(grown.depth == 2)
    assert pruned.n_nodes < grown.n_nodes
    options = {"grown": grown, "pruned": lambda: grown.cut(grown.depth == 2)}
    assert broken(blobs, pruned, **options) == []
    assert broken(blobs, changed(pruned, "threshold", 0, 0.0), **options) == [AS_PRUNED]
    assert broken(blobs, changed(pruned, "value", 1, 0.5), **options) == [AS_PRUNED]
    assert broken(blobs, grown.cut(grown.depth == 1), **options) == [AS_PRUNED]
    assert broken(blobs, pruned, grown) == [AS_PRUNED]  # there is no rule


RULES = (
    *({"prune": rule} for rule in (None, "chi2", "binomial_test", "pessimistic", "mdl", "reduced_error")),
    *({"ccp_alpha": 0.01}, {"ccp_alpha": "cv"}, {"prune": "cost_complexity"}, {"significance": 0.2}),
)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_a_tree_cut_further_than_its_rule_allows_fails(rng, rule, engine):
    X = rng.normal(size=(120, 3))
    y = np.where(rng.random(120) < 0.1, rng.integers(0, 3, 120), (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5))
    model = TreeClassifier(engine=engine, random_state=0, **rule).fit(X, y)
    assert certify(model, X, y).holds is True
    whole = model.nodes_
    for cut in (whole.depth == 0, whole.depth == 1, np.arange(whole.n_nodes) == np.flatnonzero(~whole.is_leaf)[-1]):
        model.nodes_ = whole.cut(cut)
        assert certify(model, X, y).holds is False
    if model.grown_.n_nodes > whole.n_nodes:
        model.nodes_ = model.grown_
        assert certify(model, X, y).holds is False


def test_arrays_that_do_not_form_a_tree_fail_at_once(rng):
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    model = TreeClassifier().fit(X, y)
    whole = model.nodes_
    assert whole.depth.max() > 1  # known to the tree from now on
    for name in ("child", "child_start", "feature"):
        for forged in (-getattr(whole, name), getattr(whole, name)[::-1], getattr(whole, name)[:-1]):
            model.nodes_ = model.grown_ = replace(whole, **{name: forged})
            assert certify(model, X, y).holds is False
    whole.child[:] = whole.child[::-1].copy()
    model.nodes_ = model.grown_ = whole
    assert certify(model, X, y).holds is False


def test_without_the_grown_tree_leaves_are_not_checked(blobs):
    pruned = grow(blobs).cut(grow(blobs).depth == 1)
    claims = {claim.name: claim for claim in certify_tree_problem(blobs, pruned)}
    assert claims["leaves that should be split"].holds is None
    assert all(claim.holds is not False for claim in claims.values())


@pytest.mark.parametrize("drawn", [{"max_features": 1}, {"thresholds": "random"}])
def test_what_is_drawn_at_random_is_drawn_again(blobs, drawn):
    asked = replace(blobs, growth=replace(blobs.growth, **drawn, seed=3))
    tree, other = grow(asked), grow(replace(asked, growth=replace(asked.growth, seed=4)))
    assert all(claim.holds is not False for claim in certify_tree_problem(asked, tree, tree))
    assert not all(claim.holds is not False for claim in certify_tree_problem(asked, other, other))
    # Of a tree that was grown elsewhere nothing is known of the draws.
    adopted = replace(
        other, n_tests=np.where(other.is_leaf, 0.0, np.nan), n_candidates=np.where(other.is_leaf, 0, np.nan)
    )
    claims = {claim.name: claim for claim in certify_tree_problem(asked, adopted, adopted)}
    assert claims["a better column"].holds is None
    assert "drawn at random" in claims["a better column"].words
    assert all(claim.holds is not False for claim in claims.values())


# ---------------------------------------------------------------------------------------------------- samples, seams


def test_above_the_limit_a_sample_with_the_root_is_searched_and_counted(blobs):
    tree = grow(blobs)
    claims = {claim.name: claim for claim in certify_tree_problem(blobs, tree, tree, visit_limit=400)}
    n_searched = int(claims["a better column"].words.split(" of ")[0])
    assert 1 <= n_searched < np.count_nonzero(~tree.is_leaf)
    assert f"of {np.count_nonzero(~tree.is_leaf)} splits searched again" in claims["a better column"].words
    none = {claim.name: claim for claim in certify_tree_problem(blobs, tree, tree, visit_limit=0)}
    assert none["a better column"].words.startswith("1 of ")
    # The forged root is found though nothing else is searched.
    stump = replace(blobs, growth=replace(blobs.growth, max_depth=1))
    other = replace(blobs.cells.columns[0], name="x0")
    cells = Cells((other, *blobs.cells.columns[1:]), 90, (np.zeros(90), *blobs.cells.values[1:]))
    assert "a better column" in broken(stump, grow(replace(stump, cells=cells)), visit_limit=0)


class DecisionTreeClassifier(BaseEstimator):
    """What `certify` asks of a fitted tree."""

    correct_significance = True

    def __init__(self, problem=None):
        self.problem = problem

    def fit(self, X, y):
        self.nodes_ = self.grown_ = grow(self.problem)
        self.status_ = "converged"
        return self

    def _problem_of(self, X, y, sample_weight):
        return replace(self.problem, target=y, weight=sample_weight), None

    def _pruned(self, held_out):
        return self.grown_

    def _settled_criterion(self):
        return self.problem.growth.criterion


def test_certify_finds_the_certificate_of_a_tree(blobs):
    register(Learner(DecisionTreeClassifier, certify=certify_tree))
    model = DecisionTreeClassifier(blobs).fit(None, None)
    certificate = certify(model, None, blobs.target)
    assert certificate.holds is True
    assert certificate.source == "recomputed"
    assert certificate["leaves that should be split"] == 0
    assert "DecisionTreeClassifier, converged: the certificate holds on 90 rows" in str(certificate)
    assert certify(model, None, blobs.target[::-1].copy()).holds is False
