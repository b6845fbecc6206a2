"""`plot_forest_error` and `plot_importances`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier as Theirs

from margrove import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor, load_penguins
from margrove.errors import InputError, ParameterError
from margrove.plots import plot_forest_error, plot_importances

PENGUINS = load_penguins()
SPECIES = PENGUINS.labels()
SEEN = np.arange(len(SPECIES)) % 3 > 0
FOREST = RandomForestClassifier(n_estimators=25, oob_score=True, n_jobs=1).fit(PENGUINS.take(SEEN), SPECIES[SEEN])


def test_the_last_errors_are_those_of_the_whole_forest():
    test = PENGUINS.take(~SEEN), SPECIES[~SEEN]
    ax = plot_forest_error(FOREST, PENGUINS.take(SEEN), SPECIES[SEEN], test=test)
    out_of_bag, tested = (np.asarray(line.get_ydata()) for line in ax.lines)
    assert out_of_bag[-1] == pytest.approx(1 - FOREST.oob_score_)
    assert tested[-1] == pytest.approx(np.mean(FOREST.predict(test[0]) != test[1]))
    assert ax.lines[0].get_xdata()[-1] == 25
    assert ax.get_title() == "RandomForestClassifier\n25 trees, converged"


def test_the_error_of_numbers_is_in_their_unit():
    random = np.random.default_rng(0)
    x, other = random.uniform(0, 6, (2, 200))
    forest = RandomForestRegressor(n_estimators=12, n_jobs=1).fit(x[:, None], np.sin(x))
    ax = plot_forest_error(forest, test=(other[:, None], np.sin(other)))
    off = forest.predict(other[:, None]) - np.sin(other)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(np.sqrt(np.mean(off**2)))
    assert ax.get_ylabel() == "root mean squared error"


def test_classes_that_the_forest_does_not_know_count_as_errors():
    ax = plot_forest_error(FOREST, test=(PENGUINS.take(~SEEN), np.full((~SEEN).sum(), "Emperor")))
    assert set(ax.lines[0].get_ydata()) == {1.0}


def test_the_bars_are_the_importances_and_the_lines_cover_the_trees():
    ax = plot_importances(FOREST, coverage=1.0)
    importances, of_each = np.sort(FOREST.feature_importances_)[::-1], FOREST.importances_by_tree()
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(importances.tolist())
    order = np.argsort(-FOREST.feature_importances_, kind="stable")
    ends = [segment[:, 0].tolist() for segment in ax.collections[0].get_segments()]
    assert np.allclose(ends, np.stack([of_each.min(axis=0), of_each.max(axis=0)], axis=1)[order])
    assert plot_importances(FOREST, n_columns=2).get_title().startswith("Importance of columns, 2 of 7 columns")


def test_wrong_arguments():
    rows, labels = PENGUINS.take(SEEN), SPECIES[SEEN]
    for model in (None, Theirs(n_estimators=2).fit([[0], [1]], [0, 1])):
        with pytest.raises(InputError, match=r"model is None|not a forest of Margrove"):
            plot_importances(model)
    with pytest.raises(InputError, match="neither the training data nor test rows"):
        plot_forest_error(FOREST)
    with pytest.raises(ParameterError, match="must be a pair"):
        plot_forest_error(FOREST, test=rows)
    with pytest.raises(ParameterError, match="coverage"):
        plot_importances(FOREST, coverage=0.0)
    with pytest.raises(ParameterError, match="n_columns"):
        plot_importances(FOREST, n_columns=0)
    with pytest.raises(InputError, match="one for each row"):
        plot_forest_error(FOREST, test=(rows, labels[:5]))
    everything = ExtraTreesRegressor(n_estimators=2).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(InputError, match="bootstrap is False"):
        plot_forest_error(everything, [[0.0], [1.0]], [0.0, 1.0])
    two = RandomForestRegressor(n_estimators=2).fit([[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match="one target"):
        plot_forest_error(two, [[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]])
