"""AmoebaNet-D (Real et al., "Regularized Evolution for Image Classifier Architecture Search", appendix).

18 cells (two reducing cells as stem, then three groups of six normal cells with a reducing cell between) and
256 filters, as in GPipe's and torchgpipe's experiments. A cell has seven states: 0 and 1 are its two inputs,
each pair of operations adds its sum as the next one, and the states that are named at the end are joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from zoo_models.cells import FactorizedReduce, relu_conv_bn

Step = tuple[int, str]

NORMAL: Sequence[Step] = (
    (1, "conv_1x1"), (1, "max_pool_3x3"),
    (1, "none"), (0, "conv_1x7_7x1"),
    (0, "conv_1x1"), (0, "conv_1x7_7x1"),
    (2, "max_pool_3x3"), (2, "none"),
    (1, "avg_pool_3x3"), (5, "conv_1x1"),
)  # fmt: skip
NORMAL_JOINED = (0, 3, 4, 6)

REDUCTION: Sequence[Step] = (
    (0, "max_pool_2x2"), (0, "max_pool_3x3"),
    (2, "none"), (1, "conv_3x3"),
    (2, "conv_1x7_7x1"), (2, "max_pool_3x3"),
    (3, "none"), (1, "max_pool_2x2"),
    (2, "avg_pool_3x3"), (3, "conv_1x1"),
)  # fmt: skip
REDUCTION_JOINED = (4, 5, 6)


def operation(kind: str, channels: int, stride: int) -> nn.Module:
    """One edge of a cell. Convolutions work on a quarter of the channels inside."""
    inner = channels // 4
    match kind:
        case "none":
            return nn.Identity()
        case "max_pool_2x2":
            return nn.MaxPool2d(2, stride)
        case "max_pool_3x3":
            return nn.MaxPool2d(3, stride, 1)
        case "avg_pool_3x3":
            return nn.AvgPool2d(3, stride, 1, count_include_pad=False)
        case "conv_1x1":
            return relu_conv_bn(channels, channels, 1, stride)
        case "conv_3x3":
            return nn.Sequential(
                relu_conv_bn(channels, inner),
                relu_conv_bn(inner, inner, 3, stride),
                relu_conv_bn(inner, channels),
            )
        case "conv_1x7_7x1":
            return nn.Sequential(
                relu_conv_bn(channels, inner),
                relu_conv_bn(inner, inner, (1, 7)),
                relu_conv_bn(inner, inner, (7, 1)),
                relu_conv_bn(inner, channels),
            )
    raise ValueError(kind)


class Cell(nn.Module):
    """`before` and `last` are the channels of the two inputs; `halved`: whether the cell before reduced."""

    def __init__(self, before: int, last: int, channels: int, reduces: bool, halved: bool) -> None:
        super().__init__()
        self.steps = REDUCTION if reduces else NORMAL
        self.joined = REDUCTION_JOINED if reduces else NORMAL_JOINED
        self.reduce1 = relu_conv_bn(last, channels)
        if halved:
            self.reduce2: nn.Module = FactorizedReduce(before, channels)
        elif before != channels:
            self.reduce2 = relu_conv_bn(before, channels)
        else:
            self.reduce2 = nn.Identity()
        self.operations = nn.ModuleList(
            operation(kind, channels, 2 if reduces and source < 2 else 1) for source, kind in self.steps
        )

    def forward(self, before: Tensor, last: Tensor) -> Tensor:
        states = [self.reduce1(last), self.reduce2(before)]
        for i in range(0, len(self.steps), 2):
            first, second = (self.operations[j](states[self.steps[j][0]]) for j in (i, i + 1))
            states.append(first + second)
        return torch.cat([states[i] for i in self.joined], dim=1)


class AmoebaNetD(nn.Module):
    """Images of (batch, 3, 224, 224) to (batch, 1000)."""

    def __init__(self, cells: int = 18, filters: int = 256, classes: int = 1000) -> None:
        super().__init__()
        channels = filters // 4
        self.stem = nn.Sequential(
            nn.ReLU(), nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels)
        )
        group = [False] * (cells // 3)
        before = last = channels
        halved = False
        self.cells = nn.ModuleList()
        for reduces in (True, True, *group, True, *group, True, *group):
            if reduces:
                channels *= 2
            self.cells.append(Cell(before, last, channels, reduces, halved))
            before, last = last, channels * len(REDUCTION_JOINED if reduces else NORMAL_JOINED)
            halved = reduces
        self.pool = nn.AvgPool2d(7)
        self.classifier = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        before = last = self.stem(x)
        for cell in self.cells:
            before, last = last, cell(before, last)
        return self.classifier(self.pool(last).flatten(1))
