"""Cost-complexity pruning: scikit-learn's path, the definition, and the choice of α."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.tree.by_hand import by_hand
from tests.tree.random_trees import LAW, written_trees, written_trees_of_numbers
from tests.tree.sklearn_tree import from_sklearn

import margrove
from margrove.engine import Native
from margrove.errors import ConvergenceWarning
from margrove.tree import held_out
from margrove.tree.held_out import ends_of_rows
from margrove.tree.path import candidate_alphas, choose_alpha, cost_complexity_path
from margrove.tree.prune import cost_complexity, prune


def cost(model):
    return float((model.weight * model.impurity)[model.is_leaf].sum() / model.weight[0])


def noisy(rng):
    X = rng.normal(size=(1500, 6)).round(1)
    return X, np.digitize(X[:, 0] + rng.normal(size=1500), [-1, 1])


def sets():
    yield "iris", DecisionTreeClassifier, {}, load_iris(return_X_y=True)
    yield "wine", DecisionTreeClassifier, {"criterion": "entropy"}, load_wine(return_X_y=True)
    yield "breast cancer", DecisionTreeClassifier, {}, load_breast_cancer(return_X_y=True)
    yield "digits", DecisionTreeClassifier, {"criterion": "entropy"}, load_digits(return_X_y=True)
    yield "noise", DecisionTreeClassifier, {}, noisy(np.random.default_rng(5))
    yield "diabetes", DecisionTreeRegressor, {}, load_diabetes(return_X_y=True)


def distinct(alphas):
    """Alphas that differ by more than rounding, and a point in the midst of each stretch between them."""
    alphas = np.sort(alphas)
    apart = alphas[np.append(True, np.diff(alphas) > 1e-9 * alphas.max())]
    return apart, (apart[:-1] + apart[1:]) / 2


@pytest.mark.parametrize(("kind", "how", "data"), [row[1:] for row in sets()], ids=[row[0] for row in sets()])
def test_path_and_pruned_trees_are_scikit_learns(kind, how, data):
    X, y = data
    grower = kind(random_state=0, **how).fit(X, y)
    model, peer = from_sklearn(grower), grower.cost_complexity_pruning_path(X, y)
    path = cost_complexity_path(model)
    ours, between = distinct(path.ccp_alphas)
    theirs, _ = distinct(peer.ccp_alphas)
    scale = theirs.max()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9 * scale)
    for alpha in between[:: max(len(between) // 6, 1)]:
        theirs_pruned = kind(random_state=0, ccp_alpha=alpha, **how).fit(X, y).tree_
        ours_pruned = prune(model, "cost_complexity", alpha=alpha)
        assert ours_pruned.n_nodes == theirs_pruned.node_count
        np.testing.assert_allclose(ours_pruned.impurity, theirs_pruned.impurity)
        step = np.searchsorted(path.ccp_alphas, alpha, side="right") - 1
        their_step = np.searchsorted(peer.ccp_alphas, alpha, side="right") - 1
        assert path.impurities[step] == pytest.approx(peer.impurities[their_step])


def test_path_worked_by_hand():
    # Gini cost: the root 0.5; node 1 (9, 3): 12/20 · 0.375 = 0.225; node 4 (1, 7): 8/20 · 0.21875 = 0.0875;
    # leaves 2 and 5: (9, 1): 10/20 · 0.18 = 0.09; (1, 3): 4/20 · 0.375 = 0.075; the others are pure.
    model = by_hand((([9, 1], [0, 2]), ([1, 3], [0, 4])))
    path = cost_complexity_path(model)
    np.testing.assert_array_equal(path.nodes, [-1, 4, 1, 0])
    np.testing.assert_allclose(path.ccp_alphas, [0, 0.0875 - 0.075, 0.225 - 0.09, 0.5 - 0.225 - 0.0875])
    np.testing.assert_allclose(path.impurities, [0.165, 0.1775, 0.3125, 0.5])
    np.testing.assert_array_equal(path.n_leaves, [4, 3, 2, 1])


def test_of_equal_alphas_the_node_before_those_below_it():
    # Both splits have the same effective alpha, 0: one cut takes both.
    path = cost_complexity_path(by_hand((([2, 2], [1, 1]), [3, 3])))
    np.testing.assert_array_equal(path.nodes, [-1, 0])
    np.testing.assert_array_equal(path.n_leaves, [3, 1])


def test_equal_alphas_side_by_side_are_steps_of_their_own():
    path = cost_complexity_path(by_hand((([9, 0], [3, 2]), ([0, 9], [2, 3]))))
    np.testing.assert_array_equal(path.nodes, [-1, 1, 4, 0])
    assert path.ccp_alphas[1] == path.ccp_alphas[2]


def weakest_links(model):
    """The textbook: cut where α_t is least, until the root is a leaf."""
    alphas, leaves = [0.0], [model.n_leaves]
    while model.n_nodes > 1:
        share = model.weight * model.impurity / model.weight[0]
        links = []
        for node in np.flatnonzero(~model.is_leaf):
            below = np.arange(node, model.end[node])
            below = below[model.is_leaf[below]]
            links.append((max((share[node] - share[below].sum()) / (len(below) - 1), 0.0), node))
        alpha, node = min(links)
        at = np.zeros(model.n_nodes, dtype=bool)
        at[[other for link, other in links if link <= alpha + 1e-12]] = True
        model = model.cut(at)
        alphas.append(max(alpha, alphas[-1]))
        leaves.append(model.n_leaves)
    return np.array(alphas), np.array(leaves)


@LAW
@given(written_trees() | written_trees_of_numbers())
def test_path_is_the_textbooks(written):
    has_numbers = isinstance(first_leaf(written)[0], float)
    model = by_hand(written, criterion="squared_error" if has_numbers else "gini")
    path = cost_complexity_path(model)
    alphas, leaves = weakest_links(model)
    for alpha in (alphas[:-1] + alphas[1:]) / 2:
        near = np.abs(alphas - alpha).min()
        if near > 1e-9:
            expected = leaves[np.searchsorted(alphas, alpha, side="right") - 1]
            assert path.n_leaves[np.searchsorted(path.ccp_alphas, alpha, side="right") - 1] == expected
    assert path.n_leaves[-1] == 1
    assert path.ccp_alphas[-1] == pytest.approx(alphas[-1])


def first_leaf(written):
    return first_leaf(written[0]) if isinstance(written, tuple) else written


@LAW
@given(written_trees(), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_larger_alpha_never_leaves_a_larger_tree(written, one, other):
    model = by_hand(written)
    low, high = sorted((one, other))
    assert model.cut(cost_complexity(model, high)).n_leaves <= model.cut(cost_complexity(model, low)).n_leaves


@LAW
@given(written_trees())
def test_every_step_has_its_tree_and_the_trees_are_nested(written):
    model = by_hand(written)
    path = cost_complexity_path(model)
    assert (np.diff(path.ccp_alphas) >= 0).all()
    assert (np.diff(path.n_leaves) < 0).all()
    before = np.zeros(model.n_nodes, dtype=bool)
    for step in range(len(path.nodes)):
        mask = path.cut_at_step(step)
        tree = model.cut(mask)
        assert tree.n_leaves == path.n_leaves[step]
        assert cost(tree) == pytest.approx(path.impurities[step], abs=1e-12)
        assert (mask >= before).all()
        before = mask


@LAW
@given(written_trees(), st.floats(1e-6, 0.5))
def test_the_tree_at_alpha_has_the_least_penalised_cost_on_the_path(written, alpha):
    model = by_hand(written)
    path = cost_complexity_path(model)
    tree = model.cut(path.cut_at(alpha))
    assert cost(tree) + alpha * tree.n_leaves <= (path.impurities + alpha * path.n_leaves).min() + 1e-12


def test_a_leaf_alone_is_the_whole_path():
    path = cost_complexity_path(by_hand([3, 4]))
    np.testing.assert_array_equal(path.ccp_alphas, [0.0])
    np.testing.assert_array_equal(path.n_leaves, [1])
    assert not path.cut_at(1.0).any()


def test_candidates_lie_between_their_neighbours():
    np.testing.assert_allclose(candidate_alphas([0.0, 0.01, 0.04, 0.04, 0.09]), [0.0, 0.02, 0.06, 0.09])
    np.testing.assert_array_equal(candidate_alphas([0.0]), [0.0])


def test_each_candidate_gives_its_own_tree_of_the_path():
    model = by_hand((([9, 1], [0, 2]), ([1, 3], [0, 4])))
    path = cost_complexity_path(model)
    sizes = [model.cut(path.cut_at(alpha)).n_leaves for alpha in candidate_alphas(path.ccp_alphas)]
    assert sizes == path.n_leaves.tolist()


def test_choice_is_the_best_mean_and_of_equals_the_smaller_tree():
    assert choose_alpha([0.0, 0.1, 0.2], [[0.8, 0.6], [0.6, 0.8], [0.5, 0.7]]) == 0.1
    assert choose_alpha([0.2, 0.0, 0.1], [[0.7], [0.7], [0.1]]) == 0.2


@LAW
@given(written_trees(), st.data())
def test_a_row_ends_at_its_outermost_cut_ancestor(written, data):
    model = by_hand(written)
    cut = np.array(data.draw(st.lists(st.booleans(), min_size=model.n_nodes, max_size=model.n_nodes))) & ~model.is_leaf
    for node, end in enumerate(ends_of_rows(model, cut)):
        outermost, above = node, node
        while above >= 0:
            outermost = above if cut[above] else outermost
            above = int(model.parent[above])
        assert end == outermost


class _Clock:
    """Stands still, but for what is added."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize(("folds_in_time", "words"), [(0, "fewer folds"), (2, "fewer folds"), (5, None)])
def test_the_time_limit_is_that_of_the_whole_fit(monkeypatch, rng, folds_in_time, words):
    """Each tree takes one second of five: the first is grown from all rows, the others from folds."""
    clock, given = _Clock(), []

    class OneSecond(Native):
        def solve(self, problem, effort):
            given.append(effort.time_limit)
            clock.now += 1.0
            return super().solve(problem, held_out.Effort())

    monkeypatch.setattr(held_out, "time", clock)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    tree = margrove.DecisionTreeClassifier(ccp_alpha="cv", time_limit=1.5 + folds_in_time, engine=OneSecond())
    if words is None:
        assert tree.fit(X, y).status_ == "converged"
    else:
        with pytest.warns(ConvergenceWarning, match=words):
            tree.fit(X, y)
        assert tree.status_ == "time_limit"
    n_started = min(1 + folds_in_time + 1, 6)
    assert given == [1.5 + folds_in_time - k for k in range(n_started)]
    assert folds_in_time > 0 or tree.ccp_alpha_ == 0
