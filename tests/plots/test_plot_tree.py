"""`plot_tree` and `plot_regions`: what is drawn is what the tree does."""

from __future__ import annotations

from itertools import combinations, pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.tree.trees_at_hand import Node, from_sklearn, random_tree, tree_of

import margrove
from margrove.data import as_table
from margrove.errors import InputError, ParameterError
from margrove.plots import plot_regions, plot_tree
from margrove.plots.regions import held_cells, rectangles
from margrove.plots.style import colour_of
from margrove.plots.tree_boxes import tidy
from margrove.tree.problem import Cells, TreeColumn
from margrove.tree.rules import p_words

IRIS = load_iris()
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(IRIS.data, columns=NAMES)
LABELS = IRIS.target_names[IRIS.target]


class FittedTree(BaseEstimator):
    """As an estimator is: the arrays, the labels, and predict."""

    def __init__(self, tree=None, classes=None):
        self.tree, self.classes = tree, classes

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    @property
    def nodes_(self):
        return self.tree

    def __getattr__(self, name):
        if name == "classes_" and self.__dict__.get("classes") is not None:
            return self.classes
        raise AttributeError(name)

    def predict(self, X):
        values = np.asarray(X, np.float64)
        leaf = self.tree.apply(Cells(self.tree.columns, len(values), tuple(values.T)))
        value = self.tree.value[leaf]
        return value[:, 0] if self.classes is None else self.classes[value.argmax(axis=1)]


def iris(depth=3, columns=slice(None)):
    fitted = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(IRIS.data[:, columns], LABELS)
    return FittedTree(from_sklearn(fitted, NAMES[columns]), fitted.classes_)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def boxes(ax):
    """The outlines of the boxes, in the order of the drawing."""
    return [patch for patch in ax.patches if type(patch).__name__ == "FancyBboxPatch" and patch.get_zorder() == 5]


def bars(ax):
    return [patch for patch in ax.patches if type(patch).__name__ == "Rectangle" and patch.get_height() == 7.0]


def test_every_node_has_its_test_its_rows_and_its_classes_in_proportion():
    model = iris()
    ax = plot_tree(model)
    tree = model.nodes_
    assert len(boxes(ax)) == tree.n_nodes
    assert texts(ax)[:3] == list(model.classes_)  # the legend
    assert texts(ax).count("petal width") == np.count_nonzero(tree.feature == 3)
    for node in np.flatnonzero(tree.is_leaf):
        assert f"n = {tree.n_rows[node]}" in texts(ax)
    assert {"≤ 0.8", "> 0.8", "≤ 1.75", "> 1.75"} <= set(texts(ax))
    drawn = [bar.get_width() for bar in bars(ax)]
    shares = tree.value / tree.value.sum(axis=1, keepdims=True)
    root = np.array(drawn[:3])
    np.testing.assert_allclose(root / root.sum(), shares[0])
    assert len(drawn) == np.count_nonzero(shares)
    assert ax.get_title() == f"FittedTree: {tree.n_leaves} leaves, depth 3"


def test_boxes_and_labels_do_not_overlap():
    for model in (iris(None), FittedTree(random_tree(3, n_nodes=40), np.array(["a", "b", "c"]))):
        ax = plot_tree(model)
        ax.figure.canvas.draw()
        places = [patch.get_window_extent() for patch in boxes(ax)]
        places += [text.get_window_extent() for text in ax.texts if text.get_bbox_patch() is not None]
        for one, other in combinations(places, 2):
            assert not one.padded(-1).overlaps(other.padded(-1))
        labels = [text.get_window_extent() for text in ax.texts if text.get_bbox_patch() is not None]
        for line in ax.lines:  # none runs up again, and none across through the words
            assert (np.diff(line.get_ydata()) >= 0).all()
            (left, turn), (right, _) = ax.transData.transform(line.get_xydata()[1:3])
            left, right = sorted((left, right))
            assert not [box for box in labels if box.y0 < turn < box.y1 and box.x0 < right and left < box.x1]
        page = ax.figure.bbox
        inside = [text.get_window_extent() for text in ax.texts] + places
        assert all(
            page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1 for box in inside
        )


def test_the_text_of_a_box_stays_inside():
    ax = plot_tree(iris(4), p_values=np.full(iris(4).nodes_.n_nodes, 1.2345e-67))
    ax.figure.canvas.draw()
    frames = [patch.get_window_extent() for patch in boxes(ax)]
    for text in ax.texts[3:]:
        if text.get_bbox_patch() is None:
            words = text.get_window_extent()
            assert any(
                frame.x0 < words.x0 and words.x1 < frame.x1 and frame.y0 < words.y0 and words.y1 < frame.y1
                for frame in frames
            ), text


