"""One kernel for all shapes: the library form, whose code does not grow with the network (vMCU, section 6.2).

The shape of a layer stands in front of its constants and is read when the kernel is called. Specialised
kernels have it at compile time and are faster; a library suits products that load their networks, or whose
flash holds many. Convolutions and fully connected layers share one kernel, depthwise layers another.
"""

from __future__ import annotations

from dataclasses import dataclass

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Conv, Depthwise, FullyConnected
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.conv_constants import CHUNK, CONV_HEAD, WORD, conv_words, shift_bits
from onchip.microcontroller.kernels.depthwise_constants import CHUNK as LANES
from onchip.microcontroller.kernels.depthwise_constants import DEPTHWISE_HEAD, SHIFT_BITS, depthwise_words
from onchip.microcontroller.kernels.products import by_bytes, four_channels, four_taps
from onchip.microcontroller.kernels.scale import Form, scaled_of, shift_of
from onchip.microcontroller.kernels.windows import conv_shape, depthwise_shape

__all__ = ["LibraryUse", "library_for", "library_functions", "library_workspace"]

PIXELS = 2
CONV_SHAPE = (
    *("lines_of", "taps", "channels", "outputs", "groups", "stride", "dilation", "before"),
    *("run", "words_of_run", "side_by_side", "long_form", "backwards"),
)
DEPTHWISE_SHAPE = (
    *("lines_of", "taps", "outputs", "multiplier_of", "stride", "dilation", "before"),
    *("long_form", "backwards"),
)


@dataclass(frozen=True, eq=False)
class LibraryUse:
    """A layer by a kernel of the library: its constants begin with its shape."""

    function: Function
    words: tuple[int, ...]
    workspace: int
    pixels: int
    channels: int


def library_functions(forms: Forms = "packed") -> tuple[Function, ...]:
    """Return the library: every function that `library_for` names."""
    return _conv(forms), _depthwise(forms)


