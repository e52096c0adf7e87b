"""Fig. 7: nine pointwise layers that obey what the text says of the paper's nine, by search.

The text names one shape, the first. It says that the first three make as much as they read and the others do
not; that TinyEngine fails on 1, 2 and 4 in 128 KB and vMCU on none; that 12.01 to 49.45 % are saved, most on
the first three. By tensors alone the first saves 50 %, so that nothing can obey all of it, and `least` shows
that for every shape that could stand in its place. What is left is RAM that both programs have beside the
tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vmcu_networks import pointwise

from onchip.microcontroller.compare.segments import best_order
from onchip.papers.vmcu.circular import circular_pool

__all__ = ["Shape", "beside", "fig_7", "least", "ninth", "obeyed", "rows", "shapes", "share"]

F411RE = 128 * 1024
LEAST, MOST = "12.01", "49.45"
"""Per cent, as the text has them."""
NAMED = (80, 16, 16)
CHANNELS = (8, 16, 24, 32, 40, 48, 64, 80, 96, 120, 144, 160, 192, 240, 288, 320)
"""Channels of MobileNet's and MCUNet's pointwise layers; maps up to 112 x 112."""
SIDES = range(4, 113)

Shape = tuple[int, int, int]
"""Rows and columns, channels in, channels out."""

FIRST: tuple[Shape, ...] = (NAMED, (56, 32, 32), (44, 32, 32))
MIDDLE: tuple[Shape, ...] = ((44, 16, 64), (48, 8, 16), (20, 16, 48), (20, 48, 16), (11, 240, 48))
"""Chosen, of MobileNet's and MCUNet's layers; the ninth is searched for."""


@dataclass(frozen=True)
class Case:
    """A layer: bytes of whole tensors, and by vMCU with segments of a byte and of the paper's rule."""

    shape: Shape
    whole: int
    bytes: int
    segments: int

    def saved(self, constant: int = 0) -> float:
        """Return the share that vMCU saves, with so many bytes beside the tensors of both."""
        return 1 - (self.bytes + constant) / (self.whole + constant)


@cache
def case(shape: Shape) -> Case:
    """Return the layer as the library plans it."""
    network = pointwise(*shape)
    by_byte, by_segment = (circular_pool(network, segment).bytes for segment in ("byte", "paper"))
    return Case(shape, best_order(network).ram_bytes, by_byte, by_segment)


def counted(shape: Shape) -> tuple[int, int]:
    """Return the bytes of both by formula, for the search: in + out, and the larger with the distance."""
    side, channels, outputs = shape
    pixels = side * side
    return pixels * (channels + outputs), pixels * max(channels, outputs) + min(channels, outputs) - 1


def least() -> tuple[float, Shape]:
    """Return the least that a layer can save by tensors alone which makes as much as it reads, is too large
    whole, and fits overlapped: as cases 1 and 2 do."""
    found = []
    for side in SIDES:
        for channels in CHANNELS:
            whole, overlapped = counted((side, channels, channels))
            if overlapped <= F411RE < whole:
                found.append((1 - overlapped / whole, (side, channels, channels)))
    return min(found)


def beside() -> tuple[int, int]:
    """Return the bytes beside the tensors of both, from and to, with which the first case saves 49.45 %."""
    whole, overlapped = counted(NAMED)
    fitting = [n for n in range(1 << 14) if share(1 - (overlapped + n) / (whole + n)) == MOST]
    return fitting[0], fitting[-1]


