"""MobileNet (Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision
Applications").

Its Table 1 at width 1.0: a convolution, thirteen depthwise separable ones, the mean of the map, a classifier;
batch normalisation and ReLU after every convolution. Windows are padded alike on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

SEPARABLE: Sequence[tuple[int, int]] = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip
"""Output channels and stride; the stride is the depthwise convolution's."""


def conv_bn_relu(source: int, out: int, kernel: int, stride: int, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(source, out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out),
        nn.ReLU(),
    )


class MobileNetV1(nn.Module):
    """Images of (batch, 3, height, width) to (batch, 1000)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        channels = 32
        self.stem = conv_bn_relu(3, channels, 3, 2)
        self.blocks = nn.ModuleList()
        for out, stride in SEPARABLE:
            self.blocks.append(
                nn.Sequential(
                    conv_bn_relu(channels, channels, 3, stride, groups=channels),
                    conv_bn_relu(channels, out, 1, 1),
                )
            )
            channels = out
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.pool(x).flatten(1))
