"""The order in which tensors between groups lie in DRAM, while plans are searched for.

A tensor lies row by row, in tiles that its maker and its readers agreed on, or that is still open: then every
fill of it counts as one piece, as if all groups agreed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onchip.check.nest_durations import Durations, Work
from onchip.check.nest_layouts import tile_along
from onchip.check.nests import Layout
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.network.axes import Buffer, GroupAxes, axes_of
from onchip.plans import TensorLayout

__all__ = ["ROWS", "Lying", "durations_of", "may_lie_in_tiles"]


@dataclass(frozen=True)
class Lying:
    """The layouts of tensors (roots) that lie in tiles, and the tensors of which that is open."""

    layouts: Mapping[int, TensorLayout] = field(default_factory=dict)
    open: frozenset[int] = frozenset()

    def tile(self, buffer: Buffer) -> tuple[int, ...]:
        """Return the tile of a group's buffer; none where its tensor lies row by row, or that is open.

        Raises `ValueError` where the group sees the tensor in other sides than its layout.
        """
        layout = None if buffer.tensor is None else self.layouts.get(buffer.tensor)
        if layout is None:
            return ()
        tile = tile_along(layout, buffer.sides) if buffer.sides == buffer.whole else None
        if tile is None:
            raise ValueError(f"{buffer.name} lies in tiles that cross its sides")
        return tile

    def one_piece(self, buffer: Buffer) -> bool:
        """Return whether every fill of a buffer counts as one piece."""
        return buffer.tensor in self.open

    def key(self, buffer: Buffer) -> object:
        """Return what tells how a buffer lies from how others do, but names."""
        if self.one_piece(buffer):
            return True
        layout = None if buffer.tensor is None else self.layouts.get(buffer.tensor)
        return None if layout is None else (layout.sides, layout.tile)


ROWS = Lying()
"""All tensors lie row by row."""


def durations_of(
    layout: Layout, tiles: TileRates, work: list[Work], accumulator: int | None, lying: Lying
) -> Durations:
    """Return the durations of a nest that agrees on how its tensors lie."""
    buffers = layout.axes.buffers
    in_tiles = {n: tile for n, b in enumerate(buffers) if (tile := lying.tile(b))}
    found = Durations(layout, tiles, work, accumulator, in_tiles)
    for n, buffer in enumerate(buffers):
        found.in_fills[n] |= lying.one_piece(buffer)
    return found


def may_lie_in_tiles(network: Network) -> frozenset[int]:
    """Return the tensors that may: those that operators make, which are no outputs and have no views, and
    all elements of which every operator sees."""
    views = {view.of for view in network.views}
    in_part = set()
    for v in network.order:
        axes = axes_of(network, (v,))
        if isinstance(axes, GroupAxes):
            in_part |= {b.tensor for b in axes.buffers if b.sides != b.whole}
    return frozenset(
        t
        for t in range(len(network.tensors))
        if network.root[t] == t
        and t not in views
        and t not in in_part
        and network.producer[t] is not None
        and not network.output_roots >> t & 1
    )
