"""The legal distances of a group whose input is whole in memory: every one, to the byte.

The group is run in its order and time counted in ticks, as the checker counts it: a band of any stage but the
last is one tick; in the last stage a step of its layer is one, or each column of an inner layer and each
pixel of the last. For each pixel of the input the last tick that reads it is recorded, and for each tick the
pixels written before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onchip.check.ring_overlap import MAX_WORK
from onchip.microcontroller.segments.distances import Distances
from onchip.microcontroller.segments.drive import Turn
from onchip.microcontroller.segments.layers import Layer, Layers, Map, own_pixel
from onchip.microcontroller.segments.sweep import RowSweep, adds_up, columns_of, pyramid, swept
from onchip.network.windows import Range, Window

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ticks = NDArray[np.int64]

__all__ = ["Reading", "group_distances", "readings"]

NEVER = -(1 << 60)


@dataclass(frozen=True, slots=True)
class Reading:
    """A layer of a stage that reads the input: the columns that it reads in a band, and its rows' window."""

    layer: Layer
    operand: int
    columns: Range

    def rows(self, need: Mapping[int, Range], resident: int) -> Range:
        """Return the rows read in a band that takes `need`; a pool that adds up takes the band's own."""
        if self.layer.adds_up:
            return need.get(resident, (0, 0))
        return self.layer.rows[self.operand].reads(need.get(self.layer.makes, (0, 0)))


def readings(net: Layers, layers: Sequence[Layer], across: Range, resident: int) -> list[Reading]:
    """Return the readings of a stage whose sweep makes these columns."""
    body = swept(layers)
    if adds_up(layers) and len(layers) == 1:
        return [Reading(layers[0], 0, (0, net.maps[resident].columns))] if resident in layers[0].reads else []
    columns = pyramid(body, body[-1].makes, across, rows=False)
    return [
        Reading(layer, i, layer.columns[i].reads(columns.get(layer.makes, (0, 0))))
        for layer in body
        for i, t in enumerate(layer.reads)
        if t == resident
    ]


@dataclass(slots=True)
class _Clock:
    """The pixels written before each tick: `pixels` of the output, and of the `height` rows behind those
    `columns` each, one more in the first `more`; the pixels that the tick itself writes are `count` from
    `own` on."""

    reads: Ticks
    now: int = 0
    pixels: list[Ticks] = field(default_factory=list)
    height: list[Ticks] = field(default_factory=list)
    columns: list[Ticks] = field(default_factory=list)
    more: list[Ticks] = field(default_factory=list)
    own: list[Ticks] = field(default_factory=list)
    count: list[Ticks] = field(default_factory=list)

    def tick(
        self,
        pixels: Ticks,
        own: Ticks | int = 0,
        count: Ticks | int = 0,
        height: int = 0,
        columns: Ticks | int = 0,
        more: Ticks | int = 0,
    ) -> None:
        """Record as many ticks as `pixels` has."""
        import numpy as np

        for into, value in (
            (self.pixels, pixels),
            (self.own, own),
            (self.count, count),
            (self.height, height),
            (self.columns, columns),
            (self.more, more),
        ):
            into.append(np.broadcast_to(np.asarray(value, dtype=np.int64), pixels.shape))
        self.now += pixels.size

    def read(self, rows: Range, ticks: Ticks | int, columns: Range | None = None) -> None:
        """Record a read of these rows at these ticks, one for each column (or at one, in these columns)."""
        import numpy as np

        part = self.reads[slice(*rows)] if columns is None else self.reads[slice(*rows), slice(*columns)]
        np.maximum(part, ticks, out=part)


