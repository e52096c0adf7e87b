"""The best plan on a chip with several memories: whole operators over all, or tiles in one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from onchip.base.errors import AMONG, Infeasible, NegativeAnswer
from onchip.machines.chip import Chip, Memory
from onchip.methods.best import PATIENCE, in_tiles, why_whole
from onchip.methods.level import beyond, chip_at, copied_bytes, crossing_bytes, level_of
from onchip.methods.said import Answer
from onchip.network import Network
from onchip.planners.joint import JointOptions
from onchip.planners.limits import Limits, Progress
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.memories import plan_in_memories

__all__ = ["best_in_memories", "tiles_in_a_memory"]

WHOLE = 0.5
"""The share of a time limit after which the plan over all memories ends."""


def tiles_in_a_memory(
    network: Network,
    on: Chip,
    memories: Sequence[Memory],
    name: str | None,
    planned: Callable[[Chip, int], Answer],
) -> Answer:
    """Return the plan with one memory as its scratchpad, and the next one out in DRAM's part.

    A memory that does not hold at once what is copied to it is passed over: the one behind it, or DRAM itself
    takes the part. Raises what `planned` raises, with the memory named.
    """
    level = level_of(on, memories, name)
    for outside in (*beyond(on, memories, level), None):
        try:
            found = planned(chip_at(on, level, outside), level.bytes)
        except Infeasible as no:
            raise no.but(memory=level.name, mr=None, mp=None) from None
        if outside is None or copied_bytes(found.plan) <= outside.bytes:
            break
    there = "DRAM" if outside is None else outside.name
    return replace(found, context={**found.context, "level": level.name, "beyond": there})


def best_in_memories(
    network: Network,
    on: Chip,
    memories: Sequence[Memory],
    name: str | None,
    fusing: JointOptions,
    placing: PlacementOptions,
    progress: Progress | None,
) -> Answer:
    """Return the plan of which fewer bytes go into and out of the memory of the tiles; whole where equal.

    Where only one of the two exists, that is the answer.
    """
    level = level_of(on, memories, name)
    why = why_whole(fusing, placing, on)
    if why:
        return Answer(
            plan_in_memories(network, on, memories, placing, Limits.of(placing, progress)), {}, (why,)
        )
    missing: NegativeAnswer | None = None
    with Limits.of(placing, progress).interruptible() as limits:
        whole = None
        try:
            whole = plan_in_memories(network, on, memories, placing, limits.until(WHOLE))
        except NegativeAnswer as no:
            missing = no
        if whole is not None and limits.stopped():
            return Answer(whole)

        def planned(at: Chip, bytes_: int) -> Answer:
            return in_tiles(network, at, bytes_, fusing, placing, progress, limits.patient(PATIENCE))

        try:
            tiled = tiles_in_a_memory(network, on, memories, level.name, planned)
        except NegativeAnswer as no:
            if whole is None:
                raise (missing if missing is not None and not isinstance(no, Infeasible) else no) from None
            return Answer(whole, {}, (f"tiles in {level.name}: {str(no).split(AMONG)[0]}",))
    if whole is None:
        why_not = str(missing).split(AMONG)[0]
        return replace(tiled, notes=(*tiled.notes, f"whole operators over all memories: {why_not}"))
    far = {m.name for m in beyond(on, memories, level)}
    near = [m.name for m in memories if m.name not in far]
    crossing, alone = crossing_bytes(whole, near), tiled.plan.result.dram_bytes
    compared = (
        f"between {', '.join(near)} and what lies beyond go {alone:,} bytes with tiles, {crossing:,} with"
        " whole operators over all memories"
    )
    if alone < crossing:
        return replace(tiled, notes=(*tiled.notes, compared))
    return Answer(whole, {}, (compared,))
