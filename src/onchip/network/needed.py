"""The bytes that cross whatever is fused, tiled or kept: what the network's outputs need, each once.

Backwards from the outputs, operator by operator: a window that steps over rows does not need them, and an
operator that runs in one nest with its reader need not make them. Everything here is a bound from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.network.reaches import reach_for
from onchip.network.repeats import folded, has_repeats

if TYPE_CHECKING:
    from onchip.network.network import Network
    from onchip.network.operators import Constant, Operator, Reach, Side

    Rows = tuple[np.ndarray[Any, np.dtype[np.bool_]], ...]
    """By axis of an operator, or side of a tensor: whether each index is needed."""

__all__ = ["in_sides", "made_indices", "needed_bytes"]

MOST_ROWS = 1 << 24
"""Longer axes are not looked at."""


def needed_bytes(network: Network) -> int:
    """Return the bytes of inputs and constants that the outputs need, and of the outputs, each once.

    What runs again need not. Each of its runs may make another part, so that in a network with repeats a
    tensor counts as the reader needs it that needs most.
    """
    apart = has_repeats(network)
    network = folded(network).network
    walk = _Walk(network, apart=apart)
    found = 0
    for v in reversed(network.order):
        found += walk.back(network.operators[v])
    roots = {network.root[t] for t in network.outputs}
    made = {network.root[t] for op in network.operators for t in op.outputs}
    found += sum(network.tensors[t].bytes for t in roots & made)
    return found + sum(n for t, n in walk.bytes.items() if t not in made)


def made_indices(network: Network, *, apart: bool = False) -> tuple[Rows | None, ...]:
    """Return by operator the indices along its output's axes that it has to make; None where nobody knows.

    With `apart` some operators may run more often than the network says, each time for other readers.
    """
    walk = _Walk(network, apart=apart)
    for v in reversed(network.order):
        walk.back(network.operators[v])
    return tuple(walk.made.get(op.id) for op in network.operators)


class _Walk:
    """Needs of the readers so far, by tensor: the most bytes of one, and the indices of each.

    `made` has what every operator has to make that was looked into. One run makes what all readers of a
    tensor need; with `apart` it may make what one of them needs, and another run the rest.
    """

    def __init__(self, network: Network, *, apart: bool) -> None:
        self.network, self.apart = network, apart
        self.made: dict[int, Rows] = {}
        self.bytes: dict[int, int] = {}
        self.rows: dict[int, list[Rows]] = {}

    def back(self, op: Operator) -> int:
        """Take what an operator needs; return the bytes of its constants."""
        reach = reach_for(self.network, op)
        rows = None if reach is None else self.asked(op, reach)
        if reach is None or rows is None:
            for t in op.inputs:
                self.ask(t, self.network.tensors[t].bytes, None)
            return op.weight_bytes
        self.made[op.id] = rows[: len(reach.output)]
        for t, sides in zip(op.inputs, reach.reads, strict=False):
            self.ask(t, *_part(sides, rows, self.network.tensors[t].bytes))
        if sum(constant.bytes for constant in reach.weights) != op.weight_bytes:
            return op.weight_bytes if all(side.all() for side in rows) else 0
        return sum(_constant(constant, rows) for constant in reach.weights)

    def asked(self, op: Operator, reach: Reach) -> Rows | None:
        """Return the indices along an operator's axes that are needed; None if it is not looked into."""
        network = self.network
        if (
            len(op.outputs) != 1
            or len(reach.reads) != len(op.inputs)
            or max(reach.extents, default=0) > MOST_ROWS
        ):
            return None
        full = tuple(np.ones(size, dtype=np.bool_) for size in reach.extents)
        [made] = op.outputs
        root = network.root[made]
        if root != made or network.output_roots >> root & 1 or not network.readers[root]:
            return full
        if self.bytes.get(root, 0) >= network.tensors[root].bytes:
            return full
        needed = tuple(np.zeros(size, dtype=np.bool_) for size in reach.output)
        wanted = [in_sides(rows, reach.output) for rows in self.rows.get(root, ())]
        if self.apart and wanted:
            needed = max(wanted, key=lambda rows: prod(int(side.sum()) for side in rows))
        else:  # one box along its axes has what all readers need
            for rows in wanted:
                needed = tuple(a | b for a, b in zip(needed, rows, strict=True))
        return (*needed, *full[len(reach.output) :])

    def ask(self, t: int, size: int, rows: Rows | None) -> None:
        """Keep what one more reader needs of a tensor; without `rows` all of it."""
        network = self.network
        root = network.root[t]
        self.bytes[root] = max(size, self.bytes.get(root, 0))
        bytes_, whole = network.tensors[t].bytes, network.tensors[root].bytes
        if bytes_ == whole and rows is not None:
            self.rows.setdefault(root, []).append(rows)
        elif bytes_ < whole <= MOST_ROWS:
            every = np.zeros(whole, dtype=np.bool_)  # by byte
            first = network.offset[t]
            every[first : first + bytes_] = _by_element(rows, bytes_)
            self.rows.setdefault(root, []).append((every,))


def in_sides(rows: Rows, sides: Sequence[int]) -> Rows:
    """Return needed indices along other sides of the same elements; none where that is not known.

    What an operator makes in a nest, or otherwise, is a box along its axes, turn by turn, and so all indices
    of one axis go with all of another.
    """
    if tuple(map(len, rows)) == tuple(sides):
        return rows
    if max(prod(map(len, rows)), prod(sides)) > MOST_ROWS or prod(map(len, rows)) % prod(sides):
        return tuple(np.zeros(size, dtype=np.bool_) for size in sides)
    every = _by_element(rows, prod(map(len, rows))).reshape(*sides, -1)
    axes = range(len(sides))
    return tuple(
        np.asarray(every.any(axis=tuple(i for i in (*axes, len(sides)) if i != axis))) for axis in axes
    )


def _by_element(rows: Rows | None, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which of `count` bytes or elements in memory some indices are; all if they are not stated."""
    every = np.ones(1, dtype=np.bool_)
    for side in rows or ():
        every = np.logical_and.outer(every, side).reshape(-1)
    return np.repeat(every, count // len(every))


def _part(sides: Sequence[Side], rows: Rows, size: int) -> tuple[int, Rows]:
    """Return the bytes of an operand of `size` bytes that some indices need, and which along its sides."""
    found = tuple(_along(side, rows) for side in sides)
    count = prod(side.size for side in sides)
    needed = prod(int(side.sum()) for side in found)
    return size * needed // count if count else 0, found


def _constant(constant: Constant, rows: Rows) -> int:
    if not constant.sides:
        return constant.bytes if all(side.any() for side in rows) else 0
    return _part(constant.sides, rows, constant.bytes)[0]


def _along(side: Side, rows: Rows) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which indices of a side are needed."""
    at = np.zeros(1, dtype=np.int64)
    if side.axis >= 0:
        at = np.flatnonzero(rows[side.axis])
    elif not all(axis.any() for axis in rows):
        at = at[:0]
    first = (at * side.stride - side.before) // side.per
    edges = np.zeros(side.size + 1, dtype=np.int64)
    np.add.at(edges, np.clip(first, 0, side.size), 1)
    np.add.at(edges, np.clip(first + side.span, 0, side.size), -1)
    found: np.ndarray[Any, np.dtype[np.bool_]] = np.cumsum(edges[:-1]) > 0
    return found
