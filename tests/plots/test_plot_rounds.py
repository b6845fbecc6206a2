"""`plot_rounds` and `plot_vote_margins`: the course of AdaBoost, and how surely it judges."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn import ensemble
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrove import AdaBoostClassifier, AdaBoostRegressor, DecisionTreeClassifier, load_penguins
from margrove.errors import InputError, ParameterError
from margrove.plots import plot_rounds, plot_vote_margins

X, Y = load_breast_cancer(return_X_y=True)
THREE = load_iris(return_X_y=True)


def lines(ax: plt.Axes) -> dict[str, np.ndarray]:
    """What is drawn, by the first line of its name."""
    return {str(line.get_label()).splitlines()[0]: np.asarray(line.get_ydata()) for line in ax.lines}


def test_the_curves_are_those_of_the_rounds():
    model = AdaBoostClassifier(n_estimators=12).fit(X, Y)
    errors, learners, alphas = plot_rounds(model)
    drawn = lines(errors)
    np.testing.assert_array_equal(drawn["exponential loss"], model.rounds_.loss)
    np.testing.assert_array_equal(drawn["Π 2 √(ε (1 − ε))"], model.rounds_.bound)
    np.testing.assert_array_equal(drawn["error, training rows"], model.rounds_.training_error)
    np.testing.assert_array_equal(learners.lines[0].get_ydata(), model.rounds_.error)
    np.testing.assert_array_equal(alphas.lines[0].get_ydata(), model.alphas_)
    assert lines(learners)["chance, 0.5"][0] == 0.5
    assert errors.get_shared_x_axes().joined(errors, alphas)
    assert errors.get_title() == "AdaBoostClassifier of DecisionStump\n12 rounds, converged"


def test_the_product_is_drawn_only_where_it_is_a_bound():
    slow = lines(plot_rounds(AdaBoostClassifier(n_estimators=5, learning_rate=0.5).fit(X, Y))[0])
    assert "Π 2 √(ε (1 − ε))" not in slow
    assert (slow["error, training rows"] <= slow["exponential loss"]).all()
    axes = plot_rounds(AdaBoostClassifier(n_estimators=5).fit(*THREE))
    assert "Π 2 √(ε (1 − ε))" not in lines(axes[0])
    names = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert "exponential loss\n(no bound: 3 classes)" in names
    assert "chance, 0.667" in lines(axes[1])


def test_the_round_that_early_stopping_kept_is_marked_and_what_came_after_it_shaded():
    model = AdaBoostClassifier(n_estimators=60, early_stopping=True, n_iter_no_change=5, random_state=0).fit(X, Y)
    kept, done = model.n_estimators_, model.rounds_.n_rounds
    assert kept < done < 60
    for ax in plot_rounds(model):
        (mark,) = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert mark.get_xdata()[0] == kept
        (shade,) = ax.patches
        assert shade.get_x() == kept
        assert shade.get_x() + shade.get_width() == done + 0.5
    errors = lines(ax.figure.axes[0])
    np.testing.assert_array_equal(errors["error, rows held out"], model.rounds_.validation_error)
    assert f"kept: rounds 1 … {kept}" in errors


def test_an_error_of_zero_leaves_the_picture_below_and_does_not_stretch_it():
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=40).fit(X, Y)
    assert model.rounds_.training_error[-1] == 0
    low, high = plot_rounds(model)[0].get_ylim()
    positive = model.rounds_.training_error[model.rounds_.training_error > 0]
    assert 1e-5 < low < positive.min()
    assert high >= 1


def test_a_single_round_can_be_drawn():
    model = AdaBoostClassifier(n_estimators=1).fit(X, Y)
    assert plot_rounds(model)[0].get_title().endswith("1 round, converged")


def test_draws_on_the_axes_it_is_given_and_counts_them():
    model = make_pipeline(StandardScaler(), AdaBoostClassifier(n_estimators=3)).fit(X, Y)
    _, places = plt.subplots(3, 1)
    assert list(plot_rounds(model, axes=places)) == list(places)
    with pytest.raises(ParameterError, match="axes has 2 axes for 3 panels"):
        plot_rounds(model, axes=places[:2])


def test_models_without_rounds_are_refused():
    with pytest.raises(InputError, match="AdaBoostRegressor of margrove keeps no record of its rounds"):
        plot_rounds(AdaBoostRegressor(n_estimators=2).fit(X, Y.astype(float)))
    with pytest.raises(InputError, match="AdaBoostClassifier of sklearn keeps no record of its rounds"):
        plot_rounds(ensemble.AdaBoostClassifier(n_estimators=2).fit(X, Y))


# ---- margins


def share_at(line: plt.Line2D, margin: float) -> float:
    """The height of a step curve."""
    x, height = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    return float(height[np.searchsorted(x, margin, side="right") - 1])


@pytest.mark.parametrize("data", [(X, Y), THREE], ids=["two classes", "three classes"])
def test_each_curve_is_the_share_of_rows_with_at_most_that_margin(data):
    model = AdaBoostClassifier(n_estimators=30).fit(*data)
    ax = plot_vote_margins(model, *data, rounds=[2, None])
    staged = model.margins(*data, staged=True)
    for line, margins in zip(ax.lines, staged[[1, 29]], strict=False):
        for at in (-0.5, -1e-9, 0.1, 0.333, 0.9):
            assert share_at(line, at) == pytest.approx(np.mean(margins <= at))


def test_the_legend_shows_how_many_rows_are_on_the_wrong_side():
    model = AdaBoostClassifier(n_estimators=30).fit(X, Y)
    wrong = np.mean(model.margins(X, Y) <= 0)
    names = [text.get_text() for text in plot_vote_margins(model, X, Y).get_legend().get_texts()]
    assert [name.split(":")[0] for name in names[:3]] == ["after 5 rounds", "after 20 rounds", "after 30 rounds"]
    assert names[3:] == ["misclassified"]
    assert names[2].endswith(f"{100 * wrong:.1f} % at most 0")


def test_more_rounds_than_there_are_mean_all_and_each_number_is_drawn_once():
    model = AdaBoostClassifier(n_estimators=4).fit(X, Y)
    ax = plot_vote_margins(model, X, Y, rounds=(1, 1, 9, None))
    names = [text.get_text().split(":")[0] for text in ax.get_legend().get_texts()]
    assert names == ["after 1 round", "after 4 rounds", "misclassified"]


def test_tables_pipelines_and_scikit_learns_votes_have_margins():
    penguins = load_penguins()
    plot_vote_margins(AdaBoostClassifier(n_estimators=5).fit(penguins, penguins.labels()), penguins, penguins.labels())
    _, ax = plt.subplots()
    chain = make_pipeline(StandardScaler(), AdaBoostClassifier(n_estimators=5)).fit(X, Y)
    assert plot_vote_margins(chain, X, Y, ax=ax) is ax
    peer = plot_vote_margins(ensemble.AdaBoostClassifier(n_estimators=5).fit(X, Y), X, Y, rounds=[None])
    ours = plot_vote_margins(AdaBoostClassifier(n_estimators=5).fit(X, Y), X, Y, rounds=[None])
    for at in (-0.9, 0.0, 0.5):
        assert share_at(peer.lines[0], at) == pytest.approx(share_at(ours.lines[0], at))


def test_models_without_votes_and_invalid_rounds_are_refused():
    model = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    with pytest.raises(InputError, match="DecisionTreeClassifier has no votes for classes"):
        plot_vote_margins(DecisionTreeClassifier().fit(X, Y), X, Y)
    with pytest.raises(ParameterError, match="rounds is 0"):
        plot_vote_margins(model, X, Y, rounds=(0, None))
    with pytest.raises(ParameterError, match=r"rounds is \(\); it must be a list"):
        plot_vote_margins(model, X, Y, rounds=())
    with pytest.raises(InputError, match="X has 569 rows and y has 5"):
        plot_vote_margins(model, X, Y[:5])
