"""A ``torch.nn.Module``, cut: a hook catches the input or the output of a layer, and the rest is not run."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import nn

from margrove.advice import Advice, InPython, Parameter, Setting
from margrove.errors import EngineError, InputError, ParameterError, shown
from margrove.run.checkpoint import fingerprint
from margrove.transfer.efficientnet_lite import EfficientNetLite0
from margrove.transfer.networks import Cut, Floats, Network, is_mean_of, probe_pixels
from margrove.transfer.preparation import RIGHT_SIZE, Preparation

_IMAGENET = Preparation()
_GREY = Preparation(mean=(0.5,), std=(0.5,))


class _ReachedError(Exception):
    """Raised by a hook where the network is cut; carries the value there."""

    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found


class OnDevice:
    """A device, and the input of a network there."""

    def __init__(self, device: str, preparation: Preparation) -> None:
        self._device = device_named(device)
        scale_and_shift = (torch.from_numpy(each).to(self._device) for each in preparation.scale_and_shift)
        self._scale, self._shift = (each.view(1, -1, 1, 1) for each in scale_and_shift)

    def _input(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """Return pixels centred and scaled; channels stay last in memory, which is fastest for convolutions."""
        raw = torch.from_numpy(pixels).to(self._device).permute(0, 3, 1, 2).float()
        return raw.mul_(self._scale).add_(self._shift)


class TorchNetwork(OnDevice, Network):
    """A copy of a module on a device, in evaluation mode, cut before its classifier or after a named layer."""

    def __init__(self, module: nn.Module, cut: Cut, preparation: Preparation) -> None:
        super().__init__(cut.device, preparation)
        self._pooling = cut.pooling
        self.digest = digest_of(module)
        module = copied(module).eval().requires_grad_(False)
        if isinstance(module, EfficientNetLite0):
            module.fold()  # the same numbers by fewer steps
        self._dtype = torch.float32  # to find the cut: in bfloat16 no vector is the mean of its maps
        self._module = module.to(self._device, self._dtype).to(memory_format=torch.channels_last)
        noise = probe_pixels(preparation)
        self._place, self._call, self._is_input = self._find(cut.layer, noise)
        name = next(name for name, each in self._module.named_modules() if each is self._place)
        self.layer = f"what {name} is given" if self._is_input else name
        self._dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[cut.precision]
        self._module = self._module.to(self._dtype)
        self._try(noise)

    def _pooled(self, found: torch.Tensor) -> Floats:
        found = found.relu().float()
        if found.ndim == 4:
            found = found.mean(dim=(2, 3)) if self._pooling == "mean" else found.amax(dim=(2, 3))
        return _array(found)

    def maps(self, pixels: NDArray[np.uint8]) -> Floats:
        return _array(self._run(pixels).relu())

    def _run(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        found = self._caught(pixels, self._place, self._call, is_input=self._is_input)
        if found is None:
            cure = Advice("Name another layer: ", Setting("layer", ...), ".")
            raise InputError(f"the layer {self.layer!r} was not reached", cure=cure)
        if not isinstance(found, torch.Tensor):
            problem = f"the output of the layer {self.layer!r} is a {type(found).__name__}, not a tensor"
            raise InputError(problem, cure="Name another layer.")
        return found

    def _caught(self, pixels: NDArray[np.uint8], place: nn.Module, call: int, *, is_input: bool) -> Any:
        """Return the input or the output of a layer in the ``call``-th of its calls; None if there are fewer."""
        n_calls = 0

        def caught(_: nn.Module, given: Any, output: Any = None) -> None:
            nonlocal n_calls
            n_calls += 1
            if n_calls == call:
                raise _ReachedError(given[0] if is_input else output)

        handle = (place.register_forward_pre_hook if is_input else place.register_forward_hook)(caught)
        try:
            with torch.inference_mode(), whole_floats(self._device), plain_errors(pixels.shape):
                self._module(self._input(pixels).to(self._dtype))
        except _ReachedError as reached:
            return reached.found
        finally:
            handle.remove()
        return None

    def _find(self, layer: str | None, noise: NDArray[np.uint8]) -> tuple[nn.Module, int, bool]:
        """Return the module at which to cut, in which of its calls, and whether at its input or at its output."""
        if layer is not None:
            places = dict(self._module.named_modules())
            if layer not in places or not layer:
                names = list(places)[1:]
                some = ", ".join(names if len(names) <= 12 else [*names[:6], "…", *names[-6:]]) or "no layers"
                words = f" is {shown(layer)}; the network has {some}."
                raise ParameterError(Advice(Parameter("layer"), words))
            if self._is_called_again(places[layer], noise):
                words = (
                    f" is {shown(layer)}; the network uses it more than once, so that it has several outputs. "
                    "Name a layer that is used once."
                )
                raise ParameterError(Advice(Parameter("layer"), words))
            return places[layer], 1, False
        calls, _ = calls_of(self._module, self._input(noise))
        last = last_linear(calls)
        if last is None:
            raise InputError(
                "the network has no linear layer, before which it is usually cut",
                cure=Advice("Name the layer whose output to use: ", Setting("layer", ...), "."),
            )
        vector = _array(calls[last].given)
        # The last maps before the classifier; maps of one pixel are the output of a pooling layer.
        before = [i for i in range(last) if calls[i].output.ndim == 4 and calls[i].output.shape[2:] != (1, 1)]
        if before and is_mean_of(_array(calls[before[-1]].output), vector):
            return *_which(calls, before[-1]), False
        return *_which(calls, last), True

    def _is_called_again(self, place: nn.Module, noise: NDArray[np.uint8]) -> bool:
        try:
            return self._caught(noise, place, 2, is_input=False) is not None
        except InputError:  # from behind the layer, which is not run for codes
            return False


@dataclass(frozen=True)
class Call:
    """A call of a submodule, with copies of its input and its output: later layers may change them in place."""

    place: nn.Module
    given: torch.Tensor
    output: torch.Tensor


def calls_of(module: nn.Module, batch: torch.Tensor) -> tuple[list[Call], Any]:
    """Run a module and return every call of a submodule, in the order of their ends, and the module's output."""
    calls: list[Call] = []

    def keep(place: nn.Module, given: Any, output: Any) -> None:
        if given and isinstance(given[0], torch.Tensor) and isinstance(output, torch.Tensor):
            calls.append(Call(place, given[0].clone(), output.clone()))

    handles = [each.register_forward_hook(keep) for each in module.modules() if each is not module]
    n, channels, height, width = batch.shape
    try:
        with torch.inference_mode(), plain_errors((n, height, width, channels)):
            return calls, module(batch)
    finally:
        for handle in handles:
            handle.remove()


