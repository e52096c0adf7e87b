"""What a fused group costs: the bytes of its rings, how far its output may reach over its input, its work.

A group runs in stages (see `Rings` in the plan program). Between two stages a tensor lies in a ring of rows;
inside a stage of several layers, which sweeps its band column by column, in a ring of columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onchip.segments.drive import Maker, Turn, bands_of, turns
from onchip.segments.layers import ACCUMULATOR_BYTES, Layer, Layers, Range
from onchip.segments.reach import Reach, distance

__all__ = ["Figures", "StageChoice", "figures"]


@dataclass(frozen=True, slots=True)
class StageChoice:
    """Layers, by their place in `Layers.layers`, that sweep bands of `rows` rows together."""

    layers: tuple[int, ...]
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """A group's cost. `scratch` bytes hold its rings, sums and workspaces.

    `distance` is the fewest bytes that its input must lie above its output (below its end, in reverse) for
    the two to overlap; None where they must not. `crossing` are the bytes fetched of a streamed input, `macs`
    the multiply-accumulates, those done anew included.
    """

    scratch: int
    rings: int
    distance: int | None
    crossing: int
    macs: int


def figures(
    net: Layers,
    stages: Sequence[StageChoice],
    *,
    strips: int = 1,
    streamed: int | None = None,
    fetched: Literal["rows", "columns"] = "rows",
    resident: int | None = None,
) -> Figures:
    """The cost of the group of these stages; tensor `streamed` is fetched, `resident` lies whole in memory.

    `net` is mirrored for a group that runs in reverse.
    """
    chosen = [[net.layers[i] for i in stage.layers] for stage in stages]
    by_columns = {streamed} if streamed is not None and fetched == "columns" else set()
    flat = [layer for layers in chosen for layer in layers]
    makers, takes = _row_makers(net, stages, chosen, streamed, by_columns)
    order = list(turns(makers))
    source = len(makers) - len(chosen)
    inner_rows = [
        _tallest([needs[turn.band] for turn in order if turn.maker == source + s])
        for s, needs in enumerate(takes)
    ]
    ring_rows: dict[int, int] = {}
    for turn in order:
        made = makers[turn.maker].makes
        ring_rows[made] = max(ring_rows.get(made, 0), turn.live)
    last = chosen[-1][-1].makes
    width = net.maps[last].columns
    wide: dict[int, int] = {}
    column_rings = [0] * len(stages)
    macs = crossing = 0
    for strip in bands_of((0, width), -(-width // strips)):
        across = _pyramid(flat, last, strip, rows=False)
        for t, (first, end) in across.items():
            wide[t] = max(wide.get(t, 0), end - first)
        counts = [
            _stage_columns(net, _sweeping(layers), across, by_columns)
            if len(layers) > 1 or _reads(layers, by_columns)
            else None
            for layers in chosen
        ]
        for s, count in enumerate(counts):
            if count is not None:
                rings = sum(
                    inner_rows[s].get(t, 0) * most * net.maps[t].pixel for t, most in count.at_once.items()
                )
                column_rings[s] = max(column_rings[s], rings)
        for turn in order:
            if turn.maker < source:
                first, end = across.get(makers[turn.maker].makes, (0, 0))
                crossing += (end - first) * net.maps[makers[turn.maker].makes].pixel
                continue
            s = turn.maker - source
            need = takes[s][turn.band]
            macs += _band_macs(chosen[s], need, across, counts[s])
            if by_columns and counts[s] is not None and _reads(chosen[s], by_columns):
                crossing += _band_fetched(net, need, counts[s], by_columns)
    rings = sum(
        ring_rows.get(t, 0) * wide.get(t, 0) * net.maps[t].pixel
        for t in (maker.makes for maker in makers)
        if t != last
    ) + max(column_rings)
    sums = sum(ACCUMULATOR_BYTES * net.maps[layers[-1].makes].pixel for layers in chosen if _adds_up(layers))
    overlap = None
    if resident is not None and strips == 1:
        overlap = distance(_reaches(net, chosen, takes, order, source, resident, last))
    return Figures(rings + sums + max(layer.workspace for layer in flat), rings, overlap, crossing, macs)


# -- rows ------------------------------------------------------------------------------------------------


def _adds_up(layers: Sequence[Layer]) -> bool:
    """Whether a stage ends in a pool that adds up a whole map."""
    return layers[-1].adds_up


def _sweeping(layers: Sequence[Layer]) -> Sequence[Layer]:
    """The layers that sweep a stage's bands: without the pool that takes each pixel as they make it."""
    return layers[:-1] if len(layers) > 1 and _adds_up(layers) else layers