def test_a_cut_depth_shows_how_many_nodes_are_below():
    model = iris(None)
    ax = plot_tree(model, max_depth=1)
    assert len(boxes(ax)) == 3
    assert f"… {model.nodes_.n_nodes - 3} more nodes" in texts(ax)
    assert ax.get_title().endswith("drawn to depth 1")
    dashed = [box.get_linestyle() == "solid" for box in boxes(ax)]
    assert dashed == [True, True, False]
    assert len(boxes(plot_tree(model, max_depth=None))) == model.nodes_.n_nodes
    assert len(boxes(plot_tree(model, max_depth=0))) == 1


def test_a_share_of_100_percent_is_shown_for_pure_leaves_only():
    root = Node([1000, 1000], [Node([999, 1]), Node([0, 1000])], feature=0, threshold=0.5, missing=1, default=0)
    drawn = texts(plot_tree(tree_of(root, [TreeColumn("x")]), classes=["a", "b"]))
    assert drawn.count("> 99 %") == drawn.count("100 %") == 1


def test_p_values_are_in_the_boxes_that_have_one():
    p_values = np.array([0.5, np.nan, 1e-9, *[np.nan] * (iris().nodes_.n_nodes - 3)])
    found = [text for text in texts(plot_tree(iris(), p_values=p_values)) if text.startswith("p =")]
    assert sorted(found) == ["p = 0.5", "p = 1e-09"]
    with pytest.raises(InputError, match="p_values has the shape"):
        plot_tree(iris(), p_values=[1.0])


def test_a_fitted_tree_shows_its_own_p_values_unless_disabled():
    tree = margrove.DecisionTreeClassifier(max_depth=2).fit(FRAME, LABELS)
    found = [text for text in texts(plot_tree(tree)) if text.startswith("p ")]
    assert found == [p_words(p) for p in tree.p_values() if np.isfinite(p)]
    for none in (False, None):
        assert not [text for text in texts(plot_tree(tree, p_values=none)) if text.startswith("p ")]
    assert not [text for text in texts(plot_tree(tree.nodes_, classes=tree.classes_)) if text.startswith("p ")]


def test_branch_labels_break_between_levels_and_count_those_left_out():
    levels = ("Adm-clerical", "Craft-repair", "Exec-managerial", "Other-service", "Prof-specialty", "Tech-support", "X")
    column = TreeColumn("work", "subset", levels, has_missing=False)
    halves = [Node([6, 0]), Node([0, 6])]
    root = Node([6, 6], halves, feature=0, levels=[0, 0, 0, 0, 0, 0, 1], missing=1, default=1)
    drawn = texts(plot_tree(tree_of(root, [column]), classes=["a", "b"], legend=False))
    assert drawn[:4] == ["Adm-clerical,", "Craft-repair,", "Exec-managerial,", "… 3 more"]


def test_categories_are_listed_clipped_and_of_many_branches_the_heaviest_are_drawn():
    city = TreeColumn("city", "multiway", tuple(f"place {k}" for k in range(40)), has_missing=False)
    leaves = [Node([k + 1, 0]) for k in range(40)]
    model = tree_of(Node([1, 0], leaves, feature=0, levels=range(40), missing=0, default=39), [city])
    drawn = texts(plot_tree(model, classes=["a", "b"]))
    assert [word for word in drawn if word.startswith("place")] == [f"place {k}" for k in range(29, 40)]
    assert "… 29 more branches" in drawn
    assert f"n = {29 * 30 // 2}" in drawn
    subset = TreeColumn("city", "subset", city.levels)
    halves = [Node([20, 0]), Node([0, 20])]
    model = tree_of(Node([20, 20], halves, feature=0, levels=[0, 1] * 20, missing=0, default=0), [subset])
    label = " ".join(texts(plot_tree(model, classes=["a", "b"])))
    assert "place 0" in label
    assert "place 38" not in label


def test_a_number_has_a_mark_between_the_least_and_the_largest_leaf():
    fitted = DecisionTreeRegressor(max_depth=2).fit(IRIS.data[:, :3], IRIS.data[:, 3])
    model = FittedTree(from_sklearn(fitted, NAMES[:3]))
    ax = plot_tree(model)
    leaves = np.flatnonzero(model.nodes_.is_leaf)
    assert {f"{value:.4g}" for value in model.nodes_.value[leaves, 0]} <= set(texts(ax))
    assert len(bars(ax)) == model.nodes_.n_nodes
    assert len(boxes(plot_tree(tree_of(Node([2.5], n_rows=3), [TreeColumn("x")])))) == 1


