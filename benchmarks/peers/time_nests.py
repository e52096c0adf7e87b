"""Layers in nests under onchip's law of time: planned by onchip, or with the loops of another mapper."""

from __future__ import annotations

import time
from typing import Any

from time_layers import Layer, network_of
from time_peers import Records, stated

from onchip.check import certify, check
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.planners.joint.options import JointOptions
from onchip.planners.joint.planning import plan
from onchip.planners.joint.timed.copies import best_copies
from onchip.planners.joint.timed.pricing import TimedGroup
from onchip.planners.placement import PlacementOptions
from onchip.plans import Group, Leaf, Loop, Nest, Run, Scratch

__all__ = ["chip_of", "figures", "nest_of", "own", "priced"]

AXES = {"G": 0, "K": 1, "OY": 2, "OX": 3, "C": 4}
"""The axes of `time_layers.network_of` by the loops of a convolution; its taps are no axes."""

NAMES = {"I": "x", "W": "W", "O": "y"}
"""The buffers of `time_layers.network_of` by the peer's names of operands."""

Temporal = dict[str, list[list[list[Any]]]]
"""By operand, for the scratchpad and then DRAM, the loops there, innermost first: (loop, turns)."""


def chip_of(rates: TileRates) -> Chip:
    """Return a chip with these rates, with elements of one byte at any address."""
    return Chip("both", 1, "int8", tiles=rates)


def figures(network: Network, rates: TileRates, room: int, limit: float) -> dict[str, Any]:
    """Return picoseconds, bound, bytes, groups and CPU seconds of onchip's plan for latency.

    The plan is judged and priced again by the checker. Raises `IllegalPlan` where that finds other figures.
    """
    began = time.process_time()
    made = plan(
        network,
        chip_of(rates),
        room,
        JointOptions(fuse=True),
        PlacementOptions(objective="latency", time_limit=limit),
    )
    seconds = time.process_time() - began
    result = check(made)
    return {
        "picoseconds": result.latency_picoseconds,
        "bound": result.latency_lower_bound_picoseconds,
        "bytes": result.dram_bytes,
        "groups": len(made.groups),
        "status": result.status,
        "seconds": seconds,
    }


def own(layer: Layer, rates: TileRates, room: int, limit: float, records: Records) -> dict[str, Any]:
    """Return onchip's figures of a layer alone, its operands and its output in DRAM."""
    asked = {"peer": "onchip", "layer": stated(layer), "bytes": room, "limit": limit, "rates": str(rates)}
    known = records.get(asked)
    return known or records.put(asked, figures(network_of(layer), rates, room, limit))


def nest_of(layer: Layer, temporal: Temporal) -> Nest | None:
    """Return a mapping's loops as a nest, every buffer in the body in which the mapping fills it.

    Loops inside all of these bodies are steps of the array, and left out. None where a loop over taps of a
    kernel is around a buffer: the law knows none.
    """
    homes = {NAMES[operand]: len(levels[1]) for operand, levels in temporal.items()}
    order = [loop for level in next(iter(temporal.values())) for loop in level][::-1]
    extent = network_of(layer).operators[0].reach
    assert extent is not None
    around: dict[str, int] = {}
    turns: list[tuple[int, int]] = []
    for name, count in order[: max(homes.values())]:
        if name not in AXES:
            return None
        around[name] = around.get(name, 1) * count
        turns.append((AXES[name], -(-extent.extents[AXES[name]] // around[name])))
    body: tuple[Loop | Leaf, ...] = (Leaf("layer"),)
    for n in range(len(turns), 0, -1):
        axis, tile = turns[n - 1]
        keep = tuple(name for name, home in homes.items() if home == n)
        body = (Loop((("layer", axis),), tile, body, keep),)
    return Nest(_merged(body), tuple(name for name, home in homes.items() if home == 0))


def _merged(body: tuple[Loop | Leaf, ...]) -> tuple[Loop | Leaf, ...]:
    """Return the items with loops along one axis, right inside each other, as one: that of the inner tile."""
    [item] = body
    if isinstance(item, Leaf):
        return body
    [inner] = item.body
    if isinstance(inner, Loop) and inner.over == item.over and not item.keep:
        return _merged((inner,))
    return (Loop(item.over, item.tile, _merged(item.body), item.keep),)


def priced(layer: Layer, nest: Nest, rates: TileRates, room: int) -> int | None:
    """Return the picoseconds of a nest with its best copies, by the checker; None if it is not legal.

    The axes on the sides of the array are those with which it takes the fewest cycles.
    """
    network = network_of(layer)
    streamed = frozenset(range(len(network.tensors)))
    opened = TimedGroup(network, (0,), streamed, rates).opened(nest)
    found = None if opened is None else best_copies(opened, room)
    if opened is None or found is None:
        return None
    group = Group("layer alone", ("layer",), found.priced.scratch, tiling=found.priced.nest)
    crossing = opened.law.crossing
    streams = tuple((network.tensors[t].name, moved) for t, moved in crossing.items())
    certified = certify(
        network,
        chip_of(rates),
        room,
        [Scratch(group.name, 0), Run(group.name, streams)],
        groups=[group],
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
    )
    return certified.result.latency_picoseconds
