"""Element-wise operators and concats on streamed maps: a few patches of each at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from onchip.network import Patches
from onchip.run.layout import Layout
from onchip.run.streamed.maps import Region
from onchip.run.streamed.part import Part, patch_bytes, slab

__all__ = ["run_pieces"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Span = tuple[int, int]


@dataclass(frozen=True)
class _Job:
    """Operands that are read together, and the first output channel that they make."""

    reads: tuple[tuple[str, int], ...]
    first: int
    channels: int


def run_pieces(part: Part) -> None:
    """Run the operator. Raises as the machine does, and for a scratch that does not hold a patch of each."""
    state = part.state
    stored, made = part.layout.patches, part.maps[part.out]
    assert stored is not None
    layouts = {t: state.slots.layout[t] for t in sorted(part.streamed)}
    each = sum(patch_bytes(layout) for layout in layouts.values())
    count = len(part.scratch) // each
    if not count:
        part.refuse_room(each)
    sizes = (count * patch_bytes(layout) for layout in layouts.values())
    starts = dict(zip(layouts, accumulate(sizes, initial=0), strict=False))
    for job in _jobs(part):
        for image, channels, down, across in _boxes(stored, made.images, job.channels, count):
            lies = image * job.channels
            box = ((lies + channels[0], lies + channels[1]), down, across)
            region = _region(stored, image, channels, down, across)
            values = {name: _read(part, t, box, region, starts.get(t)) for name, t in job.reads}
            made_of = (channels[0] + job.first, channels[1] + job.first)
            region = replace(region, channels=made_of)
            data = _slab(part, part.out, region).pack(part.behind(values, region, {}))
            lies = image * made.channels
            there = _box(part.sent, stored, (lies + made_of[0], lies + made_of[1]), down, across)
            if part.out in layouts:
                place = part.scratch[starts[part.out] : starts[part.out] + data.size]
                place[...] = data
                data = place
                part.crossed[part.out] += data.size
            there[...] = data.reshape(there.shape)
    part.weights = state.fetched_weights(part.op.name, [part.op])


def _jobs(part: Part) -> list[_Job]:
    """Return one job for all that an element-wise operator streams or writes over; a concat's, one each."""
    chain = part.chain
    if chain.kind == "concat":
        return [_Job(((chain.result, t),), first, part.maps[t].channels) for t, first in chain.pieces]
    reads = zip(chain.names, chain.reads, strict=True)
    together = tuple((name, t) for name, t in reads if t in part.streamed or t == part.over)
    return [_Job(together, 0, part.maps[part.out].channels)]


def _read(part: Part, t: int, box: tuple[Span, Span, Span], region: Region, start: int | None) -> Array:
    """Read a box of patches of an operand: through its place in the scratch, or in place on chip."""
    stored = part.state.slots.layout[t].patches
    if t in part.resident or stored is None:
        return part.resident[t][region.slices]
    if start is None:
        low, high = part.state.slot(t)
        taken = _box(part.state.arena.bytes[low:high], stored, *box)
        return _slab(part, t, region).unpack(taken.reshape(-1))
    taken = _box(part.state.dram[t], stored, *box)
    place = part.scratch[start : start + taken.size]
    place[...] = taken.reshape(-1)
    part.crossed[t] += taken.size
    return _slab(part, t, region).unpack(place)


def _box(slot: Bytes, stored: Patches, channels: Span, down: Span, across: Span) -> Bytes:
    """Return [channels, rows and columns of patches, bytes] of a slot."""
    return slot.reshape(stored.channels, *stored.grid, -1)[slice(*channels), slice(*down), slice(*across)]


def _slab(part: Part, t: int, region: Region) -> Layout:
    _, channels, rows, columns = region.shape
    return slab(part.state.slots.layout[t], channels, rows, columns)


def _boxes(stored: Patches, images: int, channels: int, count: int) -> Iterator[tuple[int, Span, Span, Span]]:
    """Yield all patches in boxes of at most `count`: of whole channels, of rows of one, or along one row.

    Each box is an image, and spans of its channels, rows and columns of patches.
    """
    down, across = stored.grid
    steps = (max(1, count // (down * across)), max(1, min(down, count // across)), min(across, count))
    for image in range(images):
        for c in range(0, channels, steps[0]):
            for r in range(0, down, steps[1]):
                for p in range(0, across, steps[2]):
                    yield (
                        image,
                        (c, min(c + steps[0], channels)),
                        (r, min(r + steps[1], down)),
                        (p, min(p + steps[2], across)),
                    )


def _region(stored: Patches, image: int, channels: Span, down: Span, across: Span) -> Region:
    """Return the elements in a box of patches."""
    return Region(
        (image, image + 1),
        channels,
        (down[0] * stored.height, min(down[1] * stored.height, stored.rows)),
        (across[0] * stored.width, min(across[1] * stored.width, stored.columns)),
    )
