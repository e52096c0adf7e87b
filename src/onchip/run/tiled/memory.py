"""A group's scratch, laid out from its plan: a buffer for each tensor, resident weights, one weight tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onchip.run.arena import Claim
from onchip.run.state import State
from onchip.run.tiled.bands import Band
from onchip.run.tiled.buffers import Ring, SliceBuffer, buffer_bytes
from onchip.run.tiled.parameters import Fetched, Parameters
from onchip.run.tiled.passes import IllegalTiling
from onchip.run.tiled.shape import GroupShape
from onchip.run.tiled.whole import Whole

if TYPE_CHECKING:
    from onchip.plans import Group, Tiling

__all__ = ["Memory", "lay_out"]


@dataclass(frozen=True)
class Memory:
    """The group's on-chip memory while it runs; `rings` are held tensors, whole ones among them."""

    rings: Mapping[int, Ring | Whole]
    slices: Mapping[int, SliceBuffer]
    weights: Mapping[int, Fetched]


def lay_out(
    state: State,
    group: Group,
    tiling: Tiling,
    shape: GroupShape,
    bands: Sequence[Band],
    whole: Mapping[int, Whole],
) -> Memory:
    """Divide the scratch. Raises `IllegalTiling` when it is too small for the bands' needs."""
    start, end = state.scratch.get(group.name, (0, 0))
    scale, round_up = state.slots.scale, state.plan.chip.round_up
    claims = f"the scratch of {group.name}"
    parameters = {c.op.id: Parameters(c, shape.maps[c.output].channels, scale) for c in shape.chains}
    step = tiling.channels
    streamed = {state.network.tensor_id[name] for name in tiling.streamed}
    refilled = [c.op.id for c in shape.chains if c.op.name not in group.resident_weights]
    inside = [t for t in shape.tensors if t not in whole]
    rows = {t: max(band.held(t) for band in bands) for t in inside}
    sizes: dict[tuple[str, int], int] = {}
    for t in inside:
        found = shape.maps[t]
        channels = min(step, found.channels) if t in streamed else found.channels
        sizes["tensor", t] = buffer_bytes(found, shape.width[t], rows[t], channels, tiling.images)
    for chain in shape.chains:
        if chain.op.id not in refilled:
            sizes["weights", chain.op.id] = parameters[chain.op.id].total
    sizes["tile", 0] = max((parameters[v].largest((step, step)) for v in refilled), default=0)
    need = sum(round_up(size) for size in sizes.values())
    if need * scale > end - start:
        raise IllegalTiling(
            "group-scratch",
            f"its buffers, resident weights and weight tile take {need:,} bytes, and its scratch has"
            f" {(end - start) // scale:,}",
        )
    ranges, at = {}, start
    for key, size in sizes.items():
        ranges[key] = (at, at + size * scale)
        at += round_up(size) * scale
    arena, rings, slices = state.arena, dict[int, Ring | Whole](whole), {}
    for t in inside:
        claim = Claim(f"tensor {state.name(t)} in {claims}", state.index)
        low, high = ranges["tensor", t]
        dtype, found = state.slots.dtype[t], shape.maps[t]
        if t in streamed:
            capacity = rows[t] * min(step, found.channels) * found.columns * tiling.images
            slices[t] = SliceBuffer(arena, low, high, dtype, capacity, claim)
        else:
            rings[t] = Ring(arena, low, high, dtype, found, rows[t], tiling.images, claim)
    weights = {v: Fetched(parameters[v], (step, step)) for v in parameters}
    low, high = ranges["tile", 0]
    arena.reserve(low, high, Claim(f"the weight tile in {claims}", state.index))
    for chain in shape.chains:
        v = chain.op.id
        if v in refilled:
            weights[v].through(arena.bytes[low:high])
        else:
            claim = Claim(f"the weights of {chain.op.name} in {claims}", state.index)
            weights[v].keep(arena, *ranges["weights", v], claim)
    return Memory(rings, slices, weights)
