"""How far an output may lie over the input it is made from: the smallest safe distance, to the byte.

Bytes of the output are written upwards. What is written at some time must lie below the lowest byte of the
input that is still to be read then; so the distance is the greatest of (end of what is written) - (lowest
byte still to be read), over all times. vMCU's equations 1 and 2 ask for it as an integer programme; here the
steps are gone through, which is exact for every window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onchip.segments.layers import Layer, Layers, Range

__all__ = ["Reach", "distance"]


@dataclass(frozen=True, slots=True)
class Reach:
    """A moment: the input's bytes from `low` on are read, then the output's bytes up to `end` are written.

    The moment's reads come before its write, but for the bytes up to `early`, which are written while all
    that it reads is still needed (the first chunks of a step).
    """

    low: int | None
    end: int | None
    early: int | None = None

    @classmethod
    def of_rows(cls, net: Layers, layer: Layer, band: Range, resident: int | None) -> Iterator[Reach]:
        """The last layer, sweeping rows: a moment for each step that reads and writes, else for each row."""
        out = net.maps[layer.makes]
        for row in range(*band):
            if resident is None:
                yield cls(None, (row + 1) * out.row)
                continue
            for column in range(0, out.columns, layer.step):
                end = min(column + layer.step, out.columns)
                yield cls.of_step(net, layer, row, (column, end), resident)

    @classmethod
    def of_step(cls, net: Layers, layer: Layer, row: int, columns: Range, resident: int | None) -> Reach:
        """A step, which writes a row's pixels in `columns`, and reads `resident` for them unless None."""
        out = net.maps[layer.makes]
        written = row * out.row + columns[1] * out.pixel
        low = None if resident is None else _lowest(net, layer, row, columns, resident)
        early = written - out.pixel + layer.early if layer.early and low is not None else None
        return cls(low, written, early)


def _lowest(net: Layers, layer: Layer, row: int, columns: Range, resident: int) -> int | None:
    """The lowest byte of `resident` that a layer reads for a row's pixels in `columns`; None for none."""
    there, i = net.maps[resident], layer.reads.index(resident)
    first_row, end_row = layer.rows[i].reads((row, row + 1))
    first, end = layer.columns[i].reads(columns)
    return first_row * there.row + first * there.pixel if first_row < end_row and first < end else None


def distance(moments: Sequence[Reach]) -> int:
    """The fewest bytes from the output's start up to the input's for no byte to be lost; 0 at least."""
    lowest, most = None, 0
    for moment in reversed(moments):
        if moment.end is not None and lowest is not None:
            most = max(most, moment.end - lowest)
        if moment.low is not None:
            lowest = moment.low if lowest is None else min(lowest, moment.low)
        if moment.early is not None and lowest is not None:
            most = max(most, moment.early - lowest)
    return most
