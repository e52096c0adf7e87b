"""Windows over a streamed map: strips of one row of output patches, behind a line buffer of input patches.

As many groups of channels run together as fit (a convolution without groups has one; a depthwise one and a
pool have a group for each channel). For each row of output patches the scratch holds the rows of input
patches that its windows span, each fetched once; the weights of the groups, which every strip needs again;
and a piece through which the output's patches leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from onchip.plans import PinnedWeights
from onchip.run.arena import POISON
from onchip.run.streamed.chain import Chain
from onchip.run.streamed.maps import Region
from onchip.run.streamed.parameters import Fetched, Parameters
from onchip.run.streamed.part import Part, patch_bytes, slab

__all__ = ["run_strips"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Span = tuple[int, int]


@dataclass(frozen=True)
class _Sizes:
    """The sizes of the parts of the scratch for `together` groups, in its bytes."""

    together: int
    line: int
    tile: int
    piece: int


class _Line:
    """The last rows of patches of some channels; row r lies in place r modulo their number."""

    def __init__(self, part: Part, t: int, room: Bytes, rows: int) -> None:
        self.part, self.t, self.rows = part, t, rows
        self.room, self.source = room, part.source(t)
        self.layout = part.state.slots.layout[t]
        self.begin((0, 0))

    def begin(self, channels: Span) -> None:
        self.channels, self.next = channels, 0
        count, width = channels[1] - channels[0], self.source.shape[2]
        self.places = self.room[: count * self.rows * width].reshape(count, self.rows, width)

    def up_to(self, row: int) -> None:
        """Fetch the missing rows of patches, up to that one."""
        while self.next <= row:
            taken = self.source[slice(*self.channels), self.next]
            self.places[:, self.next % self.rows] = taken
            self.part.crossed[self.t] += taken.size
            self.next += 1

    def get(self, rows: Span, touched: Span) -> Array:
        """Return [1, channels, rows, columns] of some rows of elements, poison outside the rows `touched`.

        `touched` are rows of patches. Between two taps of a dilated window there may be others.
        """
        p = self.layout.patches
        assert p is not None
        first, last = rows[0] // p.height, -(-rows[1] // p.height)
        taken = np.full((len(self.places), last - first, self.places.shape[2]), POISON, np.uint8)
        if touched[0] < touched[1]:
            self.up_to(touched[1] - 1)
            places = np.arange(*touched) % self.rows
            taken[:, touched[0] - first : touched[1] - first] = self.places[:, places]
        stored = min(last * p.height, p.rows) - first * p.height
        if stored <= 0:
            return np.empty((1, len(taken), 0, p.columns), self.layout.dtype)
        value = slab(self.layout, len(taken), stored).unpack(taken.reshape(-1))
        return value[:, :, rows[0] - first * p.height : rows[1] - first * p.height]


class _Out:
    """The destination of a row of output patches: its range, or pieces of whole patches to DRAM."""

    def __init__(self, part: Part, room: Bytes) -> None:
        self.part, self.layout, self.room = part, part.layout, room

    def put(self, channels: Span, rows: Span, value: Array) -> None:
        p, sent = self.layout.patches, self.part.sent
        if p is None:  # a vector: one strip has all of its rows
            places = sent.reshape(-1, self.layout.pitch)[slice(*channels)]
            width = value.dtype.itemsize
            places[:, :width] = np.ascontiguousarray(value).view(np.uint8).reshape(-1, width)
            return
        count = channels[1] - channels[0]
        data = slab(self.layout, count, rows[1] - rows[0]).pack(value).reshape(count, -1)
        there = sent.reshape(p.channels, p.grid[0], -1)[slice(*channels), rows[0] // p.height]
        if self.part.out not in self.part.streamed:
            there[...] = data
            return
        self.part.crossed[self.part.out] += data.size
        patch = patch_bytes(self.layout)
        whole = self.room[: len(self.room) // patch * patch].reshape(-1, patch)
        patches, gone = data.reshape(-1, patch), np.empty_like(data).reshape(-1, patch)
        for first in range(0, len(patches), len(whole)):
            leaving = patches[first : first + len(whole)]
            whole[: len(leaving)] = leaving
            gone[first : first + len(leaving)] = whole[: len(leaving)]
        there[...] = gone.reshape(data.shape)


def run_strips(part: Part) -> None:
    """Run the operator. Raises as the machine does, and for a scratch that does not hold the least strip."""
    state, chain, op = part.state, part.chain, part.op
    source, made = part.maps[chain.reads[0]], part.maps[part.out]
    layout = state.slots.layout[chain.reads[0]]
    groups = chain.groups if chain.kind == "conv" else source.channels
    outs, ins = made.channels // groups, source.channels // groups
    stored = part.layout.patches
    height = made.rows if stored is None else stored.height
    strips = [(row, min(row + height, made.rows)) for row in range(0, made.rows, height)]
    touched = [_touched(chain, strip, layout.patches.height) for strip in strips]  # type: ignore[union-attr]
    come = accumulate((last for _, last in touched), max)
    rows = max(
        [1, *(most - first for most, (first, last) in zip(come, touched, strict=True) if first < last)]
    )
    parameters = Parameters(chain, made.channels, state.slots.scale)
    apart = state.plan.chip.weight_scratchpad_bytes is not None or any(
        isinstance(pin, PinnedWeights) and pin.operator == op.name for pin in state.plan.pins
    )
    sizes = _fit(part, parameters, apart, (outs, ins, groups), rows)
    room = part.scratch
    line = _Line(part, chain.reads[0], room[: sizes.line], rows)
    tile = room[sizes.line : sizes.line + sizes.tile]
    out = _Out(part, room[sizes.line + sizes.tile :])
    weights = Fetched(parameters, (sizes.together * outs, parameters.inputs))
    if apart:
        weights.resident, weights.kernels, weights.vectors = True, parameters.kernels, parameters.values
    else:
        weights.through(tile)
    for first in range(0, groups, sizes.together):
        last = min(first + sizes.together, groups)
        written, read = (first * outs, last * outs), (first * ins, last * ins)
        weights.fetch(written)
        for image in range(made.images):
            line.begin((image * source.channels + read[0], image * source.channels + read[1]))
            for strip, span in zip(strips, touched, strict=True):
                value = _strip(part, weights, line, image, written, strip, span)
                base = image * made.channels
                out.put((base + written[0], base + written[1]), strip, value)
            line.up_to(layout.patches.grid[0] - 1)  # type: ignore[union-attr]
    part.weights = state.fetched_weights(op.name, [op]) if apart else weights.moved


def _strip(
    part: Part, weights: Fetched, line: _Line, image: int, outs: Span, rows: Span, touched: Span
) -> Array:
    """Return one row of output patches."""
    chain, made = part.chain, part.maps[part.out]
    top, bottom = chain.rows[0].missing(rows)
    left, right = chain.columns[0].missing((0, made.columns))
    kernels = None if weights.kernels is None else weights.kernels[slice(*outs)]
    value = part.kernels.head(
        chain,
        [line.get(chain.rows[0].reads(rows), touched)],
        (top, left, bottom, right),
        (rows[1] - rows[0], made.columns),
        kernels,
        weights.vector(chain.bias, outs),
        whole=rows == (0, made.rows) and outs == (0, made.channels),
    )
    region = Region((image, image + 1), outs, rows, (0, made.columns))
    return part.behind({chain.result: value}, region, weights.channelled(outs))


def _fit(part: Part, parameters: Parameters, apart: bool, shape: tuple[int, int, int], rows: int) -> _Sizes:
    """Return the sizes for as many groups together as the scratch holds."""
    outs, ins, groups = shape
    width = part.source(part.chain.reads[0]).shape[2]
    piece = patch_bytes(part.layout) if part.out in part.streamed else 0

    def sizes(together: int) -> _Sizes:
        largest = parameters.largest((together * outs, parameters.inputs))
        tile = 0 if apart else largest * part.state.slots.scale
        return _Sizes(together, together * ins * rows * width, tile, piece)

    def need(together: int) -> int:
        found = sizes(together)
        return found.line + found.tile + found.piece

    low, high = 0, groups  # `low` groups fit
    while low < high:
        middle = (low + high + 1) // 2
        if need(middle) <= len(part.scratch):
            low = middle
        else:
            high = middle - 1
    if not low:
        part.refuse_room(need(1))
    return sizes(low)


def _touched(chain: Chain, rows: Span, height: int) -> Span:
    """Return the rows of patches from the first to the last that the windows of some output rows touch."""
    window = chain.rows[0]
    if not window.stride:
        return 0, -(-window.size // height)
    taps = range(0, window.span, window.dilation)
    read = {row * window.stride - window.before + tap for row in range(*rows) for tap in taps}
    inside = [row for row in read if 0 <= row < window.size]
    return (min(inside) // height, max(inside) // height + 1) if inside else (0, 0)
