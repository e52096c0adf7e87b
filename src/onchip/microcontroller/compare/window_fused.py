"""The paper's fused inverted bottleneck (vMCU 5.2) on whole networks: a window at a time.

For every output pixel the k x k window of B is made from A, then one pixel of C, D and E; k*k + 1 + 1
segments of workspace, and the expansion is done up to k*k times. Layers outside of blocks run alone, output
over input as far as it is safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from onchip.microcontroller.compare.lives import Baseline, Lives
from onchip.microcontroller.compare.overlapped import one_layer_bytes
from onchip.microcontroller.segments.layers import Layer, Layers

__all__ = ["Bottleneck", "bottlenecks", "window_fused"]


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Layers [first, end): a convolution, a depthwise layer, a pointwise one, perhaps the input added."""

    first: int
    end: int
    bytes: int
    """With the walk from the map's first pixel or from its last, whichever takes less."""
    walked_bytes: int
    """With the walk from the first pixel, as the paper describes it."""
    macs: int


def window_fused(lives: Lives) -> Baseline:
    """Return the least RAM with fused blocks; only blocks that need more unfused are fused."""
    blocks = {block.first: block for block in bottlenecks(lives)}
    alone = [one_layer_bytes(lives, i) for i in range(len(lives.net.layers))]
    units: list[tuple[int, Bottleneck | None, int]] = []
    at = 0
    while at < len(alone):
        block = blocks.get(at)
        end = block.end if block else at + 1
        units.append((max(alone[at:end]), block, end))
        at = end
    ram = max(min(plain, block.bytes) if block else plain for plain, block, _ in units)
    more = sum(
        block.macs - _plain_macs(lives.net, block) for plain, block, _ in units if block and plain > ram
    )
    return Baseline("window", ram, lives.macs + more)


def bottlenecks(lives: Lives, *, larger: bool = False) -> Iterator[Bottleneck]:
    """Yield every block that the paper's kernel takes: as there, none with a window larger than its map.

    With `larger` those, too, with a segment for each pixel of the map that a window can hold.
    """
    net = lives.net
    at = 0
    while at + 3 <= len(net.layers):
        end = _block_end(lives, at, larger)
        if end is None:
            at += 1
            continue
        yield _fused(lives, at, end)
        at = end


def _kind(net: Layers, layer: Layer) -> str:
    geometry = net.network.operators[layer.operator].geometry
    return geometry.kind if geometry is not None else ""


def _block_end(lives: Lives, at: int, larger: bool) -> int | None:
    net = lives.net
    expand, across, project = net.layers[at : at + 3]
    kinds = [_kind(net, layer) for layer in (expand, across, project)]
    linked = across.reads == (expand.makes,) and project.reads == (across.makes,)
    if kinds != ["conv", "depthwise", "conv"] or not linked:
        return None
    if lives.readers(expand.makes) != [at + 1] or lives.readers(across.makes) != [at + 2]:
        return None
    flat = all(w.span == 1 and w.stride == 1 for w in (*project.rows, *project.columns))
    if not flat or (not larger and any(w.span > w.size for w in (*across.rows, *across.columns))):
        return None
    if at + 3 < len(net.layers):
        add = net.layers[at + 3]
        if set(add.reads) == {project.makes, expand.reads[0]} and lives.readers(project.makes) == [at + 3]:
            return at + 4
    return at + 3


def _fused(lives: Lives, first: int, end: int) -> Bottleneck:
    net = lives.net
    expand, across, project = net.layers[first : first + 3]
    source, made = expand.reads[0], net.layers[end - 1].makes
    window = prod(min(w.span, w.size) for w in (across.rows[0], across.columns[0]))
    workspace = (window + 1) * net.maps[expand.makes].pixel + net.maps[project.makes].pixel
    workspace += max(layer.workspace for layer in net.layers[first:end])
    given, out = net.maps[source].bytes, net.maps[made].bytes
    ends = walked = given + out
    if lives.last[source] < end and source not in net.network.outputs:
        both = (net, net.mirrored())
        apart = [_distance(list(_moments(way, first, end))) for way in both]
        ends, walked = (min(ends, max(given + least, out)) for least in (min(apart), apart[0]))
    beside = lives.beside(first, (source,))
    inside = sum(_taken(across.rows[0].reads((y, y + 1))) for y in range(net.maps[across.makes].rows)) * sum(
        _taken(across.columns[0].reads((x, x + 1))) for x in range(net.maps[across.makes].columns)
    )
    pixels = net.maps[made].rows * net.maps[made].columns
    rest = sum(layer.macs for layer in net.layers[first + 1 : end])
    beside += workspace
    work = inside * expand.macs + pixels * rest
    return Bottleneck(first, end, ends + beside, walked + beside, work)


def _taken(lines: tuple[int, int]) -> int:
    return lines[1] - lines[0]


def _distance(moments: Sequence[tuple[int | None, int]]) -> int:
    """Return the paper's distance, in bytes, from the output's start up to the input's.

    It is at least 0, and every larger one is safe. Each moment reads the input from its first value on, then
    writes up to its second.
    """
    lowest, most = None, 0
    for low, end in reversed(moments):
        if lowest is not None:
            most = max(most, end - lowest)
        if low is not None:
            lowest = low if lowest is None else min(lowest, low)
    return most


def _moments(net: Layers, first: int, end: int) -> Iterator[tuple[int | None, int]]:
    """Yield, for each output pixel, the lowest byte of A that its window reads and the end of the writes."""
    expand, across = net.layers[first : first + 2]
    given, made = net.maps[expand.reads[0]], net.maps[net.layers[end - 1].makes]
    columns = [expand.columns[0].reads(across.columns[0].reads((x, x + 1))) for x in range(made.columns)]
    for y in range(made.rows):
        rows = expand.rows[0].reads(across.rows[0].reads((y, y + 1)))
        for x, read in enumerate(columns):
            there = rows[0] < rows[1] and read[0] < read[1]
            low = rows[0] * given.row + read[0] * given.pixel if there else None
            if end - first == 4:  # the pixel that is added may lie before the window
                own = y * given.row + x * given.pixel
                low = own if low is None else min(low, own)
            yield low, y * made.row + (x + 1) * made.pixel


def _plain_macs(net: Layers, block: Bottleneck) -> int:
    operators = net.network.operators
    return sum(operators[layer.operator].work for layer in net.layers[block.first : block.end])
