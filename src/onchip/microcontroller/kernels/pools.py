"""Pools: the mean, the scaled mean or the greatest of a window, channel by channel.

A pool over a whole map may also take each line as it is made: `add_line` gathers it into one integer a
channel, `finish_sums` makes their bytes, and the map is never held. Otherwise a pixel is made in the
workspace and then copied: the output may overlap everything that no later pixel reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import AveragePool, MaxPool, Mean
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.copies import copied, copied_by_vectors
from onchip.microcontroller.kernels.elements_vector import By, by_shift
from onchip.microcontroller.kernels.pools_vector import (
    LEAST_CHANNELS,
    MOST_PLACES,
    Finish,
    averaging,
    gathered_line,
    pixel,
)

__all__ = ["PoolShape", "add_line", "finish_sums", "pool", "pool_shape", "pool_words"]

Pooling = AveragePool | MaxPool | Mean
LEAST, FOUR = -(1 << 31), 4


@dataclass(frozen=True, kw_only=True)
class PoolShape:
    """The parameters that a kernel is specialised on."""

    does: Literal["average", "greatest", "mean"]
    channels: int
    kernel: tuple[int, int]
    """Lines, and taps along a line."""
    stride: int = 1
    before: int = 0
    exact: bool = False
    """For a scaled mean: true if its factor is above one, or its sums reach 2**30."""
    by: By | None = None
    """With vectors, how a scaled mean's factor scales."""
    forms: Forms = "packed"
    reverse: bool = False
    in_step: int = 0
    out_step: int = 0

    @property
    def vectors(self) -> bool:
        return self.forms == "vector" and self.channels >= LEAST_CHANNELS


def pool_shape(
    layer: Pooling,
    *,
    reverse: bool = False,
    columns: bool = False,
    in_step: int = 0,
    out_step: int = 0,
    forms: Forms = "packed",
) -> PoolShape:
    """Return the shape of the kernel that a layer needs."""
    along = 0 if columns else 1
    if isinstance(layer, Mean):
        sizes = [layer.input_shapes[0][axis] if axis in layer.axes else 1 for axis in (1, 2)]
        kernel, stride, before = (sizes[0], sizes[1]), (sizes[0], sizes[1])[along], 0
    else:
        kernel, stride, before = layer.kernel, layer.stride[along], layer.padding[along]
    vector = forms == "vector" and layer.output_shape[3] >= LEAST_CHANNELS
    return PoolShape(
        does="average"
        if isinstance(layer, AveragePool)
        else "mean"
        if isinstance(layer, Mean)
        else "greatest",
        channels=layer.output_shape[3],
        kernel=kernel[::-1] if columns else kernel,
        stride=stride,
        before=before,
        exact=isinstance(layer, Mean) and (layer.shift > 0 or layer.count * 256 >= 1 << 30),
        by=by_shift(layer.shift) if vector and isinstance(layer, Mean) else None,
        forms=forms,
        reverse=reverse,
        in_step=in_step,
        out_step=out_step,
    )


def pool_words(layer: Pooling) -> list[int]:
    """Return the constants: least and greatest byte, places of a whole window, and a mean's factors."""
    if isinstance(layer, Mean):
        shift = layer.shift if pool_shape(layer).exact else -layer.shift
        return [
            -128,
            127,
            layer.count,
            layer.input_offset * layer.count,
            layer.multiplier,
            shift,
            layer.output_offset,
        ]
    return [layer.low, layer.high, layer.kernel[0] * layer.kernel[1]]


