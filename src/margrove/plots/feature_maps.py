"""What feature maps respond to: the pictures that fire each of them most, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove.errors import InputError
from margrove.plots.style import as_typed, in_print
from margrove.transfer.features import ConvFeatures
from margrove.transfer.maps import Response, strongest
from margrove.transfer.pictures import as_pictures

_CELL = 1.5  # inches of a picture
_HEAT = "inferno"  # from dark to bright, alike to all eyes
_VEIL = 0.75  # how thick the veil is where a map fires most


@as_typed
def plot_feature_maps(
    features: ConvFeatures, X: Any, which: Sequence[int], *, y: Any = None, n_pictures: int = 4, axes: Any = None
) -> Any:
    """For each of some maps, the pictures that fire it most, with a veil of heat where they do.

    Parameters
    ----------
    features : fitted ConvFeatures
        Cut where maps come out.
    X : pictures
        As `ConvFeatures` takes them.
    which : sequence of int
        Numbers of maps; `margrove.transfer.maps.used_maps` tells those that a tree asks for.
    y : array of shape (n,), optional
        Labels, to stand above the pictures.
    n_pictures : int
        How many for each map.
    axes : array of matplotlib Axes of shape (maps, pictures), optional
        Where to draw; None makes a figure.

    Returns
    -------
    array of matplotlib Axes, (maps, pictures)

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import ConvFeatures
    >>> from margrove.plots.feature_maps import plot_feature_maps
    >>> from margrove.transfer.tiny import write_tiny_network
    >>> write_tiny_network("edges.onnx")
    >>> pictures = np.zeros((3, 8, 8, 3), np.uint8)
    >>> pictures[1, :, 4:] = 255
    >>> axes = plot_feature_maps(ConvFeatures("edges.onnx", size=8).fit(pictures), pictures, [0, 1], n_pictures=2)
    >>> axes[0, 0].get_ylabel()
    'map_0'
    """
    if not len(which):
        raise InputError("which names no map", cure="Give the numbers of maps, such as [0, 17].")
    pictures = as_pictures(X)
    found = strongest(features, pictures, which, n_pictures=n_pictures)
    labels = None if y is None else np.asarray(y)
    n_columns = len(found[0].rows)
    if axes is None:
        import matplotlib.pyplot as plt

        size = (_CELL * n_columns + 0.4, (_CELL + 0.35) * len(found))
        axes = plt.subplots(len(found), n_columns, figsize=size, squeeze=False, layout="constrained")[1]
    axes = np.asarray(axes, dtype=object)
    if axes.shape != (len(found), n_columns):
        raise InputError(f"axes has the shape {axes.shape}; {(len(found), n_columns)} was expected: maps × pictures")
    for row, response in zip(axes, found, strict=True):
        _draw_row(row, response, features, pictures, labels)
    return axes


def _draw_row(row: Any, response: Response, features: ConvFeatures, pictures: Any, labels: Any) -> None:
    largest = float(response.heat.max()) or 1.0  # one scale for the whole row: its pictures can be compared
    for ax, place, code, heat in zip(row, response.rows, response.codes, response.heat, strict=True):
        seen = features.preparation_.fitted(pictures[place].in_mode("RGB"))
        extent = (0, seen.width, seen.height, 0)
        ax.imshow(np.asarray(seen), extent=extent)
        veil = _VEIL * heat / largest  # clear where the map is silent
        ax.imshow(heat, cmap=_HEAT, vmin=0, vmax=largest, alpha=veil, extent=extent, interpolation="bilinear")
        words = "" if labels is None else f"{labels[place]}, "
        ax.set_title(f"{words}{in_print(float(code))}", fontsize="small")
        ax.set_xticks([])
        ax.set_yticks([])
    row[0].set_ylabel(response.name)
