"""Small pictures and small networks; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from margrove.transfer.tiny import write_tiny_network


@pytest.fixture
def edges(tmp_path: Path) -> str:
    """The path of a network of two maps, edges that stand and edges that lie."""
    path = tmp_path / "edges.onnx"
    write_tiny_network(path)
    return str(path)


def striped(n: int, *, stand: bool, side: int = 12, seed: int = 0) -> np.ndarray:
    """Noisy pictures of stripes, (n, side, side, 3)."""
    rng = np.random.default_rng(seed)
    wave = (np.arange(side) // 2 % 2) * 160
    grey = np.broadcast_to(wave[None, :] if stand else wave[:, None], (side, side))
    noise = rng.integers(0, 60, (n, side, side, 3))
    return (grey[None, :, :, None] + noise).astype(np.uint8)


@pytest.fixture
def stripes() -> tuple[np.ndarray, np.ndarray]:
    """40 pictures: stripes that stand, and stripes that lie."""
    pictures = np.concatenate([striped(20, stand=True, seed=1), striped(20, stand=False, seed=2)])
    return pictures, np.array(["stand"] * 20 + ["lie"] * 20)


@pytest.fixture
def stripes_folder(tmp_path: Path, stripes) -> Path:
    """The same pictures as files, in a folder for each class."""
    root = tmp_path / "stripes"
    for number, (pixels, label) in enumerate(zip(*stripes, strict=True)):
        folder = root / label
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{number:02}.png")
    return root
