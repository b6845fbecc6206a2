"""The picture of maps shows, for each map, the pictures that fire it most."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image
from sklearn.pipeline import make_pipeline

from margrove import ConvFeatures, DecisionTreeClassifier
from margrove.errors import InputError
from margrove.plots import plot_feature_maps
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
    axes = plot_feature_maps(features, pictures, y, which=which, n_pictures=2)
    assert axes.shape == (len(which), 2)
    assert axes[0, 0].get_ylabel() == f"map_{which[0]}"
    assert axes[0, 0].get_title().startswith(("stands, ", "lies, "))
    given = plt.subplots(1, 2, squeeze=False)[1]
    plot_feature_maps(features, pictures, which=[1], n_pictures=2, axes=given)
    assert given[0, 0].images


def test_a_pipeline_chooses_its_own_maps_and_one_map_may_be_given_by_its_name(features, pictures):
    y = np.array(["stands"] * 5 + ["lies"] * 5)
    model = make_pipeline(features, DecisionTreeClassifier()).fit(pictures, y)
    assert used_maps(model) == used_maps(model[-1])
    drawn = plot_feature_maps(model, pictures, y)
    assert [row[0].get_ylabel() for row in drawn] == [f"map_{number}" for number in used_maps(model)]
    assert plot_feature_maps(model, pictures, which="map_1")[0, 0].get_ylabel() == "map_1"
    assert plot_feature_maps(model, pictures, which=1)[0, 0].get_ylabel() == "map_1"


def test_pictures_may_come_from_a_folder(features, pictures, tmp_path):
    for number, pixels in enumerate(pictures):
        (tmp_path / "all").mkdir(exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "all" / f"{number}.png")
    features.fit(pictures)
    assert strongest(features, str(tmp_path / "all"), [0])[0].rows.tolist() == [4, 3, 2, 1]


def test_input_that_cannot_be_drawn_is_refused(features, pictures):
    features.fit(pictures)
    with pytest.raises(InputError, match="there is no map 7"):
        plot_feature_maps(features, pictures, which=[7])
    with pytest.raises(InputError, match="which is empty"):
        plot_feature_maps(features, pictures, which=[])
    with pytest.raises(InputError, match=r"maps × pictures"):
        plot_feature_maps(features, pictures, which=[0], axes=plt.subplots(2, 3)[1])
    with pytest.raises(InputError, match="no tree whose splits name the maps"):
        plot_feature_maps(features, pictures)
    with pytest.raises(InputError, match="which holds 'edges'; a map is a number, or a name such as 'map_17'"):
        plot_feature_maps(features, pictures, which="edges")
    with pytest.raises(InputError, match="10 pictures, but y has the shape"):
        plot_feature_maps(features, pictures, ["stands"], which=0)
    with pytest.raises(InputError, match="model is a DecisionTreeClassifier; a ConvFeatures"):
        plot_feature_maps(DecisionTreeClassifier(), pictures, which=0)
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(InputError, match="not maps"):
        used_maps(tree)
