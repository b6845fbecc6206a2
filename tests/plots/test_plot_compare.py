"""`compare_linear`: the picture of L5."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from margrove import SVC, BasicLinearClassifier, Perceptron, TableEncoder, load_penguins
from margrove.errors import ParameterError
from margrove.plots import LINEAR_CLASSIFIERS, compare_linear

RANDOM = np.random.default_rng(1)
X = np.vstack([RANDOM.normal([0, 0], 1, (30, 2)), RANDOM.normal([6, 5], 1, (30, 2))])
Y = np.repeat([0, 1], 30)


def titles(axes: np.ndarray) -> list[list[str]]:
    return [ax.get_title().splitlines() for ax in axes]


def test_every_classifier_has_axes_with_its_errors_and_margin():
    axes = compare_linear(X, Y)
    assert [title[0] for title in titles(axes)] == list(LINEAR_CLASSIFIERS)
    assert all(title[1].startswith("no errors, margin ") for title in titles(axes))


def test_the_numbers_are_those_of_the_models():
    margin = BasicLinearClassifier().fit(X, Y).margins(X, Y).smallest
    assert titles(compare_linear(X, Y))[0][1] == f"no errors, margin {margin:.3g}"


def test_one_legend_serves_all():
    axes = compare_linear(X, Y)
    assert all(ax.get_legend() is None for ax in axes)
    (legend,) = axes[0].figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    known = ["0", "1", "boundary, f = 0", "margin", "nearest points of each class", "marginal, 0 < α < C"]
    assert words == known


def test_the_legend_stays_within_the_figure():
    axes = compare_linear(RANDOM.normal(0, 1, (60, 2)), Y)
    figure = axes[0].figure
    figure.canvas.draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["hard, α = C", "misclassified"]
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_the_support_vector_machine_has_the_widest_margin():
    found = [float(title[1].rpartition(" ")[2]) for title in titles(compare_linear(X, Y))]
    assert max(found) == found[list(LINEAR_CLASSIFIERS).index("Support vector machine")]


def test_points_that_no_line_separates_are_reported_in_the_title_without_a_warning():
    overlap = RANDOM.normal(0, 1, (60, 2))
    axes = compare_linear(overlap, Y)
    assert titles(axes)[list(LINEAR_CLASSIFIERS).index("Perceptron")][-1] == "stopped early: max_iter"


def test_outliers_on_the_correct_side_move_least_squares_and_not_the_perceptron():
    points = np.vstack([X, np.tile([[60.0, 50.0]], (10, 1))])
    y = np.append(Y, [1] * 10)
    basic, squares, perceptron, _ = titles(compare_linear(points, y))
    assert "misclassified" in basic[1]
    assert "misclassified" in squares[1]
    assert perceptron[1].startswith("no errors")


@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_any_number_of_models(count):
    models = {f"number {i}": BasicLinearClassifier() for i in range(count)}
    axes = compare_linear(X, Y, models=models)
    assert [title[0] for title in titles(axes)] == list(models)
    assert len(axes[0].figure.axes) == count


def test_the_models_given_are_left_unfitted():
    model = Perceptron(random_state=0)
    compare_linear(X, Y, models={"mine": model, "theirs": SVC(kernel="linear")})
    assert not hasattr(model, "coef_")


def test_axes_given_are_used_and_get_no_legend():
    figure, places = plt.subplots(1, 4)
    axes = compare_linear(X, Y, axes=places)
    assert list(axes) == list(places)
    assert figure.legends == []


def test_two_columns_of_a_table():
    penguins = load_penguins().take(slice(4, 270))  # no missing cell there
    chosen = ["bill_length_mm", "bill_depth_mm"]
    models = {"plain": BasicLinearClassifier(), "scaled": make_pipeline(TableEncoder(), BasicLinearClassifier())}
    axes = compare_linear(penguins, penguins.labels(), models=models, features=chosen)
    assert [ax.get_xlabel() for ax in axes] == ["bill_length_mm"] * 2


def test_a_frame_names_the_axes():
    axes = compare_linear(pd.DataFrame(X, columns=["size", "mass"]), Y)
    assert axes[1].get_ylabel() == "mass"


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match="empty"):
        compare_linear(X, Y, models={})
    with pytest.raises(ParameterError, match="axes has 1 axes for 4 models"):
        compare_linear(X, Y, axes=[plt.subplots()[1]])
