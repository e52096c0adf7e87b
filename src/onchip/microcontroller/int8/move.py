"""Layers that only move bytes: slices, splits, transposes, and whatever else picks bytes of its input.

Every byte of the output is one of the input, at a place that is a sum of three numbers, one for its row, one
for its column, one for its channel. numpy finds the places: an operator is applied to the numbers of the
input's bytes instead of to the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from onchip.microcontroller.int8.model import Int8, Int32, Own, Shape, frozen_array
from onchip.microcontroller.int8.read_site import Site, Value, four
from onchip.microcontroller.int8.sixteen.values import in_bytes

__all__ = ["MOVES", "Move", "Places", "flat_or_map", "in_three", "move_of", "places_of", "strides_of"]

Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Move(Own):
    """y[row, column, channel] = the input's byte `rows[row]` + `columns[column]` + `channels[channel]`."""

    rows: Int32
    columns: Int32
    channels: Int32

    def compute(self, seen: Sequence[Int8]) -> Int8:
        places = self.rows[:, None, None] + self.columns[:, None] + self.channels
        found: Int8 = seen[0].reshape(-1)[places]
        return found


def places_of(value: Value) -> Places:
    """Return the numbers of a tensor's bytes, in the shape and the order of the file."""
    stored = np.arange(prod(value.stored), dtype=np.int64).reshape(value.stored)
    kept = [axis for axis in range(stored.ndim) if axis not in value.lies]
    return stored.transpose((*kept, *value.lies)).reshape(value.shape)


def move_of(site: Site, name: str, value: Value, places: Places, output: int, width: int = 1) -> Move:
    """Return the layer `name` that makes tensor `output` of the numbers of a value at some places.

    A number has `width` bytes.
    """
    shape, parts = in_three(site, places)
    if width > 1:
        shape, apart = in_bytes(shape), {key: part * width for key, part in parts.items()}
        each = (apart.pop("channels")[:, None] + np.arange(width)).reshape(-1)
        parts = {key: frozen_array(part, np.int32) for key, part in {**apart, "channels": each}.items()}
    seen = flat_or_map(value)
    return Move(
        name=name,
        inputs=(value.tensor,),
        output=output,
        input_shapes=(seen if width == 1 else in_bytes(seen),),
        output_shape=shape,
        **parts,
    )


def flat_or_map(value: Value) -> Shape:
    """Return the shape in which a layer sees bytes that it reads by their places."""
    found = four(value.stored)
    if len(found) == 4 and found[0] == 1:
        return 1, found[1], found[2], found[3]
    return 1, 1, 1, prod(value.stored)


def in_three(site: Site, places: Places) -> tuple[Shape, dict[str, Int32]]:
    """Return a shape for the output, and its places as sums of those of rows, columns and channels."""
    for shape in _shapes(places.shape):
        by = places.reshape(shape[1:])
        rows, columns, channels = by[:, 0, 0], by[0, :, 0] - by[0, 0, 0], by[0, 0, :] - by[0, 0, 0]
        if np.array_equal(by, rows[:, None, None] + columns[:, None] + channels):
            parts = {"rows": rows, "columns": columns, "channels": channels}
            return shape, {key: frozen_array(part, np.int32) for key, part in parts.items()}
    raise site.refuse(f"reads bytes for {list(places.shape)} in an order that no three numbers give")


def _shapes(shape: tuple[int, ...]) -> Iterator[Shape]:
    """Yield the shapes of rows, columns and channels that an array may have, that of the file first."""
    found = four(shape)
    if len(found) == 4 and found[0] == 1:
        yield 1, found[1], found[2], found[3]
    for i in range(len(shape)):
        for j in range(i, len(shape)):
            yield 1, prod(shape[:i]), prod(shape[i:j]), prod(shape[j:])


# -- the operators: each returns the places of every output, given those of the input ------------------------


def _axis(site: Site, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise site.refuse(f"is along axis {axis} of {rank}")
    return axis % rank


def _slice(site: Site, x: Places) -> list[Places]:
    begin, size = (site.numbers(p, x.ndim, what) for p, what in ((1, "begins"), (2, "sizes")))
    ends = [x.shape[i] if n < 0 else b + n for i, (b, n) in enumerate(zip(begin, size, strict=True))]
    if any(not 0 <= b < e <= n for b, e, n in zip(begin, ends, x.shape, strict=True)):
        raise site.refuse(f"takes [{begin}, {ends}) of {list(x.shape)}")
    return [x[tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))]]


def _strided_slice(site: Site, x: Places) -> list[Places]:
    given = [site.numbers(p, 0, what) for p, what in ((1, "begins"), (2, "ends"), (3, "strides"))]
    try:
        return [x[strides_of(site, x.ndim, *given)]]
    except IndexError:
        raise site.refuse(f"takes a place that {list(x.shape)} has not") from None


def strides_of(
    site: Site, rank: int, begin: Sequence[int], end: Sequence[int], step: Sequence[int]
) -> tuple[slice | int, ...]:
    """Return the indices of a STRIDED_SLICE of an array of so many axes."""
    if not len(begin) == len(end) == len(step) <= rank or 0 in step:
        raise site.refuse(f"takes {begin} to {end} by {step} of {rank} axes")
    masks = {
        key: site.option(f"{key}Mask", 0) for key in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")
    }
    if masks["Ellipsis"] or masks["NewAxis"] or site.option("Offset", 0):
        raise site.refuse("has an ellipsis, a new axis or offsets, which are not read")
    found: list[slice | int] = []
    for i, (b, e, s) in enumerate(zip(begin, end, step, strict=True)):
        if masks["ShrinkAxis"] >> i & 1:
            found.append(b)
            continue
        found.append(slice(None if masks["Begin"] >> i & 1 else b, None if masks["End"] >> i & 1 else e, s))
    return tuple(found)


