"""Pools with vectors: the greatest of sixteen channels at a time, sums of eight in halves of 16 bits.

A sum of at most 256 bytes fits a half. Its mean needs no division: with f = 2**30 / count rounded up,
floor((|sum| + count / 2) * f / 2**30) is the quotient, because (|sum| + count / 2) * count < 2**30. The sign
is put back behind it: halves go away from zero.

The last channels are made with those before them again, where there are enough: they go to the workspace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onchip.microcontroller.kernel_language import Kernel, Kind
from onchip.microcontroller.kernel_language.intrinsics import call
from onchip.microcontroller.kernel_language.ir import Expr, Var
from onchip.microcontroller.kernels.copies import chunks
from onchip.microcontroller.kernels.elements_vector import By

__all__ = [
    "LEAST_CHANNELS",
    "MOST_PLACES",
    "Finish",
    "averaging",
    "gathered_line",
    "pixel",
]

MOST_PLACES = 256
"""The places whose sum fits a half."""
LEAST_CHANNELS = 4
"""Fewer channels than these are better made one by one."""
HALVES, BYTES, LANES = 8, 16, 4
DIVIDED = 30

Taps = Callable[[Callable[[Expr], None]], None]
"""Runs what it is given for every place of a window, with the pointer to the place's first channel."""


@dataclass(frozen=True)
class Finish:
    """The numbers that make bytes of sums: bounds, the factor of a scaled mean, the count of a plain one."""

    k: Kernel
    low: Expr
    high: Expr
    half: Expr | None = None
    factor: Expr | None = None
    by: By | None = None
    moved: Expr | None = None
    multiplier: Expr | None = None
    shift: Expr | None = None
    offset: Expr | None = None

    def lanes(self, total: Expr) -> Expr:
        """Return four sums divided or scaled."""
        if self.by is None:
            assert self.half is not None
            assert self.factor is not None
            return call("averaged4", total, self.half, self.factor)
        assert self.moved is not None
        assert self.multiplier is not None
        assert self.shift is not None
        moved = self.k.let("moved_sum", call("plus4", total, self.moved))
        if self.by is By.FLAT:
            return call("scaled_flat4", moved, self.multiplier)
        return call(f"scaled_{self.by.value}4", moved, self.multiplier, self.shift)

    def halves(self, total: Expr) -> Expr:
        """Return the bytes of eight sums."""
        k = self.k
        even = k.let("even", self.lanes(call("even_halves", total)))
        odd = k.let("odd", self.lanes(call("odd_halves", total)))
        return call("clamped8", even, odd, self.offset if self.offset is not None else 0, self.low, self.high)


def averaging(k: Kernel, low: Expr, high: Expr, count: Expr) -> Finish:
    """Return what divides by a count."""
    factor = k.let("factor", (count - 1 + (1 << DIVIDED)) // count)
    return Finish(k, low, high, half=k.let("half", count >> 1), factor=factor)


def pixel(
    k: Kernel, channels: int, patch: Expr, taps: Taps, finish: Finish | None, low: Expr, high: Expr
) -> None:
    """Emit the channels of a pixel in the workspace; without `finish` the greatest of the window."""
    if finish is None:
        lowest, highest = k.let("lowest", call("sixteen", low)), k.let("highest", call("sixteen", high))
        for c, count in chunks(k, channels, BYTES):
            total = k.RegAlloc("total", call("sixteen", -128))
            _taps(k, taps, [total], c, "most16", Kind.VECTOR, count)
            held = call("least16", call("most16", total, lowest), highest)
            k.RAMStore(patch, c, held, Kind.VECTOR, count)
        return
    pairs = channels // BYTES if channels >= BYTES else 0
    for first in k.loop(0, pairs * BYTES, BYTES, name="c") if pairs else ():
        sums = [k.RegAlloc(f"total{i}", call("eight", 0)) for i in (0, 1)]
        _taps(k, taps, sums, first, "add8", Kind.HALVES, None)
        for i, total in enumerate(sums):
            k.RAMStore(patch, first + i * HALVES, finish.halves(total), Kind.HALVES)
    for c, count in chunks(k, channels, HALVES, pairs * BYTES):
        total = k.RegAlloc("total", call("eight", 0))
        _taps(k, taps, [total], c, "add8", Kind.HALVES, count)
        k.RAMStore(patch, c, finish.halves(total), Kind.HALVES, count)


def _taps(k: Kernel, taps: Taps, sums: list[Var], c: Expr, adds: str, kind: Kind, count: int | None) -> None:
    def one(place: Expr) -> None:
        for i, total in enumerate(sums):
            some = k.RAMLoad(place, c + i * HALVES, kind, name="some", count=count)
            k.set(total, call(adds, total, some))

    taps(one)


def gathered_line(
    k: Kernel, channels: int, sums: Expr, row: Expr, x0: Var, x1: Var, step: int, greatest: bool
) -> int:
    """Emit the pixels [x0, x1) of a line gathered into one integer a channel; return how many channels."""
    done = 0
    for size in (2 * LANES, LANES):
        whole = channels - (channels - done) % size
        if whole == done:
            continue
        for c in k.loop(done, whole, size, name="c"):
            places = range(0, size, LANES)
            totals = [
                k.RegAlloc(f"total{i}", k.RAMLoad(sums, (c + i) * 4, Kind.INTS, name="before"))
                for i in places
            ]
            at = k.let("at", row + c)
            for x in k.loop(x0, x1, name="x"):
                for i, total in zip(places, totals, strict=True):
                    some = k.RAMLoad(at, x * step + i, Kind.LANES, name="some")
                    k.set(total, call("most4" if greatest else "add4", total, some))
            for i, total in zip(places, totals, strict=True):
                k.RAMStore(sums, (c + i) * 4, total, Kind.INTS)
        done = whole
    return done
