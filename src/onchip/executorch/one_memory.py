"""The least arena: offsets of one memory, over all choices of what is written in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onchip.executorch.blocks import buffer_of, choices, merged
from onchip.executorch.specs import Item
from onchip.planners.limits import Limits
from onchip.planners.packing import max_load, minimise

__all__ = ["Placed", "least_arena"]

MOST_CHOICES = 12
"""The number of choices of operands that are tried where the load is not reached."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where every item lies: (`mem_id`, offset); which are written over which; the bytes by memory.

    `bounds` are bytes that no plan goes below, by memory, with what the others hold.
    """

    at: Mapping[int, tuple[int, int]]
    over: Mapping[int, int]
    bytes: Mapping[int, int]
    bounds: Mapping[int, int] = field(default_factory=dict)


def least_arena(items: Sequence[Item], memory: int, alignment: int, in_place: bool, limits: Limits) -> Placed:
    """Place all items in one memory, in the fewest bytes that are found in time.

    Every choice of what is in place has at least the load of the first, which is the bound; where nothing
    can be in place, the packer's own bound is the better one.
    """
    ways = choices(items, MOST_CHOICES) if in_place else [{}]
    if {} not in ways:
        ways.append({})
    load = max_load([buffer_of(b, alignment) for b in merged(items, ways[0])])
    best: Placed | None = None
    for number, over in enumerate(ways):
        if best is not None and (best.bytes[memory] == load or limits.over()):
            break
        blocks = merged(items, over)
        left = limits.share(1 / 2 if number + 1 < len(ways) else 1.0).left()
        found = minimise([buffer_of(b, alignment) for b in blocks], time_limit=left)
        if best is not None and found.bytes >= best.bytes[memory]:
            continue
        at = {
            m: (memory, offset)
            for block, offset in zip(blocks, found.offsets, strict=True)
            for m in block.members
        }
        bound = found.lower_bound if len(ways) == 1 else load
        best = Placed(at, over, {memory: found.bytes}, {memory: bound})
    assert best is not None
    return best
