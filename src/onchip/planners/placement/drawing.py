"""From a schedule to rectangles, and from their pieces back to residencies with addresses.

A residency is a rectangle, and so is an operator's scratch. If an output is written over a dying input, both
residencies become one rectangle: the output begins at the address where the input ends, in the step that
reads the one and writes the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from onchip.planners.placement.pinning import where_kept
from onchip.planners.placement.program import Placed
from onchip.planners.placement.rectangles import Piece, Rectangle
from onchip.planners.placement.schedule import Residency, Schedule

__all__ = ["Drawing", "drawings"]


@dataclass(frozen=True)
class Drawing:
    """The rectangles of a schedule; those from `len(members)` on are the scratch of `schedule.scratch`.

    `residencies` are the schedule's, each with its prescribed address or None; `members` lists for each of
    the other rectangles the residencies that it holds one after the other (indices).
    """

    schedule: Schedule
    residencies: tuple[tuple[Residency, int | None], ...]
    members: tuple[tuple[int, ...], ...]

    @property
    def rectangles(self) -> tuple[Rectangle, ...]:
        """The rectangles; ids of scratch follow those of tensors."""
        schedule, problem = self.schedule, self.schedule.problem
        reloaded = schedule.reloads
        pinned = problem.kept.pinned if problem.kept is not None else frozenset[int]()

        def copied(t: int) -> bool:
            return schedule.has_copy(t) or t in reloaded

        result = []
        for chain in self.members:
            first, *rest = (self.residencies[i][0] for i in chain)
            at = next((at for i in chain if (at := self.residencies[i][1]) is not None), None)
            result.append(
                Rectangle(
                    first.tensor,
                    first.start,
                    rest[-1].end if rest else first.end,
                    problem.size[first.tensor],
                    tuple(sorted({use for r in (first, *rest) for use in r.uses})),
                    copied(first.tensor),
                    movable=at is None and pinned.isdisjoint(r.tensor for r in (first, *rest)),
                    cost=problem.cost[first.tensor],
                    offset=at,
                    heirs=tuple((r.start, r.tensor, copied(r.tensor)) for r in rest),
                )
            )
        return (
            *result,
            *(
                Rectangle(len(problem.size) + v, i, i + 1, problem.workspace[v], movable=False)
                for i, v in schedule.scratch
            ),
        )

    def placed(self, pieces: Iterable[Piece]) -> tuple[tuple[Placed, ...], dict[int, int]]:
        """Return residencies at the addresses of these pieces, and addresses of the operators' workspaces."""
        tensors: list[Placed] = []
        scratch: dict[int, int] = {}
        for piece in pieces:
            if piece.rectangle >= len(self.members):
                scratch[self.schedule.scratch[piece.rectangle - len(self.members)][1]] = piece.address
                continue
            for i in self.members[piece.rectangle]:
                r, _ = self.residencies[i]
                start, end = max(r.start, piece.start), min(r.end, piece.end)
                if start < end:
                    tensors.append(Placed(r.tensor, start, end, piece.address))
        return tuple(tensors), scratch


def drawings(schedule: Schedule, budget: int) -> Iterator[Drawing]:
    """Yield first a drawing with as few overwrites as `budget` allows, which is freer, then all."""
    problem = schedule.problem
    residencies = tuple((r, at) for r, at in where_kept(schedule) if problem.size[r.tensor])
    apart = tuple((i,) for i in range(len(residencies)))
    pairs = _pairs(schedule, residencies)
    if not pairs:
        yield Drawing(schedule, residencies, apart)
        return
    held = _held(schedule)
    needed = {step: pair for step, pair in pairs.items() if held[step] > budget}
    yield Drawing(schedule, residencies, _chains(apart, needed.values()))
    if len(needed) < len(pairs):
        yield Drawing(schedule, residencies, _chains(apart, pairs.values()))


def _pairs(
    schedule: Schedule, residencies: Sequence[tuple[Residency, int | None]]
) -> dict[int, tuple[int, int]]:
    """Return by step the residencies (of a dying input, of the output) that may be one rectangle."""
    problem = schedule.problem
    if not problem.overwrites:
        return {}
    begins = {(r.tensor, r.start): i for i, (r, _) in enumerate(residencies)}
    ends = {(r.tensor, r.end): i for i, (r, _) in enumerate(residencies)}
    last = {r.tensor: r.end for r, _ in residencies}  # ascending in time for each tensor
    address: dict[int, int | None] = {}  # of the chain that a residency belongs to
    result = {}
    for step, v in enumerate(schedule.order):
        dying = [x for x in problem.overwrites[v] if last[x] == step + 1]
        if not dying:
            continue
        after = begins[problem.outputs[v][0], step]
        wanted = residencies[after][1]
        there = {i: address.get(i, residencies[i][1]) for i in (ends[x, step + 1] for x in dying)}
        fitting = [i for i, at in there.items() if at is None or wanted is None or at == wanted]
        if fitting:
            # The input at the output's address; otherwise the most recent one: an old one may be in the way
            # of others.
            _, _, before = max(
                (wanted is not None and there[i] == wanted, residencies[i][0].start, i) for i in fitting
            )
            address[after] = wanted if wanted is not None else there[before]
            result[step] = before, after
    return result


def _held(schedule: Schedule) -> list[int]:
    """Return the bytes in use during each step if nothing is overwritten."""
    problem = schedule.problem
    change = [0] * (len(schedule.order) + 1)
    for r in schedule.residencies:
        change[r.start] += problem.size[r.tensor]
        change[r.end] -= problem.size[r.tensor]
    return [n + problem.workspace[v] for n, v in zip(accumulate(change), schedule.order, strict=False)]


def _chains(
    apart: tuple[tuple[int, ...], ...], pairs: Iterable[tuple[int, int]]
) -> tuple[tuple[int, ...], ...]:
    heir = dict(pairs)
    heirs = set(heir.values())
    result = []
    for (i,) in apart:
        if i in heirs:
            continue
        chain = [i]
        while chain[-1] in heir:
            chain.append(heir[chain[-1]])
        result.append(tuple(chain))
    return tuple(result)
