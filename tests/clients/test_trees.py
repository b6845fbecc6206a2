"""Tools that draw or explain trees: of scikit-learn itself, shap, dtreeviz, treeinterpreter.

Most of them ask for scikit-learn's classes, so they are given `to_sklearn()`; docs/how-to/tools.md has each line.
"""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import export_graphviz, export_text, plot_tree
from sklearn.utils._param_validation import InvalidParameterError

import margrove

plt.switch_backend("Agg")


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def flowers():
    """A classifier with the names of its columns, and its table of cells that float32 represents."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.astype(np.float32)
    return margrove.DecisionTreeClassifier(max_depth=3).fit(X, y), X, y


@pytest.fixture(scope="module")
def progress():
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)
    return margrove.DecisionTreeRegressor(max_depth=3).fit(X, y), X, y


def test_export_text_shows_the_tests_and_the_classes(flowers):
    tree, X, _ = flowers
    lines = export_text(tree.to_sklearn(), feature_names=list(X.columns), decimals=6).splitlines()
    assert lines[0] == f"|--- petal length (cm) <= {tree.nodes_.threshold[0]:.6f}"
    assert lines[1] == "|   |--- class: 0"
    assert len([line for line in lines if "class:" in line]) == tree.get_n_leaves()


def test_export_text_shows_the_numbers_of_a_regressor(progress):
    tree, X, _ = progress
    shown = re.findall(r"value: \[(.*)\]", export_text(tree.to_sklearn(), decimals=3))
    assert sorted(shown) == sorted(f"{value:.3f}" for value in np.unique(tree.predict(X)))


def test_plot_tree_draws_every_node(flowers):
    tree, X, _ = flowers
    drawn = plot_tree(tree.to_sklearn(), feature_names=list(X.columns), class_names=["a", "b", "c"], filled=True)
    words = [each.get_text() for each in drawn if "samples" in each.get_text()]
    assert len(words) == tree.tree_.node_count
    assert words[0].startswith("petal length (cm) <=")
    assert "samples = 150" in words[0]


def test_export_graphviz_takes_our_trees_directly(flowers, progress):
    tree, X, _ = flowers
    direct = export_graphviz(tree, feature_names=list(X.columns), rounded=True)
    assert direct == export_graphviz(tree.to_sklearn(), feature_names=list(X.columns), rounded=True)
    assert direct.count(" -> ") == tree.tree_.node_count - 1
    assert "squared_error" in export_graphviz(progress[0])


@pytest.mark.parametrize("tool", [plot_tree, export_text])
def test_tools_that_ask_for_a_class_refuse_our_own(tool, flowers):
    """If this fails, the tool takes our trees directly, and docs/how-to/tools.md may say so."""
    with pytest.raises(InvalidParameterError, match="must be an instance of"):
        tool(flowers[0])


@pytest.mark.slow
def test_shap_values_of_a_tree_add_up_to_its_prediction(flowers, progress):
    shap = pytest.importorskip("shap")
    tree, X, _ = flowers
    explainer = shap.TreeExplainer(tree.to_sklearn())
    values = explainer.shap_values(X)  # (n, d, classes)
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, tree.predict_proba(X), atol=1e-9)
    assert (values[:, :2] == 0).all()  # this tree tests no sepals
    tree, X, y = progress
    explainer = shap.TreeExplainer(tree.to_sklearn())
    assert explainer.expected_value == pytest.approx(y.mean())
    np.testing.assert_allclose(explainer.shap_values(X).sum(axis=1) + y.mean(), tree.predict(X))
    with pytest.raises(Exception, match="not yet supported"):
        shap.TreeExplainer(tree)


@pytest.mark.slow
def test_shap_values_against_other_rows_add_up(progress):
    shap = pytest.importorskip("shap")
    tree, X, _ = progress
    explained = shap.Explainer(tree.to_sklearn(), X[:50])(X[:20])
    np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, tree.predict(X[:20]))
    np.testing.assert_allclose(explained.base_values, tree.predict(X[:50]).mean())


@pytest.mark.slow
def test_shap_explains_each_tree_of_a_boosted_model(progress):
    shap = pytest.importorskip("shap")
    _, X, y = progress
    boosted = margrove.AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, y)
    for tree in boosted.estimators_:
        explainer = shap.TreeExplainer(tree.to_sklearn())
        np.testing.assert_allclose(
            explainer.shap_values(X[:9]).sum(axis=1) + explainer.expected_value, tree.predict(X[:9])
        )
    with pytest.raises(Exception, match="not yet supported"):  # nor is scikit-learn's AdaBoost
        shap.TreeExplainer(boosted)


@pytest.mark.slow
def test_shap_explains_each_stump_of_a_boosted_model(flowers):
    shap = pytest.importorskip("shap")
    X, y = flowers[1].to_numpy()[50:], flowers[2].to_numpy()[50:]
    boosted = margrove.AdaBoostClassifier(n_estimators=4).fit(X, y)
    theirs = margrove.to_sklearn(boosted)
    for stump, ours in zip(theirs.estimators_, boosted.estimators_, strict=True):
        explainer = shap.TreeExplainer(stump)
        share = explainer.shap_values(X).sum(axis=1) + explainer.expected_value  # (n, classes)
        np.testing.assert_allclose(share, ours.predict_proba(X), atol=1e-9)
    assert (theirs.predict(X) == boosted.predict(X)).all()
    with pytest.raises(Exception, match="not yet supported"):  # shap has no AdaBoost
        shap.TreeExplainer(theirs)


@pytest.mark.slow
def test_treeinterpreter_divides_a_probability_among_the_columns(flowers):
    interpreter = pytest.importorskip("treeinterpreter.treeinterpreter")
    tree, X, y = flowers
    predicted, bias, contributions = interpreter.predict(tree.to_sklearn(), X)
    np.testing.assert_allclose(predicted, tree.predict_proba(X))
    np.testing.assert_allclose(bias[0], np.bincount(y) / len(y))
    np.testing.assert_allclose(bias + contributions.sum(axis=1), predicted, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # dtreeviz takes them off the rows
def test_dtreeviz_draws_and_explains_a_tree(flowers, progress, capsys):
    dtreeviz = pytest.importorskip("dtreeviz")
    tree, X, y = flowers
    shown = dtreeviz.model(
        tree.to_sklearn(), X, y, target_name="species", feature_names=list(X.columns), class_names=["a", "b", "c"]
    )
    path = shown.explain_prediction_path(X.to_numpy()[60])
    assert "petal length (cm)" in path
    assert "sepal" not in path
    shown.leaf_sizes()
    heights = [bar.get_height() for bar in plt.gca().patches]
    assert sorted(heights) == sorted(np.bincount(tree.apply(X))[np.unique(tree.apply(X))].tolist())
    assert shown.view().dot.count("->") >= tree.tree_.node_count - 1  # drawn by Graphviz's program dot

    tree, X, y = progress
    names = [f"x{column}" for column in range(X.shape[1])]
    shown = dtreeviz.model(tree.to_sklearn(), X, y, target_name="progress", feature_names=names)
    assert f"x{tree.nodes_.feature[0]}" in shown.explain_prediction_path(X[0])
    with pytest.raises(ValueError, match="Tree model must be in"):
        dtreeviz.model(tree, X, y, target_name="progress", feature_names=names)
