"""Addresses for a chain of groups: each output over or beside its input, scratch where neither lies.

A group that runs forward writes upwards, one in reverse downwards, and each at any legal distance. The
possible addresses of an output follow from those of its input: sets of integers, kept as intervals and
carried from group to group. This decides exactly whether a chain has a placement in so many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from onchip.microcontroller.segments.distances import Distances, Interval, merged

__all__ = ["Link", "Placed", "Traversal", "Way", "place"]

Traversal = Literal["forward", "reverse"]


ALIGNMENT = 4
"""The alignment of scratches: sums and workspaces in them are read by words."""


@dataclass(frozen=True, slots=True)
class Way:
    """A group run in one direction: the bytes of its scratch, and the legal distances of input and output.

    Distances are differences of addresses, input minus output, in either direction.
    """

    scratch: int
    distances: Distances


@dataclass(frozen=True, slots=True)
class Link:
    """A group to place: bytes of its input (0: it is fetched) and output, and the needs of each direction.

    A direction in which it must not run is None: in reverse where it must begin with the first row.
    """

    input: int
    output: int
    forward: Way | None
    reverse: Way | None

    @property
    def ways(self) -> tuple[tuple[Traversal, Way], ...]:
        both: tuple[tuple[Traversal, Way | None], ...] = ("forward", self.forward), ("reverse", self.reverse)
        return tuple((traversal, way) for traversal, way in both if way is not None)

    @property
    def needs(self) -> int:
        """The fewest bytes in which the group can run."""
        return min(
            way.scratch + (way.distances.span(self.input, self.output) if self.input else self.output)
            for _, way in self.ways
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """Addresses of the first input and of every link's output and scratch, and each link's direction."""

    bytes: int
    input: int
    outputs: tuple[int, ...]
    scratches: tuple[int, ...]
    traversals: tuple[Traversal, ...]


def place(links: Sequence[Link]) -> Placed:
    """Return a placement of these links in the fewest bytes; the greatest `needs` bounds any from below."""
    low = max(link.needs for link in links)
    found = _within(links, low)
    if found is not None:
        return found
    high = 2 * max(link.input + link.output + way.scratch for link in links for _, way in link.ways)
    best = _within(links, high)
    while best is None:
        high *= 2
        best = _within(links, high)
    while high - low > 1:
        middle = (low + high) // 2
        found = _within(links, middle)
        low, high, best = (low, middle, found) if found is not None else (middle, high, best)
    assert best is not None
    return best


@dataclass(frozen=True, slots=True)
class _Move:
    """A link run in one direction with its scratch at one side: ranges of input and output, distances."""

    traversal: Traversal
    input: Interval
    output: Interval
    distances: tuple[Interval, ...]
    scratch: int
    """The scratch's address; -1 for the lowest aligned one behind input and output, -2 between them."""


def _moves(link: Link, pool: int) -> Iterator[_Move]:
    """Yield every way of running a link in a pool; a scratch lies below both, above both or between them."""
    given, made = (0, pool - link.input), (0, pool - link.output)
    for traversal, way in link.ways:
        legal = tuple(way.distances.legal(pool)) if link.input else ((-pool, pool),)
        size = way.scratch
        if not size:
            yield _Move(traversal, given, made, legal, 0)
            continue
        yield _Move(traversal, (size, given[1]), (size, made[1]), legal, 0)
        top = (pool - size) // ALIGNMENT * ALIGNMENT
        yield _Move(traversal, (0, top - link.input), (0, top - link.output), legal, -1)
        if link.input:
            yield _Move(traversal, given, made, (), -2)


def _outputs(link: Link, pool: int, inputs: Sequence[Interval]) -> list[Interval]:
    """Return the possible addresses of a link's output when its input can have these."""
    found: list[Interval] = []
    for move in _moves(link, pool):
        if not link.input:
            found.append(move.output)
            continue
        starts = [part for part in (_both(one, move.input) for one in inputs) if part[0] <= part[1]]
        if move.scratch == -2 and starts:
            size = _size(link, move.traversal)
            behind = _up(starts[0][0] + link.input) + size
            before = _down(starts[-1][1] - size) - link.output
            found += [(behind, move.output[1]), (0, min(before, move.output[1]))]
            continue
        for low, high in starts:
            for nearest, farthest in move.distances:
                found.append(_both((low - farthest, high - nearest), move.output))
    return merged(found)


def _within(links: Sequence[Link], pool: int) -> Placed | None:
    """Return a placement in `pool` bytes, or None if there is none."""
    first = links[0].input
    if first > pool:
        return None
    reached: list[list[Interval]] = [[(0, pool - first)]]
    for link in links:
        reached.append(_outputs(link, pool, reached[-1]))
        if not reached[-1]:
            return None
    at = reached[-1][0][0]
    outputs: list[int] = []
    scratches: list[int] = []
    traversals: list[Traversal] = []
    for link, inputs in zip(reversed(links), reversed(reached[:-1]), strict=True):
        source, scratch, traversal = _before(link, pool, inputs, at)
        outputs.append(at)
        scratches.append(scratch)
        traversals.append(traversal)
        at = source
    return Placed(pool, at, tuple(reversed(outputs)), tuple(reversed(scratches)), tuple(reversed(traversals)))


def _before(link: Link, pool: int, inputs: Sequence[Interval], at: int) -> tuple[int, int, Traversal]:
    """Return an address of a link's input, one of `inputs`, and of its scratch, for its output at `at`."""
    for move in _moves(link, pool):
        if not move.output[0] <= at <= move.output[1]:
            continue
        if not link.input:
            scratch = move.scratch if move.scratch >= 0 else _up(at + link.output)
            return 0, scratch, move.traversal
        starts = [part for part in (_both(one, move.input) for one in inputs) if part[0] <= part[1]]
        if move.scratch == -2:
            size = _size(link, move.traversal)
            if starts and _up(starts[0][0] + link.input) + size <= at:
                return starts[0][0], _up(starts[0][0] + link.input), move.traversal
            if starts and _up(at + link.output) + size <= starts[-1][1]:
                return starts[-1][1], _up(at + link.output), move.traversal
            continue
        for nearest, farthest in move.distances:
            for part in starts:
                low, high = _both(part, (at + nearest, at + farthest))
                if low <= high:
                    end = max(low + link.input, at + link.output)
                    return low, move.scratch if move.scratch >= 0 else _up(end), move.traversal
    raise AssertionError("an address that was reached comes from one that was")


def _size(link: Link, traversal: Traversal) -> int:
    return dict(link.ways)[traversal].scratch


def _both(one: Interval, other: Interval) -> Interval:
    return max(one[0], other[0]), min(one[1], other[1])


def _up(address: int) -> int:
    return -(-address // ALIGNMENT) * ALIGNMENT


def _down(address: int) -> int:
    return address // ALIGNMENT * ALIGNMENT
