"""`plot_boundary`: what is drawn, what is said, what is refused."""

from __future__ import annotations

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.collections import PathCollection
from matplotlib.contour import ContourSet
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import margrove
from margrove import (
    BasicLinearClassifier,
    KernelPerceptron,
    LeastSquaresClassifier,
    Perceptron,
    TableEncoder,
    as_table,
    load_penguins,
)
from margrove.errors import ConvergenceWarning, InputError, ParameterError
from margrove.plots import plot_boundary

RANDOM = np.random.default_rng(0)
X = np.vstack([RANDOM.normal([0, 0], 1, (30, 2)), RANDOM.normal([6, 5], 1, (30, 2))])
Y = np.repeat(["no", "yes"], 30)
OVERLAP = np.vstack([RANDOM.normal([0, 0], 1, (30, 2)), RANDOM.normal([1, 1], 1, (30, 2))])


def labels(ax: plt.Axes) -> list[str]:
    return list(ax.get_legend_handles_labels()[1])


def points_of(ax: plt.Axes, label: str) -> np.ndarray:
    found = [c for c in ax.collections if isinstance(c, PathCollection) and c.get_label() == label]
    return np.asarray(found[0].get_offsets())


def lines(ax: plt.Axes) -> list[ContourSet]:
    return [c for c in ax.collections if isinstance(c, ContourSet) and not c.filled]


def test_draws_on_the_axes_it_is_given():
    _, ax = plt.subplots()
    assert plot_boundary(BasicLinearClassifier().fit(X, Y), X, Y, ax=ax) is ax


def test_opens_one_figure_and_no_more():
    plot_boundary(BasicLinearClassifier().fit(X, Y), X, Y)
    assert len(plt.get_fignums()) == 1


def test_separated_points_have_an_empty_strip_between_the_margin_lines():
    model = Perceptron(random_state=0).fit(X, Y)
    ax = plot_boundary(model, X, Y)
    margin_lines = lines(ax)[1]
    assert margin_lines.levels[1] == -margin_lines.levels[0]
    assert abs(model.decision_function(X)).min() == pytest.approx(margin_lines.levels[1])
    assert "misclassified" not in labels(ax)
    assert f"margin {model.margins(X, Y).smallest:.3g}" in ax.get_title()


def test_the_nearest_point_of_each_class_is_in_a_square():
    model = BasicLinearClassifier().fit(X, Y)
    marked = points_of(plot_boundary(model, X, Y), "nearest points of each class")
    distance = model.margins(X, Y).geometric
    expected = [X[30 * k + np.argmin(distance[30 * k : 30 * k + 30])] for k in (0, 1)]
    np.testing.assert_allclose(np.sort(marked, axis=0), np.sort(expected, axis=0))


def test_points_that_are_not_separated_have_no_margin_lines():
    ax = plot_boundary(LeastSquaresClassifier().fit(OVERLAP, Y), OVERLAP, Y)
    assert len(lines(ax)) == 1
    assert not any(label.startswith("margin") for label in labels(ax))


def test_the_misclassified_are_crossed_out():
    model = LeastSquaresClassifier().fit(OVERLAP, Y)
    ax = plot_boundary(model, OVERLAP, Y)
    np.testing.assert_allclose(points_of(ax, "misclassified"), OVERLAP[model.predict(OVERLAP) != Y])


def test_a_support_vector_machine_has_its_margin_at_one():
    ax = plot_boundary(SVC(kernel="linear").fit(OVERLAP, Y), OVERLAP, Y)
    np.testing.assert_allclose(lines(ax)[1].levels, [-1, 1])


def test_our_support_vector_machine_rings_its_support_vectors_by_kind():
    model = margrove.SVC(kernel="linear").fit(OVERLAP, Y)
    ax = plot_boundary(model, OVERLAP, Y)
    np.testing.assert_allclose(lines(ax)[1].levels, [-1, 1])
    for word, label in (("marginal", "marginal, 0 < α < C"), ("hard", "hard, α = C")):
        np.testing.assert_array_equal(points_of(ax, label), OVERLAP[model.kkt_ == word])
    counts = [int((model.kkt_ == word).sum()) for word in ("marginal", "hard")]
    assert ax.get_title().splitlines()[2] == f"{counts[0]} marginal and {counts[1]} hard points"
    np.testing.assert_array_equal(points_of(ax, "misclassified"), OVERLAP[model.predict(OVERLAP) != Y])


