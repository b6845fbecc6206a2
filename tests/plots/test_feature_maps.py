"""The picture of maps shows, for each map, the pictures that fire it most."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from margrove import ConvFeatures, DecisionTreeClassifier
from margrove.errors import InputError
from margrove.plots.feature_maps import plot_feature_maps
from margrove.transfer.maps import strongest, used_maps
from margrove.transfer.tiny import write_tiny_network


@pytest.fixture
def features(tmp_path):
    write_tiny_network(tmp_path / "edges.onnx")
    return ConvFeatures(tmp_path / "edges.onnx", size=10, named=True)


@pytest.fixture
def pictures():
    """Edges of growing strength: the first five stand, the others lie."""
    found = np.zeros((10, 10, 10, 3), np.uint8)
    for number in range(5):
        found[number, :, 5:] = 40 * (number + 1)
        found[number + 5, 5:, :] = 40 * (number + 1)
    return found


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_the_strongest_come_first_and_the_heat_is_where_they_fire(features, pictures):
    features.fit(pictures)
    standing, lying = strongest(features, pictures, [0, 1], n_pictures=3)
    assert standing.rows.tolist() == [4, 3, 2]
    assert lying.rows.tolist() == [9, 8, 7]
    assert (np.diff(standing.codes) < 0).all()
    hottest = standing.heat[0].max(axis=0)
    assert set(np.flatnonzero(hottest > 0.5 * hottest.max())) == {3, 4}  # the two columns beside the edge
    np.testing.assert_allclose(standing.heat.mean(axis=(1, 2)), standing.codes, rtol=1e-5)


def test_the_maps_of_a_tree_are_drawn(features, pictures):
    y = np.array(["stands"] * 5 + ["lies"] * 5)
    tree = DecisionTreeClassifier().fit(features.fit_transform(pictures), y)
    which = used_maps(tree)
    assert which
    axes = plot_feature_maps(features, pictures, which, y=y, n_pictures=2)
    assert axes.shape == (len(which), 2)
    assert axes[0, 0].get_ylabel() == f"map_{which[0]}"
    assert axes[0, 0].get_title().startswith(("stands, ", "lies, "))
    given = plt.subplots(1, 2, squeeze=False)[1]
    plot_feature_maps(features, pictures, [1], n_pictures=2, axes=given)
    assert given[0, 0].images


def test_what_cannot_be_drawn_is_told(features, pictures):
    features.fit(pictures)
    with pytest.raises(InputError, match="there is no map 7"):
        plot_feature_maps(features, pictures, [7])
    with pytest.raises(InputError, match="names no map"):
        plot_feature_maps(features, pictures, [])
    with pytest.raises(InputError, match=r"maps × pictures"):
        plot_feature_maps(features, pictures, [0], axes=plt.subplots(2, 2)[1])
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InputError, match="no maps"):
        used_maps(tree)
