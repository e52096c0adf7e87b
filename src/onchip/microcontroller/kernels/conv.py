"""Convolutions: dot products of contiguous runs of bytes in an input line.

The taps of a kernel row read `kw * channels` bytes of one line, so a convolution is `kh` runs, and a
pointwise one is a single run. A block makes `pixels` outputs of `CHUNK` channels from registers: every word
of weights is widened once for all pixels, every word of input once for all channels of the chunk.

A step gathers its windows into a patch, zero points included, where a window extends past the left or right
end of its line or past the top or bottom of the map, where taps are not adjacent (dilation, groups), and
where a run is shorter than a word. The same block then reads the patch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.arithmetic import wrapped
from onchip.microcontroller.int8.model import Conv, FullyConnected, Int8
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.ir import Const, Expr, Var, as_expr
from onchip.microcontroller.kernels.products import four_taps, run_of_vectors
from onchip.microcontroller.kernels.scale import (
    HEAD_WORDS,
    PLAIN,
    Scale,
    Scaler,
    factor_words,
    scaled_of,
    shift_of,
)

__all__ = ["CHUNK", "CONV_HEAD", "ConvShape", "conv", "conv_words", "run_words"]

CHUNK = 2
"""Output channels of a block."""
WORD = 4
SHIFT_BITS = 16
CONV_HEAD = HEAD_WORDS + 1
"""Words of constants in front of the chunks: the head of all layers with weights, and the outputs."""
FIRST = Const(0)


@dataclass(frozen=True, kw_only=True)
class ConvShape:
    """The parameters that a kernel is specialised on, in bytes and pixels."""

    channels: int
    """Channels of the input."""
    outputs: int = 0
    """Channels of the output, where groups make them part of the code; else they are read when it runs."""
    odd: bool = False
    """True if the number of output channels is odd."""
    kernel: tuple[int, int] = (1, 1)
    """Lines, and taps along a line."""
    stride: int = 1
    """Stride along a line."""
    dilation: int = 1
    """Dilation along a line."""
    before: int = 0
    """Padding in front of a line."""
    groups: int = 1
    padded: bool = False
    """True if any window of the layer extends past an end of the map."""
    in_step: int = 0
    """Bytes from an input pixel of a line to the next; 0: as many as channels."""
    out_step: int = 0
    """Bytes from an output pixel of a line to the next; 0: as many as channels."""
    pixels: int = 3
    unroll: int = 2
    """Words of a run in one turn of its loop."""
    reverse: bool = False
    """Lines run from their end to their start, chunks of channels from the last to the first."""
    scale: Scale = PLAIN
    forms: Forms = "packed"

    @property
    def run(self) -> int:
        """The bytes of a run: one kernel row of one group."""
        return self.kernel[1] * self.channels // self.groups

    @property
    def words(self) -> int:
        """The words of a run; the last may overlap the one before."""
        return -(-self.run // WORD)

    @property
    def side_by_side(self) -> bool:
        """True if a run is contiguous in its line and at least one word long."""
        together = self.kernel[1] == 1 or (self.dilation == 1 and self.step == self.channels)
        return together and self.groups == 1 and self.run >= WORD

    @property
    def gathers(self) -> bool:
        """True if any step needs a patch."""
        return self.padded or not self.side_by_side

    @property
    def line_bytes(self) -> int:
        """The bytes of one line of a patch."""
        return max(self.run, WORD)

    @property
    def patch_bytes(self) -> int:
        """The bytes of workspace: the windows of a step."""
        return self.pixels * self.kernel[0] * self.line_bytes if self.gathers else 0

    @property
    def step(self) -> int:
        return self.in_step or self.channels

    @property
    def chunk_words(self) -> int:
        """The words of constants of a whole chunk: biases, weights, factors."""
        return CHUNK * (2 + self.kernel[0] * self.words) + 1


def run_words(runs: Int8, *, padded: bool = False) -> Int8:
    """Return [..., run] weights as [..., words * 4] bytes.

    Words at 0, 4, ... and run - 4 contain each weight once; if `padded`, the weights lie one behind the other
    with zeros after the last.
    """
    run = runs.shape[-1]
    words = -(-run // WORD)
    packed = np.zeros((*runs.shape[:-1], words * WORD), np.int8)
    if run % WORD == 0 or run < WORD or padded:
        packed[..., :run] = runs
    else:
        whole = run - run % WORD
        packed[..., :whole] = runs[..., :whole]
        packed[..., words * WORD - run % WORD :] = runs[..., whole:]
    return packed


def conv_words(
    layer: Conv | FullyConnected,
    *,
    columns: bool = False,
    any_shift: bool = False,
    forms: Forms = "packed",
) -> list[int]:
    """Return the layer's constants in the order in which the kernel reads them: head, then every chunk.

    A chunk is its biases (the input's zero point folded in), for every line and word of a run one word of
    weights a channel, then multiplier and shift of each channel. For vectors, it is for every line the run
    of one channel behind that of the other. With `columns` the kernel's lines are columns of the map.
    """
    ready = scaled_of(layer, any_shift=any_shift)
    weights = (
        ready.weights.reshape(len(ready.weights), 1, 1, -1) if ready.weights.ndim == 2 else ready.weights
    )
    if columns:
        weights = weights.transpose(0, 2, 1, 3)
    outputs, lines = weights.shape[:2]
    groups = layer.groups if isinstance(layer, Conv) else 1
    bias = wrapped(ready.bias + layer.input_offset * weights.astype(np.int64).sum(axis=(1, 2, 3)))
    vectors = forms == "vector"
    packed = run_words(weights.reshape(outputs, lines, -1), padded=vectors).reshape(outputs, lines, -1, WORD)
    words = packed.view("<i4")[..., 0]
    if not vectors:
        words = words.reshape(outputs, -1, 1)
    found = [*ready.head, outputs]
    each = outputs // groups
    for group in range(0, outputs, each):
        for first in range(group, group + each, CHUNK):
            chunk = slice(first, min(first + CHUNK, group + each))
            found += bias[chunk].tolist() + words[chunk].swapaxes(0, 1).ravel().tolist()
            found += factor_words(ready.multipliers[chunk], ready.shifts[chunk], SHIFT_BITS)
    return [*found, 0] if vectors else found  # a vector's load of the last weights may end behind them


def conv(name: str, shape: ConvShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line from input lines [first, last)."""
    return _Conv(name, shape).build()


class _Conv:
    def __init__(self, name: str, shape: ConvShape) -> None:
        lines, taps = shape.kernel
        self.shape = shape
        k = self.k = Kernel(
            name,
            f"Convolution {lines}x{taps} of {shape.channels} channels:"
            " pixels [x0, x1) of a line" + (", from the last" if shape.reverse else "") + ".",
            f"A step makes {shape.pixels} pixels, {CHUNK} channels of each at a time.",
        )
        self.lines, self.out = k.lines("lines"), k.output("out")
        self.x0, self.x1 = k.number("x0"), k.number("x1")
        if shape.gathers:
            self.first, self.last, self.width = k.number("first"), k.number("last"), k.number("width")
            self.patch = k.output("patch")
        self.weights = k.flash("weights")

    def build(self) -> Function:
        k, shape = self.k, self.shape
        self.scaler = Scaler(k, shape.scale, self.weights)
        self.outputs: Value = shape.outputs or k.constant(self.weights, HEAD_WORDS, "outputs")
        if shape.gathers:
            self.edged_steps()
        else:
            self.plain_steps()
        return k.finish()

    def plain_steps(self) -> None:
        """Emit steps that read their lines in place; the remainder of a line has blocks of its own size."""
        k, shape = self.k, self.shape
        count = k.let("count", self.x1 - self.x0)
        rest = k.let("rest", count % shape.pixels) if shape.pixels > 1 else 0
        if shape.reverse:
            bounds = (self.x1 - shape.pixels, self.x0 + rest - 1, -shape.pixels)
        else:
            bounds = (self.x0, self.x1 - rest, shape.pixels)
        for x in k.loop(*bounds, name="x"):
            self.in_place(x, shape.pixels)
        begin = k.let("begin", self.x0 if shape.reverse else self.x1 - rest)
        for pixels in range(1, shape.pixels):
            with k.when(as_expr(rest).equals(pixels)):
                self.in_place(begin, pixels)

    def edged_steps(self) -> None:
        """Emit steps of which some need patches, including the shorter one at the end."""
        k, shape = self.k, self.shape
        if shape.reverse:
            bounds = (self.x1 - shape.pixels, self.x0 - shape.pixels, -shape.pixels)
        else:
            bounds = (self.x0, self.x1, shape.pixels)
        for at in k.loop(*bounds, name="x"):
            if shape.reverse:
                x = k.let("begin", k.most(at, self.x0))
                pixels = k.let("pixels", at + shape.pixels - x)
            else:
                x, pixels = k.let("begin", at), k.let("pixels", k.least(shape.pixels, self.x1 - at))
            if not shape.side_by_side:
                self.gathered(x, pixels)
                continue
            left = k.let("left", x * shape.stride - shape.before)
            right = left + ((shape.pixels - 1) * shape.stride + shape.kernel[1])
            lines = self.first.equals(0) & self.last.equals(shape.kernel[0])
            with k.when(lines & (left >= 0) & (right <= self.width) & pixels.equals(shape.pixels)):
                self.in_place(x, shape.pixels)
            with k.otherwise():
                self.gathered(x, pixels)

    def in_place(self, x: Expr, pixels: int) -> None:
        """Emit a step that reads its runs in place in their lines."""
        k, shape = self.k, self.shape
        at = k.let("at", (x * shape.stride - shape.before) * shape.step)
        self.channels(x, pixels, lambda line: k.line(self.lines, line) + at, shape.stride * shape.step)

    def gathered(self, x: Expr, pixels: Value) -> None:
        """Emit a step from its patches; a shorter step makes the last pixel again and keeps one."""
        k, shape = self.k, self.shape
        each = shape.kernel[0] * shape.line_bytes
        groups = (shape.groups - 1, -1, -1) if shape.reverse else (0, shape.groups, 1)
        for group in k.loop(*groups, name="group"):
            for p in k.loop(0, shape.pixels, name="p"):
                self.gather(x + k.least(p, pixels - 1), p * each, group)
            self.channels(
                x,
                shape.pixels,
                lambda line: self.patch + line * shape.line_bytes,
                each,
                kept=pixels,
                group=group,
            )

    def gather(self, x: Expr, at: Value, group: Expr) -> None:
        """Emit a pixel's window, line by line, into the patch at `at`."""
        k, shape = self.k, self.shape
        zero = k.let("zero", -self.scaler.input_offset)
        left = k.let("leftmost", x * shape.stride - shape.before)
        size = shape.channels // shape.groups
        for line in k.loop(0, shape.kernel[0], name="line"):
            target = k.RegAlloc("target", self.patch + (at + line * shape.line_bytes))
            for tap in k.loop(0, shape.kernel[1], name="tap"):
                column = k.let("column", left + tap * shape.dilation)
                inside = (line >= self.first) & (line < self.last) & (column >= 0) & (column < self.width)
                with k.when(inside):
                    source = k.line(self.lines, line) + (column * shape.step + group * size)
                    self.copy(target, k.let("source", source), size)
                with k.otherwise():
                    for i in k.loop(0, size, name="i"):
                        k.RAMStore(target, i, zero)
                k.set(target, target + size)
            for missing in range(shape.line_bytes - shape.run):
                k.RAMStore(target, missing, zero)

    def copy(self, target: Var, source: Expr, size: int) -> None:
        k = self.k
        whole = size - size % WORD
        if whole:
            for i in k.loop(0, whole, WORD, name="i"):
                k.RAMStore(target, i, k.RAMLoad(source, i, Kind.INT, name="four"), Kind.INT)
        for at in range(whole, size):
            k.RAMStore(target, at, k.RAMLoad(source, at, Kind.BYTE, name="one"))

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
        place = group * each + ((whole - 1) * CHUNK if shape.reverse else 0)
        o = k.RegAlloc("o", self.out + (x * self.step() + place))
        if shape.odd and shape.reverse:
            self.odd_chunk(x, pixels, run, apart, kept, group)
        for _ in k.loop(0, whole, name="chunk"):
            self.block(pixels, CHUNK, run, apart, w, o, kept)
            if shape.reverse:
                k.set(w, w - 2 * shape.chunk_words)
            k.set(o, o - CHUNK if shape.reverse else o + CHUNK)
        if shape.odd and not shape.reverse:
            self.odd_chunk(x, pixels, run, apart, kept, group)

    def each(self) -> Expr:
        """Return the outputs of a group."""
        return (
            as_expr(self.outputs)
            if self.shape.groups == 1
            else Const(self.shape.outputs // self.shape.groups)
        )

    def whole(self) -> Expr:
        """Return the whole chunks of a group."""
        return self.each() >> 1

    def group_words(self) -> Expr:
        """Return the words of constants of a group."""
        odd_words = 3 + self.shape.kernel[0] * self.shape.words if self.shape.odd else 0
        return self.whole() * self.shape.chunk_words + odd_words

    def step(self) -> Value:
        """Return the bytes from an output pixel to the next."""
        return self.shape.out_step or self.outputs

    def odd_chunk(
        self, x: Expr, pixels: int, run: Callable[[Value], Expr], apart: int, kept: Value | None, group: Expr
    ) -> None:
        """Emit the last channel of an odd number of them."""
        k, shape = self.k, self.shape
        at = group * self.group_words() + (self.whole() * shape.chunk_words + CONV_HEAD)
        w = k.RegAlloc("w", self.weights + at)
        o = k.RegAlloc("o", self.out + (x * self.step() + (group * self.each() + (self.each() - 1))))
        self.block(pixels, 1, run, apart, w, o, kept)

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
        if shape.forms == "vector":
            offsets = [p * apart for p in range(len(sums))]
            for line in k.loop(0, shape.kernel[0], name="line"):
                run_of_vectors(k, sums, k.RegAlloc("x", run(line)), offsets, w, shape.run, shape.words)
            return
        for line in k.loop(0, shape.kernel[0], name="line"):
            x = k.RegAlloc("x", run(line))
            whole = shape.run // WORD if shape.run >= WORD else 1
            if whole:
                for _ in k.loop(0, whole, name="word", unroll=shape.unroll):
                    self.word(sums, x, 0, apart, w)
                    k.set(x, x + WORD)
            if shape.run > WORD and shape.run % WORD:
                self.word(sums, x, shape.run % WORD - WORD, apart, w)

    def stores(self, sums: list[list[Var]], w: Var, o: Var, kept: Value | None) -> None:
        """Emit the bytes of all sums."""
        k, channels = self.k, len(sums[0])
        multipliers = k.FlashLoad(w, *(f"multiplier{c}" for c in range(channels)))
        (shifts,) = k.FlashLoad(w, "shifts")
        step = self.step()
        for c in range(channels):
            shift = k.let(f"shift{c}", shift_of(shifts, c, SHIFT_BITS))
            for p in range(len(sums)):
                if kept is None or p == 0:
                    k.RAMStore(o, p * step + c, self.scaler.byte(sums[p][c], multipliers[c], shift))
                    continue
                with k.when(as_expr(kept) > p):
                    k.RAMStore(o, p * step + c, self.scaler.byte(sums[p][c], multipliers[c], shift))

    def word(self, sums: list[list[Var]], x: Var, offset: int, apart: int, w: Var) -> None:
        """Emit four products for every sum."""
        four_taps(self.k, self.shape.forms, sums, x, [offset + p * apart for p in range(len(sums))], w)