@cache
def ninth() -> tuple[int, Shape]:
    """Return bytes beside the tensors and a shape that then saves 12.01 %: the middle of the longest range
    of such bytes, of the largest map among those."""
    low, high = beside()
    ranges: dict[Shape, list[int]] = {}
    for side in SIDES:
        for channels in CHANNELS:
            for outputs in (n for n in CHANNELS if n != channels):
                whole, overlapped = counted((side, channels, outputs))
                fitting = [
                    n for n in range(low, high + 1) if share(1 - (overlapped + n) / (whole + n)) == LEAST
                ]
                if fitting and overlapped + high <= F411RE:
                    ranges[side, channels, outputs] = fitting
    shape = max(ranges, key=lambda shape: (len(ranges[shape]), shape))
    return ranges[shape][len(ranges[shape]) // 2], shape


def cases() -> tuple[Case, ...]:
    """Return the nine."""
    return tuple(case(shape) for shape in (*FIRST, *MIDDLE, ninth()[1]))


def shapes() -> tuple[Shape, ...]:
    """Return the nine shapes, which Fig. 8 measures, too."""
    return tuple(one.shape for one in cases())


def obeyed(constant: int) -> dict[str, bool]:
    """Return each sentence of the text on the figure, and whether the nine obey it."""
    all_ = cases()
    shares = [one.saved(constant) for one in all_]
    smaller = [one.whole - side * side * max(c, k) for one in all_ for side, c, k in [one.shape]]
    too_large = [i for i, one in enumerate(all_, 1) if one.whole + constant > F411RE]
    return {
        "the first is 80 x 80, 16 > 16": all_[0].shape == NAMED,
        "the first three make as much as they read, the others do not": [
            one.shape[1] == one.shape[2] for one in all_
        ]
        == [True] * 3 + [False] * 6,
        "the first three save more than the others": min(shares[:3]) > max(shares[3:]),
        "the first three have larger activations (the smaller of both)": min(smaller[:3]) > max(smaller[3:]),
        "TinyEngine fails on 1, 2 and 4": too_large == [1, 2, 4],
        "vMCU fails on none": all(one.bytes + constant <= F411RE for one in all_),
        "the least saving is 12.01 %": share(min(shares)) == LEAST,
        "the most is 49.45 %": share(max(shares)) == MOST,
    }


def share(value: float) -> str:
    """Return per cent with two decimals, as the text has them."""
    return f"{100 * value:.2f}"


def rows() -> Iterator[tuple[Case, float, float]]:
    """Yield the nine with what they save: by tensors, and with what is beside them."""
    constant, _ = ninth()
    for one in cases():
        yield one, one.saved(), one.saved(constant)


def fig_7() -> Iterator[str]:
    constant, _ = ninth()
    yield (
        "| case | rows x columns, channels | in + out | by the paper's segment | by bytes | saved "
        f"| saved with {constant:,} bytes beside | in 128 KB: whole, overlapped |"
    )
    yield "|--:|---|--:|--:|--:|--:|--:|---|"
    for i, (one, plain, more) in enumerate(rows(), 1):
        side, channels, outputs = one.shape
        fits = ", ".join("yes" if n + constant <= F411RE else "no" for n in (one.whole, one.bytes))
        yield (
            f"| {i} | {side} x {side}, {channels} > {outputs} | {one.whole:,} | {one.segments:,} "
            f"| {one.bytes:,} | {plain:.2%} | {more:.2%} | {fits} |"
        )
    yield ""
    low, high = beside()
    saving, (side, channels, _) = least()
    yield "| sentence of the text | by tensors alone | with what is beside them |"
    yield "|---|---|---|"
    alone, together = obeyed(0), obeyed(constant)
    for sentence, holds in together.items():
        yield f"| {sentence} | {'yes' if alone[sentence] else 'no'} | {'yes' if holds else 'no'} |"
    yield ""
    yield (
        f"By tensors alone nothing can obey all: the named layer saves {case(NAMED).saved():.2%}, and of all "
        f"layers up to {SIDES[-1]} x {SIDES[-1]} and {CHANNELS[-1]} channels that make as much as they read, "
        f"are too large whole and fit overlapped, none saves less than {saving:.2%} ({side} x {side}, "
        f"{channels} channels). With {low:,} to {high:,} bytes of RAM beside the tensors of both programs "
        f"the named layer saves 49.45 %, and with {constant:,} the ninth 12.01 %."
    )
