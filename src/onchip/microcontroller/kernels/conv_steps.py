"""The steps of a convolution: which pixels are made together, from their lines in place or from a patch.

A step gathers its windows into a patch, zero points included, where a window extends past the left or right
end of its line or past the top or bottom of the map, where taps are not adjacent (dilation, groups), and
where a run is shorter than a word. The same blocks then read the patch.
"""

from __future__ import annotations

from collections.abc import Callable

from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.ir import Const, Expr, Var, as_expr
from onchip.microcontroller.kernels.conv_constants import ConvShape
from onchip.microcontroller.kernels.copies import copied_by_words
from onchip.microcontroller.kernels.scale import HEAD_WORDS, Scaler

__all__ = ["FIRST", "ConvSteps"]

FIRST = Const(0)


class ConvSteps:
    """Steps over a line; `channels` makes all output channels of a step."""

    def __init__(self, name: str, shape: ConvShape) -> None:
        lines, taps = shape.kernel
        self.shape = shape
        k = self.k = Kernel(
            name,
            f"Convolution {lines}x{taps} of {shape.channels} channels:"
            " pixels [x0, x1) of a line" + (", from the last" if shape.reverse else "") + ".",
            f"A step makes {shape.pixels} pixels, {shape.chunk} channels of each at a time.",
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
            for p in k.loop(0, self.windows(pixels), name="p"):
                self.gather(x + self.pixel(p, pixels), p * each, group)
            self.from_patches(x, pixels, lambda line: self.patch + line * shape.line_bytes, each, group)

    def windows(self, pixels: Value) -> Value:
        """Return the windows that a step gathers."""
        return self.shape.pixels

    def pixel(self, p: Expr, pixels: Value) -> Expr:
        """Return the pixel of a window."""
        return self.k.least(p, as_expr(pixels) - 1)

    def from_patches(
        self, x: Expr, pixels: Value, run: Callable[[Value], Expr], each: int, group: Expr
    ) -> None:
        """Emit the channels of a step whose windows lie `each` bytes apart."""
        self.channels(x, self.shape.pixels, run, each, kept=pixels, group=group)

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
        raise NotImplementedError

    def gather(self, x: Expr, at: Value, group: Expr) -> None:
        """Emit a pixel's window, line by line, into the patch at `at`."""
        k, shape = self.k, self.shape
        zero = k.let("zero", -self.scaler.input_offset)
        left = k.let("leftmost", x * shape.stride - shape.before)
        taps = self.taps_inside(left) if shape.line_at_once else None
        for line in k.loop(0, shape.kernel[0], name="line"):
            target = k.RegAlloc("target", self.patch + (at + line * shape.line_bytes))
            if taps is None:
                self.tap_by_tap(target, line, left, group, zero)
            else:
                self.line_at_once(target, line, left, taps, zero)
            behind = shape.run if taps else 0  # tap by tap, the target has moved past the run
            for missing in range(shape.line_bytes - shape.run):
                k.RAMStore(target, behind + missing, zero)

    def taps_inside(self, left: Expr) -> tuple[Var, Var]:
        """Return the bytes of a run that lie inside the line, as the first and the end."""
        k, shape = self.k, self.shape
        begin = k.let("outside", k.least(k.most(-left, 0), shape.kernel[1]))
        end = k.let("inside", k.most(k.least(self.width - left, shape.kernel[1]), begin))
        return k.let("from", begin * shape.channels), k.let("to", end * shape.channels)

    def line_at_once(self, target: Var, line: Expr, left: Expr, taps: tuple[Var, Var], zero: Expr) -> None:
        """Emit one line of a window whose taps are contiguous."""
        k, run = self.k, self.shape.run
        begin, end = taps
        with k.when((line >= self.first) & (line < self.last)):
            source = k.let("source", k.line(self.lines, line) + left * self.shape.step)
            with k.when(begin.equals(0) & end.equals(run)):
                self.copy(target, source, run)
            with k.otherwise():
                self.fill(target, 0, begin, zero)
                for i in k.loop(begin, end, name="i"):
                    k.RAMStore(target, i, k.RAMLoad(source, i, Kind.BYTE, name="one"))
                self.fill(target, end, run, zero)
        with k.otherwise():
            self.fill(target, 0, run, zero)

    def fill(self, target: Var, begin: Value, end: Value, zero: Expr) -> None:
        for i in self.k.loop(begin, end, name="i"):
            self.k.RAMStore(target, i, zero)

    def tap_by_tap(self, target: Var, line: Expr, left: Expr, group: Expr, zero: Expr) -> None:
        """Emit one line of a window whose taps lie apart; the target moves past them."""
        k, shape = self.k, self.shape
        size = shape.channels // shape.groups
        for tap in k.loop(0, shape.kernel[1], name="tap"):
            column = k.let("column", left + tap * shape.dilation)
            inside = (line >= self.first) & (line < self.last) & (column >= 0) & (column < self.width)
            with k.when(inside):
                source = k.line(self.lines, line) + (column * shape.step + group * size)
                self.copy(target, k.let("source", source), size)
            with k.otherwise():
                self.fill(target, 0, size, zero)
            k.set(target, target + size)

    def copy(self, target: Var, source: Expr, size: int) -> None:
        """Emit a copy between places that do not overlap."""
        copied_by_words(self.k, source, target, size)

    def each(self) -> Expr:
        """Return the outputs of a group."""
        return (
            as_expr(self.outputs)
            if self.shape.groups == 1
            else Const(self.shape.outputs // self.shape.groups)
        )

    def whole(self) -> Expr:
        """Return the whole chunks of a group."""
        return self.each() >> (2 if self.shape.chunk == 4 else 1)

    def group_words(self) -> Expr:
        """Return the words of constants of a group."""
        return self.whole() * self.shape.chunk_words + self.rest_words()

    def rest_words(self) -> int:
        """Return the words of the channels beyond whole chunks."""
        shape = self.shape
        return shape.rest * (2 + shape.window_words) + 1 if shape.rest else 0

    def step(self) -> Value:
        """Return the bytes from an output pixel to the next."""
        return self.shape.out_step or self.outputs
