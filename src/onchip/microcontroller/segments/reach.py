"""The legal distances between an output and its input: every one of a single layer, to the byte.

For each pixel of the input the last step that reads it is recorded, and for each step the pixels written
before it. A byte of the output that is written before a byte of the input is read for the last time must not
have its address: that forbids one distance, and all such pairs forbid whole intervals (see `Distances`).
vMCU's equations 1 and 2 give the least distance from which on all are legal; this module also finds the
legal ones below it, negative ones and those between illegal ones.
"""

from __future__ import annotations

from dataclasses import replace

from onchip.check.operator_overlap import MAX_PIXELS
from onchip.check.operator_walk import BY_PIXEL, Elementwise, Windows, element_bytes, steps_of
from onchip.microcontroller.segments.distances import Distances
from onchip.microcontroller.segments.layers import Layer, Layers, own_pixel
from onchip.network import Network
from onchip.network.windows import last_readers

__all__ = ["layer_distances"]


def layer_distances(net: Layers, layer: Layer, resident: int) -> Distances | None:
    """Return the legal distances of a layer that runs alone, counted in the direction of `net`.

    None if input and output must not overlap. The layer walks as its geometry promises
    (`onchip.check.operator_walk`): a window reads its taps and no position between them.
    """
    network = net.network
    op = network.operators[layer.operator]
    same = {t for t in op.inputs if network.root[t] == network.root[resident]}
    if layer.blind or same != {resident} or op.geometry is None:
        return None
    if resident != op.inputs[0] and op.geometry.kind not in (*BY_PIXEL, "elementwise"):
        return None
    walking = replace(op.geometry, traversal="reverse" if net.reverse else "forward")
    operators = list(network.operators)
    operators[op.id] = replace(op, geometry=walking)
    walk = steps_of(replace(network, operators=tuple(operators)), op.id, resident)
    given, made = network.tensors[resident].bytes, network.tensors[layer.makes].bytes
    match walk:
        case Elementwise():
            found = _by_elements(network, walk, given, made, max(network.tensors[t].bytes for t in op.inputs))
        case Windows():
            found = _by_windows(walk, own_pixel(net, layer, resident))
        case _:
            return None
    return found.mirrored(given, made) if found is not None and net.reverse else found


def _by_elements(
    network: Network, walk: Elementwise, given: int, made: int, largest: int
) -> Distances | None:
    """Return the distances if element q is read, then written, after q others (those behind, in reverse)."""
    read, write, n = element_bytes(given, walk.steps), made // walk.steps, walk.steps
    if read is None or given < largest or walk.patches is not None:
        return None
    if n == 1:
        return Distances(())
    more = write - read
    if walk.reverse:
        return Distances(((min((n - 1) * more, more) + 1, made - 1),))
    return Distances(((1 - given, max((n - 1) * more, more) - 1),))


def _by_windows(walk: Windows, own: int | None) -> Distances | None:
    """Return the distances of every pixel of the input to the pixels written before its last read.

    What the last step itself writes is too early up to its last chunk; or, where the layer goes from element
    to element, up to the element: then `own` bytes of the pixel, as in `own_pixel`.
    """
    import numpy as np

    rows, columns = walk.rows, walk.columns
    area, wide, narrow = rows.size * columns.size, walk.read_bytes, walk.write_bytes
    if max(walk.planes * area, rows.size * rows.taps, columns.size * columns.taps) > MAX_PIXELS:
        return None
    width = columns.outputs
    by_row, by_column = (last_readers(axis, reverse=walk.reverse) for axis in (rows, columns))
    plane = np.arange(walk.planes, dtype=np.int64) // walk.fan_in * walk.fan_out
    row = (plane + (0 if walk.reverse else walk.fan_out - 1))[:, None] * rows.outputs + by_row
    read = np.broadcast_to((by_row >= 0)[:, None] & (by_column >= 0), (walk.planes, rows.size, columns.size))
    pixel = np.flatnonzero(read)
    step = by_column // walk.pixels if not walk.reverse else (width - 1 - by_column) // walk.pixels
    first = step * walk.pixels if not walk.reverse else np.maximum(width - (step + 1) * walk.pixels, 0)
    end = np.minimum(first + walk.pixels, width) if not walk.reverse else width - step * walk.pixels
    line = np.broadcast_to(row[:, :, None] * width, read.shape).ravel()[pixel]
    start, stop = (line + np.broadcast_to(x, read.shape).ravel()[pixel] for x in (first, end))
    at = pixel * wide
    total = walk.written * narrow
    if walk.reverse:
        low, high = stop * narrow - at - wide + 1, total - at - 1
        some = stop * narrow < total
    else:
        low, high = 1 - at - wide, start * narrow - at - 1
        some = start > 0
    lows, highs = [low[some]], [high[some]]
    chunk = walk.chunk if 0 < walk.chunk < narrow else narrow
    early = (narrow - 1) // chunk * chunk
    if own is not None:
        chunk, early = narrow - own, own
    for k in range(walk.pixels if chunk < narrow or own is not None else 0):
        there = start + k < stop
        mine = (start[there] + k) * narrow - at[there]
        lows.append(mine - wide + 1 + (chunk if walk.reverse else 0))
        highs.append(mine + (narrow if walk.reverse else early) - 1)
    return Distances.but(np.concatenate(lows), np.concatenate(highs))
