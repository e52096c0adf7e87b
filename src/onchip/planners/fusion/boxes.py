"""A single operator in boxes of its output, in any number of dimensions: for operators without bands.

The operator's reach gives the box of every operand, constants included, that a box of the output needs. Boxes
follow each other in loops over the output's axes; an operand's part is fetched again whenever an index along
one of its axes has changed. So an operand is fetched once if its axes are the outermost loops, and its
overlap with the previous box is fetched again.

All sizes and the candidate orders are listed once, by the scratchpad they take, with the best up to there: a
staircase that answers every budget. Operators that look alike share one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, permutations
from math import factorial, prod
from typing import TYPE_CHECKING, Any

from onchip.network import Network, Operator, Reach, Side
from onchip.planners.fusion.box_sizes import MOST_BOXES, ranges, sizes_along, spans, thinned
from onchip.plans import Boxes

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

__all__ = [
    "Boxed",
    "Ways",
    "best_boxes",
    "box_ways",
    "crossing_in_boxes",
    "least_read",
    "least_weights",
    "settled",
]

MOST_SHAPES = 1 << 22
"""The most shapes of boxes times orders of loops that are tried; beyond, fewer sizes of every axis."""

SLAB = 1 << 18
"""The most shapes that are tried together: it bounds the memory."""

MOST_ORDERS = 120
"""The most orders of the operands whose loops are tried: all of five."""

MOST_MOVED = 1 << 53
"""Shapes with more bytes or boxes are not counted: integers are exact far below the point of overflow."""


@dataclass(frozen=True, slots=True)
class Boxed:
    """A shape of boxes and its cost: `moved_bytes` of operands, `weight_bytes` of constants."""

    boxes: Boxes
    scratch_bytes: int
    tiles: int
    moved_bytes: int
    weight_bytes: int


@dataclass(frozen=True, slots=True)
class Ways:
    """The shapes of boxes of an operator that are the best at some budget, by scratchpad.

    `complete`: every shape was tried, in every candidate order; otherwise there may be better ones.
    """

    boxes: tuple[Boxed, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class _Part:
    """An operand or a constant: its sides, the bytes of an element, whether it is a constant."""

    sides: tuple[Side, ...]
    element: int
    constant: bool


@dataclass(frozen=True, slots=True)
class _Task:
    """All that the best boxes of an operator depend on, except the budget."""

    extents: tuple[int, ...]  # of the output, then of the axes that are summed over
    outer: int  # axes of the output
    element: int
    parts: tuple[_Part, ...]
    alignment: int
    maps_budget: int
    weights_budget: int
    whole: int = 0  # sums at the end that are not cut, as they would carry a state from box to box


def box_ways(network: Network, op: Operator, alignment: int, maps_budget: int, weights_budget: int) -> Ways:
    """Return every shape of boxes that is the best at some budget, by scratchpad; none without a reach."""
    task = _task(network, op, alignment, maps_budget, weights_budget)
    return Ways() if task is None else _stairs(task)


def best_boxes(ways: Sequence[Boxed], budget: int) -> Boxed | None:
    """Return the best of them within `budget` bytes, None if none fits."""
    i = bisect_right(ways, budget, key=lambda way: way.scratch_bytes)
    return ways[i - 1] if i else None


def crossing_in_boxes(
    op: Operator, boxes: Boxes, sizes: Sequence[int], roots: Sequence[int]
) -> dict[int, int]:
    """Return by root tensor the bytes of an operator's inputs that cross; `sizes`, `roots` are by tensor."""
    reach = op.reach
    assert reach is not None
    counts = [-(-size // box) for size, box in zip(reach.extents, boxes.sizes, strict=True)]
    found: dict[int, int] = {}
    for t, sides in zip(op.inputs, reach.reads, strict=True):
        elements = _again(sides, counts, boxes.order)
        for side in sides:
            whole = 1 if side.axis < 0 else reach.extents[side.axis]
            box = 1 if side.axis < 0 else boxes.sizes[side.axis]
            elements *= int(spans(side, whole, box).sum())
        element = sizes[t] // prod(side.size for side in sides)
        found[roots[t]] = found.get(roots[t], 0) + elements * element
    return found


def least_read(op: Operator, tensor: int, size: int) -> int:
    """Return the fewest bytes of an input of `size` bytes that an operator with a reach needs."""
    reach = op.reach
    assert reach is not None
    if tensor not in op.inputs:
        return 0  # it reads a view of it
    return _needed(reach, reach.reads[op.inputs.index(tensor)], size)


def least_weights(op: Operator) -> int:
    """Return the fewest bytes of its weights that an operator needs."""
    reach = op.reach
    if reach is None or sum(c.bytes for c in reach.weights) != op.weight_bytes:
        return op.weight_bytes
    return sum(_needed(reach, c.sides, c.bytes) for c in reach.weights)


def settled(op: Operator, sizes: Mapping[int, int], boxes: Sequence[Boxed]) -> bool:
    """Return whether no other box could be better than these, though not all were tried.

    The box of one element takes the least scratch of all; if it moves no more than what is needed once, every
    larger room has it. `sizes` are the bytes of the inputs.
    """
    if not boxes:
        return False
    least = sum(least_read(op, t, sizes[t]) for t in op.inputs)
    smallest = min(boxes, key=lambda ways: ways.scratch_bytes)
    return (
        all(size == 1 for size in smallest.boxes.sizes)
        and smallest.moved_bytes == least
        and smallest.weight_bytes == least_weights(op)
    )


def _needed(reach: Reach, sides: Sequence[Side], size: int) -> int:
    """Return the bytes of an operand of `size` bytes that the whole output needs."""
    import numpy as np

    elements = 1
    for side in sides:
        extent = 1 if side.axis < 0 else reach.extents[side.axis]
        if extent > MOST_BOXES:
            return 0
        first, last = ranges(side, extent, 1)  # neither ever falls
        elements *= int(np.maximum(last - np.maximum(first, np.append(0, last[:-1])), 0).sum())
    return elements * size // prod(side.size for side in sides)


def _task(
    network: Network, op: Operator, alignment: int, maps_budget: int, weights_budget: int
) -> _Task | None:
    reach = op.reach
    if reach is None or op.workspace or len(op.outputs) != 1 or len(reach.reads) != len(op.inputs):
        return None
    [y] = op.outputs
    sizes = [t.bytes for t in network.tensors]
    shapes = [(sizes[y], reach.output)]
    shapes += [
        (sizes[t], tuple(s.size for s in sides)) for t, sides in zip(op.inputs, reach.reads, strict=True)
    ]
    shapes += [(c.bytes, tuple(s.size for s in c.sides)) for c in reach.weights]
    if any(size % prod(shape) for size, shape in shapes):
        return None
    if sum(c.bytes for c in reach.weights) != op.weight_bytes:
        return None
    if any(network.tensors[network.root[t]].patches is not None for t in (*op.inputs, y)):
        return None
    reads = [
        _Part(sides, sizes[t] // prod(s.size for s in sides), False)
        for t, sides in zip(op.inputs, reach.reads, strict=True)
    ]
    constants = [_Part(c.sides, c.bytes // prod(s.size for s in c.sides), True) for c in reach.weights]
    return _Task(
        reach.extents,
        len(reach.output),
        sizes[y] // prod(reach.output),
        (*reads, *constants),
        alignment,
        maps_budget,
        weights_budget,
        len(reach.sums) if reach.carries else 0,
    )


@lru_cache(maxsize=1024)
def _stairs(task: _Task) -> Ways:
    """Return every shape of boxes that is the best at some budget."""
    orders, complete = _orders(task)
    every = []
    for axis, n in enumerate(task.extents):
        if axis >= len(task.extents) - task.whole:
            every.append([n])
            continue
        sides = {side for part in task.parts for side in part.sides if side.axis == axis}
        along, all_along = sizes_along(n, sides)
        every.append(along)
        complete &= all_along
    sizes = thinned(every, task.outer, MOST_SHAPES // len(orders))
    complete &= sizes == every
    found: list[Boxed] = []
    for slab in _slabs(sizes):
        ways, counted = _slab(task, slab, orders)
        found += _steps(ways)
        complete &= counted
    return Ways(tuple(_steps(found)), complete)


def _slabs(sizes: list[list[int]]) -> Iterator[list[list[int]]]:
    """Yield the same shapes in parts of at most `SLAB`."""
    if prod(map(len, sizes)) <= SLAB:
        yield sizes
        return
    longest = max(range(len(sizes)), key=lambda at: len(sizes[at]))
    half = len(sizes[longest]) // 2
    for part in (sizes[longest][:half], sizes[longest][half:]):
        yield from _slabs([*sizes[:longest], part, *sizes[longest + 1 :]])


def _steps(ways: Iterable[Boxed]) -> Iterator[Boxed]:
    """Yield the ways that move fewer bytes than all that take no more room; ties go to fewer boxes."""
    least: tuple[int, int] | None = None
    for way in sorted(ways, key=_rank):
        now = (way.moved_bytes + way.weight_bytes, way.tiles)
        if least is None or now < least:
            least = now
            yield way


def _rank(way: Boxed) -> tuple[int, int, int]:
    return way.scratch_bytes, way.moved_bytes + way.weight_bytes, way.tiles


def _slab(task: _Task, sizes: list[list[int]], orders: Sequence[tuple[int, ...]]) -> tuple[list[Boxed], bool]:
    """Return the best of every scratchpad over all shapes with these sizes, in these orders, and whether all
    could be counted."""
    import numpy as np

    rank = len(sizes)
    counts = [
        np.array([-(-n // s) for s in axis], np.int64) for n, axis in zip(task.extents, sizes, strict=True)
    ]

    def along(axis: int, values: Sequence[int] | Numbers) -> Numbers:
        """Return values by the size of a box along an axis, shaped to broadcast with those of others."""
        return np.asarray(values, np.int64).reshape([-1 if i == axis else 1 for i in range(rank)])

    def up(values: Numbers) -> Numbers:
        return -(-values // task.alignment) * task.alignment

    one = np.ones([len(axis) for axis in sizes], np.int64)
    tiles, block, roughly = one.copy(), one * task.element, one.astype(np.float64)
    for axis in range(rank):
        tiles = tiles * along(axis, counts[axis])
        roughly = roughly * along(axis, counts[axis])
        if axis < task.outer:
            block = block * along(axis, sizes[axis])
    maps, held = up(block), np.zeros_like(one)
    totals = []
    for part in task.parts:
        most, total = one * part.element, one * part.element
        for side in part.sides:
            if side.axis < 0:
                span = int(spans(side, 1, 1)[0])
                most, total = most * span, total * span
                continue
            n = task.extents[side.axis]
            each = [spans(side, n, size) for size in sizes[side.axis]]
            most = most * along(side.axis, [int(s.max()) for s in each])
            total = total * along(side.axis, [int(s.sum()) for s in each])
        totals.append(total)
        if part.constant:
            held = held + most
        else:
            maps = maps + up(most)
    held = up(held)
    fits = (maps <= task.maps_budget) & (held <= task.weights_budget)
    countable = fits & (roughly <= MOST_MOVED)
    keep, many, room = np.flatnonzero(countable), tiles.ravel(), (maps + held).ravel()
    keep = keep[np.lexsort((many[keep], room[keep]))]
    complete = bool(countable.sum() == fits.sum())
    found: list[Boxed] = []
    for order in orders:
        moved, weight = np.zeros_like(one), np.zeros_like(one)
        for part, total in zip(task.parts, totals, strict=True):
            again = _comes_again(part.sides, counts, order, along)
            comes = np.where(total * again.astype(np.float64) < MOST_MOVED, total * again, MOST_MOVED)
            if part.constant:
                weight = weight + comes
            else:
                moved = moved + comes
        cost = (moved + weight).ravel()[keep]
        complete &= bool((cost < MOST_MOVED).all())
        climb = (cost == np.minimum.accumulate(cost)) & (cost < MOST_MOVED)
        least: tuple[int, int] | None = None
        for place in np.flatnonzero(climb).tolist():
            at = int(keep[place])
            now = int(cost[place]), int(many[at])
            if least is not None and now >= least:
                continue
            least = now
            chosen = np.unravel_index(at, one.shape)
            box = tuple(sizes[axis][int(i)] for axis, i in enumerate(chosen))
            found.append(
                Boxed(
                    Boxes(box, order),
                    int(room[at]),
                    int(many[at]),
                    int(moved[chosen]),
                    int(weight[chosen]),
                )
            )
    return found, complete


def _orders(task: _Task) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the candidate orders of the loops, and whether they are all: the axes of one operand, then the
    additional axes of another, and so on.

    No other order moves less. In any order, take the operand whose last loop comes first: moving the foreign
    loops before it behind it helps that operand, and keeps the loops before the last one of every other;
    continue with the loops behind.
    """
    axes = range(len(task.extents))
    own = list(dict.fromkeys(frozenset(s.axis for s in part.sides if s.axis >= 0) for part in task.parts))
    found: dict[tuple[int, ...], None] = {}
    for chain in islice(permutations(own), MOST_ORDERS):
        every = tuple(dict.fromkeys((*(a for part in chain for a in sorted(part)), *axes)))
        # Sums are complete before a box leaves.
        found[tuple(sorted(every, key=lambda axis: axis >= task.outer))] = None
    return tuple(found), factorial(len(own)) <= MOST_ORDERS


def _comes_again(
    sides: Sequence[Side], counts: Sequence[Numbers], order: Sequence[int], along: Any
) -> Numbers:
    """Return how often all of an operand is fetched, by the size of boxes: once for every turn of the loops
    that are not along it and lie outside of the innermost turning loop that is."""
    import numpy as np

    own = [axis for axis in order if any(side.axis == axis for side in sides)]
    result = np.ones((1,) * len(counts), np.int64)
    after = np.ones((1,) * len(counts), bool)  # no loop along it turns further inside
    for axis in reversed(order):
        turns = along(axis, counts[axis])
        if axis in own:
            after = after & (turns == 1)
        else:
            result = result * np.where(after, 1, turns)
    return result


def _again(sides: Sequence[Side], counts: Sequence[int], order: Sequence[int]) -> int:
    """Return the same for one shape of boxes."""
    own = {side.axis for side in sides}
    result, after = 1, True
    for axis in reversed(order):
        if axis in own:
            after = after and counts[axis] == 1
        elif not after:
            result *= counts[axis]
    return result
