"""The accesses of one operator to the buffer, the array and the registers under a dataflow, and its cycles.

The accelerator is Optimus' Fig. 4: an array of processing elements over one buffer, each element with a
register file and a multiplier. A dataflow names the loops that the array unrolls: `ow-cout` output columns
and channels, `oh-ow` output rows and columns, `cin-cout` input and output channels. The registers of an
element keep a block of partial sums (`ow-cout`, `oh-ow`) or of weights (`cin-cout`); the block with the
fewest reads of the buffer is chosen, or the cheapest by prices. docs/fusion-energy.md derives every count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

__all__ = ["Accesses", "Array", "Dataflow", "Work", "accesses"]

Dataflow = Literal["ow-cout", "oh-ow", "cin-cout"]


@dataclass(frozen=True, slots=True)
class Array:
    """`rows` x `columns` processing elements with `registers` words each, and the loops that they unroll.

    `prices` are those of a word in the buffer and of one along the array by which a block of sums is chosen.
    """

    rows: int
    columns: int
    registers: int
    dataflow: Dataflow
    prices: tuple[float, float] = (1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Work:
    """One operator on one image: `rows` x `columns` x `out_channels` words, each from a window.

    `rows` counts rows as often as they are made, in `bands` pieces. A word is made from `in_channels`
    channels (those of its group; its own one if channels do not mix) and `kernel_rows` x `kernel_columns`
    pixels, `stride` apart. `weights` are its words of parameters, `slices` the number of pieces in which its
    input arrives by channels: between them the sums wait in the buffer.
    """

    rows: int
    bands: int
    columns: int
    out_channels: int
    in_channels: int
    groups: int
    kernel_rows: int
    kernel_columns: int
    stride: int
    weights: int
    mixes: bool = True
    slices: int = 1

    @property
    def outputs(self) -> int:
        """Words made."""
        return self.rows * self.columns * self.out_channels

    @property
    def macs(self) -> int:
        """Multiply-accumulates; none if there are no weights to multiply with."""
        return self.window if self.weights else 0

    @property
    def window(self) -> int:
        """Words that enter a window, over all windows."""
        return self.outputs * self.in_channels * self.kernel_rows * self.kernel_columns


@dataclass(frozen=True, slots=True)
class Accesses:
    """Words read and written at each level, multiply-accumulates, and cycles of the array."""

    buffer: int = 0
    array: int = 0
    registers: int = 0
    macs: int = 0
    cycles: int = 0

    def __add__(self, other: Accesses) -> Accesses:
        return Accesses(
            self.buffer + other.buffer,
            self.array + other.array,
            self.registers + other.registers,
            self.macs + other.macs,
            self.cycles + other.cycles,
        )


@lru_cache(maxsize=1 << 12)
def accesses(work: Work, on: Array) -> Accesses:
    """Return the accesses of one operator on one image (Optimus section 7.1, counted as in Eyeriss)."""
    if not work.outputs:
        return Accesses()
    if on.dataflow == "cin-cout":
        return _weights_stay(work, on)
    return min(
        (_sums_stay(work, on, *block) for block in _blocks(work, on)),
        key=lambda found: (on.prices[0] * found.buffer + on.prices[1] * found.array, found.array),
    )


def _blocks(work: Work, on: Array) -> Iterator[tuple[int, int, int]]:
    """Yield blocks (rows, columns, channels) of sums that fit the registers beside a word of each operand."""
    most = max(1, on.registers - 2)
    for rows in range(1, min(-(-work.rows // work.bands), most) + 1):
        for columns in range(1, min(work.columns, most // rows) + 1):
            for channels in range(1, min(work.out_channels, most // (rows * columns)) + 1):
                yield rows, columns, channels


def _sums_stay(work: Work, on: Array, rows: int, columns: int, channels: int) -> Accesses:
    """Return the accesses if each element sums up `rows` x `columns` pixels of `channels` channels, and
    writes them when they are complete."""
    down, deep = (1, on.rows) if on.dataflow == "ow-cout" else (on.rows, 1)
    tall = _pieces(work, down * rows)
    across = _ceil(work.columns, on.columns * columns)
    seen = _seen(work.columns, across, work.kernel_columns, work.stride)
    lines = _seen(work.rows, tall, work.kernel_rows, work.stride)
    taps = work.in_channels * work.kernel_rows * work.kernel_columns
    return Accesses(
        buffer=seen * lines * _channel_reads(work, deep * channels)
        + work.weights * tall * across
        + work.outputs * (2 * work.slices - 1),
        array=_ceil(work.window, channels) + _ceil(work.macs, rows * columns),
        registers=4 * work.window,
        macs=work.macs,
        cycles=_pieces(work, down) * _ceil(work.columns, on.columns) * _turns(work, deep) * taps,
    )


def _weights_stay(work: Work, on: Array) -> Accesses:
    """Return the accesses if each element keeps weights of one input and one output channel, and sums travel
    along the array."""
    taps = work.kernel_rows * work.kernel_columns
    held = min(taps, max(1, on.registers - 2))
    turns = _ceil(taps, held) * _ceil(work.in_channels, on.columns)
    lines = _seen(work.rows, work.bands, work.kernel_rows, work.stride)
    seen = _seen(work.columns, 1, work.kernel_columns, work.stride)
    return Accesses(
        buffer=seen * lines * _channel_reads(work, on.rows) * _ceil(taps, held)
        + work.weights * work.bands
        + work.outputs * (2 * max(work.slices, turns) - 1),
        array=_ceil(work.window, held) + work.window + work.weights * work.bands,
        registers=3 * work.window,
        macs=work.macs,
        cycles=work.rows * work.columns * _turns(work, on.rows) * taps * _ceil(work.in_channels, on.columns),
    )


def _turns(work: Work, channels: int) -> int:
    """Return the rounds in which all output channels are made, `channels` of one group at a time."""
    return work.groups * _ceil(work.out_channels // work.groups, channels)


def _channel_reads(work: Work, channels: int) -> int:
    """Return the channels read while all output channels are made, `channels` at a time."""
    return work.in_channels * _turns(work, channels) if work.mixes else work.out_channels


def _pieces(work: Work, high: int) -> int:
    """Return the steps of `high` rows in which all bands are made; the last step of a band may be partial."""
    if not work.bands:
        return 0
    each, more = divmod(work.rows, work.bands)
    return more * _ceil(each + 1, high) + (work.bands - more) * _ceil(each, high)


def _seen(outputs: int, pieces: int, kernel: int, stride: int) -> int:
    """Return the input positions read for `outputs` positions made in `pieces`; shared ones count twice."""
    pieces = min(pieces, outputs)
    return (outputs - pieces) * min(stride, kernel) + pieces * kernel


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
