"""Addresses step by step, moving tensors if the next one finds no room: always an answer, soon a good one.

A beam search over time. Before each step its new rectangles get addresses; if no free range is long enough,
the tensors in the cheapest range that can be cleared are evicted (after their last use) and come back
elsewhere for their next. A step whose rectangles fit at all can always be laid out again, so the search never
fails for want of room, and its costs are local: a few moves for each place where memory is fragmented.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from onchip.planners.limits import NO_LIMITS, Limits
from onchip.planners.placement.rectangles import Piece, Rectangle, Relocation, relocation_bytes

__all__ = ["sweep"]

WIDTHS = (1, 4, 8, 32)
"""States kept a step, one whole search after the other."""

RESTARTS, RESTART_WIDTH = 300, 8
"""The searches after these, each from some step of the best layout so far, and their width."""

PLACES, CLEARINGS, CHILDREN = 4, 3, 24
"""The most attempts for one rectangle: free places, or else ranges to clear; and children of a state."""

DEAD_ENDS = 4
"""Every rectangle of a step is placed so many times as often as its children need before the step is laid out
anew: where few of its rectangles may move, the ways that lead nowhere are too many to try."""

Live = tuple[tuple[int, int, int], ...]
"""(address, first address after it, rectangle) of resident rectangles, ascending."""


@dataclass(frozen=True, slots=True)
class _State:
    """A layout before a step, the rectangles that are away and until when, and its history."""

    cost: int
    live: Live
    away: frozenset[tuple[int, int]]
    written: frozenset[int]
    before: _State | None
    placed: tuple[tuple[int, int], ...] = ()
    moved: tuple[Relocation, ...] = ()


def sweep(
    rectangles: Sequence[Rectangle], budget: int, *, alignment: int = 1, limits: Limits
) -> tuple[tuple[Piece, ...], tuple[Relocation, ...]] | None:
    """Return pieces with addresses within `budget` bytes, and the relocations that cut them.

    Every step's rectangles must fit within the budget. The limits end the search for something cheaper; the
    first, quick pass is always finished. None only if something that may not move, or is fixed to an address,
    is in the way.
    """
    search = _Sweep(rectangles, budget, alignment, Random(limits.seed))
    best = search.run(WIDTHS[0], search.empty)
    if best is None:
        return None
    for attempt in range(len(WIDTHS) - 1 + RESTARTS):
        if not best.cost or limits.over():
            break
        if attempt < len(WIDTHS) - 1:
            found = search.run(WIDTHS[attempt + 1], search.empty, best.cost - 1, limits)
        else:
            chain = _chain(best)
            start = search.rng.randrange(len(search.steps))
            # An equally cheap but different layout is welcome too: the next restart may get further from it.
            found = search.run(RESTART_WIDTH, chain[start], best.cost, limits, start)
        best = found or best
    return _pieces(rectangles, best)


def _chain(state: _State) -> list[_State]:
    """Return the states before each step and the last one."""
    result = [state]
    while (before := result[-1].before) is not None:
        result.append(before)
    return result[::-1]


class _Sweep:
    def __init__(self, rectangles: Sequence[Rectangle], budget: int, alignment: int, rng: Random) -> None:
        self.empty = _State(0, (), frozenset(), frozenset(), None)
        self.rectangles, self.budget, self.rng = rectangles, budget // alignment * alignment, rng
        self.size = [-(-r.size // alignment) * alignment for r in rectangles]
        self.uses = [r.uses or tuple(range(r.start, r.end)) for r in rectangles]
        self.begins: dict[int, list[int]] = {}
        for r, rectangle in enumerate(rectangles):
            self.begins.setdefault(rectangle.start, []).append(r)
        self.fixed = [
            (r.offset, r.offset + self.size[i], i) for i, r in enumerate(rectangles) if r.offset is not None
        ]
        self.steps = sorted({use for uses in self.uses for use in uses})
        self.tries = 0

    def run(
        self,
        width: int,
        begin: _State,
        most: int | None = None,
        limits: Limits = NO_LIMITS,
        start: int = 0,
    ) -> _State | None:
        """Return the cheapest end state of a beam of that width, of those that cost at most `most`.

        It grows from the layout `begin` before the step with index `start`.
        """
        beam = [begin]
        for step in self.steps[start:]:
            children: dict[tuple[Live, frozenset[tuple[int, int]], frozenset[int]], _State] = {}
            for state in beam:
                if limits.over():
                    return None
                for child in self._children(state, step):
                    if most is not None and child.cost > most:
                        continue
                    key = child.live, child.away, child.written
                    if key not in children or child.cost < children[key].cost:
                        children[key] = child
            ranked = sorted(
                (child.cost, self._untidiness(child, step) * self.rng.uniform(1.0, 4.0), i, child)
                for i, child in enumerate(children.values())
            )
            beam = [child for _, _, _, child in ranked[:width]]
        return beam[0] if beam else None

    def _untidiness(self, state: _State, step: int) -> float:
        """Return how much the layout obstructs others: long-lived rectangles are best at an end of memory."""
        return sum(
            min(at, self.budget - end) * (self.rectangles[r].end - step) for at, end, r in state.live
        ) + self.budget * len(state.live)

    def _children(self, state: _State, step: int) -> Iterator[_State]:
        live = tuple(x for x in state.live if self.rectangles[x[2]].end > step)
        back = [r for r, until in state.away if until == step]
        todo = sorted([*self.begins.get(step, ()), *back], key=self._rank)
        away = frozenset(x for x in state.away if x[1] != step)
        start = _State(state.cost, live, away, state.written, state)
        count = 0
        self.tries = DEAD_ENDS * CHILDREN * (len(todo) + 1)
        for child in self._filled(start, todo, step):
            yield child
            count += 1
            if count == CHILDREN:
                return
        if not count:
            yield from self._laid_out_anew(start, todo, step)

    def _filled(self, state: _State, todo: list[int], step: int) -> Iterator[_State]:
        """Yield the ways to place `todo`, the largest first."""
        if not todo:
            yield state
            return
        self.tries -= 1
        if self.tries < 0:
            return
        r, rest = todo[0], todo[1:]
        if free := self._free(state.live, r):
            self.rng.shuffle(free)
            for at in free[:PLACES]:
                yield from self._filled(self._put(state, r, at), rest, step)
            return
        for _, at, victims in self._clearings(state, r, step)[:CLEARINGS]:
            cleared = self._evicted(state, victims, step)
            again = [v for v in victims if self._gap(v, step).before == step]
            left = sorted([*rest, *again], key=self._rank)
            yield from self._filled(self._put(cleared, r, at), left, step)

    def _laid_out_anew(self, state: _State, todo: list[int], step: int) -> Iterator[_State]:
        """Yield the step with everything evicted that is not needed, and the rest stacked."""
        victims = [r for _, _, r in state.live if self.rectangles[r].movable]
        state = self._evicted(state, victims, step)
        again = [r for r in victims if self._gap(r, step).before == step]
        for r in sorted([*todo, *again], key=self._rank):
            free = self._free(state.live, r)
            if not free:
                return
            state = self._put(state, r, min(free))
        yield state

    def _rank(self, r: int) -> tuple[bool, int, int]:
        """Return the rank of rectangle `r` in a step's order: fixed ones first, then the largest."""
        return self.rectangles[r].offset is None, -self.size[r], r

    def _reserved(self, r: int) -> list[tuple[int, int, int]]:
        """Return ranges of fixed rectangles that live at some time together with rectangle `r`."""
        start, end = self.rectangles[r].start, self.rectangles[r].end
        others = ((x, self.rectangles[x[2]]) for x in self.fixed if x[2] != r)
        return [x for x, other in others if other.start < end and start < other.end]

    def _free(self, live: Live, r: int) -> list[int]:
        """Return addresses for rectangle `r` at either end of every free range that is long enough.

        A range of a fixed future rectangle is free only if there is no other place and `r` can be moved then.
        """
        size, fixed = self.size[r], self.rectangles[r].offset
        if fixed is not None:
            return [] if any(at < fixed + size and fixed < after for at, after, _ in live) else [fixed]
        reserved = self._reserved(r) if self.fixed else []
        found = self._between((*live, *reserved), size)
        if not found and reserved and self.rectangles[r].movable:
            found = self._between(live, size)
        return found

    def _between(self, taken: Sequence[tuple[int, int, int]], size: int) -> list[int]:
        found, end = [], 0
        for at, after, _ in (*sorted(taken), (self.budget, self.budget, -1)):
            if at - end >= size:
                found.append(end)
                if at - end > size:
                    found.append(at - size)
            end = max(end, after)
        return found

    def _clearings(self, state: _State, r: int, step: int) -> list[tuple[int, int, tuple[int, ...]]]:
        """Return (cost, address, evicted) of every range to clear for rectangle `r`, cheapest first."""
        size, place = self.size[r], self.rectangles[r].offset
        settled = {r for r, _ in state.placed}
        reserved = [] if self.rectangles[r].movable or not self.fixed else self._reserved(r)
        starts = {0, self.budget - size} if place is None else {place}
        if place is None:
            for at, after, _ in (*state.live, *reserved):
                starts |= {after, at - size}
        result = []
        for at in starts:
            if not 0 <= at <= self.budget - size:
                continue
            if any(low < at + size and at < high for low, high, _ in reserved):
                continue
            victims = tuple(r for low, high, r in state.live if low < at + size and at < high)
            if all(r not in settled and self.rectangles[r].movable for r in victims):
                result.append((sum(self._price(r, step, state.written) for r in victims), at, victims))
        # Break ties at random: another pass then tries another.
        return [x for *_, x in sorted((cost, self.rng.random(), (cost, at, v)) for cost, at, v in result)]

    def _price(self, r: int, step: int, written: frozenset[int]) -> int:
        item, copied = self._holder(r, step)
        return self.rectangles[r].transfer * (1 if copied or item in written else 2)

    def _holder(self, r: int, step: int) -> tuple[int, bool]:
        """Return the tensor that rectangle `r` loses when moved before `step`, and whether it has a copy."""
        rectangle = self.rectangles[r]
        return (
            rectangle.holder(self._gap(r, step).after)
            if rectangle.heirs
            else (rectangle.item, rectangle.copied)
        )

    def _gap(self, r: int, step: int) -> Relocation:
        """Return the move that takes rectangle `r`, there since before `step`, away."""
        uses = self.uses[r]
        i = bisect_left(uses, step)
        return Relocation(r, uses[i - 1], uses[i])

    def _put(self, state: _State, r: int, at: int) -> _State:
        live = tuple(sorted((*state.live, (at, at + self.size[r], r))))
        placed = (*state.placed, (r, at))
        return _State(state.cost, live, state.away, state.written, state.before, placed, state.moved)

    def _evicted(self, state: _State, victims: Sequence[int], step: int) -> _State:
        cost, written, moved, away = state.cost, state.written, state.moved, state.away
        for r in victims:
            cost += self._price(r, step, written)
            written |= {self._holder(r, step)[0]}
            gap = self._gap(r, step)
            moved = (*moved, gap)
            if gap.before > step:
                away |= {(r, gap.before)}
        live = tuple(x for x in state.live if x[2] not in victims)
        return _State(cost, live, away, written, state.before, state.placed, moved)


def _pieces(
    rectangles: Sequence[Rectangle], state: _State
) -> tuple[tuple[Piece, ...], tuple[Relocation, ...]]:
    """Return the pieces and relocations of a chain of states."""
    addresses: dict[int, list[int]] = {}
    moves: dict[int, list[Relocation]] = {}
    for layout in _chain(state):
        for r, address in layout.placed:
            addresses.setdefault(r, []).append(address)
        for move in layout.moved:
            moves.setdefault(move.rectangle, []).append(move)
    pieces = []
    for r, rectangle in enumerate(rectangles):
        cuts = sorted(moves.get(r, ()), key=lambda m: m.after)
        begins = [rectangle.start, *(m.before for m in cuts)]
        ends = [*(m.after + 1 for m in cuts), rectangle.end]
        pieces += [Piece(r, b, e, at) for b, e, at in zip(begins, ends, addresses[r], strict=True)]
    relocations = tuple(
        sorted((m for row in moves.values() for m in row), key=lambda m: (m.rectangle, m.after))
    )
    assert relocation_bytes(rectangles, relocations) == state.cost
    return tuple(pieces), relocations
