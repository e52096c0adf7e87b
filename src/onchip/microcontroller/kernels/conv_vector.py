"""Convolutions with vectors: runs of sixteen bytes times two or four channels, four channels scaled in lanes.

Sums lie in general registers, six of them at most: a block makes three pixels of two channels, keeps their
sums in the even lanes of a vector a pixel, and makes the other two channels of the chunk. Where lines are one
pixel wide it makes four channels at once.
"""

from __future__ import annotations

from collections.abc import Callable

from onchip.microcontroller.kernel_language import Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var, as_expr
from onchip.microcontroller.kernels.conv_constants import CONV_HEAD
from onchip.microcontroller.kernels.conv_steps import FIRST, ConvSteps
from onchip.microcontroller.kernels.copies import copied_by_vectors

__all__ = ["VectorConv"]

LANES = 4


class VectorConv(ConvSteps):
    """The kernel of a core with vectors."""

    def windows(self, pixels: Value) -> Value:
        return pixels

    def pixel(self, p: Expr, pixels: Value) -> Expr:
        return p

    def from_patches(
        self, x: Expr, pixels: Value, run: Callable[[Value], Expr], each: int, group: Expr
    ) -> None:
        """Emit the channels of a step, as many pixels as it has: a block is small."""
        k, most = self.k, self.shape.pixels
        for count in range(1, most + 1):
            with k.when(as_expr(pixels).equals(count) if most > 1 else 1):
                self.channels(x, count, run, each, group=group)

    def rest_words(self) -> int:
        return self.shape.chunk_words if self.shape.rest else 0

    def copy(self, target: Var, source: Expr, size: int) -> None:
        copied_by_vectors(self.k, source, target, size)

    def channels(
        self,
        x: Expr,
        pixels: int,
        run: Callable[[Value], Expr],
        apart: int,
        *,
        kept: Value | None = None,
        group: Expr = FIRST,
    ) -> None:
        k, shape = self.k, self.shape
        whole, each = self.whole(), self.each()
        rest = self.k.let("rest_of_channels", whole * shape.chunk_words) if shape.rest else None
        start = k.let("start", self.weights + (group * self.group_words() + CONV_HEAD))
        base = k.let("base", self.out + (x * self.step() + group * each))
        if shape.rest and shape.reverse and rest is not None:
            self.chunk(pixels, run, apart, k.RegAlloc("w", start + rest), base + whole * LANES, shape.rest)
        w = k.RegAlloc("w", start + ((whole - 1) * shape.chunk_words if shape.reverse else 0))
        o = k.RegAlloc("o", base + ((whole - 1) * LANES if shape.reverse else 0))
        for _ in k.loop(0, whole, name="chunk"):
            self.chunk(pixels, run, apart, w, o, LANES)
            if shape.reverse:
                k.set(w, w - 2 * shape.chunk_words)
            k.set(o, o - LANES if shape.reverse else o + LANES)
        if shape.rest and not shape.reverse and rest is not None:
            self.chunk(pixels, run, apart, k.RegAlloc("w", start + rest), base + whole * LANES, shape.rest)

    def chunk(
        self, pixels: int, run: Callable[[Value], Expr], apart: int, w: Var, o: Expr, channels: int
    ) -> None:
        """Emit four channels of a step, of which `channels` are stored."""
        k = self.k
        if self.shape.quads:
            (sums,) = self.sums(1, 4, run, apart, w)
            lanes = [k.let("sums", call("with_odds", call("evens", sums[0], sums[2]), sums[1], sums[3]))]
        else:
            first = self.sums(pixels, 2, run, apart, w)
            lanes = [k.RegAlloc(f"sums{p}", call("evens", *row)) for p, row in enumerate(first)]
            second = self.sums(pixels, 2, run, apart, w)
            for lane, row in zip(lanes, second, strict=True):
                k.set(lane, call("with_odds", lane, *row))
        bias = k.flash4(w, 0, "bias4", words=True)
        multipliers, shifts = k.flash4(w, LANES, "multipliers", words=True), k.flash4(w, 2 * LANES, "shifts")
        for p, lane in enumerate(lanes):
            made = self.scaler.lanes(call("add4", lane, bias), multipliers, shifts)
            k.RAMStore(o, p * self.step(), made, Kind.LANES, channels)
        k.set(w, w + (2 * LANES + 1))

    def sums(
        self, pixels: int, channels: int, run: Callable[[Value], Expr], apart: int, w: Var
    ) -> list[list[Var]]:
        """Emit the sums of a pass over the weights."""
        k, shape = self.k, self.shape
        sums = [[k.RegAlloc(f"sum{p}{c}", 0) for c in range(channels)] for p in range(pixels)]
        lines, bytes_of_run = shape.runs
        for line in k.loop(0, lines, name="line"):
            x = k.let("x", run(line))
            sources = [k.let(f"x{p}", x + p * apart) for p in range(pixels)]
            k.dot_run(sums, sources, w, bytes_of_run, fresh=lines == 1)
        return sums