def _tallest(needs: Sequence[Mapping[int, Range]]) -> dict[int, int]:
    """For each tensor the most rows of it that a band takes."""
    found: dict[int, int] = {}
    for need in needs:
        for t, (first, end) in need.items():
            found[t] = max(found.get(t, 0), end - first)
    return found


def _reads(layers: Sequence[Layer], tensors: Collection[int]) -> bool:
    return any(t in tensors for layer in layers for t in layer.reads)


def _row_makers(
    net: Layers,
    stages: Sequence[StageChoice],
    chosen: Sequence[Sequence[Layer]],
    streamed: int | None,
    by_columns: Collection[int],
) -> tuple[list[Maker], list[list[dict[int, Range]]]]:
    """Who makes rows, and for each band of each stage the rows that it makes and takes of every tensor."""
    makers: list[Maker] = []
    if streamed is not None and streamed not in by_columns:
        makers.append(Maker(streamed, bands_of((0, net.maps[streamed].rows), 1)))
    takes: list[list[dict[int, Range]]] = []
    for stage, layers in zip(stages, chosen, strict=True):
        made = layers[-1].makes
        swept = _sweeping(layers)[-1].makes
        bands = bands_of((0, net.maps[swept].rows), stage.rows)
        taken = [_pyramid(_sweeping(layers), swept, band, rows=True) for band in bands]
        if _adds_up(layers) and len(layers) == 1:
            (pooled,) = layers[0].reads
            taken = [{pooled: (row, row + 1)} for row in range(net.maps[pooled].rows)]
        if _adds_up(layers):
            bands = ((0, 0),) * (len(taken) - 1) + ((0, 1),)
            taken[-1][made] = (0, 1)
        inside = {layer.makes for layer in layers} | set(by_columns)
        outer = tuple(dict.fromkeys(t for layer in layers for t in layer.reads if t not in inside))
        makers.append(
            Maker(made, bands, outer, tuple(tuple(need.get(t, (0, 0)) for need in taken) for t in outer))
        )
        takes.append(taken)
    return makers, takes


def _pyramid(layers: Sequence[Layer], made: int, lines: Range, *, rows: bool) -> dict[int, Range]:
    """What `lines` of `made` take of every tensor that goes into it through these layers."""
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


# -- columns ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns:
    """A stage that sweeps by columns: the most at once of what it keeps, and how many of each are made."""

    at_once: Mapping[int, int]
    made: Mapping[int, int]
    order: tuple[tuple[int, Range], ...]


def _stage_columns(
    net: Layers, layers: Sequence[Layer], across: Mapping[int, Range], by_columns: Collection[int]
) -> Columns:
    made = layers[-1].makes
    mine = _pyramid(layers, made, across.get(made, (0, 0)), rows=False)
    read = {t for layer in layers for t in layer.reads}
    makers = [Maker(t, bands_of(mine.get(t, (0, 0)), 1)) for t in by_columns if t in read]
    for layer in layers:
        bands = bands_of(mine.get(layer.makes, (0, 0)), 1)
        needs = tuple(tuple(w.reads(band) for band in bands) for w in layer.columns)
        makers.append(Maker(layer.makes, bands, layer.reads, needs))
    at_once: dict[int, int] = {}
    count: dict[int, int] = {}
    order: list[tuple[int, Range]] = []
    for turn in turns(makers):
        t = makers[turn.maker].makes
        at_once[t] = max(at_once.get(t, 0), turn.live)
        count[t] = count.get(t, 0) + 1
        order.append((t, makers[turn.maker].bands[turn.band]))
    at_once.pop(made, None)
    return Columns(at_once, count, tuple(order))


