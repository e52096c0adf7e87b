"""DARTS' ImageNet network with its second-order cells (Liu, Simonyan, Yang, "DARTS", figures 4 and 5).

14 cells of 48 channels, reducing at a third and at two thirds; no auxiliary head and, at inference, no path
dropping. A cell has six states: 0 and 1 are its two inputs, each pair of operations adds its sum as the next,
and the last four are joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from zoo_models.cells import FactorizedReduce, relu_conv_bn

Step = tuple[str, int]

NORMAL: Sequence[Step] = (
    ("sep_conv_3x3", 0), ("sep_conv_3x3", 1),
    ("sep_conv_3x3", 0), ("sep_conv_3x3", 1),
    ("sep_conv_3x3", 1), ("skip", 0),
    ("skip", 0), ("dil_conv_3x3", 2),
)  # fmt: skip
REDUCTION: Sequence[Step] = (
    ("max_pool_3x3", 0), ("max_pool_3x3", 1),
    ("skip", 2), ("max_pool_3x3", 1),
    ("max_pool_3x3", 0), ("skip", 2),
    ("skip", 2), ("max_pool_3x3", 1),
)  # fmt: skip
"""Operation and the state it reads, two for each new state."""


def depthwise_separable(channels: int, stride: int, dilation: int) -> list[nn.Module]:
    """ReLU, a 3x3 convolution of each channel by itself, a 1x1 convolution, batch normalisation."""
    return [
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, stride, dilation, dilation, groups=channels, bias=False),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
    ]


def operation(kind: str, channels: int, stride: int) -> nn.Module:
    """One edge of a cell."""
    match kind:
        case "skip":
            return nn.Identity() if stride == 1 else FactorizedReduce(channels, channels)
        case "max_pool_3x3":
            return nn.MaxPool2d(3, stride, 1)
        case "sep_conv_3x3":  # twice, and only the first one strides
            return nn.Sequential(
                *depthwise_separable(channels, stride, 1), *depthwise_separable(channels, 1, 1)
            )
        case "dil_conv_3x3":
            return nn.Sequential(*depthwise_separable(channels, stride, 2))
    raise ValueError(kind)


class Cell(nn.Module):
    """`before` and `last` are the channels of the two inputs; `halved`: whether the cell before reduced."""

    def __init__(self, before: int, last: int, channels: int, reduces: bool, halved: bool) -> None:
        super().__init__()
        self.steps = REDUCTION if reduces else NORMAL
        self.preprocess0 = FactorizedReduce(before, channels) if halved else relu_conv_bn(before, channels)
        self.preprocess1 = relu_conv_bn(last, channels)
        self.operations = nn.ModuleList(
            operation(kind, channels, 2 if reduces and source < 2 else 1) for kind, source in self.steps
        )

    def forward(self, before: Tensor, last: Tensor) -> Tensor:
        states = [self.preprocess0(before), self.preprocess1(last)]
        for i in range(0, len(self.steps), 2):
            first, second = (self.operations[j](states[self.steps[j][1]]) for j in (i, i + 1))
            states.append(first + second)
        return torch.cat(states[2:], dim=1)


class Darts(nn.Module):
    """Images of (batch, 3, height, width) to (batch, 1000)."""

    def __init__(self, cells: int = 14, channels: int = 48, classes: int = 1000) -> None:
        super().__init__()
        self.stem0 = nn.Sequential(
            nn.Conv2d(3, channels // 2, 3, 2, 1, bias=False),
            nn.BatchNorm2d(channels // 2),
            nn.ReLU(),
            nn.Conv2d(channels // 2, channels, 3, 2, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.stem1 = nn.Sequential(
            nn.ReLU(), nn.Conv2d(channels, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels)
        )
        before = last = channels
        halved = True
        self.cells = nn.ModuleList()
        for i in range(cells):
            reduces = i in (cells // 3, 2 * cells // 3)
            if reduces:
                channels *= 2
            self.cells.append(Cell(before, last, channels, reduces, halved))
            before, last, halved = last, 4 * channels, reduces
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        before = self.stem0(x)
        last = self.stem1(before)
        for cell in self.cells:
            before, last = last, cell(before, last)
        return self.classifier(self.pool(last).flatten(1))
