"""A tiny network of two maps, and pictures for it, for examples without any download."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image

# Sobel's kernels: the change of grey from left to right, and from top to bottom.
_STANDING = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32) / 8
_GREY = np.full(3, 1 / 3, np.float32)
_CLASSIFIER = np.eye(2, dtype=np.float32)


def write_tiny_network(path: str | os.PathLike[str]) -> None:
    """Write an ONNX file: a convolution with two Sobel kernels, ReLU, global average pooling, and a linear layer.

    It takes float32 pictures of any size, (n, 3, height, width). Needs the package ``onnx``.

    Examples
    --------
    >>> from margrove.transfer.tiny import write_tiny_network
    >>> write_tiny_network("edges.onnx")
    """
    from onnx import TensorProto, checker, helper, numpy_helper, save

    kernels = np.stack([np.einsum("c,ij->cij", _GREY, edge) for edge in (_STANDING, _STANDING.T)])
    nodes = [
        helper.make_node("Conv", ["pixels", "kernels"], ["edges"], name="conv", pads=[0, 0, 0, 0]),
        helper.make_node("Relu", ["edges"], ["maps"], name="relu"),
        helper.make_node("GlobalAveragePool", ["maps"], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["code"], name="flatten"),
        helper.make_node("Gemm", ["code", "weights"], ["scores"], name="classifier"),
    ]
    graph = helper.make_graph(
        nodes,
        "edges",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["n", 3, "height", "width"])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(kernels, "kernels"), numpy_helper.from_array(_CLASSIFIER, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8  # read by every ONNX Runtime of the last years
    checker.check_model(model)
    save(model, os.fspath(path))


def write_tiny_pictures(folder: str | os.PathLike[str], *, n: int = 20, seed: int = 0) -> None:
    """Write pictures of 16 × 16 pixels, ``n`` of vertical stripes and ``n`` of horizontal ones, into the folders
    ``stand`` and ``lie``.

    Examples
    --------
    >>> from margrove import read_picture_folder
    >>> from margrove.transfer.tiny import write_tiny_pictures
    >>> write_tiny_pictures("stripes", n=3)
    >>> read_picture_folder("stripes").labels.tolist()
    ['lie', 'lie', 'lie', 'stand', 'stand', 'stand']
    """
    random = np.random.default_rng(seed)
    wave = np.broadcast_to(np.arange(16) // 2 % 2 * 150, (16, 16))  # 150 leaves room for noise
    for name, stripes in (("stand", wave), ("lie", wave.T)):
        place = Path(folder, name)
        place.mkdir(parents=True, exist_ok=True)
        for number in range(n):
            noise = random.integers(0, 100, (16, 16, 3))
            Image.fromarray((stripes[..., None] + noise).astype(np.uint8)).save(place / f"{number:02}.png")
