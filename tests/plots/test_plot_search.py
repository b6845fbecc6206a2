"""`plot_search`: the table of a search as a map or a curve."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.patches import Rectangle
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PEER

from margrove import SVCCV, SVRCV
from margrove.errors import InputError
from margrove.plots import plot_search

X, Y = load_iris(return_X_y=True)
CS, GAMMAS = [0.1, 1.0, 10.0], [0.01, 0.1, 1.0, 10.0]


def searched(**settings: object) -> SVCCV:
    return SVCCV(**{"Cs": CS, "gammas": GAMMAS, "refit": False, **settings}).fit(X, Y)


def map_of(ax: plt.Axes) -> np.ndarray:
    (mesh,) = [each for each in ax.collections if isinstance(each, QuadMesh)]
    return np.ma.filled(mesh.get_array(), np.nan)


def boxes(ax: plt.Axes, label: str) -> list[Rectangle]:
    return [patch for patch in ax.patches if patch.get_label() == label]


def test_draws_on_the_axes_it_is_given():
    _, ax = plt.subplots()
    assert plot_search(searched(), ax) is ax


def test_the_map_is_the_table_and_every_cell_has_its_number():
    search = searched()
    ax = plot_search(search)
    expected = search.cv_results_["mean_test_score"].reshape(len(CS), len(GAMMAS))
    np.testing.assert_array_equal(map_of(ax), expected)
    assert len(ax.texts) == expected.size
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel().startswith("mean score")


def test_the_best_cell_is_marked_and_written():
    search = searched()
    ax = plot_search(search)
    (box,) = boxes(ax, "best")
    best = search.best_params_
    assert box.get_x() < best["gamma"] < box.get_x() + box.get_width()
    assert box.get_y() < best["C"] < box.get_y() + box.get_height()
    assert f"best {search.best_score_:.3g} at C = {best['C']:.3g}, γ = {best['gamma']:.3g}" in ax.get_title()
    (bold,) = [text for text in ax.texts if text.get_weight() == "bold"]
    assert float(bold.get_text()) == pytest.approx(search.best_score_, abs=1e-3)


def test_cells_that_were_not_scored_are_hatched():
    search = searched()
    search.cv_results_["mean_test_score"][[0, 5]] = np.nan
    ax = plot_search(search)
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert len(hatched) == 2
    assert len(boxes(ax, "not scored")) == 1  # once in the legend
    assert len(ax.texts) == 10


def test_a_regression_is_drawn_at_its_best_epsilon():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (60, 1))
    search = SVRCV(Cs=CS, gammas=GAMMAS, epsilons=[0.01, 0.1], refit=False).fit(x, np.sin(x[:, 0]))
    ax = plot_search(search)
    at = search.best_params_["epsilon"]
    expected = search.cv_results_["mean_test_score"].reshape(len(CS), 2, len(GAMMAS))[:, [0.01, 0.1].index(at)]
    np.testing.assert_array_equal(map_of(ax), expected)
    assert f"ε = {at:.3g}" in ax.get_title()


@pytest.mark.parametrize(
    ("settings", "name", "values"),
    [
        ({"kernel": "linear", "gammas": None}, "C", CS),
        ({"gammas": [0.1]}, "C", CS),
        ({"Cs": [1.0]}, "γ", GAMMAS),
        ({"Cs": [1.0], "gammas": [0.1]}, "C", [1.0]),
    ],
    ids=["linear", "one gamma", "one C", "one cell"],
)
def test_one_parameter_is_a_curve_with_a_band(settings, name, values):
    search = searched(**settings)
    ax = plot_search(search)
    curve = ax.lines[0]
    np.testing.assert_array_equal(curve.get_xdata(), values)
    np.testing.assert_array_equal(curve.get_ydata(), search.cv_results_["mean_test_score"])
    assert ax.get_xlabel() == name
    assert ax.get_legend_handles_labels()[1] == ["± 1 standard deviation", "mean over the folds", "best"]
    deviation = search.cv_results_["std_test_score"]
    corners = ax.collections[0].get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx((curve.get_ydata() + deviation).max())


def test_values_that_were_not_scored_are_dotted_on_a_curve():
    search = searched(kernel="linear", gammas=None)
    search.cv_results_["mean_test_score"][-1] = np.nan
    assert "not scored" in plot_search(search).get_legend_handles_labels()[1]


def test_a_pipeline_and_scikit_learns_search_are_welcome():
    plot_search(make_pipeline(StandardScaler(), SVCCV(Cs=CS, gammas=GAMMAS)).fit(X, Y))
    peer = GridSearchCV(PEER(), {"C": CS, "gamma": GAMMAS}).fit(X, Y)
    np.testing.assert_array_equal(map_of(plot_search(peer)), peer.cv_results_["mean_test_score"].reshape(3, 4))


def test_equal_scores_and_many_cells_are_no_trouble():
    search = SVCCV(Cs=[1.0, 2.0], gammas=[0.1, 0.2], refit=False, cv=2).fit([[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 1])
    plot_search(search).figure.draw_without_rendering()
    many = searched(Cs=np.geomspace(0.1, 10, 13), gammas=np.geomspace(0.1, 1, 10), cv=2)
    assert not plot_search(many).texts


def test_searches_without_scores_are_refused():
    search = searched()
    search.cv_results_["mean_test_score"][:] = np.nan
    with pytest.raises(InputError, match="no cell with scores of all folds"):
        plot_search(search)
    other = GridSearchCV(PEER(), {"coef0": [0.0, 1.0]}).fit(X, Y)
    with pytest.raises(InputError, match="did not search C"):
        plot_search(other)


def test_other_models_than_searches_are_refused():
    with pytest.raises(InputError, match=r"SVC is not a search. Draw an SVCCV or SVRCV"):
        plot_search(PEER().fit(*load_iris(return_X_y=True)))