def _split(site: Site, x: Places) -> list[Places]:
    count = len(site.node.outputs)
    axis = _axis(site, site.numbers(0, 1, "an axis")[0], x.ndim)
    if x.shape[axis] % count:
        raise site.refuse(f"splits {list(x.shape)} in {count} along axis {axis}")
    return np.split(x, count, axis)


def _split_v(site: Site, x: Places) -> list[Places]:
    sizes = site.numbers(1, len(site.node.outputs), "sizes")
    axis = _axis(site, site.numbers(2, 1, "an axis")[0], x.ndim)
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    if min(sizes) < 1 or sum(sizes) != x.shape[axis]:
        raise site.refuse(f"splits {list(x.shape)} in {sizes} along axis {axis}")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _unpack(site: Site, x: Places) -> list[Places]:
    axis = _axis(site, site.option("Axis", 0), x.ndim)
    if len(site.node.outputs) != x.shape[axis]:
        raise site.refuse(f"takes {list(x.shape)} apart in {len(site.node.outputs)} along axis {axis}")
    return [np.take(x, i, axis) for i in range(x.shape[axis])]


def _gather(site: Site, x: Places) -> list[Places]:
    axis = _axis(site, site.option("Axis", 0), x.ndim)
    indices = site.graph.constant(site.operand(1))
    if indices is None or site.option("BatchDims", 0):
        raise site.refuse("gathers at places that are no constants")
    if indices.size and not (int(indices.min()) >= 0 and int(indices.max()) < x.shape[axis]):
        raise site.refuse(f"gathers beyond the {x.shape[axis]} places of axis {axis}")
    return [np.take(x, indices.astype(np.int64), axis)]


def _reverse(site: Site, x: Places) -> list[Places]:
    axes = [_axis(site, axis, x.ndim) for axis in site.numbers(1, 0, "axes")]
    return [np.flip(x, tuple(axes))]


def _tile(site: Site, x: Places) -> list[Places]:
    times = site.numbers(1, x.ndim, "multiples")
    if min(times) < 1 or x.size * prod(times) > 1 << 24:
        raise site.refuse(f"repeats {list(x.shape)} {times} times")
    return [np.tile(x, times)]


def _broadcast(site: Site, x: Places) -> list[Places]:
    try:
        return [np.broadcast_to(x, site.out.shape)]
    except ValueError:
        raise site.refuse(f"spreads {list(x.shape)} over {list(site.out.shape)}") from None


def _blocks(site: Site, x: Places) -> int:
    block = site.option("BlockSize")
    if x.ndim != 4 or block < 1:
        raise site.refuse(f"moves blocks of {block} of {list(x.shape)}")
    return block


def _space_to_depth(site: Site, x: Places) -> list[Places]:
    block = _blocks(site, x)
    n, rows, columns, channels = x.shape
    if rows % block or columns % block:
        raise site.refuse(f"moves blocks of {block} of {list(x.shape)}")
    parts = x.reshape(n, rows // block, block, columns // block, block, channels)
    return [parts.transpose(0, 1, 3, 2, 4, 5).reshape(n, rows // block, columns // block, -1)]


def _depth_to_space(site: Site, x: Places) -> list[Places]:
    block = _blocks(site, x)
    n, rows, columns, channels = x.shape
    if channels % (block * block):
        raise site.refuse(f"moves blocks of {block} of {list(x.shape)}")
    parts = x.reshape(n, rows, columns, block, block, -1)
    return [parts.transpose(0, 1, 3, 2, 4, 5).reshape(n, rows * block, columns * block, -1)]


def _mirror_pad(site: Site, x: Places) -> list[Places]:
    amounts = site.numbers(1, 2 * x.ndim, "paddings")
    pairs = list(zip(amounts[::2], amounts[1::2], strict=True))
    symmetric = site.option("Mode", 0) == 1
    if any(
        not 0 <= n <= size - (not symmetric) for pair, size in zip(pairs, x.shape, strict=True) for n in pair
    ):
        raise site.refuse(f"mirrors {pairs} of {list(x.shape)}")
    return [np.pad(x, pairs, mode="symmetric" if symmetric else "reflect")]


MOVES: Mapping[str, tuple[int, Callable[[Site, Places], list[Places]]]] = {
    "BROADCAST_TO": (0, _broadcast),
    "DEPTH_TO_SPACE": (0, _depth_to_space),
    "GATHER": (0, _gather),
    "MIRROR_PAD": (0, _mirror_pad),
    "REVERSE_V2": (0, _reverse),
    "SLICE": (0, _slice),
    "SPACE_TO_DEPTH": (0, _space_to_depth),
    "SPLIT": (1, _split),
    "SPLIT_V": (0, _split_v),
    "STRIDED_SLICE": (0, _strided_slice),
    "TILE": (0, _tile),
    "UNPACK": (0, _unpack),
}
"""By operator: the position of the operand that it moves, and the places of its outputs."""
