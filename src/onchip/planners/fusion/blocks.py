"""A single operator in blocks of its output: its own best tiling, if no band of rows fits.

For every block of output channels, every image and every tile of rows and columns, the window of the input
is fetched in slices of channels, with the weights of each slice unless the block's are kept. The windows of
neighbouring tiles overlap and cross again, and so does the whole input for every block of output channels.

All shapes of blocks of an operator are listed once, by the scratchpad they take, with the best up to there:
a staircase that answers every budget. Operators that look alike share one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from onchip.network import Side
from onchip.network.access import Kernel
from onchip.network.maps import Map
from onchip.network.windows import Window
from onchip.planners.fusion.box_sizes import ranges, spans
from onchip.planners.fusion.problem import FusionProblem
from onchip.plans import Blocks

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = ["Blocked", "best_blocks", "least_blocks", "skips"]


NO_BUDGET = (1 << 63) - 1
"""The scratchpad of blocks that do not fit the parts of a buffer."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """A shape of blocks and its cost, bytes of all images; `tiles` = images x tiles of rows x of columns."""

    blocks: Blocks
    scratch_bytes: int
    tiles: int
    input_bytes: int
    weight_bytes: int


@dataclass(frozen=True, slots=True)
class _Side:
    """One axis cut into tiles of `size` outputs: their number, the most inputs of one, the inputs of all."""

    size: int
    count: int
    most: int
    total: int


@dataclass(frozen=True, slots=True)
class _Task:
    """All that the best blocks of an operator depend on, except the budget."""

    read: Map
    made: Map
    rows: Window
    columns: Window
    kernel: Kernel
    groups: int
    weights: int
    batch: int
    fetching: int  # images that fetch weights of their own
    alignment: int
    least_rows: int
    channel_tile: int
    maps_budget: int
    weights_budget: int

    def round_up(self, size: int) -> int:
        return -(-size // self.alignment) * self.alignment


def best_blocks(problem: FusionProblem, operator: int) -> Blocked | None:
    """Return the blocks with the fewest DRAM bytes within the budget; None without windows or if none fits.

    Ties go to the fewest tiles, then the most input channels at a time, then the least scratchpad. Fewer
    channels than T_c or rows than T_h leave a part of the array idle, and are taken if that moves less.
    """
    task = _task(problem, operator)
    if task is None:
        return None
    found = [
        blocks
        for whole_tiles in (True, False)
        if (blocks := _stairs(task, whole_tiles).at(problem.budget)) is not None
    ]
    return min(found, key=_order, default=None)


def _order(found: Blocked) -> tuple[int, int, int, int]:
    moved = found.input_bytes + found.weight_bytes
    return moved, found.tiles, -found.blocks.channels, found.scratch_bytes


def _task(problem: FusionProblem, operator: int) -> _Task | None:
    op = problem.operators[operator]
    if op.access is None or not op.windowed:
        return None
    (operand,) = op.operands
    read, made = problem.maps[operand.tensor], problem.maps[op.outputs[0]]
    assert read is not None
    assert made is not None
    return _Task(
        read,
        made,
        operand.rows,
        operand.columns,
        op.access.kernel,
        op.access.groups,
        op.weight_bytes,
        problem.batch,
        1 if problem.options.batch_weights == "shared" else problem.batch,
        problem.alignment,
        problem.least_rows,
        problem.channel_tile,
        problem.maps_budget,
        problem.weights_budget,
    )


def least_blocks(problem: FusionProblem, operator: int) -> int | None:
    """Return the scratchpad of the smallest blocks, a pixel and channel at a time; None without windows."""
    task = _task(problem, operator)
    if task is None:
        return None
    read, made = task.read, task.made
    high = _sides(read.rows, made.rows, task.rows)[-1]
    wide = _sides(read.columns, made.columns, task.columns)[-1]
    return sum(
        map(
            task.round_up,
            (
                high.most * wide.most * read.element,
                made.element,
                task.kernel.part(task.weights, 1, 1),
            ),
        )
    )


def skips(problem: FusionProblem, operator: int) -> bool:
    """Return whether an operator with windows reads less than all of its operand."""
    task = _task(problem, operator)
    if task is None:
        return False
    read, made = task.read, task.made
    sides = ((read.rows, made.rows, task.rows), (read.columns, made.columns, task.columns))
    for size, outputs, window in sides:
        first, last = ranges(_side(size, window), outputs, 1)
        seen = sum(range_.stop - range_.start for range_ in _union(first.tolist(), last.tolist()))
        if seen < size:
            return True
    return False


def _union(first: list[int], last: list[int]) -> Iterator[range]:
    """Yield ranges that neither begin nor end before the previous one, without their overlap with it."""
    end = 0
    for begin, stop in zip(first, last, strict=True):
        if stop > max(begin, end):
            yield range(max(begin, end), stop)
            end = stop


@dataclass(frozen=True, slots=True)
class _Stairs:
    """The best blocks from `scratch[i]` bytes on, up to the next, cheaper ones; `scratch` ascends."""

    scratch: tuple[int, ...]
    best: tuple[Blocked, ...]

    def at(self, budget: int) -> Blocked | None:
        """Return the best blocks within `budget` bytes, None if none fits."""
        i = bisect_right(self.scratch, budget)
        return self.best[i - 1] if i else None


@lru_cache(maxsize=4096)
def _stairs(task: _Task, whole_tiles: bool) -> _Stairs:
    """Return every shape of blocks that is the best at some budget."""
    import numpy as np

    read, made = task.read, task.made
    high = _sides(read.rows, made.rows, task.rows, task.least_rows)
    wide = _sides(read.columns, made.columns, task.columns)
    channels = _channels(read, made, task)
    if whole_tiles:
        high = [side for side in high if side.size >= min(task.least_rows, made.rows)]
        channels = [side for side in channels if side.size >= min(task.channel_tile, made.channels)]
        # A deeper block pays only if less crosses, or fewer channels come at a time, than with any shallower
        # one, which may reach into one more group of the convolution.
        kept: list[_Side] = []
        for side in reversed(channels):
            if not any(less.total <= side.total and less.most <= side.most for less in kept):
                kept.append(side)
        channels = kept[::-1]
    # A tile of the plane has rows and columns; a way is a depth, a slice of it, and the weights kept or not.
    plane = _planes(high, wide)
    size, most, total, count = plane[:4]
    fetches = task.fetching * count
    tiles, area = task.batch * count, task.batch * read.element * total
    ways = [(deep, slice_, keep) for deep in channels for slice_, keep in _slices(task, deep, whole_tiles)]
    scratch, moved = np.empty((2, len(ways), len(tiles)), np.int64)
    for i, (deep, slice_, keep) in enumerate(ways):
        held = task.kernel.part(task.weights, deep.size, task.kernel.inputs if keep else slice_)
        buffers = _up(size * made.element * deep.size, task) + _up(most * read.element * slice_, task)
        parts_fit = (buffers <= task.maps_budget) & (task.round_up(held) <= task.weights_budget)
        scratch[i] = np.where(parts_fit, buffers + task.round_up(held), NO_BUDGET)
        moved[i] = area * deep.total + task.weights * (1 if keep else fetches)
    sizes = scratch.ravel()
    slices = np.repeat([slice_ for _, slice_, _ in ways], len(tiles))
    better = np.lexsort((sizes, -slices, np.tile(tiles, len(ways)), moved.ravel()))
    place = np.empty_like(better)
    place[better] = np.arange(len(better))
    climb = np.argsort(sizes, kind="stable")
    leading = np.minimum.accumulate(place[climb])
    steps = np.flatnonzero(np.diff(leading, prepend=len(better)))
    found = []
    for at in better[leading[steps]].tolist():
        way, tile = divmod(at, len(tiles))
        deep, slice_, keep = ways[way]
        row, column = (int(i) for i in plane[4:, tile])
        weights = task.weights * (1 if keep else int(fetches[tile]))
        blocks = Blocks(high[row].size, wide[column].size, deep.size, slice_, keep)
        found.append(Blocked(blocks, int(sizes[at]), int(tiles[tile]), int(area[tile]) * deep.total, weights))
    return _Stairs(tuple(sizes[climb[steps]].tolist()), tuple(found))


def _planes(high: list[_Side], wide: list[_Side]) -> Numbers:
    """Return undominated tiles, one a column: outputs, most inputs, inputs of all, number; list places.

    No other tile has no more of any of the four.
    """
    import numpy as np

    rows, columns = (
        np.array([(s.size, s.most, s.total, s.count) for s in sides], np.int64).T for sides in (high, wide)
    )
    every = (rows[:, :, None] * columns[:, None, :]).reshape(4, -1)
    order = np.lexsort(every[::-1])
    kept: list[int] = []
    for at in order.tolist():
        if not kept or not (every[:, kept] <= every[:, at, None]).all(axis=0).any():
            kept.append(at)
    places = np.array(np.divmod(kept, len(wide)))
    return np.concatenate((every[:, kept], places))


def _up(sizes: Numbers, task: _Task) -> Numbers:
    """Return sizes rounded up to the alignment."""
    return -(-sizes // task.alignment) * task.alignment


def _slices(task: _Task, deep: _Side, whole_tiles: bool) -> list[tuple[int, bool]]:
    """Return (input channels at a time, weights kept): T_c or, if that does not fit, halves of it."""
    result = []
    slice_ = min(task.channel_tile, deep.most)
    while slice_:
        result += [(slice_, keep) for keep in ((True, False) if task.weights else (False,))]
        slice_ = 0 if whole_tiles else slice_ // 2
    return result


def _sides(size: int, outputs: int, window: Window, least: int = 1) -> list[_Side]:
    """Return tiles along an axis, fewest tiles first: for every number of them those that no smaller one
    beats in the most inputs of one or in those of all, and `least`."""
    side = _side(size, window)
    # Adjacent windows need the same wherever they are cut: the smallest tile of every number will do.
    even = window.span <= window.stride and window.before == 0
    result = []
    for tile in sorted({*(_sizes(outputs) if even else range(1, outputs + 1)), min(least, outputs)}):
        each = spans(side, outputs, tile)
        result.append(_Side(tile, -(-outputs // tile), int(each.max()), int(each.sum())))
    return _best(result, least)


def _side(size: int, window: Window) -> Side:
    """Return a window as one side of an operand of `size` positions."""
    return Side(size, 0, window.stride, window.before, window.span)


def _best(sides: list[_Side], least: int) -> list[_Side]:
    """Return the undominated ones of sides with ascending sizes, largest first."""
    kept: list[_Side] = []
    for side in sides:
        alike = [k for k in kept if k.count == side.count]
        if side.size == least or not any(k.most <= side.most and k.total <= side.total for k in alike):
            kept.append(side)
    return kept[::-1]


def _channels(read: Map, made: Map, task: _Task) -> list[_Side]:
    """Return blocks of output channels: the most input channels of one, and those of all."""
    within, least = made.channels // task.groups, task.channel_tile
    if task.kernel.inputs == 1 and within == 1:  # channelwise: its own channels only
        sizes = {*_sizes(made.channels), min(least, made.channels)}
        return [_Side(n, -(-made.channels // n), n, read.channels) for n in sorted(sizes, reverse=True)]
    result = []
    some = range(1, made.channels + 1) if task.groups > 1 and within > 1 else _sizes(made.channels)
    for block in sorted({*some, min(least, made.channels)}):
        counts = []
        for first in range(0, made.channels, block):
            last = min(first + block, made.channels) - 1
            counts.append((last // within - first // within + 1) * task.kernel.inputs)
        result.append(_Side(block, len(counts), max(counts), sum(counts)))
    return _best(result, least)


def _sizes(total: int) -> list[int]:
    """Return for every number of parts the smallest size of a part, largest first."""
    sizes = {-(-total // -(-total // size)) for size in range(1, total + 1)}
    return sorted(sizes, reverse=True)
