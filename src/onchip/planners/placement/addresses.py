"""Stage B of placement: addresses for the residencies of a fixed schedule.

The schedule fixes when every tensor (and every operator's scratch) is resident; here each residency becomes a
rectangle, time across and bytes up, and rectangles that live together must not overlap. If they cannot be
placed, some tensor must move: it is evicted after one use and reloaded, elsewhere, before the next.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from onchip.planners.limits import Limits
from onchip.planners.packing import ENGINES, Buffer, Engine, Packing, irreducible, max_load, pack
from onchip.planners.placement.rectangles import Piece, Rectangle, Relocation, relocation_bytes
from onchip.planners.placement.sweep import sweep

__all__ = ["Piece", "Placement", "Rectangle", "Relocation", "place", "relocation_bytes"]


@dataclass(frozen=True, slots=True)
class Placement:
    """Addresses for every rectangle, whole (`packed`) or moved (`relocated`); or none (`unknown`).

    `relocation_bytes` is the cost of moving, `lower_bound` the least cost for these residencies (equal:
    proved least). `conflict` are rectangles that do not fit together unmoved, a minimal set as far as limits
    allowed; empty if all fit, or if nothing was proved.
    """

    status: Literal["packed", "relocated", "unknown"]
    pieces: tuple[Piece, ...]
    relocations: tuple[Relocation, ...]
    relocation_bytes: int
    lower_bound: int
    conflict: tuple[int, ...]
    seconds: float


Moves = frozenset[Relocation]

PATIENCE = 60.0
"""Seconds for one schedule if the caller sets no limit: a hard one may never be decided, and the caller has
other schedules to try."""


def place(
    rectangles: Sequence[Rectangle],
    budget: int,
    *,
    alignment: int = 1,
    time_limit: float | None = None,
    relocate: bool = True,
    effort: int = 200,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> Placement:
    """Return addresses within `budget` bytes, at the least relocation found.

    A set of relocations that does not pack leaves rectangles that do not fit together, and one of those must
    move. So sets are tried cheapest first, each failed one extended by every useful move of its conflict
    (combinatorial Benders cuts, searched best first): the first set that packs is a cheapest one, and the
    cheapest set still open is a lower bound. After `effort` sets, half the time limit (seconds, `PATIENCE` if
    None), or where packing itself is undecided, the answer is the result of a sweep over time
    (`onchip.planners.placement.sweep`), without the moves that the packer finds needless.
    Raises `ValueError` if one step alone needs more than `budget`, or a rectangle is fixed beyond it or at an
    unaligned address: no addresses exist then.
    """
    whole = [Buffer(r.start, r.end, r.size, offset=r.offset) for r in rectangles]
    if max_load(whole, alignment=alignment) > budget:
        raise ValueError("the rectangles of one step are larger than the budget, or one is fixed beyond it")
    task = _Task(rectangles, budget, alignment, time_limit, relocate, seed, progress)
    # This is a valid answer already: nothing dearer has to be tried.
    best = task.swept(0.0) if relocate else None
    queue: list[tuple[int, int, int, Moves]] = [(0, 0, 0, frozenset())]
    seen: set[Moves] = {frozenset()}
    conflict: tuple[int, ...] = ()
    bound, exact, tried = 0, True, 0
    while queue and tried < effort and (not tried or task.left(0.5)):
        cost, _, _, moves = heapq.heappop(queue)
        bound = cost if exact else bound
        if best is not None and cost >= relocation_bytes(rectangles, best[1]):
            queue.append((cost, 0, 0, moves))
            break
        status, pieces = task.attempt(moves)
        tried += 1
        if status == "packed":
            return task.answer(pieces, moves, bound, conflict)
        if status == "unknown":
            exact = False
            continue
        clash = task.clash(pieces)
        if not moves:
            conflict = tuple(sorted({p.rectangle for p in clash}))
        if not relocate:
            break
        for move in _useful_moves(rectangles, clash):
            child = moves | {move}
            if child not in seen:
                seen.add(child)
                cost = relocation_bytes(rectangles, child)
                heapq.heappush(queue, (cost, -len(child), len(seen), child))
    if best is None:
        return Placement("unknown", (), (), 0, 0, conflict, task.limits.spent())
    least = relocation_bytes(rectangles, best[1])
    if bound < least and exact and not queue:
        bound = least  # every cheaper set was refuted
    if bound < least:
        better = task.swept(0.6)
        if better is not None and relocation_bytes(rectangles, better[1]) <= least:
            best = better
        best = task.without_needless(*best)
    return task.answer(*best, bound, conflict)


MANY = 2_000
"""With this many rectangles or more, repair a first fit before searching: it is linear, a search is not."""


class _Task:
    """One call of `place`: its arguments, and its limits."""

    def __init__(
        self,
        rectangles: Sequence[Rectangle],
        budget: int,
        alignment: int,
        time_limit: float | None,
        relocate: bool,
        seed: int,
        progress: Callable[[int], object] | None,
    ) -> None:
        self.rectangles, self.budget, self.alignment = rectangles, budget, alignment
        self.progress = progress
        self.first = 0.2 if relocate else 1.0  # share of the time for packing all unmoved
        self.limits = Limits(PATIENCE if time_limit is None else time_limit, seed=seed)

    def left(self, share: float) -> bool:
        """Return whether at least that share of the time limit is left."""
        return self.limits.until(1 - share).left() != 0.0

    def buffers(self, pieces: Iterable[Piece]) -> list[Buffer]:
        return [
            Buffer(
                p.start, p.end, self.rectangles[p.rectangle].size, offset=self.rectangles[p.rectangle].offset
            )
            for p in pieces
        ]

    def attempt(self, moves: Moves) -> tuple[str, tuple[Piece, ...]]:
        """Pack the rectangles as `moves` cuts them."""
        pieces = _cut(self.rectangles, moves)
        found = self._packed(pieces, ("greedy", "repair"), moves) if len(pieces) > MANY else None
        if found is None or found.status == "unknown":
            found = self._packed(pieces, ENGINES if not moves else ("greedy", "search", "repair"), moves)
        if found.status == "packed":
            pieces = tuple(
                Piece(p.rectangle, p.start, p.end, at) for p, at in zip(pieces, found.offsets, strict=True)
            )
        return found.status, pieces

    def _packed(self, pieces: Sequence[Piece], engines: Collection[Engine], moves: Moves) -> Packing:
        return pack(
            self.buffers(pieces),
            self.budget,
            alignment=self.alignment,
            time_limit=self.limits.share(0.1 if moves else self.first).left(),
            seed=self.limits.seed,
            engines=engines,
            node_limit=50_000 if moves else None,
            progress=self.progress,
        )

    def clash(self, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
        """Return a minimal set of pieces that do not fit together, from pieces that do not."""
        which = irreducible(
            self.buffers(pieces),
            self.budget,
            alignment=self.alignment,
            time_limit=self.limits.share(0.2).left(),
        )
        return tuple(pieces[i] for i in which)

    def answer(
        self, pieces: tuple[Piece, ...], moves: Moves, bound: int, conflict: tuple[int, ...]
    ) -> Placement:
        ordered = tuple(sorted(moves, key=lambda m: (m.rectangle, m.after)))
        cost = relocation_bytes(self.rectangles, ordered)
        status: Literal["packed", "relocated"] = "relocated" if moves else "packed"
        return Placement(status, pieces, ordered, cost, min(bound, cost), conflict, self.limits.spent())

    def swept(self, share: float) -> tuple[tuple[Piece, ...], Moves] | None:
        """Lay out step by step, within that share of the remaining time."""
        found = sweep(
            self.rectangles,
            self.budget,
            alignment=self.alignment,
            limits=self.limits.share(share),
        )
        return None if found is None else (found[0], frozenset(found[1]))

    def without_needless(self, pieces: tuple[Piece, ...], moves: Moves) -> tuple[tuple[Piece, ...], Moves]:
        """Return fewer moves, if the packer finds room without some: the dearest are dropped first."""
        for move in sorted(
            moves, key=lambda m: (-self.rectangles[m.rectangle].transfer, m.rectangle, m.after)
        ):
            if not self.left(0.05):
                break
            status, fewer = self.attempt(moves - {move})
            if status == "packed":
                moves, pieces = moves - {move}, fewer
        return pieces, moves


def _cut(rectangles: Sequence[Rectangle], moves: Iterable[Relocation]) -> tuple[Piece, ...]:
    """Return the rectangles in pieces, without addresses yet."""
    cuts: dict[int, list[Relocation]] = {}
    for m in moves:
        cuts.setdefault(m.rectangle, []).append(m)
    result = []
    for i, r in enumerate(rectangles):
        begin = r.start
        for m in sorted(cuts.get(i, ()), key=lambda m: m.after):
            result.append(Piece(i, begin, m.after + 1, 0))
            begin = m.before
        result.append(Piece(i, begin, r.end, 0))
    return tuple(result)


def _useful_moves(rectangles: Sequence[Rectangle], clash: Sequence[Piece]) -> Iterator[Relocation]:
    """Yield the moves that can resolve a conflict: after any other, one piece still meets all it met."""
    for p in clash:
        met = [q for q in clash if q is not p and q.start < p.end and p.start < q.end]
        for after, before in rectangles[p.rectangle].gaps:
            if not (p.start <= after and before < p.end):
                continue
            if all(q.start <= after for q in met) or all(before < q.end for q in met):
                continue
            yield Relocation(p.rectangle, after, before)
