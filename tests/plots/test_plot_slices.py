"""`plot_boundary` of models of many columns: two that vary, the others held; or two principal components."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.collections import PathCollection
from matplotlib.contour import ContourSet
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from margrove import (
    SVC,
    AdaBoostClassifier,
    BasicLinearClassifier,
    DecisionTreeClassifier,
    TableEncoder,
    as_table,
    load_penguins,
)
from margrove.errors import InputError, ParameterError
from margrove.plots import plot_boundary

RANDOM = np.random.default_rng(4)
X = np.vstack([RANDOM.normal(0, 1, (40, 4)), RANDOM.normal([2, 2, 1, 0], 1, (40, 4))])
Y = np.repeat(["no", "yes"], 40)
PENGUINS = load_penguins()
SPECIES = PENGUINS.labels()
TWO = ["bill_length_mm", "flipper_length_mm"]


def boundary(ax: plt.Axes) -> np.ndarray:
    """The points of the line f = 0."""
    line = next(c for c in ax.collections if isinstance(c, ContourSet) and not c.filled)
    return np.vstack([path.vertices for path in line.get_paths()])


def points_of(ax: plt.Axes, label: str) -> np.ndarray:
    found = [c for c in ax.collections if isinstance(c, PathCollection) and c.get_label() == label]
    return np.asarray(found[0].get_offsets())


def test_the_boundary_of_a_slice_is_where_f_is_0_with_the_others_at_their_medians():
    model = SVC(kernel="linear").fit(X, Y)
    places = boundary(plot_boundary(model, X, Y, features=(2, 0)))
    rows = np.tile(np.median(X, axis=0), (len(places), 1))
    rows[:, [2, 0]] = places
    np.testing.assert_allclose(model.decision_function(rows), 0, atol=1e-6)


def test_other_columns_can_be_held_at_given_values():
    model = SVC(kernel="linear").fit(X, Y)
    ax = plot_boundary(model, X, Y, features=(0, 1), at={"x2": 1.5})
    places = boundary(ax)
    rows = np.column_stack([places, np.full(len(places), 1.5), np.full(len(places), np.median(X[:, 3]))])
    np.testing.assert_allclose(model.decision_function(rows), 0, atol=1e-6)
    assert "\nat x2 = 1.5, x3 = " in ax.get_title()


def test_points_are_classified_by_all_of_their_cells_and_keep_their_kinds():
    model = SVC().fit(X, Y)
    ax = plot_boundary(model, X, Y, features=(0, 1))
    np.testing.assert_array_equal(points_of(ax, "marginal, 0 < α < C"), X[model.kkt_ == "marginal"][:, :2])
    np.testing.assert_array_equal(points_of(ax, "misclassified"), X[model.predict(X) != Y][:, :2])


@pytest.mark.parametrize("features", [(0, 1), "pca"])
def test_points_that_the_slice_shows_otherwise_are_counted(features):
    y = np.where(X[:, 3] > 0, "yes", "no")  # a column that the plane hardly shows
    order = np.argsort(y, kind="stable")  # points are drawn class by class
    model = SVC(kernel="linear").fit(X, y)
    ax = plot_boundary(model, X, y, features=features)
    drawn = np.vstack([points_of(ax, "no"), points_of(ax, "yes")])
    if features == "pca":
        directions = np.linalg.lstsq(drawn, X[order] - X.mean(axis=0), rcond=None)[0]
        rows = X.mean(axis=0) + drawn @ directions
    else:
        rows = np.column_stack([drawn, np.tile(np.median(X[:, 2:], axis=0), (80, 1))])
    otherwise = int((model.predict(rows) != model.predict(X[order])).sum())
    assert otherwise > 1
    assert f"{otherwise} are classified differently from this slice" in ax.get_title()


@pytest.mark.parametrize("learner", [SVC(), DecisionTreeClassifier(max_depth=3), AdaBoostClassifier(n_estimators=3)])
def test_a_table_with_categories_and_missing_cells_is_sliced(learner):
    model = make_pipeline(TableEncoder(), learner) if isinstance(learner, SVC) else learner
    ax = plot_boundary(model.fit(PENGUINS, SPECIES), PENGUINS, SPECIES, features=TWO, at={"sex": "male"}, resolution=20)
    title = ax.get_title()
    assert "island = Biscoe" in title
    assert title.endswith("2 rows with a missing cell not drawn")


def test_dates_are_written_as_dates():
    days = np.arange("2024-01-01", "2024-03-21", dtype="datetime64[D]")
    table = as_table(pd.DataFrame({"day": days, "size": X[:, 0], "other": days}))
    tree = DecisionTreeClassifier(max_depth=2).fit(table, Y)
    ax = plot_boundary(tree, table, Y, features=("day", "size"))
    ax.figure.canvas.draw()
    ticks = [label.get_text() for label in ax.get_xticklabels()]
    assert ticks[1:3] == ["2024-01-03", "2024-01-28"]
    assert "at other = 2024-02-09" in ax.get_title()


def test_a_category_can_be_held_at_another_level_and_changes_the_picture():
    model = make_pipeline(TableEncoder(), SVC()).fit(PENGUINS, SPECIES)
    ways = [
        boundary(plot_boundary(model, PENGUINS, SPECIES, features=TWO, at={"island": island}, resolution=40))
        for island in ("Biscoe", "Dream")
    ]
    assert ways[0].shape != ways[1].shape or not np.allclose(ways[0], ways[1])


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_frame_reaches_scikit_learns_encoders_as_a_frame(library):
    frame = library({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "wet", "dry"), "b": X[:, 2], "n": np.arange(80) % 3})
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["kind"]), (StandardScaler(), ["a", "b", "n"])
    )
    model = make_pipeline(encoder, BasicLinearClassifier()).fit(frame, Y)
    ax = plot_boundary(model, frame, Y, features=["a", "b"], resolution=20)
    assert "\nat kind = wet, n = 1" in ax.get_title()


def test_columns_that_the_model_was_not_fitted_on_are_ignored():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(extra="text")
    model = BasicLinearClassifier().fit(frame[["a", "b", "c"]], Y)
    title = plot_boundary(model, frame, Y, features=["a", "c"], resolution=20).get_title()
    assert "\nat b = " in title


def test_a_table_suits_a_model_of_arrays():
    table = as_table(pd.DataFrame(X, columns=["a", "b", "c", "d"]))
    model = SVC(kernel="linear").fit(X, Y)
    ax = plot_boundary(model, table, Y, features=["c", "a"])
    np.testing.assert_allclose(boundary(ax), boundary(plot_boundary(model, X, Y, features=(2, 0))))
    assert ax.get_xlabel() == "c"


def test_points_of_the_grid_are_classified_in_blocks_of_bounded_size(monkeypatch):
    model = SVC().fit(X, Y)
    whole = boundary(plot_boundary(model, X, Y, features="pca", resolution=30))
    seen = []
    predict = SVC.predict
    monkeypatch.setattr("margrove.plots.boundary._CELLS", 400)
    monkeypatch.setattr(SVC, "predict", lambda self, rows: seen.append(len(rows)) or predict(self, rows))
    np.testing.assert_allclose(boundary(plot_boundary(model, X, Y, features="pca", resolution=30)), whole)
    assert seen.count(100) == 9  # of 4 columns each


def test_sparse_rows_are_sliced_and_projected():
    rows = sp.csr_matrix(np.maximum(X, 0))
    model = SVC(kernel="linear").fit(rows, Y)
    dense = SVC(kernel="linear").fit(rows.toarray(), Y)
    for features in ((0, 3), "pca"):
        drawn = [
            plot_boundary(each, points, Y, features=features, resolution=20).get_title()
            for each, points in ((model, rows), (dense, rows.toarray()))
        ]
        assert drawn[0] == drawn[1]


def test_long_lists_of_what_is_held_stay_within_the_title():
    wide = pd.DataFrame(np.hstack([X, X, X]), columns=[f"a column of a long name {j}" for j in range(12)])
    model = BasicLinearClassifier().fit(wide, Y)
    title = plot_boundary(model, wide, Y, features=(0, 1), resolution=20).get_title()
    assert "7 more fixed" in title
    assert max(map(len, title.splitlines())) < 60


def test_principal_components_are_those_of_the_rows_the_classifier_sees():
    model = make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(X, Y)
    ax = plot_boundary(model, X, Y, features="pca")
    encoded = StandardScaler().fit_transform(X)
    _, values, directions = np.linalg.svd(encoded - encoded.mean(axis=0), full_matrices=False)
    drawn = np.vstack([points_of(ax, "no"), points_of(ax, "yes")])
    np.testing.assert_allclose(np.abs(drawn), np.abs(encoded @ directions[:2].T), atol=1e-8)
    share = values**2 / (values**2).sum()
    assert ax.get_xlabel().startswith(f"component 1, {100 * share[0]:.0f} % of the variance")
    assert "\nslice through the mean, points projected onto it" in ax.get_title()


def test_the_boundary_among_components_is_that_of_the_slice_through_the_mean():
    model = SVC(kernel="linear").fit(X, Y)
    ax = plot_boundary(model, X, Y, features="pca")
    drawn = np.vstack([points_of(ax, "no"), points_of(ax, "yes")])
    directions = np.linalg.lstsq(drawn, X - X.mean(axis=0), rcond=None)[0]  # as the components are orthonormal
    np.testing.assert_allclose(model.decision_function(X.mean(axis=0) + boundary(ax) @ directions), 0, atol=1e-6)


def test_a_component_names_the_columns_it_runs_along():
    model = make_pipeline(TableEncoder(), SVC()).fit(PENGUINS, SPECIES)
    ax = plot_boundary(model, PENGUINS, SPECIES, features="pca", resolution=20)
    assert "flipper_length_mm, body_mass_g" in ax.get_xlabel()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": (0, 1), "at": {"x9": 1.0}}, r"at names 'x9'; the columns that can be fixed are x2, x3"),
        ({"features": (0, 1), "at": {"x0": 1.0}}, "at names 'x0'"),
        ({"features": "pca", "at": {"x2": 1.0}}, "features='pca' has none to fix"),
    ],
)
def test_columns_that_cannot_be_held_are_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        plot_boundary(BasicLinearClassifier().fit(X, Y), X, Y, **options)


def test_bad_slices_are_refused():
    model = BasicLinearClassifier().fit(X, Y)
    with pytest.raises(InputError, match="fitted on 4 columns, but X has 3"):
        plot_boundary(model, X[:, :3], Y, features=(0, 1))
    with pytest.raises(ParameterError, match="fitted on only two; leave it out"):
        plot_boundary(BasicLinearClassifier().fit(X[:, :2], Y), X[:, :2], Y, at={"x3": 1})
    tree = DecisionTreeClassifier().fit(PENGUINS, SPECIES)
    with pytest.raises(ParameterError, match="'Atlantis', which no row"):
        plot_boundary(tree, PENGUINS, SPECIES, features=TWO, at={"island": "Atlantis"})
    with pytest.raises(InputError, match="need numbers"):
        plot_boundary(tree, PENGUINS, SPECIES, features="pca")
    holes = X.copy()
    holes[0, 0] = np.nan
    with pytest.raises(InputError, match="a cell is missing"):
        plot_boundary(DecisionTreeClassifier().fit(holes, Y), holes, Y, features="pca")
