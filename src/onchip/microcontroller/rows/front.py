"""Bytes against work: graphs with more and more maps made anew, of which none is worse in both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onchip.microcontroller.rows.anew import Copied, copied
from onchip.microcontroller.rows.graph import RowGraph
from onchip.microcontroller.rows.law import lives, profile
from onchip.microcontroller.rows.search import Order, search
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["RowPoint", "front"]

STATES = 20_000
"""States of the complete search of each graph that is tried."""

MOST_WORK = 1.5
"""Work of the graphs tried, as a multiple of the work without anything made anew."""


@dataclass(frozen=True, slots=True)
class RowPoint:
    """A graph, an order of its rows with rows beside one another, and its work as a multiple."""

    copied: Copied
    order: Order
    work: float

    @property
    def bytes(self) -> int:
        return self.order.peak


def front(
    graph: RowGraph, *, most_work: float = MOST_WORK, rounds: int = 6, limits: Limits = NO_LIMITS
) -> tuple[RowPoint, ...]:
    """Return points of which none is worse in bytes and work; the first has nothing made anew.

    From every point, each map that lies in memory at the peak is made anew for each of its readers to come,
    from the next map above that is read twice, where nobody else reads it;
    what no known point beats is gone on from. It tries these graphs and no others, so the bytes of its points
    bound nothing from below.
    """
    own = max(graph.work, 1)
    first = RowPoint(Copied.nothing(graph), search(graph, share=False, limits=limits), 1.0)
    known = [first]
    open_ = [first]
    seen = {_key(first.copied)}
    for _ in range(rounds):
        found: list[RowPoint] = []
        for point in open_:
            for candidate in _candidates(point):
                work = candidate.graph.work / own
                if work > most_work or _key(candidate) in seen:
                    continue
                if limits.over():
                    return tuple(known)
                seen.add(_key(candidate))
                order = search(candidate.graph, share=False, most_states=STATES, limits=limits)
                new = RowPoint(candidate, order, work)
                if not any(p.bytes <= new.bytes and p.work <= new.work for p in known):
                    known = _undominated([*known, new])
                    found.append(new)
        open_ = [point for point in found if point in known]
        if not open_:
            break
    return tuple(known)


def _undominated(points: list[RowPoint]) -> list[RowPoint]:
    kept: list[RowPoint] = []
    for new in sorted(points, key=lambda p: (p.work, p.bytes)):
        if not kept or new.bytes < kept[-1].bytes:
            kept.append(new)
    return kept


def _key(given: Copied) -> tuple[tuple[int, tuple[int, ...]], ...]:
    ops = given.graph.operators
    return tuple(
        (old, tuple(o.maker for o in op.operands)) for old, op in zip(given.origin, ops, strict=True)
    )


def _candidates(point: RowPoint) -> Iterator[Copied]:
    """Yield the graph with each map of the peak made anew for each reader that has still to read it."""
    graph = point.copied.graph
    bytes_ = profile(graph, point.order.schedule, share=False)
    peak = bytes_.index(max(bytes_)) - 1
    alive = {life.operator for life in lives(graph, point.order.schedule) if life.made < peak <= life.read}
    last = {i: time for time, i in enumerate(point.order.schedule)}
    pairs = {
        pair
        for maker in alive
        for reader in {i for i, _ in graph.readers[maker] if i != maker}
        if last[reader] > peak
        for pair in _shared_above(graph, reader, maker)
    }
    for reader, maker in sorted(pairs):
        yield copied(point.copied, reader, maker)


def _shared_above(graph: RowGraph, reader: int, maker: int) -> Iterator[tuple[int, int]]:
    """Yield the readers and maps whose copies make the map of `maker` for `reader` alone.

    A map that nobody else reads is made anew from the next one above it that others read, too.
    """
    op = graph.operators[maker]
    if op.held:
        return
    if op.kept or len({i for i, _ in graph.readers[maker] if i != maker}) > 1:
        yield reader, maker
        return
    for operand in op.operands:
        if operand.maker != maker:
            yield from _shared_above(graph, maker, operand.maker)
