"""The kernels of sums of products of 16-bit numbers: convolutions of any kind, and transposed ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Pair
from onchip.microcontroller.int8.sixteen.sums import Sums16, TransposeConv16
from onchip.microcontroller.int8.sixteen.values import reduced
from onchip.microcontroller.kernel_language import Function, Kernel
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.elements import packed
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse
from onchip.microcontroller.kernels.sixteen.short_sums import is_short, shape_of, short_sums, short_words

__all__ = ["sums16_use"]

HEAD, OF_CHANNEL = 2, 4
"""Words in front of the channels' factors, and of each: the bias in two, multiplier, shift."""


@dataclass(frozen=True, kw_only=True)
class SumsShape:
    """The parameters that a kernel is specialised on; `size` are rows and columns of the input."""

    channels: int
    outputs: int
    size: Pair
    kernel: Pair
    stride: Pair
    before: Pair
    dilation: Pair = (1, 1)
    groups: int = 1
    narrow: bool = False


def _words(layer: Sums16 | TransposeConv16) -> list[int]:
    words = [layer.low, layer.high]
    for bias, multiplier, shift in zip(layer.bias, layer.multiplier, layer.shift, strict=True):
        factor = (
            [int(multiplier), int(shift)] if layer.narrow else [reduced(int(multiplier)), 15 - int(shift)]
        )
        words += [int(bias) & 0xFFFFFFFF, int(bias) >> 32, *factor]
    return words + packed(layer.weights)


def _shape(layer: Sums16 | TransposeConv16, before: Pair, dilation: Pair, groups: int) -> SumsShape:
    outputs, down, across, _ = layer.weights.shape
    _, rows, columns, seen = layer.input_shapes[0]
    return SumsShape(
        channels=seen // 2,
        outputs=outputs,
        size=(rows, columns),
        kernel=(down, across),
        stride=layer.stride,
        before=before,
        dilation=dilation,
        groups=groups,
        narrow=layer.narrow,
    )


def sums16_use(layer: Sums16 | TransposeConv16, forms: Forms = "packed") -> OwnUse:
    """Return the kernel of a layer: in 32 bits and four channels at a time where that holds its sums."""
    by_forms = partial(sums16_use, layer)
    if is_short(layer):
        short = shape_of(layer, forms)
        return OwnUse("short_sums16", short_sums, short, short_words(layer, short), by_forms=by_forms)
    if isinstance(layer, TransposeConv16):
        shape = _shape(layer, layer.before, (1, 1), 1)
        return OwnUse("transpose_conv16", _transposed, shape, _words(layer), by_forms=by_forms)
    shape = _shape(layer, layer.padding[:2], layer.dilation, layer.groups)
    return OwnUse("sums16", _sums, shape, _words(layer), by_forms=by_forms)


class _Sum:
    """The sum of a channel: 64 bits, or 32 where it is narrow."""

    def __init__(self, k: Kernel, shape: SumsShape, weights: Var, channel: Expr) -> None:
        self.k, self.shape, self.weights = k, shape, weights
        self.at = k.let("factors", channel * OF_CHANNEL + HEAD)
        low = k.constant(weights, self.at, "bias")
        if shape.narrow:
            self.total = k.RegAlloc("total", low)
        else:
            high = k.constant(weights, self.at + 1, "bias_high")
            self.total = k.RegAlloc("total", call("wide_of", low, high))

    def add(self, number: Expr, weight: Expr) -> None:
        self.k.set(self.total, call("mla" if self.shape.narrow else "mla_wide", number, weight, self.total))

    def put(self, out: Expr, index: Expr, low: Expr, high: Expr) -> None:
        k = self.k
        multiplier = k.constant(self.weights, self.at + 2, "multiplier")
        shift = k.constant(self.weights, self.at + 3, "shift")
        name = "scaled" if self.shape.narrow else "scaled_wide"
        made = k.let("made", call(name, self.total, multiplier, shift))
        put_number(k, out, index, k.least(k.most(made, low), high))


def _kernel(
    name: str, says: str, shape: SumsShape, taps: Callable[[Kernel, _Sum, Expr, Expr, Expr, Var], None]
) -> Function:
    k = Kernel(name, f"{says} of 16-bit numbers to {shape.outputs} channels: pixels [x0, x1) of a row.")
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    low, high = (k.constant(weights, i, name) for i, name in enumerate(("low", "high")))
    source = k.let("map", k.line(lines, 0))
    for x in k.loop(x0, x1, name="x"):
        for o in k.loop(0, shape.outputs, name="o"):
            total = _Sum(k, shape, weights, o)
            taps(k, total, source, x, y, _as_var(k, "channel", o))
            total.put(out, x * shape.outputs + o, low, high)
    return k.finish()


def _as_var(k: Kernel, name: str, value: Expr) -> Var:
    return value if isinstance(value, Var) else k.let(name, value)


def _sums(name: str, shape: SumsShape) -> Function:
    (rows, columns), (down, across) = shape.size, shape.kernel
    deep, wide = shape.channels // shape.groups, shape.outputs // shape.groups
    begin = 4 * (HEAD + OF_CHANNEL * shape.outputs)

    def taps(k: Kernel, total: _Sum, source: Expr, x: Expr, y: Expr, o: Var) -> None:
        first = k.let("first", o // wide * deep)
        for ky in k.loop(0, down, name="ky"):
            v = k.let("v", y * shape.stride[0] - shape.before[0] + ky * shape.dilation[0])
            with k.when((v >= 0) & (v < rows)):
                for kx in k.loop(0, across, name="kx"):
                    u = k.let("u", x * shape.stride[1] - shape.before[1] + kx * shape.dilation[1])
                    with k.when((u >= 0) & (u < columns)):
                        place = (v * columns + u) * shape.channels + first
                        pixel = k.let("pixel", source + place * 2)
                        w = k.let("tap", ((o * down + ky) * across + kx) * deep + begin)
                        for c in k.loop(0, deep, name="c"):
                            total.add(number_at(k, pixel, c), k.constant_byte(total.weights, w + c))

    return _kernel(name, "Sums of products", shape, taps)


def _transposed(name: str, shape: SumsShape) -> Function:
    (rows, columns), (taps_down, taps_across) = shape.size, shape.kernel
    (down, across), (top, left) = shape.stride, shape.before
    begin = 4 * (HEAD + OF_CHANNEL * shape.outputs)

    def taps(k: Kernel, total: _Sum, source: Expr, x: Expr, y: Expr, o: Var) -> None:
        for ky in k.loop(0, taps_down, name="ky"):
            v = k.let("v", y + top - ky)
            with k.when((v >= 0) & (v < rows * down) & (v % down).equals(0)):
                for kx in k.loop(0, taps_across, name="kx"):
                    u = k.let("u", x + left - kx)
                    with k.when((u >= 0) & (u < columns * across) & (u % across).equals(0)):
                        place = (v // down * columns + u // across) * shape.channels
                        pixel = k.let("pixel", source + place * 2)
                        w = k.let("tap", ((o * taps_down + ky) * taps_across + kx) * shape.channels + begin)
                        for c in k.loop(0, shape.channels, name="c"):
                            total.add(number_at(k, pixel, c), k.constant_byte(total.weights, w + c))

    return _kernel(name, "Transposed convolution", shape, taps)
