"""The forms of products: four taps of a run, and one tap of four channels, as a core makes them best.

`packed` widens bytes to pairs of halves and multiplies pairs (DSP extension). `plain` and `narrow` load
byte by byte and multiply-accumulate one product at a time: without the extension a pair costs more to make
than it saves. `narrow` takes bytes of weights out of words, and sweeps pixels one by one: its core has few
registers, and no load of a signed byte at a fixed distance. All read the same constants: a word of weights
for each channel, or tap.
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.machines.cores import Forms
from onchip.microcontroller.kernel_language import Kernel, Kind
from onchip.microcontroller.kernel_language.builder import Value
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Type, Var

__all__ = ["by_bytes", "four_channels", "four_taps", "paired"]

WORD = 4


def by_bytes(forms: Forms) -> bool:
    """Return whether products are made one at a time, from bytes."""
    return forms in ("plain", "narrow")


def four_taps(
    k: Kernel, forms: Forms, sums: Sequence[Sequence[Var]], x: Var, offsets: Sequence[Value], w: Var
) -> None:
    """Emit four products for every sum: `sums` by pixel and channel, `offsets` the pixels' bytes from `x`.

    `w` moves past the words of weights, one for each channel.
    """
    channels = range(len(sums[0]))
    if not by_bytes(forms):
        pairs = [] if len(channels) == 2 else [k.widen(k.RAMLoad(x, at, name="x"), "x") for at in offsets]
        for first in range(0, len(channels), 2):
            some = channels[first : first + 2]
            words = k.FlashLoad(w, *(f"w{c}" for c in some), type=Type.WORD)
            weights = [k.widen(word, word.name) for word in words]
            for p, (row, offset) in enumerate(zip(sums, offsets, strict=True)):
                x_pair = pairs[p] if pairs else k.widen(k.RAMLoad(x, offset, name=f"x{p}"), f"x{p}")
                k.Dot(row[first : first + 2], x_pair, weights)
        return
    if forms == "narrow":
        words = k.FlashLoad(w, *(f"w{c}" for c in channels), type=Type.WORD)
        for tap in range(WORD):
            for row, offset in zip(sums, offsets, strict=True):
                byte = k.RAMLoad(x, offset + tap, Kind.BYTE, name="byte")
                for total, word in zip(row, words, strict=True):
                    k.set(total, call("mla", byte, call(f"byte{tap}", word), total))
        return
    for tap in range(WORD):
        taps = [k.let(f"w{c}", k.constant_byte(w, WORD * c + tap)) for c in channels]
        for p, (row, offset) in enumerate(zip(sums, offsets, strict=True)):
            byte = k.RAMLoad(x, offset + tap, Kind.BYTE, name=f"x{p}")
            for total, weight in zip(row, taps, strict=True):
                k.set(total, call("mla", byte, weight, total))
    k.set(w, w + len(channels))


def four_channels(
    k: Kernel, forms: Forms, sums: Sequence[Var], x: Expr, w: Var, tap: int, offset: Expr
) -> None:
    """Emit one product for each of four channels at `x`, to which `offset` is added.

    The weights are the word `tap` words after `w`, which stays. `offset` is a number where products are made
    of bytes, else a pair.
    """
    if by_bytes(forms):
        for c, total in enumerate(sums):
            byte = k.RAMLoad(x, c, Kind.BYTE, name="byte")
            k.set(total, call("mla", byte + offset, k.constant_byte(w, WORD * tap + c), total))
        return
    paired(k, sums, k.RAMLoad(x), k.constant(w, tap, "weights4", type=Type.WORD), offset)


def paired(k: Kernel, sums: Sequence[Var], word: Var, weights: Var, offset: Expr) -> None:
    """Emit one product for each of four channels, of a word of input and one of weights."""
    for half, w in enumerate(k.widen(weights, "w")):
        name = ("widen_even_plus", "widen_odd_plus")[half]
        pair = k.let(("x_even", "x_odd")[half], call(name, offset, word))
        k.set(sums[half], call("mla_low", pair, w, sums[half]))
        k.set(sums[half + 2], call("mla_high", pair, w, sums[half + 2]))
