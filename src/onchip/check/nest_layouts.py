"""Tensors between nests that lie in DRAM in tiles, on which their maker and their readers agree.

The tiles of such a tensor lie one after the other, row-major, and so do the elements of each; those at the
ends of its sides are smaller where the tile does not divide a side. Its maker and its readers move whole
tiles, or boxes inside one: so how many pieces a box has follows from its sizes alone, wherever it begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NoReturn

from onchip.check.nests import Layout
from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.network import Network
from onchip.plans import Alloc, Load, Plan, Run, Store, TensorLayout

__all__ = ["disagreement", "prove_layouts", "tile_along", "tiles_of_buffers"]

Tile = tuple[int, ...]


def tile_along(layout: TensorLayout, sides: Sequence[int]) -> Tile | None:
    """Return a layout's tile in other sides of its tensor; None where these do not cut it so.

    The sides of a group refine those of the layout: their inner ones lie whole in a tile, and one divides.
    """
    found: list[int] = []
    at = len(sides)
    for size, tile in zip(reversed(layout.sides), reversed(layout.tile), strict=True):
        own, total = [], 1
        while total < size and at:
            at -= 1
            own.append(sides[at])
            total *= sides[at]
        if total != size:
            return None
        left = tile
        for n, side in enumerate(own):
            if left >= side and left % side == 0:
                found.append(side)
                left //= side
            elif left < side and (side % left == 0 or n == len(own) - 1):
                found.append(left)
                left = 1
            else:
                return None
        if left > 1:
            return None
        if not own and size > 1:
            return None
    if prod(sides[:at]) > 1:
        return None
    return tuple([1] * at + found[::-1])


def tiles_of_buffers(layout: Layout, tensors: Mapping[int, TensorLayout]) -> dict[int, Tile]:
    """Return the tiles of a group's buffers in the sides that it gives them; only of tensors in tiles."""
    found = {}
    for n, buffer in enumerate(layout.axes.buffers):
        layout_ = None if buffer.tensor is None else tensors.get(buffer.tensor)
        tile = None if layout_ is None else tile_along(layout_, buffer.sides)
        if tile is not None:
            found[n] = tile
    return found


def prove_layouts(plan: Plan, units: Mapping[str, Unit]) -> None:
    """Refuse tensors in tiles on which not all of their groups agree. Raises `Broken` by the rule layout."""
    network = plan.network
    known: dict[int, TensorLayout] = {}
    for one in plan.layouts:
        t = network.tensor_id.get(one.tensor)
        if t is None or t in known:
            _refuse(one, "which is no tensor" if t is None else "twice")
        if network.root[t] != t or any(view.of == t for view in network.views):
            _refuse(one, "which is a view, or has views")
        if network.producer[t] is None or network.output_roots >> t & 1:
            _refuse(one, "which no operator makes, or which is an output of the network")
        fits = len(one.sides) == len(one.tile)
        if not fits or not all(0 < n <= s for n, s in zip(one.tile, one.sides, strict=True)):
            _refuse(one, "with a tile that is no part of its sides")
        known[t] = one
    if not known:
        return
    for step in plan.program:
        if isinstance(step, Run):
            unit = units.get(step.operator)
            if unit is not None:
                _prove_run(network, known, unit, dict(step.streaming))
        elif isinstance(step, Load | Store | Alloc):
            t = network.tensor_id.get(step.tensor)
            if t in known:
                _refuse(known[t], "which lies whole on chip")


def _prove_run(
    network: Network, known: Mapping[int, TensorLayout], unit: Unit, streaming: Mapping[str, int]
) -> None:
    used = {*unit.reads, *unit.writes, *unit.inner} & known.keys()
    for t in used:
        if unit.nest is None or network.tensors[t].name not in streaming:
            _refuse(known[t], f"which {unit.name} does not stream in a nest")
    if not used or unit.nest is None:
        return
    if (found := disagreement(unit.nest, known)) is not None:
        _refuse(found[0], f"{found[1]} in group {unit.name}")


def disagreement(layout: Layout, tensors: Mapping[int, TensorLayout]) -> tuple[TensorLayout, str] | None:
    """Return a layout on which a nest does not agree, with the reason; None if there is none.

    `tensors` are the layouts of tensors (roots) in tiles. A nest agrees if every fill is whole tiles along
    each side, or a part of one tile that the loops around cut evenly. Of tiles of one index every fill is
    whole tiles, where windows slide, too.
    """
    windows = {w.where: w for w in layout.windows}
    for number, home in enumerate(layout.homes):
        buffer = layout.axes.buffers[home.buffer]
        one = None if buffer.tensor is None else tensors.get(buffer.tensor)
        if one is None or not layout.places[number].crosses:
            continue
        tile = tile_along(one, buffer.sides) if buffer.sides == buffer.whole else None
        if tile is None or prod(one.sides) * buffer.element != buffer.bytes:
            return one, "and is seen in other sides"
        uses = [(at, layout.axes.operators[at].uses[n]) for at, n in home.uses]
        for side, (size, whole) in enumerate(zip(tile, buffer.sides, strict=True)):
            left = whole
            for turn in home.above if 1 < size < whole else ():
                slid = windows.get(turn.where)
                if slid is not None and slid.side.get(number) == side:
                    return one, "and windows slide over it"
                if slid is not None or not turn.cuts(uses, side) or turn.tile >= left:
                    continue
                left = turn.tile
                if left % size == 0:
                    continue
                if size % left or whole % size:
                    return one, f"and is moved in boxes of {left} along a side"
                break
    return None


def _refuse(one: TensorLayout, what: str) -> NoReturn:
    sides, tile = ("x".join(map(str, some)) for some in (one.sides, one.tile))
    broken("layout", f"{one.tensor} of {sides} lies in tiles of {tile}, {what}")
