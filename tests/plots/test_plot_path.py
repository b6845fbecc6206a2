"""`plot_path`: what becomes of the machines as C grows."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from margrove import SVC
from margrove.errors import InputError, ParameterError
from margrove.plots import plot_path
from margrove.status import Status

X, Y = load_iris(return_X_y=True)
CS = [0.01, 0.1, 1.0, 10.0]
TWO = Y > 0


def test_margin_and_support_vectors_are_those_of_the_path():
    path = SVC().path(X, Y, CS)
    margin, support = plot_path(path)
    np.testing.assert_array_equal([line.get_ydata() for line in margin.lines], path.margins.T)
    np.testing.assert_array_equal(support.lines[0].get_ydata(), path.n_support)
    assert [text.get_text() for text in margin.get_legend().get_texts()] == ["0 vs 1", "0 vs 2", "1 vs 2"]
    assert all(ax.get_xscale() == "log" for ax in (margin, support))
    assert margin.get_shared_x_axes().joined(margin, support)


def test_a_linear_kernel_has_a_line_for_each_column_named_as_the_frame_names_them():
    frame = pd.DataFrame(X[TWO], columns=["sl", "sw", "pl", "pw"])
    path = SVC(kernel="linear").path(frame, Y[TWO], CS)
    ax = plot_path(path)[-1]
    assert ax.get_ylabel() == "coefficients"
    assert sorted(text.get_text() for text in ax.texts) == ["pl", "pw", "sl", "sw"]
    lines = {line.get_label(): line for line in ax.lines}
    for j, name in enumerate(frame.columns):
        np.testing.assert_array_equal(lines[name].get_ydata(), [model.coef_[0, j] for model in path.models])
        (label,) = [text for text in ax.texts if text.get_text() == name]
        assert label.get_color() == lines[name].get_color()


def test_of_many_columns_the_largest_are_named_and_no_labels_overlap():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 12))
    path = SVC(kernel="linear").path(wide, wide @ np.arange(12) > 0, CS)
    ax = plot_path(path)[-1]
    reach = np.abs([model.coef_[0] for model in path.models]).max(axis=0)
    assert {text.get_text() for text in ax.texts} == {f"x{j}" for j in np.argsort(-reach)[:6]}
    heights = np.sort([text.xyann[1] for text in ax.texts])
    assert np.diff(heights).min() >= 0.075 - 1e-9


def test_each_machine_has_its_panel_and_a_column_one_colour():
    axes = plot_path(SVC(kernel="linear").path(X, Y, CS), names=list("abcd"))
    assert [ax.get_ylabel().split("\n")[-1] for ax in axes[2:]] == ["0 vs 1", "0 vs 2", "1 vs 2"]
    colours = [{text.get_text(): text.get_color() for text in ax.texts} for ax in axes[2:]]
    assert colours[0] == colours[1] == colours[2]


def test_many_machines_have_no_names_and_three_panels():
    rng = np.random.default_rng(0)
    points, y = rng.normal(size=(50, 3)), np.arange(50) % 5
    axes = plot_path(SVC(kernel="linear").path(points, y, [0.1, 1.0]))
    assert len(axes) == 5
    assert axes[0].get_legend() is None
    assert "coefficients of 3 of 10 machines" in axes[0].get_title()


def test_the_title_shows_that_a_path_ended_early():
    path = replace(SVC().path(X, Y, CS), status=Status.TIME_LIMIT)
    assert "status 'time_limit'" in plot_path(path)[0].get_title()
    with pytest.raises(InputError, match="no model"):
        plot_path(replace(path, models=(), Cs=np.empty(0)))


def test_draws_on_the_axes_it_is_given_and_counts_them():
    path = SVC().path(X, Y, CS)
    _, places = plt.subplots(2, 1)
    assert list(plot_path(path, axes=places)) == list(places)
    with pytest.raises(ParameterError, match="axes has 1 axes for 2 panels"):
        plot_path(path, axes=places[:1])
    with pytest.raises(ParameterError, match="names has 1 entries, but the models have 4"):
        plot_path(SVC(kernel="linear").path(X, Y, CS), names=["a"])


def test_other_objects_than_paths_are_refused():
    with pytest.raises(InputError, match=r"plot_path draws the result of SVC.path, but this is of type SVC. Pass"):
        plot_path(SVC().fit(*load_iris(return_X_y=True)))