def test_odd_names_are_written_as_they_are():
    model = tree_of(
        Node([1, 1], [Node([1, 0]), Node([0, 1])], 0, 0.5, missing=0, default=0), [TreeColumn("$x_1$ & \\frac")]
    )
    ax = plot_tree(model, classes=["$a$", "new\nline"])
    ax.figure.canvas.draw()
    assert "$x_1$ & \\frac" in texts(ax)
    assert r"'new\nline'" in texts(ax)


def test_branches_show_where_missing_cells_go():
    root = Node([3, 2], [Node([3, 0]), Node([0, 2])], feature=0, threshold=1234.5, missing=1, default=0)
    drawn = texts(plot_tree(tree_of(root, [TreeColumn("x")]), classes=["a", "b"]))
    assert {"≤ 1234.5", "> 1234.5", "or missing"} <= set(drawn)


def test_draws_on_the_axes_it_is_given_to_their_size():
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
    assert plot_tree(iris(), ax=left) is left
    left.figure.canvas.draw()
    frame = left.get_window_extent()
    assert all(frame.x0 - 1 <= box.get_window_extent().x0 for box in boxes(left))
    assert all(box.get_window_extent().x1 <= frame.x1 + 1 for box in boxes(left))
    assert not right.patches


def test_too_many_boxes_and_other_models_are_refused_with_a_remedy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    grown = from_sklearn(DecisionTreeClassifier(random_state=0).fit(X, rng.integers(0, 2, 3_000)), list("abc"))
    with pytest.raises(ParameterError, match="more than 600 boxes"):
        plot_tree(grown, classes=[0, 1], max_depth=None)
    with pytest.raises(InputError, match="DecisionTreeClassifier is not one of Margrove's trees"):
        plot_tree(DecisionTreeClassifier().fit(IRIS.data, IRIS.target))
    with pytest.raises(ParameterError, match=r"max_depth is 2\.5"):
        plot_tree(iris(), max_depth=2.5)
    with pytest.raises(ParameterError, match="classes is given"):
        plot_tree(iris(), classes=[1, 2, 3])


def test_a_pipeline_shows_the_tree_at_its_end():
    model = make_pipeline(StandardScaler(), iris())
    assert plot_tree(model).get_title().startswith("FittedTree")


@pytest.mark.parametrize("seed", range(5))
def test_subtrees_are_tidy(seed):
    """Parents stand over the middle of their children; boxes of one depth keep their order and their distance."""
    rng = np.random.default_rng(seed)
    n = 80
    parent = [0, *(int(rng.integers(max(0, i - 12), i)) for i in range(1, n))]
    children = [[c for c in range(1, n) if parent[c] == i] for i in range(n)]
    widths = rng.uniform(1, 9, n)
    x = np.array(tidy(children, widths, 2.0))
    rows = [[0]]
    while rows[-1]:
        rows.append([child for box in rows[-1] for child in children[box]])
    for row in rows:
        for left, right in pairwise(row):
            assert x[right] - widths[right] / 2 - (x[left] + widths[left] / 2) >= 2.0 - 1e-9
    for box, below in enumerate(children):
        if below:
            assert x[box] == pytest.approx((x[below[0]] + x[below[-1]]) / 2)
    assert (x - widths / 2).min() == pytest.approx(0)


def colour_at(ax, x, y):
    """Of the rectangle over a point of the plane."""
    for patch in ax.patches:
        (left, bottom), right, top = (
            patch.get_xy(),
            patch.get_x() + patch.get_width(),
            patch.get_y() + patch.get_height(),
        )
        if patch.get_zorder() == 0 and left < x <= right and bottom < y <= top:
            return patch.get_facecolor()[:3]
    return None


def test_every_place_of_the_plane_has_the_colour_of_its_prediction(rng):
    model = iris(4, slice(2, 4))
    ax = plot_regions(model, FRAME[NAMES[2:]], LABELS)
    spots = np.column_stack([rng.uniform(0.6, 7.2, 200), rng.uniform(0, 2.6, 200)])
    for spot, label in zip(spots, model.predict(spots), strict=True):
        code = list(model.classes_).index(label)
        assert colour_at(ax, *spot) == pytest.approx(plt.matplotlib.colors.to_rgb(colour_of(code)))
    wrong = int((model.predict(FRAME[NAMES[2:]]) != LABELS).sum())
    assert f"{wrong} of 150 misclassified" in ax.get_title()


def test_other_columns_are_held_at_their_median_or_at_the_given_value():
    model = iris(4)
    assert {0, 2, 3} <= set(model.nodes_.feature)
    usual = plot_regions(model, FRAME, LABELS, features=("petal length", "petal width"))
    assert "at sepal length = 5.8" in usual.get_title()
    for length in (5.8, 6.5, 4.9):
        given = plot_regions(
            model, FRAME, LABELS, features=("petal length", "petal width"), at={"sepal length": length}
        )
        for spot in ([4.7, 1.9], [5.5, 1.7], [2.0, 0.5], [4.83, 2.2]):
            label = model.predict(np.array([[length, 3.0, *spot]]))[0]
            code = list(model.classes_).index(label)
            assert colour_at(given, *spot) == pytest.approx(plt.matplotlib.colors.to_rgb(colour_of(code)))
    with pytest.raises(ParameterError, match="at names 'petal length'"):
        plot_regions(model, FRAME, LABELS, features=NAMES[2:], at={"petal length": 1.0})