def test_a_hard_margin_has_marginal_points_on_its_lines_and_no_square():
    model = margrove.SVC(kernel="linear", C=float("inf")).fit(X, Y)
    ax = plot_boundary(model, X, Y)
    np.testing.assert_allclose(abs(model.decision_function(points_of(ax, "marginal, 0 < α < C"))), 1, atol=2e-3)
    assert "and no hard points" in ax.get_title()
    assert "nearest points of each class" not in labels(ax)


@pytest.mark.parametrize("other", [X[:40], X + 1e-3, X[::-1]], ids=["fewer", "moved", "reversed"])
def test_points_it_was_not_fitted_on_have_no_kinds(other):
    y = {40: Y[:40]}.get(len(other), Y if other[0, 0] < 3 else Y[::-1])
    ax = plot_boundary(margrove.SVC(kernel="linear").fit(X, Y), other, y)
    assert not any(label.startswith(("marginal", "hard")) for label in labels(ax))
    np.testing.assert_allclose(lines(ax)[1].levels, [-1, 1])


def test_kinds_of_several_machines_are_the_hardest():
    points = np.vstack([X, X[:30] + np.array([8.0, -6.0])])
    y = np.repeat([3, 7, 9], 30)
    model = margrove.SVC().fit(points, y)
    ax = plot_boundary(model, points, y)
    hard = (model.kkt_ == "hard").any(axis=1)
    marginal = (model.kkt_ == "marginal").any(axis=1) & ~hard
    np.testing.assert_array_equal(points_of(ax, "marginal, 0 < α < C"), points[marginal])
    assert f"{marginal.sum()} marginal and" in ax.get_title()
    assert labels(ax)[:4] == ["3", "7", "9", "boundary"]


def test_kinds_pass_through_a_pipeline_of_a_table_and_sparse_rows():
    penguins = load_penguins()
    chosen = ["bill_length_mm", "flipper_length_mm"]
    model = make_pipeline(TableEncoder(), margrove.SVC()).fit(penguins.select(chosen), penguins.labels())
    assert "hard points" in plot_boundary(model, penguins, penguins.labels(), features=chosen).get_title()
    rows = sp.csr_matrix(X)
    assert "marginal and" in plot_boundary(margrove.SVC().fit(rows, Y), rows, Y).get_title()


def test_a_row_of_weight_0_has_no_kind_and_no_ring():
    weight = np.ones(60)
    weight[0] = 0
    model = margrove.SVC(C=1e-3).fit(OVERLAP, Y, sample_weight=weight)
    assert len(points_of(plot_boundary(model, OVERLAP, Y), "hard, α = C")) == (model.kkt_ == "hard").sum() < 60


def test_one_class_has_one_region_and_points_without_labels():
    model = margrove.OneClassSVM(nu=0.2, gamma=0.5).fit(OVERLAP)
    ax = plot_boundary(model, OVERLAP)
    assert labels(ax)[:3] == ["inside", "outside", "boundary, f = 0"]
    np.testing.assert_array_equal(points_of(ax, "outside"), OVERLAP[model.kkt_ == "hard"])
    assert ax.get_title().splitlines()[1] == f"{(model.kkt_ == 'hard').sum()} of 60 outside"
    assert len([c for c in ax.collections if isinstance(c, ContourSet) and c.filled]) == 1
    far = plot_boundary(model, OVERLAP + 100.0)
    assert far.get_title().splitlines() == ["OneClassSVM", "60 of 60 outside"]


def test_models_that_are_no_classifiers_and_missing_labels_are_refused():
    with pytest.raises(InputError, match="SVR is not a classifier"):
        plot_boundary(margrove.SVR().fit(X, X[:, 0]), X, X[:, 0])
    with pytest.raises(InputError, match="y is None; the labels"):
        plot_boundary(margrove.SVC().fit(X, Y), X)


def test_margin_lines_can_be_placed_and_left_out():
    model = BasicLinearClassifier().fit(X, Y)
    np.testing.assert_allclose(lines(plot_boundary(model, X, Y, margins=2.0))[1].levels, [-2, 2])
    assert len(lines(plot_boundary(model, X, Y, margins=False))) == 1


