"""A single operator in blocks of its output: where no band of rows fits, its own best tiling.

For every block of output channels, every image and every tile of rows and columns, the window of the input
comes in slices of channels, with the weights of each slice unless the block's are kept. The windows of
neighbouring tiles overlap and cross again, and so does the whole input for every block of output channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from onchip.fusion.geometry import Grid, Map
from onchip.fusion.problem import FusionProblem
from onchip.plan import Blocks

__all__ = ["Blocked", "best_blocks", "least_blocks"]


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
    """One axis cut into tiles of `size` outputs: how many, the most inputs of one, the inputs of all."""

    size: int
    count: int
    most: int
    total: int


@dataclass(frozen=True, slots=True)
class _Task:
    """All that the best blocks of an operator depend on: operators that look alike are searched once."""

    read: Map
    made: Map
    grid: Grid
    weights: int
    batch: int
    budget: int
    alignment: int
    least_rows: int
    channel_tile: int

    def round_up(self, size: int) -> int:
        return -(-size // self.alignment) * self.alignment


def best_blocks(problem: FusionProblem, operator: int) -> Blocked | None:
    """The blocks with the fewest DRAM bytes within the budget; None for what has no windows or fits in none.

    Blocks and slices of T_c channels and T_h rows or more, as eq. 4 asks; smaller ones where those do not
    fit. Among equals the fewest tiles, then the most input channels at a time, then the least scratchpad.
    """
    task = _task(problem, operator)
    return None if task is None else _solved(task)


def _task(problem: FusionProblem, operator: int) -> _Task | None:
    op = problem.operators[operator]
    if op.grid is None:
        return None
    read, made = problem.maps[op.windows[0].tensor], problem.maps[op.outputs[0]]
    assert read is not None
    assert made is not None
    return _Task(
        read,
        made,
        op.grid,
        op.weight_bytes,
        problem.batch,
        problem.budget,
        problem.alignment,
        problem.least_rows,
        problem.channel_tile,
    )


def least_blocks(problem: FusionProblem, operator: int) -> int | None:
    """The scratchpad of the smallest blocks, a pixel and channel at a time; None for what has no windows."""
    task = _task(problem, operator)
    if task is None:
        return None
    grid, read, made = task.grid, task.read, task.made
    high, wide = (
        _sides(size, outputs, grid.stride[i], grid.padding[i], grid.span[i])[-1]
        for i, (size, outputs) in enumerate(((read.rows, made.rows), (read.columns, made.columns)))
    )
    return sum(
        map(
            task.round_up,
            (
                high.most * wide.most * read.element,
                made.element,
                _part(task.weights, grid, 1, 1),
            ),
        )
    )


@lru_cache(maxsize=4096)
def _solved(task: _Task) -> Blocked | None:
    return _best(task, whole_tiles=True) or _best(task, whole_tiles=False)


def _best(task: _Task, *, whole_tiles: bool) -> Blocked | None:
    read, made, grid = task.read, task.made, task.grid
    rows = _sides(read.rows, made.rows, grid.stride[0], grid.padding[0], grid.span[0])
    columns = _sides(read.columns, made.columns, grid.stride[1], grid.padding[1], grid.span[1])
    channels = _channels(read, made, grid)
    if whole_tiles:
        rows = [side for side in rows if side.size >= min(task.least_rows, made.rows)]
        channels = [side for side in channels if side.size >= min(task.channel_tile, made.channels)]
    fewest = min(side.total for side in channels)
    sorted_ = all(a.total <= b.total for a, b in pairwise(channels))
    best: tuple[tuple[int, ...], Blocked] | None = None
    for keep in (True, False) if task.weights else (False,):
        for high in rows:
            for wide in columns:
                tiles = task.batch * high.count * wide.count
                weights = task.weights * (1 if keep else tiles)
                area = task.batch * high.total * wide.total * read.element
                if best is not None and (area * fewest + weights, tiles) > best[0][:2]:
                    continue
                for deep in channels:
                    moved = area * deep.total + weights
                    if best is not None and (moved, tiles) > best[0][:2]:
                        if sorted_:
                            break
                        continue
                    found = _in_slices(task, high, wide, deep, keep, whole_tiles)
                    if found is None:
                        continue
                    slice_, scratch = found
                    order = (moved, tiles, -slice_, scratch)
                    if best is None or order < best[0]:
                        blocks = Blocks(high.size, wide.size, deep.size, slice_, keep)
                        best = order, Blocked(blocks, scratch, tiles, area * deep.total, weights)
                    if sorted_:
                        break
    return None if best is None else best[1]


def _in_slices(
    task: _Task, high: _Side, wide: _Side, deep: _Side, keep: bool, whole_tiles: bool
) -> tuple[int, int] | None:
    """The most input channels at a time with which a block fits, and its scratchpad."""
    output = task.round_up(deep.size * high.size * wide.size * task.made.element)
    slice_ = min(task.channel_tile, deep.most)
    while slice_:
        inputs = task.grid.input_channels if keep else slice_
        scratch = output + task.round_up(slice_ * high.most * wide.most * task.read.element)
        if scratch <= task.budget:
            scratch += task.round_up(_part(task.weights, task.grid, deep.size, inputs))
            if scratch <= task.budget:
                return slice_, scratch
        slice_ = 0 if whole_tiles else slice_ // 2
    return None


def _sides(size: int, outputs: int, stride: int, padding: int, span: int) -> list[_Side]:
    """Every number of tiles along an axis, each with the smallest tile, fewest tiles first."""
    result = []
    for tile in _sizes(outputs):
        spans = []
        for first in range(0, outputs, tile):
            last = min(first + tile, outputs) - 1
            begin = min(max(first * stride - padding, 0), size)
            spans.append(max(0, min(max(last * stride - padding + span, 0), size) - begin))
        result.append(_Side(tile, len(spans), max(spans), sum(spans)))
    return result


def _channels(read: Map, made: Map, grid: Grid) -> list[_Side]:
    """Every number of blocks of output channels: the most input channels of one, and those of all."""
    result = []
    within = made.channels // grid.groups
    sizes = set(_sizes(made.channels)) | {within * i for i in range(1, grid.groups + 1)}
    for block in sorted(sizes, reverse=True):
        if grid.input_channels == 1 and within == 1:  # channelwise: its own channels only
            result.append(_Side(block, -(-made.channels // block), block, read.channels))
            continue
        counts = []
        for first in range(0, made.channels, block):
            last = min(first + block, made.channels) - 1
            counts.append((last // within - first // within + 1) * grid.input_channels)
        result.append(_Side(block, len(counts), max(counts), sum(counts)))
    return result


def _sizes(total: int) -> list[int]:
    """For every number of parts the smallest size of a part, largest first."""
    sizes = {-(-total // -(-total // size)) for size in range(1, total + 1)}
    return sorted(sizes, reverse=True)


def _part(weights: int, grid: Grid, outputs: int, inputs: int) -> int:
    """Bytes of the weights of some output channels, each with some of its input channels."""
    outputs, inputs = min(outputs, grid.output_channels), min(inputs, grid.input_channels)
    taps = grid.kernel_rows * grid.kernel_columns
    matrix = taps * grid.input_channels * grid.output_channels
    width = max(1, weights // matrix) if weights else 0
    rest = max(0, weights - width * matrix)
    return min(weights, width * taps * inputs * outputs - (-rest * outputs // grid.output_channels))
