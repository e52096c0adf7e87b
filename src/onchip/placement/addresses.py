"""Stage B of placement: addresses for the residencies of a fixed schedule.

The schedule says when every tensor (and every operator's scratch) is resident; here each residency becomes a
rectangle, time across and bytes up, and rectangles that live together must not overlap. Where they cannot be
placed, some tensor has to move: it is evicted after one use and reloaded, elsewhere, before the next.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from onchip.packing import ENGINES, Buffer, irreducible, max_load, pack

__all__ = ["Piece", "Placement", "Rectangle", "Relocation", "place", "relocation_bytes"]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """One residency: `size` bytes held in steps [start, end).

    `item` is the caller's own id; rectangles with the same `item` are one tensor. An operator's scratch is
    not `movable`. `uses` are the steps that need it, `start` and `end - 1` among them; without any, every
    step does. `copied`: its bytes are in DRAM, or will be written there anyway, so that moving it costs one
    reload and no write. `cost` is what one transfer moves, `size` unless given.
    """

    item: int
    start: int
    end: int
    size: int
    uses: tuple[int, ...] = ()
    copied: bool = False
    movable: bool = True
    cost: int | None = None

    @property
    def transfer(self) -> int:
        """Bytes that one write or one reload moves."""
        return self.size if self.cost is None else self.cost

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Where it can be moved: evicted after one of two successive uses, reloaded for the other."""
        if not self.movable:
            return ()
        return tuple(pairwise(self.uses or range(self.start, self.end)))


@dataclass(frozen=True, slots=True)
class Relocation:
    """Evict rectangle `rectangle` (an index) after step `after` and reload it before step `before`."""

    rectangle: int
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a rectangle, [start, end) in steps, at one address. An unmoved rectangle is one piece."""

    rectangle: int
    start: int
    end: int
    address: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Addresses for every rectangle, whole (`packed`) or moved (`relocated`); or none (`unknown`).

    `relocation_bytes` is what moving costs, `lower_bound` what it costs at least for these residencies
    (equal: proved least). `conflict` are rectangles that do not fit together unmoved, a minimal set as far as
    limits allowed; empty when all fit, or when nothing was proved.
    """

    status: Literal["packed", "relocated", "unknown"]
    pieces: tuple[Piece, ...]
    relocations: tuple[Relocation, ...]
    relocation_bytes: int
    lower_bound: int
    conflict: tuple[int, ...]
    seconds: float


def relocation_bytes(rectangles: Sequence[Rectangle], moves: Iterable[Relocation]) -> int:
    """DRAM bytes of some relocations: one reload each, and one write per tensor that has no copy yet.

    Rectangles with the same movable `item` are one tensor: it is written once.
    """
    moves = list(moves)
    written = {rectangles[m.rectangle].item for m in moves if not rectangles[m.rectangle].copied}
    transfer = {rectangles[m.rectangle].item: rectangles[m.rectangle].transfer for m in moves}
    return sum(rectangles[m.rectangle].transfer for m in moves) + sum(transfer[item] for item in written)


Moves = frozenset[Relocation]