def test_categories_and_missing_cells_can_be_held():
    columns = [TreeColumn("a"), TreeColumn("b"), TreeColumn("c", "multiway", ("u", "v"))]
    left = Node([1, 0], [Node([1, 0]), Node([0, 1])], feature=0, threshold=0.5, missing=0, default=0)
    root = Node([9, 9], [left, Node([0, 7]), Node([7, 0])], feature=2, levels=[0, 1], missing=2, default=1)
    tree = tree_of(root, columns)
    table = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [0.0, 1.0, 2.0], "c": ["u", "u", None]})

    def leaves(at):
        return {leaf for leaf, _, _ in rectangles(tree, (0, 1), held_cells(tree, as_table(table), (0, 1), at))}

    assert leaves({}) == leaves({"c": "u"}) == {2, 3}
    assert leaves({"c": "v"}) == leaves({"c": "not used"}) == {4}
    assert leaves({"c": None}) == leaves({"c": float("nan")}) == {5}


@pytest.mark.parametrize("seed", range(5))
def test_rectangles_are_the_leaves_of_the_slice(seed, rng):
    """Of every kind of test; a point is in the rectangle of the leaf that it reaches, and in no other."""
    tree = random_tree(seed, n_nodes=100)
    axes = (0, 3)
    held = {1: ["it's"], 2: [2], 4: [True], 5: [0.3]}
    frame = pd.DataFrame({column.name: held.get(j, [0.0]) for j, column in enumerate(tree.columns)})
    at = {tree.columns[j].name: cell for j, (cell,) in held.items()}
    found = rectangles(tree, axes, held_cells(tree, as_table(frame), axes, at))
    x, y = rng.normal(size=(2, 300))
    codes = [np.full(300, tree.columns[j].levels.index(held[j][0]), np.int32) for j in (1, 2, 4)]
    cells = Cells(tree.columns, 300, (x, codes[0], codes[1], y, codes[2], np.full(300, 0.3)))
    for i, leaf in enumerate(tree.apply(cells)):
        over = [node for node, across, up in found if across[0] < x[i] <= across[1] and up[0] <= y[i] < up[1]]
        assert over == [leaf]


def test_values_are_drawn_on_one_scale_with_the_points():
    fitted = DecisionTreeRegressor(max_depth=3).fit(IRIS.data[:, 2:], IRIS.data[:, 0])
    model = FittedTree(from_sklearn(fitted, NAMES[2:]))
    ax = plot_regions(model, FRAME[NAMES[2:]], IRIS.data[:, 0])
    (points,) = ax.collections
    np.testing.assert_array_equal(points.get_array(), IRIS.data[:, 0])
    spot = np.array([[1.5, 0.2]])
    wanted = points.to_rgba(model.predict(spot))[0, :3]
    assert colour_at(ax, *spot[0]) == pytest.approx(wanted)


def test_regions_refuse_input_without_a_plane():
    with pytest.raises(InputError, match="model is a pipeline"):
        plot_regions(make_pipeline(StandardScaler(), iris()), FRAME, LABELS, features=NAMES[:2])
    with pytest.raises(InputError, match="not fitted on a column 'x0'"):
        plot_regions(iris(), IRIS.data, LABELS, features=(0, 1))
    with pytest.raises(InputError, match="X has 4 columns"):
        plot_regions(iris(), FRAME, LABELS)


def test_names_with_dollar_signs_are_no_formulas():
    import pandas as pd

    from margrove import DecisionTreeClassifier as Tree
    from margrove.plots import plot_boundary, plot_regions, plot_tree

    frame = pd.DataFrame({"a $x_{$ b": [0.0, 1.0, 4.0, 5.0] * 3, "$10-$20": [0.0, 1.0, 0.5, 2.0] * 3})
    model = Tree(max_depth=2).fit(frame, ["$1", "$1", "$2 and $3", "$2 and $3"] * 3)
    for draw in (plot_regions, plot_boundary):
        draw(model, frame, ["$1", "$1", "$2 and $3", "$2 and $3"] * 3).figure.canvas.draw()
    ax = plot_tree(model)
    ax.figure.canvas.draw()  # a formula with an open brace raises here
    assert any("a $x_{$ b" in text.get_text().replace("\\$", "$") for text in ax.texts)
