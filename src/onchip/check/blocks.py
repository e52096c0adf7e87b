"""A single operator that runs in blocks of its output, for operators that fit in no band of rows.

For every block of output channels, every image and every tile of rows and columns, the input's window is
fetched in slices of channels, with the weights of each slice; then the block of the output leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from onchip.check.bands import MOST_STEPS
from onchip.check.parts import Part, up
from onchip.check.rules import broken
from onchip.network import Network
from onchip.network.access import Access
from onchip.network.maps import Map
from onchip.network.windows import Window
from onchip.plans import Blocks, Group

__all__ = ["block_tiles"]


def block_tiles(
    network: Network,
    group: Group,
    blocks: Blocks,
    pieces: Sequence[Access],
    maps: Mapping[int, Map],
    whole: Collection[int],
    alignment: int,
) -> tuple[tuple[Part, ...], int, int, dict[int, int]]:
    """Return (parts of the scratch, subgroups, fetches of the weights, crossing bytes) of a group in blocks.

    Tensors in `whole` have no part of the scratch, and do not cross. Raises `Broken` for a group of several
    operators, sizes below 1, another number of subgroups, and kinds without windows.
    """
    sizes = (blocks.rows, blocks.columns, blocks.output_channels, blocks.channels)
    if min(sizes) < 1:
        broken("tiling-sizes", f"group {group.name} has blocks of {' x '.join(map(str, sizes))}")
    if len(pieces) != 1 or group.resident_weights:
        broken(
            "tiling-blocks", f"group {group.name} runs in blocks and is not one operator, or keeps weights"
        )
    piece = pieces[0]
    if not piece.windowed:
        broken("group-unproved", f"group {group.name} runs in blocks, and {piece.name} has no windows")
    (operand,), (y,) = piece.operands, piece.writes
    x = operand.tensor
    read, made = maps[x], maps[y]
    rows, all_rows = _tiles(operand.rows, blocks.rows, group)
    columns, all_columns = _tiles(operand.columns, blocks.columns, group)
    channels, all_channels = _channels(piece, read, made, blocks.output_channels, group)
    tiles = made.images * -(-made.rows // blocks.rows) * -(-made.columns // blocks.columns)
    if group.subgroups != tiles:
        broken("tiling-subgroups", f"group {group.name} runs in {tiles:,} subgroups, not {group.subgroups:,}")
    inputs = piece.kernel.inputs if blocks.keep_weights else blocks.channels
    window = (1, min(blocks.channels, channels), rows, columns)
    pixels = (
        1,
        min(blocks.output_channels, made.channels),
        min(blocks.rows, made.rows),
        min(blocks.columns, made.columns),
    )
    weights = piece.kernel.part(piece.weights, blocks.output_channels, inputs)
    parts = [
        Part(network.tensors[x].name, up(prod(window) * read.element, alignment), x),
        Part(network.tensors[y].name, up(prod(pixels) * made.element, alignment), y),
        Part(piece.name, up(weights, alignment), kept=blocks.keep_weights),
    ]
    crossing = {
        x: read.images * all_channels * all_rows * all_columns * read.element,
        y: network.tensors[y].bytes,
    }
    parts = [part for part in parts if part.tensor not in whole]
    crossing = {t: n for t, n in crossing.items() if t not in whole}
    return tuple(parts), tiles, 1 if blocks.keep_weights else tiles, crossing


def _tiles(window: Window, block: int, group: Group) -> tuple[int, int]:
    """Return, along one axis, the most inputs that a tile of the output reads, and the sum over all tiles."""
    _not_absurd(window.outputs, block, group)
    spans = []
    for first in range(0, window.outputs, block):
        end = window.end(min(first + block, window.outputs))
        spans.append(max(0, end - window.start(first)))
    return max(spans), sum(spans)


def _not_absurd(size: int, block: int, group: Group) -> None:
    if -(-size // block) > MOST_STEPS:
        broken("group-unproved", f"group {group.name} runs in absurdly many blocks")


def _channels(piece: Access, read: Map, made: Map, block: int, group: Group) -> tuple[int, int]:
    """Return the most input channels that a block of output channels reads, and the sum over all blocks."""
    if piece.form == "channelwise":
        return min(block, made.channels), read.channels
    _not_absurd(made.channels, block, group)
    within = made.channels // piece.groups  # output channels of one group
    counts = []
    for first in range(0, made.channels, block):
        last = min(first + block, made.channels) - 1
        counts.append((last // within - first // within + 1) * piece.kernel.inputs)
    return max(counts), sum(counts)
