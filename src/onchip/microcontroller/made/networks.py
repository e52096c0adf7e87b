"""The topologies of published int8 networks, as compact tables of our own; weights come from a seed.

MLPerf Tiny's four (image classification, keyword spotting, visual wake words, anomaly detection), two of
MCUNet's networks, and MobileNet v2 in a third of its width, rounded and as msf-CNN has it; with the operators
that their converters leave: explicit padding, a transpose in front of the last means, floats at the ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onchip.base.errors import ModelError
from onchip.microcontroller.made.builder import Builder, Map

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


_MOBILENET_V2: tuple[tuple[int, int, int, int], ...] = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip
"""MobileNet v2: expansion, channels of the full width, blocks, stride of the first block."""


def mobilenet_v2(b: Builder) -> bytes:
    """MobileNet v2 of width 0.35, 144 x 144, channels in multiples of 8 as its authors round them."""

    def width(channels: int) -> int:
        wanted = channels * 0.35
        rounded = max(8, int(wanted + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * wanted else rounded

    x = b.conv(b.input((1, 144, 144, 3), 2 / 255), width(32), 3, 2, activation="RELU6")
    x = _inverted(b, x, width, residuals=True)
    x = b.mean(b.conv(x, 1280, activation="RELU6"))
    return b.file(b.fully_connected(x, 1000))


def mobilenet_v2_msfcnn(b: Builder) -> bytes:
    """Build the same as msf-CNN (Huang and Baccelli, 2025) defines it, with the pool that it leaves out.

    No channel is rounded (11, 5, 8, 11, 22, 33, 56, 112, 448), no block's input is added to its output, and
    the first block has a 1 x 1 convolution too. msf-CNN's definition ends with the last convolution, whose
    map its bytes do not count; here the mean over it ends the network, so that nothing is left uncounted.
    """

    def width(channels: int) -> int:
        return channels * 35 // 100

    x = b.conv(b.input((1, 144, 144, 3), 2 / 255), width(32), 3, 2, activation="RELU6")
    x = _inverted(b, x, width, residuals=False, always_expand=True)
    return b.file(b.mean(b.conv(x, width(1280), activation="RELU6")))


def _inverted(
    b: Builder, x: Map, width: Callable[[int], int], *, residuals: bool, always_expand: bool = False
) -> Map:
    """MobileNet v2's blocks."""
    for expansion, channels, blocks, stride in _MOBILENET_V2:
        for i in range(blocks):
            step = stride if i == 0 else 1
            y = x
            if always_expand or expansion > 1:
                y = b.conv(x, x.shape[3] * expansion, activation="RELU6")
            y = b.conv(b.depthwise(y, 3, step, activation="RELU6"), width(channels))
            x = _residual(b, x, y, step) if residuals else y
    return x


def _residual(b: Builder, x: Map, y: Map, stride: int) -> Map:
    """Add the block's input where it fits."""
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
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v2_msfcnn": mobilenet_v2_msfcnn,
    "vww_96": vww_96,
    "resnet8": resnet8,
    "kws": kws,
    "ad01": ad01,
}

NAMES = tuple(PREFIX + name for name in _NETWORKS)
"""The builder of each network of `made_model`."""


def made_model(name: str, seed: int = 0) -> bytes:
    """Return the `.tflite` file of a made network, `made:NAME` or `NAME`; equal seeds give equal bytes.

    Raises `ModelError` for a name that is none of `NAMES`.
    """
    make = _NETWORKS.get(name.removeprefix(PREFIX))
    if make is None:
        raise ModelError(f"is no network of ours; there are {', '.join(NAMES)}", where=name)
    return make(Builder(seed))
