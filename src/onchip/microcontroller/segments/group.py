"""The cost of a fused group: the bytes of its rings, its output's distances to its input, its work.

A group runs in stages (see `Rings` in the plan program). Between two stages a tensor lies in a ring of rows;
inside a stage of several layers, which sweeps its band column by column, in a ring of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onchip.microcontroller.segments.distances import Distances
from onchip.microcontroller.segments.drive import Maker, bands_of, turns
from onchip.microcontroller.segments.layers import ACCUMULATOR_BYTES, Layer, Layers
from onchip.microcontroller.segments.overlap import group_distances
from onchip.microcontroller.segments.reach import layer_distances
from onchip.microcontroller.segments.sweep import (
    RowSweep,
    adds_up,
    by_column,
    columns_of,
    pyramid,
    rows_of,
    swept,
)
from onchip.network.windows import Range

__all__ = ["Figures", "StageChoice", "figures"]


@dataclass(frozen=True, slots=True)
class StageChoice:
    """Layers, by their index in `Layers.layers`, that sweep bands of `rows` rows together."""

    layers: tuple[int, ...]
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """A group's cost. `scratch` bytes hold its rings, sums and workspaces.

    `distances` are the legal distances of its input above its output (in reverse, of its output's end above
    its input's); None where the two must not overlap. `crossing` are the bytes fetched of a streamed input,
    `macs` the multiply-accumulates, repeated ones included.
    """

    scratch: int
    rings: int
    distances: Distances | None
    crossing: int
    macs: int

    @property
    def distance(self) -> int | None:
        """The least distance from 0 up from which every distance is legal; None where none may overlap."""
        return None if self.distances is None else self.distances.least

    def span(self, given: int, made: int) -> int:
        """Return the fewest bytes that hold `given` bytes of its input and `made` of its output."""
        if self.distances is None:
            return given + made
        return self.distances.span(given, made)


def figures(
    net: Layers,
    stages: Sequence[StageChoice],
    *,
    strips: int = 1,
    streamed: int | None = None,
    fetched: Literal["rows", "columns"] = "rows",
    resident: int | None = None,
    alone: bool = False,
) -> Figures:
    """Return the cost of the group of these stages.

    Tensor `streamed` is fetched, `resident` lies whole in memory. `net` is mirrored for a group that runs in
    reverse. A layer `alone` is no group: a pool keeps no sums.
    """
    chosen = [[net.layers[i] for i in stage.layers] for stage in stages]
    if alone:
        chosen = [[replace(layer, adds_up=False) for layer in layers] for layers in chosen]
    by_columns = {streamed} if streamed is not None and fetched == "columns" else set()
    flat = [layer for layers in chosen for layer in layers]
    last = flat[-1].makes
    sweeps = [
        rows_of(net, layers, stage.rows, by_columns) for stage, layers in zip(stages, chosen, strict=True)
    ]
    fetchers: list[Maker] = []
    if streamed is not None and not by_columns:
        fetchers.append(Maker(streamed, bands_of((0, net.maps[streamed].rows), 1)))
    makers = [*fetchers, *(sweep.maker for sweep in sweeps)]
    order = list(turns(makers))
    ring_rows: dict[int, int] = {}
    for turn in order:
        made = makers[turn.maker].makes
        ring_rows[made] = max(ring_rows.get(made, 0), turn.live)
    done = [0] * len(makers)
    for turn in order:
        done[turn.maker] += 1

    wide: dict[int, int] = {}
    at_once: list[dict[int, int]] = [{} for _ in stages]
    macs = crossing = 0
    width = net.maps[last].columns
    for strip in bands_of((0, width), -(-width // strips)):
        across = pyramid(flat, last, strip, rows=False)
        for t, (first, end) in across.items():
            wide[t] = max(wide.get(t, 0), end - first)
        for maker, times in zip(fetchers, done, strict=False):
            first, end = across.get(maker.makes, (0, 0))
            crossing += times * (end - first) * net.maps[maker.makes].pixel
        for s, layers in enumerate(chosen):
            times = done[len(fetchers) + s]
            if by_column(layers, by_columns):
                kept = columns_of(layers, across.get(swept(layers)[-1].makes, (0, 0)), by_columns).at_once
                for t, most in kept.items():
                    at_once[s][t] = max(at_once[s].get(t, 0), most)
            macs += _macs(layers, sweeps[s], times, across)
            for t in by_columns:
                first, end = across.get(t, (0, 0))
                rows = sum(high - low for low, high in (n.get(t, (0, 0)) for n in sweeps[s].taken[:times]))
                crossing += rows * (end - first) * net.maps[t].pixel
    column_rings = [
        sum(sweep.tallest(times).get(t, 0) * most * net.maps[t].pixel for t, most in kept.items())
        for sweep, times, kept in zip(sweeps, done[len(fetchers) :], at_once, strict=True)
    ]
    rings = max(column_rings) + sum(
        ring_rows.get(maker.makes, 0) * wide.get(maker.makes, 0) * net.maps[maker.makes].pixel
        for maker in makers[:-1]
    )
    sums = sum(ACCUMULATOR_BYTES * net.maps[layers[-1].makes].pixel for layers in chosen if adds_up(layers))
    overlap = None
    if resident is not None and alone:
        overlap = layer_distances(net, flat[0], resident)
    elif resident is not None and strips == 1 and not any(layer.blind for layer in flat):
        overlap = group_distances(net, chosen, sweeps, order, len(fetchers), resident)
    return Figures(rings + sums + max(layer.workspace for layer in flat), rings, overlap, crossing, macs)


def _macs(layers: Sequence[Layer], sweep: RowSweep, times: int, across: dict[int, Range]) -> int:
    """Return the multiply-accumulates of a stage's first `times` bands."""
    body, total = swept(layers), 0
    if adds_up(layers):
        total = layers[-1].macs if times else 0
        if len(layers) == 1:
            return total
    for layer in body:
        first, end = across.get(layer.makes, (0, 0))
        rows = sum(
            high - low for low, high in (need.get(layer.makes, (0, 0)) for need in sweep.taken[:times])
        )
        total += rows * (end - first) * layer.macs
    return total
