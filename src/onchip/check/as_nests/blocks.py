"""A group in blocks as a nest: loops over output channels, images, rows and columns, and slices inside."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from onchip.check.as_nests.boxes import chain
from onchip.check.as_nests.cutting import taken, up_to
from onchip.check.as_nests.letters import Letters
from onchip.check.as_nests.unsaid import no_nest
from onchip.network.access import Access
from onchip.network.maps import Maps
from onchip.plans import Blocks, Nest

__all__ = ["blocks_as_nest"]


def blocks_as_nest(
    maps: Maps, blocks: Blocks, letters: Letters, piece: Access, whole: Collection[int]
) -> tuple[Nest, set[str]]:
    """Return the nest of a legal group in blocks, and what it does otherwise. Raises `NoNest`."""
    axes = letters.axes
    [cut] = axes.operators
    what = f"a block of {piece.name}"
    found = maps.of(piece.writes[0])
    assert found is not None
    deep = letters.made(0, "c")
    most = min(blocks.output_channels, found.channels)
    otherwise = {"pieces"} if taken(letters.sizes(0, deep), most) < most else set[str]()
    loops = [(deep[i], tile) for i, tile in up_to(letters.sizes(0, deep), blocks.output_channels)]
    outer = len(loops)
    sides = (("n", 1, found.images), ("h", blocks.rows, found.rows), ("w", blocks.columns, found.columns))
    for letter, tile, size in sides:
        along = letters.made(0, letter)
        if tile < size and len(along) != 1:
            no_nest("rows", f"{what} is cut along {len(along)} axes of its rows or columns")
        loops += [(axis, tile) for axis in along if tile < size]
    keep: list[list[str]] = [[] for _ in range(len(loops) + 1)]
    for use in cut.constants:
        if blocks.keep_weights:
            keep[outer].append(axes.buffers[use.buffer].name)
        elif len(set(use.axes) & set(cut.sums)) == 0:
            keep[-1].append(axes.buffers[use.buffer].name)
    written = axes.buffers[cut.writes.buffer]
    if written.tensor not in whole:
        keep[-1].append(written.name)
    return chain(piece.name, loops, keep, slices(letters, piece, blocks)), otherwise


def slices(letters: Letters, piece: Access, blocks: Blocks) -> tuple[tuple[int, int], ...]:
    """Return the slices of `channels` input channels in which the window of a block comes."""
    [cut] = letters.axes.operators
    channels, taps = letters.channels(0, cut.reads[0])
    if piece.form == "channelwise":
        sizes = _left(letters, channels, blocks.output_channels)
        return tuple((channels[i], tile) for i, tile in up_to(sizes, blocks.channels))
    groups = [axis for axis in channels if axis not in cut.sums]
    sums = [axis for axis in channels if axis in cut.sums]
    of_groups = _left(letters, groups, max(1, blocks.output_channels * piece.groups // piece.kernel.outputs))
    sizes = [*of_groups, *letters.sizes(0, sums)]
    return tuple(((*groups, *sums)[i], tile) for i, tile in up_to(sizes, blocks.channels * taps))


def _left(letters: Letters, along: Sequence[int], tile: int) -> list[int]:
    """Return what loops of a tile over some axes leave of each."""
    sizes = letters.sizes(0, along)
    left = dict(up_to(sizes, tile))
    return [left.get(i, size) for i, size in enumerate(sizes)]