def last_linear(calls: list[Call]) -> int | None:
    """Return the position of the classifier: the last call of a linear layer, unless a convolution follows. Then the
    layer serves something else, such as the weights of channels."""
    last = max((i for i, call in enumerate(calls) if isinstance(call.place, nn.Linear)), default=None)
    if last is None or any(isinstance(call.place, nn.Conv2d) for call in calls[last:]):
        return None
    return last


def _which(calls: list[Call], position: int) -> tuple[nn.Module, int]:
    """Return the module of a call, and the number of its calls up to then."""
    place = calls[position].place
    return place, sum(call.place is place for call in calls[: position + 1])


@contextmanager
def plain_errors(shape: tuple[int, ...], cure: str = RIGHT_SIZE) -> Iterator[None]:
    """Raise errors inside a network as one line that names a cure."""
    try:
        yield
    except (_ReachedError, InputError):
        raise
    except torch.OutOfMemoryError as error:
        raise EngineError(f"{shape[0]} pictures at once do not fit into the GPU's memory. Lower batch_size.") from error
    except Exception as error:  # a module may raise whatever it likes
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        n, height, width, channels = shape
        raise InputError(
            f"the network cannot be run on {n} pictures of {height} × {width} pixels and {channels} channels "
            f"({first[:160]})",
            cure=cure,
        ) from error


def copied(module: nn.Module) -> nn.Module:
    """Return a copy that shares nothing with the user's module."""
    try:
        return copy.deepcopy(module)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f"the network cannot be copied ({str(error).splitlines()[0][:160]})",
            cure="Delete what it stores from its last run, such as outputs.",
        ) from error


