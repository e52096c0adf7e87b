"""ResNet for CIFAR-10 (He et al., "Deep Residual Learning for Image Recognition", section 4.2).

6n + 2 layers; n = 200 gives ResNet-1202: a convolution, three stages of 200 blocks of two 3x3 convolutions at
32x32, 16x16 and 8x8 pixels with 16, 32 and 64 channels, the mean of the map, a classifier. Where a stage
begins with other sizes the shortcut is a 1x1 convolution of stride 2 (the paper's option B); the paper's own
CIFAR networks take every second pixel and fill the channels up with zeros (option A).
"""

from __future__ import annotations

from torch import Tensor, nn


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, source: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(source, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if source != out:
            self.shortcut = nn.Sequential(nn.Conv2d(source, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + self.shortcut(x))


class CifarResNet(nn.Module):
    """Images of (batch, 3, height, width), 32x32 in CIFAR, to (batch, 10)."""

    def __init__(self, blocks: int = 200, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.stages = nn.ModuleList()
        source = 16
        for out, stride in ((16, 1), (32, 2), (64, 2)):
            stage = [Block(source if i == 0 else out, out, stride if i == 0 else 1) for i in range(blocks)]
            self.stages.append(nn.ModuleList(stage))
            source = out
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(source, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for stage in self.stages:
            for block in stage:
                x = block(x)
        return self.classifier(self.pool(x).flatten(1))
