"""The kernel of TRANSPOSE_CONV: for each output place, the taps at which a pixel of the input lies."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.microcontroller.int8.model import Pair
from onchip.microcontroller.int8.transpose_conv import TransposeConv
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernels.elements import packed
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["transpose_conv_use"]

HEAD, OF_CHANNEL = 4, 3
"""Words in front of the channels' factors, and of each: bias, multiplier, shift."""


@dataclass(frozen=True, kw_only=True)
class TransposeConvShape:
    """The parameters that a kernel is specialised on; the map has `size` rows and columns."""

    channels: int
    outputs: int
    size: Pair
    kernel: Pair
    stride: Pair
    before: Pair


def transpose_conv_use(layer: TransposeConv) -> OwnUse:
    """Return the kernel of a layer."""
    words = [layer.input_offset, layer.output_offset, layer.low, layer.high]
    for bias, multiplier, shift in zip(layer.bias, layer.multiplier, layer.shift, strict=True):
        words += [int(bias), int(multiplier), int(shift)]
    outputs, down, across, channels = layer.weights.shape
    shape = TransposeConvShape(
        channels=channels,
        outputs=outputs,
        size=layer.input_shapes[0][1:3],
        kernel=(down, across),
        stride=layer.stride,
        before=layer.before,
    )
    return OwnUse("transpose_conv", _kernel, shape, words + packed(layer.weights))


def _kernel(name: str, shape: TransposeConvShape) -> Function:
    k = Kernel(name, f"Transposed convolution to {shape.outputs} channels: pixels [x0, x1) of a row.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    names = ("input_offset", "output_offset", "low", "high")
    offset, output_offset, low, high = (k.constant(weights, i, name) for i, name in enumerate(names))
    (rows, columns), (taps_down, taps_across) = shape.size, shape.kernel
    (down, across), (top, left) = shape.stride, shape.before
    map_ = k.let("map", k.line(lines, 0))
    begin = 4 * (HEAD + OF_CHANNEL * shape.outputs)
    for x in k.loop(x0, x1, name="x"):
        for o in k.loop(0, shape.outputs, name="o"):
            factors = k.let("factors", o * OF_CHANNEL + HEAD)
            total = k.RegAlloc("total", k.constant(weights, factors, "bias"))
            for ky in k.loop(0, taps_down, name="ky"):
                v = k.let("v", y + top - ky)
                with k.when((v >= 0) & (v < rows * down) & (v % down).equals(0)):
                    for kx in k.loop(0, taps_across, name="kx"):
                        u = k.let("u", x + left - kx)
                        with k.when((u >= 0) & (u < columns * across) & (u % across).equals(0)):
                            pixel = k.let(
                                "pixel", map_ + (v // down * columns + u // across) * shape.channels
                            )
                            tap = ((o * taps_down + ky) * taps_across + kx) * shape.channels
                            w = k.let("tap", tap + begin)
                            for c in k.loop(0, shape.channels, name="c"):
                                byte = k.RAMLoad(pixel, c, Kind.BYTE, name="byte") + offset
                                k.set(total, total + byte * k.constant_byte(weights, w + c))
            multiplier = k.constant(weights, factors + 1, "multiplier")
            scaled = call("scaled", total, multiplier, k.constant(weights, factors + 2, "shift"))
            made = k.let("made", scaled + output_offset)
            k.RAMStore(out, x * shape.outputs + o, k.least(k.most(made, low), high))
    return k.finish()
