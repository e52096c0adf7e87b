"""The kernel of pools of 16-bit numbers."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.microcontroller.int8.model import Pair
from onchip.microcontroller.int8.sixteen.pools import Pool16
from onchip.microcontroller.int8.sixteen.values import LOWEST
from onchip.microcontroller.kernel_language import Function, Kernel
from onchip.microcontroller.kernels.numbers import number_at, put_number
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["pool16_use"]


@dataclass(frozen=True, kw_only=True)
class PoolShape:
    """The parameters that a kernel is specialised on; `size` are rows and columns of the input."""

    channels: int
    size: Pair
    kernel: Pair
    stride: Pair
    before: Pair
    greatest: bool = False


def pool16_use(layer: Pool16) -> OwnUse:
    """Return the kernel of a layer."""
    _, rows, columns, wide = layer.input_shapes[0]
    shape = PoolShape(
        greatest=layer.greatest,
        channels=wide // 2,
        size=(rows, columns),
        kernel=layer.kernel,
        stride=layer.stride,
        before=layer.padding[:2],
    )
    return OwnUse("pool16", _pool, shape, [layer.low, layer.high])


def _pool(name: str, shape: PoolShape) -> Function:
    what = "greatest" if shape.greatest else "mean"
    k = Kernel(
        name, f"The {what} of windows of 16-bit numbers, {shape.channels} channels: pixels [x0, x1) of a row."
    )
    lines, out, x0, x1, y = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1"), k.number("y")
    weights = k.flash("weights")
    low, high = (k.constant(weights, i, name) for i, name in enumerate(("low", "high")))
    (rows, columns), source = shape.size, k.let("map", k.line(lines, 0))
    top = k.let("top", y * shape.stride[0] - shape.before[0])
    v0, v1 = k.let("v0", k.most(top, 0)), k.let("v1", k.least(top + shape.kernel[0], rows))
    for x in k.loop(x0, x1, name="x"):
        left = k.let("left", x * shape.stride[1] - shape.before[1])
        u0, u1 = k.let("u0", k.most(left, 0)), k.let("u1", k.least(left + shape.kernel[1], columns))
        count = k.let("count", (v1 - v0) * (u1 - u0))
        for c in k.loop(0, shape.channels, name="c"):
            total = k.RegAlloc("total", LOWEST if shape.greatest else 0)
            for v in k.loop(v0, v1, name="v"):
                for u in k.loop(u0, u1, name="u"):
                    number = number_at(k, source, (v * columns + u) * shape.channels + c)
                    k.set(total, k.most(total, number) if shape.greatest else total + number)
            if not shape.greatest:
                with k.when(total < 0):
                    k.set(total, (total - count // 2) // count)
                with k.otherwise():
                    k.set(total, (total + count // 2) // count)
            put_number(k, out, x * shape.channels + c, k.least(k.most(total, low), high))
    return k.finish()