def _array(found: torch.Tensor) -> Floats:
    return np.ascontiguousarray(found.float().cpu().numpy())


def whole_floats(device: torch.device) -> AbstractContextManager[None]:
    """Switch off TF32, with which convolutions on a GPU round float32 to ten bits."""
    if device.type != "cuda":
        return nullcontext()
    context: AbstractContextManager[None] = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    return context


def device_named(name: str) -> torch.device:
    """Return the device of that name; "auto" is a GPU if there is one."""
    is_there = torch.cuda.is_available()
    if name == "cuda" and not is_there:
        words = " is 'cuda', and torch finds no GPU. Use "
        raise EngineError(Advice(Parameter("device"), words, Setting("device", "cpu"), InPython(" or 'auto'"), "."))
    return torch.device("cuda" if name != "cpu" and is_there else "cpu")


def digest_of(module: nn.Module) -> str:
    """Return BLAKE2b of the structure, of every weight and buffer, and of plain settings of the modules."""
    state = {**dict(module.named_buffers()), **module.state_dict()}
    flat = {name: tensor.detach().cpu().contiguous().reshape(-1) for name, tensor in state.items()}
    arrays = {name: tensor.view(torch.uint8).numpy() for name, tensor in flat.items()}
    kinds = {name: f"{tensor.dtype} {tuple(tensor.shape)}" for name, tensor in state.items()}
    return fingerprint("torch", str(module), kinds, arrays, _settings(module))


def _settings(module: nn.Module) -> dict[str, str]:
    """Return numbers, strings and functions that a user's module may keep and that `str` need not show."""
    found = {}
    for path, each in module.named_modules():
        if type(each).__module__.startswith("torch.nn."):  # `str` shows all of those
            continue
        for name, value in vars(each).items():
            if name.startswith("_") or name == "training":
                continue
            values = value if isinstance(value, tuple | list) else [value]
            if all(isinstance(each_value, bool | int | float | str | None) for each_value in values):
                found[f"{path}.{name}"] = repr(value)
            elif callable(value) and not isinstance(value, nn.Module):
                found[f"{path}.{name}"] = getattr(value, "__qualname__", type(value).__qualname__)
    return found


def preparation_of(module: nn.Module) -> Preparation:
    """Return the module's own preparation; else ImageNet's, or grey if its first convolution takes one channel."""
    own = getattr(module, "preparation", None)
    if isinstance(own, Preparation):
        return own
    first = next((each for each in module.modules() if isinstance(each, nn.Conv2d)), None)
    channels = 3 if first is None else first.in_channels
    if channels not in (1, 3):
        raise InputError(f"the network takes {channels} channels", cure="Pictures have one (grey) or three.")
    return _GREY if channels == 1 else _IMAGENET


def load_weights(module: nn.Module, path: Any) -> nn.Module:
    """Return a copy of the module with the weights of a file."""
    state = read_weights(path)
    module = copied(module)
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        cure = "Use the weights of this network."
        raise InputError(f"these are weights of another network: {first[:200]}", file=str(path), cure=cure) from error
    return module


def read_weights(path: Any) -> dict[str, torch.Tensor]:
    """Return weights by name, from a safetensors file or from one that torch saved. No code in it is run."""
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"weights is {shown(path)}; it must be the path of a file of weights.")
    name, cure = os.fspath(path), "Use a .safetensors file, or a state dict saved by torch.save."
    if not Path(path).is_file():
        raise InputError("there is no such file", file=name, cure=cure)
    try:
        if name.endswith(".safetensors"):
            return dict(safetensors.torch.load_file(name))
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many types for a damaged file
        raise InputError("no weights can be read from it", file=name, cure=cure) from error
    is_named = isinstance(state, dict) and all(isinstance(name, str) for name in state)
    if not is_named or not all(isinstance(each, torch.Tensor) for each in state.values()):
        raise InputError(f"it holds a {type(state).__name__}, not weights by name", file=name, cure=cure)
    return dict(state)
