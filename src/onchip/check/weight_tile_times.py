"""The times at which an operator of a group in bands reads and writes elements, if its weights come in tiles.

A tile is fetched once in a sub-group, and all work that needs it is done before the next tile replaces it.
Tiles of output channels follow each other; within each, slices of the input channels that it sums over;
within each slice, the steps of the walk. So a later tile reads the whole input again, after an earlier one
has written its channels of every output pixel of the sub-group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onchip.check.operator_walk import steps_of
from onchip.check.tiles import Banded
from onchip.network import Network
from onchip.network.access import Access
from onchip.network.maps import Map
from onchip.network.windows import last_readers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Times = NDArray[np.int64]

__all__ = ["times_by_tiles"]

MAX_ELEMENTS = 1 << 24
"""The most elements of a map whose steps are followed."""

NEVER = -1


def times_by_tiles(
    network: Network, run: Banded, maker: Access, x: int, bands: Times, channels_last: Mapping[int, bool]
) -> tuple[Times, Times] | None:
    """Return the time of the last read of each element of `x`, and of the first write of each of its output.

    Both in address order; `NEVER` for elements that are not read. `bands` are the sub-groups (of one image)
    that make each row of the output. None if the walk is unknown, or does not go forward by single pixels.
    """
    import numpy as np

    (t,) = maker.writes
    g = network.operators[maker.id].geometry
    assert g is not None  # of every piece
    read, made = run.maps[x], run.maps[t]
    plain = (g.traversal, g.pixels, g.channels) == ("forward", 1, 0)
    if not plain or isinstance(steps_of(network, maker.id, x), str):
        return None
    if max(read.images * _volume(read), made.images * _volume(made)) > MAX_ELEMENTS:
        return None
    operand = next(operand for operand in maker.operands if operand.tensor == x)
    row, column = last_readers(operand.rows), last_readers(operand.columns)
    tile, (last_channel, part) = run.channels, _channels(maker, x, read, made, run.channels)
    tiles = -(-made.channels // tile)
    slices = max(part, default=0) + 1

    def moment(image: Times, channel: Times, at: Times, r: Times, c: Times) -> Times:
        """Return when output `channel` of pixel (r, c) takes its slice `at`; the arguments broadcast."""
        group = image // run.together * run.bands.count + bands[r]
        step = (image * made.rows + r) * made.columns + c
        if g.kind == "elementwise" and channels_last[t]:
            step = step * made.channels + channel
        elif not channels_last[t]:
            step = ((image * made.channels + channel) * made.rows + r) * made.columns + c
        most = made.images * _volume(made)
        found: Times = ((group * tiles + channel // tile) * slices + at) * most + step
        return found

    n, k, i, j = _grid(made)
    writes = moment(n, k, np.int64(0), i, j)  # type: ignore[arg-type]
    n, k, i, j = _grid(read)
    reads = moment(
        n, np.asarray(last_channel)[k], np.asarray(part)[k], np.maximum(row, 0)[i], np.maximum(column, 0)[j]
    )
    reads = np.where((row[i] >= 0) & (column[j] >= 0), reads, NEVER)
    return _as_it_lies(reads, channels_last[x]), _as_it_lies(writes, channels_last[t])


def _volume(m: Map) -> int:
    return m.channels * m.rows * m.columns


def _grid(m: Map) -> tuple[Times, Times, Times, Times]:
    """Return open grids of images, channels, rows and columns."""
    import numpy as np

    n, k, i, j = np.ogrid[: m.images, : m.channels, : m.rows, : m.columns]
    return n, k, i, j


def _as_it_lies(times: Times, channels_last: bool) -> Times:
    return (times.transpose(0, 2, 3, 1) if channels_last else times).reshape(-1)


def _channels(maker: Access, x: int, read: Map, made: Map, tile: int) -> tuple[list[int], list[int]]:
    """Return for each input channel the last output channel that reads it, and its slice there."""
    everywhere = range(read.channels)
    match maker.form:
        case "reduce":
            inputs, outputs = read.channels // maker.groups, made.channels // maker.groups
            return [(c // inputs + 1) * outputs - 1 for c in everywhere], [
                c % inputs // tile for c in everywhere
            ]
        case "concat":
            offset = next(operand.channel for operand in maker.operands if operand.tensor == x)
            return [offset + c for c in everywhere], [0 for _ in everywhere]
        case "channelwise" | "elementwise" if read.channels == made.channels:
            return list(everywhere), [0 for _ in everywhere]
    return [made.channels - 1 for _ in everywhere], [0 for _ in everywhere]
