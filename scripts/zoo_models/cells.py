"""Layers that the cells of AmoebaNet and DARTS have in common; each applies ReLU first."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def relu_conv_bn(source: int, out: int, kernel: int | tuple[int, int] = 1, stride: int = 1) -> nn.Sequential:
    """ReLU, a convolution that keeps the size unless it strides, batch normalisation."""
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(source, out, kernel, stride, (height // 2, width // 2), bias=False),
        nn.BatchNorm2d(out),
    )


class FactorizedReduce(nn.Module):
    """Half the height and width: two 1x1 convolutions of stride 2, one of them a pixel further on."""

    def __init__(self, source: int, out: int) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.conv_1 = nn.Conv2d(source, out // 2, 1, 2, bias=False)
        self.conv_2 = nn.Conv2d(source, out // 2, 1, 2, bias=False)
        self.pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.bn = nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(x)
        further = self.pad(x)[:, :, 1:, 1:]
        return self.bn(torch.cat([self.conv_1(x), self.conv_2(further)], dim=1))
