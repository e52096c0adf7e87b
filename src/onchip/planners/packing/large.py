"""Instances too large for the search: the measure of their size, and near-linear addresses for them.

The search and its heuristics list, for every buffer, the buffers that are live with it: memory and time in
proportion to the overlaps, of which 100,000 buffers have up to five billion. Beyond `MOST_OVERLAPS`, buffers
get addresses as from an allocator, best fit, in the order of their beginnings and, in reverse, of their ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip import _core
from onchip.planners.packing.buffers import Buffer

__all__ = ["MOST_OVERLAPS", "allocate", "core_buffers", "is_large"]

MOST_OVERLAPS = 1 << 22
"""The most pairs of buffers live together, plus buffers at the moments at which the live set changes."""


def is_large(buffers: Sequence[Buffer], most: int = MOST_OVERLAPS) -> bool:
    """Return whether the lists that the search works on would have more than `most` entries."""
    if len(buffers) ** 2 <= most and not any(b.gaps for b in buffers):
        return False
    return _core.pack_is_large(buffers=core_buffers(buffers), most=most)


def allocate(buffers: Sequence[Buffer]) -> tuple[list[int], int]:
    """Return offsets in bytes, and the extent; fixed buffers, which must not overlap, keep their offsets.

    All others lie above the last of the fixed ones, and keep their bytes in their gaps too.
    """
    found = _core.pack_allocate(buffers=core_buffers(buffers))
    return found.offsets, found.extent


def core_buffers(buffers: Sequence[Buffer]) -> list[_core.PackBuffer]:
    """Return the buffers in the form of the compiled core."""
    return [
        _core.PackBuffer(live=b.live, size=b.size, alignment=b.alignment, offset=b.offset) for b in buffers
    ]
