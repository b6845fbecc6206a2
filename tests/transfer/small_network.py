"""A small network with two blocks, dropout and a classifier, for the tests of training."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Small(nn.Module):
    """``affine``: whether batch normalisation has weights; ``end``: what is done to the scores at last."""

    def __init__(self, *, affine: bool = True, end: Any = None) -> None:
        torch.manual_seed(0)
        super().__init__()
        self.blocks = nn.Sequential(
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=affine), nn.ReLU()),
            nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8, affine=affine), nn.ReLU()),
        )
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(8, 5)
        self.end = nn.Identity() if end is None else end

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores."""
        scores: torch.Tensor = self.end(self.classifier(self.dropout(self.blocks(x).mean(dim=(2, 3)))))
        return scores