def _band_macs(
    layers: Sequence[Layer],
    need: Mapping[int, Range],
    across: Mapping[int, Range],
    columns: Columns | None,
) -> int:
    """Multiply-accumulates of one turn of a stage, whose band takes and makes the rows `need`."""
    total = 0
    for layer in layers:
        first, end = need.get(layer.makes, (0, 0))
        if columns is None or layer.adds_up:
            low, high = across.get(layer.makes, (0, 0))
            wide = high - low
        else:
            wide = columns.made.get(layer.makes, 0)
        total += (end - first) * wide * layer.macs
    return total


def _band_fetched(
    net: Layers, need: Mapping[int, Range], columns: Columns | None, by_columns: Collection[int]
) -> int:
    """Bytes that one turn of a stage fetches by columns."""
    assert columns is not None
    return sum(
        (need[t][1] - need[t][0]) * columns.made.get(t, 0) * net.maps[t].pixel
        for t in by_columns
        if t in need
    )


# -- output over input -----------------------------------------------------------------------------------


def _reaches(
    net: Layers,
    chosen: Sequence[Sequence[Layer]],
    takes: Sequence[Sequence[Mapping[int, Range]]],
    order: Sequence[Turn],
    source: int,
    resident: int,
    last: int,
) -> list[Reach]:
    """In time order: who still reads the resident input from where on, and how far the output is written."""
    found: list[Reach] = []
    for turn in order:
        if turn.maker < source:
            continue
        layers, need = chosen[turn.maker - source], takes[turn.maker - source][turn.band]
        reading, writing = _reads(layers, {resident}), layers[-1].makes == last
        if not reading and not writing:
            continue
        over = resident if reading else None
        if not _adds_up(layers):
            band = need[layers[-1].makes]
            if len(layers) == 1:
                found.extend(Reach.of_rows(net, layers[0], band, over, writing))
            else:
                found.extend(_swept(net, layers, need, over, writing))
            continue
        if over is not None and len(layers) == 1:
            found.append(Reach(low=need[over][0] * net.maps[over].row, end=None))
        elif over is not None:
            found.extend(_swept(net, _sweeping(layers), need, over, writing=False))
        if writing and last in need:
            found.append(Reach(low=None, end=net.maps[last].bytes))
    return found


def _swept(
    net: Layers, layers: Sequence[Layer], rows: Mapping[int, Range], resident: int | None, writing: bool
) -> list[Reach]:
    """A band of several layers, which takes and makes `rows`, column by column."""
    made = layers[-1].makes
    out, band = net.maps[made], rows[made]
    columns = _stage_columns(net, layers, {made: (0, out.columns)}, ())
    reading = {layer.makes: layer for layer in layers if resident in layer.reads}
    found: list[Reach] = []
    for t, (column, _) in columns.order:
        low = None
        if writing and t == made:
            over = resident if t in reading else None
            steps = (Reach.of_step(net, layers[-1], row, (column, column + 1), over) for row in range(*band))
            found.extend(steps)
        elif t in reading and resident is not None:
            layer, there = reading[t], net.maps[resident]
            i = layer.reads.index(resident)
            first_row, end_row = layer.rows[i].reads(rows.get(t, (0, 0)))
            first_column, end_column = layer.columns[i].reads((column, column + 1))
            if first_row < end_row and first_column < end_column:
                low = first_row * there.row + first_column * there.pixel
        if low is not None:
            found.append(Reach(low=low, end=None))
    return found
