"""Convolutions: dot products of contiguous runs of bytes in an input line.

The taps of a kernel row read `kw * channels` bytes of one line, so a convolution is `kh` runs, and a
pointwise one is a single run. A block makes `pixels` outputs of a chunk of channels from registers: every
word of weights is widened once for all pixels, every word of input once for all channels of the chunk. Where
lines are one pixel wide, four channels share a word of input. How vectors do it is in `conv_vector`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onchip.machines.cores import Forms
from onchip.microcontroller.kernel_language import Function
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.ir import Expr, Var, as_expr
from onchip.microcontroller.kernels.conv_constants import (
    CHUNK,
    CONV_HEAD,
    WORD,
    ConvShape,
    conv_words,
    run_words,
    shift_bits,
)
from onchip.microcontroller.kernels.conv_steps import FIRST, ConvSteps
from onchip.microcontroller.kernels.conv_vector import VectorConv
from onchip.microcontroller.kernels.products import four_taps
from onchip.microcontroller.kernels.scale import shift_of

__all__ = ["CHUNK", "CONV_HEAD", "ConvShape", "conv", "conv_words", "run_words"]

BY_WORDS: Mapping[Forms, tuple[int, ...]] = {"narrow": (2, 4), "plain": (4,)}
"""The channels of one pixel whose products a loop of their own makes, by form."""


def conv(name: str, shape: ConvShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line from input lines [first, last)."""
    return (VectorConv if shape.forms == "vector" else _Conv)(name, shape).build()


class _Conv(ConvSteps):
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
        """Emit all output channels of a step, chunk by chunk."""
        k, shape = self.k, self.shape
        each, whole = self.each(), self.whole()
        start = group * self.group_words() + CONV_HEAD
        behind = (whole - 1) * shape.chunk_words if shape.reverse else 0
        w = k.RegAlloc("w", self.weights + (start + behind))
        place = group * each + ((whole - 1) * shape.chunk if shape.reverse else 0)
        o = k.RegAlloc("o", self.out + (x * self.step() + place))
        if shape.rest and shape.reverse:
            self.rest_chunk(x, pixels, run, apart, kept, group)
        for _ in k.loop(0, whole, name="chunk"):
            self.block(pixels, shape.chunk, run, apart, w, o, kept)
            if shape.reverse:
                k.set(w, w - 2 * shape.chunk_words)
            k.set(o, o - shape.chunk if shape.reverse else o + shape.chunk)
        if shape.rest and not shape.reverse:
            self.rest_chunk(x, pixels, run, apart, kept, group)

    def rest_chunk(
        self, x: Expr, pixels: int, run: Callable[[Value], Expr], apart: int, kept: Value | None, group: Expr
    ) -> None:
        """Emit the channels beyond whole chunks."""
        k, shape = self.k, self.shape
        at = group * self.group_words() + (self.whole() * shape.chunk_words + CONV_HEAD)
        w = k.RegAlloc("w", self.weights + at)
        o = k.RegAlloc("o", self.out + (x * self.step() + (group * self.each() + (self.each() - shape.rest))))
        self.block(pixels, shape.rest, run, apart, w, o, kept)

    def block(
        self,
        pixels: int,
        channels: int,
        run: Callable[[Value], Expr],
        apart: int,
        w: Var,
        o: Var,
        kept: Value | None,
    ) -> None:
        """Emit `pixels` outputs of `channels` channels: sums in registers from bias to byte."""
        k, shape = self.k, self.shape
        biases = k.FlashLoad(w, *(f"bias{c}" for c in range(channels)))
        sums = [[k.RegAlloc(f"sum{p}{c}", biases[c]) for c in range(channels)] for p in range(pixels)]
        if shape.forms == "narrow":
            start = k.let("start", w)
            for p, row in enumerate(sums):
                k.set(w, start)
                self.runs([row], lambda line, p=p: run(line) + p * apart, apart, w)  # type: ignore[misc]
        else:
            self.runs(sums, run, apart, w)
        self.stores(sums, w, o, kept)

    def runs(self, sums: list[list[Var]], run: Callable[[Value], Expr], apart: int, w: Var) -> None:
        """Emit the products of all lines."""
        k, shape = self.k, self.shape
        lines, bytes_of_run = shape.runs
        whole, rest = divmod(bytes_of_run, WORD)
        in_words = whole and len(sums[0]) in BY_WORDS.get(shape.forms, ())
        for line in k.loop(0, lines, name="line"):
            if in_words:
                source = k.let("x", run(line))
                k.dot_run(sums, [source], w, whole * WORD, piece=WORD)
                if rest:
                    self.word(sums, source, bytes_of_run - WORD, apart, w)
                continue
            x = k.RegAlloc("x", run(line))
            for _ in k.loop(0, whole or 1, name="word", unroll=shape.unroll):
                self.word(sums, x, 0, apart, w)
                k.set(x, x + WORD)
            if whole and rest:
                self.word(sums, x, rest - WORD, apart, w)

    def stores(self, sums: list[list[Var]], w: Var, o: Var, kept: Value | None) -> None:
        """Emit the bytes of all sums."""
        k, channels = self.k, len(sums[0])
        multipliers = k.FlashLoad(w, *(f"multiplier{c}" for c in range(channels)))
        (shifts,) = k.FlashLoad(w, "shifts")
        step = self.step()
        for c in range(channels):
            shift = k.let(f"shift{c}", shift_of(shifts, c, shift_bits(self.shape.chunk)))
            for p in range(len(sums)):
                if kept is None or p == 0:
                    k.RAMStore(o, p * step + c, self.scaler.byte(sums[p][c], multipliers[c], shift))
                    continue
                with k.when(as_expr(kept) > p):
                    k.RAMStore(o, p * step + c, self.scaler.byte(sums[p][c], multipliers[c], shift))

    def word(self, sums: list[list[Var]], x: Var, offset: int, apart: int, w: Var) -> None:
        """Emit four products for every sum."""
        four_taps(self.k, self.shape.forms, sums, x, [offset + p * apart for p in range(len(sums))], w)