def test_regions_can_be_left_out():
    model = BasicLinearClassifier().fit(X, Y)

    def filled(ax: plt.Axes) -> list[ContourSet]:
        return [c for c in ax.collections if isinstance(c, ContourSet) and c.filled]

    assert len(filled(plot_boundary(model, X, Y))) == 2
    assert filled(plot_boundary(model, X, Y, regions=False)) == []


def test_classes_differ_in_colour_and_in_marker():
    ax = plot_boundary(BasicLinearClassifier().fit(X, Y), X, Y)
    no, yes = (c for c in ax.collections if c.get_label() in ("no", "yes"))
    assert not np.array_equal(no.get_facecolor(), yes.get_facecolor())
    assert not np.array_equal(no.get_paths()[0].vertices, yes.get_paths()[0].vertices)


def test_a_kernel_model_has_a_curved_boundary():
    xor, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
    ax = plot_boundary(KernelPerceptron(gamma=1.0, random_state=0).fit(xor, y), xor, y)
    assert "no errors" in ax.get_title()
    assert len(lines(ax)) == 2


@pytest.mark.parametrize("decision_function_shape", ["ovr", "ovo"])
def test_three_classes_have_regions_and_no_margin(decision_function_shape):
    points = np.vstack([X, X[:30] + np.array([8.0, -6.0])])
    y = np.repeat([3, 7, 9], 30)
    for model in (BasicLinearClassifier(), SVC(decision_function_shape=decision_function_shape)):
        ax = plot_boundary(model.fit(points, y), points, y)
        assert labels(ax)[:4] == ["3", "7", "9", "boundary"]
        assert "margin" not in ax.get_title()


def test_many_classes_leave_room_for_the_picture():
    y = np.arange(60) % 30
    ax = plot_boundary(DecisionTreeClassifier(random_state=0).fit(X, y), X, y, resolution=20)
    ax.figure.canvas.draw()  # a layout that finds no room for the axes warns, and warnings are errors
    assert ax.get_legend()._ncols > 1
    assert ax.get_window_extent().width > 150


def test_crowds_are_drawn_fainter_and_without_edges():
    crowd = RANDOM.normal(size=(2500, 2))
    y = RANDOM.integers(0, 2, 2500)
    model = margrove.SVC(C=0.01, kernel="linear").fit(crowd, y)
    few, many = (
        {c.get_label(): c for c in plot_boundary(model, crowd[:n], y[:n], resolution=20).collections}
        for n in (40, 2500)
    )
    assert few["misclassified"].get_alpha() == 1.0
    assert many["misclassified"].get_alpha() < 0.3
    assert many["hard, α = C"].get_alpha() < 0.2
    assert (few["0"].get_linewidth()[0], many["0"].get_linewidth()[0]) == (0.5, 0.0)


def test_a_classifier_without_decisions_has_regions_only():
    ax = plot_boundary(DecisionTreeClassifier(random_state=0).fit(X, Y), X, Y)
    assert labels(ax) == ["no", "yes", "boundary"]


def test_the_votes_of_a_voted_perceptron_are_no_distances():
    ax = plot_boundary(Perceptron(variant="voted", random_state=0).fit(X, Y), X, Y)
    assert "margin" not in ax.get_title()


def test_axes_have_one_scale_only_where_a_ruler_would_find_the_margin():
    assert plot_boundary(BasicLinearClassifier().fit(X, Y), X, Y).get_aspect() == 1
    wide = X * [100, 1]
    assert plot_boundary(BasicLinearClassifier().fit(wide, Y), wide, Y).get_aspect() == "auto"
    scaled = make_pipeline(StandardScaler(), BasicLinearClassifier()).fit(X, Y)
    assert plot_boundary(scaled, X, Y).get_aspect() == "auto"


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_frame_names_the_axes(library):
    frame = library({"length": X[:, 0], "width": X[:, 1]})
    ax = plot_boundary(BasicLinearClassifier().fit(frame, Y), frame, Y)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")


def test_a_frame_without_names_is_an_array():
    frame = pd.DataFrame(X)
    ax = plot_boundary(BasicLinearClassifier().fit(frame, Y), frame, Y)
    assert ax.get_xlabel() == "x0"


def test_sparse_points_are_drawn():
    rows = sp.csr_matrix(X)
    ax = plot_boundary(BasicLinearClassifier().fit(rows, Y), rows, Y)
    dense = plot_boundary(BasicLinearClassifier().fit(X, Y), X, Y)
    assert ax.get_title() == dense.get_title()
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == sum(
        len(dots.get_offsets()) for dots in dense.collections
    )