class _Finish:
    """Makes the output byte from a window's gathered total."""

    def __init__(self, k: Kernel, shape: PoolShape, weights: Var) -> None:
        self.k, self.shape = k, shape
        names = ("low", "high", "count", "moved", "multiplier", "shift", "output_offset")
        known = names if shape.does == "mean" else names[:3]
        self.value = {name: k.constant(weights, i, name) for i, name in enumerate(known)}

    def byte(self, total: Expr, count: Expr) -> Expr:
        k, value = self.k, self.value
        y = k.RegAlloc("y", total)
        if self.shape.does == "average":
            half = k.let("half", count >> 1)
            with k.when(total > 0):
                k.set(y, (total + half) // count)
            with k.otherwise():
                k.set(y, (total - half) // count)
        elif self.shape.does == "mean":
            name = "scaled" if self.shape.exact else "scaled_down"
            scaled = call(name, total + value["moved"], value["multiplier"], value["shift"])
            k.set(y, scaled + value["output_offset"])
        return k.least(k.most(y, value["low"]), value["high"])

    def vectors(self, count: Expr) -> Finish | None:
        """Return what makes bytes of vectors of sums; None where the greatest needs nothing."""
        k, value = self.k, self.value
        low, high = value["low"], value["high"]
        if self.shape.does == "greatest":
            return None
        if self.shape.does == "average":
            return averaging(k, low, high, count)
        # Words hold a shift to the right, except where the factor is above one or the sums are large.
        shift = value["shift"] if self.shape.exact else k.let("shift_left", 0 - value["shift"])
        return Finish(
            k,
            low,
            high,
            by=self.shape.by,
            moved=value["moved"],
            multiplier=value["multiplier"],
            shift=shift,
            offset=value["output_offset"],
        )

    def more(self, total: Var, byte: Expr) -> None:
        """Add one byte of the window."""
        k = self.k
        k.set(total, k.most(total, byte) if self.shape.does == "greatest" else total + byte)


def pool(name: str, shape: PoolShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line from the window's input lines [first, last)."""
    lines_of, taps = shape.kernel
    k = Kernel(
        name,
        f"{shape.does} of {lines_of}x{taps} windows of {shape.channels} channels: pixels [x0, x1) of a line"
        + (", from the last." if shape.reverse else "."),
    )
    lines, out, x0, x1 = k.lines("lines"), k.output("out"), k.number("x0"), k.number("x1")
    first, last, width = k.number("first"), k.number("last"), k.number("width")
    patch, weights = k.output("patch"), k.flash("weights")
    finish = _Finish(k, shape, weights)
    step = shape.in_step or shape.channels
    for x in k.span(x0, x1, reverse=shape.reverse, name="x"):
        left = k.let("left", x * shape.stride - shape.before)
        begin = k.let("begin", k.most(left, 0))
        end = k.let("end", k.least(left + taps, width))
        count = k.let("places", (last - first) * (end - begin))
        o = k.let("o", out + x * (shape.out_step or shape.channels))

        def places(add: Callable[[Expr], None], begin: Expr = begin, end: Expr = end) -> None:
            for line in k.loop(first, last, name="line"):
                row = k.let("row", k.line(lines, line))
                for column in k.loop(begin, end, name="column"):
                    add(row + column * step)

        if shape.vectors and (shape.does == "greatest" or lines_of * taps <= MOST_PLACES):
            low, high = finish.value["low"], finish.value["high"]
            pixel(k, shape.channels, patch, places, finish.vectors(count), low, high)
            copied_by_vectors(k, patch, o, shape.channels)
            continue
        fours = 0
        if shape.forms in ("packed", "plain"):
            fours = shape.channels // FOUR * FOUR
            for c in k.loop(0, fours, FOUR, name="c") if fours else ():
                _four_channels(k, shape, finish, patch, places, c, count)
        for c in k.span(fours, shape.channels, reverse=shape.reverse, name="c"):
            total = k.RegAlloc("total", LEAST if shape.does == "greatest" else 0)
            for line in k.loop(first, last, name="line"):
                row = k.let("row", k.line(lines, line) + c)
                for column in k.loop(begin, end, name="column"):
                    finish.more(total, k.RAMLoad(row, column * step, Kind.BYTE, name="byte"))
            k.RAMStore(patch, c, finish.byte(total, count))
        copied(k, patch, o, shape.channels, reverse=shape.reverse)
    return k.finish()


def _four_channels(
    k: Kernel,
    shape: PoolShape,
    finish: _Finish,
    patch: Expr,
    places: Callable[[Callable[[Expr], None]], None],
    c: Expr,
    count: Expr,
) -> None:
    """Emit four channels of a pixel: from words, if they hold what is gathered, or each in a register."""
    packed = shape.forms == "packed"
    low, high = finish.value["low"], finish.value["high"]
    if packed and shape.does == "greatest":
        most = k.RegAlloc("most", call("four_bytes", -128))
        places(lambda at: k.set(most, call("most_bytes", most, k.RAMLoad(at, c, name="word"))))
        held = call("most_bytes", most, call("four_bytes", low))
        k.RAMStore(patch, c, call("least_bytes", held, call("four_bytes", high)), Kind.WORD)
        return
    if packed and prod(shape.kernel) <= MOST_PLACES:
        pairs = [k.RegAlloc(name, call("broadcast", 0)) for name in ("even", "odd")]

        def add_pairs(at: Expr) -> None:
            word = k.RAMLoad(at, c, name="word")
            for pair, widened in zip(pairs, ("widen_even_plus", "widen_odd_plus"), strict=True):
                k.set(pair, call(widened, pair, word))

        places(add_pairs)
        totals = [k.let("total", call(f"{half}_half", pair)) for half in ("low", "high") for pair in pairs]
    else:
        first = LEAST if shape.does == "greatest" else 0
        registers = [k.RegAlloc(f"total{i}", first) for i in range(FOUR)]

        def add_bytes(at: Expr) -> None:
            for i, total in enumerate(registers):
                finish.more(total, k.RAMLoad(at, c + i, Kind.BYTE, name="byte"))

        places(add_bytes)
        totals = registers
    for i, total in enumerate(totals):
        k.RAMStore(patch, c + i, finish.byte(total, count))


def add_line(name: str, shape: PoolShape) -> Function:
    """Return the kernel that gathers pixels [x0, x1) of a line into one integer a channel."""
    k = Kernel(name, f"Gathers pixels [x0, x1) of a line of {shape.channels} channels: {shape.does}.")
    lines, x0, x1, sums = k.lines("lines"), k.number("x0"), k.number("x1"), k.output("sums")
    greatest = shape.does == "greatest"
    step = shape.in_step or shape.channels
    done = 0
    if shape.vectors:
        done = gathered_line(k, shape.channels, sums, k.let("line", k.line(lines, 0)), x0, x1, step, greatest)
    for c in k.loop(done, shape.channels, name="c"):
        total = k.RegAlloc("total", k.RAMLoad(sums, c * 4, Kind.INT, name="before"))
        row = k.let("row", k.line(lines, 0) + c)
        for x in k.loop(x0, x1, name="x"):
            byte = k.RAMLoad(row, x * step, Kind.BYTE, name="byte")
            k.set(total, k.most(total, byte) if greatest else total + byte)
        k.RAMStore(sums, c * 4, total, Kind.INT)
    return k.finish()


def finish_sums(name: str, shape: PoolShape) -> Function:
    """Return the kernel that makes the output pixel from the integers of `add_line`."""
    k = Kernel(name, f"The {shape.does} of a map of {shape.channels} channels, from what was gathered of it.")
    sums, out, weights = k.input("sums"), k.output("out"), k.flash("weights")
    finish = _Finish(k, shape, weights)
    for c in k.loop(0, shape.channels, name="c"):
        total = k.RAMLoad(sums, c * 4, Kind.INT, name="total")
        k.RAMStore(out, c, finish.byte(total, finish.value["count"]))
    return k.finish()
