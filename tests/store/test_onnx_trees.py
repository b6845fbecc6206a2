"""Trees of every shape in ONNX: each row ends in the same leaf."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.conftest import TREES, fitted_tree
from tests.store.onnx_parity import assert_same
from tests.tree.random_trees import LAW
from tests.tree.trees_at_hand import Node, random_cells, random_tree, tree_of
from tests.tree.ugly_tables import CATEGORIES, NUMBERS, ugly_table

from margrove import AdaBoostClassifier, DecisionTreeClassifier, DecisionTreeRegressor, write_onnx
from margrove.boost.model import BoostModel, Rounds
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, Growth, TreeColumn
from margrove.tree.reference import grow


def leaves_in_onnx(tree: TreeModel, cells: list[list[Any]]) -> np.ndarray:
    """The leaf of each row as onnxruntime finds it: the prediction of a tree that predicts the numbers of its nodes."""
    import onnxruntime

    numbered = TreeModel(**{**vars_of(tree), "value": np.arange(tree.n_nodes, dtype=float)[:, None]})
    model = DecisionTreeRegressor()
    model.nodes_, model.n_features_in_ = numbered, len(tree.columns)
    model.feature_names_in_ = np.array([column.name for column in tree.columns], dtype=object)
    written = write_onnx(model, io.BytesIO())
    session = onnxruntime.InferenceSession(written.proto.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {}
    for fact, column in zip(written.inputs, zip(*cells, strict=True), strict=True):
        missing = fact.get("missing", np.nan)
        kind = object if fact["kind"] == "text" else np.float64
        given[fact["name"]] = np.array([[missing if cell is None else cell] for cell in column], dtype=kind)
    return session.run(None, given)[0].astype(int)


def vars_of(tree: TreeModel) -> dict[str, Any]:
    return {name: getattr(tree, name) for name in TreeModel.__dataclass_fields__}


def as_written(cells: Cells) -> list[list[Any]]:
    """Codes as levels, None where missing."""
    columns = []
    for j, column in enumerate(cells.columns):
        values = cells.column(j).tolist()
        if column.levels:
            columns.append([None if code < 0 else column.levels[code] for code in values])
        else:
            columns.append([None if np.isnan(value) else value for value in values])
    return [list(row) for row in zip(*columns, strict=True)]


@LAW
@given(seed=st.integers(0, 2**31), n_nodes=st.integers(1, 80), max_fan=st.integers(2, 6))
def test_rows_end_in_the_same_leaf_of_any_tree(seed, n_nodes, max_fan):
    tree = random_tree(seed, n_nodes=n_nodes, max_fan=max_fan)
    cells, rows = random_cells(tree, 60, seed)
    np.testing.assert_array_equal(leaves_in_onnx(tree, rows), tree.apply(cells))


@LAW
@given(
    seed=st.integers(0, 2**31),
    kinds=st.lists(st.sampled_from((*NUMBERS, *CATEGORIES)), min_size=1, max_size=4),
    n=st.integers(2, 40),
)
def test_rows_end_in_the_same_leaf_of_a_tree_that_was_grown(seed, kinds, n):
    rng = np.random.default_rng(seed)
    problem = ugly_table(rng, n, kinds, 3, "one", Growth(), monotone=False)
    tree = grow(problem)
    np.testing.assert_array_equal(leaves_in_onnx(tree, as_written(problem.cells)), tree.apply(problem.cells))


@pytest.mark.parametrize("name", TREES)
def test_every_tree_predicts_the_same_in_onnx(name):
    model, X, _ = fitted_tree(name)
    assert_same(model, X)


def test_a_test_of_a_hundred_branches_keeps_them_apart():
    """More levels than fit into the bits by which runtimes note small sets."""
    rng = np.random.default_rng(0)
    words = np.array([f"word {j:03}" for j in range(100)])
    X = words[rng.integers(0, 100, 800)][:, None].astype(object)
    y = np.array([hash_of(word) for word in X[:, 0]])
    for categorical in ("multiway", "subset", "one_vs_rest"):
        model = DecisionTreeClassifier(categorical=categorical).fit(X, y)
        assert_same(model, X)
        assert_same(AdaBoostClassifier(DecisionTreeClassifier(categorical=categorical, max_depth=2)).fit(X, y), X)


def hash_of(word: str) -> int:
    return (int(word[-3:]) * 7919) % 3


def test_numbers_next_to_a_threshold_fall_on_their_side():
    X = np.array([[0.1], [0.1 + 2e-16], [0.3], [np.nextafter(0.3, 1)]])
    model = DecisionTreeClassifier().fit(X, [0, 1, 0, 1])
    assert_same(model, np.concatenate([X, np.nextafter(X, 1), np.nextafter(X, 0), [[np.inf], [-np.inf], [np.nan]]]))


def test_present_or_missing_is_a_test_too():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = DecisionTreeClassifier().fit(X, ["there", "there", "gone", "gone"])
    assert np.isinf(model.nodes_.threshold[0])
    assert_same(model, np.array([[1e300], [np.inf], [np.nan], [-np.inf]]))


def test_a_tree_of_one_leaf_predicts_it_for_every_row():
    model = DecisionTreeClassifier(max_depth=1, min_samples_leaf=3).fit(np.array([[0.0], [1.0], [2.0]]), [0, 0, 1])
    assert model.nodes_.n_nodes == 1
    assert_same(model, np.array([[5.0], [np.nan]]))


def test_a_branch_that_no_code_takes_is_left_out():
    columns = random_tree(0).columns
    j = next(j for j, column in enumerate(columns) if column.test == "multiway")
    root = Node([1.0, 1.0], feature=j, levels=np.zeros(columns[j].n_codes, dtype=int))
    root.missing, root.default = 0, 0
    root.children = [Node([2.0, 1.0]), Node([1.0, 2.0])]
    tree = tree_of(root, columns)
    cells, rows = random_cells(tree, 20, 0)
    np.testing.assert_array_equal(leaves_in_onnx(tree, rows), tree.apply(cells))


def voting(trees: list[TreeModel], votes: list[float], classes: int) -> AdaBoostClassifier:
    """These trees as if they had been boosted."""
    model = AdaBoostClassifier()
    model.engine_ = "native"
    model.model_ = BoostModel(Grove.of(trees[0].columns, trees), np.array(votes), classes)
    model.rounds_, model.n_estimators_ = Rounds(np.zeros(len(trees)), np.array(votes), np.zeros(len(trees))), len(trees)
    model.classes_, model.n_classes_ = np.arange(classes), classes
    model.n_features_in_ = len(trees[0].columns)
    return model


def test_roots_of_later_trees_with_a_leaf_first_are_no_leaves():
    """Some versions of onnxruntime take a root for a leaf if its leaf and its node have the same number (24679)."""
    a, b, c = (Node(weights) for weights in np.eye(3))
    inner = Node([0.0, 1.0, 1.0], [b, c], feature=0, threshold=2.0, missing=0, default=0)
    root = Node([1.0, 1.0, 1.0], [a, inner], feature=0, threshold=1.0, missing=1, default=1)
    tree = tree_of(root, (TreeColumn("x0"),))
    model = voting([tree] * 4, [0.5, 0.25, 1.0, 0.125], 3)
    assert_same(model, np.array([[0.0], [1.5], [3.0], [np.nan]]))
    nodes = write_onnx(model, io.BytesIO()).proto.graph.node
    (ensemble,) = [node for node in nodes if node.op_type == "TreeEnsemble"]
    given = {attribute.name: attribute.ints for attribute in ensemble.attribute}
    for root in given["tree_roots"]:
        assert given["nodes_truenodeids"][root] != given["nodes_falsenodeids"][root]


def test_votes_that_are_equal_but_for_rounding_are_equal():
    """0.1 + 0.2 for the second class and 0.3 for the first, which then is the answer."""
    first, second = (tree_of(Node(weights), (TreeColumn("x0"),)) for weights in ([1.0, 0.0], [0.0, 1.0]))
    model = voting([second, second, first], [0.1, 0.2, 0.3], 2)
    assert 0.1 + 0.2 > 0.3
    assert assert_same(model, np.zeros((1, 1)))["label"].tolist() == [0]


def test_leaves_of_equal_votes_for_several_classes_stay_apart():
    """What BRANCH_MEMBER gets wrong in onnxruntime: every leaf has the same vote, each for its own class."""
    X = np.array([[word] for word in "abcdefgh"], dtype=object)
    model = AdaBoostClassifier(DecisionTreeClassifier(categorical="multiway")).fit(X, [1, 1, 0, 2, 0, 2, 1, 0])
    assert_same(model, X)