PATIENCE = 240.0
"""Seconds for one schedule when the caller sets no limit: a hard one may never be decided, and the caller has
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
    """Addresses within `budget` bytes, at the least relocation found.

    A set of relocations that does not pack leaves rectangles that do not fit together; whoever packs must
    move one of those. So sets are tried cheapest first, each failed one extended by every useful move of its
    conflict (combinatorial Benders cuts, searched best first): the first set that packs is a cheapest one,
    and the cheapest set still open is a lower bound. After `effort` sets, or half the time limit (seconds,
    `PATIENCE` when None), the cheapest moves are taken greedily until the rest packs.

    Raises `ValueError` when one step alone needs more than `budget`: no addresses exist then.
    """
    if max_load([Buffer(r.start, r.end, r.size) for r in rectangles], alignment=alignment) > budget:
        raise ValueError("the rectangles of one step are larger than the budget")
    task = _Task(rectangles, budget, alignment, time_limit, seed, progress)
    queue: list[tuple[int, int, int, Moves]] = [(0, 0, 0, frozenset())]
    seen: set[Moves] = {frozenset()}
    conflict: tuple[int, ...] = ()
    bound, exact, tried = 0, True, 0
    while queue and tried < effort and (not tried or task.left(0.5)):
        cost, _, _, moves = heapq.heappop(queue)
        bound = cost if exact else bound
        status, pieces = task.attempt(moves)
        tried += 1
        if status == "packed":
            return task.answer(pieces, moves, bound, conflict)
        exact = exact and status == "infeasible"
        clash = task.clash(pieces) if status == "infeasible" else pieces
        if not moves and status == "infeasible":
            conflict = tuple(sorted({p.rectangle for p in clash}))
        if not relocate:
            return Placement("unknown", (), (), 0, 0, conflict, task.seconds())
        for move in _useful_moves(rectangles, clash):
            child = moves | {move}
            if child not in seen:
                seen.add(child)
                cost = relocation_bytes(rectangles, child)
                heapq.heappush(queue, (cost, -len(child), len(seen), child))
    pieces, moves = task.greedily()
    if not pieces:
        return Placement("unknown", (), (), 0, bound, conflict, task.seconds())
    return task.answer(pieces, moves, bound, conflict)


class _Task:
    """One call of `place`: what it was given, and its clock."""

    def __init__(
        self,
        rectangles: Sequence[Rectangle],
        budget: int,
        alignment: int,
        time_limit: float | None,
        seed: int,
        progress: Callable[[int], object] | None,
    ) -> None:
        self.rectangles, self.budget, self.alignment = rectangles, budget, alignment
        self.seed, self.progress = seed, progress
        self._limit, self._start = PATIENCE if time_limit is None else time_limit, time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._start

    def left(self, share: float) -> bool:
        """Whether at least that share of the time limit is left."""
        return self.seconds() < (1 - share) * self._limit

    def slice(self, share: float) -> float:
        """That share of the time that is left, in seconds."""
        return share * max(0.0, self._limit - self.seconds())

    def buffers(self, pieces: Iterable[Piece]) -> list[Buffer]:
        return [Buffer(p.start, p.end, self.rectangles[p.rectangle].size) for p in pieces]

    def attempt(self, moves: Moves) -> tuple[str, tuple[Piece, ...]]:
        """Pack the rectangles as `moves` cuts them."""
        pieces = _cut(self.rectangles, moves)
        found = pack(
            self.buffers(pieces),
            self.budget,
            alignment=self.alignment,
            time_limit=self.slice(0.1 if moves else 0.4),
            seed=self.seed,
            engines=ENGINES if not moves else ("greedy", "search", "repair"),
            node_limit=50_000 if moves else None,
            progress=self.progress,
        )
        if found.status == "packed":
            pieces = tuple(
                Piece(p.rectangle, p.start, p.end, at) for p, at in zip(pieces, found.offsets, strict=True)
            )
        return found.status, pieces

    def clash(self, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
        """A minimal set of pieces that do not fit together, of pieces that do not."""
        which = irreducible(
            self.buffers(pieces), self.budget, alignment=self.alignment, time_limit=self.slice(0.2)
        )
        return tuple(pieces[i] for i in which)

    def answer(
        self, pieces: tuple[Piece, ...], moves: Moves, bound: int, conflict: tuple[int, ...]
    ) -> Placement:
        ordered = tuple(sorted(moves, key=lambda m: (m.rectangle, m.after)))
        cost = relocation_bytes(self.rectangles, ordered)
        status: Literal["packed", "relocated"] = "relocated" if moves else "packed"
        return Placement(status, pieces, ordered, cost, min(bound, cost), conflict, self.seconds())

    def greedily(self) -> tuple[tuple[Piece, ...], Moves]:
        """Add the cheapest useful moves, ever more at a time, until it packs; then drop what is not needed.

        With every move made no movable piece outlives its use, so only immovable ones can leave it empty.
        """
        moves: Moves = frozenset()
        status, pieces = self.attempt(moves)
        batch = 1
        while status != "packed":
            clash = self.clash(pieces) if status == "infeasible" else pieces
            options = sorted(
                (relocation_bytes(self.rectangles, moves | {m}), m.rectangle, m.after, m)
                for m in _useful_moves(self.rectangles, clash)
                if m not in moves
            )
            if not options:
                return (), frozenset()
            moves |= {m for _, _, _, m in options[:batch]}
            batch *= 2
            status, pieces = self.attempt(moves)
        for move in sorted(moves, key=lambda m: -self.rectangles[m.rectangle].transfer):
            if not self.left(0.05):
                break
            status, fewer = self.attempt(moves - {move})
            if status == "packed":
                moves, pieces = moves - {move}, fewer
        return pieces, moves


def _cut(rectangles: Sequence[Rectangle], moves: Iterable[Relocation]) -> tuple[Piece, ...]:
    """The rectangles in pieces, without addresses yet."""
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
    """The moves that can resolve a conflict: after any other, one piece still meets all it met."""
    for p in clash:
        met = [q for q in clash if q is not p and q.start < p.end and p.start < q.end]
        for after, before in rectangles[p.rectangle].gaps:
            if not (p.start <= after and before < p.end):
                continue
            if all(q.start <= after for q in met) or all(before < q.end for q in met):
                continue
            yield Relocation(p.rectangle, after, before)
