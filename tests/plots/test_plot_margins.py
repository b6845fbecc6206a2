"""`plot_margins`: the distribution of distances."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn import svm
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from margrove import SVC, SVR, BasicLinearClassifier, KernelPerceptron, Perceptron, TableEncoder, load_penguins
from margrove.errors import InputError
from margrove.plots import plot_margins

RANDOM = np.random.default_rng(2)
X = np.vstack([RANDOM.normal(0, 1, (40, 3)), RANDOM.normal(1.5, 1, (40, 3))])
Y = np.repeat([0, 1], 40)


def bars(ax: plt.Axes) -> list[plt.Rectangle]:
    return [bar for container in ax.containers for bar in container]


def test_draws_on_the_axes_it_is_given():
    _, ax = plt.subplots()
    assert plot_margins(BasicLinearClassifier().fit(X, Y), X, Y, ax=ax) is ax


def test_the_bars_hold_every_point_of_its_class():
    ax = plot_margins(BasicLinearClassifier().fit(X, Y), X, Y)
    assert [sum(bar.get_height() for bar in container) for container in ax.containers] == [40, 40]


def test_no_bar_straddles_the_boundary():
    model = BasicLinearClassifier().fit(X, Y)
    wrong = (model.margins(X, Y).geometric < 0).sum()
    left = [bar for bar in bars(plot_margins(model, X, Y)) if bar.get_x() + bar.get_width() / 2 < 0]
    assert wrong > 0
    assert sum(bar.get_height() for bar in left) == wrong


def test_the_smallest_is_marked():
    model = BasicLinearClassifier().fit(X, Y)
    ax = plot_margins(model, X, Y)
    (mark,) = [line for line in ax.lines if str(line.get_label()).startswith("smallest")]
    assert mark.get_xdata()[0] == model.margins(X, Y).smallest


def test_three_classes_of_a_table_through_a_pipeline():
    penguins = load_penguins()
    model = make_pipeline(TableEncoder(), Perceptron(random_state=0)).fit(penguins, penguins.labels())
    ax = plot_margins(model, penguins, penguins.labels())
    assert ax.get_xlabel().endswith("the smallest over the machines")
    assert sum(bar.get_height() for bar in bars(ax)) == 344


def test_a_kernel_model_has_margins_in_its_feature_space():
    model = KernelPerceptron(random_state=0).fit(X, Y)
    title = plot_margins(model, X, Y).get_title()
    assert f"margin {model.margins(X, Y).smallest:.3g}" in title


def names(ax: plt.Axes) -> list[str]:
    return list(ax.get_legend_handles_labels()[1])


@pytest.mark.parametrize("model", [SVC(kernel="linear"), SVC(C=10.0)], ids=["linear", "rbf"])
def test_a_support_vector_machine_colours_its_points_by_kind(model):
    model.fit(X, Y)
    ax = plot_margins(model, X, Y)
    heights = [sum(bar.get_height() for bar in container) for container in ax.containers]
    assert heights == [(model.kkt_ == word).sum() for word in ("hard", "marginal", "easy")]
    assert names(ax)[:3] == ["hard, α = C", "marginal, 0 < α < C", "easy, α = 0"]
    (edge,) = [line for line in ax.lines if str(line.get_label()).startswith("margin, 1/‖w‖")]
    assert edge.get_xdata()[0] == pytest.approx(model.margin_[0] / 2)


def test_other_points_of_a_support_vector_machine_are_coloured_by_class():
    names_there = names(plot_margins(SVC(kernel="linear").fit(X, Y), X + 0.1, Y))
    assert names_there[:2] == ["0", "1"]
    assert any(name.startswith("margin, 1/‖w‖") for name in names_there)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr", [[1, 1], [1, -1], [-1, 0]]], ids=str)
def test_machines_in_which_a_point_has_no_part_do_not_count(multiclass):
    y = np.arange(80) % 3
    model = SVC(multiclass=multiclass).fit(X, y)
    ax = plot_margins(model, X, y)
    assert sum(bar.get_height() for bar in bars(ax)) == 80
    (mark,) = [line for line in ax.lines if str(line.get_label()).startswith("smallest")]
    assert mark.get_xdata()[0] == np.nanmin(model.margins(X, y).geometric)
    assert not any(name.startswith("margin, 1/‖w‖") for name in names(ax))


def test_scikit_learns_pairs_of_classes_have_margins_too():
    y = np.arange(80) % 3
    ax = plot_margins(svm.SVC().fit(X, y), X, y)
    assert sum(bar.get_height() for bar in bars(ax)) == 80


def test_points_of_a_gram_matrix_have_kinds():
    model = SVC(kernel="precomputed").fit(X @ X.T, Y)
    assert names(plot_margins(model, X @ X.T, Y))[0] == "hard, α = C"


def test_rows_of_weight_0_are_shown_separately():
    model = SVC().fit(X, Y, sample_weight=np.arange(80) > 0)
    assert "ignored, weight 0" in names(plot_margins(model, X, Y))


@pytest.mark.parametrize("bins", [1, 7, "fd"])
def test_bins_as_in_numpy(bins):
    ax = plot_margins(BasicLinearClassifier().fit(X, Y), X, Y, bins=bins)
    assert sum(bar.get_height() for bars in ax.containers for bar in bars) == len(X)


def test_equal_margins_are_one_bar():
    points, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    ax = plot_margins(BasicLinearClassifier().fit(points, y), points, y)
    assert len({bar.get_x() for bars in ax.containers for bar in bars if bar.get_height() > 0}) == 1


def test_models_without_margins_are_refused():
    with pytest.raises(InputError, match="DecisionTreeClassifier has no margins"):
        plot_margins(DecisionTreeClassifier().fit(X, Y), X, Y)
    separated = X * 0.1 + 9 * Y[:, None]
    with pytest.raises(InputError, match="no margins"):
        plot_margins(Perceptron(variant="voted", random_state=0).fit(separated, Y), separated, Y)
    with pytest.raises(InputError, match="SVR has no margins"):
        plot_margins(SVR().fit(X, Y), X, Y)
    model = BasicLinearClassifier().fit(X, Y)
    model.coef_ = model.coef_ * 0
    with pytest.raises(InputError, match="w = 0"):
        plot_margins(model, X, Y)
