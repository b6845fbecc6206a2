"""EfficientNet-Lite0: a small network for ImageNet's 1,000 classes, 4.7 million weights, 0.4 G multiplications.

Tan and Le (2019), "EfficientNet: rethinking model scaling for convolutional neural networks"; the *lite* form has no
squeeze-and-excitation and ReLU6 instead of swish. Its blocks (kernel k, stride s, expansion e) are

    x ↦ [x +] norm(1×1 conv(ReLU6(norm(k×k depthwise conv, stride s(ReLU6(norm(1×1 conv to e·channels)))))))

with x added if the shape stays. Padding is TensorFlow's "same": with stride 2 the odd pixel goes to the right and
below. The input is (p − 127)/128 for a pixel p.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from margrove.transfer.preparation import Preparation

# Repeats, kernel, stride of the first repeat, expansion, channels out.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_STEM, _HEAD, _IMAGENET_CLASSES = 32, 1280, 1000
_EPSILON, _MOMENTUM = 1e-3, 0.01  # of its batch normalisation
_DROPOUT = 0.2

# The names in the file of weights, and ours.
_OUTSIDE = {
    "_conv_stem": "stem.conv",
    "_bn0": "stem.norm",
    "_conv_head": "head.conv",
    "_bn1": "head.norm",
    "_fc": "classifier",
}
_INSIDE = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}


class Unit(nn.Module):
    """A convolution, batch normalisation, and ReLU6 if it is active."""

    def __init__(
        self, into: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1, *, is_active: bool = True
    ) -> None:
        super().__init__()
        # "Same" padding of stride 1 is symmetric for odd kernels; that of stride 2 depends on the size: see `forward`.
        padding = kernel // 2 if stride == 1 else 0
        self.conv = nn.Conv2d(into, out, kernel, stride, padding, groups=groups, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(out, eps=_EPSILON, momentum=_MOMENTUM)
        self.is_active = is_active

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.conv.stride[0] > 1:
            x = functional.pad(x, (*self._padding(x.shape[3]), *self._padding(x.shape[2])))
        x = self.norm(self.conv(x))
        return functional.relu6(x) if self.is_active else x

    def _padding(self, side: int) -> tuple[int, int]:
        kernel, stride = self.conv.kernel_size[0], self.conv.stride[0]
        total = max(0, (-(-side // stride) - 1) * stride + kernel - side)
        return total // 2, total - total // 2

    def fold(self) -> None:
        """Put the normalisation of evaluation mode, γ(x − μ)/√(σ² + ε) + β, into the convolution's weights."""
        if isinstance(self.norm, nn.BatchNorm2d):
            self.conv = torch.nn.utils.fusion.fuse_conv_bn_eval(self.conv.eval(), self.norm.eval())
            self.norm = nn.Identity()


class Block(nn.Module):
    """Expand, filter each channel, project; the input is added if its shape stays."""

    def __init__(self, into: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = into * expansion
        self.expand = Unit(into, inner) if expansion > 1 else nn.Identity()
        self.depthwise = Unit(inner, inner, kernel, stride, groups=inner)
        self.project = Unit(inner, out, is_active=False)
        self.is_added = stride == 1 and into == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.project(self.depthwise(self.expand(x)))
        return x + found if self.is_added else found


class EfficientNetLite0(nn.Module):
    """Stem, 16 blocks, head, mean of each of 1,280 maps, and a linear layer."""

    preparation = Preparation(size=224, mean=(127 / 255,) * 3, std=(128 / 255,) * 3)

    def __init__(self, n_classes: int = _IMAGENET_CLASSES) -> None:
        super().__init__()
        self.stem = Unit(3, _STEM, 3, 2)
        blocks, into = [], _STEM
        for repeats, kernel, stride, expansion, out in _STAGES:
            for number in range(repeats):
                blocks.append(Block(into, out, kernel, stride if number == 0 else 1, expansion))
                into = out
        self.blocks = nn.Sequential(*blocks)
        self.head = Unit(into, _HEAD)
        self.dropout = nn.Dropout(_DROPOUT)
        self.classifier = nn.Linear(_HEAD, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the classes, (n, n_classes)."""
        maps = self.head(self.blocks(self.stem(x)))
        return self.classifier(self.dropout(maps.mean(dim=(2, 3))))

    def fold(self) -> None:
        """Fold the normalisation into the weights, for evaluation only: the same output, faster."""
        for module in self.modules():
            if isinstance(module, Unit):
                module.fold()


def renamed(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the weights under our names; the file has TensorFlow's."""
    ours = {}
    for name, weight in state.items():
        first, _, rest = name.partition(".")
        if first == "_blocks":
            number, part, weight_name = rest.split(".", 2)
            ours[f"blocks.{number}.{_INSIDE[part]}.{weight_name}"] = weight
        else:
            ours[f"{_OUTSIDE[first]}.{rest}"] = weight
    return ours
