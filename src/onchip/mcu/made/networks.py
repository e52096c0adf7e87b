"""The topologies of published int8 networks, as compact tables of our own; weights come from a seed.

MLPerf Tiny's four (image classification, keyword spotting, visual wake words, anomaly detection) and two of
MCUNet's networks, with the operators that their converters leave: explicit padding, a transpose in front of
the last means, floats at the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onchip.errors import ModelError
from onchip.mcu.made.builder import Builder, Map

__all__ = ["NAMES", "made_model"]

PREFIX = "made:"

Block = tuple[int, int, int, int]
"""An inverted bottleneck: channels inside, kernel, stride, channels made."""

_MCUNET_VWW: tuple[Block, ...] = (
    (48, 3, 2, 16), (48, 3, 1, 16), (48, 3, 1, 16),
    (48, 7, 2, 24), (144, 3, 1, 24), (120, 5, 1, 24),
    (144, 7, 2, 40), (240, 7, 1, 40), (240, 3, 1, 48), (192, 3, 1, 48),
    (240, 5, 2, 96), (480, 3, 1, 96), (384, 3, 1, 96), (288, 7, 1, 160),
)  # fmt: skip

_MCUNET_320KB: tuple[Block, ...] = (
    (24, 7, 2, 16), (80, 3, 1, 16), (80, 7, 1, 16), (64, 5, 1, 16),
    (80, 5, 2, 24), (120, 5, 1, 24), (120, 5, 1, 24),
    (120, 3, 2, 40), (240, 7, 1, 40), (160, 5, 1, 40), (200, 5, 1, 48), (240, 7, 1, 48), (240, 3, 1, 48),
    (288, 3, 2, 96), (480, 7, 1, 96), (384, 3, 1, 96), (480, 7, 1, 160),
)  # fmt: skip

_VWW_96: tuple[tuple[int, int], ...] = (
    (1, 16), (2, 32), (1, 32), (2, 64), (1, 64), (2, 128), (1, 128), (1, 128), (1, 128), (1, 128), (1, 128),
    (2, 256), (1, 256),
)  # fmt: skip
"""MobileNet v1 of a quarter of the channels: stride of the depthwise layer, channels of the pointwise one."""


def mcunet_vww(b: Builder) -> bytes:
    """MCUNet for visual wake words at 5 frames a second, 80 x 80; explicit padding where the stride is 2."""
    x = b.input((1, 80, 80, 3), 2 / 255, floats=True)
    x = b.conv(b.pad(x, (1, 1, 1, 1)), 16, 3, 2, padding="VALID", activation="RELU6")
    x = b.conv(b.depthwise(x, 3, activation="RELU6"), 8)
    for inside, kernel, stride, channels in _MCUNET_VWW:
        y = b.conv(x, inside, activation="RELU6")
        if stride > 1:
            around = kernel // 2
            y = b.pad(y, (around,) * 4)
        y = b.depthwise(y, kernel, stride, padding="VALID" if stride > 1 else "SAME", activation="RELU6")
        x = _residual(b, x, b.conv(y, channels), stride)
    return b.file(b.fully_connected(b.mean_channels_first(x), 2), floats=True)


def mcunet_320kb(b: Builder) -> bytes:
    """MCUNet for ImageNet in 320 KB, 176 x 176; all padding is explicit, some scales of weights negative."""

    def padded(x: Map, kernel: int) -> Map:
        return b.pad(x, (kernel // 2,) * 4)

    def pointwise(x: Map, channels: int) -> Map:
        return b.conv(padded(x, 1), channels, padding="VALID")

    x = b.input((1, 176, 176, 3), 1 / 127)
    x = b.conv(padded(x, 3), 16, 3, 2, padding="VALID", activation="RELU6", negative=0.05)
    x = pointwise(b.depthwise(padded(x, 3), 3, padding="VALID", activation="RELU6"), 8)
    for inside, kernel, stride, channels in _MCUNET_320KB:
        y = b.conv(padded(x, 1), inside, padding="VALID", activation="RELU6", negative=0.03)
        y = b.depthwise(padded(y, kernel), kernel, stride, padding="VALID", activation="RELU6")
        x = _residual(b, x, pointwise(y, channels), stride)
    x = b.conv(b.average_pool(x, 6), 1000, padding="VALID")
    return b.file(b.reshape(x, (1, 1000)))


def _residual(b: Builder, x: Map, y: Map, stride: int) -> Map:
    """The block's input added where it fits."""
    return b.add(y, x) if stride == 1 and x.shape == y.shape else y


def vww_96(b: Builder) -> bytes:
    """MLPerf Tiny's visual wake words: MobileNet v1 of a quarter, 96 x 96."""
    x = b.conv(b.input((1, 96, 96, 3), 1 / 255, -128), 8, 3, 2, activation="RELU")
    for stride, channels in _VWW_96:
        x = b.conv(b.depthwise(x, 3, stride, activation="RELU"), channels, activation="RELU")
    return _classified(b, b.average_pool(x, 3), 2)


def resnet8(b: Builder) -> bytes:
    """MLPerf Tiny's image classification: a residual network of 8 layers, 32 x 32."""
    x = b.conv(b.input((1, 32, 32, 3), 1.0, -128), 16, 3, activation="RELU")
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = b.conv(b.conv(x, channels, 3, stride, activation="RELU"), channels, 3)
        if stride > 1:
            x = b.conv(x, channels, 1, stride)
        x = b.add(x, y, activation="RELU")
    return _classified(b, b.average_pool(x, 8), 10)


def kws(b: Builder) -> bytes:
    """MLPerf Tiny's keyword spotting: a network of depthwise and pointwise layers over 49 x 10 features."""
    x = b.conv(b.input((1, 49, 10, 1), 0.6, 83), 64, (10, 4), 2, activation="RELU")
    for _ in range(4):
        x = b.conv(b.depthwise(x, 3, activation="RELU"), 64, activation="RELU")
    return _classified(b, b.average_pool(x, (25, 5)), 12)


def _classified(b: Builder, x: Map, classes: int) -> bytes:
    return b.file(b.softmax(b.fully_connected(b.reshape(x, (1, x.shape[3])), classes)))


def ad01(b: Builder) -> bytes:
    """MLPerf Tiny's anomaly detection: an autoencoder of ten matrices over 640 features."""
    x = b.input((1, 640), 0.4, 89)
    for channels in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = b.fully_connected(x, channels, activation="RELU")
    return b.file(b.fully_connected(x, 640))


_NETWORKS: Mapping[str, Callable[[Builder], bytes]] = {
    "mcunet_vww": mcunet_vww,
    "mcunet_320kb": mcunet_320kb,
    "vww_96": vww_96,
    "resnet8": resnet8,
    "kws": kws,
    "ad01": ad01,
}

NAMES = tuple(PREFIX + name for name in _NETWORKS)
"""What `made_model` makes."""


def made_model(name: str, seed: int = 0) -> bytes:
    """The `.tflite` file of a network of ours, `made:NAME` or `NAME`; equal seeds give equal bytes.

    Raises `ModelError` for a name that is none of `NAMES`.
    """
    make = _NETWORKS.get(name.removeprefix(PREFIX))
    if make is None:
        raise ModelError(f"is no network of ours; there are {', '.join(NAMES)}", where=name)
    return make(Builder(seed))
