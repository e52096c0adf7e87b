"""Depthwise convolutions: four channels of a pixel at a time, tap by tap.

A word of input and a word of weights hold the same tap of four channels; both are widened (the input's zero
point is subtracted at the same time) and the matching halves multiplied. Taps outside of the map are left
out, which saves their work: on small maps most of a large window lies outside. Channels that do not fill a
word, and outputs that share an input channel, are read byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable

from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Const, Expr, Type, Var, as_expr
from onchip.microcontroller.kernels.depthwise_constants import (
    CHUNK,
    DEPTHWISE_HEAD,
    SHIFT_BITS,
    DepthwiseShape,
    depthwise_words,
)
from onchip.microcontroller.kernels.depthwise_vector import Parts, by_vectors
from onchip.microcontroller.kernels.products import by_bytes, four_channels, paired
from onchip.microcontroller.kernels.scale import HEAD_WORDS, Scaler, shift_of

__all__ = ["CHUNK", "DEPTHWISE_HEAD", "DepthwiseShape", "depthwise", "depthwise_words"]


def depthwise(name: str, shape: DepthwiseShape) -> Function:
    """Return the kernel: output pixels [x0, x1) of a line from input lines [first, last)."""
    return _Depthwise(name, shape).build()


class _Depthwise:
    def __init__(self, name: str, shape: DepthwiseShape) -> None:
        lines, taps = shape.kernel
        self.shape = shape
        k = self.k = Kernel(
            name,
            f"Depthwise convolution {lines}x{taps}: pixels [x0, x1) of a line"
            + (", from the last" if shape.reverse else "")
            + ".",
            f"A step makes one pixel, {CHUNK} channels at a time.",
        )
        self.lines, self.out = k.lines("lines"), k.output("out")
        self.x0, self.x1 = k.number("x0"), k.number("x1")
        self.first, self.last, self.width = k.number("first"), k.number("last"), k.number("width")
        self.weights = k.flash("weights")
        self.outputs: Value = shape.outputs or k.constant(self.weights, HEAD_WORDS, "outputs")
        self.step: Value = shape.in_step or (shape.outputs // shape.multiplier or self.outputs)
        self.out_step: Value = shape.out_step or self.outputs

    def build(self) -> Function:
        k, shape = self.k, self.shape
        self.scaler = Scaler(k, shape.scale, self.weights)
        offset = self.scaler.input_offset
        self.offsets: Expr = offset if by_bytes(shape.forms) else k.Broadcast(offset, "offsets")
        every = k.let("every_line", self.first.equals(0) & self.last.equals(shape.kernel[0]))
        bounds = (self.x1 - 1, self.x0 - 1, -1) if shape.reverse else (self.x0, self.x1, 1)
        for x in k.loop(*bounds, name="x"):
            left = k.let("left", x * shape.stride - shape.before)
            right = left + (shape.dilation * (shape.kernel[1] - 1) + 1)
            words = as_expr(self.outputs) >> 2 if shape.multiplier == 1 else Const(0)
            reach = k.let("whole", every & (left >= 0) & (right <= self.width))
            begin, end = self.taps_inside(left)
            if shape.reverse:
                self.by_bytes(x, left, begin, end, words)
            if shape.multiplier == 1:
                vectors = shape.forms == "vector"
                with k.when(reach):
                    if vectors:
                        by_vectors(self.parts(), x, left, None)
                    else:
                        self.by_words(x, left, words, self.whole_window)
                with k.otherwise():
                    if vectors:
                        by_vectors(self.parts(), x, left, (begin, end))
                    else:
                        self.by_words(x, left, words, self.part_of(begin, end))
            if not shape.reverse:
                self.by_bytes(x, left, begin, end, words)
        return k.finish()

    def parts(self) -> Parts:
        """Return what vectors need of the kernel."""
        lines, ends = (self.lines, self.out, self.weights), (self.first, self.last)
        return Parts(self.k, self.shape, self.scaler, *lines, *ends, self.outputs, self.step, self.out_step)

    def taps_inside(self, left: Expr) -> tuple[Var, Var]:
        """Return the taps inside the line, as the first and the end."""
        k, d, taps = self.k, self.shape.dilation, self.shape.kernel[1]
        begin = (d - 1 - left) // d if d > 1 else -left
        end = (self.width - left + (d - 1)) // d
        return k.let("begin", k.most(begin, 0)), k.let("end", k.least(end, taps))

    def by_words(
        self, x: Expr, left: Expr, words: Expr, window: Callable[[list[Var], Var, Expr], None]
    ) -> None:
        """Emit chunk by chunk: sums in registers from bias to byte."""
        k, shape = self.k, self.shape
        at = k.RegAlloc("at", left * self.step + ((words - 1) * CHUNK if shape.reverse else 0))
        behind = (words - 1) * shape.chunk_words if shape.reverse else 0
        w = k.RegAlloc("w", self.weights + (DEPTHWISE_HEAD + behind))
        step = self.out_step
        o = k.RegAlloc("o", self.out + (x * step + ((words - 1) * CHUNK if shape.reverse else 0)))
        for _ in k.loop(0, words, name="chunk"):
            biases = k.FlashLoad(w, *(f"bias{c}" for c in range(CHUNK)))
            sums = [k.RegAlloc(f"sum{c}", bias) for c, bias in enumerate(biases)]
            window(sums, w, at)
            self.store(sums, w, o)
            if shape.reverse:
                k.set(w, w - 2 * shape.chunk_words)
            k.set(o, o - CHUNK if shape.reverse else o + CHUNK)
            k.set(at, at - CHUNK if shape.reverse else at + CHUNK)

    def whole_window(self, sums: list[Var], w: Var, at: Expr) -> None:
        """Emit all taps, a line at a time."""
        k, shape = self.k, self.shape
        lines, taps = shape.kernel
        apart = self.step * shape.dilation
        for line in k.loop(0, lines, name="line", unroll=lines if lines * taps <= 12 else 0):
            x = k.RegAlloc("x", k.line(self.lines, line) + at)
            if by_bytes(shape.forms):
                for tap in range(taps):
                    four_channels(k, shape.forms, sums, x, w, tap, self.offsets)
                    if tap + 1 < taps:
                        k.set(x, x + apart)
                k.set(w, w + taps)
                continue
            for tap in range(0, taps, 2):
                names = [f"w{t}" for t in range(tap, min(tap + 2, taps))]
                for t, word in enumerate(k.FlashLoad(w, *names, type=Type.WORD)):
                    paired(k, sums, k.RAMLoad(x), word, self.offsets)
                    if tap + t + 1 < taps:
                        k.set(x, x + apart)

    def part_of(self, begin: Var, end: Var) -> Callable[[list[Var], Var, Expr], None]:
        """Return the function that emits the taps [begin, end) of the lines [first, last)."""
        k, shape = self.k, self.shape
        taps = shape.kernel[1]

        def window(sums: list[Var], w: Var, at: Expr) -> None:
            inner = k.RegAlloc("v", w + (self.first * taps + begin))
            back = k.let("skipped", taps - (end - begin))
            for line in k.loop(self.first, self.last, name="line"):
                x = k.RegAlloc("x", k.line(self.lines, line) + (at + begin * (shape.dilation * self.step)))
                for _ in k.loop(begin, end, name="tap"):
                    four_channels(k, shape.forms, sums, x, inner, 0, self.offsets)
                    k.set(inner, inner + 1)
                    k.set(x, x + shape.dilation * self.step)
                k.set(inner, inner + back)
            k.set(w, w + shape.taps)

        return window

    def by_bytes(self, x: Expr, left: Expr, begin: Var, end: Var, words: Expr) -> None:
        """Emit the outputs beyond whole words, byte by byte; each chunk is read before it is written."""
        k, shape = self.k, self.shape
        if shape.forms == "vector":
            return
        chunks, rest = (0, shape.rest) if shape.multiplier == 1 else divmod(shape.outputs, CHUNK)
        if rest and shape.reverse:
            self.bytes_chunk(x, left, begin, end, words + chunks, rest)
        for chunk in k.span(0, chunks, reverse=shape.reverse, name="chunk") if chunks else ():
            self.bytes_chunk(x, left, begin, end, chunk, CHUNK)
        if rest and not shape.reverse:
            self.bytes_chunk(x, left, begin, end, words + chunks, rest)

    def bytes_chunk(self, x: Expr, left: Expr, begin: Var, end: Var, chunk: Value, outputs: int) -> None:
        k, shape = self.k, self.shape
        w = k.RegAlloc("w", self.weights + (chunk * shape.chunk_words + DEPTHWISE_HEAD))
        biases = k.FlashLoad(w, *(f"bias{c}" for c in range(outputs)))
        sums = [k.RegAlloc(f"sum{c}", bias) for c, bias in enumerate(biases)]
        sources = [k.let(f"channel{c}", (chunk * CHUNK + c) // shape.multiplier) for c in range(outputs)]
        for line in k.loop(self.first, self.last, name="line"):
            v = k.RegAlloc("v", w + (line * shape.kernel[1] + begin))
            for tap in k.loop(begin, end, name="tap"):
                at = k.let("pixel", (left + tap * shape.dilation) * self.step)
                row = k.let("row", k.line(self.lines, line) + at)
                if by_bytes(shape.forms):
                    for c, source in enumerate(sources):
                        byte = k.RAMLoad(row, source, Kind.BYTE, name="byte")
                        k.set(sums[c], call("mla", byte + self.offsets, k.constant_byte(v, c), sums[c]))
                    k.set(v, v + 1)
                    continue
                (word,) = k.FlashLoad(v, "weights4", type=Type.WORD)
                pairs = k.widen(word, "w")
                for c, source in enumerate(sources):
                    byte = k.RAMLoad(row, source, Kind.BYTE, name="byte")
                    value = k.Broadcast(byte + self.scaler.input_offset)
                    product = ("mla_low", "mla_high")[c // 2]
                    k.set(sums[c], call(product, value, pairs[c % 2], sums[c]))
        k.set(w, w + shape.taps)
        out = k.let("target", self.out + (x * self.out_step + chunk * CHUNK))
        self.store(sums, w, out)

    def store(self, sums: list[Var], w: Var, o: Var) -> None:
        """Emit the stores of a chunk's bytes."""
        k = self.k
        multipliers = k.FlashLoad(w, *(f"multiplier{c}" for c in range(len(sums))))
        (shifts,) = k.FlashLoad(w, "shifts")
        for c, total in enumerate(sums):
            shift = shift_of(shifts, c, SHIFT_BITS)
            k.RAMStore(o, c, self.scaler.byte(total, multipliers[c], shift))
