"""A fully connected layer over the paper's circular pool (vMCU Fig. 4), by segments.

A row of the input is read segment by segment, a row of the output written segment by segment; each begins at
its address modulo the pool's size, and is contiguous from there. With segments of less than four bytes no
word can be loaded: its bytes are gathered. `circular=False` leaves the modulo out, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from onchip.microcontroller.int8.model import Conv, FullyConnected
from onchip.microcontroller.kernel_language import Function, Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Pairs
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Type, Var
from onchip.microcontroller.kernels.conv import CHUNK, CONV_HEAD, conv_words
from onchip.microcontroller.kernels.scale import Scaler, scaled_of, shift_of

__all__ = ["SHIFT_BITS", "segment_kernel", "segment_words"]

WORD, SHIFT_BITS = 4, 16


def segment_words(layer: Conv | FullyConnected) -> list[int]:
    """Return the layer's constants as the kernel reads them."""
    return conv_words(layer)


def segment_kernel(
    layer: Conv | FullyConnected, segment: int, *, circular: bool = True, name: str = "segment_kernel"
) -> Function:
    """Return the kernel for a pointwise convolution or fully connected layer, in segments of so many bytes.

    It takes the pool, its size in bytes, where input and output begin in it, and how many rows there are.
    Raises `ValueError` where segments do not divide the rows of input and output, or are no power of two or
    multiple of four.
    """
    inputs, outputs = layer.input_shapes[0][3], layer.output_shape[3]
    if inputs % segment or outputs % segment or outputs % CHUNK or inputs % WORD:
        raise ValueError(f"segments of {segment} do not divide rows of {inputs} and {outputs}")
    if segment not in (1, 2) and segment % WORD:
        raise ValueError(f"segments of {segment} bytes hold no whole words")
    k = Kernel(
        name,
        f"Rows of {inputs} bytes to rows of {outputs}, in segments of {segment}"
        + (", each address modulo the pool's size." if circular else "."),
    )
    pool, size = k.output("pool"), k.number("size")
    source, target, rows = k.number("source"), k.number("target"), k.number("rows")
    weights = k.flash("weights")
    scaler = Scaler(k, scaled_of(layer).scale, weights)
    wide = max(segment, CHUNK)

    def at(offset: Expr, said: str) -> Var:
        return k.let(said, offset % size if circular else offset)

    for row in k.loop(0, rows, name="row"):
        w = k.RegAlloc("w", weights + CONV_HEAD)
        for stored in k.loop(0, outputs, wide, name="stored"):
            made = target + row * outputs + stored
            base: Expr = at(made, "made") if segment >= CHUNK else made
            for first in k.loop(0, wide, CHUNK, name="first"):
                biases = k.FlashLoad(w, *(f"bias{c}" for c in range(CHUNK)))
                sums = [k.RegAlloc(f"sum{c}", bias) for c, bias in enumerate(biases)]
                for begin in k.loop(0, inputs, max(segment, WORD), name="begin"):
                    here = source + row * inputs + begin
                    if segment < WORD:
                        _products(k, sums, w, _gathered(k, pool, here, segment, at))
                        continue
                    place = at(here, "place")
                    for word in k.loop(0, segment, WORD, name="word"):
                        loaded = k.RAMLoad(pool, place + word)
                        _products(k, sums, w, k.widen(loaded, "x"))
                multipliers = k.FlashLoad(w, *(f"multiplier{c}" for c in range(CHUNK)))
                (shifts,) = k.FlashLoad(w, "shifts")
                for c, total in enumerate(sums):
                    byte = scaler.byte(total, multipliers[c], shift_of(shifts, c, SHIFT_BITS))
                    if segment < CHUNK and c % segment == 0:
                        base = at(made + c, f"made{c}")
                    k.RAMStore(pool, base + first + c % segment, byte)
    return k.finish()


def _products(k: Kernel, sums: list[Var], w: Var, x: Pairs) -> None:
    """Emit four products for every sum."""
    words = k.FlashLoad(w, *(f"w{c}" for c in range(len(sums))), type=Type.WORD)
    k.Dot(sums, x, [k.widen(word, word.name) for word in words])


def _gathered(k: Kernel, pool: Var, here: Expr, segment: int, at: Callable[[Expr, str], Var]) -> Pairs:
    """Emit the load of four bytes that lie in several segments, as pairs of bytes 0 and 2, 1 and 3."""
    bytes_ = []
    for first in range(0, WORD, segment):
        place = at(here + first, f"place{first}")
        bytes_ += [
            k.Broadcast(k.RAMLoad(pool, place + i, Kind.BYTE, name=f"byte{first + i}"))
            for i in range(segment)
        ]
    even = k.let("x_even", call("pack_low", bytes_[0], bytes_[2]))
    return even, k.let("x_odd", call("pack_low", bytes_[1], bytes_[3]))
