"""The preparation of pictures for a network: the middle of the picture, at its size, its channels centred and scaled.

A pixel p of 0 … 255 becomes (p/255 − mean)/std, with the numbers that the network was trained with. The shorter side of
the picture is resized to size/crop pixels (bicubic), and the middle square of size pixels is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from margrove.advice import Advice, Setting
from margrove.errors import ParameterError, check_number, check_whole, shown
from margrove.transfer.pictures import Picture

IMAGENET_MEAN = (0.485, 0.456, 0.406)  # of red, green and blue over ImageNet, as torchvision's networks were trained
IMAGENET_STD = (0.229, 0.224, 0.225)
RIGHT_SIZE = Advice("Set the size that it needs: ", Setting("size", ...), ".")
_LARGEST_SIDE = 4096  # pixels: no network is trained on more


@dataclass(frozen=True)
class Preparation:
    """The size, the crop and the scaling of a network's input."""

    size: int = 224  # pixels of each side
    crop: float = 1.0  # the share of the shorter side that is kept, from the middle
    mean: tuple[float, ...] = IMAGENET_MEAN  # of each channel (grey, or red, green and blue), from 0 to 1
    std: tuple[float, ...] = IMAGENET_STD

    @property
    def mode(self) -> str:
        """PIL's name for the channels."""
        return "L" if len(self.mean) == 1 else "RGB"

    @property
    def scale_and_shift(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """a and b of each channel with (p/255 − mean)/std = a·p + b."""
        mean, std = np.array(self.mean), np.array(self.std)
        return (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)

    def pixels(self, pictures: Sequence[Picture]) -> NDArray[np.uint8]:
        """Return the pictures before centring and scaling, (n, size, size, channels)."""
        batch = np.empty((len(pictures), self.size, self.size, len(self.mean)), np.uint8)
        for row, picture in zip(batch, pictures, strict=True):
            row[...] = np.asarray(self.fitted(picture.in_mode(self.mode))).reshape(row.shape)
        return batch

    def fitted(self, image: Image.Image) -> Image.Image:
        """Return one picture at the size of the network's input."""
        kept = self.crop * min(image.size)  # pixels of the square in the middle
        left, top = (image.width - kept) / 2, (image.height - kept) / 2
        box = (left, top, left + kept, top + kept)
        return image.resize((self.size, self.size), Image.Resampling.BICUBIC, box=box)

    def with_given(self, size: Any, crop: Any, mean: Any, std: Any) -> Preparation:
        """Return a copy with the given values; None leaves the network's own."""
        changes: dict[str, Any] = {}
        if size is not None:
            check_whole("size", size, least=1, cure=f"It is in pixels, at most {_LARGEST_SIDE}.")
            check_number("size", size, most=_LARGEST_SIDE)
            changes["size"] = int(size)
        if crop is not None:
            check_number("crop", crop, above=0, most=1, cure="It is a share of the shorter side.")
            changes["crop"] = float(crop)
        for name, given in (("mean", mean), ("std", std)):
            if given is not None:
                changes[name] = _by_channel(name, given, len(self.mean))
        return replace(self, **changes)


def _by_channel(name: str, given: Any, n_channels: int) -> tuple[float, ...]:
    values = [given] * n_channels if isinstance(given, int | float) else list(np.atleast_1d(given))
    if len(values) != n_channels:
        raise ParameterError(f"{name} is {shown(given)}; {n_channels} numbers were expected, one for each channel.")
    for value in values:
        check_number(name, value, above=0.0 if name == "std" else None, cure="It is on the scale from 0 to 1.")
    return tuple(float(value) for value in values)
