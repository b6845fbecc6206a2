"""`ConvFeatures`: the codes of a pretrained network.

For a picture x and a network with maps a₁(x) … a_d(x) before its classifier, the code is

    cₖ(x) = mean over the pixels of max(0, aₖ(x)),   k = 1 … d;

with ``flip`` the mean of the codes of x and of its mirror image; with ``normalise="l2"`` divided by its length.
Nothing is learned: any classifier may follow in a pipeline. As named columns (``named=True``) the cₖ are numeric
columns of a tree, whose tests then read ``map_17 > 0.42``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils._set_output import _get_output_config as get_output_config
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Parameter, Value
from margrove.data import Table
from margrove.errors import InputError, ParameterError, check_choice, check_flag, shown
from margrove.estimator import check_parameters, checked, estimator, fitted
from margrove.run.checkpoint import fingerprint
from margrove.run.progress import Progress, report
from margrove.transfer.code_cache import CodeCache, settle_cache
from margrove.transfer.networks import POOLINGS, Cut, Floats, Network, RunsNetwork
from margrove.transfer.pictures import Picture, as_pictures
from margrove.transfer.preparation import Preparation

NORMALISATIONS = (None, "l2")
STAGE = "pictures"  # of progress reports


def _check_layer(name: str, layer: object) -> None:
    if not isinstance(layer, str):
        words = f" is {shown(layer)}; it must be the name of a layer, or "
        raise ParameterError(Advice(Parameter(name), words, Value(None), "."))


@estimator
class ConvFeatures(TransformerMixin, RunsNetwork):
    """Transform pictures to codes of a pretrained convolutional network.

    Pictures are read, decoded and run in batches: the memory is that of two batches and of the codes. Ctrl-C stops
    between two batches, and a cache keeps the codes computed by then.

    Parameters
    ----------
    network : str, path or torch.nn.Module, default="efficientnet_lite0"
        The built-in network; ``"torchvision:NAME"`` or ``"timm:NAME"`` where those are installed; the path of an
        ``.onnx`` file; or any module, of which a copy is taken.
    layer : str, optional
        The layer whose output is the code. None: the input of the last linear layer.
    pooling : {"mean", "max"}
        How each map is reduced to a number.
    flip : bool
        Average the codes of the picture and of its mirror image: twice the time.
    normalise : {None, "l2"}
        Divide each code by its length.
    size : int, optional
        Pixels of each side of the network's input. None: the size it was trained on.
    crop : float, optional
        The share of the shorter side that is kept, around the centre.
    mean, std : float or sequence of float, optional
        Of each channel, on the scale from 0 to 1. None: the network's own; ImageNet's for a module that has none.
    weights : path, optional
        A file of weights for the network: safetensors, or a state dict of torch's, read with ``weights_only=True``.
    download : bool
        Allow torchvision or timm to download weights. Nothing else is ever downloaded.
    device : {"cpu", "cuda", "auto"}
    precision : {"float32", "bfloat16"}
        Of the network; codes are always float32.
    batch_size : int
    cache : folder, optional
        Folder in which codes are stored, by the bytes of the picture and the weights of the network.
    named : bool
        Return a `Table` with columns ``map_0, map_1, …`` instead of an array.

    Attributes
    ----------
    network_name_, network_digest_ : str
        The network, and the fingerprint of its structure and weights.
    layer_ : str
        Where it is cut.
    preparation_ : Preparation
        How a picture is prepared for the network.
    n_features_out_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import ConvFeatures
    >>> from margrove.transfer.tiny import write_tiny_network
    >>> write_tiny_network("edges.onnx")  # two maps: vertical edges, and horizontal edges
    >>> picture = np.zeros((1, 8, 8, 3), np.uint8)
    >>> picture[:, :, 4:] = 255
    >>> ConvFeatures("edges.onnx", size=8).fit_transform(picture).round(1)
    array([[0.7, 0. ]], dtype=float32)
    """

    layer: str | None = checked(_check_layer, default=None)
    pooling: str = checked(check_choice, allowed=POOLINGS, default="mean")
    flip: bool = checked(check_flag, default=False)
    normalise: str | None = checked(check_choice, allowed=NORMALISATIONS, default=None)
    cache: Any = None
    named: bool = checked(check_flag, default=False)

    layer_: str = fitted()
    n_features_out_: int = fitted()

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the network and cut it. Nothing is learned; the pictures are not opened."""
        check_parameters(self)
        as_pictures(X)
        self.network_name_, network, self.preparation_ = self._open()
        self.network_digest_, self.layer_, self.n_features_out_ = network.digest, network.layer, network.n_maps
        self._network, self._network_cut = network, self._cut()
        return self

    def transform(self, X: Any) -> Any:
        """Return the codes, (n, maps) float32: a `Table` with ``named``, a data frame after `set_output`."""
        check_is_fitted(self, "network_digest_")
        check_parameters(self)
        codes = self._codes(as_pictures(X))
        is_framed = get_output_config("transform", self)["dense"] != "default"  # by set_output, which names columns too
        if not self.named or is_framed:
            return codes
        return Table(block=codes, names=self.get_feature_names_out().tolist(), source="pictures")

    def maps(self, X: Any, which: Sequence[int]) -> Floats:
        """Return some maps after ReLU, not pooled: (n, len(which), height, width)."""
        check_is_fitted(self, "network_digest_")
        network = self._opened()
        if not network.has_maps:
            cure = "Name a convolutional layer: ConvFeatures(layer=…)."
            raise InputError(f"the output of the layer {self.layer_!r} is a vector, not maps", cure=cure)
        pictures = as_pictures(X)
        with self._batches(pictures, np.arange(len(pictures))) as batches:
            return np.concatenate([network.maps(pixels)[:, list(which)] for _, pixels in batches])

    @property
    def has_maps(self) -> bool:
        """True if maps come out at the cut, False for a vector."""
        check_is_fitted(self, "network_digest_")
        return self._opened().has_maps

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return ``map_0, map_1, …``."""
        check_is_fitted(self, "network_digest_")
        return np.array([f"map_{k}" for k in range(self.n_features_out_)], dtype=object)

    def _codes(self, pictures: list[Picture]) -> Floats:
        n = len(pictures)
        codes = np.empty((n, self.n_features_out_), np.float32)
        cache, keys, todo = None, [], np.arange(n)
        folder = settle_cache(self.cache)
        if folder is not None:
            cache = CodeCache(folder, self._question(), self.n_features_out_)
            keys = [picture.digest() for picture in pictures]
            todo = np.flatnonzero(~cache.fill(keys, codes))
        done = n - len(todo)
        report(Progress(STAGE, done, n))
        if not len(todo):
            return codes
        network = self._opened()
        try:
            with self._batches(pictures, todo) as batches:
                for part, pixels in batches:
                    codes[part] = self._of_batch(network, pixels)
                    is_whole = np.isfinite(codes[part]).all(axis=1)
                    if not is_whole.all():  # a tree would take NaN for a missing cell
                        raise InputError(
                            f"the network {self.network_name_} returns NaN or infinity for this picture",
                            file=pictures[part[int(np.argmin(is_whole))]].name,
                            cure="Check its weights, mean and std.",
                        )
                    if cache is not None:
                        cache.keep([keys[i] for i in part], codes[part])
                    done += len(part)
                    report(Progress(STAGE, done, n))
        finally:  # after Ctrl-C too: keep what was computed
            if cache is not None:
                cache.flush()
        return codes

    def _of_batch(self, network: Network, pixels: NDArray[np.uint8]) -> Floats:
        codes = network.codes(pixels)
        if self.flip:
            codes = np.float32(0.5) * (codes + network.codes(np.ascontiguousarray(pixels[:, :, ::-1])))
        if self.normalise == "l2":
            lengths = np.linalg.norm(codes, axis=1, keepdims=True)
            codes = np.asarray(codes / np.where(lengths > 0, lengths, 1), np.float32)
        return codes

    def _question(self) -> str:
        """Return the fingerprint of all that decides a code but the picture."""
        seen, network = self.preparation_, self._opened()
        return fingerprint(
            self.network_digest_, self.layer_, self.pooling, self.flip, str(self.normalise), self.precision,
            [seen.size, seen.crop, seen.mean, seen.std], network.probe,
        )  # fmt: skip

    def _opened(self) -> Network:
        """Return the network, opened again if this came from a file or a parameter has changed; it must be the same."""
        network: Network | None = getattr(self, "_network", None)
        if network is not None and self._network_cut == self._cut():
            return network
        _, network, _ = self._open(self.preparation_)
        self._check_digest(network.digest)
        if (network.layer, network.n_maps) != (self.layer_, self.n_features_out_):
            words = (
                f" is {shown(self.layer)}, which cuts the network at {network.layer!r}, and this ConvFeatures was "
                f"fitted with a cut at {self.layer_!r}. Fit it again."
            )
            raise ParameterError(Advice(Parameter("layer"), words))
        self._network, self._network_cut = network, self._cut()
        return network

    def _open(self, preparation: Preparation | None = None) -> tuple[str, Network, Preparation]:
        """Return the name of the network, the network, and the preparation of its pictures."""
        source = self._source()
        preparation = self._preparation(source) if preparation is None else preparation
        return source.name, source.cut(self._cut(), preparation), preparation

    def _cut(self) -> Cut:
        return Cut(self.layer, self.pooling, self.device, self.precision)
