"""Bytes against work: graphs with more and more made twice, of which none is worse in both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onchip.microcontroller.rows.graph import RowGraph
from onchip.microcontroller.rows.law import lives, profile
from onchip.microcontroller.rows.pieces import Piece, Pieces, copied, stripped, whole
from onchip.microcontroller.rows.search import Order, Rules, search
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["RowPoint", "front", "strips_around"]

QUICK = Rules(cuts=False)

MOVES = 4
"""States that the search opens for each graph that is tried."""

MOST_WORK = 1.5
"""Work of the graphs tried, as a multiple of the work without anything made anew."""

STRIPS = 2, 3, 4
"""The numbers of strips that are tried."""

PARTS = 2, 3, 4
"""The numbers of strips of which some are copied."""

SPAN = 7
"""Operators of a region, at most, before the one that needs the most, and behind it."""

DEPTHS = 1, 2, 3, 5, 0
"""The operators one behind the other that a copy makes anew; 0: all, back to the input."""

OPENED = 6
"""Points of a round that the next one goes on from."""

WIDE_ROUNDS = 6
"""Rounds that go on from what was found, also where it is beaten since."""

OFTEN = 100
"""Graphs that are tried between two reports of progress."""

MOST_STEPS = 8_000_000
"""Steps of the graphs that are tried, all together."""


@dataclass(frozen=True, slots=True)
class RowPoint:
    """A graph in pieces, an order of its rows with rows beside one another, and its work as a multiple."""

    pieces: Pieces
    order: Order
    work: float

    @property
    def bytes(self) -> int:
        return self.order.peak


def front(
    graph: RowGraph,
    *,
    most_work: float = MOST_WORK,
    rounds: int | None = None,
    most_steps: int = MOST_STEPS,
    usable: Callable[[Pieces], bool] = lambda _: True,
    limits: Limits = NO_LIMITS,
) -> tuple[RowPoint, ...]:
    """Return points of which none is worse in bytes and work; the first ones make nothing twice.

    At the peak of every point, what lies in memory for a later reader is copied for that reader, in full or
    some strips of it, and regions around the step are cut into strips. A few of those that beat what was
    known when they were found are gone on from, also where another one beats them since: what is made anew
    opens new regions. After some rounds of that it goes on from points that nothing beats, and ends when it
    has gone on from all of them; or after so many `rounds` in all; or when the graphs tried have `most_steps`
    steps together, on every machine the same; or by the limits. Graphs that are not `usable` are left out. It
    tries these graphs and no others, so the bytes of its points bound nothing from below.
    """
    # Single rows order the first graph better than many pieces do: changes of it would all seem worse.
    quick, best = (
        RowPoint(
            whole(graph),
            search(graph, share=False, rules=QUICK, most_states=0, most_moves=moves, limits=limits),
            1.0,
        )
        for moves in (0, MOVES)
    )
    found = _changed(quick, most_work, rounds, most_steps, usable, limits)
    return tuple(_undominated([best, *found]))


def _changed(
    first: RowPoint,
    most_work: float,
    rounds: int | None,
    most_steps: int,
    usable: Callable[[Pieces], bool],
    limits: Limits,
) -> list[RowPoint]:
    """Return the undominated points that changes of a graph lead to, itself among them."""
    own = max(first.pieces.work, 1)
    known = [first]
    open_ = [first]
    seen = {first.pieces.pieces}
    opened: set[tuple[Piece, ...]] = set()
    tried = steps = done = 0
    while open_ and done != rounds:
        found: list[RowPoint] = []
        for point in open_:
            opened.add(point.pieces.pieces)
            for family in _families(point):
                for candidate in family:
                    if candidate.pieces in seen:
                        continue
                    seen.add(candidate.pieces)
                    work = candidate.work / own
                    if work > most_work or not usable(candidate):
                        continue
                    tried, steps = tried + 1, steps + candidate.graph.steps
                    if steps > most_steps or limits.over():
                        return known
                    if tried % OFTEN == 0:
                        limits.say(f"{tried:,} graphs of rows tried; fewest bytes {known[-1].bytes:,}")
                    # Columns that nobody reads are left out of pieces, so that the work may also be less.
                    below = min((p.bytes for p in known if p.work <= work), default=0)
                    order = search(
                        candidate.graph,
                        share=False,
                        rules=QUICK,
                        most_states=0,
                        most_moves=MOVES,
                        below=below,
                        limits=limits,
                    )
                    new = RowPoint(candidate, order, work)
                    if below and new.bytes >= below:
                        break
                    known = _undominated([*known, new])
                    found.append(new)
        done += 1
        waiting = [point for point in known if point.pieces.pieces not in opened]
        open_ = _spread(found if found and done < WIDE_ROUNDS else waiting)
    return known


def _undominated(points: list[RowPoint]) -> list[RowPoint]:
    kept: list[RowPoint] = []
    for new in sorted(points, key=lambda p: (p.work, p.bytes)):
        if not kept or new.bytes < kept[-1].bytes:
            kept.append(new)
    return kept


def _spread(points: list[RowPoint]) -> list[RowPoint]:
    """Return a few points, evenly from the most work to the least.

    The first ones lead to the fewest bytes, which a search that is cut short should have.
    """
    points = sorted(points, key=lambda p: -p.work)
    if len(points) <= OPENED:
        return points
    return [points[i * (len(points) - 1) // (OPENED - 1)] for i in range(OPENED)]


def _families(point: RowPoint) -> Iterator[Iterator[Pieces]]:
    """Yield graphs in which something at the peak is made anew or cut.

    Those of a family are tried until one is no better than what is known.
    """
    pieces, schedule = point.pieces, point.order.schedule
    bytes_ = profile(pieces.graph, schedule, share=False)
    peak = max(bytes_.index(max(bytes_)) - 1, 0)
    alive = {life.operator for life in lives(pieces.graph, schedule) if life.made < peak <= life.read}
    last = {n: time for time, n in enumerate(schedule)}
    late = {
        made: [r for r in pieces.readers[made] if last[r] > peak and r != schedule[peak]] for made in alive
    }
    for made in sorted(alive):
        for reader in late[made]:
            for who, what in sorted(set(_shared_above(pieces, reader, made))):
                yield from (iter((found,)) for found in _copies(pieces, who, what))
        yield from (iter((found,)) for found in _parts(pieces, made, late[made]))
    yield from strips_around(pieces, schedule[peak])


def _copies(pieces: Pieces, reader: int, made: int) -> Iterator[Pieces]:
    """Yield the graph with a map made anew for a reader, back to the input or less far."""
    for depth in DEPTHS:
        found = copied(pieces, reader, made, _behind(pieces, made, depth))
        if found is not None:
            yield found


def _behind(pieces: Pieces, made: int, depth: int) -> frozenset[int]:
    """Return the pieces so many operators behind one; none for a depth of 0."""
    if not depth:
        return frozenset()
    near, edge = {made}, {made}
    for _ in range(depth - 1):
        edge = {m for n in edge for each in pieces.pieces[n].reads for m in each if m >= 0} - near
        near |= edge
    return frozenset(range(made)) - near


def _parts(pieces: Pieces, made: int, late: list[int]) -> Iterator[Pieces]:
    """Yield the graph with a map in strips, some of which are made anew for its late readers."""
    if not late or set(pieces.readers[made]) - set(late):
        return
    for count in PARTS:
        cut = stripped(pieces, {made}, count)
        if cut is None:
            continue
        op = pieces.pieces[made].op
        for anew in range(1, count):
            found: Pieces | None = cut
            for _ in range(anew):
                found = None if found is None else _one_anew(found, op)
            if found is not None:
                yield found


def _one_anew(pieces: Pieces, op: int) -> Pieces | None:
    """Return the graph with the last strip of an operator that is made once made anew for its readers.

    Its operands are copied; the strip itself stays one, since all of its readers are late.
    """
    mine = [n for n, piece in enumerate(pieces.pieces) if piece.op == op and not piece.anew]
    for n in reversed(mine):
        if len(mine) == 1 or not pieces.readers[n]:
            return None
        found: Pieces | None = pieces
        for what in {m for each in pieces.pieces[n].reads for m in each if m >= 0}:
            found = copied(pieces, n, what)
        if found is not None:
            changed = [
                m for m, piece in enumerate(found.pieces)
                if piece.op == op and piece.columns == pieces.pieces[n].columns and not piece.anew
            ]  # fmt: skip
            if len(changed) == 1:
                return found.marked(changed[0])
        return None
    return None


def strips_around(pieces: Pieces, at: int) -> Iterator[Iterator[Pieces]]:
    """Yield the graph with a region around a piece in 2 strips, in 3, and so on: a family for each region.

    A region is what hangs together with the piece, of the operators from one before it to one behind it.
    """
    op, size = pieces.pieces[at].op, len(pieces.base.operators)
    seen: set[frozenset[int]] = set()
    for first in range(op, max(op - SPAN, 0) - 1, -1):
        if not pieces.base.operators[first].columns:
            break
        for end in range(op, min(op + SPAN, size)):
            if not pieces.base.operators[end].columns:
                break
            region = _region(pieces, at, first, end)
            if region not in seen:
                seen.add(region)
                yield _cut(pieces, region)


def _cut(pieces: Pieces, region: frozenset[int]) -> Iterator[Pieces]:
    for count in STRIPS:
        found = stripped(pieces, region, count)
        if found is None:
            break
        yield found


def _region(pieces: Pieces, at: int, first: int, end: int) -> frozenset[int]:
    """Return the uncut pieces of these operators that hang together with one of them; copies with copies."""
    found, edge = {at}, [at]
    while edge:
        n = edge.pop()
        for m in (*(m for each in pieces.pieces[n].reads for m in each if m >= 0), *pieces.readers[n]):
            piece = pieces.pieces[m]
            if (
                m not in found
                and first <= piece.op <= end
                and piece.anew == pieces.pieces[at].anew
                and pieces.is_full(m)
            ):
                found.add(m)
                edge.append(m)
    return frozenset(found)


def _shared_above(pieces: Pieces, reader: int, made: int) -> Iterator[tuple[int, int]]:
    """Yield the readers and maps whose copies make a map for `reader` alone.

    A map that nobody else reads is made anew from the next one above it that others read, too.
    """
    piece = pieces.pieces[made]
    if pieces.base.operators[piece.op].held:
        return
    if pieces.graph.operators[made].kept or len(pieces.readers[made]) > 1:
        yield reader, made
        return
    for m in {m for each in piece.reads for m in each if m >= 0}:
        yield from _shared_above(pieces, made, m)
