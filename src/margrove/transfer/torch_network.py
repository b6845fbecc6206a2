"""A ``torch.nn.Module``, cut: hooks catch what the layer is given or answers, and the rest of it is not run."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import nn

from margrove.checkpoint import fingerprint
from margrove.errors import EngineError, InputError, ParameterError, shown
from margrove.transfer.efficientnet_lite import EfficientNetLite0
from margrove.transfer.networks import Cut, Floats, check_shape, is_mean_of, probe_pixels
from margrove.transfer.preparation import Preparation

_IMAGENET = Preparation()
_GREY = Preparation(mean=(0.5,), std=(0.5,))


class _ReachedError(Exception):
    """Thrown by a hook where the network is cut; carries what came out there."""

    def __init__(self, found: torch.Tensor) -> None:
        super().__init__()
        self.found = found


class TorchNetwork:
    """A copy of a module on a device, cut before its classifier or after a named layer.

    A copy, in evaluation mode: the owner's module stays as it is, and what is hashed cannot change any more.
    """

    def __init__(self, module: nn.Module, cut: Cut, preparation: Preparation) -> None:
        self._device = device_named(cut.device)
        self._dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[cut.precision]
        self._pooling = cut.pooling
        self._scale, self._shift = (torch.from_numpy(each).to(self._device) for each in preparation.scale_and_shift)
        self.digest = digest_of(module)
        module = copy.deepcopy(module).eval().requires_grad_(False)
        if isinstance(module, EfficientNetLite0):
            module.fold()  # the same numbers by fewer steps
        self._module = module.to(self._device, self._dtype).to(memory_format=torch.channels_last)
        noise = probe_pixels(preparation)
        self._place, self._is_input = self._find(cut.layer, noise)
        self.layer = self._name_of(self._place)
        found = self._run(noise)
        check_shape(tuple(found.shape), len(noise), self.layer)
        self.has_maps, self.n_maps = found.ndim == 4, int(found.shape[1])

    def codes(self, pixels: NDArray[np.uint8]) -> Floats:
        """Of each picture one number for each map, ReLU'd and pooled."""
        found = self._run(pixels).relu()
        if found.ndim == 4:
            found = found.mean(dim=(2, 3)) if self._pooling == "mean" else found.amax(dim=(2, 3))
        return _array(found)

    def maps(self, pixels: NDArray[np.uint8]) -> Floats:
        """Of each picture its maps, ReLU'd."""
        return _array(self._run(pixels).relu())

    def _input(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """Pixels centred and scaled; channels lie last in memory, as they came, which convolutions like best."""
        bytes_ = torch.from_numpy(pixels).to(self._device).permute(0, 3, 1, 2)
        a, b = self._scale.view(1, -1, 1, 1), self._shift.view(1, -1, 1, 1)
        return (bytes_.float().mul_(a).add_(b)).to(self._dtype)

    def _run(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        def caught(_: nn.Module, given: Any, answer: Any = None) -> None:
            raise _ReachedError(_tensor(given[0] if self._is_input else answer, self.layer))

        hook = self._place.register_forward_pre_hook if self._is_input else self._place.register_forward_hook
        handle = hook(caught)
        try:
            with torch.inference_mode(), whole_floats(self._device):
                self._module(self._input(pixels))
        except _ReachedError as reached:
            return reached.found
        finally:
            handle.remove()
        raise InputError(f"the layer {self.layer!r} was not reached", cure="Name another layer: layer=….")

    def _find(self, layer: str | None, noise: NDArray[np.uint8]) -> tuple[nn.Module, bool]:
        """The module at which to cut, and whether before it (what it is given) or after it (what it answers)."""
        if layer is not None:
            places = dict(self._module.named_modules())
            if layer not in places or not layer:
                raise ParameterError(f"layer is {shown(layer)}; the network has {_some(list(places)[1:])}.")
            return places[layer], False
        with torch.inference_mode(), heard(self._module) as calls:
            self._module(self._input(noise))
        last = max((i for i, call in enumerate(calls) if isinstance(call[0], nn.Linear)), default=None)
        if last is None:
            raise InputError(
                "the network has no linear layer before which it could be cut",
                cure="Name the layer whose answer is wanted: layer=….",
            )
        classifier, given, _ = calls[last]
        vector = _array(given)
        # The last maps before the classifier; a map of one pixel is what a pooling layer answers.
        before = [call for call in calls[:last] if call[2].ndim == 4 and call[2].shape[2:] != (1, 1)]
        if before and is_mean_of(_array(before[-1][2]), vector):
            return before[-1][0], False
        return classifier, True

    def _name_of(self, wanted: nn.Module) -> str:
        name = next(name for name, module in self._module.named_modules() if module is wanted)
        return f"what {name} is given" if self._is_input else name


@contextmanager
def heard(module: nn.Module) -> Iterator[list[tuple[nn.Module, torch.Tensor, torch.Tensor]]]:
    """Every call of a submodule inside the block, in the order of their ends: the module, its input, its answer."""
    calls: list[tuple[nn.Module, torch.Tensor, torch.Tensor]] = []

    def heard(place: nn.Module, given: Any, answer: Any) -> None:
        if given and isinstance(given[0], torch.Tensor) and isinstance(answer, torch.Tensor):
            calls.append((place, given[0], answer))

    handles = [each.register_forward_hook(heard) for each in module.modules() if each is not module]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _tensor(found: Any, layer: str) -> torch.Tensor:
    if not isinstance(found, torch.Tensor):
        raise InputError(f"the layer {layer!r} answers a {type(found).__name__}, no tensor", cure="Name another layer.")
    return found


def _array(found: torch.Tensor) -> Floats:
    return np.ascontiguousarray(found.float().cpu().numpy())


def _some(names: list[str], most: int = 12) -> str:
    shown_names = ", ".join(names if len(names) <= most else [*names[: most // 2], "…", *names[-most // 2 :]])
    return shown_names or "no layer of its own"


def whole_floats(device: torch.device) -> AbstractContextManager[None]:
    """Convolutions of a GPU round float32 to ten bits unless they are told not to: then float32 means float32."""
    if device.type != "cuda":
        return nullcontext()
    context: AbstractContextManager[None] = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    return context


def device_named(name: str) -> torch.device:
    """The device of that name, if it is here; "auto" is a GPU where there is one."""
    is_there = torch.cuda.is_available()
    if name == "cuda" and not is_there:
        raise EngineError("device is 'cuda', and no GPU that torch can use is here. Use device='cpu' or 'auto'.")
    return torch.device("cuda" if name != "cpu" and is_there else "cpu")


def digest_of(module: nn.Module) -> str:
    """BLAKE2b of the structure and of every weight."""
    state = module.state_dict()
    arrays = {
        name: tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() for name, tensor in state.items()
    }
    kinds = {name: f"{tensor.dtype} {tuple(tensor.shape)}" for name, tensor in state.items()}
    return fingerprint("torch", str(module), kinds, arrays)


def preparation_of(module: nn.Module) -> Preparation:
    """The module's own; else ImageNet's numbers, or grey where its first convolution takes one channel."""
    own = getattr(module, "preparation", None)
    if isinstance(own, Preparation):
        return own
    first = next((each for each in module.modules() if isinstance(each, nn.Conv2d)), None)
    channels = 3 if first is None else first.in_channels
    if channels not in (1, 3):
        raise InputError(f"the network takes {channels} channels", cure="Pictures have one (grey) or three.")
    return _GREY if channels == 1 else _IMAGENET


def load_weights(module: nn.Module, path: Any) -> nn.Module:
    """A copy of the module with the weights of a file: safetensors, or a state dict that torch saved. No code in it is
    run: ``weights_only=True``.

    Raises
    ------
    InputError
        If the file is missing, is no file of weights, or has those of another network.
    """
    state = read_weights(path)
    module = copy.deepcopy(module)
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        cure = "Give the weights of this network."
        raise InputError(f"these are weights of another network: {first[:200]}", file=str(path), cure=cure) from error
    return module


def read_weights(path: Any) -> dict[str, torch.Tensor]:
    """Weights by name, out of a safetensors file or of one that torch saved."""
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"weights is {shown(path)}; it must be the path of a file of weights.")
    name, cure = os.fspath(path), "Give a .safetensors file, or a state dict that torch.save wrote."
    if not Path(path).is_file():
        raise InputError("there is no such file", file=name, cure=cure)
    try:
        if name.endswith(".safetensors"):
            return dict(safetensors.torch.load_file(name))
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, safetensors.SafetensorError) as error:
        raise InputError("it cannot be read as weights alone", file=name, cure=cure) from error
    if not isinstance(state, dict) or not all(isinstance(each, torch.Tensor) for each in state.values()):
        raise InputError(f"it holds a {type(state).__name__}, not weights by name", file=name, cure=cure)
    return state