def group_distances(
    net: Layers,
    chosen: Sequence[Sequence[Layer]],
    sweeps: Sequence[RowSweep],
    order: Sequence[Turn],
    source: int,
    resident: int,
) -> Distances | None:
    """Return the legal distances of a group in one strip, counted in the direction of `net`.

    None if input and output must not overlap. Turns of `order` count makers; the first `source` of them
    fetch. A stage reads all of a window from the first line to the last.
    """
    import numpy as np

    last = chosen[-1][-1]
    there, out = net.maps[resident], net.maps[last.makes]
    covers = min((there.pixel - 1) // out.pixel + 2, out.rows * out.columns)
    if max(there.rows * there.columns * covers, out.rows * out.columns) > MAX_WORK:
        return None
    across = pyramid(
        [layer for layers in chosen for layer in layers], last.makes, (0, out.columns), rows=False
    )
    reading = [
        readings(net, layers, across.get(swept(layers)[-1].makes, (0, 0)), resident) for layers in chosen
    ]
    clock = _Clock(np.full((there.rows, there.columns), NEVER, dtype=np.int64))
    final = _Rows(net, last, resident) if len(chosen[-1]) == 1 else _Columns(net, chosen[-1], resident)
    done = 0  # rows of the output
    for turn in order:
        s = turn.maker - source
        if s < 0:
            continue
        need, band = sweeps[s].taken[turn.band], sweeps[s].maker.bands[turn.band]
        if s < len(chosen) - 1 or adds_up(chosen[s]):
            for one in reading[s]:
                clock.read(one.rows(need, resident), clock.now, one.columns)
            if reading[s]:
                clock.tick(np.full(1, done * out.columns, dtype=np.int64))
        else:
            if reading[s]:
                final.sweep(clock, band)
            done = band[1]
    return _lost(clock, there, out, last.early, own_pixel(net, last, resident))


class _Rows:
    """The last stage, of one layer: row by row, a step a tick."""

    def __init__(self, net: Layers, layer: Layer, resident: int) -> None:
        import numpy as np

        out, there = net.maps[layer.makes], net.maps[resident]
        self.layer, self.width = layer, out.columns
        self.starts = np.arange(0, out.columns, layer.step, dtype=np.int64)
        self.counts = np.minimum(self.starts + layer.step, out.columns) - self.starts
        self.readings = []
        for i, t in enumerate(layer.reads):
            if t != resident:
                continue
            steps = np.full(there.columns, NEVER, dtype=np.int64)
            for k, start in enumerate(self.starts.tolist()):
                steps[slice(*layer.columns[i].reads((start, min(start + layer.step, out.columns))))] = k
            self.readings.append((layer.rows[i], steps))

    def sweep(self, clock: _Clock, band: Range) -> None:
        """Record the rows of a band."""
        for row in range(*band):
            for rows, steps in self.readings:
                clock.read(rows.reads((row, row + 1)), clock.now + steps)
            at = row * self.width + self.starts
            clock.tick(at, at, self.counts)


class _Columns:
    """The last stage, of several layers: column by column."""

    def __init__(self, net: Layers, layers: Sequence[Layer], resident: int) -> None:
        import numpy as np

        self.layers, self.made = layers, layers[-1].makes
        out, there = net.maps[self.made], net.maps[resident]
        self.width = out.columns
        events = columns_of(layers, (0, out.columns)).order
        self.last = np.array([t == self.made for t, _ in events], dtype=bool)
        self.column = np.cumsum(self.last) - self.last  # of the output, made before
        by_tensor = {layer.makes: layer for layer in layers}
        self.inner: list[tuple[Layer, Window, Ticks]] = []
        self.ends: list[tuple[Layer, Window, Ticks]] = []
        for layer in layers:
            for i, t in enumerate(layer.reads):
                if t != resident:
                    continue
                when = np.full(there.columns, NEVER, dtype=np.int64)
                for k, (makes, column) in enumerate(events):
                    if by_tensor[makes] is layer:
                        when[slice(*layer.columns[i].reads((column, column + 1)))] = k
                (self.ends if layer.makes == self.made else self.inner).append((layer, layer.rows[i], when))

    def sweep(self, clock: _Clock, band: Range) -> None:
        """Record the columns of a band."""
        import numpy as np

        height = band[1] - band[0]
        sizes = np.where(self.last, height, 1)
        begins = np.cumsum(sizes) - sizes
        rows = pyramid(self.layers, self.made, band, rows=True)
        for layer, window, when in self.inner:
            ticks = np.where(when >= 0, clock.now + begins[np.maximum(when, 0)], NEVER)
            clock.read(window.reads(rows.get(layer.makes, (0, 0))), ticks)
        for _, window, when in self.ends:
            ticks = np.where(when >= 0, clock.now + begins[np.maximum(when, 0)], NEVER)
            for j, row in enumerate(range(*band)):
                clock.read(window.reads((row, row + 1)), ticks + j)
        column = np.repeat(self.column, sizes)
        more = np.arange(column.size) - np.repeat(begins, sizes)
        wrote = np.repeat(self.last, sizes)
        own = (band[0] + more) * self.width + column
        start = np.full(column.size, band[0] * self.width, dtype=np.int64)
        clock.tick(start, own, wrote.astype(np.int64), height, column, more)


def _lost(clock: _Clock, there: Map, out: Map, early: int, own: int | None) -> Distances:
    """Return the legal distances: no pixel of the input is overwritten before or early in its last tick."""
    import numpy as np

    if not clock.now:
        return Distances(())
    pixel = np.flatnonzero(clock.reads >= 0)
    tick = clock.reads.ravel()[pixel]
    at, wide, narrow = pixel * there.pixel, there.pixel, out.pixel
    before, height, columns, more, start, count = (
        np.concatenate(part)[tick]
        for part in (clock.pixels, clock.height, clock.columns, clock.more, clock.own, clock.count)
    )
    some = before > 0
    lows, highs = [(1 - at - wide)[some]], [(before * narrow - at - 1)[some]]
    for j in range(int(height.max(initial=0))):
        wrote = columns + (more > j)
        some = (height > j) & (wrote > 0)
        first = (before + j * out.columns) * narrow - at
        lows.append((first - wide + 1)[some])
        highs.append((first + wrote * narrow - 1)[some])
    if early or own is not None:
        for k in range(int(count.max(initial=0))):
            mine = ((start + k) * narrow - at)[count > k]
            lows.append(mine - wide + 1)
            highs.append(mine + (early if own is None else own) - 1)
    return Distances.but(np.concatenate(lows), np.concatenate(highs))
