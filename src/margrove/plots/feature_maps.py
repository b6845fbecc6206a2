"""The pictures to which the feature maps of a network respond most, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError
from margrove.plots.displays import EstimatorDisplay
from margrove.plots.style import as_typed, in_print

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.pipeline import Pipeline

    from margrove.transfer.features import ConvFeatures

_CELL = 1.5  # inches of a picture
_HEAT = "inferno"  # from dark to bright, also for colour-blind people
_VEIL = 0.75  # opacity of the heat at the strongest response
_MOST_MAPS = 6  # of a tree, unless more are named


@as_typed
def plot_feature_maps(
    model: ConvFeatures | Pipeline,
    X: Any,
    y: Any = None,
    *,
    which: int | str | Sequence[int | str] | None = None,
    n_pictures: int = 4,
    axes: Sequence[Axes] | NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Draw for each of some maps the pictures with the strongest response, and the response as heat over them.

    The number above a picture is the pooled response, which a tree compares with its threshold. All pictures of a map
    have one scale of heat.

    Parameters
    ----------
    model : fitted ConvFeatures, or Pipeline of one and a tree
        Cut where maps come out.
    X : pictures
        As `ConvFeatures` takes them.
    y : array of shape (n,), optional
        Labels, written above the pictures.
    which : int, str or sequence of them, optional
        Maps by number or by name, ``17`` or ``"map_17"``. None: the six most important ones of the tree.
    n_pictures : int
        Pictures for each map.
    axes : array of matplotlib Axes of shape (maps, pictures), or as many in a row, default: a new figure

    Returns
    -------
    array of matplotlib Axes, (maps, pictures)

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import ConvFeatures
    >>> from margrove.plots import plot_feature_maps
    >>> from margrove.transfer.tiny import write_tiny_network
    >>> write_tiny_network("edges.onnx")
    >>> pictures = np.zeros((3, 8, 8, 3), np.uint8)
    >>> pictures[1, :, 4:] = 255
    >>> maps = ConvFeatures("edges.onnx", size=8).fit(pictures)
    >>> axes = plot_feature_maps(maps, pictures, which=["map_0", "map_1"], n_pictures=2)
    >>> axes[0, 0].get_ylabel()
    'map_0'
    """
    from margrove.transfer.maps import strongest
    from margrove.transfer.pictures import as_pictures

    features, numbers = _asked(model, which)
    pictures = as_pictures(X)
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.shape != (len(pictures),):
        raise InputError(f"X has {len(pictures)} pictures, but y has the shape {labels.shape}")
    found = strongest(features, pictures, numbers, n_pictures=n_pictures)
    shape = len(found), len(found[0].rows)
    if axes is None:
        import matplotlib.pyplot as plt

        size = (_CELL * shape[1] + 0.4, (_CELL + 0.35) * shape[0])
        axes = plt.subplots(*shape, figsize=size, squeeze=False, layout="constrained")[1]
    axes = np.asarray(axes, dtype=object)
    if axes.size != shape[0] * shape[1]:
        raise InputError(f"axes has the shape {axes.shape}; {shape} was expected: maps × pictures")
    axes = axes.reshape(shape)
    for row, response in zip(axes, found, strict=True):
        largest = float(response.heat.max()) or 1.0  # one scale for the whole row: its pictures can be compared
        for ax, place, code, heat in zip(row, response.rows, response.codes, response.heat, strict=True):
            seen = features.preparation_.fitted(pictures[place].in_mode("RGB"))
            extent = (0, seen.width, seen.height, 0)
            ax.imshow(np.asarray(seen), extent=extent)
            veil = _VEIL * heat / largest  # transparent without a response
            ax.imshow(heat, cmap=_HEAT, vmin=0, vmax=largest, alpha=veil, extent=extent, interpolation="bilinear")
            words = "" if labels is None else f"{labels[place]}, "
            ax.set_title(f"{words}{in_print(float(code))}", fontsize="small")
            ax.set(xticks=[], yticks=[])
        row[0].set_ylabel(response.name)
    return axes


class FeatureMapsDisplay(EstimatorDisplay, picture=plot_feature_maps):
    """The pictures with the strongest response of each map of a network: `plot_feature_maps`."""


def _asked(model: Any, which: int | str | Sequence[int | str] | None) -> tuple[ConvFeatures, list[int]]:
    """Return the step that makes the maps, and the numbers of the maps to draw."""
    from margrove.transfer.features import ConvFeatures
    from margrove.transfer.maps import map_number, used_maps

    first, last = (model[0], model[-1]) if hasattr(model, "steps") else (model, model)
    if not isinstance(first, ConvFeatures):
        problem = f"model is a {type(model).__name__}; a ConvFeatures, or a Pipeline that begins with one, was expected"
        raise InputError(problem, cure="Pass the step that computes the maps.")
    if which is None and not hasattr(last, "nodes_"):
        cure = "Name the maps: which=[0, 17]; or pass a Pipeline of ConvFeatures(named=True) and a tree."
        raise InputError("which is None, and there is no tree whose splits name the maps", cure=cure)
    if which is None:
        return first, used_maps(last)[:_MOST_MAPS]
    numbers = [map_number(each) for each in ([which] if isinstance(which, int | str | np.integer) else which)]
    if not numbers:
        raise InputError("which is empty", cure="Pass the numbers of maps, such as [0, 17].")
    return first, numbers
