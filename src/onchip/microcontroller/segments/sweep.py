"""A stage of a group: the rows that its bands take and make, and its sweep over their columns.

A stage of one layer sweeps whole rows. A stage of several goes over the columns of its band: each inner layer
makes the columns that the next ones need, of all the rows that the band needs, so rows that two bands share
are made twice. A pool over a whole map at a stage's end adds up the pixels that the layers before it make.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from onchip.microcontroller.segments.drive import Maker, bands_of, turns
from onchip.microcontroller.segments.layers import Layer, Layers
from onchip.network.windows import Range, Window

__all__ = [
    "Columns",
    "RowSweep",
    "adds_up",
    "by_column",
    "columns_of",
    "most_at_once",
    "pyramid",
    "rows_of",
    "swept",
]


def adds_up(layers: Sequence[Layer]) -> bool:
    """Return whether the stage ends in a pool that takes its map as it is made."""
    return layers[-1].adds_up


def swept(layers: Sequence[Layer]) -> Sequence[Layer]:
    """Return the layers of a stage that sweep its bands: all but a pool that adds up others' output."""
    return layers[:-1] if adds_up(layers) and len(layers) > 1 else layers


def by_column(layers: Sequence[Layer], fetched: Collection[int]) -> bool:
    """Return whether the stage sweeps its bands column by column."""
    return len(layers) > 1 or any(t in fetched for layer in layers for t in layer.reads)


def pyramid(layers: Sequence[Layer], made: int, lines: Range, *, rows: bool) -> dict[int, Range]:
    """Return the lines of every tensor that `lines` of `made` need through these layers."""
    need = {made: lines}
    for layer in reversed(layers):
        if layer.makes not in need:
            continue
        for t, window in zip(layer.reads, layer.rows if rows else layer.columns, strict=True):
            first, end = window.reads(need[layer.makes])
            if first < end:
                low, high = need.get(t, (first, end))
                need[t] = min(low, first), max(high, end)
    return need


@dataclass(frozen=True, slots=True)
class RowSweep:
    """A stage along the rows: its bands, and the rows that each takes and makes of every tensor."""

    maker: Maker
    taken: tuple[Mapping[int, Range], ...]

    def tallest(self, bands: int) -> dict[int, int]:
        """Return, for each tensor, the most rows that one of the first bands takes."""
        found: dict[int, int] = {}
        for need in self.taken[:bands]:
            for t, (first, end) in need.items():
                found[t] = max(found.get(t, 0), end - first)
        return found


def rows_of(net: Layers, layers: Sequence[Layer], height: int, fetched: Collection[int] = ()) -> RowSweep:
    """Return the sweep in bands of `height` rows; tensors `fetched` by columns have no maker."""
    made = layers[-1].makes
    body = swept(layers)
    last = body[-1].makes
    taken: tuple[Mapping[int, Range], ...]
    if adds_up(layers) and len(layers) == 1:
        bands = bands_of((0, net.maps[layers[0].reads[0]].rows), 1)
        taken = tuple({layers[0].reads[0]: band} for band in bands)
    else:
        bands = bands_of((0, net.maps[last].rows), height)
        taken = tuple(pyramid(body, last, band, rows=True) for band in bands)
    if adds_up(layers):
        bands = ((0, 0),) * (len(bands) - 1) + ((0, 1),)
    inside = {layer.makes for layer in layers} | set(fetched)
    outer = tuple(dict.fromkeys(t for layer in layers for t in layer.reads if t not in inside))
    needs = tuple(tuple(need.get(t, (0, 0)) for need in taken) for t in outer)
    return RowSweep(Maker(made, bands, outer, needs), taken)


@dataclass(frozen=True, slots=True)
class Columns:
    """A stage that sweeps by columns: the most columns held at once, and the order of making them."""

    at_once: Mapping[int, int]
    order: tuple[tuple[int, int], ...]


def columns_of(layers: Sequence[Layer], across: Range, fetched: Collection[int] = ()) -> Columns:
    """Return the stage with columns `across` of its last map made in order; `order` are (tensor, column)."""
    body = swept(layers)
    made = body[-1].makes
    mine = pyramid(body, made, across, rows=False)
    read = {t for layer in body for t in layer.reads}
    makers = [Maker(t, bands_of(mine.get(t, (0, 0)), 1)) for t in fetched if t in read]
    for layer in body:
        bands = bands_of(mine.get(layer.makes, (0, 0)), 1)
        needs = tuple(tuple(w.reads(band) for band in bands) for w in layer.columns)
        makers.append(Maker(layer.makes, bands, layer.reads, needs))
    at_once: dict[int, int] = {}
    order: list[tuple[int, int]] = []
    for turn in turns(makers):
        t = makers[turn.maker].makes
        at_once[t] = max(at_once.get(t, 0), turn.live)
        order.append((t, makers[turn.maker].bands[turn.band][0]))
    at_once.pop(made, None)
    return Columns(at_once, tuple(order))


def most_at_once(layers: Sequence[Layer], across: Range, fetched: Collection[int] = ()) -> Mapping[int, int]:
    """Return `columns_of(...).at_once` quickly.

    In a stage's chain a tensor is made as its one reader asks for it, so the most held at once follows from
    that reader's window alone. Where a tensor of the stage has two readers, the order is simulated.
    """
    body = swept(layers)
    made = {layer.makes for layer in body[:-1]} | set(fetched)
    readers: dict[int, list[tuple[Layer, Window]]] = {}
    for layer in body:
        for t, window in zip(layer.reads, layer.columns, strict=True):
            if t in made:
                readers.setdefault(t, []).append((layer, window))
    if len(readers) != len(made) or any(len(found) != 1 for found in readers.values()):
        return columns_of(layers, across, fetched).at_once
    starts = pyramid(body, body[-1].makes, across, rows=False)
    order = [body[-1].makes, *(layer.makes for layer in reversed(body[:-1])), *fetched]
    lines, most = {body[-1].makes: across}, {}
    for t in order[1:]:
        [(layer, window)] = readers[t]
        start = starts.get(t, (0, 0))[0]
        most[t], upto = _made_for(window, lines[layer.makes], start)
        lines[t] = start, upto
    return most


@lru_cache(maxsize=1 << 16)
def _made_for(window: Window, lines: Range, start: int) -> tuple[int, int]:
    """Return the most lines at once of a tensor, made from `start` on as a window over it asks for them, and
    the line up to which it is made."""
    needs = [window.reads((line, line + 1)) for line in range(*lines)]
    lowest = [1 << 60] * (len(needs) + 1)
    for i in range(len(needs) - 1, -1, -1):
        first, end = needs[i]
        lowest[i] = min(lowest[i + 1], first) if first < end else lowest[i + 1]
    most, line = 0, start
    for (first, end), low in zip(needs, lowest, strict=False):
        while first < end and line < end:
            most = max(most, line + 1 - min(line, low))
            line += 1
    return most, line
