"""Buffers that are written over one another, as one block: the same offset, from the first to the last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from onchip.executorch.specs import Item
from onchip.planners.packing import Buffer

__all__ = ["Block", "buffer_of", "choices", "merged"]


@dataclass(frozen=True, slots=True)
class Block:
    """The buffers `members`, one after the other at the same place: `bytes`, live [first, last]."""

    members: tuple[int, ...]
    first: int
    last: int
    bytes: int
    memory: int | None
    offset: int | None


def choices(items: Sequence[Item], count: int, seed: int = 0) -> list[dict[int, int]]:
    """Return up to `count` ways in which results take the bytes of operands: result -> operand.

    The first leaves nothing out: each operand is taken once, each result takes one where it can. All of them
    have the same load at every node, as operand and result have the same size.
    """
    rng, found = Random(seed), list[dict[int, int]]()
    for _ in range(4 * count):
        taken, choice = set[int](), dict[int, int]()
        for y, item in enumerate(items):
            free = [x for x in item.over if x not in taken]
            if free:
                choice[y] = free[0] if not found else rng.choice(free)
                taken.add(choice[y])
        if choice not in found:
            found.append(choice)
        if len(found) == count or not any(len(item.over) > 1 for item in items):
            break
    return found


def merged(items: Sequence[Item], over: Mapping[int, int]) -> list[Block]:
    """Return one block for each buffer and all that are written over it in turn."""
    follows = {x: y for y, x in over.items()}
    blocks = []
    for i, item in enumerate(items):
        if i in over:
            continue
        members = [i]
        while members[-1] in follows:
            members.append(follows[members[-1]])
        last = max(items[m].last for m in members)
        blocks.append(Block(tuple(members), item.first, last, item.bytes, item.memory, item.offset))
    return blocks


def buffer_of(block: Block, alignment: int) -> Buffer:
    """Return the block as the packer sees it, in a memory of that alignment."""
    size = -(-block.bytes // alignment) * alignment
    return Buffer(block.first, block.last + 1, size, alignment, block.offset)