def test_two_columns_of_a_table_through_a_pipeline_with_missing_cells():
    penguins = load_penguins()
    chosen = ["bill_length_mm", "flipper_length_mm"]
    model = make_pipeline(TableEncoder(), LeastSquaresClassifier())
    model.fit(penguins.select(chosen), penguins.labels())
    ax = plot_boundary(model, penguins, penguins.labels(), features=chosen)
    assert ax.get_xlabel() == "bill_length_mm"
    assert ax.get_title().endswith("2 rows with a missing cell not drawn")
    assert len(points_of(ax, "Adelie")) == 151


def test_a_table_suits_a_model_of_arrays():
    table = as_table(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": 0.0}))
    ax = plot_boundary(BasicLinearClassifier().fit(X, Y), table, Y, features=["a", "b"])
    assert "no errors" in ax.get_title()


def test_boundary_outside_the_picture_is_no_trouble():
    ax = plot_boundary(BasicLinearClassifier().fit(X, Y), X[:30], Y[:30])
    assert ax.get_title().startswith("BasicLinearClassifier")


def test_a_model_with_zero_weights_is_drawn():
    with pytest.warns(ConvergenceWarning):
        model = Perceptron(max_iter=1, random_state=0).fit([[0.0, 0.0], [0.0, 0.0]], [0, 1])
    model.coef_[:] = model.intercept_[:] = 0.0
    ax = plot_boundary(model, np.zeros((2, 2)), [0, 1])
    assert "margin" not in ax.get_title()


@pytest.mark.parametrize(
    ("points", "features", "message"),
    [
        (np.ones((4, 3)), None, "X has 3 columns; a plane has two"),
        (np.ones((4, 1)), None, "X has one column"),
        (np.ones(4), None, "1-dimensional"),
        (np.ones((4, 2)), (0, 0), "twice"),
        (np.ones((4, 2)), (0, 5), "no column 5"),
        (np.ones((4, 2)), "x0", "two column names or positions"),
        (np.full((4, 2), np.nan), None, "nothing to draw"),
        (np.array([["a", "b"]] * 4), None, "text"),
        (pd.DataFrame({"a": [1.0] * 4, "b": ["u"] * 4}), None, "'b' is a column of String"),
        (load_penguins(), ("island", "bill_length_mm"), "'island' is a category column"),
        (load_penguins(), ("islnd", "bill_length_mm"), "no column 'islnd'"),
    ],
)
def test_features_that_form_no_plane_are_refused(points, features, message):
    model = BasicLinearClassifier().fit(X, Y)
    with pytest.raises(InputError, match=message):
        plot_boundary(model, points, ["no"] * 4, features=features)


def test_a_model_of_more_columns_is_refused_with_a_remedy():
    model = BasicLinearClassifier().fit(np.hstack([X, X]), Y)
    with pytest.raises(
        InputError, match=r"fitted on 4 columns; a plane has two\. Choose the two that vary, features=\(a, b\)"
    ):
        plot_boundary(model, np.hstack([X, X]), Y)


def test_a_model_of_other_columns_is_refused_by_name():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 1]})
    model = BasicLinearClassifier().fit(frame[["a", "b"]], Y)
    with pytest.raises(InputError, match=r"fitted on a and b, but a and c were chosen"):
        plot_boundary(model, frame, Y, features=["a", "c"])


def test_a_gram_matrix_has_no_plane():
    model = KernelPerceptron(kernel="precomputed").fit(np.eye(2), [0, 1])
    with pytest.raises(InputError, match="precomputed"):
        plot_boundary(model, np.eye(2), [0, 1])


def test_other_bad_arguments_are_refused():
    model = BasicLinearClassifier().fit(X, Y)
    with pytest.raises(NotFittedError):
        plot_boundary(BasicLinearClassifier(), X, Y)
    with pytest.raises(ParameterError, match="resolution is 1"):
        plot_boundary(model, X, Y, resolution=1)
    with pytest.raises(InputError, match="60 rows and y has 59"):
        plot_boundary(model, X, Y[:-1])
    with pytest.raises(InputError, match="maybe"):
        plot_boundary(model, X, ["maybe"] * 60)


def test_importing_the_pictures_does_not_import_matplotlib():
    code = "import sys, margrove.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