def library_for(
    layer: Conv | Depthwise | FullyConnected,
    *,
    reverse: bool = False,
    columns: bool = False,
    forms: Forms = "packed",
) -> LibraryUse:
    """Return the library's kernel for a layer; with `columns` its lines are columns of the map.

    With `reverse` it makes pixels and channels from the last to the first. It has no form with vectors:
    packed halves take their place.
    """
    forms = "packed" if forms == "vector" else forms
    long = int(scaled_of(layer, any_shift=True).scale.form is Form.LONG)
    if isinstance(layer, Depthwise):
        deep = depthwise_shape(layer, columns=columns)
        window = (*deep.kernel, layer.bias.size, deep.multiplier, deep.stride, deep.dilation, deep.before)
        words = depthwise_words(layer, columns=columns, any_shift=True)
        in_bytes = deep.multiplier > 1 or deep.rest
        constants = (*window, long, int(reverse), *words)
        return LibraryUse(_depthwise(forms), constants, LANES if in_bytes else 0, 1, LANES)
    conv = conv_shape(layer, columns=columns, pixels=PIXELS)
    head = (
        *(*conv.kernel, conv.channels, layer.bias.size // conv.groups, conv.groups, conv.stride),
        *(conv.dilation, conv.before, conv.run, conv.words, int(conv.side_by_side), long, int(reverse)),
    )
    chunk = 1 if conv.groups > 1 and conv.outputs // conv.groups % 2 else CHUNK
    words = conv_words(layer, columns=columns, any_shift=True)
    return LibraryUse(_conv(forms), (*head, *words), conv.patch_bytes, PIXELS, chunk)


def library_workspace(layer: Conv | Depthwise | FullyConnected) -> int:
    """Return the bytes of RAM that the library's kernel needs beside input and output, rows or columns."""
    return max(library_for(layer, columns=columns).workspace for columns in (False, True))


class _Window:
    """The parts common to both kernels: parameters, the shape, and the scaling of a sum to a byte."""

    def __init__(self, name: str, says: str, shape: tuple[str, ...], head: int) -> None:
        k = self.k = Kernel(name, says, "The layer's shape stands in front of its constants.")
        self.lines, self.out = k.lines("lines"), k.output("out")
        self.x0, self.x1 = k.number("x0"), k.number("x1")
        self.first, self.last, self.width = k.number("first"), k.number("last"), k.number("width")
        self.patch, weights = k.output("patch"), k.flash("weights")
        self.of = {name: k.constant(weights, i, name) for i, name in enumerate(shape)}
        names = ("input_offset", "output_offset", "low", "high")
        self.head = {name: k.constant(weights, len(shape) + i, name) for i, name in enumerate(names)}
        self.chunks = k.let("chunks", weights + (len(shape) + head))

    def turned(self, name: str, at: Expr, count: Expr) -> Var:
        """Return index `at` of `count`, counted from the end where the layer runs backwards."""
        k = self.k
        place = k.RegAlloc(name, at)
        with k.when(self.of["backwards"] > 0):
            k.set(place, count - 1 - at)
        return place

    def store(self, o: Var, offset: Expr | int, total: Expr, multiplier: Expr, shift: Expr) -> None:
        k, offset_of = self.k, self.head["output_offset"]
        y = k.RegAlloc("y", 0)
        with k.when(self.of["long_form"].equals(0)):
            k.set(y, call("narrowed_level", total, multiplier, shift, offset_of))
        with k.otherwise():
            k.set(y, call("scaled", total, multiplier, shift) + offset_of)
        k.RAMStore(o, offset, k.least(k.most(y, self.head["low"]), self.head["high"]))


def _conv(forms: Forms = "packed") -> Function:
    return _AnyConv(forms).build()


class _AnyConv(_Window):
    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        super().__init__(
            "any_conv",
            "Convolution of any shape: pixels [x0, x1) of a line, two and two channels.",
            CONV_SHAPE,
            CONV_HEAD,
        )

    def build(self) -> Function:
        k, of = self.k, self.of
        self.line_bytes = k.let("line_bytes", k.most(of["run"], WORD))
        self.words_of_sums = k.let("words_of_sums", of["lines_of"] * of["words_of_run"])
        chunks = k.let("chunks_of_group", (of["outputs"] + 1) >> 1)
        odd_words = (of["outputs"] & 1) * (self.words_of_sums + 3)
        group_words = k.let("group_words", (of["outputs"] >> 1) * self.chunk_words() + odd_words)
        each = k.let("each", of["lines_of"] * self.line_bytes)
        apart = k.RegAlloc("apart", 0)
        base = k.RegAlloc("base", 0)
        for step in k.loop(0, (self.x1 - self.x0 + (PIXELS - 1)) // PIXELS, name="step"):
            first = k.RegAlloc("first_pixel", self.x0 + step * PIXELS)
            with k.when(of["backwards"] > 0):
                k.set(first, self.x1 - (step + 1) * PIXELS)
            x = k.let("x", k.most(first, self.x0))
            pixels = k.let("pixels", k.least(first + PIXELS, self.x1) - x)
            left = k.let("left", x * of["stride"] - of["before"])
            inside = (left >= 0) & (left + of["stride"] * (pixels - 1) + of["taps"] <= self.width)
            every = self.first.equals(0) & self.last.equals(of["lines_of"])
            in_place = k.let("in_place", inside & every & of["side_by_side"])
            for number in k.loop(0, of["groups"], name="number"):
                group = self.turned("group", number, of["groups"])
                with k.when(in_place):
                    k.set(apart, of["stride"] * of["channels"])
                    k.set(base, left * of["channels"])
                with k.otherwise():
                    k.set(apart, each)
                    for p in k.loop(0, pixels, name="p"):
                        self.gather(x + p, p * each, group)
                o_of_group = k.let("o_of_group", self.out + (x * of["groups"] + group) * of["outputs"])
                w_of_group = k.let("w_of_group", self.chunks + group * group_words)
                for at in k.loop(0, chunks, name="at"):
                    chunk = self.turned("chunk", at, chunks)
                    w = k.RegAlloc("w", w_of_group + chunk * self.chunk_words())
                    o = k.let("o", o_of_group + chunk * CHUNK)
                    with k.when(chunk * CHUNK + 1 < of["outputs"]):
                        self.blocks(CHUNK, w, o, in_place, base, apart, pixels)
                    with k.otherwise():
                        self.blocks(1, w, o, in_place, base, apart, pixels)
        return k.finish()

    def chunk_words(self) -> Expr:
        """Return the words of constants of a whole chunk."""
        return self.words_of_sums * CHUNK + (2 * CHUNK + 1)

    def blocks(
        self, channels: int, w: Var, o: Var, in_place: Var, base: Var, apart: Var, pixels: Var
    ) -> None:
        with self.k.when(pixels.equals(PIXELS)):
            self.block(PIXELS, channels, w, o, in_place, base, apart)
        with self.k.otherwise():
            self.block(1, channels, w, o, in_place, base, apart)

    def gather(self, x: Expr, at: Expr, group: Expr) -> None:
        """Emit the window of a pixel into the patch."""
        k, of = self.k, self.of
        zero = k.let("zero", -self.head["input_offset"])
        size = k.let("size", of["channels"] // of["groups"])
        begin = k.let("leftmost", x * of["stride"] - of["before"])
        for line in k.loop(0, of["lines_of"], name="line"):
            target = k.let("target", self.patch + (at + line * self.line_bytes))
            for tap in k.loop(0, of["taps"], name="tap"):
                column = k.let("column", begin + tap * of["dilation"])
                inside = (line >= self.first) & (line < self.last) & (column >= 0) & (column < self.width)
                with k.when(inside):
                    at_pixel = column * of["channels"] + group * size
                    source = k.let("source", k.line(self.lines, line) + at_pixel)
                    for i in k.loop(0, size, name="i"):
                        k.RAMStore(target, tap * size + i, k.RAMLoad(source, i, Kind.BYTE, name="byte"))
                with k.otherwise():
                    for i in k.loop(0, size, name="i"):
                        k.RAMStore(target, tap * size + i, zero)
            for i in k.loop(of["run"], WORD, name="i"):
                k.RAMStore(target, i, zero)

    def block(self, pixels: int, channels: int, w: Var, o: Var, in_place: Var, base: Var, apart: Var) -> None:
        k, of = self.k, self.of
        biases = k.FlashLoad(w, *(f"bias{c}" for c in range(channels)))
        sums = [[k.RegAlloc(f"sum{p}{c}", biases[c]) for c in range(channels)] for p in range(pixels)]
        for line in k.loop(0, of["lines_of"], name="line"):
            x = k.RegAlloc("x", k.line(self.lines, line) + base)
            with k.when(in_place.equals(0)):
                k.set(x, self.patch + line * self.line_bytes)
            # The last word of a run whose length is no multiple of a word overlaps the one before.
            back = k.let("back", k.most(of["words_of_run"] * WORD - self.line_bytes, 0))
            for word in k.loop(0, of["words_of_run"], name="word"):
                with k.when(word.equals(of["words_of_run"] - 1)):
                    k.set(x, x - back)
                four_taps(k, self.forms, sums, x, [apart * p for p in range(pixels)], w)
                k.set(x, x + WORD)
        step = of["outputs"] * of["groups"]
        multipliers = k.FlashLoad(w, *(f"multiplier{c}" for c in range(channels)))
        (shifts,) = k.FlashLoad(w, "shifts")
        for c in range(channels):
            shift = k.let(f"shift{c}", shift_of(shifts, c, shift_bits(CHUNK)))
            for p, row in enumerate(sums):
                self.store(o, step * p + c, row[c], multipliers[c], shift)


def _depthwise(forms: Forms = "packed") -> Function:
    return _AnyDepthwise(forms).build()


class _AnyDepthwise(_Window):
    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        super().__init__(
            "any_depthwise",
            "Depthwise convolution of any shape: pixels [x0, x1) of a line, four channels at a time.",
            DEPTHWISE_SHAPE,
            DEPTHWISE_HEAD,
        )

    def build(self) -> Function:
        k, of = self.k, self.of
        offset = self.head["input_offset"]
        offsets: Expr = offset if by_bytes(self.forms) else k.Broadcast(offset, "offsets")
        inputs = k.let("inputs", of["outputs"] // of["multiplier_of"])
        whole = k.let("whole", (of["outputs"] // LANES) * of["multiplier_of"].equals(1))
        count = k.let("chunks_of_pixel", (of["outputs"] + (LANES - 1)) // LANES)
        window = k.let("window", of["lines_of"] * of["taps"])
        for at in k.loop(0, self.x1 - self.x0, name="at"):
            x = k.let("x", self.x0 + self.turned("pixel", at, self.x1 - self.x0))
            left = k.let("left", x * of["stride"] - of["before"])
            begin = k.let("begin", k.most((of["dilation"] - 1 - left) // of["dilation"], 0))
            end = k.let(
                "end", k.least((self.width - left + (of["dilation"] - 1)) // of["dilation"], of["taps"])
            )
            for number in k.loop(0, count, name="number"):
                chunk = self.turned("chunk", number, count)
                w = k.RegAlloc("w", self.chunks + chunk * (window + (2 * LANES + 1)))
                with k.when(chunk < whole):
                    self.word(x, left, begin, end, chunk, w, offsets, inputs)
                with k.otherwise():
                    self.lanes(x, left, begin, end, chunk * LANES, w, inputs, window)
        return k.finish()

    def word(
        self, x: Var, left: Var, begin: Var, end: Var, chunk: Var, w: Var, offsets: Expr, inputs: Var
    ) -> None:
        """Emit four outputs, a word of input at a time."""
        k, of = self.k, self.of
        at = k.let("place", (left + begin * of["dilation"]) * inputs + chunk * LANES)
        biases = k.FlashLoad(w, *(f"bias{c}" for c in range(LANES)))
        sums = [k.RegAlloc(f"sum{c}", bias) for c, bias in enumerate(biases)]
        for line in k.loop(self.first, self.last, name="line"):
            v = k.RegAlloc("v", w + (line * of["taps"] + begin))
            source = k.RegAlloc("source", k.line(self.lines, line) + at)
            for _ in k.loop(begin, end, name="tap"):
                four_channels(k, self.forms, sums, source, v, 0, offsets)
                k.set(v, v + 1)
                k.set(source, source + of["dilation"] * inputs)
        k.set(w, w + of["lines_of"] * of["taps"])
        o = k.let("o", self.out + (x * of["outputs"] + chunk * LANES))
        multipliers = k.FlashLoad(w, *(f"multiplier{c}" for c in range(LANES)))
        (shifts,) = k.FlashLoad(w, "shifts")
        for c, total in enumerate(sums):
            self.store(o, c, total, multipliers[c], shift_of(shifts, c, SHIFT_BITS))

    def lanes(
        self, x: Expr, left: Var, begin: Var, end: Var, c: Expr, w: Var, inputs: Var, taps: Var
    ) -> None:
        """Emit up to four outputs, a byte of input at a time: all are summed up before one is written."""
        k, of = self.k, self.of
        count = k.let("lanes", k.least(of["outputs"] - c, LANES))
        for lane in k.loop(0, count, name="lane"):
            total = k.RegAlloc("total", k.constant(w, lane, "bias"))
            source = k.let("channel", (c + lane) // of["multiplier_of"])
            for line in k.loop(self.first, self.last, name="line"):
                row = k.let("row", k.line(self.lines, line) + source)
                for tap in k.loop(begin, end, name="tap"):
                    at = (count + line * of["taps"] + tap) * WORD + lane
                    byte = k.RAMLoad(row, (left + tap * of["dilation"]) * inputs, Kind.BYTE, name="byte")
                    k.set(total, total + (byte + self.head["input_offset"]) * k.constant_byte(w, at))
            multiplier = k.constant(w, count + taps + lane, "multiplier")
            shift = shift_of(k.constant(w, count * 2 + taps, "shifts"), lane, SHIFT_BITS)
            self.store(k.let("held", self.patch + lane), 0, total, multiplier, shift)
        o = k.let("o", self.out + (x * of["outputs"] + c))
        for lane in k.loop(0, count, name="lane"):
            k.RAMStore(o, lane, k.RAMLoad(self.patch, lane, Kind.BYTE, name="byte"))
