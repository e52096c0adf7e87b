"""`alloc T @A over X by D` for a group in rings: proof that every byte of X is read before it is overwritten.

The group is run once more, and time counted: a sweep of any stage but the last is one tick; within the last
one, each step of its last operator is one, and so is each column that another operator makes. This gives the
tick of the last read of each pixel of X, and of the write of each pixel of T.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from onchip.check.rings import Band, RingRun, Strip
from onchip.check.rules import broken
from onchip.network import Geometry
from onchip.network.access import Access
from onchip.network.maps import Map
from onchip.network.windows import Range, Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Times = NDArray[np.int64]

__all__ = ["loses_a_byte"]

MAX_WORK = 1 << 26
"""The most pixels of X times the pixels of T that one of them can cover in a proof."""

NEVER = -1

BY_ELEMENT = ("elementwise", "rowwise")
"""Kinds that go from one element of a pixel to the next, unless their geometry says how a step goes."""


def loses_a_byte(run: RingRun, geometry: Geometry | None, tensor: int, over: int, by: int) -> bool:
    """Return whether a group making `tensor` overwrites a byte of `over`, `by` above, and reads it later.

    `geometry` is that of its last operator, whose steps the last stage takes. Raises `Broken`
    (`overlap-unproved`) for maps too large to follow.
    """
    read, made = run.maps[over], run.maps[tensor]
    wide, narrow = read.channels * read.element, made.channels * made.element
    covers = min((wide - 1) // narrow + 2, made.rows * made.columns)
    if read.rows * read.columns * covers > MAX_WORK or made.rows * made.columns > MAX_WORK:
        broken("overlap-unproved", "the maps are too large for a proof")
    pixels = 1 if geometry is None else geometry.pixels
    chunk = 0 if geometry is None else geometry.channels
    if pixels < 1 or chunk < 0:
        broken("overlap-unproved", "a step of the last operator makes no pixel, or a chunk no channel")
    reads, writes = _times(run, tensor, over, pixels)
    chunk = min(chunk or made.channels, made.channels) * made.element
    early = narrow - chunk if run.reverse else (narrow - 1) // chunk * chunk
    if geometry is not None and geometry.kind in BY_ELEMENT and (pixels, geometry.channels) == (1, 0):
        if (read.plane, read.channels) != (made.plane, made.channels):
            early = narrow
        elif _loses_an_element(read, made, reads, writes, by, reverse=run.reverse):
            return True
    return _meets(reads, writes, wide, narrow, by, early, reverse=run.reverse)


# -- when ------------------------------------------------------------------------------------------------


def _times(run: RingRun, tensor: int, over: int, pixels: int) -> tuple[Times, Times]:
    """Return for each pixel of `over` the tick of its last read, for each of `tensor` that of its write.

    In address order; `NEVER` for pixels that are not read (or not written).
    """
    import numpy as np

    read, made = run.maps[over], run.maps[tensor]
    reads = np.full((read.rows, read.columns), NEVER, dtype=np.int64)
    writes = np.full((made.rows, made.columns), NEVER, dtype=np.int64)
    tick, last = 0, len(run.pieces) - 1
    for strip in run.strips:
        for s, band in run.order:
            if s < last:
                for rows, columns in _taken(run, s, band, strip[s], over):
                    reads[slice(*rows), slice(*columns)] = tick
                tick += 1
            elif run.accumulates[s]:
                for rows, columns in _taken(run, s, band, strip[s], over):
                    reads[slice(*rows), slice(*columns)] = tick
                writes[slice(*run.bands[s][band][-1].rows), :] = tick + 1
                tick += 2
            elif strip[s].order:
                tick = _column_sweep(run, band, strip[s], over, reads, writes, tick)
            else:
                tick = _row_sweep(run, run.bands[s][band][0], strip[s], over, pixels, reads, writes, tick)
    if run.reverse:
        return reads[::-1, ::-1], writes[::-1, ::-1]
    return reads, writes


def _taken(run: RingRun, s: int, band: int, strip: Strip, over: int) -> Iterator[tuple[Range, Range]]:
    """Yield the rows and columns of `over` that a whole sweep of a stage needs."""
    if run.accumulates[s] and len(run.pieces[s]) == 1:
        if over in run.pieces[s][0].reads:
            yield (band, band + 1), (0, run.maps[over].columns)
        return
    for part in run.bands[s][band]:
        for rows, columns in _windows(run, part.piece, over):
            lines = rows.start(part.rows[0]), rows.end(part.rows[1])
            across = strip.columns.get(part.piece.writes[0], (0, 0))
            if part.rows[0] < part.rows[1] and across[0] < across[1]:
                yield lines, (columns.start(across[0]), columns.end(across[1]))


def _windows(run: RingRun, piece: Access, over: int) -> Iterator[tuple[Window, Window]]:
    for operand in piece.operands:
        if operand.tensor == over:
            yield operand.rows, operand.columns


def _row_sweep(
    run: RingRun,
    part: Band,
    strip: Strip,
    over: int,
    pixels: int,
    reads: Times,
    writes: Times,
    tick: int,
) -> int:
    """Record the ticks of the last stage's one operator, row by row, `pixels` pixels a step.

    Returns the next tick.
    """
    first, end = strip.columns[part.piece.writes[0]]
    starts = range(first, end, pixels)
    for row in range(*part.rows):
        for rows, columns in _windows(run, part.piece, over):
            lines = slice(rows.start(row), rows.end(row + 1))
            for i, start in enumerate(starts):
                stop = columns.end(min(start + pixels, end))
                reads[lines, columns.start(start) : stop] = tick + i
        for i, start in enumerate(starts):
            writes[row, start : min(start + pixels, end)] = tick + i
        tick += len(starts)
    return tick


def _column_sweep(
    run: RingRun, band: int, strip: Strip, over: int, reads: Times, writes: Times, tick: int
) -> int:
    """Record the ticks of the last stage, column by column, its last operator's by pixels.

    Each operator makes the columns that the next ones need. Returns the next tick.
    """
    parts = run.bands[-1][band]
    for i, column in strip.order:
        part = parts[i]
        for rows, columns in _windows(run, part.piece, over):
            across = slice(columns.start(column), columns.end(column + 1))
            if i < len(parts) - 1:
                if part.rows[0] < part.rows[1]:
                    stop = rows.end(part.rows[1])
                    reads[rows.start(part.rows[0]) : stop, across] = tick
            else:
                for row in range(*part.rows):
                    stop = rows.end(row + 1)
                    reads[rows.start(row) : stop, across] = tick + row - part.rows[0]
        if i < len(parts) - 1:
            tick += 1
        else:
            for row in range(*part.rows):
                writes[row, column] = tick + row - part.rows[0]
            tick += part.rows[1] - part.rows[0]
    return tick


# -- where -----------------------------------------------------------------------------------------------


def _loses_an_element(read: Map, made: Map, reads: Times, writes: Times, by: int, *, reverse: bool) -> bool:
    """Return whether an operator that goes through a pixel element by element overwrites one still to come.

    It does where the pixel that is read begins less than `early` behind the pixel written at the same place:
    the output's elements then lie lower than elements that are still to be read.
    """
    import numpy as np

    if made.channels < 2:
        return False
    wide, narrow, more = (
        read.channels * read.element,
        made.channels * made.element,
        made.element - read.element,
    )
    early = max((made.channels - 1) * more, more)
    behind = by + np.arange(reads.size, dtype=np.int64) * (wide - narrow)
    if reverse:
        behind = narrow - wide - behind
    together = (reads.ravel() > NEVER) & (reads.ravel() == writes.ravel())
    return bool((together & (behind > -wide) & (behind < early)).any())


def _meets(
    reads: Times, writes: Times, wide: int, narrow: int, by: int, early: int, *, reverse: bool
) -> bool:
    """Return whether a byte of a pixel (`wide` bytes, `by` above) is written before the pixel's last read.

    A step may read its pixel until its last chunk, so earlier chunks count as written before. Those are the
    first `early` bytes of a pixel's `narrow`, in reverse the last.
    """
    import numpy as np

    read, written = reads.ravel(), writes.ravel()
    low = by + np.arange(read.size, dtype=np.int64) * wide
    first = low // narrow
    for k in range((wide - 1) // narrow + 2):
        pixel = first + k
        inside = (pixel >= 0) & (pixel < written.size) & (read > NEVER) & (pixel * narrow < low + wide)
        time = written[np.clip(pixel, 0, written.size - 1)]
        inside &= time > NEVER
        lost = inside & (time < read)
        if reverse:
            highest = np.minimum(low + wide, (pixel + 1) * narrow) - 1 - pixel * narrow
            lost |= inside & (time == read) & (highest >= narrow - early)
        else:
            lowest = np.maximum(low, pixel * narrow) - pixel * narrow
            lost |= inside & (time == read) & (lowest < early)
        if bool(lost.any()):
            return True
    return False
