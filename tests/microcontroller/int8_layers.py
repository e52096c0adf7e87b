"""Random small int8 networks of one layer, of every kind that is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.made import Builder, Map
from onchip.microcontroller.made.builder import Activation, Padding

__all__ = ["AGREED", "KINDS"]

Draw = st.DataObject

ACTIVATIONS: tuple[Activation, ...] = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")
PADDINGS: tuple[Padding, ...] = ("SAME", "VALID")


def small(data: Draw, least: int = 1, most: int = 9) -> int:
    return data.draw(st.integers(least, most))


def image(b: Builder, data: Draw, channels: int | None = None, least: int = 1) -> Map:
    shape = (1, small(data, least), small(data, least), small(data) if channels is None else channels)
    scale = data.draw(st.sampled_from((1 / 128, 0.05, 0.3, 2e-4)))
    return b.input(shape, scale, data.draw(st.integers(-128, 127)))


def window(data: Draw, x: Map) -> tuple[tuple[int, int], tuple[int, int], Padding]:
    kernel = (small(data, 1, min(5, x.shape[1])), small(data, 1, min(5, x.shape[2])))
    return kernel, (small(data, 1, 3), small(data, 1, 3)), data.draw(st.sampled_from(PADDINGS))


def conv(b: Builder, data: Draw) -> Map:
    groups = data.draw(st.sampled_from((1, 1, 2, 3)))
    x = image(b, data, groups * small(data, 1, 6))
    kernel, stride, padding = window(data, x)
    dilation = 1
    if stride == (1, 1) and padding == "SAME":
        dilation = small(data, 1, 3)
    return b.conv(
        x,
        groups * small(data, 1, 6),
        kernel,
        stride,
        padding=padding,
        activation=data.draw(st.sampled_from(ACTIVATIONS)),
        dilation=dilation,
        groups=groups,
        per_tensor=data.draw(st.booleans()),
        negative=data.draw(st.sampled_from((0.0, 0.5))),
    )


def depthwise(b: Builder, data: Draw) -> Map:
    x = image(b, data)
    kernel, _, padding = window(data, x)
    step = small(data, 1, 3)
    dilation = small(data, 1, 3) if step == 1 and padding == "SAME" else 1
    return b.depthwise(
        x,
        kernel,
        step,
        padding=padding,
        activation=data.draw(st.sampled_from(ACTIVATIONS)),
        dilation=dilation,
        multiplier=data.draw(st.sampled_from((1, 1, 2, 3))),
        per_tensor=data.draw(st.booleans()),
    )


def fully_connected(b: Builder, data: Draw) -> Map:
    x = b.input((data.draw(st.sampled_from((1, 1, 3))), small(data, 1, 40)), 0.02, small(data, -128, 127))
    activation = data.draw(st.sampled_from(ACTIVATIONS))
    return b.fully_connected(
        x, small(data, 1, 20), activation=activation, per_tensor=data.draw(st.booleans())
    )


def second(b: Builder, data: Draw, x: Map) -> Map:
    """Another operand: as large, one pixel, one element, a constant, or the same."""
    pixel = (1, 1, 1, x.shape[3])
    match data.draw(st.integers(0, 5)):
        case 0:
            return b.input(pixel, 0.02, small(data, -128, 127))
        case 1:
            return b.constant(pixel)
        case 2:
            return b.constant((1, 1, 1, 1))
        case 3:
            return b.constant(x.shape)
        case 4:
            return x
    return b.input(x.shape, data.draw(st.sampled_from((0.01, 0.4))), small(data, -128, 127))


def add(b: Builder, data: Draw) -> Map:
    x = image(b, data)
    operands = [x, second(b, data, x)]
    return b.add(*data.draw(st.permutations(operands)), activation=data.draw(st.sampled_from(ACTIVATIONS)))


def mul(b: Builder, data: Draw) -> Map:
    x = image(b, data)
    operands = [x, second(b, data, x)]
    return b.mul(*data.draw(st.permutations(operands)), activation=data.draw(st.sampled_from(ACTIVATIONS)))


def average_pool(b: Builder, data: Draw) -> Map:
    x = image(b, data)
    kernel, stride, padding = window(data, x)
    return b.average_pool(x, kernel, stride, padding=padding)


def max_pool(b: Builder, data: Draw) -> Map:
    x = image(b, data)
    kernel, stride, padding = window(data, x)
    return b.max_pool(x, kernel, stride, padding=padding)


def mean(b: Builder, data: Draw) -> Map:
    x = image(b, data, least=2)
    axes = data.draw(st.sampled_from(((1, 2), (2, 1), (1,), (2,))))
    scale = data.draw(st.sampled_from((None, Scale(x.scale.scale * 0.7, 3))))
    return b.mean(x, axes, keep=data.draw(st.booleans()), scale=scale)


def mean_channels_first(b: Builder, data: Draw) -> Map:
    return b.mean_channels_first(image(b, data, least=2))


def pad(b: Builder, data: Draw) -> Map:
    amounts = (small(data, 0, 2), small(data, 0, 2), small(data, 0, 2), small(data, 1, 2))
    return b.pad(image(b, data), amounts, (small(data, 0, 1), small(data, 0, 2)))


def resize_nearest(b: Builder, data: Draw) -> Map:
    corners, centers = data.draw(st.sampled_from(((False, False), (True, False), (False, True))))
    return b.resize(
        image(b, data),
        (small(data), small(data)),
        "nearest",
        align_corners=corners,
        half_pixel_centers=centers,
    )


def resize_bilinear(b: Builder, data: Draw) -> Map:
    corners, centers = data.draw(st.sampled_from(((False, False), (True, False), (False, True))))
    return b.resize(
        image(b, data),
        (small(data), small(data)),
        "bilinear",
        align_corners=corners,
        half_pixel_centers=centers,
    )


def concat(b: Builder, data: Draw) -> Map:
    x = image(b, data)
    axis = data.draw(st.sampled_from((1, 2, 3, 3)))
    shape = tuple(small(data) if i == axis else n for i, n in enumerate(x.shape))
    return b.concat(x, b.input(shape, x.scale.scale, x.scale.zero_point), axis=axis)


def quantize(b: Builder, data: Draw) -> Map:
    ratio = data.draw(st.sampled_from((0.25, 0.9, 1.0, 1.7, 40.0)))
    x = image(b, data)
    return b.quantize(x, Scale(x.scale.scale * ratio, -x.scale.zero_point - 1))


def softmax(b: Builder, data: Draw) -> Map:
    shape = (small(data, 1, 3), small(data, 1, 30))
    x = b.input(shape, data.draw(st.sampled_from((0.001, 0.03, 0.15, 3.0))), small(data, -128, 127))
    return b.softmax(x, data.draw(st.sampled_from((1.0, 0.4))))


def logistic(b: Builder, data: Draw) -> Map:
    return b.logistic(image(b, data))


def hard_swish(b: Builder, data: Draw) -> Map:
    return b.hard_swish(image(b, data))


def prelu(b: Builder, data: Draw) -> Map:
    return b.prelu(image(b, data))


KINDS: Mapping[str, Callable[[Builder, Draw], Map]] = {
    make.__name__: make
    for make in (
        conv, depthwise, fully_connected, add, mul, average_pool, max_pool, mean, mean_channels_first, pad,
        resize_nearest, resize_bilinear, concat, quantize, softmax, logistic, hard_swish, prelu,
    )
}  # fmt: skip

AGREED = frozenset(KINDS) - {"fully_connected", "mul", "prelu", "logistic"}
"""The kinds that both interpreters compute alike (docs/mcu-reference.md)."""
